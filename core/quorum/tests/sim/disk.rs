//! A node's disk: the state file, the log, snapshots. What is not synced is lost at a crash, from a random place on.
//!
//! The state file is written and synced in one. Appends, truncations and restarts of the log go to what a reader sees
//! at once, and to the disk proper with the next sync, in order.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset};
use barnabas_wire::records::Batch;
use bytes::{Bytes, BytesMut};

use super::rng::Rng;
use crate::SnapshotId;
use crate::batches::{Content, Control, EncodedBatch, read_batch};
use crate::raft::Past;
use crate::raft::membership::history::History;
use crate::raft::message::ReplicaKey;
use crate::raft::state::quorum_state::QuorumState;
use crate::snapshot::SnapshotReader;
use crate::voters::Voters;

/// One batch in a log.
#[derive(Debug, PartialEq, Eq)]
pub struct Stored {
    pub base: Offset,
    pub end: Offset,
    pub epoch: LeaderEpoch,
    pub hash: u64,
    pub bytes: Bytes,
    /// The voters, if it names some.
    pub voters: Option<Vec<ReplicaKey>>,
    pub is_control: bool,
}

impl Stored {
    pub fn new(batch: &EncodedBatch) -> Rc<Self> {
        let parsed = Batch::new(batch.bytes.clone()).unwrap();
        let is_control = parsed.header().attributes.is_control();
        let mut voters = None;
        if is_control && let Content::Control(controls) = read_batch(&parsed).unwrap() {
            for control in controls {
                if let Control::Voters(record) = control {
                    voters = Some(keys(&Voters::from_record(&record)));
                }
            }
        }
        Rc::new(Self {
            base: batch.base,
            end: batch.end,
            epoch: parsed.header().partition_leader_epoch,
            hash: super::rng::hash(&batch.bytes),
            bytes: batch.bytes.clone(),
            voters,
            is_control,
        })
    }
}

pub fn keys(voters: &Voters) -> Vec<ReplicaKey> {
    voters.iter().map(|voter| ReplicaKey { id: voter.id, directory: voter.directory }).collect()
}

/// The bytes of a log as one sees them.
#[derive(Debug, Clone, Default)]
pub struct LogBytes {
    pub start: Offset,
    pub batches: VecDeque<Rc<Stored>>,
}

impl LogBytes {
    pub fn end(&self) -> Offset {
        self.batches.back().map_or(self.start, |last| last.end)
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Append(batch) => {
                assert_eq!(batch.base, self.end(), "the log has no gaps");
                self.batches.push_back(batch.clone());
            }
            Op::Truncate(end) => {
                while self.batches.back().is_some_and(|last| last.end > *end) {
                    self.batches.pop_back();
                }
            }
            Op::Restart(at) => {
                self.batches.clear();
                self.start = *at;
            }
        }
    }

    fn start_at(&mut self, start: Offset) {
        while self.batches.front().is_some_and(|first| first.end <= start) {
            self.batches.pop_front();
        }
        self.start = self.start.max(start);
    }

    /// The batch that holds `offset`.
    pub fn at(&self, offset: Offset) -> Option<&Rc<Stored>> {
        let index = self.batches.partition_point(|batch| batch.end <= offset);
        self.batches.get(index).filter(|batch| batch.base <= offset)
    }
}

#[derive(Debug, Clone)]
enum Op {
    Append(Rc<Stored>),
    Truncate(Offset),
    Restart(Offset),
}

#[derive(Debug, Default)]
pub struct Disk {
    pub state: Option<String>,
    /// What survives a crash.
    pub durable: LogBytes,
    /// What a reader sees.
    pub view: LogBytes,
    pending: Vec<Op>,
    pub snapshots: BTreeMap<SnapshotId, Bytes>,
    partial: Option<(SnapshotId, BytesMut)>,
}

impl Disk {
    pub fn append(&mut self, batch: &Rc<Stored>) {
        self.write(Op::Append(batch.clone()));
    }

    pub fn truncate(&mut self, end: Offset) {
        self.write(Op::Truncate(end));
    }

    pub fn restart(&mut self, at: Offset) {
        self.write(Op::Restart(at));
    }

    fn write(&mut self, op: Op) {
        self.view.apply(&op);
        self.pending.push(op);
    }

    pub fn sync(&mut self) -> Offset {
        self.pending.drain(..).for_each(|op| self.durable.apply(&op));
        self.durable.end()
    }

    /// The log begins at `start`, where a snapshot ends: what lies below goes.
    pub fn start_at(&mut self, start: Offset) {
        self.durable.start_at(start);
        self.view.start_at(start);
    }

    pub fn crash(&mut self, rng: &mut Rng) {
        let kept = rng.below(self.pending.len() as u64 + 1) as usize;
        self.pending.truncate(kept);
        self.sync();
        self.view = self.durable.clone();
        self.partial = None;
    }

    pub fn piece(&mut self, id: SnapshotId, position: i64, bytes: &Bytes) {
        if position == 0 {
            self.partial = Some((id, BytesMut::new()));
        }
        let (of, partial) = self.partial.as_mut().expect("a first piece comes first");
        assert!(*of == id && partial.len() as i64 == position, "pieces follow each other");
        partial.extend_from_slice(bytes);
    }

    pub fn store(&mut self, id: SnapshotId) -> u64 {
        let (of, bytes) = self.partial.take().expect("pieces came before");
        assert_eq!(of, id);
        let size = bytes.len() as u64;
        self.snapshots.insert(id, bytes.freeze());
        size
    }

    /// Whole batches from `from`, at least one.
    pub fn read(&self, from: Offset, end: Offset, bytes_max: i32) -> Bytes {
        let index = self.view.batches.partition_point(|batch| batch.end <= from);
        let mut bytes = BytesMut::new();
        for batch in self.view.batches.range(index..).take_while(|batch| batch.end <= end) {
            if !bytes.is_empty() && bytes.len() + batch.bytes.len() > bytes_max as usize {
                break;
            }
            bytes.extend_from_slice(&batch.bytes);
        }
        bytes.freeze()
    }

    /// What a node finds when it starts. `formatted`: what the format tool wrote, or the configuration says.
    pub fn past(&self, formatted: &History) -> Past {
        let log = &self.view;
        let newest = self.snapshots.keys().next_back().copied();
        let last = log.batches.back().map(|last| (last.epoch, last.end));
        let is_behind = |id: SnapshotId| last.unwrap_or((LeaderEpoch(0), Offset(0))) < (id.epoch, id.end);
        let mut past = Past {
            state: self.state.as_deref().map(|text| QuorumState::parse(text).unwrap()),
            log_start: log.start,
            log_end: log.end(),
            epochs: LeaderEpochs::default(),
            snapshots: self.snapshots.iter().map(|(&id, bytes)| (id, bytes.len() as u64)).collect(),
            history: formatted.clone(),
            ..Past::default()
        };
        for batch in &log.batches {
            past.epochs.assign(batch.epoch, batch.base);
        }
        // The log's records count from the snapshot that it begins with; if it is behind the newest, that one's do.
        let base = match newest.filter(|&id| is_behind(id)) {
            Some(newest) => Some(newest),
            None => self.snapshots.keys().find(|id| id.end == log.start).copied(),
        };
        if let Some(id) = base {
            let mut reader = SnapshotReader::new(id);
            reader.feed(&self.snapshots[&id], |_| Ok(())).unwrap();
            let facts = reader.finish().unwrap();
            past.history.reset(id.end, facts.kraft_version, facts.voters);
        }
        if newest.is_none_or(|id| !is_behind(id)) {
            for batch in log.batches.iter().filter(|batch| batch.is_control) {
                let parsed = Batch::new(batch.bytes.clone()).unwrap();
                let Content::Control(controls) = read_batch(&parsed).unwrap() else { continue };
                for (control, at) in controls.iter().zip(batch.base.get()..) {
                    past.history.apply(Offset(at), control);
                }
            }
        }
        past
    }
}
