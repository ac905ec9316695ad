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

/// Every dynamic configuration of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configs {
    by_resource: OrdMap<Resource, Arc<Values>>,
}

impl Configs {
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
        self.by_resource
            .range(Resource::new(kind, "")..)
            .take_while(move |(resource, _)| resource.kind == kind)
    }

    /// `None` unsets the key; a resource without keys is forgotten.
    pub(crate) fn set(&mut self, resource: Resource, key: Text, value: Option<Text>) {
        match value {
            Some(value) => {
                let values = self.by_resource.entry(resource).or_default();
                Arc::make_mut(values).insert(key, value);
            }
            None => {
                let Some(values) = self.by_resource.get_mut(&resource) else { return };
                Arc::make_mut(values).remove(&key);
                if values.is_empty() {
                    self.by_resource.remove(&resource);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, resource: &Resource) -> bool {
        self.by_resource.remove(resource).is_some()
    }
}
