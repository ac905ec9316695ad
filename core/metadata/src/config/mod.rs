//! Every configuration key that Kafka 4.4 knows, and what this node does with it.
//!
//! The tables (`config/tables.rs`) hold name, type, default, valid values, when a key may change, how much it matters,
//! and a sentence in our words; [`status`] holds what the node does with it. From these come the parser,
//! DescribeConfigs, the checks of AlterConfigs, `config explain` and the documents.
//!
//! Not here: reading files or command lines (shell), and the effect of a value (the code that reads
//! it).
//!
//! Neighbours: [`TopicConfig`] and [`BrokerConfig`] are the effective values, typed; the dynamic ones come out of the
//! image's config records.

mod broker_config;
mod contradictions;
mod dynamic;
mod group_config;
mod key;
mod properties;
mod status;
mod suggest;
mod synonyms;
mod tables;
mod topic_config;
mod value;

#[cfg(test)]
mod tests;

pub use broker_config::{BrokerConfig, ConfigSource, DynamicConfigs, Level};
pub use contradictions::{Contradiction, contradictions};
pub use dynamic::{DynamicRefusal, check_dynamic_configs, check_effect, listener_setting, listeners_of};
pub use group_config::{
    GroupConfigRefusal, group_number, keeps_topology_descriptions, validate_client_metrics_configs,
    validate_group_configs,
};
pub use key::{ConfigKey, DefaultValue, Importance, Kind, Scope, Status, Valid};
pub use properties::{ConfigRefusal, Properties, StaticConfig, Warning};
pub use status::{of_plug_in, status};
pub use suggest::nearest;
pub use synonyms::{Unit, broker_synonyms, group_synonym, topic_synonyms};
pub use topic_config::{
    CleanupPolicy, Compression, TimestampType, TopicConfig, TopicConfigRefusal, validate_topic_configs,
};
pub use value::{ValueError, canonical, check, check_cordoned_log_dirs, parse_list, range};

/// Whose keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    Broker,
    Topic,
    Group,
    ClientMetrics,
}

/// Rates of brokers that stand in no file: they can be set while the broker runs, and only then. Without one there is
/// no bound; what stands in a default's place is the example that a refusal gives.
///
/// # Source
/// Kafka `QuotaConfig.brokerQuotaConfigs`.
static RATES: [ConfigKey; 3] = [
    key::long("follower.replication.throttled.rate", "10485760").at_least(0),
    key::long("leader.replication.throttled.rate", "10485760").at_least(0),
    key::long("replica.alter.log.dirs.io.max.bytes.per.second", "10485760").at_least(0),
];

/// Settings of Kafka's own authorizer, which are no keys of a broker. They count with `authorizer.class.name` alone.
///
/// # Source
/// Kafka `StandardAuthorizer.SUPER_USERS_CONFIG`, `ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG`.
static OF_THE_AUTHORIZER: [ConfigKey; 2] = [
    key::boolean("allow.everyone.if.no.acl.found", "false").doc(
        "Whether every client may do everything to a resource that no ACL names. Set it alike on every node.",
    ),
    key::string("super.users", "").high().doc(
        "Principals that may do everything without an ACL, separated by semicolons: User:admin;User:CN=node-1,O=x. Set \
         them alike on every node.",
    ),
];

/// The authorizer's own setting of this name.
pub fn authorizer_key(name: &str) -> Option<&'static ConfigKey> {
    OF_THE_AUTHORIZER.iter().find(|key| key.name == name)
}

/// Whether a broker's rate may have this value; no problem for keys that are not rates.
///
/// # Errors
/// It is no whole number, or less than none.
pub fn check_broker_rate(name: &str, value: &str) -> Result<(), ValueError> {
    broker_rate(name).map_or(Ok(()), |rate| check(rate, value))
}

/// The rate of this name that stands in no file.
pub fn broker_rate(name: &str) -> Option<&'static ConfigKey> {
    RATES.iter().find(|rate| rate.name == name)
}

impl Resource {
    pub const ALL: [Self; 4] = [Self::Broker, Self::Topic, Self::Group, Self::ClientMetrics];

    /// The tables, each sorted by name.
    fn tables(self) -> &'static [&'static [ConfigKey]] {
        const BROKER: &[&[ConfigKey]] = &[
            tables::broker_coordinators::KEYS,
            tables::broker_group_coordinators::KEYS,
            tables::broker_logs::KEYS,
            tables::broker_network::KEYS,
            tables::broker_own::KEYS,
            tables::broker_quorum::KEYS,
            tables::broker_security::KEYS,
            tables::broker_tiered::KEYS,
        ];
        match self {
            Self::Broker => BROKER,
            Self::Topic => &[tables::topic_keys::KEYS],
            Self::Group => &[tables::group_keys::KEYS],
            Self::ClientMetrics => &[tables::client_metrics_keys::KEYS],
        }
    }

    /// Every key of this kind of resource, table by table.
    pub fn keys(self) -> impl Iterator<Item = &'static ConfigKey> {
        self.tables().iter().copied().flatten()
    }

    /// The keys that are ours, and that Kafka does not know.
    pub fn own_keys() -> &'static [ConfigKey] {
        tables::broker_own::KEYS
    }

    /// The key of this name.
    pub fn key(self, name: &str) -> Option<&'static ConfigKey> {
        self.tables().iter().find_map(|table| {
            let index = table.binary_search_by(|row| row.name.cmp(name)).ok()?;
            table.get(index)
        })
    }

    /// The key behind a listener's own setting: `listener.name.external.ssl.client.auth` → `ssl.client.auth`.
    pub fn listener_key(self, name: &str) -> Option<&'static ConfigKey> {
        let base = properties::base_name(name);
        if base == name { None } else { self.key(base) }
    }
}
