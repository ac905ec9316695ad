//! How a connection is protected and who logs in, by Kafka's client keys.
//!
//! The login itself is connection/login.rs; security/tls.rs makes TLS of the `ssl.*` keys.
//!
//! Keys: `security.protocol`, `ssl.*`, `sasl.mechanism`, `sasl.jaas.config`. PLAIN and SCRAM take `username` and `password`,
//! from PlainLoginModule or ScramLoginModule alike, as Kafka's clients do.
//!
//! Not here: OAUTHBEARER, GSSAPI, JAAS files of the JVM, callback handler classes. Each is refused by name.
//!
//! # Source
//! Kafka 4 `CommonClientConfigs`, `SaslConfigs`, `SslConfigs`, `JaasContext`; KIP-43, KIP-84, KIP-85.

#[cfg(test)]
mod tests;
pub(crate) mod tls;

use crate::ClientError;
use barnabas_sasl::Secret;
use barnabas_sasl::jaas::{LoginModule, parse_one};
use barnabas_sasl::scram::Mechanism;
use barnabas_tls::ClientTls;
use std::sync::Arc;

/// The mechanisms that this client speaks.
const MECHANISMS: &str = "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";
/// How an error of `sasl.jaas.config` shows what is expected.
const EXAMPLE: &str = "Example: sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
                       username=\"alice\" password=\"…\";";

/// What `security.protocol` names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl Protocol {
    const ALL: [Self; 4] = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    pub fn has_tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }

    pub fn has_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }
}

/// The protection of a client's connections. By default none.
#[derive(Debug, Clone, Default)]
pub struct Security {
    protocol: Protocol,
    /// All connections share it: sessions are resumed.
    tls: Option<Arc<ClientTls>>,
    credentials: Option<Credentials>,
}

/// Who logs in, and by which mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub mechanism: Login,
    pub user: String,
    pub password: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    Plain,
    /// `is_token`: the user is a delegation token's id and the password its HMAC.
    Scram {
        mechanism: Mechanism,
        is_token: bool,
    },
}

impl Login {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram { mechanism, .. } => mechanism.name(),
        }
    }
}

/// Two are the same if they were made of the same stores at the same moment.
impl PartialEq for Security {
    fn eq(&self, other: &Self) -> bool {
        let stores = |security: &Self| security.tls.as_ref().map(Arc::as_ptr);
        self.protocol == other.protocol
            && self.credentials == other.credentials
            && stores(self) == stores(other)
    }
}

impl Security {
    /// Whether this is a key of a client's protection.
    pub fn has_key(key: &str) -> bool {
        key == "security.protocol" || key.starts_with("ssl.") || key.starts_with("sasl.")
    }

    /// Reads Kafka's keys among `properties`; of a key that stands twice the last value holds.
    ///
    /// # Errors
    /// A value that Kafka would refuse, or a feature that this client lacks. No secret is repeated.
    pub fn parse<'a>(properties: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ClientError> {
        let given: Vec<(&str, &str)> = properties.into_iter().filter(|(key, _)| Self::has_key(key)).collect();
        let get = |key: &str| given.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.trim());
        let protocol = protocol(get("security.protocol"))?;
        let tls = protocol.has_tls().then(|| tls::load(get)).transpose()?;
        let credentials = if protocol.has_sasl() {
            Some(credentials(get("sasl.mechanism"), get("sasl.jaas.config"))?)
        } else {
            None
        };
        Ok(Self { protocol, tls, credentials })
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(crate) fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_deref()
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

fn protocol(given: Option<&str>) -> Result<Protocol, ClientError> {
    let Some(word) = given else { return Ok(Protocol::default()) };
    let found = Protocol::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(word));
    found.ok_or_else(|| invalid("security.protocol", word, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"))
}

fn credentials(mechanism: Option<&str>, jaas: Option<&str>) -> Result<Credentials, ClientError> {
    let mechanism = match mechanism {
        Some("PLAIN") => Login::Plain,
        Some(word) => match Mechanism::from_name(word) {
            Some(mechanism) => Login::Scram { mechanism, is_token: false },
            None => return Err(invalid("sasl.mechanism", word, MECHANISMS)),
        },
        None => {
            return Err(ClientError::Invalid(format!(
                "sasl.mechanism is missing: expected {MECHANISMS}. Kafka's default, GSSAPI, is not here"
            )));
        }
    };
    let jaas = jaas.filter(|text| !text.is_empty()).ok_or_else(|| {
        ClientError::Invalid(format!("security.protocol has SASL and sasl.jaas.config is missing. {EXAMPLE}"))
    })?;
    let wrong = |why: String| ClientError::Invalid(format!("sasl.jaas.config: {why}"));
    let entry = parse_one(jaas).map_err(|error| wrong(error.to_string()))?;
    let module = LoginModule::try_from(&entry).map_err(|error| wrong(error.to_string()))?;
    let (user, password, is_token) = match module {
        LoginModule::Plain(login) => (login.username, login.password, false),
        LoginModule::Scram(login) => (login.username, login.password, login.token_auth),
        LoginModule::OAuthBearer(_) | LoginModule::Krb5(_) => {
            let why = format!(
                "{} does not log in by {}: expected PlainLoginModule or ScramLoginModule. {EXAMPLE}",
                entry.class,
                mechanism.name()
            );
            return Err(wrong(why));
        }
    };
    let (Some(user), Some(password)) = (user, password) else {
        return Err(wrong(format!("username and password are missing. {EXAMPLE}")));
    };
    let mechanism = match mechanism {
        Login::Scram { mechanism, .. } => Login::Scram { mechanism, is_token },
        Login::Plain if is_token => {
            return Err(wrong("tokenauth=true goes with SCRAM, not with PLAIN".to_owned()));
        }
        Login::Plain => Login::Plain,
    };
    Ok(Credentials { mechanism, user, password })
}

fn invalid(key: &str, value: &str, wanted: &str) -> ClientError {
    ClientError::Invalid(format!("{key} takes {wanted}; not '{value}'"))
}
