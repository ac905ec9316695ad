//! The end of a round, and what replicas ask for: steps of core/replica are given what they need, and their effects are
//! carried out.
//!
//! Neighbours: core/replica's `append`, which decides; journaled.rs, which talks to the journals; committer.rs.

use crate::mailbox::Synced;
use crate::mailbox::{Declined, PartitionKey};
use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::partition_worker::appends::journaled::Journaled;
use crate::worker::partition_worker::replica_fetcher::Following;
use crate::worker::replica::{Hosted, Replica};
use crate::worker::tickets::Tickets;
use barnabas_base::{Offset, TopicPartition};
use barnabas_partition::Effect as Decision;
use barnabas_replica::{BatchLists, Durability, Effect, FlushStep, LogEvent, Moment, Outbox, Surroundings};
use barnabas_storage::{Dirty, FilePool, StorageError};

impl PartitionWorker {
    /// Writes what this round's commands appended and hands in what must be synced.
    pub fn finish_round(&mut self) {
        self.take_early();
        let moment = self.moment.take();
        if !self.touched.is_empty() {
            self.node.workers.meter.append_rounds.one();
            let now = moment.unwrap_or_else(|| self.now());
            let mut touched = std::mem::take(&mut self.touched);
            for key in touched.drain(..) {
                self.step(key, now, |replica, around| replica.finish_round(around));
            }
            self.touched = touched;
        }
        self.resume_readers();
        self.submit();
    }

    /// One step of a replica, and what it asks for. `None`: the partition is not open.
    pub fn step<R>(
        &mut self,
        key: PartitionKey,
        now: Moment,
        work: impl FnOnce(&mut Replica, &mut Surroundings<'_>) -> R,
    ) -> Option<R> {
        let Self { replicas, files, node, journaled, lists, effects, tickets, following, .. } = self;
        let hosted = replicas.get_mut(&key)?;
        let directory = hosted.directory;
        let files = &mut files[directory];
        let mut around = surroundings(now, (directory, files), journaled, lists, node, effects);
        let done = work(&mut hosted.replica, &mut around);
        carry_out(effects, tickets, node, following, Some(hosted));
        self.carry_out_rest(key);
        Some(done)
    }

    /// Both clocks, now.
    pub fn now(&self) -> Moment {
        let clock = self.node.clock;
        Moment { wall: clock.wall(), monotonic: clock.monotonic() }
    }

    fn flush_later(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        if !replica.is_lazy {
            replica.is_lazy = true;
            self.lazy.push(key);
        }
    }

    /// Hands what is in files and unsynced to the committer, unless something of the partition is there already.
    pub fn sync_now(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let directory = replica.directory;
        if let Some(request) = replica.take_request(self.id) {
            self.submissions[directory].push(request);
        }
    }

    /// Drops a partition, to open it again from its log. Its bytes in files are synced first: a write-back order may
    /// rest on them.
    pub fn drop_replica(&mut self, key: PartitionKey) {
        if self.write_back_all(key).is_err() {
            // What is staged alone would be lost with it. It stays, and refuses everything.
            return;
        }
        let Some(mut replica) = self.replicas.remove(&key) else { return };
        let directory = replica.directory;
        let of = &self.node.log_dirs.directories[directory];
        let sync = |dirty: Dirty| dirty.sync(&*of.disk, of.file_system.as_ref()).map_err(StorageError::from);
        // An open ticket may not be synced yet, and no sync would complete it.
        let noted = match replica.sync.is_in_flight {
            true => replica.log.note_unsynced_again(&mut self.files[directory]),
            false => Ok(()),
        };
        let synced = noted.and_then(|()| replica.log.take_dirty().map_or(Ok(()), sync));
        if let Err(error) = synced {
            self.node.directory_failed(directory, &error);
            self.directory_failed(directory);
        } else if let Some((partition, _)) = replica.journal.write_back.take() {
            self.written_back_otherwise(directory, partition);
        }
    }

    /// Hands in what has waited long enough with `log.ack.durability=written`.
    pub fn flush_lazy(&mut self) {
        let now = self.node.clock.monotonic();
        for key in std::mem::take(&mut self.lazy) {
            let Some(replica) = self.replicas.get_mut(&key) else { continue };
            replica.is_lazy = false;
            match replica.flush_step(now) {
                FlushStep::Nothing => {}
                FlushStep::Sync => self.sync_now(key),
                FlushStep::Later => self.flush_later(key),
            }
        }
        self.submit();
    }

    pub fn submit(&mut self) {
        for (directory, requests) in self.submissions.iter_mut().enumerate() {
            if !requests.is_empty() {
                self.node.log_dirs.directories[directory].committer.submit(requests);
            }
        }
        self.submit_to_journals();
    }

    /// A round of a directory's journal is durable.
    pub fn durable(&mut self, directory: usize, ends: Vec<(PartitionKey, Offset)>) {
        for (key, end) in ends {
            self.leaving.durable(key, directory, end);
            let Self { replicas, effects, tickets, node, following, .. } = self;
            // A partition that was deleted meanwhile has answered its producers.
            let Some(hosted) = replicas.get_mut(&key) else { continue };
            // It has moved meanwhile: the journal of the directory that it left says nothing about its log now.
            if hosted.directory != directory {
                continue;
            }
            hosted.replica.journal_durable(end, effects);
            carry_out(effects, tickets, node, following, Some(hosted));
            self.carry_out_rest(key);
        }
        self.resume_readers();
    }

    /// What the committer has made durable.
    pub fn synced(&mut self, synced: Synced) {
        let now = self.now();
        for (key, ticket, end) in synced.tickets {
            self.step(key, now, |replica, around| replica.synced(ticket, end, around));
        }
        self.resume_readers();
    }

    /// Carries out what a replica asks for.
    pub(crate) fn apply_effects(&mut self, key: PartitionKey) {
        if !self.effects.is_empty() {
            let Self { replicas, tickets, effects, node, following, .. } = self;
            carry_out(effects, tickets, node, following, replicas.get_mut(&key));
            self.carry_out_rest(key);
        }
    }

    /// Carries out what [`carry_out`] has left.
    pub fn carry_out_rest(&mut self, key: PartitionKey) {
        if self.effects.effects.is_empty() {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Sync => self.sync_now(key),
                Effect::FlushLater => self.flush_later(key),
                Effect::WroteToSegment { end, bytes } | Effect::WroteBack { end, bytes } => {
                    self.cache(key, end, bytes);
                }
                Effect::WriteBackDone(order) => {
                    if let Some(replica) = self.replicas.get(&key) {
                        self.written_back_otherwise(replica.directory, order);
                    }
                }
                Effect::DirectoryFailed(error) => {
                    if let Some(replica) = self.replicas.get(&key) {
                        let directory = replica.directory;
                        self.node.directory_failed(directory, &*error);
                        self.directory_failed(directory);
                    }
                }
                Effect::ReadFailed(error) => self.read_failed(key, &error),
                Effect::Reopen => self.drop_replica(key),
                Effect::NotWritten(batch) => self.note_refused([(key, batch)]),
                other => unreachable!("carried out at once: {other:?}"),
            }
        }
        if self.effects.effects.is_empty() {
            self.effects.effects = effects;
        }
    }

    /// Ends the waits whose time has run out.
    pub fn expire(&mut self) {
        let now = self.node.clock.monotonic();
        for key in std::mem::take(&mut self.awaited) {
            let Self { replicas, effects, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.partition.expire(now, &mut effects.decisions);
            replica.is_awaited = replica.partition.waiting() > 0;
            if replica.is_awaited {
                self.awaited.push(key);
            }
            self.apply_effects(key);
        }
    }
}

/// What a step of a replica in this directory needs.
pub fn surroundings<'a>(
    now: Moment,
    (directory, files): (usize, &'a mut FilePool),
    journaled: &'a mut Journaled,
    lists: &'a mut BatchLists,
    node: &Node,
    outbox: &'a mut Outbox,
) -> Surroundings<'a> {
    let durability = Durability {
        acks_are_synced: node.log_dirs.acks_are_synced,
        journal_append_bytes_max: node.log_dirs.journal_append_bytes_max,
    };
    let Journaled { memory, entries, .. } = journaled;
    Surroundings { now, durability, files, memory, entries: &mut entries[directory], lists, outbox }
}

/// Carries out what a replica asks for and needs no other part of the worker; [`PartitionWorker::carry_out_rest`] does
/// what is left. Where the replica is gone, its producers are answered still.
pub fn carry_out(
    outbox: &mut Outbox,
    tickets: &mut Tickets,
    node: &Node,
    following: &mut Following,
    hosted: Option<&mut Hosted>,
) {
    let Some(hosted) = hosted else { return answer_alone(outbox, tickets) };
    hosted.replica.absorb(outbox);
    let directory = &node.log_dirs.directories[hosted.directory];
    outbox.effects.retain(|effect| {
        match effect {
            Effect::Answer { ticket, answer } => tickets.answer(*ticket, *answer),
            Effect::Readable { bytes, committed } => hosted.arrived(*bytes, *committed),
            // The code that caused it handles it (followers.rs).
            Effect::AlterIsr => {}
            Effect::SyncCovers(end) => hosted.extend_request(*end),
            Effect::SyncEnds => hosted.end_request(),
            Effect::Appended { batches } => node.workers.meter.batches_appended.add(*batches as u64),
            Effect::AppendedDirectly => node.workers.meter.direct_appends.one(),
            Effect::Released(bytes) => directory.room.settle(*bytes),
            Effect::NoRoom(error) => directory.room.hit(error, node.clock.monotonic()),
            Effect::WakeReaders => hosted.waiters.wake_all(),
            Effect::FollowOn => following.settle_soon(hosted.partition_key()),
            Effect::Log(event) => log_event(node, &hosted.name.topic_partition, event),
            Effect::WroteToSegment { bytes, .. } => {
                directory.wrote(*bytes);
                return true;
            }
            Effect::WroteBack { bytes, .. } => {
                node.workers.meter.write_backs.one();
                node.workers.meter.written_back_bytes.add(*bytes);
                directory.room.settle(*bytes);
                return true;
            }
            Effect::Sync
            | Effect::FlushLater
            | Effect::WriteBackDone(_)
            | Effect::DirectoryFailed(_)
            | Effect::ReadFailed(_)
            | Effect::NotWritten(_)
            | Effect::Reopen => return true,
        }
        false
    });
}

/// The replica is gone: its producers hear so.
fn answer_alone(outbox: &mut Outbox, tickets: &mut Tickets) {
    for effect in outbox.effects.drain(..) {
        if let Effect::Answer { ticket, answer } = effect {
            tickets.answer(ticket, answer);
        }
    }
    for decision in outbox.decisions.drain(..) {
        if let Decision::Answer { ticket, answer } = decision {
            tickets.answer(ticket, answer.map_err(Declined::Refused));
        }
    }
}

fn log_event(node: &Node, partition: &TopicPartition, event: &LogEvent) {
    if let LogEvent::BatchTooLarge { bytes, segment_bytes } = event {
        tracing::debug!(%partition, bytes, segment_bytes, "batch larger than a segment");
        return;
    }
    let what = match event {
        LogEvent::BatchTooLarge { .. } | LogEvent::BatchesNotWritten(_) => Repeated::BatchesNotWritten,
        LogEvent::SnapshotNotWritten(_) => Repeated::SnapshotNotWritten,
        LogEvent::AbortedNotNoted(_) => Repeated::AbortedNotNoted,
    };
    let Some(unsaid) = node.workers.repeated.happened_to(what, partition.to_string()) else { return };
    match event {
        LogEvent::BatchTooLarge { .. } => {}
        LogEvent::SnapshotNotWritten(error) => {
            tracing::warn!(%partition, %error, "producer snapshot could not be written; the next start \
                reads more of the log{unsaid}");
        }
        LogEvent::AbortedNotNoted(error) => {
            tracing::error!(%partition, %error, "aborted transaction could not be recorded; \
                read_committed consumers may see its records{unsaid}");
        }
        LogEvent::BatchesNotWritten(error) => {
            tracing::error!(%partition, %error, "batches could not be written; their producers received \
                an error{unsaid}");
        }
    }
}
