//! Which sockets a node opens and what it tells others: `listeners`, `advertised.listeners`, the protocol map, the
//! names of the controllers' and the brokers' own listeners, judged together.
//!
//! Source: Kafka `KafkaConfig.validateValues`, `AbstractKafkaConfig`, `SocketServerConfigs`.

use crate::endpoint::{
    Endpoint, ListenerName, ProtocolMap, SecurityProtocol, parse_endpoints, parse_protocol_map,
};
use crate::settings::{ConfigError, Settings};

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const PROTOCOL_MAP: &str = "listener.security.protocol.map";
const CONTROLLER_NAMES: &str = "controller.listener.names";
const INTER_BROKER: &str = "inter.broker.listener.name";
const EARLY: &str = "early.start.listeners";
const INTER_BROKER_PROTOCOL: &str = "security.inter.broker.protocol";

const LISTENERS_EXAMPLE: &str = "listeners=PLAINTEXT://:9092,CONTROLLER://:9093";

/// One socket to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub endpoint: Endpoint,
    pub protocol: SecurityProtocol,
    /// Serves the controller's requests, and no client's.
    pub is_controller: bool,
    /// Only brokers or controllers connect there: a controllers' listener, and the brokers' own where clients have
    /// another one.
    pub is_reserved: bool,
    /// Brokers connect to each other there.
    pub is_inter_broker: bool,
    /// A controllers' listener that opens before the node knows the cluster's ACLs.
    pub is_early: bool,
}

/// All sockets of the node, and the names others know them by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    pub all: Vec<Listener>,
    /// What the broker registers: an empty host or port 0 is filled in once the socket is bound.
    pub advertised: Vec<(Endpoint, SecurityProtocol)>,
    pub inter_broker: ListenerName,
    pub controller_names: Vec<ListenerName>,
    /// Of the first of them, which brokers and controllers connect to.
    pub controller_protocol: SecurityProtocol,
}

/// Reads and judges every key about listeners.
///
/// # Errors
/// A value that cannot be, contradicts another, or names a protocol that this version does not speak.
pub fn read(settings: &Settings, is_broker: bool, is_controller: bool) -> Result<Listeners, ConfigError> {
    let controller_names = names(settings.get(CONTROLLER_NAMES).unwrap_or(""));
    if controller_names.is_empty() {
        return Err(ConfigError::value(
            CONTROLLER_NAMES,
            "must name the listener that controllers are reached at",
            "controller.listener.names=CONTROLLER",
        ));
    }
    let listed = endpoints(settings, LISTENERS)?.unwrap_or_else(|| default_listeners(is_broker));
    let protocols = protocol_map(settings, &listed, &controller_names)?;
    let mut all = Vec::new();
    for endpoint in listed {
        let protocol = protocol_of(&protocols, &endpoint.listener)?;
        let is_controller = controller_names.contains(&endpoint.listener);
        let is_reserved = is_controller;
        let (is_inter_broker, is_early) = (false, is_controller);
        all.push(Listener { endpoint, protocol, is_controller, is_reserved, is_inter_broker, is_early });
    }
    name_early(settings, &mut all, &controller_names)?;
    for name in &controller_names {
        check_controllers_protocol(&protocols, name)?;
    }
    let controller_protocol = protocol_of(&protocols, &controller_names[0])?;
    check_ports(&all)?;
    check_roles(&all, &controller_names, is_broker, is_controller)?;
    let advertised = advertised(settings, &all, &protocols, &controller_names)?;
    let inter_broker = inter_broker(settings, &advertised, &controller_names, is_broker)?;
    let is_own = |listener: &Listener| listener.endpoint.listener == inter_broker;
    all.iter_mut().filter(|listener| is_own(listener)).for_each(|listener| listener.is_inter_broker = true);
    if all.iter().any(|listener| !listener.is_controller && !is_own(listener)) {
        all.iter_mut().filter(|listener| is_own(listener)).for_each(|listener| listener.is_reserved = true);
    }
    Ok(Listeners { all, advertised, inter_broker, controller_names, controller_protocol })
}

/// Kafka opens the listeners of brokers after a broker has caught up, whether they are named here or not: what is
/// decided here is when the controllers' open. All of them open early where the key is not set.
///
/// # Source
/// KIP-801; Kafka `KafkaConfig.earlyStartListeners`.
fn name_early(
    settings: &Settings,
    all: &mut [Listener],
    controller_names: &[ListenerName],
) -> Result<(), ConfigError> {
    let Some(text) = settings.get(EARLY) else { return Ok(()) };
    let early = names(text);
    for name in &early {
        if !all.iter().any(|listener| listener.endpoint.listener == *name) && !controller_names.contains(name)
        {
            let problem = format!(
                "contains listener {name}, but this is not contained in {LISTENERS} or {CONTROLLER_NAMES}"
            );
            return Err(ConfigError::value(EARLY, problem, format!("{EARLY}={}", controller_names[0])));
        }
    }
    for listener in all {
        listener.is_early &= early.contains(&listener.endpoint.listener);
    }
    Ok(())
}

fn names(text: &str) -> Vec<ListenerName> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ListenerName::new).collect()
}

fn endpoints(settings: &Settings, key: &str) -> Result<Option<Vec<Endpoint>>, ConfigError> {
    let Some(text) = settings.get(key).filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = parse_endpoints(text);
    parsed.map(Some).map_err(|error| {
        ConfigError::value(key, error.to_string(), LISTENERS_EXAMPLE.replacen(LISTENERS, key, 1))
    })
}

fn default_listeners(is_broker: bool) -> Vec<Endpoint> {
    let plaintext = Endpoint { listener: ListenerName::new("PLAINTEXT"), host: String::new(), port: 9092 };
    if is_broker { vec![plaintext] } else { Vec::new() }
}

fn protocol_map(
    settings: &Settings,
    listed: &[Endpoint],
    controller_names: &[ListenerName],
) -> Result<ProtocolMap, ConfigError> {
    if let Some(text) = settings.get(PROTOCOL_MAP) {
        return parse_protocol_map(text).map_err(|error| {
            ConfigError::value(
                PROTOCOL_MAP,
                error.to_string(),
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            )
        });
    }
    // Without a map, Kafka takes controllers' listeners for plaintext unless another listener is protected (KIP-590).
    let mut map = ProtocolMap::default();
    let is_protected = |endpoint: &Endpoint| {
        map.get(&endpoint.listener).is_some_and(|protocol| protocol != SecurityProtocol::Plaintext)
    };
    if !listed.iter().any(is_protected) {
        for name in controller_names {
            map.insert_if_absent(name.clone(), SecurityProtocol::Plaintext);
        }
    }
    Ok(map)
}

fn protocol_of(protocols: &ProtocolMap, listener: &ListenerName) -> Result<SecurityProtocol, ConfigError> {
    protocols.get(listener).ok_or_else(|| {
        ConfigError::value(
            PROTOCOL_MAP,
            format!("holds no protocol for the listener {listener}"),
            format!("listener.security.protocol.map={listener}:PLAINTEXT"),
        )
    })
}

/// A broker needs the protocol of each controllers' listener too: it connects there.
fn check_controllers_protocol(protocols: &ProtocolMap, name: &ListenerName) -> Result<(), ConfigError> {
    if protocols.get(name).is_some() {
        return Ok(());
    }
    Err(ConfigError::value(
        PROTOCOL_MAP,
        format!("holds no protocol for {name}, which controller.listener.names names"),
        format!("listener.security.protocol.map={name}:PLAINTEXT,PLAINTEXT:PLAINTEXT"),
    ))
}

fn check_ports(all: &[Listener]) -> Result<(), ConfigError> {
    for (index, one) in all.iter().enumerate() {
        let port = one.endpoint.port;
        let clash = all[..index].iter().find(|other| {
            port != 0 && other.endpoint.port == port && other.endpoint.listener != one.endpoint.listener
        });
        if let Some(other) = clash {
            return Err(ConfigError::value(
                LISTENERS,
                format!("{} and {} have the same port", other.endpoint, one.endpoint),
                LISTENERS_EXAMPLE,
            ));
        }
    }
    Ok(())
}

fn check_roles(
    all: &[Listener],
    controller_names: &[ListenerName],
    is_broker: bool,
    is_controller: bool,
) -> Result<(), ConfigError> {
    if is_controller && !all.iter().any(|listener| listener.is_controller) {
        let name = &controller_names[0];
        return Err(ConfigError::value(
            LISTENERS,
            format!(
                "process.roles holds controller, but no listener is called {name} (controller.listener.names)"
            ),
            format!("listeners=PLAINTEXT://:9092,{name}://:9093"),
        ));
    }
    if is_broker && all.iter().all(|listener| listener.is_controller) {
        return Err(ConfigError::value(
            LISTENERS,
            "process.roles holds broker, but every listener is a controller's (controller.listener.names)",
            LISTENERS_EXAMPLE,
        ));
    }
    let alone = if is_broker { "broker" } else { "controller" };
    let is_of_role = |listener: &&Listener| if listener.is_controller { is_controller } else { is_broker };
    match all.iter().find(|listener| !is_of_role(listener)) {
        None => Ok(()),
        Some(listener) => {
            let rest: Vec<String> =
                all.iter().filter(is_of_role).map(|listener| listener.endpoint.to_string()).collect();
            let what = if listener.is_controller { "a controller's" } else { "no controller's" };
            let problem = format!(
                "process.roles is {alone} alone, but {} is {what} listener ({CONTROLLER_NAMES}). Remove it, or add the role",
                listener.endpoint
            );
            Err(ConfigError::value(LISTENERS, problem, format!("{LISTENERS}={}", rest.join(","))))
        }
    }
}

fn advertised(
    settings: &Settings,
    all: &[Listener],
    protocols: &ProtocolMap,
    controller_names: &[ListenerName],
) -> Result<Vec<(Endpoint, SecurityProtocol)>, ConfigError> {
    let listed = endpoints(settings, ADVERTISED)?;
    let bound = || all.iter().filter(|listener| !listener.is_controller).map(|l| l.endpoint.clone());
    let listed = listed.unwrap_or_else(|| bound().collect());
    let mut advertised = Vec::new();
    for endpoint in listed {
        // A combined node may list its controller listener too; clients are never told of it.
        if controller_names.contains(&endpoint.listener) {
            continue;
        }
        if !all.iter().any(|listener| listener.endpoint.listener == endpoint.listener) {
            return Err(ConfigError::value(
                ADVERTISED,
                format!("{} is advertised, but no listener has this name", endpoint.listener),
                "advertised.listeners=PLAINTEXT://broker1.example.com:9092",
            ));
        }
        if settings.get(ADVERTISED).is_some() && matches!(endpoint.host.as_str(), "0.0.0.0" | "::") {
            return Err(ConfigError::value(
                ADVERTISED,
                format!("no client can connect to {}", endpoint.host),
                "advertised.listeners=PLAINTEXT://broker1.example.com:9092",
            ));
        }
        let protocol = protocol_of(protocols, &endpoint.listener)?;
        advertised.push((endpoint, protocol));
    }
    Ok(advertised)
}

fn inter_broker(
    settings: &Settings,
    advertised: &[(Endpoint, SecurityProtocol)],
    controller_names: &[ListenerName],
    is_broker: bool,
) -> Result<ListenerName, ConfigError> {
    let named = settings.get(INTER_BROKER);
    if named.is_some() && settings.get(INTER_BROKER_PROTOCOL).is_some() {
        return Err(ConfigError::value(
            INTER_BROKER,
            "contradicts security.inter.broker.protocol: only one of the two can be set",
            "inter.broker.listener.name=PLAINTEXT",
        ));
    }
    if let Some(protocol) = settings.get(INTER_BROKER_PROTOCOL) {
        check_inter_broker_protocol(protocol, advertised)?;
    }
    let name = named.or(settings.get(INTER_BROKER_PROTOCOL)).unwrap_or("PLAINTEXT");
    let name = ListenerName::new(name);
    if controller_names.contains(&name) && is_broker {
        return Err(ConfigError::value(
            INTER_BROKER,
            format!("{name} is a controller's listener (controller.listener.names)"),
            "inter.broker.listener.name=PLAINTEXT",
        ));
    }
    if is_broker && !advertised.iter().any(|(endpoint, _)| endpoint.listener == name) {
        let first = advertised.first().map_or("PLAINTEXT", |(endpoint, _)| endpoint.listener.as_str());
        return Err(ConfigError::value(
            INTER_BROKER,
            format!("{name} is not among the advertised listeners"),
            format!("inter.broker.listener.name={first}"),
        ));
    }
    Ok(name)
}

/// Kafka takes the protocol from here, whatever the map says of the listener of that name; here the two must agree.
fn check_inter_broker_protocol(
    text: &str,
    advertised: &[(Endpoint, SecurityProtocol)],
) -> Result<(), ConfigError> {
    let protocol = SecurityProtocol::parse(text);
    if protocol.is_none() {
        return Err(ConfigError::value(
            INTER_BROKER_PROTOCOL,
            format!("{text} is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
            "security.inter.broker.protocol=SASL_SSL",
        ));
    }
    let listener = advertised.iter().find(|(endpoint, _)| endpoint.listener.as_str() == text);
    match listener {
        Some((_, other)) if Some(*other) != protocol => Err(ConfigError::value(
            INTER_BROKER_PROTOCOL,
            format!(
                "{text} contradicts listener.security.protocol.map, which gives the listener {text} the protocol {other}"
            ),
            format!("inter.broker.listener.name={text}"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        settings.set("controller.listener.names", "CONTROLLER");
        for (key, value) in pairs {
            settings.set(key, value);
        }
        settings
    }

    fn key_of_error(pairs: &[(&str, &str)]) -> String {
        match read(&settings(pairs), true, true) {
            Err(ConfigError::Value { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sample_server_properties_is_understood() {
        let listeners = read(
            &settings(&[
                ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
                ("advertised.listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
                ("inter.broker.listener.name", "PLAINTEXT"),
                ("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL"),
            ]),
            true,
            true,
        )
        .expect("sound");
        assert_eq!(listeners.all.len(), 2);
        assert!(listeners.all[1].is_controller);
        let advertised: Vec<_> = listeners.advertised.iter().map(|(e, _)| e.to_string()).collect();
        assert_eq!(advertised, ["PLAINTEXT://localhost:9092"]);
    }

    #[test]
    fn early_listeners_are_the_controllers_that_are_named() {
        let both = ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        let early = |pairs: &[(&str, &str)]| -> Vec<bool> {
            let listeners = read(&settings(pairs), true, true).expect("sound");
            listeners.all.iter().map(|listener| listener.is_early).collect()
        };
        assert_eq!(early(&[both]), [false, true]);
        assert_eq!(early(&[both, (EARLY, "CONTROLLER, PLAINTEXT")]), [false, true]);
        assert_eq!(early(&[both, (EARLY, "PLAINTEXT")]), [false, false]);
        assert_eq!(early(&[both, (EARLY, "")]), [false, false]);
        let refused =
            read(&settings(&[both, (EARLY, "OTHER")]), true, true).expect_err("refused").to_string();
        assert!(
            refused.starts_with(
                "early.start.listeners: contains listener OTHER, but this is not contained in listeners"
            ),
            "{refused}"
        );
    }

    #[test]
    fn listeners_without_a_protocol_are_refused() {
        let only = ("listeners", "PLAINTEXT://:9092");
        let broker = |pairs: &[(&str, &str)]| match read(&settings(pairs), true, false) {
            Err(error @ ConfigError::Value { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let map = |text| ("listener.security.protocol.map", text);
        let said = broker(&[only, map("PLAINTEXT:PLAINTEXT")]);
        assert!(said.contains("holds no protocol for CONTROLLER"), "{said}");
        let said = broker(&[only, ("security.inter.broker.protocol", "TLS")]);
        assert!(said.starts_with("security.inter.broker.protocol: TLS is none of"), "{said}");
        let said = broker(&[
            ("listeners", "SSL://:9092"),
            map("SSL:PLAINTEXT,CONTROLLER:PLAINTEXT"),
            ("security.inter.broker.protocol", "SSL"),
        ]);
        assert!(
            said.starts_with(
                "security.inter.broker.protocol: SSL contradicts listener.security.protocol.map"
            ),
            "{said}"
        );
        // Entries that no listener has are of no consequence: Kafka's own file has them.
        let unused = map("CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL");
        read(&settings(&[only, unused]), true, false).expect("sound");
    }

    #[test]
    fn every_protocol_is_taken_for_every_part() {
        let listeners = read(
            &settings(&[
                ("listeners", "SASL_SSL://:9092,CONTROLLER://:9093"),
                ("listener.security.protocol.map", "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL"),
                ("security.inter.broker.protocol", "SASL_SSL"),
            ]),
            true,
            true,
        )
        .expect("sound");
        assert!(listeners.all.iter().all(|listener| listener.protocol == SecurityProtocol::SaslSsl));
        assert_eq!(listeners.controller_protocol, SecurityProtocol::SaslSsl);
        assert_eq!(listeners.inter_broker.as_str(), "SASL_SSL");
    }

    #[test]
    fn contradictions_name_their_key() {
        let both = ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        assert_eq!(key_of_error(&[("listeners", "PLAINTEXT://:9092")]), "listeners");
        assert_eq!(key_of_error(&[("listeners", "CONTROLLER://:9092")]), "listeners");
        assert_eq!(key_of_error(&[("listeners", "PLAINTEXT://:1,CONTROLLER://:1")]), "listeners");
        // With a protected listener, controllers' listeners are not taken for plaintext.
        assert_eq!(
            key_of_error(&[("listeners", "SSL://:1,CONTROLLER://:2")]),
            "listener.security.protocol.map"
        );
        assert_eq!(
            key_of_error(&[("listeners", "X://:1,CONTROLLER://:2")]),
            "listener.security.protocol.map"
        );
        assert_eq!(key_of_error(&[both, ("controller.listener.names", "")]), "controller.listener.names");
        assert_eq!(key_of_error(&[both, ("advertised.listeners", "Y://h:1")]), "advertised.listeners");
        assert_eq!(
            key_of_error(&[both, ("advertised.listeners", "PLAINTEXT://0.0.0.0:1")]),
            "advertised.listeners"
        );
        assert_eq!(
            key_of_error(&[both, ("inter.broker.listener.name", "CONTROLLER")]),
            "inter.broker.listener.name"
        );
        assert_eq!(
            key_of_error(&[
                both,
                ("inter.broker.listener.name", "PLAINTEXT"),
                ("security.inter.broker.protocol", "PLAINTEXT")
            ]),
            "inter.broker.listener.name"
        );
    }
}
