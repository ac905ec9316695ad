//! Listeners that other machines can reach and that authenticate no client: they stop the start unless the operator
//! says that they are meant.
//!
//! Kafka has no such check. What counts is the address that was bound, not its name: `localhost` is a loopback address
//! or is none.

use crate::config::tls::NodeTls;
use barnabas_config::{ConfigError, Listener};
use barnabas_metadata::config::BrokerConfig;
use barnabas_tls::ServerTls;
use std::net::SocketAddr;

const KEY: &str = "insecure.listeners.allowed";

/// Judges the bound listeners.
///
/// # Errors
/// One of them is open, and the key is not set.
pub fn check(
    config: &BrokerConfig,
    listeners: &[(Listener, SocketAddr)],
    tls: &NodeTls,
) -> Result<(), ConfigError> {
    let is_allowed = config.value(KEY) == Some("true");
    for (at, (listener, address)) in listeners.iter().enumerate() {
        let tls = tls.listeners.get(at).and_then(Option::as_deref);
        if !is_open(listener, *address, tls.is_some_and(ServerTls::requires_clients)) {
            continue;
        }
        let name = format!("{}://{address} ({})", listener.endpoint.listener, listener.protocol);
        if !is_allowed {
            let problem = format!(
                "is not true, and the listener {name} takes clients of other machines without authentication. Set it if \
                 that is meant; else bind to 127.0.0.1, or use SASL_SSL (barnabas security init makes all that it needs)"
            );
            return Err(ConfigError::value(KEY, problem, format!("{KEY}=true")));
        }
        tracing::warn!(
            "the listener {name} takes clients of other machines without authentication; {KEY} allows it"
        );
    }
    Ok(())
}

fn is_open(listener: &Listener, address: SocketAddr, requires_certificates: bool) -> bool {
    let authenticates = listener.protocol.has_sasl() || requires_certificates;
    !authenticates && !address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_config::{Endpoint, ListenerName, SecurityProtocol, Settings, check_values};

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
    fn key_alone_lets_an_open_listener_start() {
        let bound = [(listener(SecurityProtocol::Plaintext), "0.0.0.0:9092".parse().expect("an address"))];
        let checked = |value: &str| {
            let mut settings = Settings::default();
            settings.replace(KEY, value.to_owned());
            let (config, _) = check_values(&settings).expect("sound");
            check(&config, &bound, &NodeTls::default())
        };
        let refused = checked("false").expect_err("refused").to_string();
        assert!(refused.contains("X://0.0.0.0:9092 (PLAINTEXT)"), "{refused}");
        assert!(refused.ends_with("Example: insecure.listeners.allowed=true"), "{refused}");
        checked("true").expect("allowed");
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
