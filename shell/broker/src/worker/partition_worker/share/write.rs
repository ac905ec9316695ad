//! Has the state of share partitions written down by the share coordinator.
//!
//! In which order: core/replica/src/shares.rs.

use super::{PartitionWorker, ShareCommand, ShareKey};
use crate::mailbox::Command;
use crate::routing::share_persister::{self, WriteState};
use barnabas_coordinator::{SharePartitionKey, StateBatch};
use barnabas_partition::{StateWrite, WriteId};

impl PartitionWorker {
    pub(super) fn write_share(&mut self, key: ShareKey, number: u64, ids: Vec<WriteId>, write: StateWrite) {
        let (node, me) = (self.node.clone(), self.id);
        tokio::task::spawn_local(async move {
            let result = share_persister::write(&node, coordinator_key(&key), to_write(write)).await;
            let written = ShareCommand::Written { key, number, ids, result };
            node.workers.mailboxes[me].send(Command::Share(Box::new(written))).await;
        });
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

fn to_write(write: StateWrite) -> WriteState {
    let batches = write.batches.iter().map(|batch| StateBatch {
        first: batch.first,
        last: batch.last,
        delivery_state: batch.state.code(),
        delivery_count: i16::try_from(batch.delivery_count).unwrap_or(i16::MAX),
    });
    WriteState {
        state_epoch: write.state_epoch.0,
        leader_epoch: write.leader_epoch,
        start_offset: write.start,
        delivery_complete_count: write.delivery_complete,
        batches: batches.collect(),
    }
}
