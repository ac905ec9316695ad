//! From one image to the next: replays records, notes what they change, keeps a metadata transaction out of sight until
//! it ends.
//!
//! Always true:
//! 1. a record that cannot be replayed is an error that stops the reader, never skipped: its node would believe
//!    something that no other node believes
//! 2. a metadata transaction becomes visible as a whole (KIP-868): between its first record and its
//!    last, [`Delta::take`] returns the state from before it
//! 3. [`Changes`] names everything that differs between two images that `take` handed out
//!
//! Metadata path 3 of 4. Before: core/quorum. After: the reader of the image.
//!
//! Sources: Kafka `MetadataDelta`, `MetadataBatchLoader`, `PartitionRegistration.merge`, KIP-868.

mod cluster;
mod topics;

use barnabas_base::{BrokerEpoch, BrokerId, PartitionIndex, Text, TimestampMs, TopicId, Uuid};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::{
    AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord, DelegationTokenRecord, FeatureLevelRecord,
    RemoveUserScramCredentialRecord, UserScramCredentialRecord,
};

use crate::access::{Acl, DelegationToken, QuotaEntity, ScramCredential, ScramMechanism};
use crate::features::name;
use crate::{Changes, Image, MetadataVersion, Provenance, Resource, ResourceType, Topic};
use std::sync::Arc;

/// Why a record cannot be replayed on top of what was read before it. The log and this node do not fit together: the
/// node stops, and its operator looks for a build that knows the record, or for the damage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error(
        "metadata.version {level} is none that this build supports ({} to {})",
        MetadataVersion::MIN,
        MetadataVersion::LATEST
    )]
    MetadataVersion { level: i16 },
    #[error("{record} names topic {id}, which does not exist")]
    UnknownTopic { record: &'static str, id: TopicId },
    #[error("ClearElrRecord names topic {name}, which does not exist")]
    UnknownTopicName { name: Text },
    #[error("topic {name} exists already")]
    TopicExists { name: Text },
    #[error("{record} names partition {partition} of topic {topic}, which does not exist")]
    UnknownPartition { record: &'static str, topic: Text, partition: PartitionIndex },
    #[error("{record} for partition {partition} of topic {id} has field {field} out of range")]
    Field { record: &'static str, id: TopicId, partition: PartitionIndex, field: &'static str },
    #[error("{record} names broker {id}, which is not registered")]
    UnknownBroker { record: &'static str, id: BrokerId },
    #[error("{record} names broker {id} at epoch {given}, but it is registered at epoch {registered}")]
    BrokerEpoch { record: &'static str, id: BrokerId, given: BrokerEpoch, registered: BrokerEpoch },
    #[error("{record} has {field} {value}, which this build does not know")]
    UnknownValue { record: &'static str, field: &'static str, value: i64 },
    #[error("RemoveAccessControlEntryRecord names ACL {id}, which does not exist")]
    UnknownAcl { id: Uuid },
    #[error("a metadata transaction begins inside another")]
    NestedTransaction,
    #[error("{record} outside a metadata transaction")]
    NoTransaction { record: &'static str },
}

/// What to go back to if the transaction is aborted, and what may be seen until it ends.
#[derive(Debug, Clone)]
struct Savepoint {
    image: Image,
    changes: Changes,
}

/// The next image in the making.
#[derive(Debug, Clone)]
pub struct Delta {
    image: Image,
    changes: Changes,
    before_transaction: Option<Box<Savepoint>>,
    /// Topics of a snapshot that are not in the image yet: [`Delta::load`].
    loading: Vec<Arc<Topic>>,
    /// Placements are swept when there are twice as many as after the last sweep.
    sweep_placements_at: usize,
}

const SWEEP_PLACEMENTS_MIN: usize = 4096;

impl Delta {
    /// Starts from `image`, with nothing changed.
    pub fn new(image: Image) -> Self {
        let sweep_placements_at = SWEEP_PLACEMENTS_MIN.max(2 * image.topics.placement_count());
        let changes = Changes::default();
        Self { image, changes, before_transaction: None, loading: Vec::new(), sweep_placements_at }
    }

    /// From here on the next [`Delta::take`] says that anything may have changed, without a list. For a node that
    /// loads its log: a list would be as long as the cluster is large.
    pub fn mark_everything(&mut self) {
        if let Some(before) = &mut self.before_transaction {
            before.changes.become_everything();
        }
        self.changes.become_everything();
    }

    /// The state with every record so far, a transaction that is open included: what a controller decides on.
    pub fn image(&self) -> &Image {
        &self.image
    }

    pub fn in_transaction(&self) -> bool {
        self.before_transaction.is_some()
    }

    /// Notes how far the log was read. To be called after the records of each batch.
    pub fn advance(&mut self, provenance: Provenance) {
        self.image.provenance = provenance;
    }

    /// The state that may be seen, and what changed since the last `take`.
    pub fn take(&mut self) -> (Image, Changes) {
        if let Some(before) = &mut self.before_transaction {
            return (before.image.clone(), std::mem::take(&mut before.changes));
        }
        if self.image.topics.placement_count() > self.sweep_placements_at {
            self.image.topics.forget_unused_placements();
            self.sweep_placements_at = SWEEP_PLACEMENTS_MIN.max(2 * self.image.topics.placement_count());
        }
        (self.image.clone(), std::mem::take(&mut self.changes))
    }

    /// The last [`Delta::take`].
    pub fn apply(mut self) -> (Image, Changes) {
        self.take()
    }

    /// [`Delta::replay`] for a snapshot's records, of which each topic's partitions follow the topic: they are put into
    /// the image by [`Delta::loaded`], all at once, at a third of the cost. For after [`Delta::mark_everything`]: no
    /// change is named.
    ///
    /// # Errors
    /// As for [`Delta::replay`].
    pub fn load(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            record if !self.changes.everything => {
                self.loaded()?;
                self.replay(record)
            }
            MetadataRecord::Topic(record) => {
                self.loading.push(Arc::new(Topic::new(record.name.text(), record.topic_id)));
                Ok(())
            }
            MetadataRecord::Partition(record)
                if self.loading.last().is_some_and(|topic| topic.id == record.topic_id) =>
            {
                let (index, partition) = self.new_partition(record)?;
                if let Some(topic) = self.loading.last_mut() {
                    Arc::make_mut(topic).set(index, partition);
                }
                Ok(())
            }
            MetadataRecord::Partition(_)
            | MetadataRecord::PartitionChange(_)
            | MetadataRecord::RemoveTopic(_)
            | MetadataRecord::ClearElr(_) => {
                self.loaded()?;
                self.replay(record)
            }
            record => self.replay(record),
        }
    }

    /// The last record of the snapshot was loaded.
    ///
    /// # Errors
    /// [`ReplayError::TopicExists`]
    pub fn loaded(&mut self) -> Result<(), ReplayError> {
        let inserted = self.image.topics.insert_all(std::mem::take(&mut self.loading));
        inserted.map_err(|twice| ReplayError::TopicExists { name: twice.name.clone() })
    }

    /// Puts one record on top of what was read.
    ///
    /// # Errors
    /// The record does not fit. The delta is then of no more use.
    pub fn replay(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::RegisterBroker(record) => self.register_broker(record),
            MetadataRecord::UnregisterBroker(record) => return self.unregister_broker(record),
            MetadataRecord::Topic(record) => return self.topic(record),
            MetadataRecord::Partition(record) => return self.partition(record),
            MetadataRecord::Config(record) => return self.config(record),
            MetadataRecord::PartitionChange(record) => return self.partition_change(record),
            MetadataRecord::FenceBroker(record) => return self.fence_broker(record),
            MetadataRecord::UnfenceBroker(record) => return self.unfence_broker(record),
            MetadataRecord::RemoveTopic(record) => return self.remove_topic(record),
            MetadataRecord::DelegationToken(record) => self.delegation_token(record),
            MetadataRecord::UserScramCredential(record) => return self.scram(record),
            MetadataRecord::FeatureLevel(record) => return self.feature_level(record),
            MetadataRecord::ClientQuota(record) => self.client_quota(record),
            MetadataRecord::ProducerIds(record) => {
                self.image.next_producer_id = record.next_producer_id.into();
                self.changes.producer_ids = true;
            }
            MetadataRecord::BrokerRegistrationChange(record) => return self.change_broker(record),
            MetadataRecord::AccessControlEntry(record) => self.acl(record),
            MetadataRecord::RemoveAccessControlEntry(record) => return self.remove_acl(record.id),
            // The migration from ZooKeeper is over before Kafka 4: its state decides nothing any more.
            MetadataRecord::NoOp(_) | MetadataRecord::ZkMigrationState(_) => {}
            MetadataRecord::RemoveUserScramCredential(record) => return self.remove_scram(record),
            MetadataRecord::BeginTransaction(_) => return self.begin(),
            MetadataRecord::EndTransaction(_) => return self.end(),
            MetadataRecord::AbortTransaction(_) => return self.abort(),
            MetadataRecord::RemoveDelegationToken(record) => {
                self.image.tokens.remove(&*record.token_id);
                self.changes.tokens = true;
            }
            MetadataRecord::RegisterController(record) => self.register_controller(record),
            MetadataRecord::ClearElr(record) => return self.clear_elr(record),
            MetadataRecord::UnregisterController(record) => self.unregister_controller(record),
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), ReplayError> {
        if self.in_transaction() {
            return Err(ReplayError::NestedTransaction);
        }
        let changes = std::mem::take(&mut self.changes);
        self.before_transaction = Some(Box::new(Savepoint { image: self.image.clone(), changes }));
        Ok(())
    }

    fn end(&mut self) -> Result<(), ReplayError> {
        let no_transaction = ReplayError::NoTransaction { record: "EndTransactionRecord" };
        let mut before = self.before_transaction.take().ok_or(no_transaction)?;
        before.changes.merge(std::mem::take(&mut self.changes));
        self.changes = before.changes;
        Ok(())
    }

    fn abort(&mut self) -> Result<(), ReplayError> {
        let no_transaction = ReplayError::NoTransaction { record: "AbortTransactionRecord" };
        let before = self.before_transaction.take().ok_or(no_transaction)?;
        self.image = before.image;
        self.changes = before.changes;
        Ok(())
    }

    fn feature_level(&mut self, record: &FeatureLevelRecord) -> Result<(), ReplayError> {
        match &*record.name {
            name::METADATA => {
                let level = record.feature_level;
                let version =
                    MetadataVersion::from_level(level).ok_or(ReplayError::MetadataVersion { level })?;
                self.image.features.set_metadata_version(version);
            }
            // Old releases wrote it here by mistake; its level is the quorum's (KAFKA-18979).
            name::KRAFT => return Ok(()),
            other => self.image.features.set_level(other, record.feature_level),
        }
        self.changes.features = true;
        Ok(())
    }

    fn config(&mut self, record: &ConfigRecord) -> Result<(), ReplayError> {
        let kind = ResourceType::from_code(record.resource_type).ok_or(ReplayError::UnknownValue {
            record: "ConfigRecord",
            field: "resource type",
            value: record.resource_type.into(),
        })?;
        let resource = Resource::new(kind, record.resource_name.text());
        let value = record.value.as_ref().map(|value| value.text());
        self.image.configs.set(resource.clone(), record.name.text(), value);
        self.changes.configs.insert(resource);
        Ok(())
    }

    fn client_quota(&mut self, record: &ClientQuotaRecord) {
        let name_of = |name: &Option<barnabas_wire::Str>| name.as_ref().map(barnabas_wire::Str::text);
        let entity: QuotaEntity =
            record.entity.iter().map(|part| (part.entity_type.text(), name_of(&part.entity_name))).collect();
        if record.remove {
            if let Some(values) = self.image.quotas.get_mut(&entity) {
                values.remove(&*record.key);
                if values.is_empty() {
                    self.image.quotas.remove(&entity);
                }
            }
        } else {
            let values = self.image.quotas.entry(entity.clone()).or_default();
            values.insert(record.key.text(), record.value);
        }
        self.changes.quotas.insert(entity);
    }

    fn acl(&mut self, record: &AccessControlEntryRecord) {
        let acl = Acl {
            resource_type: record.resource_type,
            resource_name: record.resource_name.text(),
            pattern_type: record.pattern_type,
            principal: record.principal.text(),
            host: record.host.text(),
            operation: record.operation,
            permission: record.permission_type,
        };
        self.image.acls.insert(record.id, acl);
        self.changes.acls = true;
    }

    fn remove_acl(&mut self, id: Uuid) -> Result<(), ReplayError> {
        self.image.acls.remove(&id).ok_or(ReplayError::UnknownAcl { id })?;
        self.changes.acls = true;
        Ok(())
    }

    fn scram(&mut self, record: &UserScramCredentialRecord) -> Result<(), ReplayError> {
        let mechanism = scram_mechanism("UserScramCredentialRecord", record.mechanism)?;
        // Copies: the record's bytes are slices of a whole batch.
        let own = bytes::Bytes::copy_from_slice;
        let credential = ScramCredential {
            salt: own(&record.salt),
            stored_key: own(&record.stored_key),
            server_key: own(&record.server_key),
            iterations: record.iterations,
        };
        self.image.scram.insert((mechanism, record.name.text()), credential);
        self.changes.scram = true;
        Ok(())
    }

    fn remove_scram(&mut self, record: &RemoveUserScramCredentialRecord) -> Result<(), ReplayError> {
        let mechanism = scram_mechanism("RemoveUserScramCredentialRecord", record.mechanism)?;
        self.image.scram.remove(&(mechanism, record.name.text()));
        self.changes.scram = true;
        Ok(())
    }

    fn delegation_token(&mut self, record: &DelegationTokenRecord) {
        let token = DelegationToken {
            owner: record.owner.text(),
            requester: record.requester.text(),
            renewers: record.renewers.iter().map(barnabas_wire::Str::text).collect(),
            issued: TimestampMs(record.issue_timestamp),
            expires: TimestampMs(record.expiration_timestamp),
            expires_at_the_latest: TimestampMs(record.max_timestamp),
        };
        self.image.tokens.insert(record.token_id.text(), token);
        self.changes.tokens = true;
    }
}

fn scram_mechanism(record: &'static str, code: i8) -> Result<ScramMechanism, ReplayError> {
    let value = i64::from(code);
    ScramMechanism::from_code(code).ok_or(ReplayError::UnknownValue { record, field: "mechanism", value })
}

#[cfg(test)]
mod tests;
