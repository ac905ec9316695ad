//! What a partition's owner does for a move between log directories: reads out, and takes the last step.
//!
//! The last step is done in one go, between two rounds, so that no append has to wait in a queue of its own: what is
//! left to copy is little, and the rest is one sync of the new files and two renames. Its order is what a crash in the
//! middle rests on (moves.rs).

use crate::log_dirs::directories::random_uuid;
use crate::mailbox::moves::{Begun, SwapFailure};
use crate::mailbox::{Copying, MoveCommand};
use crate::mailbox::{Declined, PartitionKey};
use crate::upkeep::placement::reports;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::Offset;
use barnabas_replica::{CopyVerdict, LogPiece, MoveBegins};
use barnabas_storage::StorageError;

impl PartitionWorker {
    pub fn take_move(&mut self, command: MoveCommand) {
        // The caller may have ended.
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
        match replica.begin_move(to) {
            MoveBegins::There => return Ok(Begun::There),
            MoveBegins::ToCopy { bytes } => return Ok(Begun::ToCopy { bytes }),
            MoveBegins::Empty => {}
        }
        // Nothing was ever written: it begins there, once the metadata log says so.
        replica.partition.fail(&mut effects.decisions);
        replica.waiters.wake_all();
        self.apply_effects(key);
        self.replicas.remove(&key);
        self.node.log_dirs.directories.figures.prefer(key, to);
        reports::assign(&self.node, &[(key, to)]);
        Ok(Begun::There)
    }

    fn read_for_move(
        &mut self,
        key: PartitionKey,
        from: Option<Offset>,
        max_bytes: usize,
    ) -> Result<LogPiece, Declined> {
        self.open(key)?;
        let Self { replicas, files, node, .. } = self;
        let replica = replicas.get_mut(&key).ok_or(Declined::Unknown)?;
        let files = &mut files[replica.directory];
        let read = replica.read_durable_piece(from, max_bytes, node.log_dirs.acks_are_synced, files);
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
            && self.node.log_dirs.directories[copying.to].is_usable()
            && self.replicas.get(&key).is_some_and(|replica| replica.may_finish_move(copying.to));
        if !is_ready {
            return Err(SwapFailure::Over(copying));
        }
        if self.leaving.is_leaving_directory(key, copying.to) {
            return Err(SwapFailure::NotYet(copying));
        }
        match self.catch_up(&mut copying) {
            Ok(true) => {}
            Ok(false) => return Err(SwapFailure::NotYet(copying)),
            Err(error) => {
                match CopyVerdict::of(&error, false) {
                    CopyVerdict::Retry => return Err(SwapFailure::NotYet(copying)),
                    CopyVerdict::DirectoryFailed => self.node.directory_failed(copying.to, &error),
                    CopyVerdict::BeginAgain | CopyVerdict::Over => {
                        let path = self.node.log_dirs.directories[copying.to].path.display();
                        tracing::error!(%error, "the move to {path} failed; the replica stays in its directory and can be moved again");
                    }
                }
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

    /// `false`: what is left is too much for this step.
    fn catch_up(&mut self, copying: &mut Copying) -> Result<bool, StorageError> {
        let now = self.node.clock.wall();
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&copying.key) else { return Ok(false) };
        let files = &mut files[replica.directory];
        replica.catch_up(&mut copying.copy, files, now)
    }

    /// The copy gets the partition's name, durably.
    fn promote(&mut self, copying: &mut Copying) -> Result<(), StorageError> {
        let Some(replica) = self.replicas.get(&copying.key) else {
            return Err(StorageError::Failed(copying.copy.path()));
        };
        let mut log_dir = self.node.log_dirs.directories[copying.to].lock();
        copying.copy.promote(&mut log_dir, replica.partition.high_watermark())
    }

    /// The old log gives up its name, and the partition goes on in the new one.
    fn leave(&mut self, copying: Copying) {
        let Copying { key, to, copy, .. } = copying;
        let Self { replicas, files, effects, node, .. } = self;
        let (Some(replica), Some(log)) = (replicas.get_mut(&key), copy.log) else { return };
        let (from, name) = (replica.directory, replica.name.clone());
        // What the old journal still holds of it is in the new segments: at a crash it is not replayed, as the
        // partition's folder lies elsewhere (replay.rs). Should the replica return, its log may be another one: the
        // journal notes the removal before that (core/replica/src/opening/stays.rs).
        let left = replica.move_to(to, log, &mut files[from], effects);
        node.log_dirs.directories[from].room.settle(left.unwritten_bytes);
        let renamed =
            node.log_dirs.directories[from].lock().rename_moved(&copy.place.topic_partition, random_uuid());
        match renamed {
            Ok(aside) => {
                let delay = replica.log.config().file_delete_delay_ms;
                let due = node.clock.wall().plus(delay);
                if let Some(aside) = aside {
                    node.log_dirs.deletions.directory_later(from, aside, due);
                }
                replica.moved(effects);
                self.apply_effects(key);
                if let Some(order) = left.order {
                    self.written_back_otherwise(from, order);
                }
                if self.node.log_dirs.acks_are_synced {
                    self.note_ranges(key);
                    self.end_stay(key, from, name);
                }
                self.submit();
            }
            Err(error) => {
                // The old name may come back with its directory, and the metadata log names it: nothing is acknowledged
                // in the new place before the metadata log names that (placement/locate.rs).
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
