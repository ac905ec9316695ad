//! One broker's followers of one other broker: which partitions are asked for next, and what their answers mean.
//!
//! One request at a time, for as many partitions as are ready; within a session (KIP-227, [`session`]) it names only
//! those whose position has changed. A partition whose records are on their way to the disk is *busy*, and not asked
//! for: to ask from behind them would acknowledge them. The next request waits for the busy ones, which one sync
//! settles, but not for longer than [`FetcherSettings::patience`]; so a slow directory holds up its own partitions
//! only. What the owners of the partitions do not settle is not asked for: that is the back-pressure.
//!
//! It does not know what a record is, nor who leads: [`Partition`](crate::Partition) judges what an answer brings, and
//! the metadata log says whom to follow. Nothing is sent here, and no clock is read.
//!
//! Always true:
//! 1. a partition is asked for only while it is ready, and from the position that its owner has settled
//! 2. an answer counts only for a partition that was asked for in that very request and has not changed since
//! 3. the session's view equals the leader's, or the session is started over
//!
//! Replication path 1 of 3. Before: the worker says what is settled. After: a leader's `partition/leader`, then
//! `partition/follower`.
//!
//! Source: KIP-227, KIP-320, KIP-595; Kafka `AbstractFetcherThread`, `ReplicaFetcherThread`, `FetchSessionHandler`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset};

use crate::{FetchPosition, PartitionAnswer, ReplicaKey};

mod session;

use session::Session;
pub use session::SessionRequest;

/// How a fetcher asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetcherSettings {
    /// After the first error; twice as long after each further one.
    pub backoff_min: DurationMs,
    /// `replica.fetch.backoff.ms`, the most that is waited after an error. Kafka waits so long after each: here a
    /// leader that has not heard of its election yet is asked again soon, as producers wait for it.
    pub backoff_max: DurationMs,
    /// How long a request waits for partitions whose records are being synced.
    pub patience: DurationMs,
}

/// One Fetch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPlan {
    pub session: SessionRequest,
    /// Those that the leader does not know like this from the session.
    pub partitions: Vec<(ReplicaKey, FetchPosition)>,
    /// Those of the session that are not asked for any more.
    pub forgotten: Vec<ReplicaKey>,
    /// Where partitions are left out that will soon be asked for: the leader must not hold the answer back for longer,
    /// whatever `replica.fetch.wait.max.ms` says, because they wait for it too.
    pub wait_max: Option<DurationMs>,
}

/// What is to be done about one partition of an answer. Where its owner has something to do with its log, it is busy
/// until [`Fetcher::settled`], [`Fetcher::delayed`] or [`Fetcher::failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Todo {
    /// Append the records ([`Partition::follow`](crate::Partition::follow)), then take over the marks.
    Append,
    /// There are no records: take over the marks ([`Partition::follow_marks`](crate::Partition::follow_marks)).
    Marks,
    /// Cut as [`Partition::diverged`](crate::Partition::diverged) says.
    Cut { epoch: LeaderEpoch, end: Offset },
    /// Ask the leader where its log starts and ends (ListOffsets −2 and −1, with this leader epoch), then cut as
    /// [`Partition::out_of_range`](crate::Partition::out_of_range) says.
    FindEnds { leader_epoch: LeaderEpoch },
    /// It is asked for again after the backoff.
    Later,
    /// It is not asked for again before the metadata log says something new of it.
    AwaitMetadata,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// Its owner has work to do.
    Busy,
    /// After an error.
    Delayed {
        until: MonotonicMs,
    },
    /// The leader knows of a newer epoch: only the metadata log helps.
    Failed,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    position: FetchPosition,
    /// What it was asked for in the request under way, or as the session has it.
    asked: Option<FetchPosition>,
    is_throttled: bool,
    /// The leader's high watermark was reached by its last answer.
    is_in_sync: bool,
    /// Errors since it last went well.
    errors: u32,
    /// An answer about it was dropped. In a session the leader does not repeat itself, so the fetcher has to add the
    /// partition again.
    must_renew: bool,
}

/// A request that is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InFlight {
    is_full: bool,
}

/// The partitions that follow one leader broker.
#[derive(Debug)]
pub struct Fetcher {
    settings: FetcherSettings,
    entries: BTreeMap<ReplicaKey, Entry>,
    /// Those whose place in the session may have to change.
    changed: BTreeSet<ReplicaKey>,
    delayed: BTreeSet<(MonotonicMs, ReplicaKey)>,
    /// Those in the session, asked for by the next request though it does not name them.
    in_session: usize,
    busy: usize,
    /// No request before: the broker could not be reached, or asked for patience.
    not_before: MonotonicMs,
    /// Requests since the last that went well.
    errors: u32,
    answered_at: MonotonicMs,
    session: Session,
    in_flight: Option<InFlight>,
    quota_is_exceeded: bool,
}

impl Fetcher {
    pub fn new(settings: FetcherSettings) -> Self {
        Self {
            settings,
            entries: BTreeMap::new(),
            changed: BTreeSet::new(),
            delayed: BTreeSet::new(),
            in_session: 0,
            busy: 0,
            not_before: MonotonicMs(0),
            errors: 0,
            answered_at: MonotonicMs(0),
            session: Session::default(),
            in_flight: None,
            quota_is_exceeded: false,
        }
    }

    // What its owner and the metadata log say of a partition.

    /// Follows `key` from now on, or in another epoch, from `position`. `None`: what it has is not durable yet, so that
    /// [`Self::settled`] follows.
    pub fn follow(&mut self, key: ReplicaKey, leader_epoch: LeaderEpoch, position: Option<FetchPosition>) {
        let nowhere = FetchPosition {
            leader_epoch,
            offset: Offset::NONE,
            last_epoch: None,
            log_start: Offset::NONE,
            high_watermark: Offset::NONE,
        };
        let new = Entry {
            state: State::Failed,
            position: nowhere,
            asked: None,
            is_throttled: false,
            is_in_sync: false,
            errors: 0,
            must_renew: false,
        };
        let entry = self.entries.entry(key).or_insert(new);
        (entry.position, entry.is_in_sync, entry.errors) = (position.unwrap_or(nowhere), false, 0);
        self.turn(key, if position.is_some() { State::Ready } else { State::Busy });
    }

    /// Does not follow `key` any more.
    pub fn unfollow(&mut self, key: ReplicaKey) {
        if self.entries.contains_key(&key) {
            self.turn(key, State::Failed);
            if self.entries.get(&key).is_some_and(|entry| entry.asked.is_none()) {
                self.entries.remove(&key);
                self.changed.remove(&key);
            } else if let Some(entry) = self.entries.get_mut(&key) {
                // The session's leader still has to hear of it.
                entry.position.leader_epoch = LeaderEpoch::NONE;
            }
        }
    }

    /// All that `key` has is durable, up to `position`; or its log starts elsewhere now.
    pub fn settled(&mut self, key: ReplicaKey, position: FetchPosition) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.position.leader_epoch != position.leader_epoch {
            return;
        }
        // The leader must hear of another log start, but not of the high watermark that it has just told.
        let is_news =
            FetchPosition { high_watermark: entry.position.high_watermark, ..position } != entry.position;
        match entry.state {
            State::Busy => {
                (entry.position, entry.errors) = (position, 0);
                self.turn(key, State::Ready);
            }
            State::Ready if is_news => {
                entry.position = position;
                self.changed.insert(key);
            }
            // It is asked for later, from there.
            State::Delayed { .. } => entry.position = position,
            State::Ready | State::Failed => {}
        }
    }

    /// What `key` was to do could not be done now: damaged records, no answer to where the leader's log ends.
    pub fn delayed(&mut self, key: ReplicaKey, now: MonotonicMs) {
        if self.entries.get(&key).is_some_and(|entry| entry.state == State::Busy) {
            self.delay(key, now);
        }
    }

    /// `key` cannot go on: its log directory has failed, or its records do not fit.
    pub fn failed(&mut self, key: ReplicaKey) {
        if self.entries.contains_key(&key) {
            self.turn(key, State::Failed);
        }
    }

    /// Whether `follower.replication.throttled.replicas` names `key`.
    pub fn set_throttled(&mut self, key: ReplicaKey, is_throttled: bool) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.is_throttled = is_throttled;
            self.changed.insert(key);
        }
    }

    // What is asked of it.

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Partitions that it follows, or has still to tell the leader that it does not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a request is under way: what is followed from now on waits for its answer. Another fetcher of the same
    /// leader, if it has none, begins at once.
    pub fn is_asking(&self) -> bool {
        self.in_flight.is_some()
    }

    /// When [`Self::plan`] may have something to say that it has not now; `None` while only others can change that.
    pub fn next_wake(&self) -> Option<MonotonicMs> {
        if self.in_flight.is_some() {
            return None;
        }
        let waits_for_busy = self.busy > 0 && self.in_session + self.changed.len() > 0;
        let patience = waits_for_busy.then(|| self.answered_at.plus(self.settings.patience));
        let delayed = self.delayed.first().map(|(until, _)| *until);
        let next = patience.into_iter().chain(delayed).min()?;
        Some(next.max(self.not_before))
    }

    /// The next request, if there is one to send now. `quota_is_exceeded`: throttled partitions that have not caught up
    /// wait.
    pub fn plan(&mut self, now: MonotonicMs, quota_is_exceeded: bool) -> Option<FetchPlan> {
        if self.in_flight.is_some() || now < self.not_before {
            return None;
        }
        self.wake(now);
        self.turn_quota(quota_is_exceeded);
        let is_patient = self.busy > 0 && now.since(self.answered_at) < self.settings.patience;
        if is_patient {
            return None;
        }
        let is_full = self.session.is_full();
        if is_full {
            self.forget_session();
        }
        let (mut partitions, mut forgotten) = (Vec::new(), Vec::new());
        for key in std::mem::take(&mut self.changed) {
            self.place(key, &mut partitions, &mut forgotten);
        }
        if self.in_session == 0 {
            // There is nothing to ask for, and what the leader still knows it may forget later.
            self.session.lost();
            // Except for partitions that only had to be added again, which a full request does.
            let has_more = !is_full && !self.changed.is_empty();
            return if has_more { self.plan(now, quota_is_exceeded) } else { None };
        }
        self.in_flight = Some(InFlight { is_full });
        let wait_max = self.wait_max(now);
        Some(FetchPlan { session: self.session.request(), partitions, forgotten, wait_max })
    }

    /// Handles the leader's answer. `todo` gets the result for each partition, and the offset that was fetched from:
    /// the owner compares that with its current log ([`Partition::may_take`](crate::Partition::may_take)). Results
    /// for partitions that are no longer followed are dropped.
    pub fn answered(
        &mut self,
        error: ErrorCode,
        session_id: i32,
        throttle: DurationMs,
        partitions: &[PartitionAnswer],
        now: MonotonicMs,
        mut todo: impl FnMut(ReplicaKey, &FetchPosition, Todo),
    ) {
        let Some(InFlight { is_full }) = self.in_flight.take() else { return };
        self.answered_at = now;
        self.not_before = now.plus(throttle);
        if error != ErrorCode::None {
            self.session.refused(error);
            if !Session::is_its_own(error) {
                self.back_off(now);
            }
            return;
        }
        self.errors = 0;
        self.session.answered(is_full, session_id);
        if is_full && partitions.len() != self.in_session {
            // It is not a session about what was asked.
            self.session.lost();
        }
        for answer in partitions {
            if let Some((asked, what)) = self.judge(answer, now) {
                todo(answer.key, &asked, what);
            }
        }
    }

    /// No answer came: the connection is gone, or the request took too long. The leader may have heard it all the same.
    pub fn unanswered(&mut self, now: MonotonicMs) {
        if self.in_flight.take().is_some() {
            self.session.lost();
            self.answered_at = now;
            self.back_off(now);
        }
    }

    // How it does that.

    fn wait_max(&self, now: MonotonicMs) -> Option<DurationMs> {
        let busy = (self.busy > 0).then_some(self.settings.patience);
        let delayed = self.delayed.first().map(|(until, _)| until.since(now));
        busy.into_iter().chain(delayed).min()
    }

    fn judge(&mut self, answer: &PartitionAnswer, now: MonotonicMs) -> Option<(FetchPosition, Todo)> {
        let entry = self.entries.get_mut(&answer.key)?;
        // While the request was under way, its owner or the metadata log may have said something else.
        let is_stale = entry.state != State::Ready || entry.asked != Some(entry.position);
        if is_stale {
            entry.must_renew = true;
            self.changed.insert(answer.key);
            return None;
        }
        let (asked, leader_epoch) = (entry.position, entry.position.leader_epoch);
        let (todo, state) = match answer.error {
            ErrorCode::None => match answer.diverging {
                Some((epoch, end)) => (Todo::Cut { epoch, end }, State::Busy),
                None if answer.bytes == 0 => {
                    entry.errors = 0;
                    entry.is_in_sync = entry.position.offset >= answer.high_watermark;
                    (Todo::Marks, State::Ready)
                }
                None => (Todo::Append, State::Busy),
            },
            ErrorCode::OffsetOutOfRange => (Todo::FindEnds { leader_epoch }, State::Busy),
            ErrorCode::FencedLeaderEpoch => (Todo::AwaitMetadata, State::Failed),
            _ => {
                self.delay(answer.key, now);
                return Some((asked, Todo::Later));
            }
        };
        if state != State::Ready {
            self.turn(answer.key, state);
        }
        Some((asked, todo))
    }

    fn delay(&mut self, key: ReplicaKey, now: MonotonicMs) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let until = now.plus(backoff(&self.settings, entry.errors));
        entry.errors += 1;
        self.turn(key, State::Delayed { until });
    }

    fn back_off(&mut self, now: MonotonicMs) {
        self.not_before = self.not_before.max(now.plus(backoff(&self.settings, self.errors)));
        self.errors += 1;
    }

    fn turn(&mut self, key: ReplicaKey, state: State) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if let State::Delayed { until } = entry.state {
            self.delayed.remove(&(until, key));
        }
        if let State::Delayed { until } = state {
            self.delayed.insert((until, key));
        }
        self.busy -= usize::from(entry.state == State::Busy);
        self.busy += usize::from(state == State::Busy);
        entry.state = state;
        self.changed.insert(key);
    }

    /// Delays that are over.
    fn wake(&mut self, now: MonotonicMs) {
        while let Some(&(until, key)) = self.delayed.first().filter(|(until, _)| *until <= now) {
            self.delayed.remove(&(until, key));
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.state = State::Ready;
                self.changed.insert(key);
            }
        }
    }

    fn turn_quota(&mut self, is_exceeded: bool) {
        if std::mem::replace(&mut self.quota_is_exceeded, is_exceeded) != is_exceeded {
            let throttled = self.entries.iter().filter(|(_, entry)| entry.is_throttled);
            self.changed.extend(throttled.map(|(key, _)| *key));
        }
    }

    /// Puts a partition into the session, out of it, or elsewhere in its log.
    fn place(
        &mut self,
        key: ReplicaKey,
        partitions: &mut Vec<(ReplicaKey, FetchPosition)>,
        forgotten: &mut Vec<ReplicaKey>,
    ) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let waits = self.quota_is_exceeded && entry.is_throttled && !entry.is_in_sync;
        let is_ready = entry.state == State::Ready;
        let renews = std::mem::take(&mut entry.must_renew) && entry.asked.is_some();
        let wanted = (is_ready && !waits && !renews).then_some(entry.position);
        if renews {
            self.changed.insert(key);
        }
        if entry.asked == wanted {
            return;
        }
        match (entry.asked, wanted) {
            (None, Some(_)) => self.in_session += 1,
            (Some(_), None) => self.in_session -= 1,
            _ => {}
        }
        entry.asked = wanted;
        match wanted {
            Some(position) => partitions.push((key, position)),
            None => {
                forgotten.push(key);
                if entry.position.leader_epoch == LeaderEpoch::NONE {
                    self.entries.remove(&key);
                }
            }
        }
    }

    /// The next request begins a session: it names everything.
    fn forget_session(&mut self) {
        self.entries.retain(|_, entry| entry.position.leader_epoch != LeaderEpoch::NONE);
        for (key, entry) in &mut self.entries {
            entry.asked = None;
            self.changed.insert(*key);
        }
        self.in_session = 0;
    }
}

fn backoff(settings: &FetcherSettings, errors: u32) -> DurationMs {
    let doubled = settings.backoff_min.0.saturating_mul(1 << errors.min(20));
    DurationMs(doubled.min(settings.backoff_max.0))
}

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;
