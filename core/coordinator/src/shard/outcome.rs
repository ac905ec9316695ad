//! What a batch's fate means: on disk, lost, or not heard of for too long.

use barnabas_base::{ErrorCode, Text};

use super::{Group, GroupShard};
use crate::framework::BatchId;
use crate::groups::classic::{self, ClassicGroup};
use crate::outbox::Effect;
use crate::outbox::{GroupThen, Outbox, Then, append_refusal};
use crate::records::{Entry, GroupKind};

impl GroupShard {
    pub(super) fn batch_done(&mut self, batch: BatchId, then: Then) {
        self.deleted.remove(&batch);
        for key in &then.offsets {
            if !self.offsets.commit(batch, key) {
                self.offsets.forget_in_transactions(key);
            }
        }
        let mut emptied: Vec<&Text> = then.offsets.iter().map(|key| &key.group).collect();
        emptied.dedup();
        for group in emptied {
            if self.offsets.of_group(group).is_none() {
                self.weigh(group);
            }
        }
        if let Some((producer, keys)) = &then.in_transaction {
            keys.iter().for_each(|key| self.offsets.commit_in_transaction(batch, *producer, key));
        }
        if let Some((producer, committed)) = then.ends {
            self.transaction_ended(producer, committed);
        }
        for then in then.groups {
            match then {
                GroupThen::Created(_) | GroupThen::Written { .. } | GroupThen::Downgraded { .. } => {}
                GroupThen::ShareOrdered(order) => self.out.compute(Effect::ShareState(order)),
                GroupThen::Assigned { group, generation, assignments } => {
                    if let Some((group, out)) = self.classic_mut(&group) {
                        classic::assigned(group, generation, assignments, out);
                    }
                }
                GroupThen::Replaced(replacement) => {
                    if let Some((group, out)) = self.classic_mut(&replacement.group) {
                        classic::finish_replacement(group, &replacement, out);
                    }
                }
            }
        }
    }

    pub(super) fn batch_lost(&mut self, batch: BatchId, then: Then, error: ErrorCode) {
        for key in &then.offsets {
            self.offsets.revert(batch, key);
        }
        if let Some((producer, keys)) = &then.in_transaction {
            keys.iter().for_each(|key| self.offsets.revert_in_transaction(batch, *producer, key));
        }
        for group in self.deleted.remove(&batch).unwrap_or_default() {
            self.undelete(group);
        }
        for then in then.groups {
            match then {
                GroupThen::Created(id) => self.forget_group(&id, error),
                GroupThen::Written { kind, group, entries } => self.entries_lost(kind, &group, entries),
                GroupThen::Downgraded { group, tombstones } => self.downgrade_lost(group, tombstones),
                GroupThen::ShareOrdered(order) => self.share_order_lost(order, error),
                then @ (GroupThen::Assigned { .. } | GroupThen::Replaced(_)) => {
                    self.rebalance_lost(then, error);
                }
            }
        }
        // A tombstone that was lost may have left offsets whose group is gone.
        for key in &then.offsets {
            if self.offsets.get(&key.group, &key.topic, key.partition).is_some() {
                self.found_simple_group(&key.group);
            }
        }
    }

    /// It is unknown whether the batch will be on disk. Waiting members are answered; pending changes of offsets and
    /// groups stay.
    pub(super) fn batch_overdue(&mut self, batch: BatchId) {
        let Some(Some(then)) = self.out.pending.then_mut(batch) else { return };
        let waits = |then: &GroupThen| {
            matches!(then, GroupThen::Assigned { .. } | GroupThen::Replaced(_) | GroupThen::ShareOrdered(_))
        };
        let (given_up, kept) = std::mem::take(&mut then.groups).into_iter().partition(waits);
        then.groups = kept;
        let given_up: Vec<GroupThen> = given_up;
        for then in given_up {
            if let GroupThen::ShareOrdered(order) = then {
                self.share_order_lost(order, ErrorCode::RequestTimedOut);
                continue;
            }
            self.rebalance_lost(then, ErrorCode::RequestTimedOut);
        }
    }

    fn rebalance_lost(&mut self, then: GroupThen, error: ErrorCode) {
        match then {
            GroupThen::Assigned { group, generation, .. } => {
                if let Some((group, out)) = self.classic_mut(&group) {
                    classic::assignment_lost(group, generation, error, out);
                }
            }
            GroupThen::Replaced(replacement) => {
                if let Some((group, out)) = self.classic_mut(&replacement.group.clone()) {
                    classic::revert_replacement(group, *replacement, error, out);
                }
            }
            _ => {}
        }
    }

    fn entries_lost(&mut self, kind: GroupKind, id: &Text, entries: Vec<Entry>) {
        if let Some(group) = self.groups.get_mut(id).filter(|group| group.kind() == kind) {
            group.lost(entries, &mut self.out);
        }
    }

    /// A group whose tombstone was lost is back, unless there is another one of its name.
    fn undelete(&mut self, group: Group) {
        let id = group.id().clone();
        let group = self.groups.entry(id).or_insert(group);
        if group.has_lost() {
            group.lost(Vec::new(), &mut self.out);
        }
    }

    /// A group whose first record was lost. Should it have got further meanwhile, or have offsets by another commit, it
    /// stays.
    fn forget_group(&mut self, id: &str, error: ErrorCode) {
        let has_offsets = self.offsets.of_group(id).is_some() || self.offsets.has_open_transactions(id);
        let Some(Group::Classic(group)) = self.groups.get_mut(id) else { return };
        if group.generation > 0 || has_offsets {
            return;
        }
        classic::send_away(group, append_refusal(error), &mut self.out);
        classic::forget_timers(group, &mut self.out);
        self.groups.remove(id);
    }

    fn classic_mut(&mut self, id: &str) -> Option<(&mut ClassicGroup, &mut Outbox)> {
        match self.groups.get_mut(id) {
            Some(Group::Classic(group)) => Some((group, &mut self.out)),
            _ => None,
        }
    }
}
