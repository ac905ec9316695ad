//! Partitions with batches in the journal of an earlier process (node/log_dirs/unreplayed.rs). They are replayed
//! into their logs when the partition is opened.
//!
//! A partition that cannot be opened must not hold the journal for good: what waits for it is kept in a file of its own
//! then (replay.rs), and the partition stays offline.
//!
//! Neighbours: partition_worker.rs, which opens; journaled.rs, which is ordered to write back;
//! core/replica/src/opening/stays.rs, whose order the abandoning of records follows.

use crate::mailbox::{Declined, LogSize, PartitionKey};
use crate::node::log_dirs::unreplayed::name_of;
use crate::upkeep::placement::abandon;
use crate::upkeep::placement::locate::{Nowhere, Place, locate};
use crate::upkeep::replay::{belongs_here, keep_aside};
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::TopicPartition;
use barnabas_replica::OpenError;
use barnabas_storage::StorageError;
use barnabas_storage::journal::{JournalPartition, PartitionReplay};
use std::sync::Arc;

/// What waits, and for which directory.
pub type Waiting = Option<(usize, Arc<PartitionReplay>)>;

impl PartitionWorker {
    /// Where a partition lies or may begin, and what waits for it there.
    pub fn locate_waiting(
        &mut self,
        key: PartitionKey,
        name: &TopicPartition,
    ) -> Result<(Place, Waiting), Declined> {
        let mut waiting = self.waiting(key)?;
        let mut is_on_disk = waiting.is_empty();
        for (directory, _) in &waiting {
            is_on_disk |= self.has_folder(*directory, name)?;
        }
        let place = if is_on_disk { locate(&self.node, key, name) } else { Ok(Place::Found(waiting[0].0)) };
        let place = match place {
            Ok(place) => place,
            Err(Nowhere::Offline) => return Err(Declined::Storage),
            Err(Nowhere::Broken) => {
                for (directory, replay) in waiting {
                    let error =
                        StorageError::Failed(self.node.log_dirs.directories[directory].path.to_path_buf());
                    self.abandon_waiting(directory, key, &replay, &error.into())?;
                }
                self.stays_offline(key);
                return Err(Declined::Storage);
            }
        };
        // Of two copies one counts, and so does what waits for it.
        for (directory, replay) in waiting.extract_if(.., |(at, _)| *at != place.directory()) {
            self.node.log_dirs.unreplayed.remove(&self.node.log_dirs.directories, directory, key, 0);
            if self.node.log_dirs.acks_are_synced {
                self.end_stay(key, directory, Arc::clone(&replay.partition));
            }
        }
        Ok((place, waiting.pop()))
    }

    /// The operator has abandoned the partition's records: what waits for it goes with them. The partition begins once
    /// the journal's removal is durable, and the operator's file stays until then: a crash before that starts over.
    pub fn abandon_where_asked(&mut self, key: PartitionKey, name: &TopicPartition) -> Result<(), Declined> {
        let asked = abandon::where_asked(&self.node, name, key.topic);
        if asked.is_empty() {
            return Ok(());
        }
        if !self.abandoned.remove(&key) {
            self.put_abandoned_aside(key, name, &asked)?;
            if self.is_leaving(key) {
                self.abandoned.insert(key);
                return Err(Declined::Storage);
            }
        }
        for directory in asked {
            let done = abandon::done(&self.node, directory, name, key.topic);
            done.map_err(|error| self.cannot_abandon(key, name, &error))?;
        }
        Ok(())
    }

    fn put_abandoned_aside(
        &mut self,
        key: PartitionKey,
        name: &TopicPartition,
        asked: &[usize],
    ) -> Result<(), Declined> {
        for (directory, replay) in self.node.log_dirs.unreplayed.find(key) {
            let why =
                StorageError::Failed(self.node.log_dirs.directories[directory].path.join(name.to_string()));
            self.abandon_waiting(directory, key, &replay, &why.into())?;
        }
        for &directory in asked {
            let aside = abandon::put_aside(&self.node, directory, name, key.topic);
            aside.map_err(|error| self.cannot_abandon(key, name, &error))?;
        }
        if self.node.log_dirs.acks_are_synced {
            for &directory in asked {
                let gone = JournalPartition { topic_id: key.topic, topic_partition: name.clone() };
                self.end_stay(key, directory, Arc::new(gone));
            }
        }
        Ok(())
    }

    fn cannot_abandon(&mut self, key: PartitionKey, name: &TopicPartition, error: &StorageError) -> Declined {
        tracing::error!(partition = %name, %error, "partition could not be abandoned and stays offline");
        self.stays_offline(key);
        Declined::Storage
    }

    /// What waits where the partition lies, or may lie: a move that was cut off between its two renames leaves two
    /// folders. What waits where it does not lie any more is forgotten.
    fn waiting(&mut self, key: PartitionKey) -> Result<Vec<(usize, Arc<PartitionReplay>)>, Declined> {
        let mut here = Vec::new();
        for (directory, replay) in self.node.log_dirs.unreplayed.find(key) {
            if !self.node.log_dirs.directories[directory].is_usable() {
                continue;
            }
            match belongs_here(&self.node, directory, &replay.partition) {
                Ok(true) => here.push((directory, replay)),
                Ok(false) => {
                    self.node.log_dirs.unreplayed.remove(&self.node.log_dirs.directories, directory, key, 0)
                }
                Err(error @ StorageError::WrongOwner { .. }) => {
                    self.abandon_waiting(directory, key, &replay, &error.into())?;
                }
                Err(error) if error.is_passing() => {
                    self.node.log_dirs.directories[directory].room.hit(&error, self.node.clock.monotonic());
                    return Err(Declined::Storage);
                }
                Err(error) => {
                    self.node.directory_failed(directory, &error);
                    return Err(Declined::Storage);
                }
            }
        }
        Ok(here)
    }

    pub(super) fn has_folder(&self, directory: usize, name: &TopicPartition) -> Result<bool, Declined> {
        let each = &self.node.log_dirs.directories[directory];
        match each.disk.stat(&each.path.join(name.to_string())) {
            Ok(found) => Ok(found.is_some()),
            Err(error) if error.kind.is_shortage() => Err(Declined::Storage),
            Err(error) => {
                self.node.directory_failed(directory, &error);
                Err(Declined::Storage)
            }
        }
    }

    /// Keeps aside what waits for a partition that cannot take it.
    pub fn abandon_waiting(
        &mut self,
        directory: usize,
        key: PartitionKey,
        replay: &PartitionReplay,
        why: &OpenError,
    ) -> Result<(), Declined> {
        match keep_aside(&self.node.log_dirs.directories[directory], replay, why) {
            Ok(()) => {
                self.node.log_dirs.unreplayed.remove(&self.node.log_dirs.directories, directory, key, 0);
                Ok(())
            }
            Err(error) if error.is_passing() => {
                self.node.log_dirs.directories[directory].room.hit(&error, self.node.clock.monotonic());
                Err(Declined::Full)
            }
            Err(error) => {
                self.node.directory_failed(directory, &error);
                self.directory_failed(directory);
                Err(Declined::Storage)
            }
        }
    }

    /// The journal wants written back what waits for this partition. `false`: not now.
    pub fn open_to_write_back(&mut self, directory: usize, key: PartitionKey) -> bool {
        // Whether it is refused or failed, nothing of it waits any more if that is for good.
        let _ = self.open_known(key);
        !self.node.log_dirs.unreplayed.has(directory, key)
    }

    /// Before the node stops: so that everything is in segments. A directory in which something is left is not vouched
    /// for.
    pub fn open_all_waiting(&mut self) {
        let (workers, me) = (self.node.workers.count, self.id);
        for directory in 0..self.node.log_dirs.directories.len() {
            for (key, _) in self.node.log_dirs.unreplayed.all(directory, |key| key.owner(workers) == me) {
                if !self.node.log_dirs.directories[directory].is_online() {
                    break;
                }
                if !self.open_to_write_back(directory, key)
                    && self.node.cluster.image.load().topics.by_id(key.topic).is_some()
                {
                    let path = self.node.log_dirs.directories[directory].path.display();
                    tracing::warn!(
                        "{path}: batches in the journal could not be written back to segments; the next \
                         start replays them"
                    );
                    self.node.log_dirs.directories[directory].fail();
                }
            }
        }
    }

    /// A deleted partition's. Returns what was waiting, and for which directories.
    pub fn forget_waiting(&mut self, key: PartitionKey) -> Vec<(usize, Arc<PartitionReplay>)> {
        let found = self.node.log_dirs.unreplayed.find(key);
        for (directory, _) in &found {
            self.node.log_dirs.unreplayed.remove(&self.node.log_dirs.directories, *directory, key, 0);
        }
        found
    }

    /// What has not been opened counts with what its folder has and with what waits; of a crash in the middle of
    /// writing back, a little of that twice.
    pub fn sizes_of_waiting(&self) -> Vec<LogSize> {
        let (workers, me) = (self.node.workers.count, self.id);
        let mut sizes = Vec::new();
        for (directory, each) in self.node.log_dirs.directories.iter().enumerate() {
            for (_, replay) in self.node.log_dirs.unreplayed.all(directory, |key| key.owner(workers) == me) {
                let name = name_of(&replay);
                let on_disk = each.size_on_disk(&name.to_string()).unwrap_or(0);
                let bytes = on_disk + replay.bytes();
                sizes.push(LogSize { directory, partition: name.clone(), bytes, range: None });
            }
        }
        sizes
    }
}
