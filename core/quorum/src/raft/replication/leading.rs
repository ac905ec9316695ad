//! The leader: its epoch's first batch, Fetch as it is answered, how far every replica is, what that commits, and
//! whether a majority still listens.
//!
//! Always true:
//! 1. an offset is committed when a majority of the voters has it on disk, and the epoch's first batch with it (Raft,
//!    figure 8); the leader's own disk counts like any other, and must have it too (invariant 1 of [`super`])
//! 2. a leader that a majority has not fetched from for one and a half fetch timeouts resigns (check quorum)
//!
//! Sources: KIP-595, KIP-853; Kafka `LeaderState`, `KafkaRaftClient.tryCompleteFetchRequest`, `pollLeader`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_wire::messages::leader_change_message::Voter as LeaderChangeVoter;
use barnabas_wire::messages::{KRaftVersionRecord, LeaderChangeMessage};
use bytes::Bytes;

use crate::QuorumError;
use crate::batches::{Control, control_batch};
use crate::now::Now;
use crate::raft::message::{
    BeginEpoch, EndEpoch, Fetch, Fetched, FetchedContent, ReplicaKey, Request, Response,
};
use crate::raft::state::role::Leading;
use crate::raft::state::role::Parked;
use crate::raft::state::role::Progress;
use crate::raft::state::role::Role;
use crate::raft::state::role::majority;
use crate::raft::{Agreement, Effect, Raft, Read, Ticket};

/// Fetches that wait at once. One more is answered with nothing, and comes again.
const PARKED_MAX: usize = 10_000;
/// Observers that are remembered: brokers that fetch the metadata log.
const OBSERVERS_MAX: usize = 10_000;
/// An observer that has not fetched for so long is forgotten (Kafka `LeaderState.OBSERVER_SESSION_TIMEOUT_MS`).
pub(crate) const OBSERVER_SESSION: DurationMs = DurationMs(300_000);

impl Raft {
    pub(crate) fn become_leader(&mut self, granting: &[BrokerId], now: Now) -> Result<(), QuorumError> {
        self.leader = Some(self.key.id);
        self.leader_endpoints = self.config.me.endpoints.clone();
        self.voted = None;
        self.failures = 0;
        self.enter(Role::Leader(Box::new(Leading {
            epoch_start: self.log.end,
            voters: BTreeMap::new(),
            observers: BTreeMap::new(),
            fetched: BTreeSet::new(),
            check_until: now.monotonic.plus(self.check_timeout()),
            begin_at: now.monotonic,
            change: None,
            told: BTreeMap::new(),
            must_resign: false,
            parked: VecDeque::new(),
        })));
        let mut controls = vec![Control::LeaderChange(self.leader_change(granting))];
        // A new address, or voters that so far stand only in what the format tool wrote, go into the log (KIP-853).
        let only_formatted = self.log.history.voters_at().is_none_or(|at| at < Offset::ZERO);
        let me = &self.config.me;
        let is_dynamic = self.kraft_version() >= 1 && self.is_voter();
        if is_dynamic && (only_formatted || self.voters().get(me.id) != Some(me)) {
            let level = KRaftVersionRecord {
                version: 0,
                kraft_version: self.kraft_version(),
                ..KRaftVersionRecord::default()
            };
            controls.push(Control::KRaftVersion(level));
            controls.push(Control::Voters(self.voters().with(me.clone()).to_record()));
        }
        self.append_controls(&controls, now)?;
        Ok(())
    }

    /// Writes control records; returns the offset of the last.
    pub(crate) fn append_controls(&mut self, controls: &[Control], now: Now) -> Result<Offset, QuorumError> {
        let batch = control_batch(controls, self.place(now))?;
        self.known.unwritten(self.epoch, batch.base, now.monotonic);
        for (control, at) in controls.iter().zip(batch.base.get()..) {
            self.log.history.apply(Offset(at), control);
        }
        let last = Offset(batch.end.get() - 1);
        self.appended(batch, self.epoch);
        self.follow_voters();
        Ok(last)
    }

    fn leader_change(&self, granting: &[BrokerId]) -> LeaderChangeMessage {
        let voter = |&id: &BrokerId| LeaderChangeVoter { voter_id: id.get(), ..LeaderChangeVoter::default() };
        LeaderChangeMessage {
            version: 0,
            leader_id: self.key.id.get(),
            voters: self.voters().ids().iter().map(voter).collect(),
            granting_voters: granting.iter().map(voter).collect(),
            ..LeaderChangeMessage::default()
        }
    }

    /// Keeps track of the voters as the log names them now: who was an observer keeps its progress, and the reverse.
    fn follow_voters(&mut self) {
        let me = self.key;
        let voters = self.log.history.voters().clone();
        let Role::Leader(leading) = &mut self.role else { return };
        let mut before = std::mem::take(&mut leading.voters);
        for voter in voters.iter().filter(|voter| voter.id != me.id) {
            let key = ReplicaKey { id: voter.id, directory: voter.directory };
            let known = before
                .remove(&voter.id)
                .filter(|progress| key.means(&progress.key) || progress.key.means(&key));
            let known = known.or_else(|| leading.observers.remove(&key));
            // A voter that had no directory so far may have one now.
            let known = known.map_or_else(|| Progress::new(key), |known| Progress { key, ..known });
            leading.voters.insert(voter.id, known);
        }
        for (_, progress) in before {
            leading.observers.entry(progress.key).or_insert(progress);
        }
        leading.fetched.retain(|id| leading.voters.contains_key(id));
    }

    fn check_timeout(&self) -> DurationMs {
        DurationMs(self.config.fetch_timeout.0 * 3 / 2)
    }

    pub(crate) fn leader_deadline(&self, leading: &Leading) -> Option<MonotonicMs> {
        let check = (!leading.voters.is_empty()).then_some(leading.check_until);
        let begin = (!leading.voters.is_empty()).then_some(leading.begin_at);
        let parked = leading.parked.iter().map(|parked| parked.until).min();
        let change = leading.change.as_ref().map(|change| change.until);
        [check, begin, parked, change].into_iter().flatten().min()
    }

    pub(crate) fn poll_leader(&mut self, now: Now) -> Result<bool, QuorumError> {
        let Role::Leader(leading) = &self.role else { return Ok(false) };
        let is_deserted = !leading.voters.is_empty() && leading.check_until <= now.monotonic;
        if leading.must_resign || is_deserted {
            self.step_down(now);
            return Ok(true);
        }
        self.expire_change(now);
        let half = DurationMs(self.config.fetch_timeout.0 / 2);
        let Role::Leader(leading) = &mut self.role else { return Ok(false) };
        if leading.begin_at > now.monotonic {
            return Ok(false);
        }
        leading.begin_at = now.monotonic.plus(half);
        // Who fetches knows who leads.
        let is_silent = |progress: &Progress| {
            let heard = progress.fetched_at.is_some_and(|at| at.plus(half) > now.monotonic);
            !progress.acknowledged || !heard
        };
        let silent: Vec<ReplicaKey> =
            leading.voters.values().filter(|progress| is_silent(progress)).map(|voter| voter.key).collect();
        for to in silent {
            let endpoints = self.config.me.endpoints.clone();
            let begin = BeginEpoch { to: Some(to), leader: self.key.id, epoch: self.epoch, endpoints };
            self.send_to_voter(to.id, Request::BeginEpoch(begin), now);
        }
        Ok(false)
    }

    pub(crate) fn acknowledge_leader(&mut self, id: BrokerId) {
        if let Role::Leader(leading) = &mut self.role
            && let Some(progress) = leading.voters.get_mut(&id)
        {
            progress.acknowledged = true;
        }
    }

    /// Leads no longer, and tells the voters, those first who have most of the log.
    fn step_down(&mut self, now: Now) {
        let Role::Leader(leading) = &self.role else { return };
        let mut voters: Vec<&Progress> = leading.voters.values().collect();
        voters.sort_by_key(|progress| std::cmp::Reverse(progress.end));
        let successors: Vec<ReplicaKey> = voters.iter().map(|progress| progress.key).collect();
        let unacknowledged = successors.iter().map(|key| key.id).collect();
        let until = self.election_until(now);
        self.enter(Role::Resigned { successors, unacknowledged, until });
    }

    pub(crate) fn end_epoch(&self) -> Option<Request> {
        let Role::Resigned { successors, .. } = &self.role else { return None };
        Some(Request::EndEpoch(EndEpoch {
            leader: self.key.id,
            epoch: self.epoch,
            successors: successors.clone(),
            endpoints: self.config.me.endpoints.clone(),
        }))
    }

    /// Tells those who wait that this node leads no longer.
    pub(crate) fn leave_leadership(&mut self, leading: Leading) {
        let head = self.head(ErrorCode::NotLeaderOrFollower);
        for parked in leading.parked {
            let fetched = self.empty_fetched(head.error);
            self.answer(parked.ticket, Response::Fetch(fetched), None);
        }
        if let Some(change) = leading.change {
            self.answer_change(
                change,
                ErrorCode::NotLeaderOrFollower,
                "this node leads the quorum no longer",
            );
        }
    }

    pub(crate) fn on_fetch(&mut self, ticket: Ticket, fetch: Fetch, now: Now) {
        let is_sound = fetch.max_wait.0 >= 0
            && fetch.from.get() >= 0
            && fetch.last_epoch.get() >= 0
            && fetch.last_epoch <= fetch.epoch
            && fetch.replica.id != self.key.id;
        let refused =
            if is_sound { self.refuse_leader_request(fetch.epoch) } else { Some(ErrorCode::InvalidRequest) };
        if let Some(error) = refused {
            let is_ahead =
                error == ErrorCode::UnknownLeaderEpoch && self.leads() && fetch.replica.id.get() >= 0;
            if is_ahead && self.admits_epoch(fetch.epoch, now) {
                // It has seen a newer epoch and can never follow this one again: that ends here, as in Raft. (Kafka's
                // leader goes on, and the replica waits for the next election.)
                self.unattach(fetch.epoch, None, now);
            }
            let fetched = self.empty_fetched(error);
            self.answer(ticket, Response::Fetch(fetched), None);
            return;
        }
        let agreement = self.log.agreement(fetch.from, fetch.last_epoch);
        if agreement == Agreement::Valid {
            self.heard_from(fetch.replica, now);
            self.has_fetched_to(fetch.replica, fetch.from, now);
            self.advance_high_watermark(now);
        }
        self.release_parked(fetch.replica);
        let parked = Parked { ticket, until: now.monotonic.plus(fetch.max_wait), fetch };
        if let Some(parked) = self.serve(parked, agreement, now)
            && let Role::Leader(leading) = &mut self.role
        {
            leading.parked.push_back(parked);
        }
    }

    /// A replica that fetches again no longer waits for its last Fetch: it holds one place among those that wait.
    fn release_parked(&mut self, replica: ReplicaKey) {
        let Role::Leader(leading) = &mut self.role else { return };
        if replica.id.get() < 0 {
            return;
        }
        let Some(at) = leading.parked.iter().position(|parked| parked.fetch.replica == replica) else {
            return;
        };
        if let Some(parked) = leading.parked.remove(at) {
            let fetched = self.empty_fetched(ErrorCode::None);
            self.answer(parked.ticket, Response::Fetch(fetched), None);
        }
    }

    /// Answers a Fetch if there is something to tell, or no more time; or else gives it back.
    fn serve(&mut self, parked: Parked, agreement: Agreement, now: Now) -> Option<Parked> {
        let Role::Leader(leading) = &self.role else { return Some(parked) };
        let is_full = leading.parked.len() >= PARKED_MAX;
        let fetch = &parked.fetch;
        let mut fetched = self.empty_fetched(ErrorCode::None);
        let mut read = None;
        match agreement {
            Agreement::Diverging(end) => fetched.content = FetchedContent::Diverging(end),
            Agreement::Snapshot(id) => fetched.content = FetchedContent::Snapshot(id),
            Agreement::Valid if fetch.from < self.log.end => {
                read = Some(Read::Log { from: fetch.from, end: self.log.end, bytes_max: fetch.bytes_max });
            }
            Agreement::Valid => {
                // A replica without a high watermark (−1) gets the first one at once (KIP-1166).
                let is_news = fetched.high_watermark.is_some_and(|known| known > fetch.high_watermark);
                if !is_news && parked.until > now.monotonic && !is_full {
                    return Some(parked);
                }
            }
        }
        self.answer(parked.ticket, Response::Fetch(fetched), read);
        None
    }

    /// Answers the Fetches that have waited for what is there now.
    pub(crate) fn serve_parked(&mut self, now: Now) {
        let Role::Leader(leading) = &mut self.role else { return };
        let waiting = std::mem::take(&mut leading.parked);
        let mut still = VecDeque::with_capacity(waiting.len());
        for parked in waiting {
            let agreement = self.log.agreement(parked.fetch.from, parked.fetch.last_epoch);
            still.extend(self.serve(parked, agreement, now));
        }
        if let Role::Leader(leading) = &mut self.role {
            leading.parked = still;
        }
    }

    fn empty_fetched(&self, error: ErrorCode) -> Fetched {
        Fetched {
            head: self.head(error),
            log_start: self.log.start,
            high_watermark: self.is_established().then_some(self.high_watermark),
            content: FetchedContent::Records(Bytes::new()),
        }
    }

    /// Whether this leader has committed something of its own epoch: only then is its high watermark the quorum's.
    pub(crate) fn is_established(&self) -> bool {
        matches!(&self.role, Role::Leader(leading) if self.high_watermark > leading.epoch_start)
    }

    /// A replica fetches, records or a snapshot: if a majority does, this node goes on leading.
    pub(crate) fn heard_from(&mut self, replica: ReplicaKey, now: Now) {
        let check_until = now.monotonic.plus(self.check_timeout());
        let others = usize::from(self.is_voter());
        let Role::Leader(leading) = &mut self.role else { return };
        if leading.voters.get(&replica.id).is_some_and(|progress| progress.key.means(&replica)) {
            leading.fetched.insert(replica.id);
        }
        let needed = majority(leading.voters.len() + others) - others;
        if leading.fetched.len() >= needed {
            leading.fetched.clear();
            leading.check_until = check_until;
        }
    }

    fn has_fetched_to(&mut self, replica: ReplicaKey, from: Offset, now: Now) {
        let leader_end = self.log.end;
        let Role::Leader(leading) = &mut self.role else { return };
        let voter = leading.voters.get_mut(&replica.id).filter(|progress| progress.key.means(&replica));
        let progress = match voter {
            Some(progress) => progress,
            None if replica.id.get() < 0 => return,
            None => {
                forget_silent(&mut leading.observers, now);
                if leading.observers.len() >= OBSERVERS_MAX && !leading.observers.contains_key(&replica) {
                    return;
                }
                leading.observers.entry(replica).or_insert_with(|| Progress::new(replica))
            }
        };
        // Caught up now, or when it fetched last: it has all that was there then.
        if from >= leader_end {
            progress.caught_up_wall = progress.caught_up_wall.max(now.wall);
        } else if progress.leader_end_then.is_some_and(|end| from >= end) {
            progress.caught_up_wall = progress.caught_up_wall.max(progress.fetched_wall);
        }
        progress.end = Some(from);
        progress.fetched_at = Some(now.monotonic);
        progress.fetched_wall = now.wall;
        progress.leader_end_then = Some(leader_end);
        progress.acknowledged = true;
    }

    /// Moves the high watermark to what a majority of the voters has on disk.
    pub(crate) fn advance_high_watermark(&mut self, now: Now) {
        let mine = self.log.synced;
        let is_voter = self.is_voter();
        let Role::Leader(leading) = &self.role else { return };
        let mut ends: Vec<Option<Offset>> = leading.voters.values().map(|progress| progress.end).collect();
        if is_voter {
            ends.push(Some(mine));
        }
        let voters = ends.len();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let Some(Some(end)) = ends.get(voters / 2).copied() else { return };
        // What this node publishes must not be gone when it comes back, even where a majority has it.
        let end = end.min(mine);
        let is_of_epoch = end > leading.epoch_start;
        if is_of_epoch && end > self.high_watermark {
            self.high_watermark = end;
            self.known.committed(self.epoch, end);
            self.effects.push(Effect::Committed(end));
            self.change_committed(now);
        }
    }
}

fn forget_silent(observers: &mut BTreeMap<ReplicaKey, Progress>, now: Now) {
    let is_heard = |progress: &Progress| {
        progress.fetched_at.is_some_and(|at| now.monotonic.since(at) < OBSERVER_SESSION)
    };
    if observers.len() >= OBSERVERS_MAX / 2 {
        observers.retain(|_, progress| is_heard(progress));
    }
}
