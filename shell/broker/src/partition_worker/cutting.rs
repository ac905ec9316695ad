//! Cutting off what the leader does not have, so that no crash brings it back.
//!
//! The journal of the directory may still hold what is to go, or a word that the segments were synced past the cut. So the cut is noted
//! there first; once that is durable the checkpoints are lowered, the log is cut, and what is known of producers is read anew. A crash
//! before the note leaves everything as it was, and the leader says the same again; after it, the next start cuts (replay.rs).
//! With `log.ack.durability=written` there is no journal, and the log is cut at once.
//!
//! A replica that is about to be cut does nothing else: it is not asked for, and what the image says of it waits.
//!
//! Neighbours: following.rs, which hears from the leader; healing.rs, which cuts off what is damaged; core/storage's `Log::truncate_to`; core/partition's `diverged`.

use super::PartitionWorker;
use crate::mailbox::PartitionKey;
use crate::replica::Hosted;
use barnabas_base::Offset;
use barnabas_partition::Cut;
use barnabas_replica::Truncation;
use barnabas_storage::StorageError;
use barnabas_storage::journal::EntryKind;

impl PartitionWorker {
    /// Begins to cut. All that the replica has is durable.
    pub(super) fn cut(&mut self, key: PartitionKey, cut: Cut) {
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let cut = match cut {
            Cut::Nothing => return self.settle(key),
            Cut::StartAt(at) => Ok(Cut::StartAt(at)),
            // Batches go as a whole.
            Cut::To(end) => replica.log.truncation_end(&mut files[replica.directory], end).map(Cut::To),
        };
        let cut = match cut {
            Ok(cut) => cut,
            Err(error) => return self.cut_failed(key, &error),
        };
        say(replica, cut);
        self.note_cut(key, cut, false);
    }

    /// Notes where the log is cut; once that is safe it is. `heals`: where a segment begins, and what goes is damaged.
    pub(super) fn note_cut(&mut self, key: PartitionKey, cut: Cut, heals: bool) {
        let Self { replicas, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        replica.truncation = Some(Truncation { cut, is_noted: !node.acks_are_synced, is_repair: heals });
        replica.was_truncated = true;
        if node.acks_are_synced {
            let kind = match cut {
                Cut::To(end) => EntryKind::Truncate { end },
                Cut::StartAt(at) => EntryKind::Restart { at },
                Cut::Nothing => return,
            };
            self.journal_cut(key, kind);
        } else {
            self.settle(key);
        }
    }

    /// The cut is noted: no crash brings back what goes now.
    pub(super) fn cut_now(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let Some(Truncation { cut, is_repair: heals, .. }) = replica.truncation.take() else { return };
        if let Err(error) = self.carry_out_cut(key, cut, heals) {
            return self.cut_failed(key, &error);
        }
        if heals {
            self.is_whole(key);
        }
        // What was laid and synced below the cut is as it was: an order to lay ends there.
        let end = self.replicas.get(&key).map_or(Offset::ZERO, |replica| replica.log.end());
        if let Some(replica) = self.replicas.get_mut(&key)
            && let Some((_, ordered)) = &mut replica.journal.write_back
        {
            *ordered = (*ordered).min(end);
        }
        if self.node.acks_are_synced {
            self.settle_laid(key);
        } else {
            self.sync_now(key);
        }
        self.take_waiting_roles();
    }

    fn carry_out_cut(&mut self, key: PartitionKey, cut: Cut, heals: bool) -> Result<(), StorageError> {
        let now = self.node.clock.wall();
        let Self { replicas, files, node, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return Ok(()) };
        let directory = replica.directory;
        lower_checkpoints(replica, &node.directories[directory], cut)?;
        let files = &mut files[directory];
        let unlaid = replica.log.unlaid_bytes();
        let delete = match cut {
            Cut::Nothing => None,
            Cut::To(base) if heals => replica.log.give_up_segments(files, base, now)?,
            Cut::To(end) => replica.log.truncate_to(files, end, now)?.1,
            Cut::StartAt(at) => replica.log.truncate_fully_and_start_at(files, at, now)?,
        };
        // What was never laid will never be.
        node.directories[directory].room.settle(unlaid.saturating_sub(replica.log.unlaid_bytes()));
        if let Some(delete) = delete {
            node.deletions.later(directory, delete);
        }
        replica.sync.forget_covered(&mut effects.effects);
        replica.upkeep.is_changed = true;
        replica.journal.direct_from = None;
        let read = replica.reload(files);
        self.apply_effects(key);
        read
    }

    /// The log could not be cut: the replica is of no use. Nobody is told anything that is not so: it led nothing.
    fn cut_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Self { replicas, effects, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let directory = replica.directory;
        let name = &replica.name.topic_partition;
        if let StorageError::Damaged { .. } | StorageError::BadFile { .. } = error {
            tracing::error!(partition = %name, %error, "what the leader does not have cannot be cut off: the replica stays offline until the next start");
            replica.log.fail();
            replica.partition.fail(&mut effects.decisions);
            replica.wake_all();
            following.fail(replica, key);
            self.failed.insert(key);
            self.apply_effects(key);
            return;
        }
        self.node.directory_failed(directory, error);
        self.directory_failed(directory);
    }
}

/// A checkpoint that names more than the log holds reads as lost data.
fn lower_checkpoints(
    replica: &Hosted,
    directory: &crate::directories::Directory,
    cut: Cut,
) -> Result<(), StorageError> {
    let name = &replica.name.topic_partition;
    let (end, start) = match cut {
        Cut::Nothing => return Ok(()),
        Cut::To(end) => (end, None),
        Cut::StartAt(at) => (at, (at > Offset::ZERO).then_some(at)),
    };
    let mut log_dir = directory.lock();
    if log_dir.recovery_point(name) > end {
        log_dir.set_recovery_point(name.clone(), end);
    }
    if log_dir.high_watermark(name).is_some_and(|known| known > end) {
        log_dir.set_high_watermark(name.clone(), end);
    }
    if log_dir.cleaner_point(name).is_some_and(|known| known > end) {
        log_dir.set_cleaner_point(name.clone(), Some(end));
    }
    if start.is_some() || log_dir.log_start(name).is_some_and(|known| known > end) {
        log_dir.set_log_start(name.clone(), start);
    }
    log_dir.write_checkpoints()
}

fn say(replica: &Hosted, cut: Cut) {
    let (start, end) = (replica.partition.log_start(), replica.partition.log_end());
    let partition = &replica.name.topic_partition;
    let leader = replica.following.map_or_else(|| "none".to_owned(), |(leader, _)| leader.to_string());
    match cut {
        Cut::Nothing => {}
        Cut::To(to) => {
            tracing::info!(%partition, %leader, "the log is cut from offset {end} to {to}: the leader has something else there, or nothing");
        }
        Cut::StartAt(at) => {
            tracing::info!(%partition, %leader, "the log (offsets {start} up to {end}) begins anew at {at}, where the leader's begins");
        }
    }
}
