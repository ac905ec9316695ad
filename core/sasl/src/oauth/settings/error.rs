//! Why OAUTHBEARER cannot be set up as the settings say: always the key, what is wrong, and an example.

/// For the operator. `key` is as in the settings, without a listener's prefix: the caller names the listener.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}. Example: {example}")]
pub struct OAuthError {
    pub key: String,
    pub problem: String,
    pub example: String,
}

impl OAuthError {
    pub fn new(key: &str, problem: impl Into<String>, value: &str) -> Self {
        Self { key: key.to_owned(), problem: problem.into(), example: format!("{key}={value}") }
    }
}
