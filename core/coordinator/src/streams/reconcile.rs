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
//! An active task is given to a member only while nobody has it. A process never runs the same task twice, in whatever roles: a
//! task is given to a thread only once no other thread of its process has it. What only changes its role on the same thread
//! keeps its state there: it is not closed and opened again.
//!
//! # Source
//! KIP-1071; Kafka 4.4 `CurrentAssignmentBuilder`.

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::Text;

use super::group::StreamsGroup;
use super::member::{MemberState, StreamsMember};
use super::tasks::{
    ActiveTasks, Held, Role, Target, Tasks, contains, each, each_active, insert, insert_active, take,
};

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
        let mut standby = self.sort(&has.standby, &self.target.standby, Role::Standby);
        let mut warmup = self.sort(&has.warmup, &self.target.warmup, Role::Warmup);
        // An active task that becomes a standby: the standby is there at once, the active task is still to be given up.
        for (id, partition) in each_active(&has.active) {
            if take(&mut standby.new, id, partition) {
                insert(&mut standby.kept, id, partition);
            }
        }
        convert(&has.standby, &mut standby.revoked, &mut warmup);
        convert(&has.warmup, &mut warmup.revoked, &mut standby);
        // A copy that becomes active is not given up: it stays one until the active task can be had.
        for (copies, sorted) in [(&has.standby, &mut standby), (&has.warmup, &mut warmup)] {
            for (id, partition) in each(copies).filter(|(id, part)| contains(&self.target.active, id, *part))
            {
                take(&mut sorted.revoked, id, partition);
            }
        }
        let revoking = Held {
            active: revoked_active,
            standby: std::mem::take(&mut standby.revoked),
            warmup: std::mem::take(&mut warmup.revoked),
        };
        let must_revoke = !revoking.is_empty() && self.still_has(&revoking);
        for (copies, kept) in [(&has.standby, &mut standby.kept), (&has.warmup, &mut warmup.kept)] {
            for (id, partition) in each(copies).filter(|(id, part)| contains(&self.target.active, id, *part))
            {
                if must_revoke || !contains(&active.new, id, partition) {
                    insert(kept, id, partition);
                }
            }
        }
        let mut next = self.member.clone();
        if must_revoke {
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
            let owner = self.group.owner(id, partition);
            if owner.is_some_and(|owner| *owner != self.member.id)
                || self.is_on_process(self.group.holders(Role::Standby, id, partition))
                || self.is_on_process(self.group.holders(Role::Warmup, id, partition))
            {
                sorted.is_waiting = true;
            } else {
                insert(&mut sorted.new, id, partition);
            }
        }
        (sorted, kept, revoked)
    }

    fn sort(&self, has: &Tasks, target: &Tasks, role: Role) -> Sorted {
        let mut sorted = Sorted::default();
        for (id, partition) in each(has) {
            let stays = contains(target, id, partition);
            insert(if stays { &mut sorted.kept } else { &mut sorted.revoked }, id, partition);
        }
        let other = if role == Role::Standby { Role::Warmup } else { Role::Standby };
        for (id, partition) in each(target).filter(|(id, partition)| !contains(has, id, *partition)) {
            let runs = self.group.owner(id, partition).is_some_and(|owner| self.is_sibling(owner));
            if runs
                || self.is_on_process(self.group.holders(role, id, partition))
                || self.is_on_process(self.group.holders(other, id, partition))
            {
                sorted.is_waiting = true;
            } else {
                insert(&mut sorted.new, id, partition);
            }
        }
        sorted
    }

    /// Whether another thread of the member's process is among these.
    fn is_on_process(&self, holders: Option<&BTreeSet<Text>>) -> bool {
        holders.is_some_and(|holders| holders.iter().any(|holder| self.is_sibling(holder)))
    }

    fn is_sibling(&self, id: &Text) -> bool {
        *id != self.member.id
            && self.group.member(id).is_some_and(|other| other.process == self.member.process)
    }
}

/// Copies that go over to the other role: nothing happens to them on the member, so nothing is waited for.
fn convert(from: &Tasks, revoked: &mut Tasks, to: &mut Sorted) {
    for (id, partition) in each(from) {
        if take(&mut to.new, id, partition) {
            insert(&mut to.kept, id, partition);
            take(revoked, id, partition);
        }
    }
}
