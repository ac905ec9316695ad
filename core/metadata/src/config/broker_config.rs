//! A broker's effective configuration: the file, what was changed while running, and the defaults behind them.
//!
//! Immutable: a change of the dynamic configs makes a new one ([`BrokerConfig::with_dynamic`]), which the shell swaps
//! in. Values are kept as text and read on demand; what the hot path reads on every request is kept as plain fields.
//!
//! Always true: a value in here has passed [`check`](super::check), because the file's were checked at the start and
//! an old dynamic value that no longer passes is left out.

use std::sync::Arc;

use barnabas_wire::records::RecordValidation;

use super::properties::base_name;
use super::value::{parse_bool, parse_list, parse_whole};
use super::{
    ConfigKey, Kind, Properties, Resource, Scope, StaticConfig, TopicConfig, broker_synonyms, check,
    topic_synonyms,
};

/// What config records of the metadata log say about brokers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DynamicConfigs {
    /// For this broker.
    pub broker: Properties,
    /// For all brokers.
    pub default: Properties,
}

/// Where a value comes from (Kafka `ConfigEntry.ConfigSource`, the numbers of DescribeConfigs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    Unknown = 0,
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    DynamicBrokerLogger = 6,
    ClientMetrics = 7,
    Group = 8,
}

/// One level at which a key, or a key that says the same, has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level<'a> {
    pub name: &'a str,
    pub value: &'a str,
    pub source: ConfigSource,
}

/// The effective configuration of one broker.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    given: StaticConfig,
    dynamic: Arc<DynamicConfigs>,
    topic_defaults: Arc<TopicConfig>,
    /// Most bytes in one answer to a fetch.
    pub fetch_bytes_max: i32,
    /// Fetch sessions remembered at once.
    pub fetch_sessions_max: usize,
    /// Whether Metadata may create topics.
    pub auto_create_topics: bool,
}

impl BrokerConfig {
    pub fn new(given: StaticConfig) -> Self {
        let mut config = Self {
            given,
            dynamic: Arc::default(),
            topic_defaults: Arc::default(),
            fetch_bytes_max: 0,
            fetch_sessions_max: 0,
            auto_create_topics: true,
        };
        config.derive();
        config
    }

    /// The same broker with these dynamic configs; those that are not dynamic, not known or not valid are left out.
    #[must_use]
    pub fn with_dynamic(&self, mut dynamic: DynamicConfigs) -> Self {
        dynamic.broker.retain(|name, value| is_dynamic(name, value, false));
        dynamic.default.retain(|name, value| is_dynamic(name, value, true));
        let mut config = Self { dynamic: Arc::new(dynamic), ..self.clone() };
        config.derive();
        config
    }

    fn derive(&mut self) {
        self.fetch_bytes_max = self.int("fetch.max.bytes");
        self.fetch_sessions_max =
            usize::try_from(self.int("max.incremental.fetch.session.cache.slots")).unwrap_or(0);
        self.auto_create_topics = self.boolean("auto.create.topics.enable");
        let mut topics = TopicConfig::default();
        for key in Resource::Topic.keys() {
            for (name, unit) in topic_synonyms(key.name).iter().rev() {
                match self.given_or_default(name) {
                    Some(value) if *unit == super::Unit::Same => topics.set(key.name, value),
                    Some(value) => {
                        let number = parse_whole(Kind::Long, value);
                        topics.set(key.name, &number.map_or_else(String::new, |n| unit.to_ms(n).to_string()));
                    }
                    None => {}
                }
            }
        }
        // Kafka `KafkaConfig.logRetentionTimeMillis`: any time below 0 is no limit.
        topics.retention_ms = topics.retention_ms.max(-1);
        topics.record_validation = match self.value("record.validation") {
            Some("full") => RecordValidation::Full,
            Some("structure") => RecordValidation::Structure,
            _ => RecordValidation::Header,
        };
        self.topic_defaults = Arc::new(topics);
    }

    /// The configuration of a topic that sets nothing itself.
    pub fn topic_defaults(&self) -> &Arc<TopicConfig> {
        &self.topic_defaults
    }

    /// The configuration of a topic with these configs of its own: the shared one where there are none.
    pub fn topic_config<'a>(
        &self,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Arc<TopicConfig> {
        let mut overrides = overrides.into_iter().peekable();
        if overrides.peek().is_none() {
            return Arc::clone(&self.topic_defaults);
        }
        Arc::new(self.topic_defaults.with_overrides(overrides))
    }

    /// What the file and the command line say.
    pub fn given(&self) -> &StaticConfig {
        &self.given
    }

    /// What the metadata log says.
    pub fn dynamic(&self) -> &DynamicConfigs {
        &self.dynamic
    }

    /// The value in force under this very name: dynamic, given, or the default. `None` is Kafka's null.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.given_or_default(name)
    }

    /// The value in force, whichever of the keys that say the same it is set under, in the smallest unit.
    ///
    /// `long("log.retention.ms")` sees `log.retention.hours`.
    pub fn long(&self, name: &'static str) -> i64 {
        let synonyms = broker_synonyms(name);
        let found = synonyms.iter().find_map(|(name, unit)| {
            let number = parse_whole(Kind::Long, self.given_or_default(name)?)?;
            Some(unit.to_ms(number))
        });
        let own = || self.given_or_default(name).and_then(|value| parse_whole(Kind::Long, value));
        found.or_else(own).unwrap_or(-1)
    }

    /// The value of a key of type int or short.
    pub fn int(&self, name: &'static str) -> i32 {
        i32::try_from(self.long(name)).unwrap_or(i32::MAX)
    }

    pub fn double(&self, name: &'static str) -> f64 {
        self.value(name).and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
    }

    pub fn boolean(&self, name: &'static str) -> bool {
        self.value(name).and_then(parse_bool).unwrap_or(false)
    }

    /// The entries of a list; none where it is empty or null.
    pub fn list(&self, name: &'static str) -> Vec<&str> {
        self.value(name).map_or_else(Vec::new, |value| parse_list(value).collect())
    }

    /// Every level at which `name`, or a key that says the same, has a value: the one in force first.
    ///
    /// Levels of other keys that come before the first of `name` itself are left out, and so everything is where
    /// `name` is set nowhere and has no default.
    ///
    /// # Source
    /// Kafka `ConfigHelper.configSynonyms`.
    pub fn levels<'a>(&'a self, name: &'a str) -> Vec<Level<'a>> {
        let mut names: Vec<&str> = broker_synonyms(name).iter().map(|synonym| synonym.0).collect();
        if names.is_empty() {
            names.push(name);
        }
        let base = base_name(name);
        if base != name {
            names.push(base);
        }
        type Get<'a, 'b> = &'b dyn Fn(&str) -> Option<&'a str>;
        let sources: [(ConfigSource, Get<'a, '_>); 4] = [
            (ConfigSource::DynamicBroker, &|name| self.dynamic.broker.get(name).map(|value| &**value)),
            (ConfigSource::DynamicDefaultBroker, &|name| {
                self.dynamic.default.get(name).map(|value| &**value)
            }),
            (ConfigSource::StaticBroker, &|name| self.given.get(name)),
            (ConfigSource::Default, &|name| Resource::Broker.key(name).and_then(ConfigKey::default_value)),
        ];
        let mut levels = Vec::new();
        for (source, get) in &sources {
            let found =
                names.iter().filter_map(|name| Some(Level { name, value: get(name)?, source: *source }));
            levels.extend(found);
        }
        let own = levels.iter().position(|level| level.name == name).unwrap_or(levels.len());
        levels.split_off(own)
    }

    fn given_or_default(&self, name: &str) -> Option<&str> {
        let dynamic = self.dynamic.broker.get(name).or_else(|| self.dynamic.default.get(name));
        let set = dynamic.map(|value| value.trim()).or_else(|| self.given.get(name));
        set.or_else(|| Resource::Broker.key(name).and_then(ConfigKey::default_value))
    }
}

/// Whether a dynamic config may be in force; a listener's own settings count as per-broker ones.
fn is_dynamic(name: &str, value: &str, for_all: bool) -> bool {
    let Some(key) = Resource::Broker.key(base_name(name)) else { return true };
    let scope_fits = match key.scope {
        // What makes a listener's TLS changes with its stores.
        Scope::ReadOnly => base_name(name) != name && key.name.starts_with("ssl.") && !for_all,
        Scope::PerBroker => !for_all,
        Scope::ClusterWide => true,
    };
    let needs_a_broker = for_all && base_name(name) != name && !super::dynamic::is_limit_of_a_listener(name);
    scope_fits && !needs_a_broker && check(key, value).is_ok()
}
