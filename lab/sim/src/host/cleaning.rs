//! Compaction: the real cleaner, one piece of work at a time, while the log goes on beside it.
//!
//! As shell/broker's upkeep/cleaner.rs (which log is cleaned, and what became of it) and
//! worker/partition_worker/upkeep/clean.rs (what the log's owner answers). A crash comes between any two steps here; in
//! the midst of one a rename, a write or a sync of the disk fails, or the cleaner stops.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{DurationMs, Map, MonotonicMs, Offset, ProducerId, TopicPartition};
use barnabas_partition::ReplicaKey;
use barnabas_storage::cleaner::{CleanError, Cleaning, LastRecord, MapMemory, Replaced, Replacement};
use barnabas_storage::{CleanBounds, CompactionDebt, Disk, StorageError};
use std::collections::{BTreeMap, BTreeSet};

use super::{Failure, HostTime, News, ReplicaHost, moment};
use crate::counts::Fault;
use crate::mistake::Mistake;

/// After an error that may pass, a log is left alone this long.
const REST: DurationMs = DurationMs(60);

/// How the topics of a day are compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacting {
    /// `cleanup.policy=compact,delete`
    pub deletes: bool,
    /// `delete.retention.ms`
    pub delete_retention: DurationMs,
    /// `min.compaction.lag.ms`
    pub min_lag: DurationMs,
    /// `max.compaction.lag.ms`
    pub max_lag: DurationMs,
}

#[derive(Debug, Default)]
pub(super) struct Cleaner {
    job: Option<Job>,
    rests: BTreeMap<ReplicaKey, MonotonicMs>,
    /// Until the next start.
    uncleanable: BTreeSet<ReplicaKey>,
}

#[derive(Debug)]
struct Job {
    key: ReplicaKey,
    name: TopicPartition,
    dir: PathBuf,
    bound: Offset,
    cleaning: Cleaning,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Write,
    Swap(Box<Replacement>),
    Finish,
}

impl ReplicaHost {
    /// One piece of the cleaner's work.
    pub(super) fn clean_some(&mut self, time: &mut HostTime<'_>) {
        let done = match self.cleaner.job.take() {
            None => self.begin_cleaning(time),
            Some(job) => {
                let key = job.key;
                match job.next {
                    Next::Write => self.write_group(job, time),
                    Next::Swap(_) => self.swap_group(job, time),
                    Next::Finish => self.finish_cleaning(&job),
                }
                .map_err(|error| (key, error))
            }
        };
        if let Err((key, error)) = done {
            self.cleaning_failed(key, error, time.now);
        }
    }

    /// The dirtiest log that is due.
    fn dirtiest(&mut self, time: &HostTime<'_>) -> Option<(ReplicaKey, CompactionDebt)> {
        let mut found: Option<(ReplicaKey, CompactionDebt)> = None;
        for key in self.replicas.keys().copied().collect::<Vec<_>>() {
            let rests = self.cleaner.rests.get(&key).is_some_and(|until| *until > time.now);
            if rests || self.cleaner.uncleanable.contains(&key) {
                continue;
            }
            let Some(debt) = self.debt(key, time) else { continue };
            let min =
                self.replica(key).map_or(1.0, |replica| replica.log.config().compaction.min_dirty_ratio);
            let is_due = debt.is_overdue && debt.dirty_bytes > 0 || debt.dirty_ratio() > min;
            if is_due && found.is_none_or(|(_, known)| known.dirty_ratio() < debt.dirty_ratio()) {
                found = Some((key, debt));
            }
        }
        found
    }

    fn debt(&mut self, key: ReplicaKey, time: &HostTime<'_>) -> Option<CompactionDebt> {
        let Self { replicas, files, dirs, .. } = self;
        let replica = &mut replicas.get_mut(&key)?.replica;
        let (files, dir) = (&mut files[replica.directory], &dirs[replica.directory]);
        if !replica.log.config().cleanup.compact || replica.partition.is_failed() {
            return None;
        }
        let last_stable = match time.is(Mistake::CleansTheUnstable) {
            true => replica.log.end(),
            false => replica.partition.last_stable(),
        };
        let bounds =
            CleanBounds { clean_to: dir.cleaner_point(&replica.log.place().topic_partition), last_stable };
        match replica.log.compaction_debt(files, bounds, moment(time.now).wall) {
            Ok(debt) => Some(debt),
            Err(error) => {
                self.upkeep_failed(key, error);
                None
            }
        }
    }

    fn begin_cleaning(&mut self, time: &mut HostTime<'_>) -> Result<(), (ReplicaKey, CleanError)> {
        let Some((key, debt)) = self.dirtiest(time) else { return Ok(()) };
        let begun = self.begin_with(key, debt, time).map_err(|error| (key, error))?;
        self.cleaner.job = begun;
        Ok(())
    }

    fn begin_with(
        &mut self,
        key: ReplicaKey,
        debt: CompactionDebt,
        time: &mut HostTime<'_>,
    ) -> Result<Option<Job>, CleanError> {
        let Self { replicas, files, .. } = self;
        let Some(hosted) = replicas.get_mut(&key) else { return Ok(None) };
        let replica = &mut hosted.replica;
        let at = replica.directory;
        let files = &mut files[at];
        let begun = replica.log.log_to_clean(files, &debt);
        let last_records = last_records(&replica.partition);
        let begun = begun.and_then(|log| Ok((log, replica.checkpoint(files)?)));
        let (log, checkpoint) = match begun {
            Ok((Some(log), checkpoint)) => (log, checkpoint),
            Ok((None, _)) => return Ok(None),
            Err(error) => {
                self.upkeep_failed(key, error);
                return Err(CleanError::Stopped);
            }
        };
        let mut log = log;
        if time.is(Mistake::ForgetsTheAborted) {
            log.aborted.clear();
        }
        let needed = (debt.clean_bytes + debt.dirty_bytes).min(u64::from(log.config.segment_bytes));
        if self.disk.space(&log.dir)?.free < needed {
            return Err(CleanError::Storage(StorageError::Full(log.dir)));
        }
        let (name, dir, bound) = (log.name.clone(), log.dir.clone(), log.first_uncleanable);
        if self.dirs[at].recovery_point(&name) < bound && !time.is(Mistake::CleansUncheckpointed) {
            self.note_checkpoint(at, &name, checkpoint);
            self.dirs[at].set_journal(self.journals[at].life());
            self.dirs[at].write_checkpoints().map_err(CleanError::Storage)?;
            if self.dirs[at].recovery_point(&name) < bound {
                return Err(CleanError::Stopped);
            }
        }
        let memory = MapMemory {
            bytes: if time.random.one_in(4) { 24 * 8 } else { 1 << 14 },
            load_factor: 0.9,
            seed: [time.random.draw(), time.random.draw()],
        };
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let now = moment(time.now).wall;
        let cleaning = Cleaning::begin(disk, log, last_records, memory, now, &mut pace(time))?;
        Ok(Some(Job { key, name, dir, bound, cleaning, next: Next::Write }))
    }

    fn write_group(&mut self, mut job: Job, time: &mut HostTime<'_>) -> Result<(), CleanError> {
        job.next = match job.cleaning.next_group(&mut pace(time)) {
            Ok(Some(replacement)) => Next::Swap(Box::new(replacement)),
            Ok(None) => Next::Finish,
            Err(error) => {
                if error == CleanError::Stopped {
                    time.faults.note(Fault::StoppedCleaning);
                }
                return Err(error);
            }
        };
        self.cleaner.job = Some(job);
        Ok(())
    }

    fn swap_group(&mut self, mut job: Job, time: &mut HostTime<'_>) -> Result<(), CleanError> {
        let Next::Swap(replacement) = std::mem::replace(&mut job.next, Next::Write) else { return Ok(()) };
        let (key, bound) = (job.key, job.bound);
        let before = self.log(key);
        let Self { replicas, files, .. } = self;
        let replaced = match replicas.get_mut(&key) {
            Some(hosted) => {
                let files = &mut files[hosted.replica.directory];
                hosted.replica.log.replace_segments(files, &replacement, moment(time.now).wall)
            }
            None => Ok(Replaced::Stale),
        };
        match replaced {
            Ok(Replaced::Done(delete)) => {
                self.deletions.extend(delete.files.into_iter().map(|file| (delete.due, file)));
                self.sync_now(key);
                let after = self.log(key);
                let read = self.read_all_committed(key);
                self.news.push_back(News::Compacted { key, before, after, bound, read });
                self.cleaner.job = Some(job);
                Ok(())
            }
            Ok(Replaced::Stale) => {
                job.cleaning.give_up()?;
                Err(CleanError::Stopped)
            }
            Err(error) => {
                self.upkeep_failed(key, error.clone());
                job.cleaning.give_up()?;
                Err(CleanError::Storage(error))
            }
        }
    }

    /// Once the names of the new segments are durable, the checkpoint says how far the log is clean.
    fn finish_cleaning(&mut self, job: &Job) -> Result<(), CleanError> {
        self.disk.sync_dir(&job.dir)?;
        // A partition that has left keeps no entry.
        let Some(at) = self.replica(job.key).map(|replica| replica.directory) else { return Ok(()) };
        if self.disk.stat(&job.dir)?.is_none() || !job.dir.starts_with(&**self.dirs[at].path()) {
            return Ok(());
        }
        self.dirs[at].set_cleaner_point(job.name.clone(), Some(job.cleaning.end()));
        self.dirs[at].write_checkpoints().map_err(CleanError::Storage)
    }

    fn cleaning_failed(&mut self, key: ReplicaKey, error: CleanError, now: MonotonicMs) {
        match error {
            CleanError::Stopped | CleanError::Gone(_) => self.rest(key, now),
            CleanError::Storage(error) if error.is_passing() => {
                self.room_is_short = true;
                self.rest(key, now);
            }
            CleanError::Storage(StorageError::Failed(_)) => self.rest(key, now),
            CleanError::Storage(error @ StorageError::Disk(_)) => self.fail(Failure::from(error)),
            error => {
                if let CleanError::Storage(StorageError::Damaged { offset, .. }) = error {
                    self.news.push_back(News::Damaged(key, offset));
                }
                self.cleaner.uncleanable.insert(key);
            }
        }
    }

    fn rest(&mut self, key: ReplicaKey, now: MonotonicMs) {
        self.cleaner.rests.insert(key, now.plus(REST));
    }

    /// As shell/broker's partition_worker/upkeep.rs.
    fn upkeep_failed(&mut self, key: ReplicaKey, error: StorageError) {
        match error {
            error if error.is_passing() => self.room_is_short = true,
            StorageError::Damaged { offset, .. } => self.news.push_back(News::Damaged(key, offset)),
            error @ (StorageError::Disk(_) | StorageError::Failed(_)) => self.fail(Failure::from(error)),
            _ => {}
        }
    }

    /// Whether the repair of a replica may take a gap in its leader's offsets for a hole of compaction.
    pub fn has_no_holes(&self, key: ReplicaKey) -> bool {
        self.replica(key).is_none_or(|replica| {
            let log = &replica.log;
            !log.config().cleanup.compact
                && self.dirs[replica.directory].cleaner_point(&log.place().topic_partition).is_none()
        })
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

/// The cleaner stops early now and then.
fn pace(time: &mut HostTime<'_>) -> impl FnMut(usize) -> ControlFlow<()> + use<> {
    let mut left = if time.random.one_in(12) { time.random.below(3000) } else { usize::MAX };
    move |bytes| {
        left = left.saturating_sub(bytes);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
