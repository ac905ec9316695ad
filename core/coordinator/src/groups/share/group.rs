//! A share group: what its records say, and what can be counted from them.
//!
//! Always true (checked by `shard/invariants.rs`):
//! 1. the names that are counted are those that members subscribe to
//! 2. a target is a member's; no member is ahead of the target, the target is not ahead of the group
//! 3. nothing is assigned that is not set up
//! 4. nothing that changed is left unwritten when a call ends

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{DurationMs, MonotonicMs, Text};

use super::member::ShareMember;
use super::set_up::SetUp;
use crate::Response;
use crate::assignment::Partitions;
use crate::framework::weight;
use crate::framework::{BatchId, Record, Ticket};
use crate::groups::reconciled::FIRST_EPOCH;
use crate::outbox::{GroupThen, Outbox, Then, TimerKey};
use crate::records::{Entry, GroupKind};

#[derive(Debug)]
pub(crate) struct ShareGroup {
    pub id: Text,
    pub epoch: i32,
    pub metadata_hash: i64,
    /// The group epoch that the target is for; [`FIRST_EPOCH`], for an empty target, before the first one is made.
    pub assignment_epoch: i32,
    /// When the target was made, by the wall clock; 0: never.
    pub assignment_timestamp: i64,
    members: BTreeMap<Text, Arc<ShareMember>>,
    pub targets: BTreeMap<Text, Arc<Partitions>>,
    pub set_up: SetUp,
    /// Subscribed names with how many members name each.
    names: BTreeMap<Text, usize>,
    /// When its topics are looked at again though nothing is known to have changed.
    pub refresh_at: MonotonicMs,
    /// When the epoch was last raised; `None`: not since the group was loaded.
    pub raised_at: Option<MonotonicMs>,
    /// The order that is under way for it.
    pub order: Option<u64>,
    /// The share coordinator had no room for its share-partitions: it is not asked before.
    pub set_up_again_at: MonotonicMs,
    dirty: Vec<Entry>,
    /// Entries of batches that were lost.
    unsaved: Vec<Entry>,
    /// What answers wait for.
    pub last_batch: BatchId,
    /// How often the epoch was raised since that was last counted.
    raises: u64,
}

/// How long after a loss entries are written again, if no request has done so.
const SAVE_AGAIN: DurationMs = DurationMs(1_000);

/// How long the share coordinator is not asked again that had no room for a group's share-partitions.
const SET_UP_AGAIN: DurationMs = DurationMs(5_000);

impl ShareGroup {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            metadata_hash: 0,
            assignment_epoch: FIRST_EPOCH,
            assignment_timestamp: 0,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            set_up: SetUp::default(),
            names: BTreeMap::new(),
            refresh_at: MonotonicMs(0),
            raised_at: None,
            order: None,
            set_up_again_at: MonotonicMs(0),
            dirty: Vec::new(),
            unsaved: Vec::new(),
            last_batch: BatchId(0),
            raises: 0,
        }
    }

    pub fn members(&self) -> &BTreeMap<Text, Arc<ShareMember>> {
        &self.members
    }

    pub fn member(&self, id: &str) -> Option<&Arc<ShareMember>> {
        self.members.get(id)
    }

    /// What members and share-partitions take, beside the members' structures.
    pub fn bytes(&self) -> usize {
        let members = self.members.values().map(|member| {
            let has = member.assigned.values().map(Vec::len).sum();
            member.said_bytes() + weight::texts(member.names.iter()) + weight::partitions(has) * 2
        });
        let topics = self.set_up.initialized.values().chain(self.set_up.initializing.values());
        let set_up =
            topics.map(|topic| weight::texts([&topic.name]) + weight::partitions(topic.partitions.len()));
        members.sum::<usize>() + set_up.sum::<usize>()
    }

    /// The share coordinator was asked, and had no room if it `is_full`.
    pub fn wait_for_room(&mut self, is_full: bool, now: MonotonicMs) {
        self.set_up_again_at = if is_full { now.plus(SET_UP_AGAIN) } else { now };
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Kafka's word for the state it is in.
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() { "Empty" } else { "Stable" }
    }

    /// Subscribed names with how many members name each.
    pub fn names(&self) -> &BTreeMap<Text, usize> {
        &self.names
    }

    /// Adds a member, or replaces it by what it is now.
    pub fn put(&mut self, member: ShareMember) {
        let member = Arc::new(member);
        let old = self.members.insert(member.id.clone(), Arc::clone(&member));
        if let Some(old) = old {
            if Arc::ptr_eq(&old.names, &member.names) {
                return;
            }
            self.count(&old, false);
        }
        self.count(&member, true);
    }

    pub fn remove(&mut self, id: &str) -> Option<Arc<ShareMember>> {
        let old = self.members.remove(id)?;
        self.count(&old, false);
        Some(old)
    }

    fn count(&mut self, member: &ShareMember, here: bool) {
        for name in member.names.iter() {
            if here {
                *self.names.entry(name.clone()).or_default() += 1;
            } else if let Some(count) = self.names.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.names.remove(name);
                }
            }
        }
    }

    /// A list of names that is another member's already, or this one: members of a group mostly subscribe to the same.
    pub fn shared(&self, names: Arc<Vec<Text>>) -> Arc<Vec<Text>> {
        let first = self.members.values().next().map(|member| &member.names);
        first.filter(|known| **known == names).cloned().unwrap_or(names)
    }

    /// Raises the group's epoch: a new target is to be made.
    pub fn raise(&mut self, metadata_hash: i64, now: MonotonicMs) {
        self.raised_at = Some(now);
        self.raises += 1;
        self.epoch = self.epoch.saturating_add(1);
        self.metadata_hash = metadata_hash;
        self.note(Entry::Group);
    }

    /// This record is to be written anew.
    pub fn note(&mut self, entry: Entry) {
        self.dirty.push(entry);
    }

    /// What is to be written, and what was lost.
    pub fn unwritten(&self) -> impl Iterator<Item = Entry> {
        self.dirty.iter().chain(&self.unsaved).cloned()
    }

    pub fn is_written(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Hands out the records that changed, in one batch or in as many as it takes.
    pub fn flush(&mut self, out: &mut Outbox) {
        out.counts.share_rebalances += std::mem::take(&mut self.raises);
        let mut entries = std::mem::take(&mut self.unsaved);
        if !entries.is_empty() {
            out.timers.cancel(&TimerKey::Save(self.id.clone()));
        }
        entries.append(&mut self.dirty);
        // Once each, where it was noted last: what says that others are there comes after those.
        let mut seen = BTreeSet::new();
        let mut entries: Vec<Entry> =
            entries.into_iter().rev().filter(|entry| seen.insert(entry.clone())).collect();
        entries.reverse();
        let (mut records, mut held, mut bytes) = (Vec::new(), Vec::new(), 0);
        for entry in entries {
            let record = self.record(&entry);
            if !records.is_empty() && bytes + record.bytes() > out.config.batch_bytes_max {
                self.append(std::mem::take(&mut records), std::mem::take(&mut held), out);
                bytes = 0;
            }
            bytes += record.bytes();
            records.push(record);
            held.push(entry);
        }
        if !records.is_empty() {
            self.append(records, held, out);
        }
    }

    fn append(&mut self, records: Vec<Record>, entries: Vec<Entry>, out: &mut Outbox) {
        let written = GroupThen::Written { kind: GroupKind::Share, group: self.id.clone(), entries };
        self.last_batch = out.append(records, Then { groups: vec![written], ..Then::default() });
    }

    /// A batch with these entries never got to disk.
    pub fn lost(&mut self, entries: Vec<Entry>, out: &mut Outbox) {
        self.unsaved.extend(entries);
        out.set_timer(TimerKey::Save(self.id.clone()), SAVE_AGAIN);
    }

    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Writes what changed, and answers once it is on disk.
    pub fn answer(&mut self, ticket: Ticket, response: Response, out: &mut Outbox) {
        self.flush(out);
        out.answer_after(self.last_batch, ticket, response);
    }

    /// What a log that lacks a batch has left behind: targets of nobody, epochs ahead of what they follow.
    pub fn drop_strays(&mut self) {
        let members = &self.members;
        let strays: Vec<Text> =
            self.targets.keys().filter(|id| !members.contains_key(*id)).cloned().collect();
        for id in strays {
            self.targets.remove(&id);
            self.note(Entry::Target(id));
        }
        let newest = self.members.values().map(|member| member.epoch).max().unwrap_or(0);
        if self.assignment_epoch < newest || self.epoch < self.assignment_epoch.max(newest) {
            // A new target is made, in an epoch that nobody has seen.
            self.epoch = self.epoch.max(self.assignment_epoch).max(newest).saturating_add(1);
            self.note(Entry::Group);
            if self.assignment_epoch < newest {
                self.assignment_epoch = newest;
                self.note(Entry::TargetEpoch);
            }
        }
    }

    #[cfg(test)]
    pub fn plant_name(&mut self, name: &str) {
        self.names.insert(name.into(), 1);
    }
}
