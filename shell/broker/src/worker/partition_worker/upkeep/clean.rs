//! What compaction's threads ask of a worker: how much waits, what may be read, and to swap what they wrote.
//!
//! None of it blocks for a sync: the swap is a few renames, and the cleaner itself waits until they are durable.

use crate::mailbox::CleanCommand;
use crate::mailbox::PartitionKey;
use crate::mailbox::cleaning::{Begun, Looked, Waiting};
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::partition_worker::upkeep::named;
use barnabas_base::{Map, Offset, ProducerId};
use barnabas_storage::cleaner::{LastRecord, Replaced, Replacement};
use barnabas_storage::{CleanBounds, StorageError};

impl PartitionWorker {
    pub fn clean(&mut self, command: CleanCommand) {
        // Answers without a waiting caller are dropped.
        match command {
            CleanCommand::Look { partitions, reply } => {
                let look = |(partition, clean_to)| {
                    let found = self.look(partition, clean_to);
                    Looked { partition, found }
                };
                let _ = reply.send(partitions.into_iter().map(look).collect());
            }
            CleanCommand::Begin { partition, clean_to, reply } => {
                let _ = reply.send(self.begin_cleaning(partition, clean_to).map(Box::new));
            }
            CleanCommand::Swap { partition, replacement, reply } => {
                let _ = reply.send(self.swap_segments(partition, &replacement));
            }
        }
    }

    fn look(&mut self, key: PartitionKey, clean_to: Option<Offset>) -> Option<Waiting> {
        self.open(key).ok()?;
        let Self { replicas, files, node, .. } = self;
        let replica = replicas.get_mut(&key)?;
        let config = replica.log.config().clone();
        if !config.cleanup.compact || replica.partition.is_failed() {
            return None;
        }
        let directory = replica.directory;
        let bounds = CleanBounds { clean_to, last_stable: replica.partition.last_stable() };
        let now = node.clock.wall();
        match replica.log.compaction_debt(&mut files[directory], bounds, now) {
            Ok(debt) => Some(Waiting { directory, debt, min_dirty_ratio: config.compaction.min_dirty_ratio }),
            Err(error) => {
                self.upkeep_failed(key, &error);
                None
            }
        }
    }

    fn begin_cleaning(&mut self, key: PartitionKey, clean_to: Option<Offset>) -> Option<Begun> {
        let debt = self.look(key, clean_to)?.debt;
        let Self { replicas, files, .. } = self;
        let replica = replicas.get_mut(&key)?;
        let name = &replica.log.place().topic_partition;
        if debt.checkpoint_was_wrong && !replica.log.config().cleanup.delete {
            tracing::warn!(
                partition = %name,
                "cleaner-offset-checkpoint names offset {}, which is outside the log; compaction starts \
                 from the beginning of the log",
                clean_to.unwrap_or(Offset::ZERO)
            );
        }
        let directory = replica.directory;
        let files = &mut files[directory];
        let begun = replica.log.log_to_clean(files, &debt);
        let last_records = last_records(&replica.partition);
        match begun.and_then(|log| Ok((log, replica.checkpoint(files)?))) {
            Ok((log, checkpoint)) => {
                Some(Begun { log: log?, debt, last_records, checkpoint: named(replica, checkpoint) })
            }
            Err(error) => {
                self.upkeep_failed(key, &error);
                None
            }
        }
    }

    fn swap_segments(
        &mut self,
        key: PartitionKey,
        replacement: &Replacement,
    ) -> Result<Replaced, StorageError> {
        let Self { replicas, files, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return Ok(Replaced::Stale) };
        let files = &mut files[replica.directory];
        let replaced = replica.log.replace_segments(files, replacement, node.clock.wall());
        match &replaced {
            Ok(Replaced::Done(_)) => self.sync_now(key),
            Ok(Replaced::Stale) => {}
            Err(error) => self.upkeep_failed(key, error),
        }
        replaced
    }
}

/// What the partition remembers of each producer: its batch stays, though it be empty.
fn last_records(partition: &barnabas_partition::Partition) -> Map<ProducerId, LastRecord> {
    let last = |producer: barnabas_partition::ProducerState| {
        let last_data_offset = producer.last_batch.map(|batch| batch.last_offset);
        (producer.producer_id, LastRecord { last_data_offset, epoch: producer.producer_epoch })
    };
    partition.producers().into_iter().map(last).collect()
}
