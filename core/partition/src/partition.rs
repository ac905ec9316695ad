//! One partition: which offset comes next, what is safe, who may be told.
//!
//! Pure. No clock, disk, lock or channel: the partition worker owns the only copy, hands it one command at a time,
//! writes what [`Placed::Write`] says and carries out the [`Effect`]s in their order.
//!
//! Always true (asserted after every step, and across the cluster by lab/sim):
//! 1. `log_start ≤ high_watermark ≤ durable_end ≤ written_end ≤ log_end`, and but for [`Partition::truncate`] none of
//!    them moves back
//! 2. an offset is given out once, by [`Partition::append`] (or, following, taken from the leader) and nowhere else
//! 3. `acks=all` is answered only after `high_watermark` has passed the batch, `acks=1` only after it is written,
//!    retries included; and what may be answered does not wait
//! 4. `log_start ≤ last_stable ≤ high_watermark`, and `last_stable` lies at or before every transaction that is
//!    undecided
//! 5. only a leader has appends that wait
//!
//! Produce path 4 of 5. Before: shell/broker/src/worker/partition_worker.rs. After: core/storage.

use barnabas_base::{DurationMs, LeaderEpoch, MonotonicMs, Offset, TimestampMs};

use self::follower::AsksAgain;
use crate::leading::Leading;
use crate::producers::Producers;
use crate::waits::{Wait, Waits};
use crate::{
    AbortedTxn, Acks, Append, BatchInfo, Bounds, Effect, Isolation, Leadership, LogEnds, Origin, Outcome,
    Placed, ProducerState, Refusal,
};

/// What this broker is to the partition.
#[derive(Debug, Clone)]
enum Role {
    Leader(Box<Leading>),
    /// With the high watermark that its leader has told it of, not all of which may be durable here yet.
    Follower(Offset),
    /// A follower that asks again for what it has, because that is damaged.
    AsksAgain(Box<AsksAgain>),
    /// Its log directory has failed; final.
    Failed,
}

/// One replica of one partition: less than a hundred bytes until it is written to.
#[derive(Debug, Clone)]
pub struct Partition {
    role: Role,
    leader_epoch: LeaderEpoch,
    log_start: Offset,
    /// The offset after the last that was given out.
    log_end: Offset,
    /// Everything below has been handed to the operating system.
    written_end: Offset,
    /// Everything below is as safe on this replica as `log.ack.durability` asks.
    durable_end: Offset,
    high_watermark: Offset,
    last_stable: Offset,
    /// None until a producer with an id writes.
    producers: Option<Box<Producers>>,
    /// Producers that are remembered at most.
    producers_max: u32,
    /// None while no request waits.
    waits: Option<Box<Waits>>,
}

impl Default for Partition {
    fn default() -> Self {
        Self::new()
    }
}

impl Partition {
    /// An empty replica without a role.
    pub fn new() -> Self {
        Self {
            role: Role::Follower(Offset::ZERO),
            leader_epoch: LeaderEpoch::NONE,
            log_start: Offset::ZERO,
            log_end: Offset::ZERO,
            written_end: Offset::ZERO,
            durable_end: Offset::ZERO,
            high_watermark: Offset::ZERO,
            last_stable: Offset::ZERO,
            producers: None,
            producers_max: u32::MAX,
            waits: None,
        }
    }

    // What is asked of it.

    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    pub fn is_failed(&self) -> bool {
        matches!(self.role, Role::Failed)
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    pub fn durable_end(&self) -> Offset {
        self.durable_end
    }

    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The last stable offset: below it, every transaction is decided.
    pub fn last_stable(&self) -> Offset {
        self.last_stable
    }

    /// What [`Self::restore`] needs, with every batch that may be sent again.
    pub fn producer_snapshot(&self) -> Vec<ProducerState> {
        self.producers.as_ref().map_or_else(Vec::new, |producers| producers.snapshot())
    }

    /// What is known of each producer, by id.
    pub fn producers(&self) -> Vec<ProducerState> {
        self.producers.as_ref().map_or_else(Vec::new, |producers| producers.states())
    }

    /// How many producers are remembered.
    pub fn producer_count(&self) -> usize {
        self.producers.as_ref().map_or(0, |producers| producers.len())
    }

    /// When the producer of the oldest open transaction last wrote: old means that the transaction hangs.
    pub fn oldest_txn_timestamp(&self) -> Option<TimestampMs> {
        self.producers.as_ref()?.oldest_txn_timestamp()
    }

    /// Appends that wait to be answered.
    pub fn waiting(&self) -> usize {
        self.waits.as_ref().map_or(0, |waits| waits.written.len() + waits.safe.len())
    }

    /// When [`Self::expire`] should next be called, if anything waits. May be early, never late.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        self.waits.as_ref()?.safe.earliest()
    }

    /// Compares the leader epoch that a request names with the true one, and whether this broker leads.
    ///
    /// # Errors
    /// [`Refusal::FencedEpoch`] (74), [`Refusal::UnknownEpoch`] (75), [`Refusal::NotLeader`] (6), [`Refusal::Offline`]
    /// (56).
    ///
    /// # Source
    /// Kafka `Partition.getLocalLog`; KIP-320.
    pub fn check_leader(&self, asked: Option<LeaderEpoch>) -> Result<(), Refusal> {
        let current = self.leader_epoch;
        match (&self.role, asked) {
            (Role::Failed, _) => Err(Refusal::Offline),
            (_, Some(asked)) if asked < current => Err(Refusal::FencedEpoch { asked, current }),
            (_, Some(asked)) if asked > current => Err(Refusal::UnknownEpoch { asked, current }),
            (Role::Follower(_) | Role::AsksAgain(_), _) => Err(Refusal::NotLeader),
            (Role::Leader(_), _) => Ok(()),
        }
    }

    /// Whether an append with these `acks` would be taken at all: asked before a batch is validated, because Kafka
    /// refuses in that order.
    ///
    /// # Errors
    /// As [`Self::check_leader`]; [`Refusal::TooFewReplicas`] (19).
    pub fn check_append(&self, acks: Acks, leader_epoch: Option<LeaderEpoch>) -> Result<(), Refusal> {
        self.check_leader(leader_epoch)?;
        let Role::Leader(leading) = &self.role else { return Err(Refusal::NotLeader) };
        let (in_sync, needed) = (leading.in_sync(), leading.needed());
        if acks == Acks::All && in_sync < needed {
            return Err(Refusal::TooFewReplicas { in_sync, needed });
        }
        Ok(())
    }

    /// From where to where `isolation` lets a reader read.
    ///
    /// # Errors
    /// As [`Self::check_leader`].
    pub fn bounds(&self, isolation: Isolation, leader_epoch: Option<LeaderEpoch>) -> Result<Bounds, Refusal> {
        self.check_leader(leader_epoch)?;
        Ok(self.bounds_of(isolation))
    }

    fn bounds_of(&self, isolation: Isolation) -> Bounds {
        let end = match isolation {
            Isolation::LogEnd => self.log_end,
            Isolation::ReadUncommitted => self.high_watermark,
            Isolation::ReadCommitted => self.last_stable,
        };
        let Self { log_start, high_watermark, last_stable, log_end, .. } = *self;
        Bounds { log_start, end, high_watermark, last_stable, log_end }
    }

    /// As [`Self::bounds`], for ListOffsets: a new leader whose high watermark has not reached its own epoch yet does
    /// not say where the log ends for clients, because the old leader may have told them more.
    ///
    /// # Errors
    /// As [`Self::check_leader`]; [`Refusal::OffsetNotAvailable`] (78).
    ///
    /// # Source
    /// KIP-207; Kafka `Partition.fetchOffsetForTimestamp`.
    pub fn list_bounds(&self, isolation: Isolation, epoch: Option<LeaderEpoch>) -> Result<Bounds, Refusal> {
        let bounds = self.bounds(isolation, epoch)?;
        match &self.role {
            Role::Leader(leading)
                if isolation != Isolation::LogEnd && leading.epoch_start > self.high_watermark =>
            {
                Err(Refusal::OffsetNotAvailable)
            }
            _ => Ok(bounds),
        }
    }

    // Inputs while its log is opened.

    /// Takes a batch of the log since the snapshot into account: its header, and its marker if it is one. Returns an
    /// aborted transaction, for a transaction index that is rebuilt.
    pub fn replay(&mut self, base: Offset, batch: &BatchInfo) -> Option<AbortedTxn> {
        self.note(base, batch)
    }

    /// Sets the log's bounds; all of it is on disk. Role and epoch stay: a new partition follows no leader before it
    /// gets a role.
    pub fn open(&mut self, ends: LogEnds) {
        assert!(!self.is_leader() && self.waits.is_none(), "a log is opened before anyone uses it");
        assert!(ends.log_start <= ends.log_end, "a log does not end before it starts");
        self.role.stop_asking_again();
        self.log_start = ends.log_start;
        self.log_end = ends.log_end;
        self.written_end = ends.log_end;
        self.durable_end = ends.log_end;
        self.high_watermark = ends.high_watermark.clamp(ends.log_start, ends.log_end);
        self.settle();
        self.last_stable = self.stable_end();
        self.assert_invariants();
    }

    // What changes its role.

    /// Leads from now on, or goes on leading with other replicas, in-sync replicas or minimum. A word that is not newer
    /// than what is known is ignored, but for its minimum: `false`.
    ///
    /// A new epoch begins at the log's end; storage must note that.
    pub fn become_leader(&mut self, leadership: &Leadership<'_>, effects: &mut Vec<Effect>) -> bool {
        if self.is_old(leadership.epoch) || self.is_failed() {
            return false;
        }
        let leading = match &mut self.role {
            Role::Leader(leading) if leadership.epoch == self.leader_epoch => {
                let is_news = leading.update(leadership);
                self.advance(effects);
                return is_news;
            }
            _ => Leading::new(self.log_end, leadership),
        };
        self.role = Role::Leader(Box::new(leading));
        self.leader_epoch = leadership.epoch;
        self.advance(effects);
        true
    }

    /// Sets `min.insync.replicas`, if this broker leads.
    pub fn set_min_in_sync(&mut self, min_in_sync: u16, effects: &mut Vec<Effect>) {
        if let Role::Leader(leading) = &mut self.role {
            leading.set_min_in_sync(min_in_sync);
        }
        self.advance(effects);
    }

    /// Follows from now on: appends that wait are told to look for the leader. An older word is ignored: `false`.
    pub fn become_follower(&mut self, epoch: LeaderEpoch, effects: &mut Vec<Effect>) -> bool {
        if self.is_old(epoch) || self.is_failed() {
            return false;
        }
        if epoch != self.leader_epoch || self.is_leader() {
            // What another leader told is not this one's word, nor has this one seen what it asks for.
            self.role = Role::Follower(Offset::ZERO);
        }
        self.leader_epoch = epoch;
        self.refuse_all(Refusal::NotLeader, effects);
        self.assert_invariants();
        true
    }

    /// The log directory has failed: nothing is written, answered or read any more.
    pub fn fail(&mut self, effects: &mut Vec<Effect>) {
        self.role = Role::Failed;
        self.refuse_all(Refusal::Offline, effects);
        self.assert_invariants();
    }

    // What a leader does.

    /// Gives `batch` the next offsets; never blocks. An [`Effect::Answer`] completes the ticket, at once or later,
    /// unless `acks` is [`Acks::None`].
    ///
    /// A retry of a batch that is remembered is not written again: it waits for the first copy and gets the first
    /// copy's offset.
    ///
    /// # Errors
    /// Nothing has changed after any of these, and the ticket is not answered again.
    /// - As [`Self::check_append`].
    /// - [`Refusal::SequenceGap`], code 45: an earlier batch of this producer is missing.
    /// - [`Refusal::LongSince`], code 46: it was appended, more than five batches of this producer ago, and is safe.
    /// - [`Refusal::OldProducerEpoch`], code 47: a newer life of the producer has written.
    /// - [`Refusal::OldCoordinator`], code 52: a marker from a coordinator that has been replaced.
    /// - [`Refusal::TxnState`], code 48: no transaction is open, or one is and the batch is not part of it.
    ///
    /// # Source
    /// KIP-98; Kafka 4 `UnifiedLog.append`, `ProducerAppendInfo`.
    pub fn append(
        &mut self,
        batch: &BatchInfo,
        how: &Append,
        effects: &mut Vec<Effect>,
    ) -> Result<Placed, Refusal> {
        assert!(batch.offsets > 0, "a batch takes offsets");
        self.check_append(how.acks, how.leader_epoch)?;
        if batch.producer_id.is_some() {
            let producers = self.producers.as_deref();
            let retried = match how.origin {
                Origin::Client => producers.and_then(|producers| producers.duplicate(batch)),
                Origin::Coordinator => None,
            };
            if let Some(first) = retried {
                let timestamp = Some(first.timestamp);
                self.wait(how, first.base(), first.last_offset.plus(1), timestamp, effects);
                self.assert_invariants();
                return Ok(Placed::Duplicate { base: first.base() });
            }
            self.check_follows(batch, how)?;
            let none = Producers::default();
            let producers = producers.unwrap_or(&none);
            producers.check(batch, how.origin, how.verified).map_err(|refusal| match refusal {
                // Not before it is safe: the client takes the answer for an acknowledgement.
                Refusal::SequenceGap { producer_id, sequence, .. }
                    if producers.long_since(batch).is_some_and(|behind| behind <= self.high_watermark) =>
                {
                    Refusal::LongSince { producer_id, sequence }
                }
                refusal => refusal,
            })?;
        }
        let base = self.log_end;
        self.log_end = base.plus(i64::from(batch.offsets));
        effects.extend(self.note(base, batch).map(Effect::Aborted));
        self.wait(how, base, self.log_end, None, effects);
        self.assert_invariants();
        Ok(Placed::Write { base, leader_epoch: self.leader_epoch })
    }

    /// Everything below `end` has been written, if not synced: answers `acks=1`.
    pub fn written(&mut self, end: Offset, effects: &mut Vec<Effect>) {
        assert!(end <= self.log_end, "what was written was given offsets before");
        self.written_end = self.written_end.max(end);
        self.advance(effects);
    }

    /// Everything below `end` is as safe on this replica as it is meant to be: moves the high watermark.
    ///
    /// With `log.ack.durability=written` the worker says so as soon as it has written.
    pub fn durable(&mut self, end: Offset, effects: &mut Vec<Effect>) {
        assert!(end <= self.written_end, "what is durable was written before");
        self.durable_end = self.durable_end.max(end);
        self.advance(effects);
    }

    /// [`Self::written`] and [`Self::durable`] at once: where batches are kept in a journal, the write is the sync.
    pub fn synced(&mut self, end: Offset, effects: &mut Vec<Effect>) {
        assert!(end <= self.log_end, "what was written was given offsets before");
        self.written_end = self.written_end.max(end);
        self.durable_end = self.durable_end.max(end);
        self.advance(effects);
    }

    /// Ends the waits whose deadline has come. Their batches stay in the log.
    pub fn expire(&mut self, now: MonotonicMs, effects: &mut Vec<Effect>) {
        if let Some(waits) = &mut self.waits {
            waits.safe.expire(now, effects);
        }
        self.drop_empty();
        self.assert_invariants();
    }

    /// Moves the log's start up to `to`, or to the high watermark where it is `None`. Returns the low watermark.
    ///
    /// # Errors
    /// As [`Self::check_leader`]; [`Refusal::OutOfRange`] below 0 and above the high watermark.
    ///
    /// # Source
    /// KIP-107; Kafka `Partition.deleteRecordsOnLeader`.
    pub fn delete_records(
        &mut self,
        to: Option<Offset>,
        effects: &mut Vec<Effect>,
    ) -> Result<Offset, Refusal> {
        self.check_leader(None)?;
        let to = to.unwrap_or(self.high_watermark);
        if to < Offset::ZERO || to > self.high_watermark {
            return Err(Refusal::OutOfRange { asked: to, start: self.log_start, end: self.high_watermark });
        }
        self.advance_log_start(to, effects);
        Ok(self.log_start)
    }

    // What happens to any replica.

    /// Retention has dropped what lies below `to`, or the leader says that it has.
    pub fn advance_log_start(&mut self, to: Offset, effects: &mut Vec<Effect>) {
        assert!(to <= self.high_watermark, "only what is safe may be deleted");
        if to <= self.log_start {
            return;
        }
        self.log_start = to;
        effects.push(Effect::LogStart(to));
        if let Some(producers) = &mut self.producers {
            producers.settle(to);
        }
        self.advance(effects);
    }

    /// Forgets producers that have been silent for `producer.id.expiration.ms` and have no open transaction.
    pub fn expire_producers(&mut self, now: TimestampMs, expiration: DurationMs) {
        if let Some(producers) = &mut self.producers {
            producers.expire(now, expiration);
        }
        self.drop_empty();
        self.assert_invariants();
    }

    // How it does that.

    fn is_old(&self, epoch: LeaderEpoch) -> bool {
        epoch < self.leader_epoch
    }

    fn producers_mut(&mut self) -> &mut Producers {
        self.producers.get_or_insert_default()
    }

    /// Notes what `batch` says of its producer; an aborted transaction comes back for the index.
    fn note(&mut self, base: Offset, batch: &BatchInfo) -> Option<AbortedTxn> {
        if !batch.producer_id.is_some() {
            return None;
        }
        let producer_id = batch.producer_id;
        let max = self.producers_max as usize;
        let producers = self.producers_mut();
        let decided = producers.note(base, batch);
        producers.keep_within(max, producer_id);
        producers.assert_invariants(producer_id);
        let decided = decided.filter(|decided| decided.outcome == Outcome::Abort)?;
        Some(AbortedTxn { producer_id, first: decided.first, last: base, last_stable: decided.last_stable })
    }

    /// Answers `how.ticket` now, or lets it wait, for a batch in `[base, end)`.
    fn wait(
        &mut self,
        how: &Append,
        base: Offset,
        end: Offset,
        duplicate_timestamp: Option<TimestampMs>,
        effects: &mut Vec<Effect>,
    ) {
        let wait = Wait { end, base, ticket: how.ticket, deadline: how.deadline, duplicate_timestamp };
        let reached = match how.acks {
            Acks::None => return,
            Acks::Leader => self.written_end,
            Acks::All => self.high_watermark,
        };
        if end <= reached {
            effects.push(wait.ack(self.log_start));
            return;
        }
        let waits = self.waits.get_or_insert_default();
        match how.acks {
            Acks::All => waits.safe.push(wait),
            Acks::None | Acks::Leader => waits.written.push(wait),
        }
    }

    /// What this replica itself has safely.
    fn own_end(&self) -> Offset {
        self.durable_end
    }

    /// After an end or the in-sync replicas have moved: moves the high watermark, answers who waited for any of them.
    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let safe = match &self.role {
            Role::Leader(leading) => leading.safe_end(self.own_end()),
            role => role.told().map(|told| told.min(self.durable_end)),
        };
        if let Some(safe) = safe {
            self.move_high_watermark(safe, effects);
        }
        self.move_last_stable(effects);
        if let Some(waits) = &mut self.waits {
            waits.written.answer(self.written_end, self.log_start, effects);
            waits.safe.answer(self.high_watermark, self.log_start, effects);
        }
        self.drop_empty();
        self.assert_invariants();
    }

    fn move_high_watermark(&mut self, to: Offset, effects: &mut Vec<Effect>) {
        if to > self.high_watermark {
            self.high_watermark = to;
            effects.push(Effect::HighWatermark(to));
            self.settle();
        }
        self.move_last_stable(effects);
    }

    fn move_last_stable(&mut self, effects: &mut Vec<Effect>) {
        let to = self.stable_end();
        if to > self.last_stable {
            self.last_stable = to;
            effects.push(Effect::LastStable(to));
        }
    }

    fn stable_end(&self) -> Offset {
        let first = self.producers.as_ref().and_then(|producers| producers.first_unstable());
        let first = first.unwrap_or(self.high_watermark);
        first.max(self.log_start).min(self.high_watermark)
    }

    fn settle(&mut self) {
        if let Some(producers) = &mut self.producers {
            producers.settle(self.high_watermark);
        }
    }

    fn refuse_all(&mut self, refusal: Refusal, effects: &mut Vec<Effect>) {
        if let Some(mut waits) = self.waits.take() {
            waits.written.refuse_all(refusal, effects);
            waits.safe.refuse_all(refusal, effects);
        }
    }

    /// An idle partition costs bytes: what is empty is given back.
    fn drop_empty(&mut self) {
        if self.waits.as_ref().is_some_and(|waits| waits.written.is_empty() && waits.safe.is_empty()) {
            self.waits = None;
        }
        if self.producers.as_ref().is_some_and(|producers| producers.is_empty()) {
            self.producers = None;
        }
    }

    /// What the head of this file promises. Stays on in release: a dozen comparisons.
    fn assert_invariants(&self) {
        let marks = [self.log_start, self.high_watermark, self.durable_end, self.written_end, self.log_end];
        assert!(marks.is_sorted(), "invariant 1: {marks:?} rise");
        let stable = self.log_start <= self.last_stable && self.last_stable <= self.high_watermark;
        assert!(stable, "invariant 4: {} lies at or before {}", self.last_stable, self.high_watermark);
        assert!(self.last_stable <= self.stable_end(), "invariant 4: undecided before {}", self.last_stable);
        if let Role::Leader(leading) = &self.role
            && let Some(followers) = leading.followers()
        {
            followers.assert_invariants();
        }
        let Some(waits) = &self.waits else { return };
        assert!(self.is_leader(), "invariant 5: only a leader lets anyone wait");
        let (written, safe) = (&waits.written, &waits.safe);
        assert!(
            written.first_end().is_none_or(|end| end > self.written_end)
                && safe.first_end().is_none_or(|end| end > self.high_watermark),
            "invariant 3: what may be answered does not wait"
        );
        let last = written.last_end().max(safe.last_end());
        assert!(
            last.is_none_or(|end| end <= self.log_end),
            "invariant 2: a request waits for an offset that was not given out"
        );
    }
}

mod follower;
mod leader;
mod remembered;
pub use remembered::level;
#[cfg(test)]
mod tests;
mod verification;
