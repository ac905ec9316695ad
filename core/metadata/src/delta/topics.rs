//! Replays what records say about topics and partitions.
//!
//! Sources: Kafka `TopicsDelta`, `TopicDelta`, `PartitionRegistration`, KIP-858, KIP-966.

use barnabas_base::{BrokerId, DirectoryId, LeaderEpoch, PartitionEpoch, PartitionIndex, TopicId, Uuid};
use barnabas_wire::messages::{
    ClearElrRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};

use super::{Delta, ReplayError};
use crate::topics::PARTITIONS_PER_TOPIC_MAX;
use crate::{LeaderRecoveryState, Partition, Placement, Resource, Topic, TopicChange};

/// The leader in a PartitionChangeRecord that leaves the leader as it is.
const NO_LEADER_CHANGE: i32 = -2;
/// The recovery state in a PartitionChangeRecord that leaves it as it is.
const NO_RECOVERY_CHANGE: i8 = -1;
impl Delta {
    pub(super) fn topic(&mut self, record: &TopicRecord) -> Result<(), ReplayError> {
        let name = record.name.text();
        if self.image.topics.id_of(&name).is_some() || self.image.topics.by_id(record.topic_id).is_some() {
            return Err(ReplayError::TopicExists { name });
        }
        if !self.changes.everything {
            let change = TopicChange { name: name.clone(), created: true, ..TopicChange::default() };
            self.changes.topics.insert(record.topic_id, change);
        }
        self.image.topics.insert(Topic::new(name, record.topic_id));
        Ok(())
    }

    pub(super) fn remove_topic(&mut self, record: &RemoveTopicRecord) -> Result<(), ReplayError> {
        let id = record.topic_id;
        let unknown = ReplayError::UnknownTopic { record: "RemoveTopicRecord", id };
        let topic = self.image.topics.remove(id).ok_or(unknown)?;
        let resource = Resource::topic(topic.name.clone());
        if self.image.configs.remove(&resource) {
            self.changes.configs.insert(resource);
        }
        if self.changes.everything {
            self.changes.removed.push(id);
            return Ok(());
        }
        let change = self.changes.topics.entry(id).or_default();
        change.name = topic.name.clone();
        change.deleted = true;
        change.partitions.clear();
        Ok(())
    }

    pub(super) fn partition(&mut self, record: &PartitionRecord) -> Result<(), ReplayError> {
        let (index, partition) = self.new_partition(record)?;
        self.put("PartitionRecord", record.topic_id, index, partition)
    }

    /// What a record says of a partition.
    pub(super) fn new_partition(
        &mut self,
        record: &PartitionRecord,
    ) -> Result<(PartitionIndex, Partition), ReplayError> {
        const NAME: &str = "PartitionRecord";
        let index = PartitionIndex(record.partition_id);
        let id = record.topic_id;
        let field = |field| ReplayError::Field { record: NAME, id, partition: index, field };
        if !(0..PARTITIONS_PER_TOPIC_MAX).contains(&index.get()) {
            return Err(field("partition id"));
        }
        let recovery = LeaderRecoveryState::from_code(record.leader_recovery_state)
            .ok_or_else(|| field("leader recovery state"))?;
        let directories =
            directories(&record.directories, record.replicas.len()).ok_or_else(|| field("directories"))?;
        let placement = self.image.topics.share(Placement {
            replicas: brokers(&record.replicas),
            directories,
            isr: brokers(&record.isr),
            elr: brokers(record.eligible_leader_replicas.as_deref().unwrap_or_default()),
            last_known_elr: brokers(record.last_known_elr.as_deref().unwrap_or_default()),
            adding: brokers(&record.adding_replicas),
            removing: brokers(&record.removing_replicas),
            recovery,
        });
        let partition = Partition {
            leader: BrokerId(record.leader),
            leader_epoch: LeaderEpoch(record.leader_epoch),
            partition_epoch: PartitionEpoch(record.partition_epoch),
            placement,
        };
        Ok((index, partition))
    }

    pub(super) fn partition_change(&mut self, record: &PartitionChangeRecord) -> Result<(), ReplayError> {
        const NAME: &str = "PartitionChangeRecord";
        let index = PartitionIndex(record.partition_id);
        let id = record.topic_id;
        let topic = self.image.topics.by_id(id).ok_or(ReplayError::UnknownTopic { record: NAME, id })?;
        let before = topic.partition(index).ok_or_else(|| ReplayError::UnknownPartition {
            record: NAME,
            topic: topic.name.clone(),
            partition: index,
        })?;
        let partition = merge(before, record).map_err(|field| ReplayError::Field {
            record: NAME,
            id,
            partition: index,
            field,
        })?;
        let placement = self.image.topics.share(partition.1);
        self.put(NAME, id, index, Partition { placement, ..partition.0 })
    }

    pub(super) fn clear_elr(&mut self, record: &ClearElrRecord) -> Result<(), ReplayError> {
        if !record.topic_name.is_empty() {
            let name = record.topic_name.text();
            let id = self.image.topics.id_of(&name).ok_or(ReplayError::UnknownTopicName { name })?;
            return self.clear_elr_of(id);
        }
        let all: Vec<TopicId> = self.image.topics.iter().map(|topic| topic.id).collect();
        all.into_iter().try_for_each(|id| self.clear_elr_of(id))
    }

    fn clear_elr_of(&mut self, id: TopicId) -> Result<(), ReplayError> {
        let Some(topic) = self.image.topics.by_id(id).cloned() else { return Ok(()) };
        for (index, partition) in topic.partitions() {
            if partition.elr().is_empty() && partition.placement.last_known_elr.is_empty() {
                continue;
            }
            let change = PartitionChangeRecord {
                partition_id: index.get(),
                topic_id: id,
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                ..PartitionChangeRecord::default()
            };
            self.partition_change(&change)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        record: &'static str,
        id: TopicId,
        index: PartitionIndex,
        partition: Partition,
    ) -> Result<(), ReplayError> {
        if !self.image.topics.set_partition(id, index, partition) {
            return Err(ReplayError::UnknownTopic { record, id });
        }
        if self.changes.everything {
            return Ok(());
        }
        let change = self.changes.topics.entry(id).or_default();
        if change.name.is_empty()
            && let Some(topic) = self.image.topics.by_id(id)
        {
            change.name = topic.name.clone();
        }
        change.partitions.insert(index);
        Ok(())
    }
}

/// `partition` with the change on top, and its new placement; the name of the field that does not fit otherwise.
fn merge(
    partition: &Partition,
    change: &PartitionChangeRecord,
) -> Result<(Partition, Placement), &'static str> {
    let mut placement = (*partition.placement).clone();
    let set = |to: &mut Vec<BrokerId>, from: &Option<Vec<i32>>| {
        if let Some(from) = from {
            *to = brokers(from);
        }
    };
    set(&mut placement.replicas, &change.replicas);
    set(&mut placement.isr, &change.isr);
    set(&mut placement.adding, &change.adding_replicas);
    set(&mut placement.removing, &change.removing_replicas);
    set(&mut placement.elr, &change.eligible_leader_replicas);
    set(&mut placement.last_known_elr, &change.last_known_elr);
    let given = change.directories.as_deref().unwrap_or(&placement.directories);
    placement.directories = directories(given, placement.replicas.len()).ok_or("directories")?;
    if change.leader_recovery_state != NO_RECOVERY_CHANGE {
        placement.recovery =
            LeaderRecoveryState::from_code(change.leader_recovery_state).ok_or("leader recovery state")?;
    }
    let mut after = partition.clone();
    after.partition_epoch = PartitionEpoch(partition.partition_epoch.get() + 1);
    if change.leader != NO_LEADER_CHANGE {
        after.leader = BrokerId(change.leader);
        after.leader_epoch = LeaderEpoch(partition.leader_epoch.get() + 1);
    }
    Ok((after, placement))
}

fn brokers(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

/// One directory for each replica. A record without directories gives each replica the unassigned directory;
/// otherwise the numbers of directories and replicas must agree.
fn directories(given: &[Uuid], replicas: usize) -> Option<Vec<DirectoryId>> {
    if given.iter().all(|&directory| directory == DirectoryId::DIRECTORY_MIGRATING) {
        return Some(vec![DirectoryId::DIRECTORY_MIGRATING; replicas]);
    }
    (given.len() == replicas).then(|| given.to_vec())
}
