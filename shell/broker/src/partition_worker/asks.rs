//! Small questions: offsets by time, ends of epochs, deletion of records, producers, sizes.

use super::PartitionWorker;
use crate::mailbox::{AskCommand, AskItem, AskOutcome, Declined, Question, Said, Search, Searched, Verified};
use crate::node::Node;
use crate::replica::Replica;
use crate::scrub::name_damage;
use crate::unpacking::Spare;
use barnabas_api::k02_list_offsets::Bounds;
use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_partition::{Isolation, Refusal};
use barnabas_replica::producer_entry;
use barnabas_storage::{FilePool, StorageError, TimedBatch};
use barnabas_wire::records::{BatchError, BatchHeader, TimestampType};
use std::time::Instant;

impl PartitionWorker {
    pub(super) fn ask(&mut self, command: AskCommand) {
        let said =
            command.items.iter().map(|item| AskOutcome { slot: item.slot, result: self.ask_one(item) });
        let mut outcomes: Vec<AskOutcome> = said.collect();
        self.keep_log_starts(&command.items, &mut outcomes);
        // A connection that is gone does not hear its answer.
        let _ = command.reply.send(outcomes);
    }

    /// Deleted records stay deleted whatever happens next: their new log starts are on disk before they are answered. (Kafka
    /// writes them once a minute, and a crash in between brings the records back.)
    fn keep_log_starts(&self, items: &[AskItem], outcomes: &mut [AskOutcome]) {
        let mut touched: Vec<(usize, usize)> = Vec::new();
        for (place, (item, outcome)) in items.iter().zip(outcomes.iter()).enumerate() {
            let Ok(Said::LogStart(start)) = outcome.result else { continue };
            let Some(replica) = self.replicas.get(&item.partition) else { continue };
            let mut log_dir = self.node.directories[replica.directory].lock();
            // Under the lock, as a deletion of the topic forgets its entries under it too.
            if self.node.image.load().topics.by_id(item.partition.topic).is_some() {
                log_dir.set_log_start(replica.log.place().topic_partition.clone(), Some(start));
                touched.push((replica.directory, place));
            }
        }
        for directory in 0..self.node.directories.len() {
            let mut places =
                touched.iter().filter(|entry| entry.0 == directory).map(|entry| entry.1).peekable();
            if places.peek().is_none() {
                continue;
            }
            let written = self.node.directories[directory].lock().write_checkpoints();
            if let Err(error) = written {
                tracing::error!(
                    %error,
                    "records that were to be deleted may come back with the next start: their deletion could not be written down. \
                     It was refused, and may be asked for again"
                );
                places.for_each(|place| outcomes[place].result = Err(Declined::Storage));
            }
        }
    }

    fn ask_one(&mut self, item: &AskItem) -> Result<Said, Declined> {
        self.open(item.partition)?;
        if matches!(item.question, Question::DeleteRecords(_)) {
            // So that the log's start never lies in what is in memory alone.
            self.lay_all(item.partition).map_err(|error| failed(&self.node, &error))?;
        }
        let Self { replicas, files, effects, node, .. } = self;
        let replica = replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let files = &mut files[replica.directory];
        let said = match item.question {
            Question::List { isolation, search, from_any } => {
                let bounds = list_bounds(replica, isolation, item.leader_epoch, from_any)?;
                Said::Listed { bounds, found: find(node, replica, files, search)? }
            }
            Question::TimedBatch(search) => {
                Said::TimedBatch(timed_batch(replica, files, search).map_err(|error| failed(node, &error))?)
            }
            Question::EpochEnd(epoch) => {
                replica.partition.check_leader(item.leader_epoch)?;
                let (leader_epoch, end) = replica.log.epochs().end_offset_for(epoch, replica.log.end());
                Said::EpochEnd { leader_epoch, end }
            }
            Question::DeleteRecords(up_to) => {
                let start = replica.partition.delete_records(up_to, &mut effects.decisions)?;
                replica.upkeep.is_changed = true;
                // Followers hear of it with the next answer.
                replica.follower_waiters.wake_all();
                Said::LogStart(start)
            }
            Question::Ends => Said::Ends {
                high_watermark: replica.partition.high_watermark(),
                last_stable: replica.partition.last_stable(),
                log_start: replica.partition.log_start(),
            },
            Question::TimeAt(at) => Said::TimeAt(time_at(node, replica, files, at)?),
            Question::LowWatermark => Said::LowWatermark(replica.partition.low_watermark()?),
            Question::Guard { producer_id, epoch, starts_at_zero } => {
                let guard = replica.partition.guard(producer_id, epoch, starts_at_zero)?;
                Said::Guard(guard.map(|guard| Verified { replica: replica.number, guard }))
            }
            Question::Producers => {
                Said::Producers(replica.partition.producers().into_iter().map(producer_entry).collect())
            }
        };
        self.apply_effects(item.partition);
        Ok(said)
    }
}

fn list_bounds(
    replica: &Replica,
    isolation: Isolation,
    leader_epoch: Option<LeaderEpoch>,
    from_any: bool,
) -> Result<Bounds, Declined> {
    let bounds = match from_any {
        true => replica.partition.replica_bounds(isolation, leader_epoch)?,
        false => replica.partition.bounds(isolation, leader_epoch)?,
    };
    let lags = replica.partition.list_bounds(isolation, leader_epoch) == Err(Refusal::OffsetNotAvailable);
    let epochs = replica.log.epochs();
    Ok(Bounds {
        readable_end: bounds.end,
        leader_epoch: epochs.latest().map_or(replica.partition.leader_epoch(), |entry| entry.epoch),
        log_start: bounds.log_start,
        log_start_epoch: epochs.epoch_at(bounds.log_start),
        high_watermark_lags: lags,
    })
}

/// Looks into the batches that may hold it, as long as that takes the worker no longer than it may.
fn find(
    node: &Node,
    replica: &mut Replica,
    files: &mut FilePool,
    mut search: Search,
) -> Result<Searched, Declined> {
    loop {
        let batch = timed_batch(replica, files, search).map_err(|error| failed(node, &error))?;
        let Some(batch) = batch else { return Ok(Searched::Nothing) };
        let began = Instant::now();
        let bytes_max = Spare::at_once(began).read_bytes_max;
        if batch.size_bytes() > bytes_max {
            return Ok(Searched::Later);
        }
        let looked = batch.look(bytes_max);
        Spare::spent(began.elapsed());
        match looked {
            Ok(Some(found)) => return Ok(Searched::Found(found)),
            Ok(None) => {}
            Err(BatchError::TooLarge { .. }) => return Ok(Searched::Later),
            // As it was produced: nothing is damaged.
            Err(_) => return Err(Declined::Damaged),
        }
        let (time, from) = batch.next();
        search = Search::ByTime(time, from);
    }
}

fn timed_batch(
    replica: &mut Replica,
    files: &mut FilePool,
    search: Search,
) -> Result<Option<TimedBatch>, StorageError> {
    match search {
        Search::Nothing => Ok(None),
        Search::ByTime(time, from) => {
            replica.log.batch_for_timestamp(files, time, from.max(replica.log.start()))
        }
        Search::MaxTime => replica.log.batch_of_max_timestamp(files),
    }
}

/// The time of the batch that holds `at`, or of the next one where compaction has taken that out: its header is all that is looked at, but for
/// batches of before format 2, which say no time here.
fn time_at(
    node: &Node,
    replica: &mut Replica,
    files: &mut FilePool,
    at: Offset,
) -> Result<Option<TimestampMs>, Declined> {
    let at = at.max(replica.log.start());
    if at >= replica.log.end() {
        return Ok(None);
    }
    let mut found = None;
    let scanned =
        replica.log.scan_headers(files, at, at.plus(1), &mut |batch| found = found.or(time_of(&batch)));
    scanned.map_err(|error| failed(node, &error))?;
    if found.is_none() {
        let end = replica.log.end();
        let next = replica.log.read(files, at, 0, end, true).map_err(|error| failed(node, &error))?;
        found = time_of(&next.records);
    }
    Ok(found)
}

/// When a batch's first record was written, or the batch, where the broker dates it.
fn time_of(batch: &[u8]) -> Option<TimestampMs> {
    let header = BatchHeader::parse(batch).ok()?;
    let is_dated_by_records = header.attributes.timestamp_type() == TimestampType::CreateTime;
    // The first timestamp of a compacted batch may be the time at which its tombstones go (KIP-534).
    let time = match is_dated_by_records && !header.attributes.has_delete_horizon() {
        true => header.base_timestamp,
        false => header.max_timestamp,
    };
    (time.0 >= 0).then_some(time)
}

fn failed(node: &Node, error: &StorageError) -> Declined {
    name_damage(node, error);
    Declined::Storage
}
