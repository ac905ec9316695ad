//! The outcome of an exchange: the authenticated user, or the reason for the refusal.

use barnabas_base::TimestampMs;

/// An authenticated client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name of the principal, of type `User`.
    pub name: String,
    /// When the credential ends, if it does: a token's expiry. Limits the session (KIP-368).
    pub expires: Option<TimestampMs>,
    /// The id of the delegation token that is the credential. Such a client gets no further tokens (KIP-48).
    pub token: Option<String>,
}

impl Login {
    pub(crate) fn of(name: impl Into<String>) -> Self {
        Self { name: name.into(), expires: None, token: None }
    }
}

/// Why a login failed. Carries no secret.
///
/// Kafka knows two kinds. A `SaslAuthenticationException`'s text goes to the client; a `SaslException`'s stays in the
/// log, and the client reads one sentence for all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The client may read this text. It does not say whether the user exists.
    #[error("{0}")]
    Told(String),
    /// Only the broker's log may show this text.
    #[error("{0}")]
    Hidden(String),
}

impl Refusal {
    /// The text of SaslAuthenticate's answer, error code 58.
    ///
    /// # Source
    /// Kafka 4 `SaslServerAuthenticator.handleSaslToken`.
    pub fn text_for_client(&self, mechanism: &str, is_reauthentication: bool) -> String {
        let phase = if is_reauthentication { "re-authentication" } else { "authentication" };
        match self {
            Self::Told(text) => text.clone(),
            Self::Hidden(_) => {
                format!(
                    "Authentication failed during {phase} due to invalid credentials with SASL mechanism {mechanism}"
                )
            }
        }
    }

    pub(crate) fn told(text: impl Into<String>) -> Self {
        Self::Told(text.into())
    }

    pub(crate) fn hidden(text: impl Into<String>) -> Self {
        Self::Hidden(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn hidden_refusal_gives_the_client_one_sentence() {
        let refusal = Refusal::hidden("stored key differs");
        assert_eq!(
            refusal.text_for_client("SCRAM-SHA-256", false),
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        );
        assert!(refusal.text_for_client("PLAIN", true).contains("during re-authentication due"));
        assert_eq!(Refusal::told("no").text_for_client("PLAIN", false), "no");
    }
}
