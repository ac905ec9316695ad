//! Listeners that other machines can reach and that authenticate no client: they stop the start unless the operator
//! says that they are meant.
//!
//! Kafka has no such check. What counts is the address that was bound, not its name: `localhost` is a loopback address
//! or is none.
//!
//! Neighbour: shell/broker/src/server/start.rs, which binds.

use crate::{ConfigError, Listener, SecurityProtocol};
use barnabas_metadata::config::BrokerConfig;
use std::net::SocketAddr;

const KEY: &str = "insecure.listeners.allowed";

/// Judges the bound listeners. `requires_certificates`: by their places. Returns what an operator is warned of in any
/// case, and the verdict.
///
/// # Errors
/// One of them is open, and the key is not set.
pub fn check(
    config: &BrokerConfig,
    listeners: &[(Listener, SocketAddr)],
    requires_certificates: impl Fn(usize) -> bool,
) -> (Vec<String>, Result<(), ConfigError>) {
    let mut warnings = without_effect(config, listeners);
    for (at, (listener, address)) in listeners.iter().enumerate() {
        match check_one(config, (listener, *address), requires_certificates(at)) {
            Ok(warning) => warnings.extend(warning),
            Err(refusal) => return (warnings, Err(refusal)),
        }
    }
    (warnings, Ok(()))
}

/// Judges a listener of another protocol (`key` names it: the console's, AMQP's) whose clients act through a listener
/// of the node, and log in if that one has logins. `true`: it is open, and an operator is warned of it.
///
/// # Errors
/// As [`check`].
pub fn check_beside(
    config: &BrokerConfig,
    key: &str,
    address: SocketAddr,
    has_logins: bool,
) -> Result<bool, ConfigError> {
    if has_logins || !others_reach(address) {
        return Ok(false);
    }
    if is_allowed(config) {
        return Ok(true);
    }
    let problem = format!(
        "is not true, and {key} ({address}) takes clients of other machines without authentication, as the listener \
         that they act through has no SASL. Set it if that is meant; else set {key} to a loopback address, or \
         give the node a listener with SASL_PLAINTEXT on loopback"
    );
    Err(ConfigError::value(KEY, problem, format!("{KEY}=true")))
}

/// Judges one listener that is bound to `address`. What an operator is warned of, if anything.
///
/// # Errors
/// It is open, and the key is not set.
pub fn check_one(
    config: &BrokerConfig,
    (listener, address): (&Listener, SocketAddr),
    requires_certificates: bool,
) -> Result<Option<String>, ConfigError> {
    if !is_open(listener, address, requires_certificates) {
        return Ok(None);
    }
    let name = format!("{}://{address} ({})", listener.endpoint.listener, listener.protocol);
    if is_allowed(config) {
        let warning = format!(
            "the listener {name} takes clients of other machines without authentication; {KEY} allows it"
        );
        return Ok(Some(warning));
    }
    let problem = format!(
        "is not true, and the listener {name} takes clients of other machines without authentication. Set it if \
         that is meant; else bind to 127.0.0.1, or use SASL_SSL (barnabas security init makes all that it needs)"
    );
    Err(ConfigError::value(KEY, problem, format!("{KEY}=true")))
}

/// Settings that were to protect the node, where nothing uses them.
fn without_effect(config: &BrokerConfig, listeners: &[(Listener, SocketAddr)]) -> Vec<String> {
    const MECHANISMS: &str = "sasl.enabled.mechanisms";
    const CLIENT_AUTH: &str = "ssl.client.auth";
    let given = |key: &str| config.given().get(key).filter(|value| !value.is_empty());
    let mut unused = Vec::new();
    let has_sasl = listeners.iter().any(|(listener, _)| listener.protocol.has_sasl());
    if let Some(mechanisms) = given(MECHANISMS).filter(|_| !has_sasl) {
        let text = format!(
            "{MECHANISMS} is {mechanisms} and has no effect: no listener has the protocol SASL_SSL or SASL_PLAINTEXT"
        );
        unused.push(text);
    }
    let asks = given(CLIENT_AUTH).filter(|value| *value != "none");
    // A listener with SASL asks for certificates by its own key alone (KIP-684).
    let has_ssl = listeners.iter().any(|(listener, _)| listener.protocol == SecurityProtocol::Ssl);
    if let Some(asks) = asks.filter(|_| !has_ssl) {
        unused.push(format!("{CLIENT_AUTH} is {asks} and has no effect: no listener has the protocol SSL"));
    }
    for (listener, _) in listeners {
        let protocol = listener.protocol;
        let of_listener =
            [(CLIENT_AUTH, protocol.has_tls(), "TLS"), (MECHANISMS, protocol.has_sasl(), "SASL")];
        for (key, _, what) in of_listener.into_iter().filter(|(_, is_used, _)| !is_used) {
            let key = listener.endpoint.listener.key_prefix() + key;
            if let Some(value) = given(&key).filter(|value| *value != "none") {
                unused.push(format!(
                    "{key} is {value} and has no effect: the listener's protocol is {protocol}, without {what}"
                ));
            }
        }
    }
    let needs: [(&str, &str, &[&str]); 2] = [
        ("authorizer.shadow", "true", &["authorizer.class.name"]),
        ("audit.log.events", "", &["audit.log.file", "audit.topic"]),
    ];
    for (key, wanted, needs) in needs {
        if let Some(value) = given(key).filter(|value| wanted.is_empty() || *value == wanted)
            && needs.iter().all(|need| given(need).is_none())
        {
            unused.push(format!("{key} is {value} and has no effect: {} is not set", needs.join(" or ")));
        }
    }
    unused
}

fn is_open(listener: &Listener, address: SocketAddr, requires_certificates: bool) -> bool {
    let authenticates = listener.protocol.has_sasl() || requires_certificates;
    !authenticates && others_reach(address)
}

fn is_allowed(config: &BrokerConfig) -> bool {
    config.value(KEY) == Some("true")
}

fn others_reach(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, ListenerName, Settings, check_values};

    fn listener(protocol: SecurityProtocol) -> Listener {
        let endpoint = Endpoint { listener: ListenerName::new("X"), host: String::new(), port: 1 };
        Listener {
            endpoint,
            protocol,
            is_controller: false,
            is_reserved: false,
            is_inter_broker: false,
            is_early: false,
        }
    }

    #[test]
    fn protection_that_no_listener_uses_is_named() {
        let said = |given: &[(&str, &str)], protocol| {
            let mut settings = Settings::default();
            given.iter().for_each(|(key, value)| settings.replace(key, (*value).to_owned()));
            let (config, _) = check_values(&settings).expect("sound");
            without_effect(&config, &[(listener(protocol), "127.0.0.1:1".parse().expect("an address"))])
                .join("; ")
        };
        let asked = [("ssl.client.auth", "required"), ("sasl.enabled.mechanisms", "GSSAPI")];
        let text = said(&asked, SecurityProtocol::Plaintext);
        assert!(text.contains("ssl.client.auth is required and has no effect"), "{text}");
        assert!(text.contains("sasl.enabled.mechanisms is GSSAPI and has no effect"), "{text}");
        assert_eq!(said(&asked[..1], SecurityProtocol::Ssl), "");
        assert_eq!(said(&[("sasl.enabled.mechanisms", "PLAIN")], SecurityProtocol::SaslSsl), "");
        assert_eq!(said(&[("ssl.client.auth", "none")], SecurityProtocol::Plaintext), "");
        let own = [
            ("listener.name.x.ssl.client.auth", "required"),
            ("listener.name.x.sasl.enabled.mechanisms", "PLAIN"),
        ];
        let text = said(&own, SecurityProtocol::Plaintext);
        assert!(text.contains("listener.name.x.ssl.client.auth is required and has no effect"), "{text}");
        assert!(
            text.contains("listener.name.x.sasl.enabled.mechanisms is PLAIN and has no effect"),
            "{text}"
        );
        assert_eq!(said(&own, SecurityProtocol::SaslSsl), "");
        let shadow = ("authorizer.shadow", "true");
        let text = said(&[shadow, ("audit.log.events", "changes")], SecurityProtocol::Plaintext);
        assert!(
            text.contains("authorizer.shadow is true and has no effect: authorizer.class.name"),
            "{text}"
        );
        assert!(text.contains("audit.log.events is changes and has no effect: audit.log.file"), "{text}");
        let authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
        let used = [
            shadow,
            ("authorizer.class.name", authorizer),
            ("audit.log.events", "changes"),
            ("audit.log.file", "/a"),
        ];
        assert_eq!(said(&used, SecurityProtocol::Plaintext), "");
    }

    #[test]
    fn key_alone_lets_an_open_listener_start() {
        let bound = [(listener(SecurityProtocol::Plaintext), "0.0.0.0:9092".parse().expect("an address"))];
        let checked = |value: &str| {
            let mut settings = Settings::default();
            settings.replace(KEY, value.to_owned());
            settings.replace("ssl.client.auth", "required".to_owned());
            let (config, _) = check_values(&settings).expect("sound");
            check(&config, &bound, |_| false)
        };
        let (warnings, verdict) = checked("false");
        let refused = verdict.expect_err("refused").to_string();
        assert!(refused.contains("X://0.0.0.0:9092 (PLAINTEXT)"), "{refused}");
        assert!(refused.ends_with("Example: insecure.listeners.allowed=true"), "{refused}");
        assert!(warnings.len() == 1 && warnings[0].starts_with("ssl.client.auth"), "{warnings:?}");
        let (warnings, verdict) = checked("true");
        verdict.expect("allowed");
        assert_eq!(warnings.len(), 2, "it is warned of: {warnings:?}");
    }

    #[test]
    fn listener_beside_is_open_where_no_client_logs_in() {
        let checked = |allowed: &str, address: &str, has_logins| {
            let mut settings = Settings::default();
            settings.replace(KEY, allowed.to_owned());
            let (config, _) = check_values(&settings).expect("sound");
            check_beside(&config, "amqp.listener", address.parse().expect("an address"), has_logins)
        };
        let refused = checked("false", "0.0.0.0:5672", false).expect_err("refused").to_string();
        assert!(refused.contains("amqp.listener (0.0.0.0:5672)"), "{refused}");
        assert!(checked("true", "0.0.0.0:5672", false).expect("allowed"), "it is warned of");
        assert!(!checked("false", "0.0.0.0:5672", true).expect("allowed"));
        assert!(!checked("false", "127.0.0.1:5672", false).expect("allowed"));
    }

    #[test]
    fn only_listeners_of_other_machines_without_authentication_are_open() {
        let open = |protocol, address: &str, requires_certificates| {
            is_open(&listener(protocol), address.parse().expect("an address"), requires_certificates)
        };
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
            assert!(open(SecurityProtocol::Plaintext, address, false), "{address}");
            assert!(open(SecurityProtocol::Ssl, address, false), "{address}");
            assert!(!open(SecurityProtocol::Ssl, address, true), "{address}");
            assert!(!open(SecurityProtocol::SaslPlaintext, address, false), "{address}");
            assert!(!open(SecurityProtocol::SaslSsl, address, false), "{address}");
        }
        for address in ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!open(SecurityProtocol::Plaintext, address, false), "{address}");
        }
    }
}
