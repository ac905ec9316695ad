//! The `ssl.*` keys of one listener or one client, judged one by one and together.
//!
//! Reads no file. Keys that choose parts of a Java virtual machine (`ssl.provider`, `ssl.keymanager.algorithm`,
//! `ssl.trustmanager.algorithm`, `ssl.secure.random.implementation`) have no effect here.
//!
//! `settings/revocation.rs` reads `ssl.crl.*`. In shell/tls/src/suites.rs: which protocols and suites that makes.
//!
//! Source: Kafka `SslConfigs`, `DefaultSslEngineFactory`, `BrokerSecurityConfigs`.

mod revocation;

pub use revocation::Revocation;

use crate::TlsError;
use barnabas_base::Secret;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Engine factories of Kafka whose behaviour this crate has: both make the engine from the other `ssl.*` keys.
const FACTORIES: [&str; 2] = [
    "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
    "org.apache.kafka.common.security.ssl.CommonNameLoggingSslEngineFactory",
];

/// `ssl.client.auth`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    #[default]
    None,
    /// A certificate is asked for; one that is shown must be trusted.
    Requested,
    Required,
}

/// Where keys or trusted certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A JKS, PKCS#12 or PEM file; its content says which.
    File { path: PathBuf, password: Option<Secret> },
    /// PEM text in the settings themselves.
    Inline(Secret),
}

/// The keys that name one of the two stores, for an error about it.
#[derive(Debug, Clone, Copy)]
pub struct StoreKeys {
    file: &'static str,
    inline: &'static str,
    pub example: &'static str,
}

pub const KEY_STORE: StoreKeys = StoreKeys {
    file: "ssl.keystore.location",
    inline: "ssl.keystore.key",
    example: "ssl.keystore.location=/etc/barnabas/broker.p12",
};
pub const TRUST_STORE: StoreKeys = StoreKeys {
    file: "ssl.truststore.location",
    inline: "ssl.truststore.certificates",
    example: "ssl.truststore.location=/etc/barnabas/ca.pem",
};

impl StoreKeys {
    pub fn wrong(&self, problem: impl Into<String>) -> TlsError {
        TlsError::new(self.file, problem, self.example)
    }

    /// What is wrong with the store at `source`, under the key that names it.
    pub fn unusable(&self, source: &Source, problem: String) -> TlsError {
        let key = match source {
            Source::File { .. } => self.file,
            Source::Inline(_) => self.inline,
        };
        TlsError::new(key, problem, self.example)
    }
}

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    pub key_store: Option<Source>,
    /// `ssl.key.password`
    pub key_password: Option<Secret>,
    pub trust_store: Option<Source>,
    /// `ssl.enabled.protocols`, as Java calls them.
    pub protocols: Vec<String>,
    /// `ssl.cipher.suites`, as Java calls them; empty: all.
    pub cipher_suites: Vec<String>,
    pub client_auth: ClientAuth,
    /// `ssl.endpoint.identification.algorithm`: whether a server's certificate must be for the host that was dialled.
    pub checks_host_name: bool,
    pub principal_mapping_rules: String,
    /// `None`: certificates are not checked for revocation.
    pub revocation: Option<Revocation>,
    pub allows_dn_changes: bool,
    pub allows_san_changes: bool,
}

impl TlsSettings {
    /// `get`: the value of a key (`ssl.keystore.location`) as it holds for this listener or client; `None` where it
    /// is not set.
    ///
    /// # Errors
    /// The first value that cannot be, or that contradicts another.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, TlsError> {
        let get = |key: &str| get(key).map(|value| value.trim().to_owned());
        let given = |key: &str| get(key).filter(|value| !value.is_empty());
        check_factory(given("ssl.engine.factory.class"))?;
        let list = |key: &str| -> Vec<String> {
            let text = given(key).unwrap_or_default();
            text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
        };
        let mut protocols = list("ssl.enabled.protocols");
        if protocols.is_empty() {
            protocols = vec!["TLSv1.2".to_owned(), "TLSv1.3".to_owned()];
        }
        Ok(Self {
            key_store: key_store(&given)?,
            key_password: given("ssl.key.password").map(Secret::from),
            trust_store: trust_store(&given)?,
            protocols,
            cipher_suites: list("ssl.cipher.suites"),
            client_auth: client_auth(given("ssl.client.auth"))?,
            checks_host_name: checks_host_name(get("ssl.endpoint.identification.algorithm"))?,
            principal_mapping_rules: given("ssl.principal.mapping.rules")
                .unwrap_or_else(|| "DEFAULT".to_owned()),
            revocation: revocation::read(&given)?,
            allows_dn_changes: is_true(given("ssl.allow.dn.changes")),
            allows_san_changes: is_true(given("ssl.allow.san.changes")),
        })
    }

    /// A store cannot be added to what began without one, nor taken away.
    ///
    /// # Errors
    /// It was.
    ///
    /// # Source
    /// Kafka `SslFactory.validateReconfiguration`.
    pub fn check_stores_stay(&self, next: &Self) -> Result<(), TlsError> {
        for (key, what, had, has) in [
            ("ssl.keystore.location", "key store", self.key_store.is_some(), next.key_store.is_some()),
            (
                "ssl.truststore.location",
                "trust store",
                self.trust_store.is_some(),
                next.trust_store.is_some(),
            ),
        ] {
            if had != has {
                let done = if has { "added to" } else { "removed from" };
                let problem =
                    format!("the {what} cannot be {done} a listener that is open; restart the node for that");
                return Err(TlsError::new(key, problem, format!("{key}=/etc/barnabas/store.p12")));
            }
        }
        Ok(())
    }
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Another engine factory may be what checks clients: it cannot be left out silently.
fn check_factory(class: Option<String>) -> Result<(), TlsError> {
    match class {
        Some(class) if !FACTORIES.contains(&class.as_str()) => Err(TlsError::new(
            "ssl.engine.factory.class",
            format!("{class} is a Java class, which cannot be loaded here"),
            format!("ssl.engine.factory.class={}", FACTORIES[0]),
        )),
        _ => Ok(()),
    }
}

fn client_auth(value: Option<String>) -> Result<ClientAuth, TlsError> {
    match value.as_deref() {
        None | Some("none") => Ok(ClientAuth::None),
        Some("requested") => Ok(ClientAuth::Requested),
        Some("required") => Ok(ClientAuth::Required),
        Some(other) => Err(TlsError::new(
            "ssl.client.auth",
            format!("'{other}' is none of none, requested, required"),
            "ssl.client.auth=required",
        )),
    }
}

fn checks_host_name(value: Option<String>) -> Result<bool, TlsError> {
    const KEY: &str = "ssl.endpoint.identification.algorithm";
    match value.as_deref() {
        None => Ok(true),
        Some("") => Ok(false),
        Some(name) if name.eq_ignore_ascii_case("https") => Ok(true),
        Some(other) => Err(TlsError::new(
            KEY,
            format!("'{other}' is not known: https checks host names, an empty value does not"),
            format!("{KEY}=https"),
        )),
    }
}

fn check_type(key: &str, kind: Option<&str>) -> Result<(), TlsError> {
    match kind {
        Some(kind) if !["JKS", "PKCS12", "PEM"].iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
            Err(TlsError::new(key, format!("'{kind}' is none of JKS, PKCS12, PEM"), format!("{key}=PKCS12")))
        }
        _ => Ok(()),
    }
}

fn is_pem(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("PEM"))
}

/// The rules for keys that Kafka's `DefaultSslEngineFactory` has: inline or in a file, and PEM without a store
/// password.
fn key_store(given: &impl Fn(&str) -> Option<String>) -> Result<Option<Source>, TlsError> {
    let kind = given("ssl.keystore.type");
    check_type("ssl.keystore.type", kind.as_deref())?;
    let location = given("ssl.keystore.location");
    let (key, chain) = (given("ssl.keystore.key"), given("ssl.keystore.certificate.chain"));
    let password = given("ssl.keystore.password").map(Secret::from);
    const EXAMPLE: &str = "ssl.keystore.location=/etc/barnabas/broker.p12";
    match (location, key, chain) {
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(TlsError::new(
            "ssl.keystore.location",
            "stands beside ssl.keystore.key or ssl.keystore.certificate.chain; only one of the two ways can be taken",
            EXAMPLE,
        )),
        (Some(path), None, None) => {
            check_pem_password("ssl.keystore.password", kind.as_deref(), password.as_ref())?;
            Ok(Some(Source::File { path: PathBuf::from(path), password }))
        }
        (None, Some(key), Some(chain)) => {
            check_pem_password("ssl.keystore.password", Some("PEM"), password.as_ref())?;
            let text = Zeroizing::new(key);
            Ok(Some(Source::Inline(Secret::from(format!("{}\n{chain}", *text)))))
        }
        (None, Some(_), None) => Err(TlsError::new(
            "ssl.keystore.certificate.chain",
            "is not set, but ssl.keystore.key is: a key needs its certificates",
            "ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE----- …",
        )),
        (None, None, Some(_)) => Err(TlsError::new(
            "ssl.keystore.key",
            "is not set, but ssl.keystore.certificate.chain is: certificates need their key",
            "ssl.keystore.key=-----BEGIN PRIVATE KEY----- …",
        )),
        (None, None, None) if password.is_some() => {
            Err(TlsError::new("ssl.keystore.password", "is set, but no key store is", EXAMPLE))
        }
        (None, None, None) => Ok(None),
    }
}

fn trust_store(given: &impl Fn(&str) -> Option<String>) -> Result<Option<Source>, TlsError> {
    let kind = given("ssl.truststore.type");
    check_type("ssl.truststore.type", kind.as_deref())?;
    let password = given("ssl.truststore.password").map(Secret::from);
    const EXAMPLE: &str = "ssl.truststore.location=/etc/barnabas/ca.pem";
    match (given("ssl.truststore.location"), given("ssl.truststore.certificates")) {
        (Some(_), Some(_)) => Err(TlsError::new(
            "ssl.truststore.location",
            "stands beside ssl.truststore.certificates; only one of the two can be set",
            EXAMPLE,
        )),
        (Some(path), None) => {
            check_pem_password("ssl.truststore.password", kind.as_deref(), password.as_ref())?;
            Ok(Some(Source::File { path: PathBuf::from(path), password }))
        }
        (None, Some(text)) => {
            check_pem_password("ssl.truststore.password", Some("PEM"), password.as_ref())?;
            Ok(Some(Source::Inline(Secret::from(text))))
        }
        (None, None) if password.is_some() => {
            Err(TlsError::new("ssl.truststore.password", "is set, but no trust store is", EXAMPLE))
        }
        (None, None) => Ok(None),
    }
}

fn check_pem_password(key: &str, kind: Option<&str>, password: Option<&Secret>) -> Result<(), TlsError> {
    if is_pem(kind) && password.is_some() {
        let problem = "a PEM store has no password of its own; the key's is ssl.key.password";
        return Err(TlsError::new(key, problem, "ssl.key.password=…"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<TlsSettings, TlsError> {
        TlsSettings::read(|key| {
            pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned())
        })
    }

    fn refused(pairs: &[(&str, &str)]) -> String {
        read(pairs).expect_err("refused").key
    }

    #[test]
    fn defaults_are_kafkas() {
        let settings = read(&[]).expect("sound");
        assert_eq!(settings.protocols, ["TLSv1.2", "TLSv1.3"]);
        assert!(settings.checks_host_name && settings.key_store.is_none());
        assert_eq!(settings.client_auth, ClientAuth::None);
        let open = read(&[("ssl.endpoint.identification.algorithm", "")]).expect("sound");
        assert!(!open.checks_host_name);
    }

    #[test]
    fn contradictions_name_the_key() {
        assert_eq!(
            refused(&[("ssl.keystore.location", "/k"), ("ssl.keystore.key", "x")]),
            "ssl.keystore.location"
        );
        assert_eq!(refused(&[("ssl.keystore.key", "x")]), "ssl.keystore.certificate.chain");
        assert_eq!(refused(&[("ssl.keystore.certificate.chain", "x")]), "ssl.keystore.key");
        assert_eq!(refused(&[("ssl.keystore.password", "x")]), "ssl.keystore.password");
        assert_eq!(refused(&[("ssl.truststore.password", "x")]), "ssl.truststore.password");
        let pem =
            [("ssl.keystore.type", "PEM"), ("ssl.keystore.location", "/k"), ("ssl.keystore.password", "x")];
        assert_eq!(refused(&pem), "ssl.keystore.password");
        assert_eq!(refused(&[("ssl.keystore.type", "BKS")]), "ssl.keystore.type");
        assert_eq!(refused(&[("ssl.client.auth", "maybe")]), "ssl.client.auth");
        assert_eq!(
            refused(&[("ssl.endpoint.identification.algorithm", "ldap")]),
            "ssl.endpoint.identification.algorithm"
        );
    }

    #[test]
    fn foreign_engine_factory_is_refused_and_kafkas_own_are_not() {
        assert_eq!(refused(&[("ssl.engine.factory.class", "com.example.Mine")]), "ssl.engine.factory.class");
        FACTORIES.iter().for_each(|class| {
            read(&[("ssl.engine.factory.class", class)]).expect("known");
        });
    }

    #[test]
    fn passwords_are_not_shown() {
        let settings =
            read(&[("ssl.keystore.location", "/k"), ("ssl.keystore.password", "geheim")]).expect("sound");
        let shown = format!("{settings:?}");
        assert!(shown.contains("[hidden]") && !shown.contains("geheim"), "{shown}");
    }
}
