//! What is committed, as a member reads it that does not lead; and the way from following to leading and back.
//!
//! Always true:
//! 1. `tail` holds every batch between the image that was shown last and the end of the log: with it, a member that
//!    stops leading can go back to what is committed, and one that begins to lead knows what earlier leaders wrote
//! 2. a follower replays no batch before it is committed: nothing that was replayed is ever truncated
//! 3. who begins to lead replays all that its log has: it will commit it, or lead no longer
//!
//! Source: Kafka `MetadataLoader`, `QuorumController.QuorumMetaLogListener`.

use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs};
use barnabas_metadata::{Changes, Delta, Image, Provenance};
use barnabas_wire::records::{Batch, BatchHeader};

use super::active::Active;
use super::difference::difference;
use super::{Effect, Node, Now};
use crate::QuorumError;
use crate::batches::{Content, EncodedBatch, read_batch};
use crate::controller::Controller;
use crate::snapshot::SnapshotReader;
use crate::snapshot_id::SnapshotId;

/// A snapshot on its way into the image.
pub(super) struct Loading {
    id: SnapshotId,
    reader: SnapshotReader,
    delta: Delta,
}

impl Node {
    /// Everything below `end` is decided and stays.
    pub(super) fn committed(&mut self, end: Offset) -> Result<(), QuorumError> {
        if self.active.is_some() {
            self.committed_as_leader(end);
            return Ok(());
        }
        if self.loading.is_some() {
            return Ok(());
        }
        let is_due = |batch: &&EncodedBatch| batch.base >= self.applied && batch.end <= end;
        let due: Vec<EncodedBatch> = self.tail.iter().filter(is_due).cloned().collect();
        if due.is_empty() {
            return Ok(());
        }
        for batch in &due {
            let header = self.replay_batch(batch)?;
            self.applied = batch.end;
            self.delta.advance(Provenance {
                end: batch.end,
                last_epoch: header.partition_leader_epoch,
                last_timestamp: header.max_timestamp,
            });
            self.note_time(header.max_timestamp, true);
        }
        let (image, changes) = self.delta.take();
        self.show(Arc::new(image), changes);
        Ok(())
    }

    /// Until there is an image: for the broker's own past.
    pub(super) fn note_time(&mut self, time: TimestampMs, is_batch: bool) {
        if self.published.is_none() {
            self.outlived.read(self.delta.image(), time, is_batch);
        }
    }

    pub(super) fn replay_batch(&mut self, batch: &EncodedBatch) -> Result<BatchHeader, QuorumError> {
        let read = Batch::new(batch.bytes.clone());
        let read = read.map_err(|source| QuorumError::Batch { offset: batch.base, source })?;
        if let Content::Records(records) = read_batch(&read)? {
            for (record, at) in records.iter().zip(batch.base.get()..) {
                let replayed = self.delta.replay(record);
                replayed.map_err(|source| QuorumError::Replay { offset: Offset(at), source })?;
            }
        }
        Ok(*read.header())
    }

    /// This is the committed state now.
    pub(super) fn show(&mut self, image: Arc<Image>, changes: Changes) {
        let end = image.provenance.end;
        while self.tail.front().is_some_and(|batch| batch.end <= end) {
            self.tail.pop_front();
        }
        self.committed = image;
        if self.unpublished.is_empty() && self.unpublished.removed.is_empty() {
            self.unpublished = changes;
        } else {
            self.unpublished.merge(changes);
        }
        self.publish_if_ready();
    }

    /// Publishes what is not yet; the first time, once all that was committed before this node started is known to it.
    pub(super) fn publish_if_ready(&mut self) {
        let end = self.committed.provenance.end;
        match self.published {
            Some(published) if published >= end => return,
            Some(_) => {}
            None => {
                let is_whole = self.loading.is_none() && self.committed.features.metadata_version().is_some();
                if !(is_whole && self.raft.knows_what_is_committed() && end >= self.raft.high_watermark()) {
                    return;
                }
                self.unpublished.become_everything();
            }
        }
        self.published = Some(end);
        let changes = Box::new(std::mem::take(&mut self.unpublished));
        self.effects.push(Effect::Publish { image: self.committed.clone(), changes });
    }

    /// The log was cut off.
    pub(super) fn truncated(&mut self, end: Offset) -> Result<(), QuorumError> {
        if end < self.applied {
            return Err(QuorumError::Diverged { end, high_watermark: self.applied });
        }
        self.tail.retain(|batch| batch.end <= end);
        self.effects.push(Effect::Truncate(end));
        Ok(())
    }

    /// A snapshot takes the place of the log: the image is read from it.
    pub(super) fn restart_log(&mut self, id: SnapshotId) {
        self.tail.clear();
        self.log_start = id.end;
        let mut delta = Delta::new(Image::default());
        delta.mark_everything();
        self.loading = Some(Box::new(Loading { id, reader: SnapshotReader::new(id), delta }));
        self.effects.push(Effect::RestartLog(id));
        self.effects.push(Effect::LoadSnapshot(id));
    }

    /// The next piece of the snapshot of [`Effect::LoadSnapshot`], of any size.
    ///
    /// # Errors
    /// Damage, or records that are not understood.
    pub fn load_piece(&mut self, piece: &[u8]) -> Result<(), QuorumError> {
        let Some(loading) = &mut self.loading else { return Ok(()) };
        let Loading { id, reader, delta } = &mut **loading;
        reader.feed(piece, |record| {
            delta.load(&record).map_err(|source| QuorumError::Replay { offset: id.end, source })
        })
    }

    /// After the last piece: the image is the snapshot's.
    ///
    /// # Errors
    /// The snapshot is not whole.
    pub fn loaded(&mut self, now: Now) -> Result<(), QuorumError> {
        let Some(loading) = self.loading.take() else { return Ok(()) };
        let Loading { id, reader, mut delta } = *loading;
        let facts = reader.finish()?;
        delta.loaded().map_err(|source| QuorumError::Replay { offset: id.end, source })?;
        let provenance =
            Provenance { end: id.end, last_epoch: id.epoch, last_timestamp: facts.last_timestamp };
        delta.advance(provenance);
        let (image, everything) = delta.take();
        let changes = match self.published {
            None => everything,
            Some(_) => difference(&self.committed, &image),
        };
        self.delta = delta;
        self.applied = id.end;
        self.note_time(facts.last_timestamp, false);
        self.show(Arc::new(image), changes);
        self.committed(self.raft.high_watermark())?;
        self.collect(now)
    }

    /// Begins to lead.
    pub(super) fn activate(&mut self, now: Now) -> Result<(), QuorumError> {
        assert!(self.loading.is_none(), "a leader has its image");
        let settings = self.settings.controller.clone();
        let me = self.settings.raft.me.id;
        self.active = Some(Active::new(Controller::new(me, settings, self.raft.kraft_version(), now)));
        self.last_append = now.monotonic;
        let applied = self.applied;
        let rest: Vec<EncodedBatch> =
            self.tail.iter().filter(|batch| batch.base >= applied).cloned().collect();
        for batch in &rest {
            self.apply_as_leader(batch)?;
        }
        self.write_first_records(now)
    }

    /// Leads no longer: what it decided and what is not committed may be lost.
    pub(super) fn deactivate(&mut self) -> Result<(), QuorumError> {
        let Some(active) = self.active.take() else { return Ok(()) };
        self.effects.extend(active.into_waiting().map(Effect::Decline));
        self.delta = Delta::new((*self.committed).clone());
        self.applied = self.committed.provenance.end;
        self.committed(self.raft.high_watermark())
    }
}
