//! What a leader knows of the other replicas, and what it asks of the controller because of that.
//!
//! A follower's fetch offset acknowledges everything below it: that is on its disk. The follower has *caught up* if
//! its fetch offset has reached the log end that the leader had at that fetch or at the one before. A follower that
//! has not caught up for `replica.lag.time.max.ms` is out of sync. It may join again once it has reached the high
//! watermark and the leader's own epoch.
//!
//! Always true:
//! 1. one question to the controller is open at most; while it is, the *maximal* in-sync replicas count for the high
//!    watermark: those that the controller knows, and who would join
//! 2. a question that may have been heard is not forgotten until the controller or the metadata log says what became of
//!    it
//! 3. who joins fetches in the life that the controller knows (KIP-903)
//! 4. a follower that fetches below its acknowledged offset, or below what all in-sync replicas must have, has lost
//!    data. The leader removes it from the ISR at once, if `min.insync.replicas` members are left; otherwise it does
//!    what Kafka does, and waits `replica.lag.time.max.ms`: a damaged follower that sees itself needed fetches from its
//!    end again and stays. A removed follower joins again when it has everything. Until the controller confirms the
//!    removal the high watermark waits for the follower, because it could be elected. Meanwhile the leader sends it no
//!    records below that offset, unless it is asked to add it again: by that the follower knows that its old data
//!    still counts
//!
//! Source: KIP-497, KIP-841, KIP-903; Kafka `Partition`, `Replica`.

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch,
};

use crate::{FollowerFetch, FollowerState, IsrAnswer, IsrChange, IsrNext, Leadership, Refusal};

/// Another replica.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follower {
    pub state: FollowerState,
    /// Everything below is on its disk. Unknown until it first fetches under this leader.
    pub end: Offset,
    pub log_start: Offset,
    /// The life in which it last fetched.
    life: Option<BrokerEpoch>,
    last_fetch: MonotonicMs,
    /// Where the leader's log ended then.
    leader_end_then: Offset,
    /// When it had last caught up.
    pub caught_up: Option<MonotonicMs>,
    /// It has caught up, and will be asked for: the high watermark does not run away from it.
    is_joining: bool,
    /// When the controller refused to add it, in seconds of the clock, counted from 1; 0: it did not. The high
    /// watermark does not wait for such a follower for a while, and after that only while it makes progress.
    turned_away: u32,
    /// The furthest that it has acknowledged.
    highest: Offset,
    /// It asks from below that.
    has_lost: bool,
    /// Fetches in a row that say otherwise: one may have been overtaken by a later one on another connection.
    otherwise: u8,
}

/// How long after a refusal the leader asks to add the follower again: nothing in the metadata log says that the
/// controller would accept it now.
const TURNED_AWAY_S: u32 = 2;
/// So many fetches in a row are believed.
const BELIEVED: u8 = 2;

impl Follower {
    fn new(state: FollowerState, now: MonotonicMs) -> Self {
        Self {
            state,
            end: Offset::NONE,
            log_start: Offset::NONE,
            life: None,
            last_fetch: MonotonicMs(0),
            leader_end_then: Offset(i64::MAX),
            caught_up: state.in_sync.then_some(now),
            is_joining: false,
            turned_away: 0,
            highest: Offset::NONE,
            has_lost: false,
            otherwise: 0,
        }
    }

    /// Whether it has what it said that it had.
    fn note_place(&mut self, offset: Offset, high_watermark: Offset) {
        let is_below = offset < self.highest || self.state.in_sync && offset < high_watermark;
        self.highest = self.highest.max(offset);
        self.otherwise = if is_below == self.has_lost { 0 } else { self.otherwise + 1 };
        if self.otherwise == BELIEVED {
            (self.has_lost, self.otherwise) = (is_below, 0);
        }
    }

    fn fetched(&mut self, fetch: &FollowerFetch, leader_end: Offset, high_watermark: Offset) {
        self.note_place(fetch.offset, high_watermark);
        let caught_up = if fetch.offset >= leader_end {
            Some(fetch.now)
        } else if fetch.offset >= self.leader_end_then {
            Some(self.last_fetch)
        } else {
            None
        };
        self.caught_up = self.caught_up.max(caught_up);
        if self.state.registered != fetch.registered {
            self.turned_away = 0;
        }
        self.state.registered = fetch.registered;
        self.end = fetch.offset;
        self.log_start = fetch.log_start;
        self.life = Some(fetch.broker_epoch);
        self.last_fetch = fetch.now;
        self.leader_end_then = leader_end;
    }

    fn has_caught_up(&self, leader_end: Offset, now: MonotonicMs, lag_max: DurationMs) -> bool {
        !self.has_lost && self.keeps_up(leader_end, now, lag_max)
    }

    /// As Kafka sees it: what it has lost does not count.
    fn keeps_up(&self, leader_end: Offset, now: MonotonicMs, lag_max: DurationMs) -> bool {
        self.end == leader_end || self.caught_up.is_some_and(|at| now.since(at) <= lag_max)
    }

    /// Whether the controller would let it join.
    fn is_eligible(&self) -> bool {
        let (Some(registered), Some(life)) = (self.state.registered, self.life) else {
            return false;
        };
        life == BrokerEpoch::NONE || life == registered
    }
}

/// Never 0.
fn second(now: MonotonicMs) -> u32 {
    u32::try_from(now.0 / 1000 + 1).unwrap_or(u32::MAX)
}

/// A question to the controller that is not settled.
#[derive(Debug, Clone)]
struct Pending {
    change: IsrChange,
    /// Who would join. None: others would leave.
    joins: Option<BrokerId>,
}

/// The other replicas of one leadership.
#[derive(Debug, Clone)]
pub(crate) struct Followers {
    list: Vec<Follower>,
    leader_epoch: LeaderEpoch,
    partition_epoch: PartitionEpoch,
    lag_max: DurationMs,
    pending: Option<Pending>,
    /// Questions asked so far.
    asked: u32,
}

impl Followers {
    /// `None`: there are no others.
    pub fn new(leadership: &Leadership<'_>) -> Option<Self> {
        if leadership.followers.is_empty() {
            return None;
        }
        let list = leadership.followers.iter().map(|&state| Follower::new(state, leadership.now));
        Some(Self {
            list: list.collect(),
            leader_epoch: leadership.epoch,
            partition_epoch: leadership.partition_epoch,
            lag_max: leadership.lag_max,
            pending: None,
            asked: 0,
        })
    }

    /// Takes over what was known of those who stay. Who has just become in sync counts as caught up.
    pub fn remember(&mut self, former: &Self) {
        for follower in &mut self.list {
            if let Some(known) = former.of(follower.state.broker) {
                let caught_up = known.caught_up.max(follower.caught_up);
                let (was, now) = (known.state, follower.state);
                let turned_away = match (now.in_sync, was.in_sync) {
                    _ if now.registered != was.registered => 0,
                    (true, _) => 0,
                    // The broker epoch is the same, and this leader asked for nothing: the controller has removed it
                    // for a reason that the metadata log does not give.
                    (false, true) if now.registered.is_some() && !former.is_letting_go(now.broker) => {
                        second(known.last_fetch)
                    }
                    _ => known.turned_away,
                };
                *follower =
                    Follower { state: follower.state, caught_up, is_joining: false, turned_away, ..*known };
            }
        }
        self.asked = former.asked;
    }

    /// Whether a request is in flight that removes it, or one that adds another replica.
    fn is_letting_go(&self, broker: BrokerId) -> bool {
        let keeps = |change: &IsrChange| change.in_sync.iter().any(|(member, _)| *member == broker);
        self.pending.as_ref().is_some_and(|pending| !keeps(&pending.change))
    }

    pub fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    pub fn iter(&self) -> impl Iterator<Item = &Follower> {
        self.list.iter()
    }

    fn of(&self, broker: BrokerId) -> Option<&Follower> {
        self.list.iter().find(|follower| follower.state.broker == broker)
    }

    pub fn len(&self) -> u16 {
        self.list.len() as u16
    }

    pub fn in_sync(&self) -> u16 {
        self.list.iter().filter(|follower| follower.state.in_sync).count() as u16
    }

    /// Up to where every follower that counts has everything, and `durable_end` at most.
    pub fn safe_end(&self, durable_end: Offset) -> Offset {
        let counts = |follower: &&Follower| self.counts(follower);
        let ends = self.list.iter().filter(counts).map(|follower| follower.end);
        ends.fold(durable_end, Offset::min)
    }

    pub fn waits_for(&self, broker: BrokerId) -> bool {
        self.of(broker).is_some_and(|follower| self.counts(follower))
    }

    /// Whether the high watermark waits for it: the maximal in-sync replicas, and who is about to join.
    fn counts(&self, follower: &Follower) -> bool {
        let joins = self.pending.as_ref().and_then(|pending| pending.joins);
        follower.state.in_sync || follower.is_joining || joins == Some(follower.state.broker)
    }

    /// Refuses a fetch that counts for nothing.
    pub fn check(&self, fetch: &FollowerFetch) -> Result<(), Refusal> {
        if self.of(fetch.broker).is_none() {
            return Err(Refusal::UnknownReplica(fetch.broker));
        }
        match fetch.registered {
            Some(registered)
                if fetch.broker_epoch != BrokerEpoch::NONE && fetch.broker_epoch < registered =>
            {
                let (broker, asked) = (fetch.broker, fetch.broker_epoch);
                Err(Refusal::StaleReplica { broker, asked, registered })
            }
            _ => Ok(()),
        }
    }

    /// Notes how far a follower has come. Returns whether the controller is to be asked to add it, or to remove it,
    /// because it has lost data. `needed`: the members that the ISR must keep, the leader included.
    pub fn fetched(
        &mut self,
        fetch: &FollowerFetch,
        leader_end: Offset,
        high_watermark: Offset,
        epoch_start: Offset,
        needed: u16,
    ) -> bool {
        let (lag_max, is_free) = (self.lag_max, self.pending.is_none());
        let Some(follower) = self.list.iter_mut().find(|follower| follower.state.broker == fetch.broker)
        else {
            return false;
        };
        let before = follower.end;
        follower.fetched(fetch, leader_end, high_watermark);
        if follower.state.in_sync && follower.has_lost && is_free {
            return self.remove_lost(fetch.broker, needed);
        }
        let may_join = !follower.state.in_sync && !follower.has_lost && follower.is_eligible();
        let was_turned_away = follower.turned_away > 0;
        let may_join =
            may_join && !(was_turned_away && second(fetch.now) < follower.turned_away + TURNED_AWAY_S);
        // The high watermark does not wait for a follower of an idle leader. Under load a follower would never reach
        // a high watermark that does not wait for it.
        let may_be_waited_for = !was_turned_away || follower.end > before;
        follower.is_joining =
            may_join && may_be_waited_for && follower.has_caught_up(leader_end, fetch.now, lag_max);
        let has_reached = follower.end >= high_watermark && follower.end >= epoch_start;
        if !(may_join && has_reached && is_free) {
            return false;
        }
        let joins = fetch.broker;
        self.ask(Some(joins), |follower| follower.state.in_sync || follower.state.broker == joins);
        true
    }

    /// Asks for an ISR without `broker`, which has lost data, if `needed` members are left.
    ///
    /// One at a time: others that have lost data see the smaller ISR before the leader asks for the next one, and may
    /// be needed in it.
    fn remove_lost(&mut self, broker: BrokerId, needed: u16) -> bool {
        // This leader counts as well, and the one that goes does not.
        let is_allowed = self.in_sync() >= needed;
        if is_allowed {
            self.ask(None, |follower| follower.state.in_sync && follower.state.broker != broker);
        }
        is_allowed
    }

    /// Whether `broker` is sent nothing at `offset` yet: it said that it has that, and counts, or may be about to.
    pub fn holds_back(&self, broker: BrokerId, offset: Offset) -> bool {
        let joins = self.pending.as_ref().and_then(|pending| pending.joins);
        let is_removed = |follower: &Follower| {
            follower.has_lost && !follower.state.in_sync && joins != Some(follower.state.broker)
        };
        self.of(broker).is_some_and(|follower| offset < follower.highest && !is_removed(follower))
    }

    /// Looks for who has fallen behind. Returns whether the controller is to be asked to remove them.
    pub fn check_lag(&mut self, leader_end: Offset, now: MonotonicMs) -> bool {
        let lag_max = self.lag_max;
        for follower in &mut self.list {
            follower.is_joining &= follower.has_caught_up(leader_end, now, lag_max);
        }
        let keeps_up = |follower: &Follower| follower.keeps_up(leader_end, now, lag_max);
        let lags = self.list.iter().any(|follower| follower.state.in_sync && !keeps_up(follower));
        if !lags || self.pending.is_some() {
            return false;
        }
        self.ask(None, |follower| follower.state.in_sync && keeps_up(follower));
        true
    }

    fn ask(&mut self, joins: Option<BrokerId>, is_member: impl Fn(&Follower) -> bool) {
        self.asked = self.asked.wrapping_add(1);
        let in_sync = self.list.iter().filter(|follower| is_member(follower));
        let life = |follower: &Follower| follower.life.unwrap_or(BrokerEpoch::NONE);
        let in_sync = in_sync.map(|follower| (follower.state.broker, life(follower))).collect();
        let change = IsrChange {
            number: self.asked,
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            in_sync,
        };
        self.pending = Some(Pending { change, joins });
    }

    pub fn change(&self) -> Option<&IsrChange> {
        self.pending.as_ref().map(|pending| &pending.change)
    }

    /// What the controller said to question `number`.
    ///
    /// # Source
    /// Kafka `Partition.handleAlterPartitionError`, `handleAlterPartitionUpdate`.
    pub fn answered(&mut self, number: u32, answer: &IsrAnswer<'_>, now: MonotonicMs) -> IsrNext {
        if self.pending.as_ref().is_none_or(|pending| pending.change.number != number) {
            return IsrNext::Settled;
        }
        match *answer {
            IsrAnswer::Changed { leader_epoch, partition_epoch, in_sync } => {
                if leader_epoch != self.leader_epoch || partition_epoch < self.partition_epoch {
                    // Another broker leads, or the metadata log was faster and has the rest.
                    return IsrNext::AwaitMetadata;
                }
                self.partition_epoch = partition_epoch;
                self.pending = None;
                for follower in &mut self.list {
                    let was = follower.state.in_sync;
                    follower.state.in_sync = in_sync.contains(&follower.state.broker);
                    if follower.state.in_sync && !was {
                        follower.is_joining = false;
                        follower.turned_away = 0;
                        follower.caught_up = follower.caught_up.max(Some(now));
                    }
                }
                IsrNext::Settled
            }
            // The controller knows this partition epoch and has changed nothing, nor will any other have (KIP-841).
            IsrAnswer::Refused(ErrorCode::IneligibleReplica | ErrorCode::OperationNotAttempted) => {
                let joins = self.pending.take().and_then(|pending| pending.joins);
                for follower in &mut self.list {
                    follower.is_joining = false;
                    if joins == Some(follower.state.broker) {
                        follower.turned_away = second(now);
                    }
                }
                IsrNext::Settled
            }
            IsrAnswer::Refused(
                ErrorCode::UnknownTopicOrPartition
                | ErrorCode::UnknownTopicId
                | ErrorCode::FencedLeaderEpoch
                | ErrorCode::InvalidUpdateVersion
                | ErrorCode::InvalidRequest
                | ErrorCode::NewLeaderElected,
            ) => IsrNext::AwaitMetadata,
            IsrAnswer::Refused(_) => IsrNext::Ask,
        }
    }

    /// The broker's registration has changed.
    pub fn set_registered(&mut self, broker: BrokerId, registered: Option<BrokerEpoch>) {
        for follower in self.list.iter_mut().filter(|follower| follower.state.broker == broker) {
            if follower.state.registered != registered {
                follower.turned_away = 0;
            }
            follower.state.registered = registered;
            follower.is_joining &= follower.is_eligible();
        }
    }

    /// How safe every invariant of this file is: asserted after every step of a leader with followers.
    pub fn assert_invariants(&self) {
        let Some(pending) = &self.pending else { return };
        assert!(
            pending.change.leader_epoch == self.leader_epoch
                && pending.change.partition_epoch == self.partition_epoch,
            "invariant 2 of followers: the open question is about the state that is known"
        );
        let is_asked_for = |joins| pending.change.in_sync.iter().any(|(broker, _)| *broker == joins);
        assert!(
            pending.joins.is_none_or(is_asked_for),
            "invariant 1 of followers: who is counted because it would join is asked for"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number 2 is in sync, number 3 is asked for.
    fn followers() -> Followers {
        let state = |broker, in_sync| FollowerState {
            broker: BrokerId(broker),
            in_sync,
            registered: Some(BrokerEpoch(i64::from(broker) + 10)),
        };
        let leadership = Leadership {
            partition_epoch: PartitionEpoch(5),
            followers: &[state(2, true), state(3, false)],
            ..Leadership::default()
        };
        let mut followers = Followers::new(&leadership).expect("two of them");
        let fetch = FollowerFetch {
            broker: BrokerId(3),
            broker_epoch: BrokerEpoch(13),
            registered: Some(BrokerEpoch(13)),
            leader_epoch: None,
            offset: Offset(7),
            last_epoch: None,
            log_start: Offset::ZERO,
            now: MonotonicMs(0),
        };
        assert!(followers.fetched(&fetch, Offset(7), Offset(7), Offset::ZERO, 1));
        followers.assert_invariants();
        followers
    }

    #[test]
    #[should_panic = "invariant 1 of followers"]
    fn who_counts_without_being_asked_for_is_caught() {
        let mut followers = followers();
        followers.pending.as_mut().expect("a question").change.in_sync.pop();
        followers.assert_invariants();
    }

    #[test]
    #[should_panic = "invariant 2 of followers"]
    fn a_question_about_another_state_is_caught() {
        let mut followers = followers();
        followers.partition_epoch = PartitionEpoch(6);
        followers.assert_invariants();
    }

    /// What a leader pays for each follower of each partition.
    #[test]
    fn a_follower_costs_bytes() {
        let each = size_of::<Follower>();
        assert!(each <= 104, "{each}");
    }
}
