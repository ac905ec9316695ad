//! What a leader has sent to a follower: checked, appended, and its marks taken over.
//!
//! Each batch's CRC is checked, and that it goes on where the log ends. From there it takes the way of every append:
//! the round, the log, the journal. The leader's marks (its high watermark, where its log starts) count here once they
//! are so here too.
//!
//! Always true:
//! 1. nothing is appended that does not go on where the log ends
//! 2. the log's start lies in what is in memory alone only where a full disk kept that from being written back
//!
//! Neighbours: shell/broker/src/worker/partition_worker/replication/apply_fetched.rs, which hands the answers in;
//! core/partition's `partition/follower`; `append`.
//!
//! Source: Kafka `AbstractFetcherThread.processFetchRequest`, `ReplicaFetcherThread.processPartitionData`.

use barnabas_base::Offset;
use barnabas_partition::Follow;
use barnabas_storage::AppendBytes;
use barnabas_wire::records::{Batch, BatchError, batches};
use bytes::Bytes;

use crate::{Effect, Replica, Surroundings, batch_info};

/// Why not all of what a leader sent was applied. What came before is in the round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotApplied {
    /// The rest is fetched again: there is no room, or the replica has failed.
    Later,
    /// It is damaged where this log ends, here or on its way. It is fetched again.
    Damaged { at: Offset, error: BatchError },
    /// It does not fit this log, and will not under this leader.
    Never(Misfit),
}

/// Why a leader's batch does not fit this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// It does not go on where this log ends.
    NoSuccessor,
    /// It is larger than a segment may be here.
    LargerThanASegment,
}

/// Whether the batches that follow are to be looked at.
enum Next {
    Batch,
    /// They were written under an epoch that the image does not know yet.
    Stop,
}

impl Replica {
    /// Puts a leader's batches into the round. `admit`: whether the directory has room for so many bytes; they count as
    /// used then.
    ///
    /// # Errors
    /// [`NotApplied`]. Effects are to be carried out even so.
    pub fn apply_fetched(
        &mut self,
        records: Bytes,
        mut admit: impl FnMut(usize) -> bool,
        around: &mut Surroundings<'_>,
    ) -> Result<(), NotApplied> {
        for read in batches(records) {
            let batch = read
                .and_then(|batch| batch.check_crc().map(|()| batch))
                .map_err(|error| NotApplied::Damaged { at: self.partition.log_end(), error })?;
            match self.apply_batch(&batch, &mut admit, around)? {
                Next::Batch => {}
                Next::Stop => break,
            }
        }
        Ok(())
    }

    fn apply_batch(
        &mut self,
        batch: &Batch,
        admit: &mut impl FnMut(usize) -> bool,
        around: &mut Surroundings<'_>,
    ) -> Result<Next, NotApplied> {
        let (header, bytes) = (batch.header(), batch.bytes().len());
        let offsets = header.last_offset_delta.wrapping_add(1);
        match self.partition.judge(header.base_offset, offsets, header.partition_leader_epoch) {
            Ok(Follow::Skip) => return Ok(Next::Batch),
            Ok(Follow::Stop) => return Ok(Next::Stop),
            Ok(Follow::Append | Follow::AppendFromBelow) if offsets > 0 => {}
            Ok(_) | Err(_) => return Err(NotApplied::Never(Misfit::NoSuccessor)),
        }
        if bytes > self.log.config().segment_bytes as usize {
            return Err(NotApplied::Never(Misfit::LargerThanASegment));
        }
        if !admit(bytes) {
            return Err(NotApplied::Later);
        }
        if self.rolls_at(bytes, header.last_offset(), header.max_timestamp, around.now.wall) {
            self.close_segment(around);
            if self.partition.is_failed() {
                around.outbox.effects.push(Effect::Released(bytes as u64));
                return Err(NotApplied::Later);
            }
        }
        let info = batch_info(header, || batch.bytes().clone());
        self.partition.follow(header.base_offset, &info, &mut around.outbox.decisions);
        self.round.push(AppendBytes::Whole(batch.bytes().clone()), around.lists);
        Ok(Next::Batch)
    }

    /// Takes over the leader's marks from its answer.
    pub fn apply_marks(
        &mut self,
        high_watermark: Offset,
        leader_start: Offset,
        around: &mut Surroundings<'_>,
    ) {
        self.leader_start = leader_start;
        self.partition.follow_high_watermark(high_watermark, &mut around.outbox.decisions);
        self.follow_start(around);
    }

    /// The leader has dropped what lies before its start. Here that counts once it is below the high watermark.
    ///
    /// It is written back first, but on a full disk: a start takes the rest from the journal. What lies below may be
    /// of an older epoch than the leader's was, since nothing compares what a leader has deleted. So it must not be
    /// served by this replica either, should it be elected (found by lab/sim, climate retention, seed 7702).
    pub fn follow_start(&mut self, around: &mut Surroundings<'_>) {
        let to = self.leader_start.min(self.partition.high_watermark());
        if to <= self.partition.log_start() {
            return;
        }
        if to > self.log.segment_end() && self.write_back_all(around).is_err_and(|error| !error.is_passing())
        {
            return;
        }
        self.partition.advance_log_start(to, &mut around.outbox.decisions);
        // The log knows its start before anything else is written.
        self.absorb(around.outbox);
    }
}
