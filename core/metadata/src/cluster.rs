//! Brokers and controllers as they registered, and what the controller has said of them since.
//!
//! Sources: KIP-500, KIP-631, KIP-841, KIP-858, KIP-919; Kafka `BrokerRegistration`, `ControllerRegistration`.

use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, DirectoryId, Text, Uuid};
use imbl::OrdMap;

/// Where a node listens. The security protocol is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub listener: Text,
    pub host: Text,
    pub port: u16,
    pub security_protocol: i16,
}

/// The levels of one feature that a node supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureRange {
    pub name: Text,
    pub min: i16,
    pub max: i16,
}

/// One broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub id: BrokerId,
    pub epoch: BrokerEpoch,
    /// A random id of one broker process.
    pub incarnation: Uuid,
    pub endpoints: Vec<Endpoint>,
    /// By name.
    pub features: Vec<FeatureRange>,
    pub rack: Option<Text>,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    pub is_migrating_zk: bool,
    /// Sorted.
    pub log_dirs: Vec<DirectoryId>,
    /// Sorted; `None` until the broker has said which (KIP-1066).
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl Broker {
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.listener == *listener)
    }

    /// May lead and be placed on: neither fenced nor on its way out.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    pub fn supports(&self, feature: &str) -> Option<&FeatureRange> {
        self.features.iter().find(|range| range.name == *feature)
    }

    /// The directory for a new replica: the only one, else the broker chooses.
    ///
    /// # Source
    /// KIP-858; Kafka `ClusterControlManager.defaultDir`.
    pub fn default_directory(&self) -> DirectoryId {
        match *self.log_dirs.as_slice() {
            [] => DirectoryId::DIRECTORY_MIGRATING,
            [only] => only,
            _ => DirectoryId::DIRECTORY_UNASSIGNED,
        }
    }

    pub fn has_online_directory(&self, directory: DirectoryId) -> bool {
        self.log_dirs.is_empty()
            || directory == DirectoryId::DIRECTORY_UNASSIGNED
            || directory == DirectoryId::DIRECTORY_MIGRATING
            || self.log_dirs.contains(&directory)
    }
}

/// One controller (KIP-919).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    pub id: BrokerId,
    pub incarnation: Uuid,
    pub zk_migration_ready: bool,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
}

/// Every node that registered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cluster {
    pub(crate) brokers: OrdMap<BrokerId, Arc<Broker>>,
    pub(crate) controllers: OrdMap<BrokerId, Arc<Controller>>,
}

impl Cluster {
    pub fn broker(&self, id: BrokerId) -> Option<&Arc<Broker>> {
        self.brokers.get(&id)
    }

    /// By id, fenced ones included.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values()
    }

    pub fn broker_count(&self) -> usize {
        self.brokers.len()
    }

    /// Brokers that clients may talk to: not fenced.
    pub fn alive(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values().filter(|broker| !broker.fenced)
    }

    pub fn is_alive(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| !broker.fenced)
    }

    pub fn is_active(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_active())
    }

    pub fn controller(&self, id: BrokerId) -> Option<&Arc<Controller>> {
        self.controllers.get(&id)
    }

    pub fn controllers(&self) -> impl Iterator<Item = &Arc<Controller>> {
        self.controllers.values()
    }
}
