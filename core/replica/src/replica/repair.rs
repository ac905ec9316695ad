//! How a damaged replica is repaired from its leader: what is mended in place, and when data may be given up to copy it
//! again.
//!
//! Damage is found by the scrub or by a read. The replica then goes through these steps:
//! 1. The broker asks the controller not to let it lead the partition ([`Replica::note_damage`]). Where another replica
//!    is in sync, a leader becomes a follower.
//! 2. The damaged segments are checked as a whole, so that each damaged place is known (`damages`).
//! 3. The follower fetches again from a damaged place, and appends nothing of what comes. So the leader sees it behind
//!    and removes it from the ISR. Local data stays.
//! 4. *Mend*: what the leader sends is written over the damaged batches, where it fits ([`Replica::take_again`],
//!    core/storage's `Log::mend`). Once all segments are whole, the replica is repaired.
//! 5. *Sweep*: where something does not fit, the follower fetches everything that it would give up, from the base of
//!    the first such segment to its end, checks it and drops it. A leader that is damaged there itself ends the repair:
//!    it waits for another leader, and keeps its data.
//! 6. *Give up*: once all of that was served, and the replica is known to be neither in the ISR nor in the ELR, the
//!    segments that did not fit are checked and tried once more: an operator may have restored them. Then the first of
//!    them and all that follow are given up, and fetched as by any replica that was away.
//!
//! So two replicas that are damaged at different places mend each other: the leader serves what is around its own
//! damage, and is a follower once the other one is whole.
//!
//! A mend needs no more than the leader's answer: it overwrites bytes that were damaged anyway, with the batch that was
//! there. So it is safe while the replica is in the ISR or the ELR, or about to be elected.
//!
//! An image may be older than the cluster's state: a broker that is cut off from the controllers sees none of what they
//! decide, while its leader still answers it. So step 6 rests only on an image that is known to have been the newest at
//! some moment ([`RepairView::known_by`]), and by that moment the leader had seen the replica behind. From then on the
//! replica cannot come into the ISR again, since it fetches from below the leader's high watermark, nor from the ISR
//! into the ELR: what the image shows stays true until the repair is over.
//!
//! A replica in the ELR is promised to hold all that was acknowledged (KIP-966), and may be elected. So where removing
//! it would leave fewer than `min.insync.replicas`, and the cluster has the ELR, it stays in the ISR until another
//! replica is back. It goes on fetching from its end. Beside that it fetches the damaged places as a consumer does
//! ([`RepairStep::FetchAside`], [`Replica::take_aside`]), which acknowledges nothing, and mends what fits (step 4
//! alone). So does a replica in the ELR. Without the ELR it leaves the ISR even so, and producers with `acks=all` wait.
//!
//! What could not be mended is looked at again every few seconds, in one batch: here, as files may be restored in place
//! while the broker runs; and on the leader by a replica that cannot leave the ISR. If that batch is sound, or fits
//! now, the unfit segments are checked and tried again.
//!
//! A damaged replica outside of ISR and ELR does not come into the ISR before it is repaired: it fetches from the
//! damaged offset, and so never catches up. One in the ELR gives up nothing there, and fetches from its end: back in
//! the ISR it counts no more than before, and the ELR is empty once the ISR has `min.insync.replicas`. Otherwise two
//! damaged replicas in the ELR would wait for each other.
//!
//! Always true:
//! 1. the only replica in sync gives up nothing
//! 2. a replica in the ISR or the ELR gives up nothing
//! 3. nothing is given up before the leader has sent all of those offsets with right checksums; which shows as well
//!    that it sees the replica behind
//! 4. nothing is given up before the image is known to hold all that was committed up to that moment
//! 5. a replica that knows of damage, and is in neither ISR nor ELR, does not fetch from behind the damage, except for
//!    the sweep, which stays below the leader's high watermark
//! 6. only batches that are damaged are overwritten
//! 7. nothing is given up that was not found damaged again after the leader had served it
//! 8. what is fetched aside acknowledges nothing, and is appended nowhere
//!
//! Neighbours: shell/broker/src/worker/partition_worker/replication/repair.rs, which carries it out; `truncation`;
//! core/partition's `partition/follower`; core/storage/src/log/sound/mend.rs.

mod aside;
mod damages;
mod refused;

use barnabas_base::{BrokerId, DurationMs, LeaderEpoch, MonotonicMs, Offset};
use barnabas_metadata::Partition as Registration;
use barnabas_partition::Cut;
use barnabas_storage::{DamagedPlace, FilePool, Mend, StorageError};
use barnabas_wire::records::batches;
use bytes::Bytes;

use crate::Replica;
use damages::{Damages, Look};
use refused::Refused;

/// How soon what could not be mended is looked at again.
pub const LOOK_AGAIN: DurationMs = DurationMs(5_000);

/// Damage in the log, where other brokers have replicas of the partition.
#[derive(Debug, Default)]
pub struct Repair {
    damages: Damages,
    refetch: Option<Refetch>,
    /// Up to where the leader has served what would be given up.
    sweep: Option<Offset>,
    /// From where on.
    swept_from: Offset,
    /// It has served all of it.
    is_served: bool,
    /// What did not fit was checked and tried again since.
    is_tried_again: bool,
    /// What is fetched aside, from where.
    aside: Option<Offset>,
    /// The leader epoch in which it was.
    aside_epoch: Option<LeaderEpoch>,
    /// The leader is to be asked again for what could not be mended.
    aside_is_due: bool,
    /// When what could not be mended is looked at again.
    look_at: Option<MonotonicMs>,
    /// Where the leader's own records were last found to be damaged.
    leader_damage: Option<Offset>,
    /// As in [`RepairView::has_no_holes`].
    has_no_holes: bool,
    /// What the leader has deleted is not looked at.
    start: Offset,
    /// Of a leader that is damaged. Boxed: each idle partition would have its room.
    refused: Option<Box<Refused>>,
}

/// Data that is fetched again.
#[derive(Debug, Clone, Copy)]
struct Refetch {
    since: MonotonicMs,
    /// The replica was in sync then.
    was_in_sync: bool,
    /// By this moment the leader had sent records from there.
    seen_behind_at: Option<MonotonicMs>,
}

/// A replica that cannot be repaired from its leader, as that is damaged too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BothDamaged {
    /// The first offset that is damaged here.
    pub own: Offset,
    pub leaders: Offset,
}

impl Repair {
    /// The first offset that is damaged.
    pub fn damaged_from(&self) -> Option<Offset> {
        self.damages.first()
    }

    /// Whether there is damage, or what was mended is still to be counted: the batches of a round come before that.
    pub fn is_under_way(&self) -> bool {
        self.damaged_from().is_some() || self.damages.mended().is_some()
    }

    /// The leader's records are damaged at `at`. Returns whether that is news.
    fn note_leader(&mut self, at: Offset) -> Option<BothDamaged> {
        let own = self.damages.first()?;
        let is_news = self.leader_damage.replace(at) != Some(at);
        is_news.then_some(BothDamaged { own, leaders: at })
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
    /// Nothing was compacted in the log: offsets follow one another.
    pub has_no_holes: bool,
    pub now: MonotonicMs,
}

/// What a damaged replica does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStep {
    /// Nothing yet.
    Wait,
    /// A piece of a segment was checked: the next step may follow at once.
    Check,
    /// The damage is gone: it was deleted, truncated, or mended from one offset up to another.
    Repaired { mended: Option<(Offset, Offset)> },
    /// It begins to fetch again from here.
    Refetch { from: Offset },
    /// It goes on fetching again, from another place.
    Ask,
    /// It fetches from its end again: the cluster needs it in the ISR.
    FetchOn,
    /// It fetches from its end, and is to fetch this place as a consumer: the answer goes to [`Replica::take_aside`].
    FetchAside { from: Offset },
    /// It gives up what lies from `to` on: whole segments.
    GiveUp { from: Offset, to: Offset, cut: Cut },
}

impl Replica {
    /// Damage was found at `offset`. Returns where it begins now, if that is news.
    pub fn note_damage(&mut self, offset: Offset, has_other_replicas: bool) -> Option<Offset> {
        let from = offset.max(self.partition.log_start());
        if self.partition.is_failed() || !has_other_replicas {
            return None;
        }
        let is_known = self.repair.damages.first().is_some_and(|known| known <= from);
        self.repair.damages.note(from, self.log.segment_base_of(from));
        (!is_known).then_some(from)
    }

    /// Goes on with the repair, if there is one. To be called whenever the image, the leader or the replica has
    /// something new.
    ///
    /// # Errors
    /// The log was mended, and its state cannot be read again: as [`Replica::finish_truncation`].
    pub fn repair_step(
        &mut self,
        view: &RepairView<'_>,
        files: &mut FilePool,
    ) -> Result<RepairStep, StorageError> {
        if !self.repair.is_under_way() || self.truncation.is_some() {
            return Ok(RepairStep::Wait);
        }
        let start = self.partition.log_start().max(self.repair.start);
        let first = self.first_read(start, files);
        self.repair.damages.keep(first, self.partition.log_end());
        let Some(from) = self.repair.damaged_from() else { return self.is_repaired(files) };
        let Some((_, epoch)) = self.following else { return Ok(RepairStep::Wait) };
        let is_current = view.row.leader_epoch == epoch && self.partition.leader_epoch() == epoch;
        if !is_current {
            return Ok(RepairStep::Wait);
        }
        self.repair.has_no_holes = view.has_no_holes;
        let counts = view.is_in_sync() || view.is_needed();
        if !counts && self.partition.asks_again_from().is_none() {
            // It is not to catch up while the log is checked.
            return Ok(self.begin_asking(from, view));
        }
        let looked = self.repair.damages.look(&self.log, files, view.has_no_holes, first);
        match looked {
            Look::Goes => return Ok(RepairStep::Check),
            Look::Later => return Ok(RepairStep::Wait),
            Look::Done if self.repair.damages.unfit().is_none() => return self.is_repaired(files),
            Look::Done if self.is_restored(view.now, files) => return Ok(RepairStep::Check),
            Look::Done | Look::Try(_) => {}
        }
        if view.is_needed() {
            return Ok(self.repair_aside(looked, epoch));
        }
        let from = match looked {
            Look::Try(place) => place.offset.max(start),
            _ => self.swept_to(from, start),
        };
        Ok(self.ask(from, looked == Look::Done, view))
    }

    /// Where the batches begin that are looked at: the one that holds the start of the log may begin before it.
    fn first_read(&mut self, start: Offset, files: &mut FilePool) -> Offset {
        if self.repair.damaged_from().is_none_or(|damaged| damaged > start) {
            return start;
        }
        match self.log.read(files, start, 1, self.log.end(), true) {
            Err(StorageError::Damaged { offset, .. }) => offset.min(start),
            _ => start,
        }
    }

    /// From where what would be given up is to be fetched.
    fn swept_to(&mut self, damaged: Offset, start: Offset) -> Offset {
        let unfit = self.repair.damages.unfit().unwrap_or(damaged);
        let base = self.log.segment_base_of(unfit);
        let Repair { sweep, swept_from, is_served, is_tried_again, .. } = &mut self.repair;
        if sweep.is_none() || base < *swept_from {
            // Damage in front of what was served was found since.
            (*sweep, *swept_from, *is_served) = (Some(base), base, false);
            *is_tried_again = false;
        }
        match sweep {
            Some(swept) if !*is_served => {
                *swept = (*swept).max(start);
                *swept
            }
            _ => unfit,
        }
    }

    fn begin_asking(&mut self, from: Offset, view: &RepairView<'_>) -> RepairStep {
        if view.is_in_sync() && !self.partition.has_agreed() {
            // The leader may wait for what it has.
            return RepairStep::Wait;
        }
        self.partition.ask_again(from);
        if self.partition.asks_again_from().is_none() {
            return RepairStep::Wait;
        }
        let (since, was_in_sync) = (view.now, view.is_in_sync());
        let Repair { damages, refetch, sweep, is_served, leader_damage, .. } = &mut self.repair;
        *refetch = Some(Refetch { since, was_in_sync, seen_behind_at: None });
        // What another leader has served, or has not, says nothing of this one.
        (*sweep, *is_served, *leader_damage) = (None, false, None);
        damages.try_again();
        RepairStep::Refetch { from }
    }

    /// It fetches again from `from`, and gives up what does not fit once it may.
    fn ask(&mut self, from: Offset, is_all_tried: bool, view: &RepairView<'_>) -> RepairStep {
        let Some(asked) = self.partition.asks_again_from() else { return self.begin_asking(from, view) };
        let is_counted_on = false;
        if self.partition.heal(is_counted_on) != Cut::Nothing
            && let Some(refetch) = &mut self.repair.refetch
        {
            refetch.seen_behind_at.get_or_insert(view.now);
        }
        self.partition.ask_from(from);
        if self.partition.asks_again_from() != Some(asked) {
            return RepairStep::Ask;
        }
        let is_settled = self.partition.fetch_position(self.log.epochs()).is_some();
        if !is_all_tried || !self.repair.is_served || self.is_counted_on(view) || !is_settled {
            return RepairStep::Wait;
        }
        if !std::mem::replace(&mut self.repair.is_tried_again, true) {
            // The leader, or this log, may have been restored since it did not fit.
            self.repair.damages.try_again();
            return RepairStep::Check;
        }
        self.give_up(from)
    }

    /// Takes what the leader has sent to a replica that asks again, from `asked` on: over what is damaged, or for what
    /// it shows. `leaders_end`: the leader's high watermark. Returns where the leader itself is damaged, if that is
    /// news.
    ///
    /// # Errors
    /// The log could not be mended. Where that is not passing ([`StorageError::is_passing`]), it takes no more writes.
    pub fn take_again(
        &mut self,
        asked: Offset,
        records: Bytes,
        leaders_end: Offset,
        files: &mut FilePool,
    ) -> Result<Option<BothDamaged>, StorageError> {
        self.partition.seen_behind();
        if records.is_empty() || self.truncation.is_some() {
            return Ok(None);
        }
        let sound = sound_front(&records);
        let Some(place) = self.repair.damages.place() else {
            return Ok(self.sweep(asked, &records[..sound], leaders_end));
        };
        if place.offset.max(self.partition.log_start()) != asked {
            return Ok(None);
        }
        if sound == 0 {
            return Ok(self.leader_is_damaged(asked));
        }
        self.mend_place(place, &records[..sound], files)?;
        Ok(None)
    }

    /// Tries the leader's batches at the place that comes next.
    fn mend_place(
        &mut self,
        place: DamagedPlace,
        sound: &[u8],
        files: &mut FilePool,
    ) -> Result<(), StorageError> {
        let committed = self.partition.high_watermark();
        let done = self.log.mend(files, place, sound, committed)?;
        self.repair.damages.tried(match done {
            Mend::Done { end } => Some(end),
            Mend::Sound | Mend::Unfit => None,
        });
        Ok(())
    }

    /// The leader says that it is damaged at `asked`, where it was asked again. Returns that if it is news.
    pub fn leader_is_damaged(&mut self, asked: Offset) -> Option<BothDamaged> {
        self.partition.asks_again_from().filter(|from| *from == asked)?;
        let is_tried = self.repair.damages.place().is_some_and(|place| place.offset <= asked);
        if self.repair.is_served {
            // Not any more.
            (self.repair.is_served, self.repair.sweep) = (false, None);
        }
        let news = self.repair.note_leader(asked);
        if is_tried {
            self.repair.damages.tried(None);
        }
        news
    }

    /// Notes how much of what would be given up the leader has served.
    fn sweep(&mut self, asked: Offset, sound: &[u8], leaders_end: Offset) -> Option<BothDamaged> {
        let swept = self.repair.sweep.filter(|swept| *swept == asked && !self.repair.is_served)?;
        let mut end = swept;
        for batch in batches(Bytes::copy_from_slice(sound)).map_while(Result::ok) {
            let header = batch.header();
            if self.repair.has_no_holes && header.base_offset > end {
                break;
            }
            end = end.max(header.last_offset().plus(1));
        }
        if end == swept {
            return self.repair.note_leader(asked);
        }
        self.repair.is_served = end >= self.partition.log_end();
        if end < leaders_end {
            self.repair.sweep = Some(end);
        }
        None
    }

    /// No damage is left. What was mended counts for producers, too.
    fn is_repaired(&mut self, files: &mut FilePool) -> Result<RepairStep, StorageError> {
        let mended = self.repair.damages.mended();
        if let Some(range) = mended.filter(|_| !self.partition.is_leader()) {
            if self.partition.fetch_position(self.log.epochs()).is_none() || !self.round.is_empty() {
                return Ok(RepairStep::Wait);
            }
            self.reload_mended(files, range)?;
        }
        self.partition.stop_asking_again();
        Ok(RepairStep::Repaired { mended })
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

    /// The leader's log starts at `leaders_start`: what it has deleted need not be repaired.
    pub fn follow_damage(&mut self, leaders_start: Offset) {
        if self.repair.damaged_from().is_some() {
            self.repair.start = self.repair.start.max(leaders_start);
        }
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

/// How many bytes at the front are whole batches with right checksums.
fn sound_front(records: &Bytes) -> usize {
    let sound =
        batches(records.clone()).map_while(|batch| batch.ok().filter(|batch| batch.check_crc().is_ok()));
    sound.map(|batch| batch.bytes().len()).sum()
}
