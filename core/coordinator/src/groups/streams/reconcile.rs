//! One member on its way to the target: gives up, waits, gets.
//!
//! ```text
//!              target has less for it                     all given up
//!   Stable ───────────────────────────▶ Unrevoked ──────────────────────────┐
//!     ▲ │                               (keeps its epoch)                    │
//!     │ └─ target has more for it, but others still have it ─▶ Unreleased ◀──┤
//!     └──────────────────── nothing to give up, nothing to wait for ◀────────┘
//!                           (the target's epoch)
//! ```
//!
//! A member gets an active task only while no member owns it. A process never runs the same task twice, in any
//! roles: a task is assigned to a member only once no member of its process owns it, itself included. So a task that
//! changes its role on a member is revoked first: one answer revokes it, the next heartbeat confirms, and the answer
//! to the one after that assigns it in its new role.
//!
//! # Source
//! KIP-1071; Kafka 4.3 `CurrentAssignmentBuilder`. Who has what is what the group knows before the step, as there.

use std::sync::Arc;

use barnabas_base::Text;

use super::group::StreamsGroup;
use super::member::StreamsMember;
use crate::assignment::streams::{
    ActiveTasks, Held, Role, Target, Tasks, contains, each, insert, insert_active,
};
use crate::groups::reconciled::MemberState;

/// The member's next step towards `target` of `epoch`. `None`: it stays as it is. `owned`: what it says that it has.
pub(crate) fn reconcile(
    group: &StreamsGroup,
    member: &StreamsMember,
    target: &Target,
    epoch: i32,
    owned: Option<&Target>,
) -> Option<StreamsMember> {
    let step = Step { group, member, target, epoch, owned };
    let next = match member.state {
        MemberState::Stable if member.epoch != epoch => step.next(member.epoch),
        MemberState::Stable => return None,
        MemberState::Unrevoked if step.still_has(&member.revoking) => return None,
        MemberState::Unrevoked => step.next(member.epoch.saturating_add(1)),
        MemberState::Unreleased => step.next(member.epoch),
        MemberState::Unknown => step.next(epoch),
    };
    Some(next).filter(|next| next != member)
}

struct Step<'a> {
    group: &'a StreamsGroup,
    member: &'a StreamsMember,
    target: &'a Target,
    epoch: i32,
    owned: Option<&'a Target>,
}

/// Tasks of one role, sorted by what becomes of them.
#[derive(Default)]
struct Sorted {
    kept: Tasks,
    revoked: Tasks,
    new: Tasks,
    /// Some of the target cannot be had yet.
    is_waiting: bool,
}

impl Step<'_> {
    /// Whether the member has, or may have, any of these. Who does not say what it has may have anything.
    fn still_has(&self, tasks: &Held) -> bool {
        self.owned.is_none_or(|owned| owned.overlaps(tasks))
    }

    /// `epoch`: the member's, if it has to give up something first.
    fn next(&self, epoch: i32) -> StreamsMember {
        let has = &self.member.assigned;
        let (active, mut kept_active, revoked_active) = self.active();
        let mut standby = self.sort(&has.standby, &self.target.standby);
        let mut warmup = self.sort(&has.warmup, &self.target.warmup);
        let revoking = Held {
            active: revoked_active,
            standby: std::mem::take(&mut standby.revoked),
            warmup: std::mem::take(&mut warmup.revoked),
        };
        let mut next = self.member.clone();
        if !revoking.is_empty() && self.still_has(&revoking) {
            next.state = MemberState::Unrevoked;
            next.advance(epoch);
            next.assigned =
                Arc::new(Held { active: kept_active, standby: standby.kept, warmup: warmup.kept });
            next.revoking = Arc::new(revoking);
            return next;
        }
        for (id, partition) in each(&active.new) {
            insert_active(&mut kept_active, id, partition, self.epoch);
        }
        for sorted in [&mut standby, &mut warmup] {
            each(&sorted.new).for_each(|(id, partition)| insert(&mut sorted.kept, id, partition));
        }
        let is_waiting = active.is_waiting || standby.is_waiting || warmup.is_waiting;
        next.state = if is_waiting { MemberState::Unreleased } else { MemberState::Stable };
        next.advance(self.epoch);
        let held = Held { active: kept_active, standby: standby.kept, warmup: warmup.kept };
        if *next.assigned != held {
            next.assigned = Arc::new(held);
        }
        next.revoking = Arc::default();
        next
    }

    /// What is new among active tasks; those kept and those to be given up, with their epochs.
    fn active(&self) -> (Sorted, ActiveTasks, ActiveTasks) {
        let (mut kept, mut revoked) = (ActiveTasks::new(), ActiveTasks::new());
        for (id, partitions) in &self.member.assigned.active {
            for (partition, since) in partitions {
                let stays = contains(&self.target.active, id, *partition);
                insert_active(if stays { &mut kept } else { &mut revoked }, id, *partition, *since);
            }
        }
        let mut sorted = Sorted::default();
        for (id, partition) in each(&self.target.active) {
            if kept.get(id).is_some_and(|kept| kept.contains_key(&partition)) {
                continue;
            }
            if self.group.owner(id, partition).is_some() || self.has_copy(id, partition) {
                sorted.is_waiting = true;
            } else {
                insert(&mut sorted.new, id, partition);
            }
        }
        (sorted, kept, revoked)
    }

    fn sort(&self, has: &Tasks, target: &Tasks) -> Sorted {
        let mut sorted = Sorted::default();
        for (id, partition) in each(has) {
            let stays = contains(target, id, partition);
            insert(if stays { &mut sorted.kept } else { &mut sorted.revoked }, id, partition);
        }
        for (id, partition) in each(target).filter(|(id, partition)| !contains(has, id, *partition)) {
            let runs = self.group.owner(id, partition).is_some_and(|owner| self.is_of_process(owner));
            if runs || self.has_copy(id, partition) {
                sorted.is_waiting = true;
            } else {
                insert(&mut sorted.new, id, partition);
            }
        }
        sorted
    }

    /// Whether the member's process has the task as a standby or a warm-up.
    fn has_copy(&self, subtopology: &Text, partition: i32) -> bool {
        [Role::Standby, Role::Warmup].into_iter().any(|role| {
            let holders = self.group.holders(role, subtopology, partition);
            holders.is_some_and(|holders| holders.iter().any(|holder| self.is_of_process(holder)))
        })
    }

    fn is_of_process(&self, id: &Text) -> bool {
        *id == self.member.id
            || self.group.member(id).is_some_and(|other| other.own.process == self.member.own.process)
    }
}
