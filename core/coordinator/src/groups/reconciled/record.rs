//! A group ↔ its records, all in version 0.
//!
//! Reading takes the records in any order, as compaction leaves them: a value of any type founds the group, a tombstone
//! of the group's epoch ends it with all that is left of it.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorRecordHelpers`, `StreamsCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::collections::BTreeSet;

use barnabas_base::Text;
use barnabas_wire::messages::GroupRecordValue;

use super::{FIRST_EPOCH, Kind, Member, ReconciledGroup};
use crate::Response;
use crate::framework::{Record, Ticket, encoded};
use crate::outbox::Outbox;
use crate::records::Entry;

pub(crate) const VERSION: i16 = 0;

/// The records of a kind of group.
pub(crate) trait Records: Kind {
    fn group_value(group: &ReconciledGroup<Self>) -> GroupRecordValue;

    fn target_epoch_value(epoch: i32, timestamp: i64) -> GroupRecordValue;

    /// What the member said of itself.
    fn member_value(member: &Member<Self>) -> GroupRecordValue;

    /// Where the member stands.
    fn current_value(member: &Member<Self>) -> GroupRecordValue;

    fn target_value(target: &Self::Target) -> GroupRecordValue;

    /// The value of a record that no other kind has; `None`: there is nothing.
    fn own_value(group: &Self::Group, entry: &Entry) -> Option<GroupRecordValue>;

    /// Applies a record of the log, while loading.
    fn replay(group: &mut ReconciledGroup<Self>, entry: Entry, value: GroupRecordValue);

    /// Likewise, the tombstone of a record that no other kind has.
    fn replay_tombstone(group: &mut Self::Group, entry: &Entry);

    /// The group's record and those that no other kind has, in the order in which their tombstones end the group.
    fn last_entries(group: &Self::Group) -> Vec<Entry>;
}

impl<K: Records> ReconciledGroup<K> {
    /// Hands out the records that changed.
    pub fn flush(&mut self, out: &mut Outbox) {
        *K::raises(&mut out.counts) += std::mem::take(&mut self.raises);
        let mut unwritten = std::mem::take(&mut self.unwritten);
        let bytes_max = out.config.batch_bytes_max;
        unwritten.flush(K::KIND, &self.id, |entry| self.record(entry, bytes_max), out);
        self.unwritten = unwritten;
    }

    /// Writes what changed, and answers once it is on disk.
    pub fn answer(&mut self, ticket: Ticket, response: Response, out: &mut Outbox) {
        self.flush(out);
        out.answer_after(self.last_batch(), ticket, response);
    }

    /// The record of `entry` as things are: a tombstone for what is not there, and for an expression that matches more
    /// than a record of `bytes_max` can hold, which is resolved again after a load.
    fn record(&self, entry: &Entry, bytes_max: usize) -> Record {
        let value = match entry {
            Entry::OldClassic => None,
            Entry::Group => Some(K::group_value(self)),
            Entry::TargetEpoch => {
                Some(K::target_epoch_value(self.assignment_epoch, self.assignment_timestamp))
            }
            Entry::Member(id) => self.member(id).map(|member| K::member_value(member)),
            Entry::Current(id) => self.member(id).map(|member| K::current_value(member)),
            Entry::Target(id) => self.targets.get(id).map(|target| K::target_value(target)),
            Entry::OldPartitionMetadata | Entry::Regex(_) | Entry::SetUp | Entry::Topology => {
                K::own_value(&self.own, entry)
            }
        };
        let value = value.map(|value| encoded(value.encode_value(VERSION)));
        let mut record = Record { key: entry.key(K::KIND, &self.id), value };
        if matches!(entry, Entry::Regex(_)) && record.bytes() > bytes_max {
            record.value = None;
        }
        record
    }

    /// The tombstones of everything that the group has, in the order in which Kafka reads them without complaint.
    ///
    /// # Source
    /// Kafka 4.4 `ConsumerGroup.createGroupTombstoneRecords`, `ShareGroup`, `StreamsGroup`.
    pub fn tombstones(&self) -> Vec<Record> {
        let ids = || self.members().keys().cloned();
        // What is not written yet, or was lost, may be about members that are gone.
        let is_last = |entry: &Entry| {
            matches!(entry, Entry::TargetEpoch | Entry::SetUp | Entry::Topology | Entry::Group)
        };
        let left = self.unwritten.entries();
        let left = left.filter(|entry| *entry != Entry::OldClassic && !is_last(entry));
        let entries = left
            .chain(ids().map(Entry::Current))
            .chain(ids().map(Entry::Target))
            .chain([Entry::TargetEpoch])
            .chain(ids().map(Entry::Member))
            .chain(K::last_entries(&self.own));
        let mut seen = BTreeSet::new();
        let entries = entries.filter(|entry| seen.insert(entry.clone()));
        entries.map(|entry| Record { key: entry.key(K::KIND, &self.id), value: None }).collect()
    }

    /// Applies a tombstone, while loading; that of the group itself is the shard's business.
    pub fn replay_tombstone(&mut self, entry: &Entry) {
        match entry {
            Entry::Member(id) => {
                self.remove(id);
            }
            Entry::Target(id) => {
                self.targets.remove(id);
            }
            Entry::TargetEpoch => {
                self.replay_target_epoch(FIRST_EPOCH, 0);
            }
            Entry::Current(id) => {
                if let Some(mut member) = self.member(id).map(|known| (**known).clone()) {
                    member.reset();
                    self.put(member);
                }
            }
            Entry::Group | Entry::OldClassic => {}
            Entry::OldPartitionMetadata | Entry::Regex(_) | Entry::SetUp | Entry::Topology => {
                K::replay_tombstone(&mut self.own, entry);
            }
        }
    }

    /// What is known of a member that a record speaks of.
    pub fn known(&self, id: &Text) -> Member<K> {
        self.member(id).map_or_else(|| Member::new(id.clone()), |known| (**known).clone())
    }

    /// Applies the record of the group's epoch.
    pub fn replay_epoch(&mut self, epoch: i32, metadata_hash: i64) {
        self.epoch = epoch;
        self.metadata_hash = metadata_hash;
    }

    /// Applies the record of the target's epoch.
    pub fn replay_target_epoch(&mut self, epoch: i32, timestamp: i64) {
        self.assignment_epoch = epoch;
        self.assignment_timestamp = timestamp;
    }
}

/// What a member has, each with the epoch in which it was given it. Records of before KIP-1251 say no such epochs: the
/// member's own stands for them, as in Kafka.
pub(crate) fn with_epochs(
    partitions: &[i32],
    epochs: Option<&[i32]>,
    own: i32,
) -> impl Iterator<Item = (i32, i32)> {
    let epochs = epochs.unwrap_or_default();
    partitions.iter().enumerate().map(move |(at, each)| (*each, epochs.get(at).copied().unwrap_or(own)))
}
