//! A program in front of a cluster, whose callers each log in as themselves: the protection comes from Kafka's keys,
//! the login from the caller.

use super::{ByPassword, Credentials, Login, Security, invalid, protocol, tls};
use crate::ClientError;
use barnabas_sasl::Secret;
use barnabas_sasl::scram::Mechanism;

impl Security {
    /// `security.protocol` and `ssl.*` alone. With SASL, connections are not logged in before [`Self::with_login`]:
    /// such a connection can only ask for versions.
    ///
    /// # Errors
    /// A value that Kafka would refuse.
    pub fn without_login<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ClientError> {
        let given: Vec<(&str, &str)> = properties.into_iter().collect();
        let get = |key: &str| given.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.trim());
        let protocol = protocol(get("security.protocol"))?;
        let tls = protocol.has_tls().then(|| tls::load(get)).transpose()?;
        Ok(Self { protocol, tls, login: None })
    }

    /// The same protection, with `user` logged in by `mechanism`: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
    ///
    /// # Errors
    /// Another mechanism.
    pub fn with_login(&self, mechanism: &str, user: &str, password: &Secret) -> Result<Self, ClientError> {
        let mechanism = match (mechanism, Mechanism::from_name(mechanism)) {
            ("PLAIN", _) => ByPassword::Plain,
            (_, Some(mechanism)) => ByPassword::Scram { mechanism, is_token: false },
            (other, None) => {
                return Err(invalid("sasl.mechanism", other, "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"));
            }
        };
        let credentials = Credentials { mechanism, user: user.to_owned(), password: password.clone() };
        Ok(Self { login: Some(Login::Password(credentials)), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn login_is_the_callers() {
        let shared = Security::without_login([("security.protocol", "SASL_PLAINTEXT")]).expect("sound");
        assert_eq!(shared.protocol(), Protocol::SaslPlaintext);
        assert!(shared.login().is_none());
        let one = shared.with_login("SCRAM-SHA-256", "anna", &Secret::from("a")).expect("sound");
        let other = shared.with_login("SCRAM-SHA-256", "anna", &Secret::from("b")).expect("sound");
        assert!(one.login().is_some() && one != other);
        let refused = shared.with_login("OAUTHBEARER", "anna", &Secret::from("a")).expect_err("no password");
        assert!(refused.to_string().contains("PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"), "{refused}");
    }
}
