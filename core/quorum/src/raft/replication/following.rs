//! A follower's side of replication: what it fetches, and what it does with the answer.
//!
//! One Fetch at a time, and none while something that was fetched is not on disk: a Fetch says that all below its
//! offset is (invariant 5 of [`super`]). An observer does the same without a vote, and asks around when its leader does
//! not answer.
//!
//! Sources: KIP-595, KIP-853, KIP-1186; Kafka `KafkaRaftClient.pollFollower`, `handleFetchResponse`.

use barnabas_base::{BrokerId, DurationMs, ErrorCode, Offset};
use barnabas_wire::records::{Batch, batches};
use bytes::Bytes;

use crate::QuorumError;
use crate::batches::{Content, EncodedBatch, read_batch};
use crate::now::Now;
use crate::raft::message::{
    AddVoter, Fetch, Fetched, FetchedContent, OffsetAndEpoch, RemoveVoter, ReplicaKey, Request, UpdateVoter,
};
use crate::raft::state::role::FetchingSnapshot;
use crate::raft::state::role::Gone;
use crate::raft::state::role::Role;
use crate::raft::{Effect, Raft};
use crate::snapshot::SnapshotReader;
use crate::snapshot_id::SnapshotId;
use crate::voters::{Voter, VoterEndpoint};

/// All followers see a process die at once: they ask for votes at different moments within so long.
const GONE_SPREAD_MS: i64 = 150;

impl Raft {
    pub(crate) fn poll_follower(&mut self, now: Now) -> Result<bool, QuorumError> {
        let (is_voter, may_lead) = (self.is_voter(), self.may_lead());
        let Role::Follower(following) = &mut self.role else { return Ok(false) };
        if following.until <= now.monotonic && may_lead {
            self.become_prospective(now);
            return Ok(true);
        }
        if following.until <= now.monotonic {
            self.fetch_from_any(now);
            return Ok(false);
        }
        // With a Fetch under way as a rule, what else there is to say goes out before the next one.
        let is_ready = self.leader.is_some_and(|leader| self.peers.is_ready(leader, now.monotonic));
        if is_ready && following.update_at <= now.monotonic {
            following.update_at = now.monotonic.plus(self.config.fetch_timeout);
            let request = if is_voter { self.update_voter() } else { self.join() };
            if let Some(request) = request {
                self.send_to_leader(request, now);
            }
        }
        self.fetch_from_leader(now);
        Ok(false)
    }

    /// Whether everything that was fetched is on disk, and no snapshot is under way to it.
    fn can_fetch(&self) -> bool {
        let is_synced = self.log.synced == self.log.end;
        is_synced && self.storing.is_none()
    }

    fn fetch_from_leader(&mut self, now: Now) {
        let Role::Follower(following) = &self.role else { return };
        if !self.can_fetch() {
            return;
        }
        let request = match &following.snapshot {
            Some(snapshot) => self.fetch_snapshot(snapshot.id, snapshot.position),
            None => self.fetch(),
        };
        self.send_to_leader(request, now);
    }

    fn send_to_leader(&mut self, request: Request, now: Now) {
        let Some(leader) = self.leader else { return };
        if let Some(endpoint) = self.endpoint_in(&self.endpoints_of(leader)) {
            self.send(leader, endpoint, request, now);
        }
    }

    /// Asks one of all whom it knows, to learn who leads.
    pub(crate) fn fetch_from_any(&mut self, now: Now) {
        if !self.can_fetch() || self.peers.is_any_under_way(now.monotonic) {
            return;
        }
        let me = self.key.id;
        let mut known: Vec<(BrokerId, VoterEndpoint)> = Vec::new();
        for voter in self.voters().iter().filter(|voter| voter.id != me) {
            known.extend(self.endpoint_in(&voter.endpoints).map(|endpoint| (voter.id, endpoint)));
        }
        // Addresses without an id count down from −2, as in Kafka.
        let mine = self.endpoint_in(&self.config.me.endpoints);
        let others = self.config.bootstrap.iter().zip(2..);
        let others = others.filter(|&(endpoint, _)| Some(endpoint) != mine.as_ref());
        known.extend(others.map(|(endpoint, at)| (BrokerId(-at), endpoint.clone())));
        known.retain(|&(id, _)| self.peers.is_ready(id, now.monotonic));
        let chosen = self.draw.below(known.len() as i64) as usize;
        if let Some((id, endpoint)) = known.into_iter().nth(chosen) {
            let request = self.fetch();
            self.send(id, endpoint, request, now);
        }
    }

    fn fetch(&self) -> Request {
        let last = self.log.last();
        Request::Fetch(Fetch {
            replica: self.key,
            epoch: self.epoch,
            from: last.offset,
            last_epoch: last.epoch,
            high_watermark: self.high_watermark,
            max_wait: self.config.fetch_wait,
            bytes_max: self.config.fetch_bytes_max,
        })
    }

    /// A voter whose record is not as it is configured now tells the leader (KIP-853); where there are no such records,
    /// each voter tells each leader once.
    fn update_voter(&self) -> Option<Request> {
        let me = &self.config.me;
        let has_updated = matches!(&self.role, Role::Follower(following) if following.has_updated);
        let is_known =
            if self.kraft_version() < 1 { has_updated } else { self.voters().get(me.id) == Some(me) };
        if is_known {
            return None;
        }
        Some(Request::UpdateVoter(UpdateVoter {
            epoch: self.epoch,
            voter: self.key,
            endpoints: me.endpoints.clone(),
            kraft_min: me.kraft_min,
            kraft_max: me.kraft_max,
        }))
    }

    /// What came of telling the leader: one before Kafka 4.1 does not want to know.
    pub(crate) fn voter_updated(&mut self, error: ErrorCode) {
        if let Role::Follower(following) = &mut self.role {
            following.has_updated |= matches!(error, ErrorCode::None | ErrorCode::UnsupportedVersion);
        }
    }

    /// A controller that shall join by itself asks to, after it has asked to remove the voter of its id that had
    /// another disk (KIP-1186).
    fn join(&self) -> Option<Request> {
        let has_fetched = matches!(&self.role, Role::Follower(following) if following.has_fetched);
        let wants = self.config.auto_join && self.config.is_controller && self.kraft_version() >= 1;
        if !wants || !has_fetched {
            return None;
        }
        if let Some(Voter { id, directory, .. }) = self.voters().get(self.key.id) {
            let voter = ReplicaKey { id: *id, directory: *directory };
            return Some(Request::RemoveVoter(RemoveVoter { voter }));
        }
        Some(Request::AddVoter(AddVoter {
            voter: self.key,
            endpoints: self.config.me.endpoints.clone(),
            ack_when_committed: false,
            timeout: self.config.request_timeout,
        }))
    }

    /// The leader of this epoch is about to stop: the voter that it would have lead next waits least.
    pub(crate) fn expect_election(&mut self, leader: BrokerId, successors: &[ReplicaKey], now: Now) {
        let is_of_leader = self.leader == Some(leader);
        let max = self.config.election_backoff_max.0;
        let count = successors.len();
        let place = successors.iter().position(|successor| successor.means(&self.key));
        let backoff = match place {
            Some(0) => 0,
            Some(place) => ((max >> (count - 1).min(20)) << (place - 1).min(20)).min(max),
            None => max,
        };
        if let (Role::Follower(following), true) = (&mut self.role, is_of_leader) {
            // Who has missed the leader already waits no longer than it would have.
            following.until = following.until.min(now.monotonic.plus(DurationMs(backoff)));
            // It has no leader to keep: who asks first may have its vote.
            following.has_fetched = false;
        }
    }

    /// The leader's connection was closed by its side, and no new one comes about: its process is gone, as far as one
    /// can tell from here. The election need not wait for the fetch timeout then. Where others still hear the leader,
    /// they refuse the pre-vote, and everything stays as it is.
    ///
    /// # Errors
    /// What stops the node.
    pub fn leader_is_gone(&mut self, leader: BrokerId, now: Now) -> Result<(), QuorumError> {
        let is_of_leader = self.leader == Some(leader);
        let wait = DurationMs(self.draw.below(GONE_SPREAD_MS));
        if let (Role::Follower(following), true) = (&mut self.role, is_of_leader)
            // Once for each time that the leader was heard: or a cut link would make for one election after another.
            && following.has_fetched
        {
            following.until = following.until.min(now.monotonic.plus(wait));
            following.has_fetched = false;
            self.gone = Some(Gone::new(leader, now.monotonic));
        }
        self.poll(now)
    }

    pub(crate) fn on_fetched(
        &mut self,
        from: BrokerId,
        fetched: Fetched,
        now: Now,
    ) -> Result<(), QuorumError> {
        let Role::Follower(following) = &mut self.role else { return Ok(()) };
        if fetched.head.error != ErrorCode::None {
            self.peers.pause(from, now.monotonic);
            return Ok(());
        }
        // The leader may have answered before its connection closed: only a later Fetch shows that it lives.
        let is_after = |gone: Gone| self.peers.sent_at(from).is_some_and(|sent_at| sent_at > gone.at);
        if self.gone.is_none_or(is_after) {
            following.has_fetched = true;
            self.gone = None;
            following.until = now.monotonic.plus(self.config.fetch_timeout);
        }
        let is_of_use = match fetched.content {
            FetchedContent::Diverging(theirs) => self.cut(theirs)?,
            FetchedContent::Snapshot(id) => self.begin_snapshot(id),
            FetchedContent::Records(bytes) => {
                // An answer with records may leave some out.
                let is_all = bytes.is_empty();
                let is_sound = self.append_fetched(bytes)?;
                // Only now is it known that this log agrees with the leader's, whose high watermark that is.
                let told = fetched.high_watermark.filter(|_| is_sound).unwrap_or(Offset::ZERO);
                self.told_high_watermark = self.told_high_watermark.max(told);
                self.follow_high_watermark();
                if let Some(sent_at) = self.peers.sent_at(from).filter(|_| is_sound && is_all) {
                    self.known.unwritten(self.epoch, self.log.end, sent_at);
                }
                is_sound
            }
        };
        if !is_of_use {
            // What changes nothing now would change nothing if it came again at once.
            self.peers.pause(from, now.monotonic);
        }
        Ok(())
    }

    /// Cuts the log off where it leaves the leader's. Returns whether that was anywhere.
    fn cut(&mut self, theirs: OffsetAndEpoch) -> Result<bool, QuorumError> {
        let end = self.log.cut_for(theirs);
        if end < self.high_watermark {
            return Err(QuorumError::Diverged { end, high_watermark: self.high_watermark });
        }
        let parts = end < self.log.end;
        if parts {
            self.log.truncate(end);
            self.effects.push(Effect::Truncate(end));
            self.persist();
        }
        Ok(parts)
    }

    /// Returns whether the snapshot is one to be fetched.
    fn begin_snapshot(&mut self, id: SnapshotId) -> bool {
        // An end near the largest offset would leave no room for the log behind it.
        let has_room = id.end.get() <= i64::MAX / 2;
        let is_new = has_room && !self.log.snapshots.contains_key(&id) && id.end >= self.high_watermark;
        let Role::Follower(following) = &mut self.role else { return false };
        let is_wanted = is_new && id.epoch <= self.epoch;
        if is_wanted {
            let reader = SnapshotReader::new(id);
            following.snapshot = Some(FetchingSnapshot { id, position: 0, reader });
        }
        is_wanted
    }

    /// Appends what the leader sent, as far as it is sound. `false`: something was not.
    ///
    /// A batch that does not follow the log, whose epoch is none that this leader can have, or whose CRC is wrong, is
    /// left out with all behind it: it is fetched again (KAFKA-18723).
    fn append_fetched(&mut self, bytes: Bytes) -> Result<bool, QuorumError> {
        let mut voters_changed = false;
        let mut is_sound = true;
        for batch in batches(bytes) {
            let Some(batch) = batch.ok().filter(|batch| self.follows(batch)) else {
                is_sound = false;
                break;
            };
            let header = *batch.header();
            if header.attributes.is_control() {
                let Content::Control(controls) = read_batch(&batch)? else { continue };
                for (control, at) in controls.iter().zip(header.base_offset.get()..) {
                    voters_changed |= self.log.history.apply(Offset(at), control);
                }
            }
            let (base, end) = (header.base_offset, header.next_offset());
            let bytes = batch.bytes().clone();
            self.appended(EncodedBatch { base, end, bytes }, header.partition_leader_epoch);
        }
        if voters_changed {
            self.persist();
        }
        Ok(is_sound)
    }

    fn follows(&self, batch: &Batch) -> bool {
        let header = batch.header();
        let epoch = header.partition_leader_epoch;
        header.base_offset == self.log.end
            && header.next_offset() > header.base_offset
            && epoch >= self.log.last_epoch()
            && epoch <= self.epoch
            && batch.check_crc().is_ok()
    }

    /// Everything that the leader has called safe and that is on this disk is committed.
    pub(crate) fn follow_high_watermark(&mut self) {
        let safe = self.told_high_watermark.min(self.log.synced);
        if safe > self.high_watermark {
            self.high_watermark = safe;
            self.known.committed(self.epoch, safe);
            self.effects.push(Effect::Committed(safe));
        }
    }
}
