//! One node: the state machine under test, its disk, and the requests that it has not answered.

use std::collections::BTreeMap;
use std::rc::Rc;

use barnabas_base::{BrokerId, DirectoryId, DurationMs, MonotonicMs, Offset, Text, TimestampMs};
use barnabas_metadata::MetadataVersion;
use barnabas_wire::messages::NoOpRecord;
use bytes::BytesMut;

use super::disk::{Disk, Stored};
use super::plan::Plan;
use crate::Now;
use crate::SnapshotId;
use crate::raft::membership::history::History;
use crate::raft::message::ReplicaKey;
use crate::raft::{Config, Raft, RoleName};
use crate::snapshot::{SnapshotVoters, SnapshotWriter};
use crate::voters::{Voter, VoterEndpoint};

/// Where a node's clock starts: no two agree.
const CLOCK_STEP_MS: u64 = 1_000_003;

/// What a node's clock shows, and how fast it goes, in thousandths of real time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub rate: u64,
    /// How far the wall clock is off: hours, either way.
    pub wall_off_ms: i64,
}

#[derive(Debug)]
pub struct Node {
    pub id: i32,
    pub directory: DirectoryId,
    pub raft: Option<Raft>,
    /// Counts starts: what was under way for an earlier one is void.
    pub life: u32,
    pub disk: Disk,
    pub formatted: History,
    pub is_controller: bool,
    /// Who asked, with which number.
    pub tickets: BTreeMap<u64, (i32, u64)>,
    pub next_ticket: u64,
    pub paused_until: u64,
    pub tick_at: Option<u64>,
    pub syncing: bool,
    pub batches_since_snapshot: u64,
    pub clock: Clock,
}

/// A node at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    pub role: RoleName,
    pub epoch: i32,
    pub leader: Option<i32>,
    pub voted: Option<ReplicaKey>,
    pub high_watermark: Offset,
    pub log_start: Offset,
    pub log_end: Offset,
    pub is_voter: bool,
    pub may_lead: bool,
}

impl Node {
    pub fn new(
        id: i32,
        directory: DirectoryId,
        formatted: History,
        is_controller: bool,
        clock: Clock,
    ) -> Self {
        Self {
            id,
            directory,
            raft: None,
            life: 0,
            disk: Disk::default(),
            formatted,
            is_controller,
            tickets: BTreeMap::new(),
            next_ticket: 0,
            paused_until: 0,
            tick_at: None,
            syncing: false,
            batches_since_snapshot: 0,
            clock,
        }
    }

    pub fn key(&self) -> ReplicaKey {
        ReplicaKey { id: BrokerId(self.id), directory: self.directory }
    }

    pub fn now(&self, time: u64) -> Now {
        let Clock { rate, wall_off_ms } = self.clock;
        let monotonic = MonotonicMs(time * rate / 1_000 + self.id as u64 * CLOCK_STEP_MS);
        Now { wall: TimestampMs(1_700_000_000_000 + time as i64 + wall_off_ms), monotonic }
    }

    /// The first real moment at which the node's clock shows `at` or more.
    pub fn global_time(&self, at: MonotonicMs) -> u64 {
        (at.0.saturating_sub(self.id as u64 * CLOCK_STEP_MS) * 1_000).div_ceil(self.clock.rate)
    }

    pub fn config(&self, plan: &Plan, seed: u64, everyone: &[i32]) -> Config {
        let me = voter(self.id, self.directory);
        let mut config = Config::new(me, Text::from("CONTROLLER"), seed);
        config.bootstrap = everyone.iter().map(|&id| endpoint(id)).collect();
        config.is_controller = self.is_controller;
        config.auto_join = plan.auto_join;
        config.fetch_bytes_max = plan.fetch_bytes_max;
        let (election, fetch) = plan.timeouts_ms;
        config.election_timeout = DurationMs(election);
        config.fetch_timeout = DurationMs(fetch);
        config.request_timeout = DurationMs(fetch + 100);
        config
    }

    pub fn brief(&self) -> Option<Brief> {
        let raft = self.raft.as_ref()?;
        let known = raft.leader_and_epoch();
        Some(Brief {
            role: raft.role(),
            epoch: known.epoch.get(),
            leader: known.leader.map(BrokerId::get),
            voted: raft.voted(),
            high_watermark: raft.high_watermark(),
            log_start: raft.log_start(),
            log_end: raft.log_end(),
            is_voter: raft.is_voter(),
            may_lead: raft.may_lead(),
        })
    }

    /// Appends some records as the controller would.
    pub fn write(&mut self, records: u64, now: Now) {
        let Some(raft) = self.raft.as_mut().filter(|raft| raft.leads()) else { return };
        let records = vec![NoOpRecord::default().into(); records as usize];
        raft.append(&records, MetadataVersion::LATEST, false, now).unwrap();
    }

    /// Makes a snapshot of what is committed, and lets the log begin with the one before it.
    pub fn snapshot(&mut self, now: Now) -> Option<SnapshotId> {
        let raft = self.raft.as_mut()?;
        let end = raft.high_watermark();
        if end <= raft.log_start() || self.disk.snapshots.keys().any(|id| id.end >= end) {
            return None;
        }
        let epoch = self.disk.view.at(Offset(end.get() - 1))?.epoch;
        let id = SnapshotId { end, epoch };
        let history = raft.history();
        let kraft_version = history.level_before(end);
        let voters = SnapshotVoters { kraft_version, voters: history.voters_before(end).cloned() };
        let mut writer = SnapshotWriter::new(id, now.wall, MetadataVersion::LATEST);
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&writer.header(now.wall, (kraft_version >= 1).then_some(&voters)).unwrap());
        for _ in 0..3 {
            assert!(writer.push(&NoOpRecord::default().into()).unwrap().is_none());
        }
        bytes.extend_from_slice(&writer.flush().unwrap().unwrap());
        bytes.extend_from_slice(&writer.footer().unwrap());
        raft.snapshot_written(id, bytes.len() as u64);
        let before = self.disk.snapshots.keys().next_back().copied();
        self.disk.snapshots.insert(id, bytes.freeze());
        if let Some(before) = before.filter(|before| before.end > raft.log_start()) {
            let gone: Vec<SnapshotId> =
                self.disk.snapshots.keys().copied().filter(|id| *id < before).collect();
            gone.iter().for_each(|id| {
                self.disk.snapshots.remove(id);
            });
            self.disk.start_at(before.end);
            raft.log_started(before.end, &gone);
        }
        Some(id)
    }

    pub fn is_durable(&self, batch: &Stored) -> bool {
        let log = &self.disk.durable;
        let covered = self.disk.snapshots.keys().any(|id| id.end >= batch.end);
        covered || log.at(batch.base).is_some_and(|found: &Rc<Stored>| **found == *batch)
    }
}

pub fn voter(id: i32, directory: DirectoryId) -> Voter {
    Voter { id: BrokerId(id), directory, endpoints: vec![endpoint(id)], kraft_min: 0, kraft_max: 1 }
}

pub fn endpoint(id: i32) -> VoterEndpoint {
    VoterEndpoint { listener: Text::from("CONTROLLER"), host: Text::from("c"), port: 9000 + id as u16 }
}
