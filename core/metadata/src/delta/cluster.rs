//! Replays what records say about brokers and controllers.
//!
//! Sources: Kafka `ClusterDelta`, `BrokerRegistration`, KIP-841, KIP-1066.

use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId};
use barnabas_wire::messages::{
    BrokerRegistrationChangeRecord, FenceBrokerRecord, RegisterBrokerRecord, RegisterControllerRecord,
    UnfenceBrokerRecord, UnregisterBrokerRecord, UnregisterControllerRecord,
};

use super::{Delta, ReplayError};
use crate::{Broker, Controller, Endpoint, FeatureRange};

impl Delta {
    pub(super) fn register_broker(&mut self, record: &RegisterBrokerRecord) {
        let endpoints = record.end_points.iter().map(|endpoint| Endpoint {
            listener: endpoint.name.text(),
            host: endpoint.host.text(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
        });
        let features = record.features.iter().map(|feature| FeatureRange {
            name: feature.name.text(),
            min: feature.min_supported_version,
            max: feature.max_supported_version,
        });
        let mut log_dirs = record.log_dirs.clone();
        log_dirs.sort_unstable();
        let mut cordoned_log_dirs = record.cordoned_log_dirs.clone();
        if let Some(dirs) = &mut cordoned_log_dirs {
            dirs.sort_unstable();
        }
        let broker = Broker {
            id: BrokerId(record.broker_id),
            epoch: BrokerEpoch(record.broker_epoch),
            incarnation: record.incarnation_id,
            endpoints: endpoints.collect(),
            features: by_name(features.collect()),
            rack: record.rack.as_ref().map(barnabas_wire::Str::text),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            is_migrating_zk: record.is_migrating_zk_broker,
            log_dirs,
            cordoned_log_dirs,
        };
        self.changes.brokers.insert(broker.id);
        self.image.cluster.brokers.insert(broker.id, Arc::new(broker));
    }

    pub(super) fn unregister_broker(&mut self, record: &UnregisterBrokerRecord) -> Result<(), ReplayError> {
        let id = BrokerId(record.broker_id);
        self.broker_at("UnregisterBrokerRecord", id, record.broker_epoch)?;
        self.image.cluster.brokers.remove(&id);
        Ok(())
    }

    pub(super) fn fence_broker(&mut self, record: &FenceBrokerRecord) -> Result<(), ReplayError> {
        self.broker_at("FenceBrokerRecord", BrokerId(record.id), record.epoch)?.fenced = true;
        Ok(())
    }

    pub(super) fn unfence_broker(&mut self, record: &UnfenceBrokerRecord) -> Result<(), ReplayError> {
        self.broker_at("UnfenceBrokerRecord", BrokerId(record.id), record.epoch)?.fenced = false;
        Ok(())
    }

    pub(super) fn change_broker(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), ReplayError> {
        const NAME: &str = "BrokerRegistrationChangeRecord";
        let broker = self.broker_at(NAME, BrokerId(record.broker_id), record.broker_epoch)?;
        let unknown =
            |field, value: i8| ReplayError::UnknownValue { record: NAME, field, value: value.into() };
        match record.fenced {
            0 => {}
            1 => broker.fenced = true,
            -1 => broker.fenced = false,
            other => return Err(unknown("fenced", other)),
        }
        match record.in_controlled_shutdown {
            0 => {}
            1 => broker.in_controlled_shutdown = true,
            other => return Err(unknown("in controlled shutdown", other)),
        }
        if !record.log_dirs.is_empty() {
            broker.log_dirs = record.log_dirs.clone();
            broker.log_dirs.sort_unstable();
        }
        if let Some(cordoned) = &record.cordoned_log_dirs {
            let mut cordoned = cordoned.clone();
            cordoned.sort_unstable();
            broker.cordoned_log_dirs = Some(cordoned);
        }
        Ok(())
    }

    pub(super) fn register_controller(&mut self, record: &RegisterControllerRecord) {
        let endpoints = record.end_points.iter().map(|endpoint| Endpoint {
            listener: endpoint.name.text(),
            host: endpoint.host.text(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
        });
        let features = record.features.iter().map(|feature| FeatureRange {
            name: feature.name.text(),
            min: feature.min_supported_version,
            max: feature.max_supported_version,
        });
        let controller = Controller {
            id: BrokerId(record.controller_id),
            incarnation: record.incarnation_id,
            zk_migration_ready: record.zk_migration_ready,
            endpoints: endpoints.collect(),
            features: by_name(features.collect()),
        };
        self.changes.controllers.insert(controller.id);
        self.image.cluster.controllers.insert(controller.id, Arc::new(controller));
    }

    pub(super) fn unregister_controller(&mut self, record: &UnregisterControllerRecord) {
        let id = BrokerId(record.controller_id);
        self.image.cluster.controllers.remove(&id);
        self.changes.controllers.insert(id);
    }

    /// The broker to be changed, if it is registered at the epoch that the record was written for.
    fn broker_at(
        &mut self,
        record: &'static str,
        id: BrokerId,
        epoch: i64,
    ) -> Result<&mut Broker, ReplayError> {
        let unknown = ReplayError::UnknownBroker { record, id };
        let broker = self.image.cluster.brokers.get_mut(&id).ok_or(unknown)?;
        let given = BrokerEpoch(epoch);
        if broker.epoch != given {
            return Err(ReplayError::BrokerEpoch { record, id, given, registered: broker.epoch });
        }
        self.changes.brokers.insert(id);
        Ok(Arc::make_mut(broker))
    }
}

/// Sorted by name: Kafka's record lists the features in the order of a hash map.
fn by_name(mut features: Vec<FeatureRange>) -> Vec<FeatureRange> {
    features.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    features
}
