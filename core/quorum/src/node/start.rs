//! Start-up: snapshot, log, and the first batch of a new epoch.
//!
//! The shell reads the files and feeds them in: first the snapshot that [`Starting::snapshot`] names, then the log from
//! [`Starting::log_from`] on, then [`Starting::finish`]. Nothing is served before.
//!
//! Sources: Kafka `KafkaRaftClient.initialize`, `ActivationRecordsGenerator`, `MetadataLoader`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use barnabas_base::{BrokerId, LeaderEpoch, LeaderEpochs, Offset};
use barnabas_metadata::features::name;
use barnabas_metadata::{Delta, Image, MetadataVersion, Provenance, ResourceType};
use barnabas_wire::messages::{
    AbortTransactionRecord, BeginTransactionRecord, BrokerRegistrationRequest, ConfigRecord,
    EndTransactionRecord,
};
use barnabas_wire::records::batches;
use barnabas_wire::{MetadataRecord, Str};
use bytes::Bytes;

use super::{Node, Now, Settings};
use crate::batches::{Content, Control, read_batch};
use crate::controller::Controller;
use crate::node::snapshots::Snapshots;
use crate::raft::history::History;
use crate::raft::quorum_state::QuorumState;
use crate::raft::{Config, Past, Raft};
use crate::snapshot::{SnapshotId, SnapshotReader};
use crate::{QuorumError, bootstrap};

/// The broker that lives in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalBroker {
    pub registration: BrokerRegistrationRequest,
    /// Whether it serves from the first image on. Otherwise it asks for it with a BrokerHeartbeat.
    pub unfenced: bool,
}

/// What the metadata directory holds.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// The text of `quorum-state`, if there is such a file.
    pub quorum_state: Option<String>,
    pub log_start: Offset,
    pub log_end: Offset,
    /// Finished snapshots ([`SnapshotId::parse`]).
    pub snapshots: Vec<SnapshotId>,
    /// The bytes of a `bootstrap.checkpoint` of Kafka 4.3 or older, if there is one.
    pub legacy_bootstrap: Option<Bytes>,
}

/// A node that reads its past.
#[derive(Debug)]
pub struct Starting {
    settings: Settings,
    past: Past,
    stored: Stored,
    delta: Delta,
    reader: Option<SnapshotReader>,
    bootstrap: Vec<MetadataRecord>,
    next: Offset,
    provenance: Provenance,
    record_bytes: u64,
}

impl Starting {
    pub(super) fn new(settings: Settings, stored: Stored) -> Result<Self, QuorumError> {
        let state = stored.quorum_state.as_deref().map(QuorumState::parse).transpose()?;
        let newest = stored.snapshots.iter().max().copied();
        let next = newest.map_or(Offset::ZERO, |id| id.end).max(stored.log_start);
        if stored.log_start > newest.map_or(Offset::ZERO, |id| id.end) {
            return Err(QuorumError::Gap { log_start: stored.log_start });
        }
        let bootstrap = stored.legacy_bootstrap.clone().map(bootstrap::records_of).transpose()?;
        let past = Past {
            state,
            // What lies below the snapshot is not read: whoever needs that is sent the snapshot.
            log_start: next,
            log_end: next,
            epochs: LeaderEpochs::default(),
            // Nobody fetches them from a quorum of one: their sizes do not matter.
            snapshots: newest
                .filter(|&id| id != SnapshotId::BOOTSTRAP)
                .map(|id| (id, 0))
                .into_iter()
                .collect(),
            history: History::new(settings.static_voters.clone()),
        };
        let mut delta = Delta::new(Image::default());
        delta.mark_everything();
        Ok(Self {
            reader: newest.map(SnapshotReader::new),
            bootstrap: bootstrap.unwrap_or_default(),
            provenance: Provenance::default(),
            record_bytes: 0,
            settings,
            past,
            stored,
            delta,
            next,
        })
    }

    /// The snapshot to be read first, whole, through [`Starting::feed_snapshot`].
    pub fn snapshot(&self) -> Option<SnapshotId> {
        self.stored.snapshots.iter().max().copied()
    }

    /// The next piece of the snapshot's file, of any size.
    ///
    /// # Errors
    /// Damage, or records that are not understood.
    pub fn feed_snapshot(&mut self, piece: &[u8]) -> Result<(), QuorumError> {
        let Some(id) = self.snapshot() else { return Ok(()) };
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let delta = &mut self.delta;
        let bootstrap = &mut self.bootstrap;
        let mut first = id == SnapshotId::BOOTSTRAP && !bootstrap.is_empty();
        reader.feed(piece, |record| {
            if id == SnapshotId::BOOTSTRAP {
                // What the first leader shall write; what stands here takes the place of the older file.
                if std::mem::take(&mut first) {
                    bootstrap.clear();
                }
                bootstrap.push(record);
                return Ok(());
            }
            delta.load(&record).map_err(|source| QuorumError::Replay { offset: id.end, source })
        })?;
        self.delta.mark_everything();
        Ok(())
    }

    /// Where the log is to be read from. To be asked after the snapshot.
    pub fn log_from(&self) -> Offset {
        self.next
    }

    /// The next batches of the log, whole ones. What lies below [`Starting::log_from`] is passed over.
    ///
    /// # Errors
    /// Damage, a gap, or records that are not understood.
    pub fn feed_log(&mut self, bytes: Bytes) -> Result<(), QuorumError> {
        for batch in batches(bytes) {
            let batch = batch.map_err(|source| QuorumError::Batch { offset: self.next, source })?;
            let header = batch.header();
            if header.next_offset() <= self.next {
                continue;
            }
            if header.base_offset != self.next {
                return Err(QuorumError::Order { expected: self.next, found: header.base_offset });
            }
            self.note_epoch(header.partition_leader_epoch, header.base_offset)?;
            match read_batch(&batch)? {
                Content::Control(controls) => self.controls(controls, header.base_offset),
                Content::Records(records) => {
                    self.record_bytes += batch.bytes().len() as u64;
                    self.replay(&records, header.base_offset)?;
                }
            }
            self.next = header.next_offset();
            self.provenance.end = self.next;
            self.provenance.last_epoch = header.partition_leader_epoch;
            self.provenance.last_timestamp = header.max_timestamp;
        }
        self.delta.mark_everything();
        Ok(())
    }

    fn note_epoch(&mut self, epoch: LeaderEpoch, at: Offset) -> Result<(), QuorumError> {
        let last = self.past.epochs.latest().map_or(LeaderEpoch(0), |entry| entry.epoch);
        if epoch < last {
            return Err(QuorumError::Epoch { offset: at, last, found: epoch });
        }
        self.past.epochs.assign(epoch, at);
        Ok(())
    }

    fn controls(&mut self, controls: Vec<Control>, base: Offset) {
        for (at, control) in controls.into_iter().enumerate() {
            self.past.history.apply(base.plus(at as i64), &control);
        }
    }

    fn replay(&mut self, records: &[MetadataRecord], base: Offset) -> Result<(), QuorumError> {
        for (at, record) in records.iter().enumerate() {
            let replayed = self.delta.replay(record);
            replayed.map_err(|source| QuorumError::Replay { offset: base.plus(at as i64), source })?;
        }
        Ok(())
    }

    /// What was read so far: for tools that look at a directory without starting a node on it.
    pub fn image(&self) -> &Image {
        self.delta.image()
    }

    /// After the last piece of the snapshot.
    ///
    /// # Errors
    /// The snapshot is not whole.
    pub fn finish_snapshot(&mut self) -> Result<(), QuorumError> {
        let Some(id) = self.snapshot() else { return Ok(()) };
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let facts = reader.finish()?;
        self.delta.loaded().map_err(|source| QuorumError::Replay { offset: id.end, source })?;
        self.past.history.reset(id.end, facts.kraft_version, facts.voters);
        if id != SnapshotId::BOOTSTRAP {
            self.past.epochs.assign(id.epoch, id.end);
            self.provenance =
                Provenance { end: id.end, last_epoch: id.epoch, last_timestamp: facts.last_timestamp };
        }
        Ok(())
    }

    /// Everything is read: begins a new epoch.
    ///
    /// # Errors
    /// This node cannot lead, or what is there cannot be gone on from.
    pub fn finish(mut self, now: Now, random: &mut dyn FnMut() -> [u8; 16]) -> Result<Node, QuorumError> {
        self.finish_snapshot()?;
        if self.next < self.stored.log_end {
            return Err(QuorumError::Order { expected: self.stored.log_end, found: self.next });
        }
        if self.next > self.stored.log_end && self.stored.log_end > self.stored.log_start {
            return Err(QuorumError::LogEndsEarly { log_end: self.stored.log_end, snapshot: self.next });
        }
        self.past.log_end = self.next;
        self.leads_alone()?;
        self.delta.advance(self.provenance);
        let raft = Raft::new(self.settings.quorum(), self.past, now)?;
        let ids = self.stored.snapshots.iter().copied().collect::<BTreeSet<_>>();
        let mut node = Node {
            controller: Controller::new(
                self.settings.me.id,
                self.settings.controller.clone(),
                raft.kraft_version(),
                now,
            ),
            snapshots: Snapshots::new(ids, self.record_bytes, now),
            log_start: self.stored.log_start,
            settings: self.settings,
            raft,
            delta: self.delta,
            pending: VecDeque::new(),
            waiting: VecDeque::new(),
            effects: Vec::new(),
            committed: Arc::default(),
            last_append: now.monotonic,
        };
        node.appended(now.wall);
        node.activate(&self.bootstrap, now)?;
        node.register_local_broker(now, random)?;
        Ok(node)
    }
}

impl Starting {
    /// # Errors
    /// This node does not vote, or others do too.
    fn leads_alone(&self) -> Result<(), QuorumError> {
        let me = &self.settings.me;
        let voters = self.past.history.voters();
        if !voters.includes(me.id, me.directory) {
            return Err(QuorumError::NotAVoter { me: me.id, voters: voters.ids() });
        }
        if voters.len() > 1 {
            return Err(QuorumError::ManyVoters { voters: voters.ids() });
        }
        Ok(())
    }
}

impl Settings {
    /// The quorum's member. Alone, it times nothing and draws nothing at random.
    fn quorum(&self) -> Config {
        let listener = self.me.endpoints.first().map(|endpoint| endpoint.listener.clone());
        Config::new(self.me.clone(), listener.unwrap_or_default(), 0)
    }
}

impl Node {
    /// Writes what a new leader must before it serves.
    fn activate(&mut self, bootstrap: &[MetadataRecord], now: Now) -> Result<(), QuorumError> {
        let image = self.delta.image();
        let begun = self.delta.in_transaction();
        let abort = AbortTransactionRecord {
            reason: Some(Str::from_static("Controller failover")),
            ..AbortTransactionRecord::default()
        };
        if let Some(version) = image.features.metadata_version() {
            if !begun {
                return Ok(());
            }
            if !version.has_transactions() {
                return Err(QuorumError::OpenTransaction { level: version.level() });
            }
            return self.append(&[abort.into()], false, now);
        }
        let default = bootstrap::records(&[(name::METADATA, MetadataVersion::LATEST.level())], Vec::new());
        let bootstrap = if bootstrap.is_empty() { &default } else { bootstrap };
        let version = bootstrap::metadata_version_of(bootstrap).ok_or(QuorumError::Bootstrap)?;
        let mut records = Vec::new();
        if begun {
            records.push(abort.into());
        }
        if version.has_transactions() {
            records.push(MetadataRecord::from(BeginTransactionRecord {
                name: Some(Str::from_static("Bootstrap records")),
                ..BeginTransactionRecord::default()
            }));
        }
        records.extend_from_slice(bootstrap);
        let elr = |record: &MetadataRecord| match record {
            MetadataRecord::FeatureLevel(record) => {
                record.name == *name::ELIGIBLE_LEADER_REPLICAS && record.feature_level > 0
            }
            _ => false,
        };
        if bootstrap.iter().any(elr) {
            records.push(self.min_in_sync_replicas());
        }
        if version.has_transactions() {
            records.push(EndTransactionRecord::default().into());
        }
        self.append_at(&records, version, false, now)
    }

    /// With ELR, `min.insync.replicas` must be the same on all brokers: it moves from their files into the log (KIP-966).
    fn min_in_sync_replicas(&self) -> MetadataRecord {
        let value = self.settings.controller.config.int("min.insync.replicas");
        ConfigRecord {
            resource_type: ResourceType::Broker.code(),
            resource_name: Str::default(),
            name: Str::from_static("min.insync.replicas"),
            value: Some(Str::from(value.to_string())),
            ..ConfigRecord::default()
        }
        .into()
    }

    /// The broker of this process takes over from the one that it was before: nobody needs to wait for a session to
    /// run out, since that process is known to be dead.
    fn register_local_broker(
        &mut self,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<(), QuorumError> {
        let Some(local) = self.settings.local_broker.clone() else { return Ok(()) };
        let next = self.raft.log_end();
        let records = self.controller.take_over(self.delta.image(), &local, next, now, random);
        let records = records.map_err(|what| QuorumError::Registration {
            broker: BrokerId(local.registration.broker_id),
            what,
        })?;
        self.append(&records, false, now)
    }
}
