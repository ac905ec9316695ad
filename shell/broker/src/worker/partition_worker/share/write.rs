//! Writing the state of share partitions down: one write at a time for each, so that none overtakes another.

use super::{PartitionWorker, ShareCommand, ShareKey};
use crate::mailbox::Command;
use crate::routing::share_persister::{self, WriteState};
use barnabas_base::ErrorCode;
use barnabas_coordinator::{SharePartitionKey, StateBatch};
use barnabas_partition::{StateWrite, WriteId};

impl PartitionWorker {
    /// Sends what waits to be written, unless something is under way.
    pub(super) fn send_share_writes(&mut self, key: &ShareKey) {
        let (node, me) = (self.node.clone(), self.id);
        let Some(number) = self.shares.map.get(key).map(|share| share.number) else { return };
        let Some(share) = self.shares.get_active(key).filter(|share| !share.is_writing) else { return };
        let queue = std::mem::take(&mut share.queue);
        let ids: Vec<WriteId> = queue.iter().map(|(id, _)| *id).collect();
        let Some(write) = combine(queue.into_iter().map(|(_, write)| write)) else { return };
        share.is_writing = true;
        let key = key.clone();
        tokio::task::spawn_local(async move {
            let result = share_persister::write(&node, coordinator_key(&key), write).await;
            let written = ShareCommand::Written { key, number, ids, result };
            node.workers.mailboxes[me].send(Command::Share(Box::new(written))).await;
        });
    }

    pub(super) fn share_written(
        &mut self,
        key: &ShareKey,
        number: u64,
        ids: &[WriteId],
        result: Result<(), ErrorCode>,
    ) {
        let now = self.node.clock.monotonic();
        if self.shares.map.get(key).is_none_or(|share| share.number != number) {
            return;
        }
        let Some(share) = self.shares.get_active(key) else { return };
        share.is_writing = false;
        let mut effects = Vec::new();
        for &id in ids {
            share.machine.written(id, result, now, &mut effects);
        }
        let next_lock = share.machine.next_deadline();
        self.shares.note_lock(next_lock);
        self.carry_out_share(key, effects);
        let is_gone = |share: &&mut super::Active| share.is_leaving && share.is_idle();
        if self.shares.get_active(key).as_ref().is_some_and(is_gone) {
            self.drop_share(key);
        }
    }
}

/// The coordinator's name for it.
pub(super) fn coordinator_key(key: &ShareKey) -> SharePartitionKey {
    SharePartitionKey {
        group: key.group.clone(),
        topic: key.partition.topic,
        partition: key.partition.partition,
    }
}

/// Several writes in one: later batches count where they say otherwise than earlier ones.
fn combine(writes: impl Iterator<Item = StateWrite>) -> Option<WriteState> {
    let mut all: Option<WriteState> = None;
    for write in writes {
        let batches = write.batches.iter().map(|batch| StateBatch {
            first: batch.first,
            last: batch.last,
            delivery_state: batch.state.code(),
            delivery_count: i16::try_from(batch.delivery_count).unwrap_or(i16::MAX),
        });
        let all = all.get_or_insert_with(|| WriteState {
            state_epoch: write.state_epoch.0,
            leader_epoch: write.leader_epoch,
            start_offset: write.start,
            delivery_complete_count: write.delivery_complete,
            batches: Vec::new(),
        });
        (all.start_offset, all.delivery_complete_count) = (write.start, write.delivery_complete);
        all.batches.extend(batches);
    }
    all
}
