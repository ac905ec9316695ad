//! How many connections may be open at once: in all, on one listener, from one address.
//!
//! The settings may change while the node runs; what the machine allows does not ([`Room`]). A lower number closes no
//! connection by itself: new ones are refused until enough have ended.
//!
//! Neighbours: shell/net/src/gate.rs, which counts; shell/broker/src/node/workers/connection_places.rs, which hands it
//! new numbers.
//!
//! Source: KIP-308, KIP-402, KIP-612; Kafka `ConnectionQuotas`.

use std::net::IpAddr;

use barnabas_metadata::config::BrokerConfig;

/// Over all listeners, or with a prefix on one.
const ALL: &str = "max.connections";
const PER_IP: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";
const PER_IP_SECOND: &str = "connections.per.ip.second.max";
/// Connections for brokers and controllers alone: a part of all, and no more than a large cluster needs.
const RESERVED_SHARE: usize = 8;
const RESERVED_MAX: usize = 128;
/// Connections over the quota of their address, until they are closed: a part of all as well.
const HELD_SHARE: usize = 16;
const HELD_MAX: usize = 256;

/// What the process's limit of open files leaves for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For clients, and for all else that needs no reserve.
    pub clients: usize,
    /// Beside those, for listeners of brokers and controllers alone.
    pub reserved: usize,
    /// Connections over the quota of their address, that are not served.
    pub held: usize,
}

impl Room {
    /// `has_reserved`: a listener is for brokers or controllers alone.
    pub fn of(descriptors: usize, has_reserved: bool) -> Self {
        let reserved = if has_reserved { (descriptors / RESERVED_SHARE).min(RESERVED_MAX) } else { 0 };
        let held = (descriptors / HELD_SHARE).min(HELD_MAX);
        Self { clients: descriptors - reserved - held, reserved, held }
    }
}

/// What the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub all_max: usize,
    /// In the order of the listeners.
    pub listeners_max: Vec<usize>,
    /// `None`: the operator has set none.
    pub per_ip_max: Option<usize>,
    pub per_ip_overrides: Vec<(IpAddr, usize)>,
    /// Entries of the overrides that name no address.
    pub unusable: Vec<String>,
    pub per_ip_second_max: u32,
}

impl Places {
    /// `listeners`: their names.
    pub fn read<'a>(config: &BrokerConfig, listeners: impl Iterator<Item = &'a str>, room: Room) -> Self {
        let count = |key| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
        let of_listener = |name: &str| {
            let key = format!("listener.name.{}.{ALL}", name.to_lowercase());
            let own = config.value(&key).and_then(|value| value.trim().parse().ok());
            own.unwrap_or(usize::MAX)
        };
        let (per_ip_overrides, unusable) = overrides(config);
        Self {
            all_max: count(ALL).min(room.clients),
            listeners_max: listeners.map(of_listener).collect(),
            per_ip_max: is_set(config, PER_IP).then(|| count(PER_IP)),
            per_ip_overrides,
            unusable,
            per_ip_second_max: u32::try_from(config.long(PER_IP_SECOND)).unwrap_or(u32::MAX),
        }
    }

    /// Why a node with these overrides does not start.
    pub fn problem(&self) -> Option<String> {
        let entry = self.unusable.first()?;
        Some(format!("{OVERRIDES}: '{entry}' is no address and number. Example: {OVERRIDES}=10.0.0.7:100"))
    }
}

/// In the file or in the metadata log.
fn is_set(config: &BrokerConfig, key: &str) -> bool {
    let dynamic = config.dynamic();
    let is_dynamic = dynamic.broker.contains_key(key) || dynamic.default.contains_key(key);
    is_dynamic || config.given().get(key).is_some()
}

fn overrides(config: &BrokerConfig) -> (Vec<(IpAddr, usize)>, Vec<String>) {
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    for entry in config.list(OVERRIDES).into_iter().filter(|entry| !entry.is_empty()) {
        match address_and_count(entry) {
            Some(parsed) => usable.push(parsed),
            None => unusable.push(entry.to_owned()),
        }
    }
    (usable, unusable)
}

/// An IPv6 address holds colons itself: the number stands after the last one.
fn address_and_count(entry: &str) -> Option<(IpAddr, usize)> {
    let (address, count) = entry.rsplit_once(':')?;
    let address: IpAddr = address.trim().parse().ok()?;
    let count: i32 = count.trim().parse().ok()?;
    // Fewer than none is none, as in Kafka.
    Some((address.to_canonical(), usize::try_from(count).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;
    use barnabas_metadata::config::{DynamicConfigs, Properties, StaticConfig};

    const ROOM: Room = Room { clients: 1000, reserved: 0, held: 0 };

    fn properties(settings: &[(&str, &str)]) -> Properties {
        settings.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))).collect()
    }

    fn config(given: &[(&str, &str)], dynamic: &[(&str, &str)]) -> BrokerConfig {
        let (given, _) = StaticConfig::check(properties(given)).expect("settings");
        let dynamic = DynamicConfigs { default: properties(dynamic), ..DynamicConfigs::default() };
        BrokerConfig::new(given).with_dynamic(dynamic)
    }

    fn read(given: &[(&str, &str)], dynamic: &[(&str, &str)]) -> Places {
        Places::read(&config(given, dynamic), ["PLAINTEXT", "TLS"].into_iter(), ROOM)
    }

    #[test]
    fn room_is_shared_between_clients_brokers_and_held_connections() {
        assert_eq!(Room::of(1600, false), Room { clients: 1500, reserved: 0, held: 100 });
        assert_eq!(Room::of(160, true), Room { clients: 130, reserved: 20, held: 10 });
        assert_eq!(Room::of(100_000, true), Room { clients: 99_616, reserved: 128, held: 256 });
    }

    #[test]
    fn defaults_are_the_rooms_and_no_limit_of_an_address() {
        let places = read(&[], &[]);
        assert_eq!((places.all_max, places.per_ip_max), (1000, None));
        assert_eq!(places.listeners_max, [usize::MAX; 2]);
        assert_eq!(read(&[("max.connections", "2000")], &[]).all_max, 1000, "what the machine allows");
    }

    #[test]
    fn dynamic_numbers_replace_those_of_the_file() {
        let given = [("max.connections", "20"), ("max.connections.per.ip", "5")];
        let dynamic = [
            ("max.connections", "10"),
            ("max.connections.per.ip", "3"),
            ("listener.name.tls.max.connections", "4"),
        ];
        let places = read(&given, &dynamic);
        assert_eq!((places.all_max, places.per_ip_max), (10, Some(3)));
        assert_eq!(places.listeners_max, [usize::MAX, 4]);
        let places = read(&[], &[("max.connections.per.ip", "3")]);
        assert_eq!(places.per_ip_max, Some(3), "set in the metadata log alone");
    }

    #[test]
    fn overrides_hold_addresses_and_name_the_rest() {
        let text = "10.0.0.7:100, ::1:2,10.0.0.8:-1,broker-1:5";
        let places = read(&[], &[("max.connections.per.ip.overrides", text)]);
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(places.per_ip_overrides, [(ip("10.0.0.7"), 100), (ip("::1"), 2), (ip("10.0.0.8"), 0)]);
        assert_eq!(places.unusable, ["broker-1:5"]);
        let problem = places.problem().expect("one");
        assert!(problem.starts_with("max.connections.per.ip.overrides: 'broker-1:5'"), "{problem}");
        assert_eq!(read(&[], &[]).problem(), None);
    }
}
