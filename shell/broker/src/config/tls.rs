//! The `ssl.*` keys of each listener, and TLS made of them: for the node's own listeners, and for its connections to brokers
//! and controllers.
//!
//! A key with a listener's prefix (`listener.name.internal.ssl.keystore.location`) counts before the one without. A
//! connection to another node is made with the keys of the listener that it goes to, as in Kafka.
//!
//! Source: Kafka `ChannelBuilders`, `AbstractConfig.valuesWithPrefixOverride`.

use barnabas_config::{ConfigError, Listeners, NodeConfig, SecurityProtocol, Settings};
use barnabas_tls::{ClientTls, ServerTls, TlsError, TlsSettings};
use std::sync::Arc;

/// TLS of one node.
#[derive(Debug, Clone, Default)]
pub struct NodeTls {
    /// By the listeners' places; `None`: plain text.
    pub listeners: Vec<Option<Arc<ServerTls>>>,
    /// For connections to other brokers, and to controllers.
    pub brokers: Option<Arc<ClientTls>>,
    pub controllers: Option<Arc<ClientTls>>,
}

impl NodeTls {
    /// # Errors
    /// The key to change, with its listener's prefix, and why.
    pub fn load(config: &NodeConfig) -> Result<Self, ConfigError> {
        let Listeners { all, inter_broker, controller_names, controller_protocol, .. } = &config.listeners;
        let settings = &config.settings;
        let mut listeners = Vec::new();
        for listener in all {
            let name = listener.endpoint.listener.as_str();
            let is_among_brokers = listener.is_controller || listener.endpoint.listener == *inter_broker;
            let load = || ServerTls::load(keys_of(settings, name, listener.protocol)?, is_among_brokers);
            let tls = listener.protocol.has_tls().then(load).transpose();
            listeners.push(tls.map_err(|error| at(name, &error))?.map(Arc::new));
        }
        let client = |name: &str, protocol| {
            let tls = keys_of(settings, name, protocol).and_then(ClientTls::load);
            tls.map(Arc::new).map_err(|error| at(name, &error))
        };
        let own = all.iter().find(|listener| listener.endpoint.listener == *inter_broker);
        let own = own.filter(|listener| config.is_broker && listener.protocol.has_tls());
        let brokers = own.map(|listener| client(inter_broker.as_str(), listener.protocol)).transpose()?;
        let controllers = match controller_names.first() {
            Some(name) if controller_protocol.has_tls() => Some(client(name.as_str(), *controller_protocol)?),
            _ => None,
        };
        Ok(Self { listeners, brokers, controllers })
    }

    pub fn is_used(&self) -> bool {
        self.brokers.is_some() || self.controllers.is_some() || self.listeners.iter().any(Option::is_some)
    }
}

fn prefix(listener: &str) -> String {
    format!("listener.name.{}.", listener.to_ascii_lowercase())
}

fn keys_of(settings: &Settings, listener: &str, protocol: SecurityProtocol) -> Result<TlsSettings, TlsError> {
    let prefix = prefix(listener);
    // Where SASL says who a client is, certificates are asked for only by the listener's own key (KIP-684), and name
    // no principal (Kafka `SaslChannelBuilder`).
    let is_own_alone = |key: &str| protocol.has_sasl() && key == "ssl.client.auth";
    TlsSettings::read(|key| {
        if protocol.has_sasl() && key == "ssl.principal.mapping.rules" {
            return None;
        }
        let general = settings.get(key).filter(|_| !is_own_alone(key));
        settings.get(&format!("{prefix}{key}")).or(general).map(str::to_owned)
    })
}

fn at(listener: &str, error: &TlsError) -> ConfigError {
    let problem =
        format!("{} (listener {listener}; {}{} counts first)", error.problem, prefix(listener), error.key);
    ConfigError::value(&error.key, problem, error.example.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Settings::load(None, lines.iter().map(String::as_str), |_| unreachable!("no file")).expect("sound")
    }

    #[test]
    fn keys_of_a_listener_count_first() {
        let settings =
            settings(&[("ssl.client.auth", "required"), ("listener.name.external.ssl.client.auth", "none")]);
        let auth = |listener, protocol| keys_of(&settings, listener, protocol).expect("sound").client_auth;
        assert_eq!(auth("EXTERNAL", SecurityProtocol::Ssl), barnabas_tls::ClientAuth::None);
        assert_eq!(auth("INTERNAL", SecurityProtocol::Ssl), barnabas_tls::ClientAuth::Required);
        assert_eq!(auth("INTERNAL", SecurityProtocol::SaslSsl), barnabas_tls::ClientAuth::None);
    }

    #[test]
    fn certificates_name_no_principal_beside_sasl() {
        let settings = settings(&[("ssl.principal.mapping.rules", "RULE:^CN=(.*)$/$1/")]);
        let rules = |protocol| keys_of(&settings, "IN", protocol).expect("sound").principal_mapping_rules;
        assert_ne!(rules(SecurityProtocol::Ssl), "DEFAULT");
        assert_eq!(rules(SecurityProtocol::SaslSsl), "DEFAULT");
    }
}
