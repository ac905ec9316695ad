//! The `ssl.*` keys of each listener, and TLS made of them: for the node's own listeners, and for its connections to
//! brokers and controllers.
//!
//! A key with a listener's prefix (`listener.name.internal.ssl.keystore.location`) counts before the one without. A
//! connection to another node is made with the keys of the listener that it goes to, as in Kafka.
//!
//! While the node runs, stores change by their files (server/listeners/handshakes.rs), and every `ssl.*` key of a
//! listener by dynamic configurations of its broker. Apache Kafka takes the same keys, and applies those of stores
//! alone to a listener that is open. The listeners of the console and of AMQP change by their files alone.
//!
//! Source: Kafka `ChannelBuilders`, `AbstractConfig.valuesWithPrefixOverride`, `DynamicListenerConfig`.

use barnabas_config::{ConfigError, Listener, Listeners, NodeConfig, SecurityProtocol, insecure};
use barnabas_metadata::config::BrokerConfig;
use barnabas_tls::{ClientAuth, ClientTls, Expiring, Reload, ServerTls, TlsError, TlsSettings};
use std::net::SocketAddr;
use std::sync::Arc;

/// TLS of one node.
#[derive(Debug, Clone, Default)]
pub struct NodeTls {
    /// By the listeners' places; `None`: plain text.
    pub listeners: Vec<Option<Arc<ServerTls>>>,
    /// For connections to other brokers, and to controllers.
    pub brokers: Option<Arc<ClientTls>>,
    pub controllers: Option<Arc<ClientTls>>,
    /// Of the console's HTTP listener: keys of a listener with the name `console`.
    pub console: Option<Arc<ServerTls>>,
    /// Of the AMQP listener: keys of a listener with the name `amqp`.
    pub amqp: Option<Arc<ServerTls>>,
    /// Of the MQ listener: keys of a listener with the name `mq`.
    pub mq: Option<Arc<ServerTls>>,
    /// By the listeners' places.
    names: Vec<String>,
    /// The listeners that brokers and controllers are reached at.
    dialled: [Option<Named>; 2],
}

type Named = (String, SecurityProtocol);
/// A listener of the node, and where it is bound.
type Bound = (Listener, SocketAddr);

/// As whose listener's keys the console's are read.
const CONSOLE: &str = "console";
/// The same for the AMQP listener.
const AMQP: &str = "amqp";
/// The same for the MQ listener.
const MQ: &str = "mq";

impl NodeTls {
    /// # Errors
    /// The key to change, with its listener's prefix, and why.
    pub fn load(config: &NodeConfig) -> Result<Self, ConfigError> {
        let Listeners { all, inter_broker, controller_names, controller_protocol, .. } = &config.listeners;
        let settings = |key: &str| config.settings.get(key);
        let mut listeners = Vec::new();
        for listener in all {
            let name = listener.endpoint.listener.as_str();
            let is_among_brokers = listener.is_controller || listener.endpoint.listener == *inter_broker;
            let load = || ServerTls::load(keys_of(&settings, name, listener.protocol)?, is_among_brokers);
            let tls = listener.protocol.has_tls().then(load).transpose();
            listeners.push(tls.map_err(|error| at(name, &error))?.map(Arc::new));
        }
        let client = |name: &str, protocol| {
            let tls = keys_of(&settings, name, protocol).and_then(ClientTls::load);
            tls.map(Arc::new).map_err(|error| at(name, &error))
        };
        let own = all.iter().find(|listener| listener.endpoint.listener == *inter_broker);
        let own = own.filter(|listener| config.is_broker && listener.protocol.has_tls());
        let brokers = own.map(|listener| client(inter_broker.as_str(), listener.protocol)).transpose()?;
        let controllers = match controller_names.first() {
            Some(name) if controller_protocol.has_tls() => Some(client(name.as_str(), *controller_protocol)?),
            _ => None,
        };
        let beside = |name: &str, address: Option<&str>, protocol: &str| {
            let has_tls = address.is_some() && settings(protocol) == Some("SSL");
            let load = || ServerTls::load(keys_of(&settings, name, SecurityProtocol::Ssl)?, false);
            let tls = has_tls.then(load).transpose().map_err(|error| at(name, &error))?;
            Ok(tls.map(Arc::new))
        };
        let console = barnabas_console::address(settings(barnabas_console::KEY));
        let console = beside(CONSOLE, console, barnabas_console::PROTOCOL)?;
        let amqp = barnabas_queues::address(settings(barnabas_queues::KEY));
        let amqp = beside(AMQP, amqp, barnabas_queues::PROTOCOL)?;
        let mq = barnabas_mq_queues::address(settings(barnabas_mq_queues::KEY));
        let mq = beside(MQ, mq, barnabas_mq_queues::PROTOCOL)?;
        let named = |listener: &barnabas_config::Listener| {
            (listener.endpoint.listener.as_str().to_owned(), listener.protocol)
        };
        let of_controllers =
            controller_names.first().map(|name| (name.as_str().to_owned(), *controller_protocol));
        let dialled = [own.map(named), of_controllers];
        let names = all.iter().map(|listener| listener.endpoint.listener.as_str().to_owned()).collect();
        Ok(Self { listeners, brokers, controllers, console, amqp, mq, names, dialled })
    }

    /// Whether [`Self::reconfigure`] would take the settings of `config`. `bound`: the node's listeners, by their
    /// places.
    ///
    /// # Errors
    /// What speaks against them, with the key and its listener.
    pub fn check(&self, config: &BrokerConfig, bound: &[Bound], now_s: i64) -> Result<(), ConfigError> {
        for (server, bound) in self.listeners.iter().zip(bound) {
            let Some(server) = server else { continue };
            let settings = settings_of(config, bound)?;
            let name = bound.0.endpoint.listener.as_str();
            server.check(&settings, now_s).map_err(|error| at(name, &error))?;
        }
        Ok(())
    }

    /// Applies changed dynamic configurations: new connections get what they say. What cannot be used is logged, and
    /// what was in use stays.
    pub fn reconfigure(&self, config: &BrokerConfig, bound: &[Bound], now_s: i64) {
        let get = |key: &str| config.value(key);
        for (server, bound) in self.listeners.iter().zip(bound) {
            let Some(server) = server else { continue };
            let of = format!("listener {}", bound.0.endpoint.listener);
            match settings_of(config, bound) {
                Ok(settings) => say(&of, server.reconfigure(&settings, now_s)),
                Err(error) => say_kept(&of, &error),
            }
        }
        for (client, named) in [&self.brokers, &self.controllers].into_iter().zip(&self.dialled) {
            let (Some(client), Some((name, protocol))) = (client, named) else { continue };
            let done = keys_of(&get, name, *protocol).map(|settings| client.reconfigure(&settings, now_s));
            say(&format!("connections to {name}"), done.unwrap_or_else(Reload::Kept));
        }
    }

    /// The certificates in use, with what uses them: a listener's name, `to brokers`, `to controllers`.
    pub fn expiring(&self) -> Vec<(String, Expiring)> {
        let of_listeners = self
            .listeners
            .iter()
            .zip(&self.names)
            .filter_map(|(server, name)| server.as_ref().map(|server| (name.clone(), server.expiring())));
        let clients = [("to brokers", &self.brokers), ("to controllers", &self.controllers)];
        let of_clients = clients
            .into_iter()
            .filter_map(|(name, client)| client.as_ref().map(|client| (name.to_owned(), client.expiring())));
        let beside = self.beside().map(|(name, server)| (name.to_owned(), server.expiring()));
        let all = of_listeners.chain(of_clients).chain(beside);
        all.flat_map(|(name, ends)| ends.into_iter().map(move |end| (name.clone(), end))).collect()
    }

    /// The listeners that do not speak Kafka's protocol, with their names.
    pub fn beside(&self) -> impl Iterator<Item = (&'static str, &Arc<ServerTls>)> {
        let all = [(CONSOLE, &self.console), (AMQP, &self.amqp), (MQ, &self.mq)];
        all.into_iter().filter_map(|(name, server)| server.as_ref().map(|server| (name, server)))
    }

    pub fn is_used(&self) -> bool {
        let clients = [&self.brokers, &self.controllers];
        let servers = self.listeners.iter().chain([&self.console, &self.amqp, &self.mq]);
        clients.into_iter().any(Option::is_some) || servers.into_iter().any(Option::is_some)
    }
}

/// What a change of stores came to.
fn say(of: &str, reload: Reload) {
    match reload {
        Reload::Unchanged => {}
        Reload::Loaded => tracing::info!("{of}: new TLS settings in use for new connections"),
        Reload::Kept(error) => say_kept(of, &error),
    }
}

fn say_kept(of: &str, error: &dyn std::fmt::Display) {
    tracing::warn!("{of}: the changed TLS settings are not used, those before stay in use: {error}");
}

/// What a listener has of `config`. A listener that other machines reach must go on to authenticate its clients.
fn settings_of(config: &BrokerConfig, (listener, address): &Bound) -> Result<TlsSettings, ConfigError> {
    let name = listener.endpoint.listener.as_str();
    let settings =
        keys_of(&|key| config.value(key), name, listener.protocol).map_err(|error| at(name, &error))?;
    let requires_certificates = settings.client_auth == ClientAuth::Required;
    insecure::check_one(config, (listener, *address), requires_certificates)?;
    Ok(settings)
}

fn prefix(listener: &str) -> String {
    format!("listener.name.{}.", listener.to_ascii_lowercase())
}

fn keys_of<'a>(
    get: &impl Fn(&str) -> Option<&'a str>,
    listener: &str,
    protocol: SecurityProtocol,
) -> Result<TlsSettings, TlsError> {
    let prefix = prefix(listener);
    // Where SASL says who a client is, certificates are asked for only by the listener's own key (KIP-684), and name
    // no principal (Kafka `SaslChannelBuilder`).
    let is_own_alone = |key: &str| protocol.has_sasl() && key == "ssl.client.auth";
    TlsSettings::read(|key| {
        if protocol.has_sasl() && key == "ssl.principal.mapping.rules" {
            return None;
        }
        let general = get(key).filter(|_| !is_own_alone(key));
        get(&format!("{prefix}{key}")).or(general).map(str::to_owned)
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
    use barnabas_config::Settings;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Settings::load(None, lines.iter().map(String::as_str), |_| unreachable!("no file")).expect("sound")
    }

    #[test]
    fn keys_of_a_listener_count_first() {
        let settings =
            settings(&[("ssl.client.auth", "required"), ("listener.name.external.ssl.client.auth", "none")]);
        let auth = |listener, protocol| {
            keys_of(&|key| settings.get(key), listener, protocol).expect("sound").client_auth
        };
        assert_eq!(auth("EXTERNAL", SecurityProtocol::Ssl), barnabas_tls::ClientAuth::None);
        assert_eq!(auth("INTERNAL", SecurityProtocol::Ssl), barnabas_tls::ClientAuth::Required);
        assert_eq!(auth("INTERNAL", SecurityProtocol::SaslSsl), barnabas_tls::ClientAuth::None);
    }

    fn checked(settings: &Settings) -> BrokerConfig {
        barnabas_config::check_values(settings).expect("sound").0
    }

    #[test]
    fn settings_are_the_same_after_they_were_checked() {
        let given = [
            ("ssl.keystore.location", "/k.p12"),
            ("ssl.truststore.location", "/t.p12"),
            ("listener.name.in.ssl.client.auth", "required"),
            ("listener.name.in.ssl.crl.location", "/revoked.pem"),
            ("ssl.crl.expired", "accept"),
        ];
        for given in [&given[..], &[]] {
            let settings = settings(given);
            let config = checked(&settings);
            for protocol in [SecurityProtocol::Ssl, SecurityProtocol::SaslSsl] {
                let of_file = keys_of(&|key| settings.get(key), "IN", protocol).expect("sound");
                assert_eq!(keys_of(&|key| config.value(key), "IN", protocol).expect("sound"), of_file);
            }
        }
    }

    #[test]
    fn listener_that_others_reach_goes_on_to_authenticate() {
        let endpoint = barnabas_config::Endpoint {
            listener: barnabas_config::ListenerName::new("OUT"),
            host: String::new(),
            port: 1,
        };
        let listener = Listener {
            endpoint,
            protocol: SecurityProtocol::Ssl,
            is_controller: false,
            is_reserved: false,
            is_inter_broker: false,
            is_early: false,
        };
        let said = |address: &str, given: &[(&str, &str)]| {
            let bound = (listener.clone(), address.parse().expect("an address"));
            settings_of(&checked(&settings(given)), &bound).err().map(|error| error.to_string())
        };
        let (none, required) = (("ssl.client.auth", "none"), ("ssl.client.auth", "required"));
        assert_eq!(said("10.0.0.1:1", &[required]), None);
        assert_eq!(said("127.0.0.1:1", &[none]), None);
        assert!(said("10.0.0.1:1", &[none]).is_some_and(|why| why.contains("insecure.listeners.allowed")));
        assert_eq!(said("10.0.0.1:1", &[none, ("insecure.listeners.allowed", "true")]), None);
    }

    #[test]
    fn certificates_name_no_principal_beside_sasl() {
        let settings = settings(&[("ssl.principal.mapping.rules", "RULE:^CN=(.*)$/$1/")]);
        let rules = |protocol| {
            keys_of(&|key| settings.get(key), "IN", protocol).expect("sound").principal_mapping_rules
        };
        assert_ne!(rules(SecurityProtocol::Ssl), "DEFAULT");
        assert_eq!(rules(SecurityProtocol::SaslSsl), "DEFAULT");
    }
}
