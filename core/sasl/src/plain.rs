//! PLAIN, RFC 4616: `[authzid] NUL user NUL password`.
//!
//! The server keeps a digest of each password, not the password. An unknown user costs the same comparison.
//!
//! # Source
//! Kafka 4 `PlainSaslServer`, `PlainServerCallbackHandler`.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use zeroize::Zeroizing;

use crate::{Login, Refusal, Secret};

/// The users of a listener: `user_NAME="password"` of its PlainLoginModule.
#[derive(Debug, Clone, Default)]
pub struct PlainUsers {
    digests: BTreeMap<String, Secret>,
}

impl PlainUsers {
    /// If a user is listed twice, the last password counts, as in Kafka.
    pub fn new<'a>(users: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let digests =
            users.into_iter().map(|(name, password)| (name.to_owned(), digest(password.bytes()))).collect();
        Self { digests }
    }

    /// Whether the user is listed.
    pub fn knows(&self, user: &str) -> bool {
        self.digests.contains_key(user)
    }

    /// Whether this is the user's password. Takes the same time for an unknown user and for any wrong password.
    fn accepts(&self, user: &str, password: &[u8]) -> bool {
        let given = digest(password);
        let nothing = Secret::from(vec![0; 32]);
        let (expected, known) = match self.digests.get(user) {
            Some(expected) => (expected, Choice::from(1)),
            None => (&nothing, Choice::from(0)),
        };
        bool::from(given.bytes().ct_eq(expected.bytes()) & known)
    }
}

fn digest(password: &[u8]) -> Secret {
    Secret::from(Sha256::digest(password).as_slice())
}

/// The server's whole exchange: one message, answered with an empty one.
///
/// # Errors
/// - [`Refusal::Hidden`]: not three tokens, or the user or the password is empty.
/// - [`Refusal::Told`]: unknown user or wrong password, by one text; then an authzid that is not the user.
pub fn log_in(message: &[u8], users: &PlainUsers) -> Result<Login, Refusal> {
    let text = std::str::from_utf8(message)
        .map_err(|_| Refusal::hidden("Invalid SASL/PLAIN response: it is not UTF-8"))?;
    let tokens = text.split('\0').count().min(4);
    let mut parts = text.splitn(3, '\0');
    let (Some(authzid), Some(user), Some(password), 3) = (parts.next(), parts.next(), parts.next(), tokens)
    else {
        return Err(Refusal::hidden(format!("Invalid SASL/PLAIN response: expected 3 tokens, got {tokens}")));
    };
    if user.is_empty() {
        return Err(Refusal::hidden("Authentication failed: username not specified"));
    }
    if password.is_empty() {
        return Err(Refusal::hidden("Authentication failed: password not specified"));
    }
    if !users.accepts(user, password.as_bytes()) {
        return Err(Refusal::told("Authentication failed: Invalid username or password"));
    }
    if !authzid.is_empty() && authzid != user {
        return Err(Refusal::told(
            "Authentication failed: Client requested an authorization id that is different from username",
        ));
    }
    Ok(Login::of(user))
}

/// The client's one message, without authzid as Kafka's clients send it.
pub fn client_message(user: &str, password: &Secret) -> Zeroizing<Vec<u8>> {
    let mut message = Zeroizing::new(Vec::with_capacity(user.len() + password.bytes().len() + 2));
    message.push(0);
    message.extend_from_slice(user.as_bytes());
    message.push(0);
    message.extend_from_slice(password.bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::{PlainUsers, client_message, log_in};
    use crate::{Refusal, Secret};

    fn users() -> PlainUsers {
        let (alice, tim) = (Secret::from("alice-secret"), Secret::from("tänzer"));
        PlainUsers::new([("alice", &alice), ("tim", &tim)])
    }

    fn check(message: &str, expected: Result<&str, Refusal>) {
        let got = log_in(message.as_bytes(), &users()).map(|login| login.name);
        assert_eq!(got, expected.map(str::to_owned), "{message:?}");
    }

    #[test]
    fn plain_messages_are_judged_as_kafka_does() {
        let wrong = || Refusal::told("Authentication failed: Invalid username or password");
        let tokens = |n| Refusal::hidden(format!("Invalid SASL/PLAIN response: expected 3 tokens, got {n}"));
        check("\0alice\0alice-secret", Ok("alice"));
        check("alice\0alice\0alice-secret", Ok("alice"));
        check("\0tim\0tänzer", Ok("tim"));
        check("\0alice\0tänzer", Err(wrong()));
        check("\0alice\0alice-secre", Err(wrong()));
        check("\0bob\0alice-secret", Err(wrong()));
        check("bob\0alice\0wrong", Err(wrong()));
        check("\0alice", Err(tokens(2)));
        check("", Err(tokens(1)));
        check("\0alice\0alice-secret\0", Err(tokens(4)));
        check("\0\0alice-secret", Err(Refusal::hidden("Authentication failed: username not specified")));
        check("\0alice\0", Err(Refusal::hidden("Authentication failed: password not specified")));
        let other =
            "Authentication failed: Client requested an authorization id that is different from username";
        check("bob\0alice\0alice-secret", Err(Refusal::told(other)));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let refusal = log_in(b"\0alice\0\xff", &users()).unwrap_err();
        assert!(matches!(refusal, Refusal::Hidden(_)), "{refusal:?}");
    }

    #[test]
    fn client_message_logs_in() {
        let message = client_message("alice", &Secret::from("alice-secret"));
        assert_eq!(log_in(&message, &users()).unwrap().name, "alice");
    }
}
