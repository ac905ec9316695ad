//! Start-up: snapshot, log, and the first batch of a new epoch.
//!
//! The shell reads the files and feeds them in: first the snapshot that [`Starting::snapshot`] names, then the log from
//! [`Starting::log_from`] on, then [`Starting::finish`]. Nothing is served before.
//!
//! A node that is the only voter knows that all of its log is committed, and replays it. One of several does not: what
//! lies behind the snapshot, or was written since others vote, is held until a leader says so.
//!
//! Sources: Kafka `KafkaRaftClient.initialize`, `ActivationRecordsGenerator`, `MetadataLoader`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch, LeaderEpochs, Offset};
use barnabas_metadata::features::name;
use barnabas_metadata::{Delta, Image, MetadataVersion, Provenance, ResourceType};
use barnabas_wire::messages::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord,
};
use barnabas_wire::records::{Batch, BatchHeader, batches};
use barnabas_wire::{MetadataRecord, Str};
use bytes::Bytes;

use super::{Effect, Node, Now, Settings};
use crate::batches::{Content, Control, EncodedBatch, read_batch};
use crate::node::outlived::Outlived;
use crate::node::repair::{Repair, Repairs};
use crate::node::snapshots::Snapshots;
use crate::raft::membership::history::History;
use crate::raft::state::epochs::is_in_range;
use crate::raft::state::quorum_state::QuorumState;
use crate::raft::{Config, Past, Raft};
use crate::snapshot::SnapshotReader;
use crate::snapshot_id::SnapshotId;
use crate::{QuorumError, bootstrap};

/// What the metadata directory holds.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// The text of `quorum-state`, if there is such a file.
    pub quorum_state: Option<String>,
    pub log_start: Offset,
    pub log_end: Offset,
    /// Finished snapshots ([`SnapshotId::parse`]) and their sizes in bytes.
    pub snapshots: Vec<(SnapshotId, u64)>,
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
    /// Batches that others may not have, so that they may not be committed.
    held: VecDeque<EncodedBatch>,
    repairs: Repairs,
    outlived: Outlived,
}

impl Starting {
    pub(super) fn new(settings: Settings, stored: Stored) -> Result<Self, QuorumError> {
        let state = stored.quorum_state.as_deref().map(QuorumState::parse).transpose()?;
        let mut repairs = Repairs::default();
        let state = repairs.take_state(state);
        let newest = stored.snapshots.iter().map(|&(id, _)| id).max();
        let next = newest.map_or(Offset::ZERO, |id| id.end).max(stored.log_start);
        if stored.log_start > newest.map_or(Offset::ZERO, |id| id.end) {
            return Err(QuorumError::Gap { log_start: stored.log_start });
        }
        let bootstrap = stored.legacy_bootstrap.clone().map(bootstrap::records_of).transpose()?;
        let past = Past {
            state,
            // The log below the snapshot is not read: a follower that needs it gets the snapshot.
            log_start: next,
            log_end: next,
            epochs: LeaderEpochs::default(),
            snapshots: stored
                .snapshots
                .iter()
                .copied()
                .filter(|&(id, _)| Some(id) == newest && id != SnapshotId::BOOTSTRAP)
                .collect(),
            history: History::new(settings.static_voters.clone()),
            ..Past::default()
        };
        let mut delta = Delta::new(Image::default());
        delta.mark_everything();
        Ok(Self {
            reader: newest.map(SnapshotReader::new),
            bootstrap: bootstrap.unwrap_or_default(),
            provenance: Provenance::default(),
            record_bytes: 0,
            outlived: Outlived::new(settings.broker_life, settings.idle_interval),
            settings,
            past,
            stored,
            delta,
            next,
            held: VecDeque::new(),
            repairs,
        })
    }

    /// The snapshot to be read first, whole, through [`Starting::feed_snapshot`].
    pub fn snapshot(&self) -> Option<SnapshotId> {
        self.stored.snapshots.iter().map(|&(id, _)| id).max()
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
            let epoch = self.note_epoch(header)?;
            let content = read_batch(&batch)?;
            if let Content::Control(controls) = &content {
                self.controls(controls, header.base_offset);
            } else {
                self.record_bytes += batch.bytes().len() as u64;
            }
            self.next = header.next_offset();
            if self.is_alone() && self.held.is_empty() {
                self.replay(&content, header, epoch)?;
                continue;
            }
            let (base, end) = (header.base_offset, header.next_offset());
            // A copy of its own: the bytes that it came in are much longer.
            let bytes = Bytes::copy_from_slice(batch.bytes());
            self.held.push_back(EncodedBatch { base, end, bytes });
        }
        self.delta.mark_everything();
        Ok(())
    }

    /// The epoch that a batch counts as of.
    fn note_epoch(&mut self, header: &BatchHeader) -> Result<LeaderEpoch, QuorumError> {
        let (epoch, at) = (header.partition_leader_epoch, header.base_offset);
        let last = self.last_epoch();
        if !is_in_range(epoch) && self.is_alone() {
            self.repairs.note_batch(epoch, last, at, header.next_offset());
            return Ok(last);
        }
        if epoch < last {
            return Err(QuorumError::Epoch { offset: at, last, found: epoch });
        }
        self.past.epochs.assign(epoch, at);
        Ok(epoch)
    }

    fn last_epoch(&self) -> LeaderEpoch {
        self.past.epochs.latest().map_or(LeaderEpoch(0), |entry| entry.epoch)
    }

    /// What was out of range, and what it counts as. To be asked once all is read.
    pub fn repairs(&self) -> Vec<Repair> {
        self.repairs.list(self.epoch_after_repair())
    }

    fn epoch_after_repair(&self) -> LeaderEpoch {
        LeaderEpoch(self.last_epoch().get().saturating_add(1))
    }

    /// Puts what stands for a quorum-state that was out of range in its place.
    fn repair(&mut self) {
        self.past.repaired_until = self.repairs.log_end();
        if self.repairs.is_state_lost() {
            let me = &self.settings.raft.me;
            self.past.state = Some(QuorumState {
                epoch: self.epoch_after_repair(),
                leader: None,
                voted: Some((me.id, me.directory)),
                voters: self.past.history.voters().ids(),
            });
            self.past.is_state_repaired = true;
        }
    }

    fn controls(&mut self, controls: &[Control], base: Offset) {
        for (control, at) in controls.iter().zip(base.get()..) {
            self.past.history.apply(Offset(at), control);
        }
    }

    fn is_alone(&self) -> bool {
        self.past.history.voters().len() == 1 && self.is_voter()
    }

    fn is_voter(&self) -> bool {
        let Config { me, is_controller, .. } = &self.settings.raft;
        *is_controller && self.past.history.voters().includes(me.id, me.directory)
    }

    fn replay(
        &mut self,
        content: &Content,
        header: &BatchHeader,
        epoch: LeaderEpoch,
    ) -> Result<(), QuorumError> {
        if let Content::Records(records) = content {
            for (record, at) in records.iter().zip(header.base_offset.get()..) {
                let replayed = self.delta.replay(record);
                replayed.map_err(|source| QuorumError::Replay { offset: Offset(at), source })?;
            }
        }
        self.provenance =
            Provenance { end: header.next_offset(), last_epoch: epoch, last_timestamp: header.max_timestamp };
        self.outlived.read(self.delta.image(), header.max_timestamp, true);
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
            self.outlived.read(self.delta.image(), facts.last_timestamp, false);
        }
        Ok(())
    }

    /// Everything is read: the only voter begins a new epoch, others look for a leader.
    ///
    /// # Errors
    /// What is there cannot be gone on from.
    pub fn finish(mut self, now: Now, random: &mut dyn FnMut() -> [u8; 16]) -> Result<Node, QuorumError> {
        self.finish_snapshot()?;
        let (is_alone, stored_end) = (self.is_alone(), self.stored.log_end);
        if self.next < stored_end {
            return Err(QuorumError::Order { expected: stored_end, found: self.next });
        }
        let is_behind = self.next > stored_end;
        if is_behind && is_alone && stored_end > self.stored.log_start {
            return Err(QuorumError::LogEndsEarly { log_end: stored_end, snapshot: self.next });
        }
        self.check_voters()?;
        if is_alone {
            for batch in std::mem::take(&mut self.held) {
                let read = Batch::new(batch.bytes);
                let read = read.map_err(|source| QuorumError::Batch { offset: batch.base, source })?;
                let epoch = self.past.epochs.epoch_at(batch.base);
                let epoch = epoch.unwrap_or(read.header().partition_leader_epoch);
                self.replay(&read_batch(&read)?, read.header(), epoch)?;
            }
        }
        self.past.log_end = self.next;
        self.repair();
        // Followers cannot take batches that are out of range: a snapshot is due at once.
        let record_bytes = self.past.repaired_until.map_or(self.record_bytes, |_| u64::MAX);
        self.delta.advance(self.provenance);
        let applied = self.held.front().map_or(self.next, |batch| batch.base);
        let mut effects = Vec::new();
        if let Some(id) = self.snapshot().filter(|_| is_behind && !is_alone) {
            // It stopped between a snapshot that it fetched and the log that begins with it.
            effects.push(Effect::RestartLog(id));
        }
        let (image, everything) = self.delta.take();
        let raft = Raft::new(self.settings.raft.clone(), self.past, now)?;
        let ids = self.stored.snapshots.iter().map(|&(id, _)| id).collect::<BTreeSet<_>>();
        let mut node = Node {
            snapshots: Snapshots::new(ids, record_bytes, now),
            log_start: if is_behind { applied } else { self.stored.log_start },
            settings: self.settings,
            raft,
            delta: self.delta,
            applied,
            tail: self.held,
            active: None,
            loading: None,
            committed: Arc::new(image),
            unpublished: everything,
            published: None,
            bootstrap: self.bootstrap,
            effects,
            last_append: now.monotonic,
            outlived: self.outlived,
        };
        node.collect(now)?;
        if node.is_alone() {
            node.register_local_broker(now, random)?;
        }
        Ok(node)
    }

    /// # Errors
    /// A controller without any voter to follow, and without an address to look for one.
    fn check_voters(&self) -> Result<(), QuorumError> {
        let Config { me, bootstrap, .. } = &self.settings.raft;
        let voters = self.past.history.voters();
        let others = voters.iter().any(|voter| voter.id != me.id) || bootstrap.len() > 1;
        if self.is_voter() || others || !self.settings.raft.bootstrap.is_empty() {
            return Ok(());
        }
        Err(QuorumError::NotAVoter { me: me.id, voters: voters.ids() })
    }
}

impl Node {
    /// Writes what a new leader must before it serves.
    pub(super) fn write_first_records(&mut self, now: Now) -> Result<(), QuorumError> {
        let bootstrap = std::mem::take(&mut self.bootstrap);
        let bootstrap = bootstrap.as_slice();
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
        let bootstrap = if bootstrap.is_empty() { default.as_slice() } else { bootstrap };
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

    /// With ELR, `min.insync.replicas` must be the same on all brokers: it moves from their files into the log
    /// (KIP-966).
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

    /// This process replaces the broker's former one, which is known to be dead: there is no session timeout to wait
    /// for.
    fn register_local_broker(
        &mut self,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<(), QuorumError> {
        let Some(mut local) = self.settings.local_broker.clone() else { return Ok(()) };
        if self.has_outlived_disk() {
            local.registration.previous_broker_epoch = BrokerEpoch::NONE.get();
        }
        let next = self.raft.log_end();
        let Some(active) = &mut self.active else { return Ok(()) };
        let records = active.controller.take_over(self.delta.image(), &local, next, now, random);
        let records = records.map_err(|what| QuorumError::Registration {
            broker: BrokerId(local.registration.broker_id),
            what,
        })?;
        self.append(&records, false, now)
    }
}
