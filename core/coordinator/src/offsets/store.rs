//! Every offset of the shard, by group, topic and partition, and those that open transactions hold.
//!
//! Always true:
//! 1. what clients see is on disk ([`Committed`])
//! 2. no group, topic or partition is kept without an offset in it
//! 3. an offset of a transaction counts once its marker says so, unless a later commit was faster (`written`)
//! 4. an offset of a transaction that is on its way to disk holds up those who ask for stable offsets, as one that is
//!    there

use std::collections::BTreeMap;

use barnabas_base::{Map, PartitionIndex, ProducerId, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::OffsetCommitValue;

use crate::framework::{BatchId, Committed};
use crate::records::OffsetKey;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OffsetEntry {
    pub offset: i64,
    /// −1: not known.
    pub leader_epoch: i32,
    /// `None` for the empty string, which nearly everybody commits.
    pub metadata: Option<Text>,
    pub commit_timestamp: i64,
    /// −1: the broker's retention holds.
    pub expire_timestamp: i64,
    /// Zero: committed by name, by a client of before version 10.
    pub topic_id: TopicId,
    /// The record's place among all that this shard has seen: which of two commits came later.
    pub written: i64,
}

impl OffsetEntry {
    pub fn from_record(value: &OffsetCommitValue, written: i64) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: (!value.metadata.is_empty()).then(|| value.metadata.text()),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: value.expire_timestamp,
            topic_id: value.topic_id,
            written,
        }
    }

    pub fn to_record(&self) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: self.metadata(),
            commit_timestamp: self.commit_timestamp,
            expire_timestamp: self.expire_timestamp,
            topic_id: self.topic_id,
            ..Default::default()
        }
    }

    pub fn metadata(&self) -> Str {
        self.metadata.as_ref().map(Str::from).unwrap_or_default()
    }
}

type Partitions = BTreeMap<PartitionIndex, Committed<OffsetEntry>>;
/// One group's offsets by topic and partition.
pub(crate) type GroupOffsets = BTreeMap<Text, Partitions>;

/// What one producer's transaction holds.
type InTransaction = BTreeMap<OffsetKey, Committed<OffsetEntry>>;

#[derive(Debug, Default)]
pub(crate) struct Offsets {
    by_group: Map<Text, GroupOffsets>,
    /// Offsets that are in the log, or on their way there, and wait for their transaction's end.
    in_transactions: BTreeMap<ProducerId, InTransaction>,
    /// Which producers have such offsets in a group.
    producers: Map<Text, Vec<ProducerId>>,
}

impl Offsets {
    pub fn len(&self) -> usize {
        self.by_group.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    pub fn by_group(&self) -> impl Iterator<Item = (&Text, &GroupOffsets)> {
        self.by_group.iter()
    }

    pub fn of_group(&self, group: &str) -> Option<&GroupOffsets> {
        self.by_group.get(group)
    }

    /// A group's name as it is kept here, or a copy.
    pub fn group(&self, name: &str) -> Text {
        self.by_group.get_key_value(name).map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    /// Likewise the name of a topic.
    pub fn topic(&self, group: &str, name: &str) -> Text {
        let known = self.by_group.get(group).and_then(|topics| topics.get_key_value(name));
        known.map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    pub fn get(
        &self,
        group: &str,
        topic: &str,
        partition: PartitionIndex,
    ) -> Option<&Committed<OffsetEntry>> {
        self.by_group.get(group)?.get(topic)?.get(&partition)
    }

    /// `entry` (or nothing) is on its way to the log in `batch`.
    pub fn change(&mut self, batch: BatchId, key: &OffsetKey, entry: Option<OffsetEntry>) {
        self.slot(key).change(batch, entry);
    }

    /// `batch` is on disk. Returns whether there is an offset now.
    pub fn commit(&mut self, batch: BatchId, key: &OffsetKey) -> bool {
        let slot = self.slot(key);
        slot.commit(batch);
        let (is_there, is_gone) = (slot.committed().is_some(), slot.is_gone());
        if is_gone {
            self.drop_if_gone(key);
        }
        is_there
    }

    pub fn revert(&mut self, batch: BatchId, key: &OffsetKey) {
        self.slot(key).revert(batch);
        self.drop_if_gone(key);
    }

    /// A record of the log, while loading. There are millions of them: nothing is allocated for a group and a topic
    /// that are known.
    pub fn load(&mut self, group: &str, topic: &str, partition: PartitionIndex, entry: OffsetEntry) {
        self.slot_named(group, topic, partition).settle(Some(entry));
    }

    /// A tombstone of the log, while loading.
    pub fn load_tombstone(&mut self, key: &OffsetKey) {
        self.slot(key).settle(None);
        self.drop_if_gone(key);
        self.forget_in_transactions(key);
    }

    /// A record of an open transaction, while loading.
    pub fn load_in_transaction(&mut self, producer: ProducerId, key: &OffsetKey, entry: OffsetEntry) {
        self.slot_in_transaction(producer, key).settle(Some(entry));
    }

    /// `entry` is on its way to the log in `batch`, as part of the producer's transaction.
    pub fn change_in_transaction(
        &mut self,
        batch: BatchId,
        producer: ProducerId,
        key: &OffsetKey,
        entry: OffsetEntry,
    ) {
        self.slot_in_transaction(producer, key).change(batch, Some(entry));
    }

    pub fn commit_in_transaction(&mut self, batch: BatchId, producer: ProducerId, key: &OffsetKey) {
        if let Some(slot) = self.in_transactions.get_mut(&producer).and_then(|held| held.get_mut(key)) {
            slot.commit(batch);
        }
    }

    pub fn revert_in_transaction(&mut self, batch: BatchId, producer: ProducerId, key: &OffsetKey) {
        if let Some(slot) = self.in_transactions.get_mut(&producer).and_then(|held| held.get_mut(key)) {
            slot.revert(batch);
        }
        self.drop_what_is_gone(producer);
    }

    /// A transaction has ended: its marker is on disk, and so is everything before it. What is on its way yet comes
    /// after the marker and belongs to the next one. Kafka: `OffsetMetadataManager.replayEndTransactionMarker`.
    pub fn end_transaction(&mut self, producer: ProducerId, committed: bool) {
        let Some(mut offsets) = self.in_transactions.remove(&producer) else { return };
        for (key, held) in &mut offsets {
            let Some(entry) = held.committed().cloned() else { continue };
            held.settle(None);
            if committed {
                let slot = self.slot(key);
                if slot.committed().is_none_or(|known| known.written < entry.written) {
                    slot.settle(Some(entry));
                }
            }
        }
        self.in_transactions.insert(producer, offsets);
        self.drop_what_is_gone(producer);
    }

    fn slot_in_transaction(&mut self, producer: ProducerId, key: &OffsetKey) -> &mut Committed<OffsetEntry> {
        let producers = self.producers.entry(key.group.clone()).or_default();
        if !producers.contains(&producer) {
            producers.push(producer);
        }
        self.in_transactions.entry(producer).or_default().entry(key.clone()).or_default()
    }

    /// Forgets what the producer's transaction does not hold any more, and the producer with the last of it.
    fn drop_what_is_gone(&mut self, producer: ProducerId) {
        let Some(held) = self.in_transactions.get_mut(&producer) else { return };
        held.retain(|_, slot| !slot.is_gone());
        if held.is_empty() {
            self.in_transactions.remove(&producer);
        }
        let held = self.in_transactions.get(&producer);
        self.producers.retain(|group, producers| {
            let is_held = || held.is_some_and(|held| held.keys().any(|key| key.group == *group));
            producers.retain(|known| *known != producer || is_held());
            !producers.is_empty()
        });
    }

    /// Whether a transaction that is open may change this offset.
    pub fn is_unstable(&self, group: &str, topic: &str, partition: PartitionIndex) -> bool {
        let Some(producers) = self.producers.get(group) else { return false };
        let key = OffsetKey { group: group.into(), topic: topic.into(), partition };
        producers.iter().any(|producer| {
            self.in_transactions.get(producer).is_some_and(|offsets| offsets.contains_key(&key))
        })
    }

    pub fn has_open_transactions(&self, group: &str) -> bool {
        self.producers.contains_key(group)
    }

    /// What open transactions hold for a group takes so many bytes.
    pub fn bytes_in_transactions(&self, group: &str) -> usize {
        let producers = self.producers.get(group).into_iter().flatten();
        let held = producers.filter_map(|producer| self.in_transactions.get(producer)).flatten();
        held.filter(|(key, _)| key.group == group)
            .map(|(key, slot)| {
                let note = slot.latest().and_then(|entry| entry.metadata.as_ref());
                256 + key.topic.len() + note.map_or(0, |note| note.len())
            })
            .sum()
    }

    /// All that open transactions hold for a group.
    pub fn in_transactions_of(&self, group: &str) -> Vec<(OffsetKey, TopicId)> {
        let mut found: Vec<(OffsetKey, TopicId)> = Vec::new();
        for producer in self.producers.get(group).into_iter().flatten() {
            let offsets = self.in_transactions.get(producer).into_iter().flatten();
            let own = offsets.filter(|(key, _)| key.group == group);
            let own = own.filter_map(|(key, slot)| Some((key.clone(), slot.latest()?.topic_id)));
            found.extend(own);
        }
        found.sort();
        found.dedup();
        found
    }

    /// Groups that have offsets, in a transaction or not.
    pub fn group_ids(&self) -> Vec<Text> {
        let mut ids: Vec<Text> = self.by_group.keys().chain(self.producers.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// A tombstone that is on disk ends what open transactions hold, too.
    pub fn forget_in_transactions(&mut self, key: &OffsetKey) {
        let producers = self.producers.get(&key.group).cloned().unwrap_or_default();
        for producer in producers {
            let held = self.in_transactions.get_mut(&producer);
            if let Some(slot) = held.and_then(|held| held.get_mut(key)) {
                slot.settle(None);
                self.drop_what_is_gone(producer);
            }
        }
    }

    /// A change that ends without the entry being dropped.
    #[cfg(test)]
    pub fn plant_hollow(&mut self, batch: BatchId, key: &OffsetKey) {
        self.slot(key).revert(batch);
    }

    fn slot(&mut self, key: &OffsetKey) -> &mut Committed<OffsetEntry> {
        self.slot_named(&key.group, &key.topic, key.partition)
    }

    fn slot_named(
        &mut self,
        group: &str,
        topic: &str,
        partition: PartitionIndex,
    ) -> &mut Committed<OffsetEntry> {
        if !self.by_group.contains_key(group) {
            self.by_group.insert(group.into(), GroupOffsets::new());
        }
        let topics = self.by_group.get_mut(group).expect("invariant: inserted where it was missing");
        if !topics.contains_key(topic) {
            topics.insert(topic.into(), Partitions::new());
        }
        let partitions = topics.get_mut(topic).expect("invariant: inserted where it was missing");
        partitions.entry(partition).or_default()
    }

    fn drop_if_gone(&mut self, key: &OffsetKey) {
        let Some(topics) = self.by_group.get_mut(&key.group) else { return };
        let Some(partitions) = topics.get_mut(&key.topic) else { return };
        if partitions.get(&key.partition).is_some_and(Committed::is_gone) {
            partitions.remove(&key.partition);
        }
        if partitions.is_empty() {
            topics.remove(&key.topic);
        }
        if topics.is_empty() {
            self.by_group.remove(&key.group);
        }
    }
}
