//! Truncations, carried out: the note goes to the journal, checkpoints are lowered, files that are out of use are
//! deleted later. core/replica's `truncation` decides what comes when.
//!
//! Neighbours: replica_fetcher.rs, which hears from the leader; repair.rs, which gives up damaged segments;
//! core/replica/src/replica/truncation.rs.

use crate::mailbox::PartitionKey;
use crate::upkeep::scrub::name_damage;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::replica::Hosted;
use barnabas_partition::Cut;
use barnabas_replica::{Truncated, TruncationVerdict};
use barnabas_storage::StorageError;

impl PartitionWorker {
    /// Begins to truncate. All that the replica has is durable.
    pub fn truncate(&mut self, key: PartitionKey, cut: Cut) {
        if cut == Cut::Nothing {
            return self.settle(key);
        }
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        match replica.truncation_at(&mut files[replica.directory], cut) {
            Ok((cut, damage)) => {
                log_truncation(replica, cut);
                if let Some(damage) = damage {
                    self.read_failed(key, &damage);
                }
                self.note_truncation(key, cut, false);
            }
            Err(error) => self.truncation_failed(key, &error),
        }
    }

    /// Notes where the log is truncated; once that is durable it is. `is_repair`: at the base of a segment, and what
    /// goes is damaged.
    pub fn note_truncation(&mut self, key: PartitionKey, cut: Cut, is_repair: bool) {
        let Self { replicas, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let directory = replica.directory;
        match replica.want_truncation(cut, is_repair, node.log_dirs.acks_are_synced) {
            Some(entry) => self.journal_entry(directory, entry),
            None => self.settle(key),
        }
    }

    /// The truncation is noted: no crash brings back what goes now.
    pub fn truncate_now(&mut self, key: PartitionKey) {
        let truncated = self.carry_out_truncation(key);
        self.apply_effects(key);
        match truncated {
            Ok(true) => self.repaired(key),
            Ok(false) => {}
            Err(error) => return self.truncation_failed(key, &error),
        }
        if self.node.log_dirs.acks_are_synced {
            self.settle_write_back(key);
        } else {
            self.sync_now(key);
        }
        self.take_waiting_roles();
    }

    /// Returns whether damage went with what was truncated.
    fn carry_out_truncation(&mut self, key: PartitionKey) -> Result<bool, StorageError> {
        let now = self.node.clock.wall();
        let Self { replicas, files, node, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return Ok(false) };
        let (index, directory) = (replica.directory, &node.log_dirs.directories[replica.directory]);
        let files = &mut files[index];
        replica.lower_checkpoints(&mut directory.lock())?;
        let Truncated { delete, dropped_bytes } = replica.truncate(files, now, &mut effects.effects)?;
        directory.room.settle(dropped_bytes);
        if let Some(delete) = delete {
            node.log_dirs.deletions.later(index, delete);
        }
        replica.finish_truncation(files)
    }

    /// The log could not be truncated: the replica waits, or is of no use. Nothing false was acknowledged, as it led
    /// nothing.
    fn truncation_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Self { replicas, following, node, .. } = self;
        let Some(replica) = replicas.get(&key) else { return };
        let (directory, name) = (replica.directory, &replica.name.topic_partition);
        match TruncationVerdict::of(error) {
            TruncationVerdict::Retry => {
                tracing::info!(partition = %name, %error, "the truncation of the log is delayed");
                node.write_failed(directory, error);
                following.settle_later(key);
            }
            TruncationVerdict::Offline => {
                if matches!(error, StorageError::Damaged { .. }) {
                    name_damage(node, error);
                }
                tracing::error!(partition = %name, %error, "the log could not be truncated to the \
                    leader's; the replica stays offline until the next start");
                self.goes_offline(key);
            }
            TruncationVerdict::DirectoryFailed => {
                self.node.directory_failed(directory, error);
                self.directory_failed(directory);
            }
        }
    }

    /// The replica is of no use until the next start.
    pub fn goes_offline(&mut self, key: PartitionKey) {
        let Self { replicas, effects, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        replica.log.fail();
        replica.partition.fail(&mut effects.decisions);
        replica.wake_all();
        following.fail(replica, key);
        self.apply_effects(key);
        self.stays_offline(key);
    }
}

fn log_truncation(replica: &Hosted, cut: Cut) {
    let (start, end) = (replica.partition.log_start(), replica.partition.log_end());
    let partition = &replica.name.topic_partition;
    let leader = replica.following.map_or_else(|| "none".to_owned(), |(leader, _)| leader.to_string());
    match cut {
        Cut::Nothing => {}
        Cut::To(to) => {
            tracing::info!(%partition, %leader, "truncated the log from offset {end} to {to}, where it \
                diverges from the leader's");
        }
        Cut::StartAt(at) => {
            tracing::info!(%partition, %leader, "the log (offsets {start} up to {end}) was deleted and \
                restarts at offset {at}, the leader's log start offset");
        }
    }
}
