//! One member of the metadata quorum: epochs, who leads, what is committed. KRaft (KIP-595, 630, 853, 996), sans I/O.
//!
//! Inputs are method calls: [`Raft::request`], [`Raft::response`], [`Raft::tick`] (the time comes with each, as a
//! value), [`Raft::append`], [`Raft::synced`] (the log is on disk up to here), [`Raft::snapshot_stored`],
//! [`Raft::leader_is_gone`]. Outputs are [`Effect`]s, to be carried out in the order in which they are handed out by
//! [`crate::node`] and the shell. It holds no log bytes: it knows the log's outline, and says what to append, cut off
//! and read.
//!
//! Always true (asserted across a whole quorum by core/quorum/tests/sim):
//! 1. `high_watermark ≤ synced ≤ log_end`, and the high watermark never moves back
//! 2. the epoch only rises, and epoch, vote and leader are on disk ([`Effect::Persist`]) before any message or
//!    record that rests on them
//! 3. the first batch of an epoch is its leader's LEADER_CHANGE; nothing is committed by a leader before that batch is
//! 4. every batch carries the epoch that it was written under
//! 5. a Fetch asks from the end of what is on this member's disk: it is the acknowledgement of all below
//!
//! Files: `election` (votes), `epochs` (which epochs are taken), `following` (Fetch, as it is sent), `leading` (Fetch,
//! as it is answered), `known` (how new the committed log is), `snapshots`, `reconfiguration` (voters come and go),
//! `upgrade` (the level from which on they can), `requests` (Kafka's messages).
//!
//! Sources: the KIPs; Kafka `KafkaRaftClient`, `QuorumState`, `LeaderState`; the public TLA+ specification of KRaft.

mod answers;
pub mod describe;
mod draw;
mod election;
mod log;
pub mod membership;
pub mod message;
mod peers;
mod replication;
pub mod requests;
pub mod state;

use barnabas_base::{
    BrokerId, DirectoryId, DurationMs, EpochEntry, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset, Text,
};
use barnabas_metadata::MetadataVersion;
use barnabas_wire::MetadataRecord;
use bytes::Bytes;

use crate::QuorumError;
use crate::batches::{EncodedBatch, Place, data_batches};
use crate::now::Now;
use crate::snapshot_id::SnapshotId;
use crate::voters::{Voter, VoterEndpoint, Voters};
use draw::Draw;
pub use log::Agreement;
use log::Log;
use membership::history::{History, NO_EPOCH};
use message::{ReplicaKey, Request, Response};
use peers::Peers;
use replication::known::Known;
use replication::snapshots::Storing;
use state::epochs::Budget;
use state::quorum_state::QuorumState;
use state::role::{Gone, Role};

/// Names a request until its answer.
pub type Ticket = u64;

/// How a member is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Id, directory, listeners, levels of `kraft.version`.
    pub me: Voter,
    /// The listener that members use among themselves: the first of `controller.listener.names`.
    pub listener: Text,
    /// `controller.quorum.bootstrap.servers`: whom to ask for the leader while no voter is known.
    pub bootstrap: Vec<VoterEndpoint>,
    /// Whether this node is a controller, which may become a voter; brokers only observe.
    pub is_controller: bool,
    /// `controller.quorum.auto.join.enable` (KIP-1186)
    pub auto_join: bool,
    /// `controller.quorum.election.timeout.ms`
    pub election_timeout: DurationMs,
    /// `controller.quorum.fetch.timeout.ms`
    pub fetch_timeout: DurationMs,
    /// `controller.quorum.election.backoff.max.ms`
    pub election_backoff_max: DurationMs,
    /// `controller.quorum.request.timeout.ms`
    pub request_timeout: DurationMs,
    /// `controller.quorum.retry.backoff.ms`
    pub retry_backoff: DurationMs,
    /// How long the leader may hold a Fetch that has nothing new.
    pub fetch_wait: DurationMs,
    /// Bytes of records, or of a snapshot, in one answer.
    pub fetch_bytes_max: i32,
    /// What election timeouts are drawn from: different on each node, and at each start.
    pub seed: u64,
}

impl Config {
    /// Kafka's defaults.
    pub fn new(me: Voter, listener: Text, seed: u64) -> Self {
        Self {
            me,
            listener,
            bootstrap: Vec::new(),
            is_controller: true,
            auto_join: false,
            election_timeout: DurationMs(1_000),
            fetch_timeout: DurationMs(2_000),
            election_backoff_max: DurationMs(1_000),
            request_timeout: DurationMs(2_000),
            retry_backoff: DurationMs(20),
            fetch_wait: DurationMs(500),
            fetch_bytes_max: 8 << 20,
            seed,
        }
    }
}

/// What was found of the quorum's past: the log, its snapshots, the state file.
#[derive(Debug, Clone, Default)]
pub struct Past {
    pub state: Option<QuorumState>,
    pub log_start: Offset,
    pub log_end: Offset,
    pub epochs: LeaderEpochs,
    /// Finished snapshots and their sizes in bytes, the format tool's left out.
    pub snapshots: Vec<(SnapshotId, u64)>,
    /// As the snapshot that the log begins with and the log say; as the newest snapshot says, where that holds more
    /// than the log.
    pub history: History,
    /// Where batches end whose epochs are out of range ([`crate::node::Repair`]): followers are sent a snapshot in
    /// their place.
    pub repaired_until: Option<Offset>,
    /// `state` stands for a file that was out of range: the file is to be written again.
    pub is_state_repaired: bool,
}

/// What must be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write the quorum-state file and sync it, before what follows.
    Persist { state: QuorumState, kraft_version: i16 },
    /// Append to the log, sync, and call [`Raft::synced`], with ends that rise. What follows need not wait.
    Append(EncodedBatch),
    /// Cut the log off here, before what follows. Nothing of the log is unsynced when this is handed out.
    Truncate(Offset),
    /// Everything below is decided and stays.
    Committed(Offset),
    /// Send, and call [`Raft::response`] with what came of it and `number`. `to` is below −1 where only an address is
    /// known.
    Send { to: BrokerId, endpoint: VoterEndpoint, number: u64, request: Request },
    /// Answer a request, once `read` has been read and put in ([`Response::fill`]).
    Answer { ticket: Ticket, response: Response, read: Option<Read> },
    /// Who leads has changed.
    Leader(LeaderAndEpoch),
    /// Write this to the snapshot's unfinished file; at position 0, begin the file.
    SnapshotPiece { id: SnapshotId, position: i64, bytes: Bytes },
    /// The unfinished file is whole: sync it, give it its name, call [`Raft::snapshot_stored`].
    StoreSnapshot(SnapshotId),
    /// A snapshot holds more than the log did: the log is empty now, and begins where the snapshot ends. Before what
    /// follows. The image is to be loaded from the snapshot.
    RestartLog(SnapshotId),
}

/// What is to be read for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Whole batches from `from`, up to `end`; at least one, then no more than `bytes_max`.
    Log {
        from: Offset,
        end: Offset,
        bytes_max: i32,
    },
    Snapshot {
        id: SnapshotId,
        position: i64,
        bytes_max: i32,
    },
}

/// The leader of an epoch, as far as this member knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaderAndEpoch {
    pub leader: Option<BrokerId>,
    pub epoch: LeaderEpoch,
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleName {
    Unattached,
    Prospective,
    Candidate,
    Leader,
    Follower,
    Resigned,
    /// Follows, or looks for whom to follow, without a vote.
    Observer,
}

/// This node's part in the quorum.
#[derive(Debug)]
pub struct Raft {
    config: Config,
    key: ReplicaKey,
    log: Log,
    epoch: LeaderEpoch,
    leader: Option<BrokerId>,
    leader_endpoints: Vec<VoterEndpoint>,
    voted: Option<ReplicaKey>,
    role: Role,
    high_watermark: Offset,
    /// The leader's word, which may be ahead of what is here.
    told_high_watermark: Offset,
    known: Known,
    peers: Peers,
    /// What requests may still raise the epoch by.
    epoch_budget: Budget,
    draw: Draw,
    /// Elections in a row without a winner.
    failures: u32,
    /// The leader's process is gone, as far as one can tell.
    gone: Option<Gone>,
    /// A snapshot that is whole and on its way to disk.
    storing: Option<Storing>,
    persisted: Option<QuorumState>,
    announced: LeaderAndEpoch,
    /// When [`Raft::poll`] ran last.
    acted: MonotonicMs,
    effects: Vec<Effect>,
}

impl Raft {
    /// Takes up where the past ended. The only voter leads at once; others wait for a leader or an election.
    ///
    /// # Errors
    /// A batch that cannot be written.
    pub fn new(config: Config, past: Past, now: Now) -> Result<Self, QuorumError> {
        let log = log_of(&past);
        let of_state = past.state.as_ref().map_or(NO_EPOCH, |state| state.epoch);
        let epoch = of_state.max(log.last_epoch());
        // What the file says counts for its own epoch only.
        let state = past.state.clone().filter(|state| state.epoch == epoch);
        let key = ReplicaKey { id: config.me.id, directory: config.me.directory };
        // A node that led before and is no controller now has nothing to resign from.
        let may_have_led = |leader: &BrokerId| config.is_controller || *leader != config.me.id;
        let voted = state.as_ref().and_then(|state| state.voted);
        let mut raft = Self {
            key,
            epoch,
            leader: state.as_ref().and_then(|state| state.leader).filter(may_have_led),
            leader_endpoints: Vec::new(),
            voted: voted.map(|(id, directory)| ReplicaKey { id, directory }),
            role: Role::Unattached { until: now.monotonic },
            high_watermark: log.newest_snapshot().map_or(log.start, |id| id.end).max(log.start),
            told_high_watermark: Offset::ZERO,
            known: Known::default(),
            peers: Peers::new(config.request_timeout, config.retry_backoff),
            epoch_budget: Budget::new(now.monotonic),
            draw: Draw::new(config.seed),
            failures: 0,
            gone: None,
            storing: None,
            persisted: past.state.filter(|_| !past.is_state_repaired),
            announced: LeaderAndEpoch::default(),
            acted: now.monotonic,
            effects: Vec::new(),
            log,
            config,
        };
        raft.start(past.is_state_repaired, now)?;
        Ok(raft)
    }

    fn start(&mut self, is_state_repaired: bool, now: Now) -> Result<(), QuorumError> {
        if let Some(newest) = self.log.newest_snapshot().filter(|&id| self.log.is_behind(id)) {
            // The node stopped between a snapshot that it fetched and the log that begins with it.
            self.log.restart_at(newest);
            self.epoch = self.epoch.max(newest.epoch);
            self.effects.push(Effect::RestartLog(newest));
        }
        self.role = Role::Unattached { until: self.election_until(now) };
        if self.leader == Some(self.key.id) {
            // It led before it stopped, and cannot lead that epoch again: what it wrote may be lost. The others are
            // told so: who still waits for it need not, and who follows another leader by now says so in its answer.
            // (Kafka names no successors here, and all of them wait for the longest time.)
            let until = self.election_until(now);
            let me = self.key.id;
            let others = self.voters().iter().filter(|voter| voter.id != me);
            let successors: Vec<ReplicaKey> =
                others.map(|voter| ReplicaKey { id: voter.id, directory: voter.directory }).collect();
            let unacknowledged = successors.iter().map(|key| key.id).collect();
            self.role = Role::Resigned { successors, unacknowledged, until };
        } else if let Some(leader) = self.leader {
            let endpoints = self.endpoints_of(leader);
            if !endpoints.is_empty() {
                self.follow(self.epoch, leader, endpoints, now);
            }
        }
        if is_state_repaired {
            self.persist();
        }
        if self.is_alone() {
            self.become_candidate(now)?;
        }
        self.poll(now)
    }

    /// Writes records, and returns where they begin and end in the log.
    ///
    /// # Errors
    /// See [`data_batches`]. Nothing was written then.
    pub fn append(
        &mut self,
        records: &[MetadataRecord],
        version: MetadataVersion,
        atomic: bool,
        now: Now,
    ) -> Result<Vec<(Offset, Offset)>, QuorumError> {
        assert!(self.leads(), "only the leader writes");
        let batches = data_batches(records, version, atomic, self.place(now))?;
        let places = batches.iter().map(|batch| (batch.base, batch.end)).collect();
        self.known.unwritten(self.epoch, self.log.end, now.monotonic);
        batches.into_iter().for_each(|batch| self.appended(batch, self.epoch));
        self.poll(now)?;
        Ok(places)
    }

    fn place(&self, now: Now) -> Place {
        Place { base: self.log.end, epoch: self.epoch, timestamp: now.wall }
    }

    fn appended(&mut self, batch: EncodedBatch, epoch: LeaderEpoch) {
        self.log.appended(&batch, epoch);
        self.effects.push(Effect::Append(batch));
    }

    /// The log is on disk up to `end`. Appends are synced in order: no `end` is below the one before it, but for a
    /// truncation between them.
    ///
    /// # Errors
    /// What stops the node.
    pub fn synced(&mut self, end: Offset, now: Now) -> Result<(), QuorumError> {
        assert!(end <= self.log.end, "synced {end} beyond the end of the log {}", self.log.end);
        self.log.synced = self.log.synced.max(end);
        if self.leads() {
            self.advance_high_watermark(now);
        } else {
            self.follow_high_watermark();
        }
        self.poll(now)
    }

    /// Time has passed. To be called at [`Raft::next_tick`], or more often.
    ///
    /// # Errors
    /// What stops the node.
    pub fn tick(&mut self, now: Now) -> Result<(), QuorumError> {
        self.poll(now)
    }

    /// Does what the role has to do now: what has timed out, and what can be sent.
    fn poll(&mut self, now: Now) -> Result<(), QuorumError> {
        self.acted = now.monotonic;
        // A role that ends is followed by another that may have something to do at once.
        while self.poll_role(now)? {}
        self.serve_parked(now);
        self.announce();
        Ok(())
    }

    /// Returns whether the role changed.
    fn poll_role(&mut self, now: Now) -> Result<bool, QuorumError> {
        match self.role.name() {
            RoleName::Unattached | RoleName::Observer => Ok(self.poll_unattached(now)),
            RoleName::Prospective | RoleName::Candidate => self.poll_election(now),
            RoleName::Leader => self.poll_leader(now),
            RoleName::Follower => self.poll_follower(now),
            RoleName::Resigned => self.poll_resigned(now),
        }
    }

    /// When [`Raft::tick`] has something to do; in the past where that came due after this member last acted.
    pub fn next_tick(&self) -> Option<MonotonicMs> {
        let role = match &self.role {
            Role::Unattached { until } => self.may_lead().then_some(*until),
            Role::Resigned { until, .. } => Some(*until),
            Role::Prospective(election) | Role::Candidate(election) => Some(election.until),
            Role::Leader(leading) => self.leader_deadline(leading),
            Role::Follower(following) => {
                [following.until, following.update_at].into_iter().filter(|&at| at > self.acted).min()
            }
        };
        let ready = self.peers.next_ready(self.acted).filter(|_| !self.leads());
        [role, ready].into_iter().flatten().min()
    }

    /// Gives up leadership, so that another leads soon: before a clean stop.
    ///
    /// # Errors
    /// What stops the node.
    pub fn resign(&mut self, now: Now) -> Result<(), QuorumError> {
        if let Role::Leader(leading) = &mut self.role {
            leading.must_resign = true;
        }
        self.poll(now)
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}

fn log_of(past: &Past) -> Log {
    let mut log = Log {
        start: past.log_start,
        start_epoch: NO_EPOCH,
        end: past.log_end,
        synced: past.log_end,
        epochs: past.epochs.clone(),
        snapshots: past.snapshots.iter().copied().collect(),
        history: past.history.clone(),
        repaired_until: past.repaired_until.unwrap_or(Offset::ZERO),
    };
    // The snapshot that the log begins with knows the epoch before it.
    let first = log.snapshots.keys().find(|id| id.end == log.start);
    log.start_epoch = first.map_or(NO_EPOCH, |id| id.epoch);
    log
}

/// What is known from outside.
impl Raft {
    pub fn me(&self) -> BrokerId {
        self.key.id
    }

    pub fn directory(&self) -> DirectoryId {
        self.key.directory
    }

    pub fn key(&self) -> ReplicaKey {
        self.key
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Where the newest epoch of the log begins.
    pub fn epoch_start(&self) -> Option<EpochEntry> {
        self.log.epochs.latest()
    }

    pub fn epochs(&self) -> &LeaderEpochs {
        &self.log.epochs
    }

    pub fn leader_and_epoch(&self) -> LeaderAndEpoch {
        LeaderAndEpoch { leader: self.leader, epoch: self.epoch }
    }

    /// Whom this member voted for in its epoch.
    pub fn voted(&self) -> Option<ReplicaKey> {
        self.voted
    }

    pub fn role(&self) -> RoleName {
        match self.role.name() {
            RoleName::Unattached | RoleName::Follower if !self.is_voter() => RoleName::Observer,
            name => name,
        }
    }

    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    pub fn log_start(&self) -> Offset {
        self.log.start
    }

    pub fn log_end(&self) -> Offset {
        self.log.end
    }

    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// A moment, and an offset below which all lies that was committed by then. `None`: there is no such moment since
    /// the start. The only voter knows all there is.
    pub fn known_by(&self, now: Now) -> Option<(Offset, MonotonicMs)> {
        if self.is_alone() && self.is_established() {
            return Some((self.high_watermark, now.monotonic));
        }
        self.known.proved()
    }

    pub fn kraft_version(&self) -> i16 {
        self.log.history.level()
    }

    /// The voters that this member goes by, committed or not.
    pub fn voters(&self) -> &Voters {
        self.log.history.voters()
    }

    pub fn history(&self) -> &History {
        &self.log.history
    }

    /// Whether this node is one of the voters that it knows, and a controller: a broker alone votes for no one,
    /// whatever the metadata log says of its directory.
    pub fn is_voter(&self) -> bool {
        self.is_among(self.voters())
    }

    fn is_among(&self, voters: &Voters) -> bool {
        self.config.is_controller && voters.includes(self.key.id, self.key.directory)
    }

    /// Whether this node may lead: a voter may, and so may one that the newest voters leave out, as long as they are
    /// not known to be committed. It may be the only one that has them, and then only it can bring them about: the
    /// others' logs are shorter (Ongaro's thesis, 4.2.2). It has no voice of its own.
    pub fn may_lead(&self) -> bool {
        if self.is_voter() {
            return true;
        }
        let history = &self.log.history;
        let open = history.voters_at().filter(|&at| at >= self.high_watermark);
        let before = open.and_then(|at| history.voters_before(at));
        before.is_some_and(|voters| self.is_among(voters))
    }

    /// Whether this node is the only voter.
    pub fn is_alone(&self) -> bool {
        self.voters().len() == 1 && self.is_voter()
    }

    /// Where the leader that this member knows listens; empty where that is not known.
    pub fn leader_endpoints(&self) -> Vec<VoterEndpoint> {
        self.leader.map(|leader| self.endpoints_of(leader)).unwrap_or_default()
    }

    /// Whether anybody reads what this leader writes.
    pub fn is_followed(&self) -> bool {
        let Role::Leader(leading) = &self.role else { return false };
        !leading.voters.is_empty() || !leading.observers.is_empty()
    }

    /// Whether this member has all that is committed, as far as the leader has told: a leader that has committed
    /// something of its own epoch, or a follower that its leader has told a high watermark that it has reached.
    pub fn knows_what_is_committed(&self) -> bool {
        match &self.role {
            Role::Leader(_) => self.is_established(),
            Role::Follower(following) => {
                following.has_fetched
                    && self.told_high_watermark > Offset::ZERO
                    && self.high_watermark >= self.told_high_watermark
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
