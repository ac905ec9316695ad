//! An image as records: what a snapshot holds, and in which version each record is written.
//!
//! The records are replayable from empty; the level of `metadata.version` comes first, since it says how to read the
//! rest. How they become a file is core/quorum's.
//!
//! Always true: replaying [`records`] on an empty [`crate::Delta`] gives an image that is equal, as long as nothing in
//! it is above its `metadata.version` (the controller sees to that).
//!
//! Source: Kafka `MetadataImage.write` and the `write` of each part.

use barnabas_base::DirectoryId;
use barnabas_wire::messages::client_quota_record::EntityData;
use barnabas_wire::messages::register_broker_record::{BrokerEndpoint, BrokerFeature};
use barnabas_wire::messages::register_controller_record::{ControllerEndpoint, ControllerFeature};
use barnabas_wire::messages::{
    AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord, DelegationTokenRecord, FeatureLevelRecord,
    PartitionRecord, ProducerIdsRecord, RegisterBrokerRecord, RegisterControllerRecord, TopicRecord,
    UserScramCredentialRecord,
};
use barnabas_wire::{MetadataRecord, Str};

use crate::access::{Acl, DelegationToken, QuotaEntity, ScramCredential, ScramMechanism};
use crate::features::name;
use crate::{Broker, Controller, Image, MetadataVersion, Partition, Topic};
use barnabas_base::{BrokerId, PartitionIndex, Text, TopicId, Uuid};

/// In which version a record is written while the cluster is at `version`.
pub fn record_version(record: &MetadataRecord, version: MetadataVersion) -> i16 {
    match record {
        MetadataRecord::RegisterBroker(_) => version.register_broker_version(),
        MetadataRecord::Partition(_) => version.partition_version(),
        MetadataRecord::PartitionChange(_) => version.partition_change_version(),
        MetadataRecord::BrokerRegistrationChange(_) => version.broker_registration_change_version(),
        _ => 0,
    }
}

/// The image as records, made one at a time.
pub fn records(image: &Image) -> impl Iterator<Item = MetadataRecord> + '_ {
    let version = image.metadata_version();
    let brokers = image.cluster.brokers().map(move |broker| broker_record(broker, version));
    let controllers = image.cluster.controllers().map(|controller| controller_record(controller));
    let topics = image.topics.iter().flat_map(move |topic| topic_records(topic, version));
    features(image)
        .chain(brokers)
        .chain(controllers)
        .chain(topics)
        .chain(configs(image))
        .chain(quotas(image))
        .chain(producer_ids(image))
        .chain(image.acls.iter().map(|(&id, acl)| acl_record(id, acl)))
        .chain(image.scram.iter().map(|((mechanism, user), of)| scram_record(*mechanism, user, of)))
        .chain(image.tokens.iter().map(|(id, token)| token_record(id, token)))
}

fn features(image: &Image) -> impl Iterator<Item = MetadataRecord> + '_ {
    image.features.all().map(|(name, level)| feature_record(name, level))
}

/// The record that finalizes a feature's level.
pub fn feature_record(name: &str, level: i16) -> MetadataRecord {
    debug_assert!(name != name::KRAFT, "the level of kraft.version is the quorum's");
    FeatureLevelRecord { name: Str::from(name), feature_level: level, ..FeatureLevelRecord::default() }.into()
}

/// The registration of a broker as it stands.
pub fn broker_record(broker: &Broker, version: MetadataVersion) -> MetadataRecord {
    let endpoints = broker.endpoints.iter().map(|endpoint| BrokerEndpoint {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
        ..BrokerEndpoint::default()
    });
    let features = broker.features.iter().map(|feature| BrokerFeature {
        name: Str::from(&feature.name),
        min_supported_version: feature.min,
        max_supported_version: feature.max,
        ..BrokerFeature::default()
    });
    let mut record = RegisterBrokerRecord {
        broker_id: broker.id.get(),
        is_migrating_zk_broker: broker.is_migrating_zk,
        incarnation_id: broker.incarnation,
        broker_epoch: broker.epoch.get(),
        end_points: endpoints.collect(),
        features: features.collect(),
        rack: broker.rack.as_ref().map(Str::from),
        fenced: broker.fenced,
        in_controlled_shutdown: broker.in_controlled_shutdown,
        ..RegisterBrokerRecord::default()
    };
    if version.has_directories() {
        record.log_dirs.clone_from(&broker.log_dirs);
    }
    if version.has_cordoned_log_dirs() {
        record.cordoned_log_dirs.clone_from(&broker.cordoned_log_dirs);
    }
    record.into()
}

/// A controller's registration as a record.
pub fn controller_record(controller: &Controller) -> MetadataRecord {
    let endpoints = controller.endpoints.iter().map(|endpoint| ControllerEndpoint {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
        ..ControllerEndpoint::default()
    });
    let features = controller.features.iter().map(|feature| ControllerFeature {
        name: Str::from(&feature.name),
        min_supported_version: feature.min,
        max_supported_version: feature.max,
        ..ControllerFeature::default()
    });
    RegisterControllerRecord {
        controller_id: controller.id.get(),
        incarnation_id: controller.incarnation,
        zk_migration_ready: controller.zk_migration_ready,
        end_points: endpoints.collect(),
        features: features.collect(),
        ..RegisterControllerRecord::default()
    }
    .into()
}

fn topic_records(topic: &Topic, version: MetadataVersion) -> impl Iterator<Item = MetadataRecord> + '_ {
    let record = TopicRecord { name: Str::from(&topic.name), topic_id: topic.id, ..TopicRecord::default() };
    let partitions = topic
        .partitions()
        .map(move |(index, partition)| partition_record(topic.id, index, partition, version));
    std::iter::once(MetadataRecord::from(record)).chain(partitions)
}

/// A partition's whole state.
pub fn partition_record(
    topic: TopicId,
    index: PartitionIndex,
    partition: &Partition,
    version: MetadataVersion,
) -> MetadataRecord {
    let placement = &*partition.placement;
    let some = |ids: &[BrokerId]| (!ids.is_empty()).then(|| numbers(ids));
    let mut record = PartitionRecord {
        partition_id: index.get(),
        topic_id: topic,
        replicas: numbers(&placement.replicas),
        isr: numbers(&placement.isr),
        removing_replicas: numbers(&placement.removing),
        adding_replicas: numbers(&placement.adding),
        leader: partition.leader.get(),
        leader_recovery_state: placement.recovery.code(),
        leader_epoch: partition.leader_epoch.get(),
        partition_epoch: partition.partition_epoch.get(),
        ..PartitionRecord::default()
    };
    if version.has_directories() {
        record.directories.clone_from(&placement.directories);
    } else {
        let lost = placement.directories.iter().any(|&at| at != DirectoryId::DIRECTORY_MIGRATING);
        debug_assert!(!lost, "directories are known below the level that has them");
    }
    if version.has_elr() {
        record.eligible_leader_replicas = some(&placement.elr);
        record.last_known_elr = some(&placement.last_known_elr);
    }
    record.into()
}

/// Broker ids as records and requests carry them.
pub fn numbers(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.get()).collect()
}

fn configs(image: &Image) -> impl Iterator<Item = MetadataRecord> + '_ {
    image.configs.iter().flat_map(|(resource, values)| {
        values.iter().map(move |(key, value)| {
            ConfigRecord {
                resource_type: resource.kind.code(),
                resource_name: Str::from(&resource.name),
                name: Str::from(key),
                value: Some(Str::from(value)),
                ..ConfigRecord::default()
            }
            .into()
        })
    })
}

fn quotas(image: &Image) -> impl Iterator<Item = MetadataRecord> + '_ {
    image.quotas.iter().flat_map(|(entity, values)| {
        values.iter().map(move |(key, &value)| {
            ClientQuotaRecord {
                entity: quota_entity(entity),
                key: Str::from(key),
                value,
                remove: false,
                ..ClientQuotaRecord::default()
            }
            .into()
        })
    })
}

/// A quota's entity as records carry it.
pub fn quota_entity(entity: &QuotaEntity) -> Vec<EntityData> {
    let part = |(kind, name): (&Text, &Option<Text>)| EntityData {
        entity_type: Str::from(kind),
        entity_name: name.as_ref().map(Str::from),
        ..EntityData::default()
    };
    entity.iter().map(part).collect()
}

fn producer_ids(image: &Image) -> impl Iterator<Item = MetadataRecord> {
    let next_producer_id = image.next_producer_id;
    next_producer_id
        .is_some()
        .then(move || {
            // The snapshot leaves out the broker that allocated last (Kafka `ProducerIdsImage.write`).
            ProducerIdsRecord {
                broker_id: -1,
                broker_epoch: -1,
                next_producer_id: next_producer_id.get(),
                ..ProducerIdsRecord::default()
            }
            .into()
        })
        .into_iter()
}

/// An ACL as a record.
pub fn acl_record(id: Uuid, acl: &Acl) -> MetadataRecord {
    AccessControlEntryRecord {
        id,
        resource_type: acl.resource_type,
        resource_name: Str::from(&acl.resource_name),
        pattern_type: acl.pattern_type,
        principal: Str::from(&acl.principal),
        host: Str::from(&acl.host),
        operation: acl.operation,
        permission_type: acl.permission,
        ..AccessControlEntryRecord::default()
    }
    .into()
}

fn scram_record(mechanism: ScramMechanism, user: &Text, credential: &ScramCredential) -> MetadataRecord {
    UserScramCredentialRecord {
        name: Str::from(user),
        mechanism: mechanism.code(),
        salt: credential.salt.clone(),
        stored_key: credential.stored_key.clone(),
        server_key: credential.server_key.clone(),
        iterations: credential.iterations,
        ..UserScramCredentialRecord::default()
    }
    .into()
}

/// The record of a delegation token.
pub fn token_record(id: &Text, token: &DelegationToken) -> MetadataRecord {
    DelegationTokenRecord {
        owner: Str::from(&token.owner),
        requester: Str::from(&token.requester),
        renewers: token.renewers.iter().map(Str::from).collect(),
        issue_timestamp: token.issued.0,
        max_timestamp: token.expires_at_the_latest.0,
        expiration_timestamp: token.expires.0,
        token_id: Str::from(id),
        ..DelegationTokenRecord::default()
    }
    .into()
}
