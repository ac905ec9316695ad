//! What a partition's owner does for a move between log directories: reads out, and takes the last step.
//!
//! The last step is done in one go, between two rounds, so that no append has to wait in a queue of its own: what is left to copy is
//! little, and the rest is one sync of the new files and two renames. Its order is what a crash in the middle rests on (moves.rs).

use super::PartitionWorker;
use crate::directories::{random_uuid, reports};
use crate::mailbox::moves::copying::Fits;
use crate::mailbox::moves::{Begun, MoveRead, SwapFailure};
use crate::mailbox::{Copying, MoveCommand};
use crate::mailbox::{Declined, PartitionKey};
use crate::replica::Replica;
use barnabas_base::Offset;
use barnabas_storage::{FilePool, StorageError};
use bytes::Bytes;

/// More than so much is not copied in the last step.
const LAST_BYTES_MAX: usize = 4 << 20;
const PIECE_BYTES: usize = 1 << 20;

impl PartitionWorker {
    pub(super) fn take_move(&mut self, command: MoveCommand) {
        // Whoever asked may have ended.
        match command {
            MoveCommand::Begin { key, to, reply } => drop(reply.send(self.begin_move(key, to))),
            MoveCommand::Read { key, from, max_bytes, reply } => {
                drop(reply.send(self.read_for_move(key, from, max_bytes)));
            }
            MoveCommand::Swap { copying, reply } => drop(reply.send(self.swap(copying))),
        }
    }

    fn begin_move(&mut self, key: PartitionKey, to: usize) -> Result<Begun, Declined> {
        self.open(key)?;
        self.finish_round();
        let Self { replicas, effects, .. } = self;
        let replica = replicas.get_mut(&key).ok_or(Declined::Unknown)?;
        if replica.directory == to {
            return Ok(Begun::There);
        }
        replica.was_truncated = false;
        if replica.log.is_on_disk() || replica.log.end() > Offset::ZERO {
            return Ok(Begun::ToCopy { bytes: replica.log.size_bytes() });
        }
        // Nothing was ever written: it begins there, once the metadata log says so.
        replica.partition.fail(&mut effects.decisions);
        replica.waiters.wake_all();
        self.apply_effects(key);
        self.replicas.remove(&key);
        self.node.directories.figures.prefer(key, to);
        reports::assign(&self.node, &[(key, to)]);
        Ok(Begun::There)
    }

    fn read_for_move(
        &mut self,
        key: PartitionKey,
        from: Option<Offset>,
        max_bytes: usize,
    ) -> Result<MoveRead, Declined> {
        self.open(key)?;
        let Self { replicas, files, node, .. } = self;
        let replica = replicas.get_mut(&key).ok_or(Declined::Unknown)?;
        let synced = replica.log.recovery_point();
        let durable_end =
            if node.acks_are_synced { synced.max(replica.partition.durable_end()) } else { synced };
        let durable_end = durable_end.min(replica.log.end());
        let files = &mut files[replica.directory];
        let read = read_piece(replica, files, from, max_bytes, durable_end);
        read.map_err(|error| {
            tracing::error!(partition = %replica.log.place().topic_partition, %error, "the copy of a \
                moving replica cannot be read");
            Declined::Storage
        })
    }

    /// The last step. On failure the partition goes on where it was, unless its directory has failed.
    fn swap(&mut self, mut copying: Box<Copying>) -> Result<(), SwapFailure> {
        let key = copying.key;
        self.finish_round();
        let is_ready = self.open(key).is_ok()
            && self.node.directories[copying.to].is_usable()
            && self.replicas.get(&key).is_some_and(|replica| {
                replica.directory != copying.to && !replica.was_truncated && replica.truncation.is_none()
            });
        if !is_ready {
            return Err(SwapFailure::Over(copying));
        }
        match self.complete_copy(&mut copying) {
            Ok(true) => {}
            Ok(false) => return Err(SwapFailure::NotYet(copying)),
            Err(error) if error.is_passing() => return Err(SwapFailure::NotYet(copying)),
            Err(error @ (StorageError::Disk(_) | StorageError::Failed(_))) => {
                self.node.directory_failed(copying.to, &error);
                return Err(SwapFailure::Over(copying));
            }
            Err(error) => {
                let path = self.node.directories[copying.to].path.display();
                tracing::error!(%error, "the move to {path} failed; the replica stays in its directory \
                    and can be moved again");
                return Err(SwapFailure::Over(copying));
            }
        }
        if let Err(error) = self.promote(&mut copying) {
            if error.is_passing() {
                return Err(SwapFailure::NotYet(copying));
            }
            // Whether the name was given, the next start sees; the metadata log names the old directory until then.
            self.node.directory_failed(copying.to, &error);
            self.directory_failed(copying.to);
            return Err(SwapFailure::Over(copying));
        }
        self.leave(*copying);
        Ok(())
    }

    /// Copies what is left and syncs it. `false`: it is too much for this step.
    fn complete_copy(&mut self, copying: &mut Copying) -> Result<bool, StorageError> {
        let now = self.node.clock.wall();
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&copying.key) else { return Ok(false) };
        let source = &mut files[replica.directory];
        let end = replica.log.end();
        let mut left = LAST_BYTES_MAX;
        loop {
            let from = copying.end();
            let read = read_piece(replica, source, from, PIECE_BYTES, end)?;
            let bytes = read.records.len();
            if bytes > left || copying.put(&read, now)? == Fits::No {
                return Ok(false);
            }
            left -= bytes;
            if bytes == 0 {
                break;
            }
        }
        let Some(log) = &mut copying.log else { return Ok(false) };
        if log.end() != end {
            return Ok(false);
        }
        log.adopt_epochs(replica.log.epochs().clone());
        // With all of a producer's batches that may be sent again, as in `Replica::snapshot_producers`.
        log.write_producer_snapshot(&mut copying.files, end, &replica.producer_entries())?;
        log.checkpoint(&mut copying.files)?;
        copying.sync()?;
        Ok(true)
    }

    /// The copy gets the partition's name, durably.
    fn promote(&mut self, copying: &mut Copying) -> Result<(), StorageError> {
        let (Some(replica), Some(log), Some(unique)) =
            (self.replicas.get(&copying.key), &mut copying.log, copying.place.future)
        else {
            return Err(StorageError::Failed(copying.path()));
        };
        log.abandon_files(&mut copying.files);
        let name = &copying.place.topic_partition;
        let start = log.start();
        let mut log_dir = self.node.directories[copying.to].lock();
        log_dir.set_recovery_point(name.clone(), log.recovery_point());
        log_dir.set_log_start(name.clone(), (start > Offset::ZERO).then_some(start));
        log_dir.set_high_watermark(name.clone(), replica.partition.high_watermark());
        log_dir.set_cleaner_point(name.clone(), copying.clean_to);
        if let Err(error) = log_dir.promote_future(name, unique) {
            // With no room it is tried again, or taken back: nothing of it is to be left in the checkpoints.
            log_dir.forget(name);
            return Err(error);
        }
        log.become_current();
        Ok(())
    }

    /// The old log gives up its name, and the partition goes on in the new one.
    fn leave(&mut self, copying: Copying) {
        let Copying { key, to, place, log, .. } = copying;
        let Self { replicas, files, effects, node, .. } = self;
        let (Some(replica), Some(log)) = (replicas.get_mut(&key), log) else { return };
        let from = std::mem::replace(&mut replica.directory, to);
        let mut old = std::mem::replace(&mut replica.replica.log, log);
        // What the old journal still holds of it is in the new segments: at a crash it is not replayed, as the partition's folder
        // lies elsewhere (replay.rs).
        node.directories[from].room.settle(old.unlaid_bytes());
        old.abandon(&mut files[from]);
        let ordered = replica.journal.write_back.take();
        // The new journal may know the partition from an earlier stay. A `Range` ends that, and until it is durable the partition's
        // appends go straight into the segment.
        replica.journal.direct_from = Some(replica.log.start());
        let end = replica.log.end();
        replica.sync.restart(&mut effects.effects);
        replica.upkeep.snapshot_at = end;
        replica.upkeep.is_changed = true;
        let renamed = node.directories[from].lock().rename_moved(&place.topic_partition, random_uuid());
        match renamed {
            Ok(aside) => {
                let delay = replica.log.config().file_delete_delay_ms;
                let due = node.clock.wall().plus(delay);
                if let Some(aside) = aside {
                    node.deletions.directory_later(from, aside, due);
                }
                // All of it is synced in the new place.
                replica.partition.written(end, &mut effects.decisions);
                replica.partition.durable(end, &mut effects.decisions);
                self.apply_effects(key);
                if let Some((partition, _)) = ordered {
                    self.laid_otherwise(from, partition);
                }
                if self.node.acks_are_synced {
                    self.note_ranges(key);
                }
                self.submit();
            }
            Err(error) => {
                // The old name may come back with its directory, and the metadata log names it: nothing is acknowledged in the
                // new place before the metadata log names that (directories/locate.rs).
                replica.partition.fail(&mut effects.decisions);
                replica.waiters.wake_all();
                self.apply_effects(key);
                self.replicas.remove(&key);
                self.node.directory_failed(from, &error);
                self.directory_failed(from);
            }
        }
        reports::assign(&self.node, &[(key, to)]);
    }
}

fn read_piece(
    replica: &mut Replica,
    files: &mut FilePool,
    from: Option<Offset>,
    max_bytes: usize,
    upper: Offset,
) -> Result<MoveRead, StorageError> {
    let log_start = replica.log.start();
    let from = from.map_or(log_start, |from| from.max(log_start));
    let (mut records, mut aborted) = (Bytes::new(), Vec::new());
    if from < upper {
        let read = replica.log.read(files, from, max_bytes, upper, true)?;
        if !read.records.is_empty() {
            aborted = replica.log.aborted_transactions(files, from, read.next_offset)?;
            aborted.retain(|each| each.last_offset >= from && each.last_offset < read.next_offset);
        }
        records = read.records;
    }
    // The first eight bytes of a batch are its base offset.
    let base = records.first_chunk::<8>().map(|bytes| Offset(i64::from_be_bytes(*bytes)));
    let config = replica.log.config().clone();
    Ok(MoveRead { from: base.unwrap_or(from), records, aborted, log_start, durable_end: upper, config })
}
