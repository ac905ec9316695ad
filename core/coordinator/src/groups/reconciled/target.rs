//! The target: which member is to have what, for one epoch of the group.
//!
//! Made when the group's epoch has been raised, at most once in an assignment interval (KIP-1263): on the spot for a
//! group that is small, and elsewhere ([`crate::Job`]) for one that is large, while members go on with the old one.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.maybeUpdateTargetAssignment`, `TargetAssignmentBuilder`.

use super::{Kind, ReconciledGroup, Records};
use crate::assignment::NewTarget;
use crate::outbox::Outbox;
use crate::records::Entry;

/// Whether a new target is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// The last one is too young.
    Later,
    /// The target is the newest, or the next one is being made.
    No,
}

impl<K: Kind> ReconciledGroup<K> {
    pub fn target_due(&self, out: &Outbox) -> Due {
        if self.epoch <= self.assignment_epoch || self.assigning.is_some() {
            return Due::No;
        }
        let interval = K::times(&out.config, &self.id).assignment_interval;
        let since = self.assignment_timestamp;
        let is_young = since != 0 && interval.0 != 0 && out.now.wall.0 < since.saturating_add(interval.0);
        if is_young { Due::Later } else { Due::Now }
    }

    /// A target is made: it holds from now on.
    pub fn assigned(&mut self, epoch: i32, targets: Vec<NewTarget<K::Target>>, out: &Outbox) {
        for NewTarget { member, instance, target } in targets {
            // A static member may be another process by now. A member that has left is missed by the next target, which
            // is due.
            let now = match (self.member(&member), instance) {
                (None, Some(instance)) => self.static_member(&instance),
                (known, _) => known,
            };
            if let Some(member) = now.map(|member| member.id.clone()) {
                self.targets.insert(member.clone(), target);
                self.note(Entry::Target(member));
            }
        }
        self.assigned_at(epoch, out.now.wall.0);
    }

    /// There is no member to assign to: the target is made. `timestamp` 0: the next target is due at once.
    pub fn assigned_to_none(&mut self, timestamp: i64) {
        if self.is_empty() {
            self.assigned_at(self.epoch, timestamp);
        }
    }

    fn assigned_at(&mut self, epoch: i32, timestamp: i64) {
        self.assignment_epoch = epoch;
        self.assignment_timestamp = timestamp;
        // Last, as it says that the rest is there.
        self.note(Entry::TargetEpoch);
    }
}

impl<K: Records> ReconciledGroup<K> {
    /// A target that was made elsewhere is here; `None`: it was given up.
    pub fn computed(&mut self, epoch: i32, targets: Option<Vec<NewTarget<K::Target>>>, out: &mut Outbox) {
        // One that is for a group of the same name that is gone has another epoch.
        if self.assigning != Some(epoch) {
            return;
        }
        self.assigning = None;
        // A group that has become empty meanwhile is further on.
        if let Some(targets) = targets.filter(|_| epoch > self.assignment_epoch) {
            self.assigned(epoch, targets, out);
            self.flush(out);
        }
    }
}
