//! The end of a round: one write for each touched partition, one submission for each directory, and what comes back from
//! the committer.

use super::PartitionWorker;
use crate::committer::Synced;
use crate::mailbox::{Declined, PartitionKey};
use barnabas_partition::Effect;
use barnabas_storage::StorageError;

impl PartitionWorker {
    /// Writes what this round's commands appended and hands in what must be synced.
    pub fn finish_round(&mut self) {
        if !self.touched.is_empty() {
            self.node.meter.append_rounds.one();
            let mut touched = std::mem::take(&mut self.touched);
            for key in touched.drain(..) {
                self.write_round(key);
            }
            self.touched = touched;
        }
        self.resume_readers();
        self.submit();
    }

    fn write_round(&mut self, key: PartitionKey) {
        let now = self.node.clock.wall();
        let Self { replicas, files, effects, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.round.is_empty()) else {
            return;
        };
        let batches = std::mem::take(&mut replica.round);
        let directory = replica.directory;
        let bytes = std::mem::take(&mut replica.round_bytes) as u64;
        let files = &mut files[directory];
        let written = replica.log.append(files, &batches, now);
        node.directories[directory].room.settle(bytes);
        match written {
            Ok(appended) => {
                node.meter.batches_appended.add(batches.len() as u64);
                node.directories[replica.directory].wrote(appended.bytes);
                replica.note_written(&appended, batches.len());
                replica.round_tickets.clear();
                replica.partition.written(appended.end, effects);
                if !node.acks_are_synced {
                    replica.partition.durable(appended.end, effects);
                }
                // The vector is kept: the next round fills it again.
                replica.round = batches;
                replica.round.clear();
                self.apply_effects(key);
                self.want_sync(key);
            }
            Err(error) => self.write_failed(key, &error),
        }
    }

    /// A new segment begins with the next batch: writes what came before it, then what is known of producers there, as Kafka
    /// does, so that every segment has a snapshot at its beginning.
    pub(super) fn close_segment(&mut self, key: PartitionKey) {
        self.write_round(key);
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        if let Err(error) = replica.snapshot_producers(&mut files[replica.directory]) {
            // Only the next start pays for it: it reads further back.
            tracing::warn!(%error, "producer snapshot was not written");
        }
    }

    pub(super) fn want_sync(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let is_awaited = replica.partition.waiting() > 0
            || !replica.waiters.is_empty()
            || replica.reader_waits_for > replica.partition.durable_end();
        let is_urgent = self.node.acks_are_synced && is_awaited;
        if !is_urgent {
            if !replica.is_lazy {
                replica.is_lazy = true;
                self.lazy.push(key);
            }
            return;
        }
        let directory = replica.directory;
        if let Some(request) = replica.take_sync(self.id) {
            self.submissions[directory].push(request);
        }
    }

    /// The round's batches are not in the log: their producers are told, and the partition forgets them.
    fn write_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Self { replicas, tickets, effects, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        for ticket in replica.round_tickets.drain(..) {
            tickets.answer(ticket, Err(Declined::Storage));
        }
        let as_it_was = matches!(
            error,
            StorageError::Full(_)
                | StorageError::OutOfOrder { .. }
                | StorageError::NotBatches(_)
                | StorageError::TooLargeForSegment { .. }
        );
        if as_it_was {
            if matches!(error, StorageError::Full(_)) {
                node.directories[replica.directory].room.hit(error, node.clock.monotonic());
            } else {
                tracing::error!(partition = %replica.log.place().topic_partition, %error, "batches were not written");
            }
            // The state machine has given out offsets that are not in the log. It is dropped with everybody who waits in
            // it (their retries find what was written), and made anew from the log when it is next asked for.
            replica.partition.fail(effects);
            replica.waiters.wake_all();
            self.apply_effects(key);
            self.replicas.remove(&key);
        } else {
            let directory = replica.directory;
            node.directory_failed(directory, error);
            self.directory_failed(directory);
        }
    }

    /// Hands the unsynced bytes of every partition that nobody waits for to the committers.
    pub fn flush_lazy(&mut self) {
        for key in std::mem::take(&mut self.lazy) {
            let Some(replica) = self.replicas.get_mut(&key) else { continue };
            replica.is_lazy = false;
            let directory = replica.directory;
            if let Some(request) = replica.take_sync(self.id) {
                self.submissions[directory].push(request);
            }
        }
        self.submit();
    }

    pub(super) fn submit(&mut self) {
        for (directory, requests) in self.submissions.iter_mut().enumerate() {
            if !requests.is_empty() {
                self.node.directories[directory].committer.submit(requests);
            }
        }
    }

    /// What the committer has made durable.
    pub(super) fn synced(&mut self, synced: Synced) {
        for (key, ticket, end) in synced.tickets {
            let Self { replicas, effects, node, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.sync_in_flight = false;
            replica.covers = None;
            let durable = replica.log.mark_synced_to(ticket, end);
            if node.acks_are_synced {
                replica.partition.durable(durable, effects);
            }
            let is_behind = replica.log.recovery_point() < replica.log.end();
            self.apply_effects(key);
            if is_behind {
                self.want_sync(key);
            }
        }
        self.resume_readers();
    }

    /// Carries out what a partition decided.
    pub(crate) fn apply_effects(&mut self, key: PartitionKey) {
        if self.effects.is_empty() {
            return;
        }
        let Self { replicas, tickets, effects, files, .. } = self;
        let mut replica = replicas.get_mut(&key);
        for effect in effects.drain(..) {
            match effect {
                Effect::Answer { ticket, answer } => {
                    tickets.answer(ticket, answer.map_err(Declined::Refused))
                }
                Effect::HighWatermark(_) | Effect::LastStable(_) => {
                    if let Some(replica) = &mut replica {
                        replica.announce();
                    }
                }
                Effect::LogStart(start) => {
                    if let Some(replica) = &mut replica {
                        replica.log.advance_start(start);
                        replica.changed = true;
                    }
                }
                Effect::Aborted(aborted) => {
                    if let Some(replica) = &mut replica {
                        let files = &mut files[replica.directory];
                        let entry = barnabas_storage::AbortedTransaction {
                            producer_id: aborted.producer_id,
                            first_offset: aborted.first,
                            last_offset: aborted.last,
                            last_stable_offset: aborted.last_stable,
                        };
                        if let Err(error) = replica.log.append_aborted(files, entry) {
                            tracing::error!(%error, "aborted transaction was not noted; its records may be read");
                        }
                    }
                }
            }
        }
    }

    /// Ends the waits whose time has run out.
    pub fn expire(&mut self) {
        let now = self.node.clock.monotonic();
        for key in std::mem::take(&mut self.awaited) {
            let Self { replicas, effects, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.partition.expire(now, effects);
            replica.is_awaited = replica.partition.waiting() > 0;
            if replica.is_awaited {
                self.awaited.push(key);
            }
            self.apply_effects(key);
        }
    }
}
