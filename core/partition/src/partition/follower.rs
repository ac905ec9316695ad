//! A replica that follows: where it goes on, what it cuts, what it takes over from its leader.
//!
//! A follower acknowledges by where it asks from: not before all below is durable here ([`Partition::fetch_position`]).
//! So one answer at a time is on its way to its disk; `fetcher` asks for many partitions at once, and one sync holds
//! all of them.
//!
//! A replica whose log is damaged heals itself from its leader, in three steps. It *asks again* from where the damage
//! begins ([`Partition::ask_again`]) and appends nothing of what comes: so every leader sees it behind, and lets it go.
//! What comes is written over the damaged batches alone, where it fits (core/replica's `repair`). Meanwhile it keeps
//! all that it has, because it counts and may be elected. Only when the metadata log says that it counts no more
//! (neither in sync nor, by KIP-966, eligible to lead), and the leader has seen it behind, so that it does not let it
//! join meanwhile, may the log be cut there ([`Partition::heal`]). It is then copied as that of any replica that was
//! away.
//!
//! Replication path 3 of 3. Before: `fetcher` (a leader's answer). After: core/storage (append, truncate).
//!
//! Source: KIP-101, KIP-279, KIP-595; Kafka `ReplicaFetcherThread`, `AbstractFetcherThread`,
//! `UnifiedLog.appendAsFollower`.

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset};

use super::{Partition, Role};
use crate::divergence::truncation;
use crate::{BatchInfo, Bounds, Cut, Effect, FetchPosition, Follow, Isolation, Refusal};

/// What a damaged follower remembers until its log is cut, or another leads. Boxed: hardly any replica needs it.
#[derive(Debug, Clone)]
pub(super) struct AsksAgain {
    /// As in [`Role::Follower`].
    told: Offset,
    /// What lies here and behind it is asked for again.
    from: Offset,
    /// The leader has sent records from there.
    is_seen_behind: bool,
}

impl Role {
    /// The high watermark that the leader has told it of. `None`: it does not follow.
    pub(super) fn told(&self) -> Option<Offset> {
        match self {
            Self::Follower(told) => Some(*told),
            Self::AsksAgain(asking) => Some(asking.told),
            Self::Leader(_) | Self::Failed => None,
        }
    }

    pub(super) fn stop_asking_again(&mut self) {
        if let Self::AsksAgain(asking) = self {
            *self = Self::Follower(asking.told);
        }
    }
}

impl Partition {
    /// Its log is damaged at `from`: it acknowledges no more than what lies below until it is cut there, the leader
    /// changes, or [`Self::stop_asking_again`].
    pub fn ask_again(&mut self, from: Offset) {
        let Some(told) = self.role.told() else { return };
        let known = self.asks_again_from().unwrap_or(self.log_end);
        if from < self.log_end.min(known) {
            let asking = AsksAgain { told, from: from.max(self.log_start), is_seen_behind: false };
            self.role = Role::AsksAgain(Box::new(asking));
        }
    }

    /// It goes on asking from another place: the leader has been seen to send from there, or is still to. What was seen
    /// of it stays true, as long as the place is below the leader's high watermark.
    pub fn ask_from(&mut self, from: Offset) {
        let (start, end) = (self.log_start, self.log_end);
        if let Role::AsksAgain(asking) = &mut self.role
            && from < end
        {
            asking.from = from.max(start);
        }
    }

    /// Whether its leader has answered it: they agree on all that it has.
    pub fn has_agreed(&self) -> bool {
        self.role.told().is_some_and(|told| told > Offset::ZERO)
    }

    /// It acknowledges all that it has again, damaged or not: it counts.
    pub fn stop_asking_again(&mut self) {
        self.role.stop_asking_again();
    }

    /// From where what it has is asked for again: what comes is not to be appended.
    pub fn asks_again_from(&self) -> Option<Offset> {
        match &self.role {
            Role::AsksAgain(asking) => Some(asking.from),
            Role::Leader(_) | Role::Follower(_) | Role::Failed => None,
        }
    }

    /// The leader has sent records from there. One of this kind does so only once it does not count on this replica,
    /// nor has asked the controller to.
    pub fn seen_behind(&mut self) {
        if let Role::AsksAgain(asking) = &mut self.role {
            asking.is_seen_behind = true;
        }
    }

    /// What must go so that it can be whole again; `counts`: it is in sync, or eligible to lead.
    pub fn heal(&self, counts: bool) -> Cut {
        match &self.role {
            Role::AsksAgain(asking) if asking.is_seen_behind && !counts => self.cut_to(asking.from),
            _ => Cut::Nothing,
        }
    }

    /// Where to fetch from, by the epochs of this replica's log. `None`: it does not follow, or what it has is not
    /// durable yet.
    pub fn fetch_position(&self, epochs: &LeaderEpochs) -> Option<FetchPosition> {
        let is_settled = self.durable_end == self.log_end;
        if self.role.told().is_none() || !is_settled {
            return None;
        }
        let asked = self.asks_again_from().unwrap_or(self.log_end);
        let offset = self.log_end.min(asked.max(self.log_start));
        let last_epoch = epochs.epoch_at(offset.plus(-1)).filter(|_| offset > self.log_start);
        Some(FetchPosition {
            leader_epoch: self.leader_epoch,
            offset,
            last_epoch,
            log_start: self.log_start,
            high_watermark: self.high_watermark,
        })
    }

    /// Whether an answer to a fetch from `asked` is about this log as it is now: answers that come late or twice, and
    /// those of a former leader, are dropped. The last epoch counts too: a log that was cut may have grown to the same
    /// offset again.
    pub fn may_take(&self, asked: &FetchPosition, epochs: &LeaderEpochs) -> bool {
        let Some(now) = self.fetch_position(epochs) else { return false };
        let words = |at: &FetchPosition| (at.leader_epoch, at.offset, at.last_epoch);
        words(asked) == words(&now)
    }

    /// What to do with a batch at `base` that was written under `epoch`.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`]: it overlaps the end of this log, which no leader of this log can send.
    ///
    /// # Source
    /// KAFKA-18723 for batches of a newer epoch; Kafka `Partition.doAppendRecordsToFollowerOrFutureReplica` for a log
    /// that starts inside of a batch.
    pub fn judge(&self, base: Offset, offsets: i32, epoch: LeaderEpoch) -> Result<Follow, Refusal> {
        if base.plus(i64::from(offsets)) <= self.log_end {
            return Ok(Follow::Skip);
        }
        if base < self.log_end && self.log_end == self.log_start {
            return Ok(Follow::AppendFromBelow);
        }
        if base < self.log_end {
            let (start, end) = (self.log_start, self.log_end);
            return Err(Refusal::OutOfRange { asked: base, start, end });
        }
        Ok(if epoch > self.leader_epoch { Follow::Stop } else { Follow::Append })
    }

    /// A batch of the leader's at `base` was appended. Nothing of it is judged.
    pub fn follow(&mut self, base: Offset, batch: &BatchInfo, effects: &mut Vec<Effect>) {
        assert!(!self.is_leader(), "a leader takes no batches from another");
        assert!(self.asks_again_from().is_none(), "nothing is taken before what is damaged is cut off");
        let is_empty = self.log_end == self.log_start;
        assert!(base >= self.log_end || is_empty, "an offset is taken once");
        assert!(base.plus(i64::from(batch.offsets)) > self.log_end, "a log does not shrink by an append");
        self.log_end = base.plus(i64::from(batch.offsets));
        effects.extend(self.note(base, batch).map(Effect::Aborted));
        self.assert_invariants();
    }

    /// The leader says how far all in-sync replicas have come, and where its log starts. Of both only what this replica
    /// has counts.
    pub fn follow_marks(&mut self, high_watermark: Offset, log_start: Offset, effects: &mut Vec<Effect>) {
        self.follow_high_watermark(high_watermark, effects);
        let log_start = log_start.min(self.high_watermark);
        self.advance_log_start(log_start, effects);
    }

    /// The leader says how far all in-sync replicas have come. What of that is not durable here yet counts once it is:
    /// in a session a leader does not say the same twice.
    pub fn follow_high_watermark(&mut self, leaders: Offset, effects: &mut Vec<Effect>) {
        assert!(!self.is_leader(), "a leader knows its high watermark itself");
        match &mut self.role {
            Role::Follower(told) => *told = leaders,
            // Not before it has agreed with this leader on all that it has.
            Role::AsksAgain(asking) if asking.told > Offset::ZERO => asking.told = leaders,
            Role::AsksAgain(_) => {}
            Role::Leader(_) | Role::Failed => {}
        }
        self.advance(effects);
    }

    /// The leader says that this log is not a beginning of its own: what must go. After the cut the follower asks
    /// again.
    ///
    /// `epoch` and `end` as in [`FollowerRead::Diverging`](crate::FollowerRead::Diverging).
    pub fn diverged(&self, epoch: LeaderEpoch, end: Offset, epochs: &LeaderEpochs) -> Cut {
        if end < Offset::ZERO {
            // No leader says so: a word without sense deletes nothing.
            return Cut::Nothing;
        }
        self.cut_to(truncation(epochs, self.log_end, epoch, end))
    }

    /// The leader has nothing at the place that was asked for: it starts at `leaders_start` and ends at `leaders_end`.
    ///
    /// # Source
    /// Kafka `AbstractFetcherThread.fetchOffsetAndTruncate`.
    pub fn out_of_range(&mut self, leaders_start: Offset, leaders_end: Offset) -> Cut {
        match &mut self.role {
            // No replica has the damaged records any more.
            Role::AsksAgain(asking) if asking.from < leaders_start && leaders_start < self.log_end => {
                asking.from = leaders_start;
            }
            Role::AsksAgain(asking) if asking.from < leaders_start => self.role.stop_asking_again(),
            _ => {}
        }
        if leaders_end < self.log_end {
            // It was elected at the price of records, and has fewer than this one.
            self.cut_to(leaders_end)
        } else if leaders_start > self.log_end {
            // This one was away for longer than the leader keeps records.
            Cut::StartAt(leaders_start)
        } else {
            Cut::Nothing
        }
    }

    /// The leader's log starts at `leaders_start`: what must go before its answer is taken.
    ///
    /// Where the leader has deleted all that this log has, it could not compare what is not known to be committed
    /// here. Such records may be of an older epoch than those that the leader had. To raise the start is not
    /// enough: after a crash before that is on disk they would be served, should this replica be elected.
    ///
    /// Kafka raises the start alone. Found by lab/sim, seed 21012.
    pub fn uncompared(&self, leaders_start: Offset) -> Cut {
        let is_deleted = leaders_start == self.log_end && self.log_start < self.log_end;
        if is_deleted && self.high_watermark < self.log_end && self.asks_again_from().is_none() {
            Cut::StartAt(leaders_start)
        } else {
            Cut::Nothing
        }
    }

    fn cut_to(&self, end: Offset) -> Cut {
        if end >= self.log_end {
            Cut::Nothing
        } else if end < self.log_start {
            Cut::StartAt(end)
        } else {
            Cut::To(end)
        }
    }

    /// The log now ends at `end`, earlier than it did. The producers are forgotten: [`Self::restore`] and
    /// [`Self::replay`] them from what is left, then [`Self::open`] with where the log stands.
    pub fn truncate(&mut self, end: Offset) {
        assert!(!self.is_leader(), "a leader's log is the one that counts");
        assert!(self.log_start <= end && end <= self.log_end, "a log is truncated inside itself");
        self.producers = None;
        self.log_end = end;
        if self.asks_again_from().is_some_and(|from| end <= from) {
            self.role.stop_asking_again();
        }
        for mark in
            [&mut self.written_end, &mut self.durable_end, &mut self.high_watermark, &mut self.last_stable]
        {
            *mark = (*mark).min(end);
        }
        self.assert_invariants();
    }

    /// From where to where a consumer may read that does not insist on the leader (Fetch v11 and later, KIP-392).
    ///
    /// # Errors
    /// As [`Self::check_leader`], but a follower answers too.
    pub fn replica_bounds(
        &self,
        isolation: Isolation,
        leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Bounds, Refusal> {
        match self.check_leader(leader_epoch) {
            Ok(()) | Err(Refusal::NotLeader) => Ok(self.bounds_of(isolation)),
            Err(refusal) => Err(refusal),
        }
    }
}
