//! Which files of a node hold secrets: the settings, key stores, keys, keytabs, ticket caches, the JAAS file.
//!
//! Trust stores and certificates are public. Files that the node writes itself are not here: it gives them their modes.
//!
//! Neighbour: shell/broker/src/config/secret_files.rs, which looks at their modes.

use crate::Settings;
use crate::sasl::{OwnLogin, SaslConfig};
use barnabas_metadata::config::Resource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys that name a file with a secret, for the node or for one listener.
const FILES: [&str; 3] = [
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "ssl.keystore.location",
];
/// Kafka's passwords that are none.
const PUBLIC: [&str; 3] =
    ["ssl.keystore.certificate.chain", "ssl.truststore.certificates", "ssl.truststore.password"];
const JAAS: &str = "sasl.jaas.config";

/// Each file once, with what it holds, as a warning names it. `jaas_file`: where one is read.
pub fn secret_files(
    settings: &Settings,
    jaas_file: Option<&Path>,
    sasl: &SaslConfig,
) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut add = |path: &Path, what: String| {
        files.entry(path.to_owned()).or_insert(what);
    };
    if let Some(path) = settings.file()
        && let Some(key) = settings.of_file().find_map(|(key, value)| is_secret(key, value).then_some(key))
    {
        add(path, format!("the secret of {key}"));
    }
    for (key, path) in settings.iter().filter(|(_, path)| !path.is_empty()) {
        if FILES.contains(&base(key)) {
            add(Path::new(path), format!("the secret that {key} names"));
        }
    }
    if let Some(path) = jaas_file {
        add(path, "the login modules of JAAS".to_owned());
    }
    for listener in sasl.listeners.iter().flatten().filter_map(|listener| listener.kerberos.as_ref()) {
        add(&listener.keytab, "the keys of Kerberos".to_owned());
    }
    for own in [&sasl.to_brokers, &sasl.to_controllers].into_iter().flatten() {
        let OwnLogin::Tickets(tickets) = own else { continue };
        let cache = tickets.cache.as_ref().and_then(|cache| cache.file.as_deref());
        for path in tickets.keytab.as_deref().into_iter().chain(cache) {
            add(path, "the keys of Kerberos".to_owned());
        }
    }
    files
}

/// The key without its listener's prefix.
fn base(key: &str) -> &str {
    Resource::Broker.listener_key(key).map_or(key, |known| known.name)
}

fn is_secret(key: &str, value: &str) -> bool {
    let base = base(key);
    if value.is_empty() || PUBLIC.contains(&base) {
        return false;
    }
    if base == JAAS {
        // A module for SCRAM's users, or with a keytab, has none.
        let text = value.to_ascii_lowercase();
        return ["password", "secret", "user_"].iter().any(|word| text.contains(word));
    }
    Resource::Broker.key(base).is_some_and(|known| known.is_sensitive())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &[(&str, &str)], overrides: &[(&str, &str)]) -> Vec<(String, String)> {
        let settings = Settings::of(file, overrides);
        let files = secret_files(&settings, Some(Path::new("/jaas.conf")), &SaslConfig::default());
        files.into_iter().map(|(path, what)| (path.display().to_string(), what)).collect()
    }

    fn names(file: &[(&str, &str)], overrides: &[(&str, &str)]) -> Vec<String> {
        found(file, overrides).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn file_of_settings_is_secret_where_it_holds_one() {
        let module = |options: &str| format!("org.example.ScramLoginModule required {options};");
        let (open, closed) = (module(""), module("username=\"a\" password=\"b\""));
        for (key, value, is_secret) in [
            ("ssl.keystore.password", "x", true),
            ("listener.name.ssl.ssl.key.password", "x", true),
            ("delegation.token.secret.key", "x", true),
            ("listener.name.sasl.scram-sha-512.sasl.jaas.config", closed.as_str(), true),
            ("listener.name.sasl.scram-sha-512.sasl.jaas.config", open.as_str(), false),
            ("ssl.truststore.password", "x", false),
            ("ssl.keystore.certificate.chain", "x", false),
            ("ssl.keystore.password", "", false),
            ("node.id", "1", false),
        ] {
            let is_named = names(&[(key, value)], &[]).iter().any(|path| path.ends_with("server.properties"));
            assert_eq!(is_named, is_secret, "{key}={value}");
        }
        let overridden = names(&[("node.id", "1")], &[("ssl.keystore.password", "x")]);
        assert_eq!(overridden, ["/jaas.conf"], "the file does not hold it");
        let both = names(&[("ssl.keystore.password", "y")], &[("ssl.keystore.password", "x")]);
        assert_eq!(both.len(), 2, "the file holds another");
    }

    #[test]
    fn files_that_keys_name_are_listed_once() {
        let prefixed = "listener.name.a.oauthbearer.sasl.oauthbearer.assertion.private.key.file";
        let files = found(
            &[
                ("ssl.keystore.location", "/k.p12"),
                ("listener.name.a.ssl.keystore.location", "/k.p12"),
                ("ssl.truststore.location", "/t.p12"),
                (prefixed, "/a.pem"),
                ("listener.name.b.ssl.keystore.location", ""),
            ],
            &[],
        );
        let says = |path: &str, what: &str| (path.to_owned(), what.to_owned());
        assert_eq!(
            files,
            [
                says("/a.pem", &format!("the secret that {prefixed} names")),
                says("/jaas.conf", "the login modules of JAAS"),
                says("/k.p12", "the secret that listener.name.a.ssl.keystore.location names"),
            ]
        );
    }
}
