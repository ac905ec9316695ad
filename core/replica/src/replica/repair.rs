//! When a damaged replica may give up data and copy it again from the leader.
//!
//! Damage is found by the scrub or by a read. The replica then goes through three steps:
//! 1. The broker asks the controller not to let it lead the partition ([`Replica::note_damage`]). Where another replica
//!    is in sync, a leader becomes a follower.
//! 2. The follower fetches again from the damaged offset and drops what comes. So the leader sees it behind and removes
//!    it from the ISR. Local data stays.
//! 3. Once the replica is known to be neither in the ISR nor in the ELR, the damaged segment and all that follow are
//!    given up, and fetched as by any replica that was away.
//!
//! An image may be older than the cluster's state: a broker that is cut off from the controllers sees none of what they
//! decide, while its leader still answers it. So step 3 rests only on an image that is known to have been the newest at
//! some moment ([`RepairView::known_by`]), and by that moment the leader had seen the replica behind. From then on the
//! replica cannot come into the ISR again, since it fetches from the damaged offset, nor from the ISR into the ELR:
//! what the image shows stays true until the repair is over.
//!
//! A replica in the ELR is promised to hold all that was acknowledged (KIP-966), and may be elected. So where removing
//! it would leave fewer than `min.insync.replicas`, and the cluster has the ELR, it stays in the ISR until another
//! replica is back: everything but the damaged part is served meanwhile. Without the ELR it leaves the ISR even so, and
//! producers with `acks=all` wait.
//!
//! A damaged replica outside of ISR and ELR does not come into the ISR before it is repaired: it fetches from the
//! damaged offset, and so never catches up. One in the ELR cannot be repaired there, and fetches from its end: back in
//! the ISR it counts no more than before, and the ELR is empty once the ISR has `min.insync.replicas`. Otherwise two
//! damaged replicas in the ELR would wait for each other.
//!
//! Always true:
//! 1. the only replica in sync gives up nothing
//! 2. a replica in the ISR or the ELR gives up nothing
//! 3. nothing is given up before the leader has sent records from the damaged offset, which shows that it sees the
//!    replica behind
//! 4. nothing is given up before the image is known to hold all that was committed up to that moment
//! 5. a replica that knows of damage, and is in neither ISR nor ELR, does not fetch from behind the damage
//!
//! Neighbours: shell/broker/src/worker/partition_worker/replication/repair.rs, which carries it out; `truncation`;
//! core/partition's `partition/follower`.

use barnabas_base::{BrokerId, DurationMs, MonotonicMs, Offset};
use barnabas_metadata::Partition as Registration;
use barnabas_partition::Cut;

use crate::Replica;

/// Damage in the log, where other brokers have replicas of the partition.
#[derive(Debug, Default)]
pub struct Repair {
    /// The first offset that is damaged.
    damaged_from: Option<Offset>,
    refetch: Option<Refetch>,
}

/// Data that is fetched again, to be dropped.
#[derive(Debug, Clone, Copy)]
struct Refetch {
    since: MonotonicMs,
    /// The replica was in sync then.
    was_in_sync: bool,
    /// By this moment the leader had sent records from there.
    seen_behind_at: Option<MonotonicMs>,
}

impl Repair {
    pub fn damaged_from(&self) -> Option<Offset> {
        self.damaged_from
    }
}

/// What a repair depends on beside the replica.
#[derive(Debug, Clone, Copy)]
pub struct RepairView<'a> {
    pub me: BrokerId,
    /// The partition, by the newest image.
    pub row: &'a Registration,
    /// That image holds all that the controllers had committed by this moment. `None`: no such moment is known.
    pub known_by: Option<MonotonicMs>,
    /// `min.insync.replicas` of its topic.
    pub min_in_sync: u16,
    /// Whether the cluster has eligible leader replicas (KIP-966).
    pub elr_enabled: bool,
    /// `replica.lag.time.max.ms`.
    pub lag_max: DurationMs,
    pub now: MonotonicMs,
}

/// What a damaged replica does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStep {
    /// Nothing yet.
    Wait,
    /// The damage is gone: it was deleted, or truncated.
    Repaired,
    /// It begins to fetch again from here.
    Refetch { from: Offset },
    /// It fetches from its end again: the cluster needs it in the ISR.
    FetchOn,
    /// It gives up what lies from `to` on: whole segments.
    GiveUp { from: Offset, to: Offset, cut: Cut },
}

impl Replica {
    /// Damage was found at `offset`. Returns where it begins now, if that is news.
    pub fn note_damage(&mut self, offset: Offset, has_other_replicas: bool) -> Option<Offset> {
        let from = offset.max(self.partition.log_start());
        let is_known = self.repair.damaged_from.is_some_and(|known| known <= from);
        if self.partition.is_failed() || is_known || !has_other_replicas {
            return None;
        }
        self.repair.damaged_from = Some(from);
        Some(from)
    }

    /// Goes on with the repair, if there is one. To be called whenever the image, the leader or the replica has
    /// something new.
    pub fn repair_step(&mut self, view: &RepairView<'_>) -> RepairStep {
        let Some(from) = self.repair.damaged_from.filter(|_| self.truncation.is_none()) else {
            return RepairStep::Wait;
        };
        if from < self.partition.log_start() || from >= self.partition.log_end() {
            return RepairStep::Repaired;
        }
        let Some((_, epoch)) = self.following else { return RepairStep::Wait };
        let is_current = view.row.leader_epoch == epoch && self.partition.leader_epoch() == epoch;
        if !is_current {
            return RepairStep::Wait;
        }
        if view.is_needed() {
            return self.fetch_on();
        }
        if self.partition.asks_again_from().is_none() {
            if view.is_in_sync() && !self.partition.has_agreed() {
                // The leader may wait for what it has.
                return RepairStep::Wait;
            }
            self.partition.ask_again(from);
            if self.partition.asks_again_from().is_none() {
                return RepairStep::Wait;
            }
            let (since, was_in_sync) = (view.now, view.is_in_sync());
            self.repair.refetch = Some(Refetch { since, was_in_sync, seen_behind_at: None });
            return RepairStep::Refetch { from };
        }
        let is_counted_on = false;
        if self.partition.heal(is_counted_on) == Cut::Nothing {
            // This leader has not seen it behind.
            return RepairStep::Wait;
        }
        if let Some(refetch) = &mut self.repair.refetch {
            refetch.seen_behind_at.get_or_insert(view.now);
        }
        let is_settled = self.partition.fetch_position(self.log.epochs()).is_some();
        if self.is_counted_on(view) || !is_settled {
            return RepairStep::Wait;
        }
        self.give_up(from)
    }

    fn fetch_on(&mut self) -> RepairStep {
        self.repair.refetch = None;
        if self.partition.asks_again_from().is_none() {
            return RepairStep::Wait;
        }
        self.partition.stop_asking_again();
        RepairStep::FetchOn
    }

    /// Whether the cluster may rely on this replica's data.
    ///
    /// What counts is the state at a moment from which on it cannot become worse. The leader has seen the replica
    /// behind by then. A replica that was not in sync may be about to join even so: Apache's leader sends records at
    /// once, and may have asked the controller already. It does not any more after `replica.lag.time.max.ms`, or once
    /// the replica has left the ISR.
    fn is_counted_on(&self, view: &RepairView<'_>) -> bool {
        let Some(Refetch { since, was_in_sync, seen_behind_at: Some(seen_at) }) = self.repair.refetch else {
            return true;
        };
        let counts_at = if was_in_sync { seen_at } else { seen_at.max(since.plus(view.lag_max)) };
        let is_known = view.known_by.is_some_and(|known_by| known_by >= counts_at);
        !is_known || view.is_in_sync() || view.row.elr().contains(&view.me)
    }

    fn give_up(&self, from: Offset) -> RepairStep {
        let start = self.partition.log_start();
        let base = self.log.segment_base_of(from);
        let (to, cut) = if base > start { (base, Cut::To(base)) } else { (start, Cut::StartAt(start)) };
        RepairStep::GiveUp { from, to, cut }
    }

    /// No damage is known any more.
    pub fn forget_damage(&mut self) {
        self.repair = Repair::default();
    }

    /// The leader starts behind the place that was fetched: what it has deleted need not be repaired.
    pub fn follow_damage(&mut self) {
        let known = self.repair.damaged_from;
        self.repair.damaged_from = known.map(|from| self.partition.asks_again_from().unwrap_or(from));
    }
}

impl RepairView<'_> {
    fn is_in_sync(&self) -> bool {
        self.row.isr().contains(&self.me)
    }

    /// Whether the cluster counts on it, and lacks another for its place.
    fn is_needed(&self) -> bool {
        self.must_stay_in_sync() || self.row.elr().contains(&self.me)
    }

    /// Whether leaving the ISR would cost more than the damage does.
    fn must_stay_in_sync(&self) -> bool {
        let is_in_sync = self.is_in_sync();
        let others = self.row.isr().len() - usize::from(is_in_sync);
        let needed = usize::from(self.min_in_sync).min(self.row.replicas().len());
        is_in_sync && (others == 0 || self.elr_enabled && others < needed)
    }
}
