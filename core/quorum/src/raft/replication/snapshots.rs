//! Snapshots from the leader, piece by piece (KIP-630): asked for, answered, stored, and the log begun again after one.
//!
//! The pieces are read as they come, so that a damaged snapshot is never stored, and the voters in it are known when it
//! is (KIP-853). It counts when it is on disk under its name, and then the log that it stands for goes.
//!
//! Source: Kafka `KafkaRaftClient.handleFetchSnapshotRequest`, `handleFetchSnapshotResponse`.

use barnabas_base::{BrokerId, ErrorCode, Offset};
use bytes::Bytes;

use crate::QuorumError;
use crate::now::Now;
use crate::raft::message::{FetchSnapshot, Request, Response, SnapshotFetched};
use crate::raft::state::role::Role;
use crate::raft::{Effect, Raft, Read, Ticket};
use crate::snapshot::SnapshotFacts;
use crate::snapshot_id::SnapshotId;

/// A snapshot that is whole, and what it says of the voters.
#[derive(Debug)]
pub(crate) struct Storing {
    id: SnapshotId,
    facts: SnapshotFacts,
}

impl Raft {
    pub(crate) fn on_fetch_snapshot(&mut self, ticket: Ticket, fetch: &FetchSnapshot, now: Now) {
        let judged = self.judge_fetch_snapshot(fetch);
        let error = judged.err().unwrap_or(ErrorCode::None);
        let fetched = SnapshotFetched {
            head: self.head(error),
            id: fetch.id,
            size: judged.unwrap_or(0),
            position: fetch.position,
            bytes: Bytes::new(),
        };
        let read = Read::Snapshot { id: fetch.id, position: fetch.position, bytes_max: fetch.bytes_max };
        if judged.is_ok() {
            self.heard_from(fetch.replica, now);
        }
        self.answer(ticket, Response::FetchSnapshot(fetched), judged.ok().map(|_| read));
    }

    /// The snapshot's size.
    fn judge_fetch_snapshot(&self, fetch: &FetchSnapshot) -> Result<i64, ErrorCode> {
        if let Some(error) = self.refuse_leader_request(fetch.epoch) {
            return Err(error);
        }
        let size = self.log.snapshots.get(&fetch.id).ok_or(ErrorCode::SnapshotNotFound)?;
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        let is_within = (0..size).contains(&fetch.position);
        if is_within { Ok(size) } else { Err(ErrorCode::PositionOutOfRange) }
    }

    pub(crate) fn fetch_snapshot(&self, id: SnapshotId, position: i64) -> Request {
        Request::FetchSnapshot(FetchSnapshot {
            replica: self.key,
            epoch: self.epoch,
            id,
            position,
            bytes_max: self.config.fetch_bytes_max,
        })
    }

    pub(crate) fn on_snapshot_fetched(&mut self, from: BrokerId, fetched: SnapshotFetched, now: Now) {
        let until = now.monotonic.plus(self.config.fetch_timeout);
        let Role::Follower(following) = &mut self.role else { return };
        let Some(fetching) = &mut following.snapshot else { return };
        if fetched.head.error != ErrorCode::None {
            // It is gone from the leader, which may have a newer one: the next Fetch says.
            following.snapshot = None;
            self.peers.pause(from, now.monotonic);
            return;
        }
        if fetched.id != fetching.id || fetched.position != fetching.position {
            return;
        }
        following.until = until;
        if fetched.bytes.is_empty() || fetching.reader.feed(&fetched.bytes, |_| Ok(())).is_err() {
            following.snapshot = None;
            self.peers.pause(from, now.monotonic);
            return;
        }
        let (id, position) = (fetching.id, fetching.position);
        fetching.position += fetched.bytes.len() as i64;
        let is_whole = fetching.position >= fetched.size;
        self.effects.push(Effect::SnapshotPiece { id, position, bytes: fetched.bytes });
        if !is_whole {
            return;
        }
        let Some(fetching) = following.snapshot.take() else { return };
        if let Ok(facts) = fetching.reader.finish() {
            self.storing = Some(Storing { id, facts });
            self.effects.push(Effect::StoreSnapshot(id));
        } else {
            self.peers.pause(from, now.monotonic);
        }
    }

    /// A snapshot that was fetched is on disk under its name, `size` bytes of it; `None`: it could not be stored.
    ///
    /// # Errors
    /// What stops the node.
    pub fn snapshot_stored(
        &mut self,
        id: SnapshotId,
        size: Option<u64>,
        now: Now,
    ) -> Result<(), QuorumError> {
        let stored = self.storing.take_if(|storing| storing.id == id);
        let (Some(Storing { facts, .. }), Some(size)) = (stored, size) else { return self.poll(now) };
        self.log.snapshots.insert(id, size);
        // In the meantime it may have come to lead, or got what the snapshot holds from another leader's log.
        if self.log.is_behind(id) && !self.leads() {
            self.log.restart_at(id);
            self.log.history.reset(id.end, facts.kraft_version, facts.voters);
            self.effects.push(Effect::RestartLog(id));
            self.persist();
            if id.end > self.high_watermark {
                self.high_watermark = id.end;
                self.effects.push(Effect::Committed(id.end));
            }
        }
        self.poll(now)
    }

    /// This node made a snapshot of what is committed.
    pub fn snapshot_written(&mut self, id: SnapshotId, size: u64) {
        assert!(id.end <= self.high_watermark, "a snapshot holds only what is committed");
        self.log.snapshots.insert(id, size);
    }

    /// The log begins at `start` now, where one of the snapshots ends, and those in `gone` are no more.
    pub fn log_started(&mut self, start: Offset, gone: &[SnapshotId]) {
        for id in gone {
            self.log.snapshots.remove(id);
        }
        self.log.start_at(start);
    }
}
