//! How a connection is protected and who logs in, by Kafka's client keys.
//!
//! The login itself is connection/login.rs; security/tls.rs makes TLS of the `ssl.*` keys; security/callers.rs is for
//! programs whose callers bring logins of their own.
//!
//! Keys: `security.protocol`, `ssl.*`, `sasl.mechanism`, `sasl.jaas.config`. PLAIN and SCRAM take `username` and
//! `password`, from PlainLoginModule or ScramLoginModule alike, as Kafka's clients do. OAUTHBEARER takes
//! `sasl.oauthbearer.*` and
//! `sasl.login.*` as shell/oauth reads them, without a list of allowed URLs: the author of a tool's file may read what
//! the tool may.
//!
//! GSSAPI takes Krb5LoginModule with a keytab, `sasl.kerberos.service.name`, and krb5.conf: the file that
//! `-Djava.security.krb5.conf=…` names in the environment variable KAFKA_OPTS, that of KRB5_CONFIG, /etc/krb5.conf.
//!
//! Not here: ticket caches, JAAS files of the JVM, callback handler classes other than Kafka's own. Each is refused by
//! name.
//!
//! # Source
//! Kafka 4 `CommonClientConfigs`, `SaslConfigs`, `SslConfigs`, `JaasContext`; KIP-43, KIP-84, KIP-85.

mod callers;
#[cfg(test)]
mod tests;
pub(crate) mod tls;

use crate::ClientError;
use barnabas_net::tickets::{TicketSource, read_krb5_conf};
use barnabas_oauth::{TokenSource, read_tokens};
use barnabas_sasl::Secret;
use barnabas_sasl::jaas::{Entry, LoginModule, parse_one};
use barnabas_sasl::kerberos::{Krb5Conf, TicketSettings};
use barnabas_sasl::oauth::settings::Allowed;
use barnabas_sasl::scram::Mechanism;
use barnabas_tls::ClientTls;
use std::sync::Arc;

/// The mechanisms that this client speaks.
const MECHANISMS: &str = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI";
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
    login: Option<Login>,
}

/// What a client logs in with.
#[derive(Debug, Clone)]
pub(crate) enum Login {
    Password(Credentials),
    /// All connections share it: a token serves until most of its life is over.
    Tokens(Arc<TokenSource>),
    /// All connections share it, too.
    Tickets(Arc<TicketSource>),
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Password(one), Self::Password(other)) => one == other,
            (Self::Tokens(one), Self::Tokens(other)) => one.settings() == other.settings(),
            (Self::Tickets(one), Self::Tickets(other)) => one.settings() == other.settings(),
            _ => false,
        }
    }
}

/// Who logs in, and by which mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub mechanism: ByPassword,
    pub user: String,
    pub password: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByPassword {
    Plain,
    /// `is_token`: the user is a delegation token's id and the password its HMAC.
    Scram {
        mechanism: Mechanism,
        is_token: bool,
    },
}

impl ByPassword {
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
        self.protocol == other.protocol && self.login == other.login && stores(self) == stores(other)
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
        let login = protocol.has_sasl().then(|| login(&get)).transpose()?;
        Ok(Self { protocol, tls, login })
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(crate) fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_deref()
    }

    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }
}

fn protocol(given: Option<&str>) -> Result<Protocol, ClientError> {
    let Some(word) = given else { return Ok(Protocol::default()) };
    let found = Protocol::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(word));
    found.ok_or_else(|| invalid("security.protocol", word, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"))
}

fn login<'a>(get: &dyn Fn(&str) -> Option<&'a str>) -> Result<Login, ClientError> {
    let mechanism = get("sasl.mechanism").unwrap_or("GSSAPI");
    let by_password = match (mechanism, Mechanism::from_name(mechanism)) {
        ("PLAIN", _) => Some(ByPassword::Plain),
        ("OAUTHBEARER" | "GSSAPI", _) => None,
        (_, Some(mechanism)) => Some(ByPassword::Scram { mechanism, is_token: false }),
        (other, None) => return Err(invalid("sasl.mechanism", other, MECHANISMS)),
    };
    let (entry, module) = module(get("sasl.jaas.config"))?;
    match by_password {
        Some(mechanism) => credentials(mechanism, &entry, module).map(Login::Password),
        None if mechanism == "GSSAPI" => tickets(get, &entry, &module),
        None => tokens(get, &entry, &module),
    }
}

fn module(jaas: Option<&str>) -> Result<(Entry, LoginModule), ClientError> {
    let jaas = jaas.filter(|text| !text.is_empty()).ok_or_else(|| {
        ClientError::Invalid(format!("security.protocol has SASL and sasl.jaas.config is missing. {EXAMPLE}"))
    })?;
    let entry = parse_one(jaas).map_err(|error| wrong(&error.to_string()))?;
    let module = LoginModule::try_from(&entry).map_err(|error| wrong(&error.to_string()))?;
    Ok((entry, module))
}

fn wrong(why: &str) -> ClientError {
    ClientError::Invalid(format!("sasl.jaas.config: {why}"))
}

fn tickets<'a>(
    get: &dyn Fn(&str) -> Option<&'a str>,
    entry: &Entry,
    module: &LoginModule,
) -> Result<Login, ClientError> {
    let LoginModule::Krb5(module) = module else {
        return Err(wrong(&format!(
            "{} does not log in by GSSAPI: expected com.sun.security.auth.module.Krb5LoginModule required \
             useKeyTab=true keyTab=\"/etc/alice.keytab\" principal=\"alice@EXAMPLE.COM\";",
            entry.class
        )));
    };
    let options = std::env::var("KAFKA_OPTS").unwrap_or_default();
    let named = options.split_whitespace().find_map(|word| word.strip_prefix("-Djava.security.krb5.conf="));
    let conf = read_krb5_conf(named.map(Into::into)).map_err(|(path, error)| {
        ClientError::Invalid(format!("krb5.conf: {} cannot be read: {error}", path.display()))
    })?;
    let conf = conf.as_deref().map(Krb5Conf::parse).unwrap_or_default();
    let service_name = get("sasl.kerberos.service.name").unwrap_or_default();
    let settings = TicketSettings::read(module, service_name, conf).map_err(|why| wrong(&why))?;
    Ok(Login::Tickets(Arc::new(TicketSource::new(settings))))
}

fn tokens<'a>(
    get: &dyn Fn(&str) -> Option<&'a str>,
    entry: &Entry,
    module: &LoginModule,
) -> Result<Login, ClientError> {
    let LoginModule::OAuthBearer(module) = module else {
        return Err(wrong(&format!(
            "{} does not log in by OAUTHBEARER: expected \
             org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
            entry.class
        )));
    };
    let owned = |key: &str| get(key).map(str::to_owned);
    let settings = read_tokens(&owned, module, &Allowed::All);
    let settings = settings.map_err(|error| ClientError::Invalid(error.to_string()))?;
    Ok(Login::Tokens(Arc::new(TokenSource::new(settings))))
}

fn credentials(
    mechanism: ByPassword,
    entry: &Entry,
    module: LoginModule,
) -> Result<Credentials, ClientError> {
    let (user, password, is_token) = match module {
        LoginModule::Plain(login) => (login.username, login.password, false),
        LoginModule::Scram(login) => (login.username, login.password, login.token_auth),
        LoginModule::OAuthBearer(_) | LoginModule::Krb5(_) => {
            let why = format!(
                "{} does not log in by {}: expected PlainLoginModule or ScramLoginModule. {EXAMPLE}",
                entry.class,
                mechanism.name()
            );
            return Err(wrong(&why));
        }
    };
    let (Some(user), Some(password)) = (user, password) else {
        return Err(wrong(&format!("username and password are missing. {EXAMPLE}")));
    };
    let mechanism = match mechanism {
        ByPassword::Scram { mechanism, .. } => ByPassword::Scram { mechanism, is_token },
        ByPassword::Plain if is_token => {
            return Err(wrong("tokenauth=true goes with SCRAM, not with PLAIN"));
        }
        ByPassword::Plain => ByPassword::Plain,
    };
    Ok(Credentials { mechanism, user, password })
}

fn invalid(key: &str, value: &str, wanted: &str) -> ClientError {
    ClientError::Invalid(format!("{key} takes {wanted}; not '{value}'"))
}
