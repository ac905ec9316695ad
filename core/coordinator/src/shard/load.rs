//! Loading: the partition's records, from its start, one by one.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorShard.replay`, `GroupMetadataManager.onLoaded`.

use barnabas_base::{Offset, PartitionIndex, ProducerId, Text};
use barnabas_wire::messages::{GroupRecordKey, GroupRecordValue, OffsetCommitValue};
use barnabas_wire::records::EndTxnMarker;
use bytes::Bytes;

use super::{Group, GroupShard};
use crate::framework::{LoadError, Loaded, Now, each_loaded};
use crate::groups::classic::{self, ClassicGroup};
use crate::groups::consumer;
use crate::groups::share;
use crate::groups::streams;
use crate::offsets::OffsetEntry;
use crate::outbox::Effect;
use crate::records::{Entry, GroupKind, OffsetKey};

impl GroupShard {
    /// Takes in whole batches as the log holds them, while loading. Gives the offset after the last one.
    ///
    /// # Errors
    /// What cannot be read; stop loading and report it.
    pub fn replay_batches(&mut self, bytes: Bytes) -> Result<Offset, LoadError> {
        let next = each_loaded(Offset(self.written), bytes, |loaded| match loaded {
            Loaded::Record { offset, producer, key, value } => {
                self.replay(offset, producer, &key, value.as_ref())
            }
            Loaded::Control(batch) => {
                let marker = EndTxnMarker::of_batch(batch).map_err(|source| LoadError::of(batch, source))?;
                if let Some(marker) = marker {
                    self.replay_marker(batch.header().producer_id, marker.commit);
                }
                Ok(())
            }
        })?;
        self.written = self.written.max(next.0);
        Ok(next)
    }

    /// Takes in one record while loading. `producer`: [`ProducerId::NONE`] unless the batch is transactional.
    ///
    /// A record of a type that Kafka 4.4 does not know is passed over, as Kafka does.
    ///
    /// # Errors
    /// The record cannot be read; stop loading and report it.
    pub fn replay(
        &mut self,
        offset: Offset,
        producer: ProducerId,
        key: &Bytes,
        value: Option<&Bytes>,
    ) -> Result<(), LoadError> {
        self.written = self.written.max(offset.0 + 1);
        let type_number = key.first_chunk::<2>().map_or(-1, |bytes| i16::from_be_bytes(*bytes));
        if type_number >= 0 && GroupRecordKey::versions(type_number).is_none() {
            return Ok(());
        }
        let key = GroupRecordKey::decode_key(key.clone())
            .map_err(|source| LoadError::Key { offset: offset.0, source })?;
        let value = match value {
            Some(value) => {
                let decoded = GroupRecordValue::decode_value(type_number, value.clone());
                let (value, _) =
                    decoded.map_err(|source| LoadError::Value { offset: offset.0, type_number, source })?;
                Some(value)
            }
            None => None,
        };
        self.replay_ours(offset, producer, key, value);
        Ok(())
    }

    fn replay_ours(
        &mut self,
        offset: Offset,
        producer: ProducerId,
        key: GroupRecordKey,
        value: Option<GroupRecordValue>,
    ) {
        match (key, value) {
            (GroupRecordKey::GroupMetadata(key), Some(GroupRecordValue::GroupMetadata(value))) => {
                let group = ClassicGroup::from_record(key.group.text(), value);
                self.groups.insert(group.id.clone(), Group::Classic(Box::new(group)));
            }
            (GroupRecordKey::GroupMetadata(key), _) => {
                // The tombstone of what a consumer group was before may stand behind that group's records.
                if matches!(self.groups.get(key.group.as_str()), Some(Group::Classic(_))) {
                    self.groups.remove(key.group.as_str());
                }
            }
            (GroupRecordKey::OffsetCommit(key), value) => {
                let value = match value {
                    Some(GroupRecordValue::OffsetCommit(value)) => Some(value),
                    _ => None,
                };
                self.replay_offset((offset, producer), (&key.group, &key.topic, key.partition), value);
            }
            (GroupRecordKey::LegacyOffsetCommit(key), value) => {
                let value = match value {
                    Some(GroupRecordValue::LegacyOffsetCommit(value)) => Some(OffsetCommitValue {
                        offset: value.offset,
                        metadata: value.metadata,
                        commit_timestamp: value.commit_timestamp,
                        ..Default::default()
                    }),
                    _ => None,
                };
                self.replay_offset((offset, producer), (&key.group, &key.topic, key.partition), value);
            }
            (key, value) => {
                if let Some((kind, group, entry)) = Entry::of(&key) {
                    self.replay_entry(kind, group, entry, value);
                }
            }
        }
    }

    fn replay_offset(
        &mut self,
        (offset, producer): (Offset, ProducerId),
        (group, topic, partition): (&str, &str, i32),
        value: Option<OffsetCommitValue>,
    ) {
        let key = || offset_key(group, topic, partition);
        let Some(value) = value else { return self.offsets.load_tombstone(&key()) };
        self.found_simple_group(group);
        let entry = OffsetEntry::from_record(&value, offset.0);
        if producer.is_some() {
            self.offsets.load_in_transaction(producer, &key(), entry);
        } else {
            self.offsets.load(group, topic, PartitionIndex(partition), entry);
        }
    }

    /// A group that has offsets and never had members has no record of its own.
    pub(super) fn found_simple_group(&mut self, id: &str) {
        if !self.groups.contains_key(id) {
            let id = Text::from(id);
            let mut group = ClassicGroup::new(id.clone(), barnabas_base::TimestampMs(0));
            group.state_since = None;
            self.groups.insert(id, Group::Classic(Box::new(group)));
        }
    }

    /// A value of any type founds its group; the tombstone of the group's epoch ends it.
    fn replay_entry(&mut self, kind: GroupKind, id: Text, entry: Entry, value: Option<GroupRecordValue>) {
        let known = self.groups.get_mut(&id).filter(|known| known.kind() == kind);
        match (known, value) {
            (Some(group), Some(value)) => group.replay(entry, value),
            (Some(_), None) if entry == Entry::Group => {
                self.groups.remove(&id);
            }
            (Some(group), None) => group.replay_tombstone(&entry),
            (None, Some(value)) => {
                let mut group = Group::new(kind, id.clone());
                group.replay(entry, value);
                self.groups.insert(id, group);
            }
            (None, None) => {}
        }
    }

    /// Takes in the end of a transaction, while loading or later.
    pub fn replay_marker(&mut self, producer: ProducerId, committed: bool) {
        self.offsets.end_transaction(producer, committed);
    }

    /// Everything was replayed: answers from now on. Members have a full session's time to be heard of.
    pub fn activate(&mut self, now: Now) -> Vec<Effect> {
        self.out.now = now;
        self.is_active = true;
        // A tombstone of a group may stand behind its offsets in the log and before those that were committed later.
        for id in self.offsets.group_ids() {
            self.found_simple_group(&id);
        }
        let mut ids: Vec<Text> = self.groups.keys().cloned().collect();
        ids.sort();
        for id in ids {
            match self.groups.get_mut(&id) {
                Some(Group::Classic(group)) => classic::loaded(group, &mut self.out),
                Some(Group::Consumer(group)) => consumer::loaded(group, &mut self.world, &mut self.out),
                Some(Group::Streams(group)) => streams::loaded(group, &mut self.out),
                Some(Group::Share(group)) => share::loaded(group, &mut self.out),
                None => {}
            }
        }
        self.weigh_all();
        self.out.set_expiry();
        self.out.take_effects()
    }
}

fn offset_key(group: &str, topic: &str, partition: i32) -> OffsetKey {
    OffsetKey { group: group.into(), topic: topic.into(), partition: PartitionIndex(partition) }
}
