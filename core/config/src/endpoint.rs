//! Kafka's listener syntax: `NAME://host:port,…`, and the map from listener names to security protocols.
//!
//! Parses and judges one value; does not resolve hosts, bind, or compare `listeners` with `advertised.listeners`
//! (core/config/src/node_config.rs does).
//!
//! Source: Kafka `SocketServerConfigs.listenerListToEndPoints`, `KafkaConfig.listenerSecurityProtocolMap`.

use std::fmt;

/// How a listener's bytes are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    pub const ALL: [Self; 4] = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// The number that stands for it in metadata records.
    pub const fn id(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }

    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }

    pub const fn has_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A listener's name, upper case as Kafka normalizes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListenerName(String);

impl ListenerName {
    pub fn new(name: &str) -> Self {
        Self(name.trim().to_ascii_uppercase())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the listener's own keys begin with: `listener.name.NAME.`, in small letters.
    pub fn key_prefix(&self) -> String {
        format!("listener.name.{}.", self.0.to_ascii_lowercase())
    }
}

impl fmt::Display for ListenerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One `NAME://host:port`. An empty host means every interface; port 0 lets the system choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub listener: ListenerName,
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.listener, self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.listener, self.host, self.port)
        }
    }
}

/// Why a listener value cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("'{0}' is no listener: expected NAME://host:port, for example PLAINTEXT://localhost:9092")]
    Shape(String),
    #[error("'{0}' has no port between 0 and 65535, for example PLAINTEXT://localhost:9092")]
    Port(String),
    #[error("the listener name {0} stands in the list twice; each listener has its own name")]
    Twice(String),
    #[error("'{0}' is no entry of a protocol map: expected NAME:PROTOCOL, for example INTERNAL:PLAINTEXT")]
    MapShape(String),
    #[error("'{0}' is no security protocol: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")]
    Protocol(String),
}

/// Reads a comma-separated list of endpoints. An empty list is an empty answer.
///
/// # Errors
/// The first entry that is no endpoint, or a name that stands twice.
pub fn parse_endpoints(text: &str) -> Result<Vec<Endpoint>, EndpointError> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let endpoint = parse_endpoint(entry)?;
        // One name may stand once for IPv4 and once for IPv6 on the same port (KIP-797).
        let twin = |known: &Endpoint| {
            known.listener == endpoint.listener
                && !(known.port == endpoint.port && known.host.contains(':') != endpoint.host.contains(':'))
        };
        if endpoints.iter().any(twin) {
            return Err(EndpointError::Twice(endpoint.listener.to_string()));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

fn parse_endpoint(entry: &str) -> Result<Endpoint, EndpointError> {
    let shape = || EndpointError::Shape(entry.to_owned());
    let (name, address) = entry.split_once("://").ok_or_else(shape)?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(legal) {
        return Err(shape());
    }
    let (host, port) = address.rsplit_once(':').ok_or_else(shape)?;
    let port = port.parse::<u16>().map_err(|_| EndpointError::Port(entry.to_owned()))?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(shape)?,
        None if host.contains(':') => return Err(shape()),
        None => host,
    };
    Ok(Endpoint { listener: ListenerName::new(name), host: host.to_owned(), port })
}

/// Which protocol each listener name speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolMap {
    entries: Vec<(ListenerName, SecurityProtocol)>,
}

impl Default for ProtocolMap {
    /// Each protocol under its own name.
    fn default() -> Self {
        let entries = SecurityProtocol::ALL.map(|protocol| (ListenerName::new(protocol.name()), protocol));
        Self { entries: entries.to_vec() }
    }
}

impl ProtocolMap {
    pub fn get(&self, listener: &ListenerName) -> Option<SecurityProtocol> {
        self.entries.iter().find(|(name, _)| name == listener).map(|&(_, protocol)| protocol)
    }

    /// Adds a name that the map does not hold yet.
    pub fn insert_if_absent(&mut self, listener: ListenerName, protocol: SecurityProtocol) {
        if self.get(&listener).is_none() {
            self.entries.push((listener, protocol));
        }
    }
}

/// Reads `NAME:PROTOCOL,…`.
///
/// # Errors
/// The first entry that is no pair, names no protocol, or stands twice.
pub fn parse_protocol_map(text: &str) -> Result<ProtocolMap, EndpointError> {
    let mut entries: Vec<(ListenerName, SecurityProtocol)> = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, protocol) =
            entry.rsplit_once(':').ok_or_else(|| EndpointError::MapShape(entry.to_owned()))?;
        let listener = ListenerName::new(name);
        let protocol = SecurityProtocol::parse(protocol.trim())
            .ok_or_else(|| EndpointError::Protocol(protocol.trim().to_owned()))?;
        if entries.iter().any(|(known, _)| *known == listener) {
            return Err(EndpointError::Twice(listener.to_string()));
        }
        entries.push((listener, protocol));
    }
    Ok(ProtocolMap { entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, EndpointError> {
        Ok(parse_endpoints(text)?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn endpoints_are_read_as_kafka_reads_them() {
        assert_eq!(
            shown("PLAINTEXT://:9092, controller://localhost:9093"),
            Ok(vec!["PLAINTEXT://:9092".to_owned(), "CONTROLLER://localhost:9093".to_owned()])
        );
        assert_eq!(shown("A://[::1]:1"), Ok(vec!["A://[::1]:1".to_owned()]));
        assert_eq!(shown("A://127.0.0.1:1,A://[::1]:1").map(|list| list.len()), Ok(2));
        assert_eq!(shown(""), Ok(vec![]));
    }

    #[test]
    fn what_is_no_endpoint_is_named() {
        assert_eq!(shown("localhost:9092"), Err(EndpointError::Shape("localhost:9092".to_owned())));
        assert_eq!(shown("A://h:99999"), Err(EndpointError::Port("A://h:99999".to_owned())));
        assert_eq!(shown("A://::1:9"), Err(EndpointError::Shape("A://::1:9".to_owned())));
        assert_eq!(shown("A://h:1,a://g:2"), Err(EndpointError::Twice("A".to_owned())));
    }

    #[test]
    fn the_protocol_map_knows_its_four_words() {
        let map = parse_protocol_map("INTERNAL:PLAINTEXT,EXT:sasl_ssl").expect("a map");
        assert_eq!(map.get(&ListenerName::new("internal")), Some(SecurityProtocol::Plaintext));
        assert_eq!(map.get(&ListenerName::new("EXT")), Some(SecurityProtocol::SaslSsl));
        assert_eq!(map.get(&ListenerName::new("PLAINTEXT")), None);
        assert!(parse_protocol_map("A:TLS").is_err());
        assert!(parse_protocol_map("A").is_err());
        assert_eq!(ProtocolMap::default().get(&ListenerName::new("SSL")), Some(SecurityProtocol::Ssl));
    }
}
