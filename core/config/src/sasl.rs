//! SASL: what each listener takes, and what this node logs in to others with.
//!
//! A key is looked up for the listener's mechanism, for the listener, then for the node:
//! `listener.name.NAME.MECHANISM.KEY`, `listener.name.NAME.KEY`, `KEY`. A login module comes from `sasl.jaas.config` of
//! the listener's mechanism, else from the JAAS file (`NAME.KafkaServer`, `KafkaServer`).
//!
//! No message here holds a secret. Java classes that are not Kafka's own stop the start: they may be what checks
//! clients.
//!
//! The JAAS file, the options of Kafka's JVM and the stores that keys name are handed in or asked for ([`Given`]).
//!
//! Neighbours: shell/broker/src/config/sasl.rs, which reads them; core/config/src/sasl/kerberos.rs, for GSSAPI.
//!
//! Source: Kafka `SaslChannelBuilder`, `ChannelBuilders`, `JaasContext`, `KafkaConfig.validateValues`.

mod kerberos;

pub use kerberos::{KRB5_CONF, KerberosListener};

use crate::{ConfigError, Listener, ListenerName, Listeners};
use barnabas_certificates::TlsSettings;
use barnabas_metadata::config::BrokerConfig;
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::exchange::{Offer, SaslMechanism};
use barnabas_sasl::jaas::{self, LoginModule, Section};
use barnabas_sasl::kerberos::TicketSettings;
use barnabas_sasl::oauth::settings::{Allowed, OAuthError, Validator};
use barnabas_sasl::oauth::tokens::{TokenSettings, Way};
use barnabas_sasl::plain::PlainUsers;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where the JVM's own property stands for the JAAS file.
pub const JAAS_FILE: &str = "java.security.auth.login.config";
const ENABLED: &str = "sasl.enabled.mechanisms";
const JAAS: &str = "sasl.jaas.config";
const BROKERS: &str = "sasl.mechanism.inter.broker.protocol";
const CONTROLLERS: &str = "sasl.mechanism.controller.protocol";

const KNOWN: &str = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI";

/// Classes of Kafka's that do what this node does anyway.
const OWN_CLASSES: &[&str] = &[
    "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler",
    "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler",
    "org.apache.kafka.common.security.authenticator.SaslClientCallbackHandler",
    "org.apache.kafka.common.security.authenticator.AbstractLogin.DefaultLoginCallbackHandler",
    "org.apache.kafka.common.security.authenticator.SaslServerCallbackHandler",
    "org.apache.kafka.common.security.kerberos.KerberosClientCallbackHandler",
    "org.apache.kafka.common.security.kerberos.KerberosLogin",
    "org.apache.kafka.common.security.authenticator.DefaultLogin",
    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerRefreshingLogin",
];
const CLASS_KEYS: &[&str] = &[
    "sasl.server.callback.handler.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
];
const OTHER_CLASS_KEYS: &[&str] = &["sasl.client.callback.handler.class", "sasl.login.class"];

/// How a listener authenticates its clients.
#[derive(Debug, Clone)]
pub struct SaslListener {
    pub offers: Vec<Offer>,
    pub plain: PlainUsers,
    /// How tokens of OAUTHBEARER are judged, where that is offered.
    pub tokens: Option<Validator>,
    /// How tickets of GSSAPI are judged, where that is offered.
    pub kerberos: Option<KerberosListener>,
    /// Most bytes of a frame before the client has authenticated.
    pub receive_bytes_max: usize,
    pub failure_delay: Duration,
}

/// What the settings say of SASL.
#[derive(Debug, Clone, Default)]
pub struct SaslConfig {
    /// By the listeners' places; `None`: without SASL.
    pub listeners: Vec<Option<Arc<SaslListener>>>,
    pub to_brokers: Option<OwnLogin>,
    pub to_controllers: Option<OwnLogin>,
}

/// What this node logs in to others with.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnLogin {
    Fixed(ClientLogin),
    /// By tokens of OAUTHBEARER.
    Tokens(Box<TokenSettings>),
    /// By tickets of GSSAPI.
    Tickets(Box<TicketSettings>),
}

/// What the machine has to say, beside the settings.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The JAAS file.
    pub file: &'a [Section],
    /// `KAFKA_OPTS`, as the environment has it.
    pub jvm_options: Option<&'a str>,
    /// Whether the stores that these settings name can be read.
    pub check_stores: &'a dyn Fn(&TlsSettings) -> Result<(), OAuthError>,
    /// The text of krb5.conf, where there is one.
    pub krb5_conf: Option<&'a str>,
    /// Whether the keytab of this listener can be read and has its keys.
    pub check_keytab: &'a dyn Fn(&KerberosListener) -> Result<(), String>,
}

impl std::fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options may hold passwords.
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

/// Where the JAAS file is, if there is to be one.
pub fn jaas_path(config: &BrokerConfig, jvm_options: Option<&str>) -> Option<PathBuf> {
    set_for_jvm(config, JAAS_FILE, jvm_options).map(PathBuf::from)
}

/// Where krb5.conf is, if the settings say so.
pub fn krb5_conf_path(config: &BrokerConfig, jvm_options: Option<&str>) -> Option<PathBuf> {
    set_for_jvm(config, KRB5_CONF, jvm_options).map(PathBuf::from)
}

/// The sections of the JAAS file.
///
/// # Errors
/// It is none.
pub fn parse_jaas_file(path: &Path, text: &str) -> Result<Vec<Section>, ConfigError> {
    jaas::parse_file(text).map_err(|error| {
        let problem = format!("{}: {error}", path.display());
        ConfigError::value(JAAS_FILE, problem, format!("{JAAS_FILE}=/etc/kafka/jaas.conf"))
    })
}

/// `-Dkey=VALUE`, among a JVM's options.
fn jvm_property(options: &str, key: &str) -> Option<String> {
    let property = options
        .split_whitespace()
        .find_map(|word| word.strip_prefix("-D")?.strip_prefix(key)?.strip_prefix('=').map(str::to_owned));
    property.filter(|value| !value.is_empty())
}

/// A key that is a property of the JVM in Kafka: from the settings, else from the JVM's options.
fn set_for_jvm(config: &BrokerConfig, key: &str, jvm_options: Option<&str>) -> Option<String> {
    let named = config.value(key).filter(|value| !value.is_empty()).map(str::to_owned);
    named.or_else(|| jvm_property(jvm_options?, key))
}

/// Reads and judges every key about SASL that a listener or a link of this node uses.
///
/// # Errors
/// The first that cannot be.
pub fn read(
    config: &BrokerConfig,
    listeners: &Listeners,
    given: &Given<'_>,
) -> Result<SaslConfig, ConfigError> {
    let mut read = SaslConfig::default();
    for listener in &listeners.all {
        let of = Of { config, listener: &listener.endpoint.listener, given };
        let is_local = is_loopback(&listener.endpoint.host);
        let sasl = if listener.protocol.has_sasl() { Some(Arc::new(of.listener(is_local)?)) } else { None };
        read.listeners.push(sasl);
    }
    let own = |listener: &&Listener| {
        listener.endpoint.listener == listeners.inter_broker && listener.protocol.has_sasl()
    };
    if listeners.all.iter().any(|listener| own(&listener)) {
        let of = Of { config, listener: &listeners.inter_broker, given };
        read.to_brokers = Some(of.client(BROKERS)?);
    }
    if listeners.controller_protocol.has_sasl()
        && let Some(listener) = listeners.controller_names.first()
    {
        let of = Of { config, listener, given };
        read.to_controllers = Some(of.client(CONTROLLERS)?);
    }
    Ok(read)
}

/// What URLs and files OAUTHBEARER may be pointed at.
fn allowed(config: &BrokerConfig, jvm_options: Option<&str>) -> Allowed {
    let value = |key: &str| set_for_jvm(config, key, jvm_options).unwrap_or_default();
    Allowed::only(&value(Allowed::URLS), &value(Allowed::FILES))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// One listener's keys.
struct Of<'a> {
    config: &'a BrokerConfig,
    listener: &'a ListenerName,
    given: &'a Given<'a>,
}

impl Of<'_> {
    fn listener(&self, is_local: bool) -> Result<SaslListener, ConfigError> {
        let mut offers: Vec<Offer> = Vec::new();
        let (mut plain, mut tokens, mut kerberos) = (PlainUsers::default(), None, None);
        let (key, text) = self.named(None, ENABLED);
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let mechanism = mechanism(&key, name)?;
            if offers.iter().any(|offer| offer.mechanism == mechanism) {
                continue;
            }
            self.check_classes(mechanism)?;
            match mechanism {
                SaslMechanism::Plain => plain = self.plain_users()?,
                SaslMechanism::OAuthBearer => tokens = Some(self.validator(is_local)?),
                SaslMechanism::Gssapi => kerberos = Some(self.kerberos()?),
                SaslMechanism::Scram(_) => {}
            }
            let (reauth_key, most) = self.named(Some(mechanism), "connections.max.reauth.ms");
            let session_max_ms = most.trim().parse().map_err(|_| {
                ConfigError::value(
                    &reauth_key,
                    "is no number of milliseconds",
                    format!("{reauth_key}=3600000"),
                )
            })?;
            offers.push(Offer { mechanism, session_max_ms });
        }
        if offers.is_empty() {
            let problem = format!("names no mechanism, and the listener {} uses SASL", self.listener);
            return Err(ConfigError::value(&key, problem, format!("{ENABLED}=SCRAM-SHA-512")));
        }
        let number = |key: &str| self.named(None, key).1.trim().parse::<u64>().unwrap_or(0);
        let receive_bytes_max = usize::try_from(number("sasl.server.max.receive.size")).unwrap_or(0);
        let failure_delay = Duration::from_millis(number("connection.failed.authentication.delay.ms"));
        Ok(SaslListener { offers, plain, tokens, kerberos, receive_bytes_max, failure_delay })
    }

    /// What this node logs in with, by the mechanism under `key`.
    fn client(&self, key: &str) -> Result<OwnLogin, ConfigError> {
        let (named, text) = self.named(None, key);
        let mechanism = mechanism(&named, text.trim())?;
        self.check_classes(mechanism)?;
        let (enabled_key, enabled) = self.named(None, ENABLED);
        if !enabled.split(',').any(|name| name.trim() == mechanism.name()) {
            let problem = format!("{key}={} is not in it ({enabled})", mechanism.name());
            let example = format!("{enabled_key}={},{}", enabled.trim(), mechanism.name());
            return Err(ConfigError::value(&enabled_key, problem, example));
        }
        if mechanism == SaslMechanism::Gssapi {
            return Ok(OwnLogin::Tickets(Box::new(self.tickets()?)));
        }
        let module = self.module(mechanism)?;
        if let (SaslMechanism::OAuthBearer, Some(LoginModule::OAuthBearer(login))) = (mechanism, &module) {
            // Defaults of keys that are not set are empty.
            let get = |key: &str| Some(self.named(Some(mechanism), key).1).filter(|value| !value.is_empty());
            let settings = TokenSettings::read(&get, login, &self.allowed());
            let settings = settings.and_then(|settings| {
                if let Way::Issuer(issuer) = &settings.way {
                    self.check_stores(issuer.tls.as_ref())?;
                }
                Ok(settings)
            });
            let settings = settings.map_err(|error| self.at(mechanism, error))?;
            return Ok(OwnLogin::Tokens(Box::new(settings)));
        }
        let login = module.as_ref().and_then(|module| ClientLogin::of(mechanism, module));
        login.map(OwnLogin::Fixed).ok_or_else(|| {
            let what = match mechanism {
                SaslMechanism::OAuthBearer => "login module",
                _ => "username and password",
            };
            let problem = format!("has no {what}, which this node logs in with ({key})");
            ConfigError::value(&self.jaas_key(mechanism), problem, self.jaas_example(mechanism))
        })
    }

    fn plain_users(&self) -> Result<PlainUsers, ConfigError> {
        let Some(LoginModule::Plain(login)) = self.module(SaslMechanism::Plain)? else {
            let problem =
                "is not set, and there is no JAAS file with a section KafkaServer: PLAIN has no users";
            let mechanism = SaslMechanism::Plain;
            return Err(ConfigError::value(&self.jaas_key(mechanism), problem, self.jaas_example(mechanism)));
        };
        Ok(PlainUsers::new(login.users.iter().map(|(name, password)| (name.as_str(), password))))
    }

    fn validator(&self, is_local: bool) -> Result<Validator, ConfigError> {
        let mechanism = SaslMechanism::OAuthBearer;
        let options = match self.module(mechanism)? {
            Some(LoginModule::OAuthBearer(login)) => login.options,
            _ => Vec::new(),
        };
        let get = |key: &str| Some(self.named(Some(mechanism), key).1);
        let validator = Validator::read(&get, &options, &self.allowed());
        let validator = validator.and_then(|validator| {
            if let Validator::Signed { keys, .. } = &validator {
                self.check_stores(keys.tls.as_ref())?;
            }
            Ok(validator)
        });
        let validator = validator.map_err(|error| self.at(mechanism, error))?;
        if matches!(validator, Validator::Unsecured(_)) && !is_local {
            let (key, class) = self.named(Some(mechanism), "sasl.server.callback.handler.class");
            let problem = format!(
                "{class} lets every client log in as any user, and the listener {} is not bound to loopback",
                self.listener
            );
            let example = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";
            return Err(ConfigError::value(&key, problem, format!("{key}={example}")));
        }
        Ok(validator)
    }

    fn allowed(&self) -> Allowed {
        allowed(self.config, self.given.jvm_options)
    }

    fn check_stores(&self, tls: Option<&TlsSettings>) -> Result<(), OAuthError> {
        tls.map_or(Ok(()), self.given.check_stores)
    }

    /// With the prefix under which the key is set, or may be.
    fn at(&self, mechanism: SaslMechanism, error: OAuthError) -> ConfigError {
        let OAuthError { key, problem, example } = error;
        if key == Allowed::URLS || key == Allowed::FILES {
            return ConfigError::value(&key, problem, example);
        }
        let prefix = format!("{}{}.", self.listener.key_prefix(), mechanism.name().to_lowercase());
        ConfigError::value(&format!("{prefix}{key}"), problem, format!("{prefix}{example}"))
    }

    /// The login module of a mechanism, where there is one.
    fn module(&self, mechanism: SaslMechanism) -> Result<Option<LoginModule>, ConfigError> {
        let key = self.jaas_key(mechanism);
        let refused = |problem: String| ConfigError::value(&key, problem, self.jaas_example(mechanism));
        if let Some(text) = self.config.value(&key).filter(|text| !text.is_empty()) {
            let entry = jaas::parse_one(text).map_err(|error| refused(error.to_string()))?;
            let module = LoginModule::try_from(&entry).map_err(|error| refused(error.to_string()))?;
            if !fits(mechanism, &module) {
                let problem = format!("the login module {} is not one of {}", entry.class, mechanism.name());
                return Err(refused(problem));
            }
            return Ok(Some(module));
        }
        let Some(section) = jaas::section_of_listener(self.given.file, self.listener.as_str()) else {
            return Ok(None);
        };
        for entry in &section.entries {
            let module = LoginModule::try_from(entry).map_err(|error| {
                let problem = format!("section {}: {error}", section.name);
                ConfigError::value(JAAS_FILE, problem, format!("{JAAS_FILE}=/etc/kafka/jaas.conf"))
            })?;
            if fits(mechanism, &module) {
                return Ok(Some(module));
            }
        }
        Ok(None)
    }

    fn check_classes(&self, mechanism: SaslMechanism) -> Result<(), ConfigError> {
        // OAUTHBEARER's are judged where they are used.
        let keys = if mechanism == SaslMechanism::OAuthBearer { OTHER_CLASS_KEYS } else { CLASS_KEYS };
        for key in keys {
            let (named, class) = self.named(Some(mechanism), key);
            if !class.is_empty() && !OWN_CLASSES.contains(&class.as_str()) {
                let problem = format!(
                    "{class} is a Java class and cannot run here; without it other clients might be let in. Remove the key"
                );
                return Err(ConfigError::value(&named, problem, self.jaas_example(mechanism)));
            }
        }
        Ok(())
    }

    fn jaas_key(&self, mechanism: SaslMechanism) -> String {
        format!("{}{}.{JAAS}", self.listener.key_prefix(), mechanism.name().to_lowercase())
    }

    fn jaas_example(&self, mechanism: SaslMechanism) -> String {
        let module = match mechanism {
            SaslMechanism::Plain => {
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"broker\" password=\"secret\" \
                 user_broker=\"secret\" user_alice=\"other\";"
            }
            SaslMechanism::Scram(_) => {
                "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"broker\" password=\"secret\";"
            }
            SaslMechanism::OAuthBearer => {
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            }
            SaslMechanism::Gssapi => {
                "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true \
                 keyTab=\"/etc/security/kafka.keytab\" principal=\"kafka/broker1.example.com@EXAMPLE.COM\";"
            }
        };
        format!("{}={module}", self.jaas_key(mechanism))
    }

    /// The key under which a value is set, and the value; the default where it is not. Empty: Kafka's null.
    fn named(&self, mechanism: Option<SaslMechanism>, key: &str) -> (String, String) {
        let prefix = self.listener.key_prefix();
        let of_mechanism =
            mechanism.map(|mechanism| format!("{prefix}{}.{key}", mechanism.name().to_lowercase()));
        let names = of_mechanism.into_iter().chain([format!("{prefix}{key}")]);
        for name in names {
            if let Some(value) = self.config.value(&name) {
                return (name, value.to_owned());
            }
        }
        (key.to_owned(), self.config.value(key).unwrap_or_default().to_owned())
    }
}

fn mechanism(key: &str, name: &str) -> Result<SaslMechanism, ConfigError> {
    let example = format!("{key}=SCRAM-SHA-512");
    match SaslMechanism::from_name(name) {
        Some(mechanism) => Ok(mechanism),
        None => {
            let problem = format!("'{name}' is no SASL mechanism of this version: expected {KNOWN}");
            Err(ConfigError::value(key, problem, example))
        }
    }
}

fn fits(mechanism: SaslMechanism, module: &LoginModule) -> bool {
    matches!(
        (mechanism, module),
        (SaslMechanism::Plain, LoginModule::Plain(_))
            | (SaslMechanism::Scram(_), LoginModule::Scram(_))
            | (SaslMechanism::OAuthBearer, LoginModule::OAuthBearer(_))
            | (SaslMechanism::Gssapi, LoginModule::Krb5(_))
    )
}

#[cfg(test)]
mod tests;
