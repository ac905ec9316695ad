//! One member of the metadata quorum: epochs, who leads, what is committed. KRaft (KIP-595), sans I/O.
//!
//! Inputs are method calls (time, records to append, "the log is on disk up to here", and peers' requests and answers);
//! outputs are [`Effect`]s, to be carried out in order by [`crate::node`] and the shell. Today the quorum has one voter,
//! this node: an election is won by asking nobody and the high watermark is what is on disk. Votes, BeginQuorumEpoch,
//! EndQuorumEpoch and followers' Fetch are further inputs beside [`Raft::synced`], and `Send` a further effect.
//!
//! Always true:
//! 1. `high_watermark ≤ synced ≤ log_end`, and none of them moves back
//! 2. the epoch only rises, and it is on disk ([`Effect::Persist`]) before anything is written under it
//! 3. the first batch of an epoch is its leader's LEADER_CHANGE; nothing is committed before that batch is
//! 4. every batch carries the epoch that it was written under
//!
//! Sources: KIP-595, KIP-630, KIP-853; Kafka `KafkaRaftClient`, `QuorumState`, `LeaderState`.

pub mod quorum_state;

use barnabas_base::{BrokerId, DirectoryId, EpochEntry, LeaderEpoch, LeaderEpochs, Offset, TimestampMs};
use barnabas_metadata::MetadataVersion;
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::leader_change_message::Voter as LeaderChangeVoter;
use barnabas_wire::messages::{KRaftVersionRecord, LeaderChangeMessage};

use crate::QuorumError;
use crate::batches::{Control, EncodedBatch, Place, control_batch, data_batches};
use crate::snapshot::SnapshotId;
use crate::voters::{Voter, Voters};
use quorum_state::QuorumState;

/// What was found of the quorum's past: the log, its snapshots, the state file.
#[derive(Debug, Clone, Default)]
pub struct Past {
    pub state: Option<QuorumState>,
    pub log_end: Offset,
    pub epochs: LeaderEpochs,
    pub snapshot: Option<SnapshotId>,
    pub kraft_version: i16,
    pub voters: Voters,
    /// Where the last VotersRecord stands: `None` if it was only ever in a snapshot of the format tool.
    pub voters_at: Option<Offset>,
}

/// What must be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write the quorum-state file and sync it, before what follows.
    Persist { state: QuorumState, kraft_version: i16 },
    /// Append to the log, sync, and call [`Raft::synced`].
    Append(EncodedBatch),
    /// Everything below is decided and stays.
    Committed(Offset),
}

/// This node's part in the quorum.
#[derive(Debug)]
pub struct Raft {
    me: BrokerId,
    directory: DirectoryId,
    voters: Voters,
    kraft_version: i16,
    epoch: LeaderEpoch,
    leads: bool,
    epochs: LeaderEpochs,
    log_end: Offset,
    synced: Offset,
    high_watermark: Offset,
    effects: Vec<Effect>,
}

impl Raft {
    /// Takes up where the past ended, with no leader known.
    ///
    /// # Errors
    /// This node does not vote, or others do too.
    pub fn new(me: &Voter, past: &Past) -> Result<Self, QuorumError> {
        let voters = past.voters.ids();
        if !past.voters.includes(me.id, me.directory) {
            return Err(QuorumError::NotAVoter { me: me.id, voters });
        }
        if voters.len() > 1 {
            return Err(QuorumError::ManyVoters { voters });
        }
        let of_state = past.state.as_ref().map_or(LeaderEpoch(0), |state| state.epoch);
        let of_log = past.epochs.latest().map_or(LeaderEpoch(0), |entry| entry.epoch);
        let of_snapshot = past.snapshot.map_or(LeaderEpoch(0), |id| id.epoch);
        Ok(Self {
            me: me.id,
            directory: me.directory,
            voters: past.voters.clone(),
            kraft_version: past.kraft_version,
            epoch: of_state.max(of_log).max(of_snapshot),
            leads: false,
            epochs: past.epochs.clone(),
            log_end: past.log_end,
            synced: Offset::ZERO,
            high_watermark: Offset::ZERO,
            effects: Vec::new(),
        })
    }

    /// Begins a new epoch and leads it: the only voter's election. `me` as it is configured now; `voters_at` as in
    /// [`Past`].
    ///
    /// One write of the state says both "voted for myself" and "elected": who finds a leader in an epoch votes for
    /// nobody else in it.
    pub fn lead(
        &mut self,
        me: &Voter,
        voters_at: Option<Offset>,
        now: TimestampMs,
    ) -> Result<(), QuorumError> {
        self.epoch = LeaderEpoch(self.epoch.get() + 1);
        self.leads = true;
        let state =
            QuorumState { epoch: self.epoch, leader: Some(self.me), voted: None, voters: self.voters.ids() };
        self.effects.push(Effect::Persist { state, kraft_version: self.kraft_version });
        let mut controls = vec![Control::LeaderChange(self.leader_change())];
        // A new address, or voters that so far stand only in what the format tool wrote, go into the log (KIP-853).
        if self.kraft_version >= 1 && (voters_at.is_none() || self.voters.get(me.id) != Some(me)) {
            self.voters = self.voters.with(me.clone());
            let level = KRaftVersionRecord {
                version: 0,
                kraft_version: self.kraft_version,
                ..KRaftVersionRecord::default()
            };
            controls.push(Control::KRaftVersion(level));
            controls.push(Control::Voters(self.voters.to_record()));
        }
        let batch = control_batch(&controls, self.place(now))?;
        self.appended(batch);
        Ok(())
    }

    fn leader_change(&self) -> LeaderChangeMessage {
        let voter = |id: BrokerId| LeaderChangeVoter { voter_id: id.get(), ..LeaderChangeVoter::default() };
        LeaderChangeMessage {
            version: 0,
            leader_id: self.me.get(),
            voters: self.voters.ids().into_iter().map(voter).collect(),
            granting_voters: vec![voter(self.me)],
            ..LeaderChangeMessage::default()
        }
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
        now: TimestampMs,
    ) -> Result<Vec<(Offset, Offset)>, QuorumError> {
        assert!(self.leads, "only the leader writes");
        let batches = data_batches(records, version, atomic, self.place(now))?;
        let places = batches.iter().map(|batch| (batch.base, batch.end)).collect();
        batches.into_iter().for_each(|batch| self.appended(batch));
        Ok(places)
    }

    fn place(&self, now: TimestampMs) -> Place {
        Place { base: self.log_end, epoch: self.epoch, timestamp: now }
    }

    fn appended(&mut self, batch: EncodedBatch) {
        assert_eq!(batch.base, self.log_end, "offsets follow without a gap");
        self.epochs.assign(self.epoch, batch.base);
        self.log_end = batch.end;
        self.effects.push(Effect::Append(batch));
    }

    /// The log is on disk up to `end`. Moves the high watermark: this node alone is the majority.
    pub fn synced(&mut self, end: Offset) {
        assert!(end <= self.log_end, "synced {end} beyond the end of the log {}", self.log_end);
        self.synced = self.synced.max(end);
        // What earlier epochs wrote counts only once something of this epoch does (Raft, figure 8).
        let starts_at = self.epochs.latest().filter(|latest| latest.epoch == self.epoch);
        let in_epoch = self.leads && starts_at.is_some_and(|latest| self.synced > latest.start);
        if in_epoch && self.synced > self.high_watermark {
            self.high_watermark = self.synced;
            self.effects.push(Effect::Committed(self.high_watermark));
        }
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Forgets epochs that ended below the log's new start.
    pub fn log_started(&mut self, at: Offset) {
        self.epochs.truncate_from_start(at);
    }

    pub fn me(&self) -> BrokerId {
        self.me
    }

    pub fn directory(&self) -> DirectoryId {
        self.directory
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Where this leader's epoch begins.
    pub fn epoch_start(&self) -> Option<EpochEntry> {
        self.epochs.latest()
    }

    pub fn epochs(&self) -> &LeaderEpochs {
        &self.epochs
    }

    pub fn leads(&self) -> bool {
        self.leads
    }

    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    pub fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    pub fn voters(&self) -> &Voters {
        &self.voters
    }
}

#[cfg(test)]
mod tests;
