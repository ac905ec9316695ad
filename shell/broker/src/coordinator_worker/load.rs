//! Loading a shard: every record of its partition, from the start to the end of the log, a piece at a time.

use super::{Active, CoordinatorWorker, Shard, now};
use crate::mailbox::{GroupCommand, PartitionKey};
use crate::partition_worker::PartitionWorker;
use barnabas_base::{ErrorCode, Offset, ProducerId};
use barnabas_coordinator::{GroupConfig, GroupShard};
use barnabas_partition::{BatchKind, Outcome};
use barnabas_wire::records::{Batch, batches};
use bytes::Bytes;
use std::collections::VecDeque;

/// Read at once, between rounds.
const PIECE_BYTES: usize = 4 << 20;

/// A shard that is not loaded yet.
#[derive(Debug)]
pub(super) struct Loading {
    shard: GroupShard,
    /// `None`: the partition has not been opened yet.
    next: Option<Offset>,
    pub(super) waiting: Vec<GroupCommand>,
}

impl Loading {
    pub(super) fn new(config: GroupConfig) -> Self {
        Self { shard: GroupShard::new(config), next: None, waiting: Vec::new() }
    }

    /// Tells everybody who waits that this shard will not come.
    pub(super) fn refuse(self, error: ErrorCode) {
        for command in self.waiting {
            let refusal = command.request.refuse(error);
            // A connection that is gone does not hear its answer.
            let _ = command.reply.send(refusal);
        }
    }
}

impl CoordinatorWorker {
    /// Reads a piece of each shard that is being loaded.
    pub(super) fn load_some(&mut self, partitions: &mut PartitionWorker) {
        let keys: Vec<PartitionKey> = self
            .shards
            .iter()
            .filter(|(_, shard)| matches!(shard, Shard::Loading(_)))
            .map(|(&key, _)| key)
            .collect();
        self.loading = false;
        for key in keys {
            let Some(Shard::Loading(mut loading)) = self.shards.remove(&key) else { continue };
            match load_piece(&mut loading, key, partitions) {
                Ok(false) => {
                    self.loading = true;
                    self.shards.insert(key, Shard::Loading(loading));
                }
                Ok(true) => self.activate(key, loading, partitions),
                Err(error) => loading.refuse(error),
            }
        }
    }

    fn activate(&mut self, key: PartitionKey, loading: Loading, partitions: &mut PartitionWorker) {
        let Loading { mut shard, waiting, .. } = loading;
        let effects = shard.activate(now(&self.node));
        self.shards.insert(key, Shard::Active(Active { shard, pending: VecDeque::new() }));
        self.carry_out(key, effects, partitions);
        for command in waiting {
            self.take(command, partitions);
        }
    }
}

/// Replays one piece. Returns whether that was the last one.
fn load_piece(
    loading: &mut Loading,
    key: PartitionKey,
    partitions: &mut PartitionWorker,
) -> Result<bool, ErrorCode> {
    let (from, end) = partitions.log_range(key).map_err(|declined| match declined.code() {
        ErrorCode::KafkaStorageError => ErrorCode::CoordinatorNotAvailable,
        _ => ErrorCode::NotCoordinator,
    })?;
    let next = loading.next.unwrap_or(from);
    if next >= end {
        return Ok(true);
    }
    let piece =
        partitions.read_log(key, next, PIECE_BYTES).map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
    if piece.is_empty() {
        // What stood between here and the end was compacted away.
        return Ok(true);
    }
    loading.next = Some(replay(&mut loading.shard, piece, key)?.max(next.plus(1)));
    Ok(loading.next.is_some_and(|next| next >= end))
}

/// Replays whole batches; returns the offset after the last one.
fn replay(shard: &mut GroupShard, piece: Bytes, key: PartitionKey) -> Result<Offset, ErrorCode> {
    let mut end = Offset::ZERO;
    let damaged = |error: &dyn std::fmt::Display| {
        tracing::error!(partition = %key.partition, %error, "__consumer_offsets cannot be read; its groups cannot be served");
        ErrorCode::CoordinatorNotAvailable
    };
    for batch in batches(piece) {
        let batch = batch.map_err(|error| damaged(&error))?;
        end = batch.header().next_offset();
        if batch.header().attributes.is_control() {
            replay_marker(shard, &batch);
            continue;
        }
        let producer = match batch.header().attributes.is_transactional() {
            true => batch.header().producer_id,
            false => ProducerId::NONE,
        };
        let records = batch.records().map_err(|error| damaged(&error))?;
        for record in &records {
            let record = record.map_err(|error| damaged(&error))?;
            let Some(record_key) = record.key.map(|key| records.share(key)) else { continue };
            let value = record.value.map(|value| records.share(value));
            shard
                .replay(record.offset, producer, &record_key, value.as_ref())
                .map_err(|error| damaged(&error))?;
        }
    }
    Ok(end)
}

fn replay_marker(shard: &mut GroupShard, batch: &Batch) {
    let info = crate::replica::batch_info(batch.header(), || batch.bytes().clone());
    if let BatchKind::Marker(marker) = info.kind {
        shard.replay_marker(info.producer_id, marker.outcome == Outcome::Commit);
    }
}
