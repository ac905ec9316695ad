//! Configurations by resource: what was set dynamically on topics, brokers, groups and client-metrics subscriptions.
//!
//! Raw strings only: types, defaults and validity are `config/`'s.
//!
//! Source: Kafka `ConfigurationsImage`, `ConfigResource`.

use std::sync::Arc;

use barnabas_base::Text;
use imbl::OrdMap;

/// What kind of thing a configuration belongs to; the numbers are Kafka's, on the wire and in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum ResourceType {
    Topic = 2,
    Broker = 4,
    /// Log levels of one broker: never in the metadata log.
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceType {
    pub const fn code(self) -> i8 {
        self as i8
    }

    pub const fn from_code(code: i8) -> Option<Self> {
        match code {
            2 => Some(Self::Topic),
            4 => Some(Self::Broker),
            8 => Some(Self::BrokerLogger),
            16 => Some(Self::ClientMetrics),
            32 => Some(Self::Group),
            _ => None,
        }
    }

    /// As Kafka's messages name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Topic => "TOPIC",
            Self::Broker => "BROKER",
            Self::BrokerLogger => "BROKER_LOGGER",
            Self::ClientMetrics => "CLIENT_METRICS",
            Self::Group => "GROUP",
        }
    }
}

/// One thing that has configurations. The empty name of a broker stands for all brokers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub kind: ResourceType,
    pub name: Text,
}

impl Resource {
    pub fn new(kind: ResourceType, name: impl Into<Text>) -> Self {
        Self { kind, name: name.into() }
    }

    pub fn topic(name: impl Into<Text>) -> Self {
        Self::new(ResourceType::Topic, name)
    }
}

/// The configurations of one resource, by key.
pub type Values = OrdMap<Text, Text>;

/// What a resource with configurations costs beside its texts: its entry, and the first node of its values.
const RESOURCE_BYTES: usize = 1024;

/// What one key costs beside its texts.
const VALUE_BYTES: usize = 64;

/// About the memory that one key of a resource takes.
pub fn value_bytes(key: &str, value: &str) -> usize {
    VALUE_BYTES + key.len() + value.len()
}

/// About the memory that a resource of this name takes with these configurations; nothing where it has none.
pub fn resource_bytes<'a>(name: &str, values: impl IntoIterator<Item = (&'a Text, &'a Text)>) -> usize {
    let each = values.into_iter().map(|(key, value)| value_bytes(key, value));
    each.reduce(|sum, bytes| sum + bytes).map_or(0, |values| RESOURCE_BYTES + name.len() + values)
}

/// Every dynamic configuration of the cluster.
///
/// Always true: `bytes` is the sum of [`resource_bytes`] over all resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configs {
    by_resource: OrdMap<Resource, Arc<Values>>,
    bytes: usize,
}

impl Configs {
    /// About the memory that all configurations take together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `None` where nothing was ever set.
    pub fn of(&self, resource: &Resource) -> Option<&Arc<Values>> {
        self.by_resource.get(resource)
    }

    pub fn value(&self, resource: &Resource, key: &str) -> Option<&Text> {
        self.by_resource.get(resource)?.get(key)
    }

    /// Every resource that has a configuration, by kind and name.
    pub fn iter(&self) -> impl Iterator<Item = (&Resource, &Arc<Values>)> {
        self.by_resource.iter()
    }

    /// The resources of one kind that have a configuration.
    pub fn of_kind(&self, kind: ResourceType) -> impl Iterator<Item = (&Resource, &Arc<Values>)> {
        self.of_kind_from(kind, Text::default())
    }

    /// In the order of their names, from `name` on (itself included).
    pub fn of_kind_from(
        &self,
        kind: ResourceType,
        name: Text,
    ) -> impl Iterator<Item = (&Resource, &Arc<Values>)> {
        self.by_resource
            .range(Resource::new(kind, name)..)
            .take_while(move |(resource, _)| resource.kind == kind)
    }

    /// `None` unsets the key; a resource without keys is forgotten.
    pub(crate) fn set(&mut self, resource: Resource, key: Text, value: Option<Text>) {
        let of_resource = RESOURCE_BYTES + resource.name.len();
        match value {
            Some(value) => {
                let values = self.by_resource.entry(resource).or_default();
                self.bytes += value_bytes(&key, &value) + if values.is_empty() { of_resource } else { 0 };
                if let Some(before) = Arc::make_mut(values).insert(key.clone(), value) {
                    self.bytes -= value_bytes(&key, &before);
                }
            }
            None => {
                let Some(values) = self.by_resource.get_mut(&resource) else { return };
                if let Some(before) = Arc::make_mut(values).remove(&key) {
                    self.bytes -= value_bytes(&key, &before);
                }
                if values.is_empty() {
                    self.bytes -= of_resource;
                    self.by_resource.remove(&resource);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, resource: &Resource) -> bool {
        let Some(values) = self.by_resource.remove(resource) else { return false };
        self.bytes -= resource_bytes(&resource.name, values.iter());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_what_is_set_and_removed() {
        let mut configs = Configs::default();
        let set = |configs: &mut Configs, name: &str, key: &str, value: Option<&str>| {
            configs.set(Resource::topic(name), key.into(), value.map(Text::from));
            let sum: usize = configs.iter().map(|(of, values)| resource_bytes(&of.name, values.iter())).sum();
            assert_eq!(configs.bytes(), sum);
        };
        set(&mut configs, "a", "retention.ms", Some("1"));
        set(&mut configs, "a", "retention.ms", Some("1000"));
        set(&mut configs, "a", "segment.ms", Some("5"));
        set(&mut configs, "b", "segment.ms", Some("5"));
        set(&mut configs, "b", "retention.ms", None);
        set(&mut configs, "b", "segment.ms", None);
        set(&mut configs, "c", "segment.ms", None);
        assert!(configs.remove(&Resource::topic("a")));
        assert!(!configs.remove(&Resource::topic("a")));
        assert_eq!(configs.bytes(), 0);
    }
}
