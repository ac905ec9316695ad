//! Opening partitions: where they lie, with what the journal holds of them, and what becomes of those that cannot be
//! opened. core/replica's `opening` decides.
//!
//! Neighbours: waiting.rs, which finds what waits in the journal; placement/locate.rs, which finds the directory;
//! core/replica/src/opening.rs.

use crate::mailbox::{Declined, PartitionKey};
use crate::node::peers::replication::throttles::Throttled;
use crate::node::topic_settings;
use crate::upkeep::placement::abandon;
use crate::upkeep::placement::locate::Place;
use crate::upkeep::placement::reports;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::partition_worker::lifecycle::changes;
use crate::worker::replica::{Hosted, Replica};
use barnabas_base::TopicPartition;
use barnabas_metadata::{Image, Partition as Row};
use barnabas_partition::Refusal;
use barnabas_replica::{Checkpointed, OpenError, OpenReport, OpenVerdict, Opening, note_gaps};
use barnabas_storage::LogPlace;
use barnabas_storage::journal::PartitionReplay;
use std::sync::Arc;

impl PartitionWorker {
    /// Opens a partition that this broker leads, unless it is open already.
    pub fn open(&mut self, key: PartitionKey) -> Result<(), Declined> {
        if let Some(replica) = self.replicas.get(&key) {
            let directory = &self.node.log_dirs.directories[replica.directory];
            if !replica.partition.is_failed() || !directory.is_online() {
                return Ok(());
            }
            // It met a full disk and holds batches that no segment has yet. It is opened again once they are written
            // back.
            self.drop_replica(key);
            if self.replicas.contains_key(&key) {
                return Err(Declined::Full);
            }
        }
        let image = self.node.cluster.image.load();
        let topic = image.topics.by_id(key.topic).ok_or(Declined::Unknown)?;
        let state = topic.partition(key.partition).ok_or(Declined::Unknown)?;
        if !self.closed && !state.has_replica(self.node.identity.broker_id) {
            return Err(Refusal::NotLeader.into());
        }
        drop(image);
        self.open_known(key)
    }

    /// Opens a partition that is not open, as leader or follower.
    pub fn open_known(&mut self, key: PartitionKey) -> Result<(), Declined> {
        if self.replicas.contains_key(&key) {
            return Ok(());
        }
        if self.closed {
            return Err(Refusal::NotLeader.into());
        }
        if self.failed.contains(&key) || self.is_leaving(key) {
            return Err(Declined::Storage);
        }
        let image = self.node.cluster.image.load_full();
        let topic = image.topics.by_id(key.topic).ok_or(Declined::Unknown)?;
        let state = topic.partition(key.partition).ok_or(Declined::Unknown)?;
        let name = TopicPartition { topic: topic.name.clone(), partition: key.partition };
        self.node.log_dirs.written.add(key);
        self.abandon_where_asked(key, &name)?;
        let (place, waiting) = self.locate_waiting(key, &name)?;
        let directory = place.directory();
        let unreplayed = waiting.as_ref().map(|(_, replay)| &**replay);
        let opening = self.opening(key, name.clone(), place, unreplayed);
        let opened = Replica::open(opening, &mut self.files[directory]);
        let (replica, report) =
            opened.map_err(|error| self.cannot_open(key, &name, directory, waiting.as_ref(), &error))?;
        if waiting.is_some() {
            let staged = replica.log.staged_bytes();
            self.node.log_dirs.unreplayed.remove(&self.node.log_dirs.directories, directory, key, staged);
        }
        self.opened(replica, &report, &image, state);
        Ok(())
    }

    /// Takes a replica that was opened among its own.
    fn opened(&mut self, replica: Replica, report: &OpenReport, image: &Image, row: &Row) {
        let mut replica = Hosted::new(replica);
        let (key, directory) = (replica.partition_key(), replica.directory);
        let name = replica.name.topic_partition.clone();
        self.log_opened(&replica, report);
        self.node.workers.meter.partitions_opened.one();
        let assigned = self.node.log_dirs.directories[directory].id;
        if row.directory(self.node.identity.broker_id) != Some(assigned)
            && self.node.log_dirs.directories.are_several()
        {
            reports::assign(&self.node, &[(key, directory)]);
        }
        (replica.flush.messages_max, replica.flush.after) =
            topic_settings::flush(&self.node, image, &name.topic);
        replica.throttled = Throttled::of(self.node.identity.broker_id, image, &name.topic, name.partition);
        self.node.log_dirs.impaired.healed(key);
        changes::take_role(&mut replica, row, &self.node, image, &mut self.effects);
        self.replicas.insert(key, replica);
        self.apply_effects(key);
        for damage in &report.log.damaged {
            self.read_failed(key, damage);
        }
        self.turn_to_leader(key, row);
    }

    fn cannot_open(
        &mut self,
        key: PartitionKey,
        name: &TopicPartition,
        directory: usize,
        waiting: Option<&(usize, Arc<PartitionReplay>)>,
        error: &OpenError,
    ) -> Declined {
        match (error.verdict(waiting.is_some()), waiting) {
            (OpenVerdict::Retry, _) => {
                if let OpenError::Storage(error) = error {
                    self.node.log_dirs.directories[directory].room.hit(error, self.node.clock.monotonic());
                }
                return Declined::Storage;
            }
            (OpenVerdict::DirectoryFailed, _) => {
                self.node.directory_failed(directory, error);
                self.directory_failed(directory);
                return Declined::Storage;
            }
            (OpenVerdict::Quarantine, Some((directory, replay))) => {
                if let Err(declined) = self.abandon_waiting(*directory, key, replay, error) {
                    return declined;
                }
            }
            (OpenVerdict::Quarantine | OpenVerdict::Offline, _) => {
                let instead = abandon::advice(&self.node, directory, name, key.topic);
                tracing::error!(
                    partition = %name, %error,
                    "partition cannot be opened and stays offline until the next start. Mend what the \
                     error names and restart; or {instead}"
                );
            }
        }
        if error.is_damage() {
            self.node.workers.meter.damage_found.one();
        }
        self.stays_offline(key);
        Declined::Storage
    }

    /// A partition is an offline replica until the next start. Why is logged already.
    pub fn stays_offline(&mut self, key: PartitionKey) {
        self.node.workers.meter.partitions_failed.one();
        self.failed.insert(key);
        self.node.log_dirs.impaired.offline(key);
    }

    /// What is unusual is logged. Offsets that no segment holds stay known, so that the next start does not say so
    /// again.
    fn log_opened(&self, replica: &Replica, report: &OpenReport) {
        let (name, log, opened) = (&replica.name.topic_partition, &replica.log, &report.log);
        let dir = log.place().dir();
        if report.took_in {
            tracing::info!(partition = %name, end = %log.end(), "restored record batches that an earlier \
                start had set aside");
        }
        for file in &opened.disbelieved {
            tracing::warn!(partition = %name, "{} does not match its segment; it was rebuilt from the \
                segment", file.display());
        }
        for (from, to) in &opened.gaps {
            tracing::warn!(
                partition = %name,
                "no segment in {} holds offsets {from} up to {to}: it was deleted by another broker or \
                 lost. The other records are served",
                dir.display()
            );
        }
        if let Err(error) =
            note_gaps(log, opened, &mut self.node.log_dirs.directories[replica.directory].lock())
        {
            tracing::warn!(partition = %name, %error, "the gap could not be recorded; the next start may \
                refuse to open the partition");
        }
        if let Some(cut) = &opened.cut {
            let (file, bytes, end) = (cut.file.display(), cut.bytes, cut.end);
            tracing::info!(partition = %name, "truncated {bytes} unsynced bytes from {file}, which now \
                ends at {end}: {}", cut.why);
        }
    }

    /// What is known of the log at its place.
    fn opening<'a>(
        &mut self,
        key: PartitionKey,
        name: TopicPartition,
        place: Place,
        unreplayed: Option<&'a PartitionReplay>,
    ) -> Opening<'a> {
        let index = place.directory();
        let directory = &self.node.log_dirs.directories[index];
        let checkpointed = match place {
            Place::Found(_) => Some(Checkpointed::read(&mut directory.lock(), &name, key.topic)),
            Place::New(_) => None,
        };
        let config = topic_settings::log_config(&self.node, &self.node.cluster.image.load(), &name.topic);
        let root = directory.path.clone();
        let place = LogPlace { root, topic_partition: name, topic_id: key.topic, future: None };
        let producers_max = self.node.cluster.config.load().long("producer.ids.per.partition.max");
        let producers_max = u32::try_from(producers_max).unwrap_or(u32::MAX);
        self.opened += 1;
        Opening {
            key,
            number: self.opened,
            directory: index,
            place,
            config,
            checkpointed,
            producers_max,
            unreplayed,
            has_other_replicas: self.has_other_replicas(key),
            now: self.node.clock.wall(),
        }
    }
}
