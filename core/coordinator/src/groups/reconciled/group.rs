//! A group: what its records say, and what can be counted from them.
//!
//! Always true (checked by `shard/invariants/`):
//! 1. an instance id stands for exactly one member, and that member has it
//! 2. a target is a member's
//! 3. no member is ahead of the target, the target is not ahead of the group
//! 4. a member has a session timer
//! 5. nothing that changed is left unwritten when a call ends

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Map, MonotonicMs, Text};

use super::{Kind, Member, Unwritten};
use crate::framework::BatchId;
use crate::outbox::Outbox;
use crate::records::Entry;

/// The epoch of a new group and of its target, which is empty and written nowhere. The first target that is made is of
/// the next epoch; members that come before it are in this one.
///
/// # Source
/// KAFKA-20268; Kafka 4.3 `ModernGroup`, `StreamsGroup`, `TargetAssignmentMetadata.INITIAL`.
pub(crate) const FIRST_EPOCH: i32 = 1;

#[derive(Debug)]
pub(crate) struct ReconciledGroup<K: Kind> {
    pub id: Text,
    pub epoch: i32,
    /// When the epoch was last raised; `None`: not since the group was loaded.
    pub raised_at: Option<MonotonicMs>,
    /// Over the topics that it reads, at the last raise.
    pub metadata_hash: i64,
    /// The group epoch that the target is for; [`FIRST_EPOCH`], for an empty target, before the first one is made.
    pub assignment_epoch: i32,
    /// When the target was made, by the wall clock; 0: never, or the next one is due at once.
    pub assignment_timestamp: i64,
    members: BTreeMap<Text, Arc<Member<K>>>,
    /// Member ids by instance id.
    static_members: Map<Text, Text>,
    pub targets: BTreeMap<Text, Arc<K::Target>>,
    /// When its topics are looked at again though no change is known.
    pub refresh_at: MonotonicMs,
    /// The group epoch that a target is being made for, elsewhere.
    pub assigning: Option<i32>,
    pub unwritten: Unwritten,
    /// How often the epoch was raised since that was last counted.
    pub(super) raises: u64,
    /// What only its kind has.
    pub own: K::Group,
}

impl<K: Kind> ReconciledGroup<K> {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            raised_at: None,
            metadata_hash: 0,
            assignment_epoch: FIRST_EPOCH,
            assignment_timestamp: 0,
            members: BTreeMap::new(),
            static_members: Map::default(),
            targets: BTreeMap::new(),
            refresh_at: MonotonicMs(0),
            assigning: None,
            unwritten: Unwritten::default(),
            raises: 0,
            own: K::Group::default(),
        }
    }

    pub fn members(&self) -> &BTreeMap<Text, Arc<Member<K>>> {
        &self.members
    }

    pub fn member(&self, id: &str) -> Option<&Arc<Member<K>>> {
        self.members.get(id)
    }

    pub fn static_member(&self, instance: &str) -> Option<&Arc<Member<K>>> {
        self.members.get(self.static_members.get(instance)?)
    }

    pub fn static_members(&self) -> &Map<Text, Text> {
        &self.static_members
    }

    /// A member by its instance id, or by its own.
    pub fn member_or_static(&self, id: &str, instance: Option<&str>) -> Option<&Arc<Member<K>>> {
        let known = instance.and_then(|instance| self.static_member(instance));
        known.or_else(|| self.member(id))
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Kafka's word for the state of a group whose target is followed step by step.
    pub fn progress(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(|member| member.is_reconciled_to(self.assignment_epoch)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Adds a member, or replaces it by what it is now.
    pub fn put(&mut self, member: Member<K>) {
        let member = Arc::new(member);
        let old = self.members.insert(member.id.clone(), Arc::clone(&member));
        if let Some(old) = &old {
            self.forget_instance(old);
        }
        if let Some(instance) = &member.instance {
            self.static_members.insert(instance.clone(), member.id.clone());
        }
        K::count(&mut self.own, old.as_deref(), Some(&member));
    }

    pub fn remove(&mut self, id: &str) -> Option<Arc<Member<K>>> {
        let old = self.members.remove(id)?;
        self.forget_instance(&old);
        K::count(&mut self.own, Some(&old), None);
        Some(old)
    }

    fn forget_instance(&mut self, member: &Member<K>) {
        if let Some(instance) = &member.instance
            && self.static_members.get(instance) == Some(&member.id)
        {
            self.static_members.remove(instance);
        }
    }

    /// Raises the group's epoch: a new target is to be made.
    pub fn raise(&mut self, metadata_hash: i64, now: MonotonicMs) {
        self.raised_at = Some(now);
        self.raises += 1;
        self.epoch = self.epoch.saturating_add(1);
        self.metadata_hash = metadata_hash;
        self.note(Entry::Group);
    }

    /// This record is to be written again.
    pub fn note(&mut self, entry: Entry) {
        self.unwritten.note(entry);
    }

    pub fn note_all(&mut self, entries: impl IntoIterator<Item = Entry>) {
        entries.into_iter().for_each(|entry| self.note(entry));
    }

    /// A member has gone: its records end.
    pub fn note_gone(&mut self, id: &Text) {
        self.note_all([Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id.clone())]);
    }

    /// A batch with these entries never got to disk.
    pub fn lost(&mut self, entries: Vec<Entry>, out: &mut Outbox) {
        self.unwritten.lose(&self.id, entries, out);
    }

    /// What answers wait for.
    pub fn last_batch(&self) -> BatchId {
        self.unwritten.last_batch
    }

    #[cfg(test)]
    pub fn plant_instance(&mut self, instance: &str, member: &str) {
        self.static_members.insert(instance.into(), member.into());
    }

    /// A log that lacks a batch may hold two members of one instance id: the one that was replaced goes. It had left
    /// for a moment, or its place in the target was taken; between equals the later record holds.
    fn drop_replaced(&mut self, now: MonotonicMs) {
        let mut newest: BTreeMap<Text, (i32, bool, Text)> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, member) in &self.members {
            let Some(instance) = &member.instance else { continue };
            let is_named = self.static_members.get(instance) == Some(id);
            let this = (member.epoch, is_named, id.clone());
            match newest.get(instance) {
                Some(other) if *other > this => gone.push(id.clone()),
                other => {
                    gone.extend(other.map(|(.., id)| id.clone()));
                    newest.insert(instance.clone(), this);
                }
            }
        }
        let has_gone = !gone.is_empty();
        for id in gone {
            self.remove(&id);
            self.note_gone(&id);
        }
        // Also of a member whose replacement the log took back.
        self.static_members = newest.into_iter().map(|(instance, (.., id))| (instance, id)).collect();
        if has_gone {
            self.raise(self.metadata_hash, now);
        }
    }

    /// What a log that lacks a batch, or part of a transition, has left behind: members that were replaced, targets
    /// without a member, epochs ahead of what they follow. A member of whom only its place is known goes with its
    /// session.
    pub fn drop_strays(&mut self, now: MonotonicMs) {
        self.drop_replaced(now);
        let members = &self.members;
        let strays: Vec<Text> =
            self.targets.keys().filter(|id| !members.contains_key(*id)).cloned().collect();
        for id in strays {
            self.targets.remove(&id);
            self.note(Entry::Target(id));
        }
        let newest = self.members.values().map(|member| member.epoch).max().unwrap_or(0);
        if self.assignment_epoch < newest || self.epoch < self.assignment_epoch.max(newest) {
            // A new target is made, in an epoch that no member has seen.
            self.epoch = self.epoch.max(self.assignment_epoch).max(newest).saturating_add(1);
            self.note(Entry::Group);
            if self.assignment_epoch < newest {
                self.assignment_epoch = newest;
                self.note(Entry::TargetEpoch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::groups::consumer::{ConsumerGroup, ConsumerMember};
    use barnabas_base::MonotonicMs;

    fn member(id: &str, epoch: i32) -> ConsumerMember {
        ConsumerMember { instance: Some("i".into()), epoch, ..ConsumerMember::new(id.into()) }
    }

    #[test]
    fn static_member_is_found_after_its_replacement_was_lost() {
        let mut group = ConsumerGroup::new("g".into());
        group.put(member("old", 1));
        group.put(member("new", 1));
        group.remove("new");
        assert!(group.static_member("i").is_none());
        group.drop_strays(MonotonicMs(0));
        assert_eq!(group.static_member("i").map(|member| member.id.as_str()), Some("old"));
        assert_eq!(group.epoch, 1, "nothing has changed for the members");
    }

    #[test]
    fn later_of_two_members_with_an_instance_id_stays() {
        for (old, new) in [("a", "b"), ("b", "a")] {
            let mut group = ConsumerGroup::new("g".into());
            group.put(member(old, 1));
            group.put(member(new, 1));
            group.drop_strays(MonotonicMs(0));
            assert_eq!(group.members().keys().collect::<Vec<_>>(), [new]);
            assert_eq!(group.epoch, 2, "what the other one had is to be assigned");
        }
    }
}
