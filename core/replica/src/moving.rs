//! A move of a replica to another log directory of the same broker, while it is read and written.
//!
//! A move is a second log of the partition, `TOPIC-P.<id>-future`, in the directory that it goes to:
//!
//! | step | who | call | on failure |
//! |---|---|---|---|
//! | begin | the owner | [`Replica::begin_move`] | nothing has changed |
//! | copy, piece by piece | the mover | [`Replica::read_durable_piece`], [`LogCopy::put`] | [`CopyVerdict`] |
//! | catch up | the owner | [`Replica::may_finish_move`], [`Replica::catch_up`] | go on, or drop the copy |
//! | take the name | the owner | [`LogCopy::promote`] | as for catching up; the next start finds the name |
//! | leave | the owner | [`Replica::move_to`], rename the old folder, [`Replica::moved`] | [`Replica::fail`] |
//!
//! Always true:
//! 1. only what is durable is copied before the last three steps, which come in one turn of the owner
//! 2. nothing is acknowledged between the rename of the copy and that of the old folder, so both have everything
//! 3. a replica whose log was truncated since the move began is not moved: the copy is of another log
//! 4. a replica that was never written to has no copy: it begins in the other directory
//!
//! Neighbours: shell/broker/src/upkeep/mover.rs, the thread that copies;
//! shell/broker/src/worker/partition_worker/lifecycle/moves.rs, the owner.
//!
//! Source: KIP-113, KIP-858; Kafka `ReplicaAlterLogDirsThread`, `LogManager.replaceCurrentWithFutureLog`, which renames
//! in the same order.

use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs};
use barnabas_storage::journal::JournalPartition;
use barnabas_storage::{
    AbortedTransaction, AppendBytes, FilePool, Log, LogConfig, LogDir, LogPlace, OpenFrom, StorageError,
};
use bytes::Bytes;

use crate::{Outbox, Replica};

/// Unsynced bytes beyond which a copy is synced: the last step has little left to do.
const UNSYNCED_MAX: u64 = 16 << 20;
/// More than so much is not copied in the last step.
const LAST_BYTES_MAX: usize = 4 << 20;
const LAST_PIECE_BYTES: usize = 1 << 20;

/// How a move begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveBegins {
    /// The replica lies there already.
    There,
    /// Its log is to be copied: so many bytes now.
    ToCopy { bytes: u64 },
    /// Nothing was ever written: the replica is dropped, and begins there.
    Empty,
}

/// A piece of a log.
#[derive(Debug)]
pub struct LogPiece {
    pub records: Bytes,
    /// The first batch's base offset; the log's end where there is none.
    pub from: Offset,
    /// Those whose marker is in `records`.
    pub aborted: Vec<AbortedTransaction>,
    pub log_start: Offset,
    /// Everything below may be copied.
    pub durable_end: Offset,
    pub config: Arc<LogConfig>,
}

/// One copy in the making.
#[derive(Debug)]
pub struct LogCopy {
    pub place: LogPlace,
    pub log: Option<Log>,
    pub files: FilePool,
    /// How far the log was compacted before its first byte was copied; what is compacted meanwhile may be copied as it
    /// was before.
    pub clean_to: Option<Offset>,
    unsynced: u64,
}

/// What a piece did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    Yes,
    /// The log is not what the copy began with: the copy is begun again.
    No,
}

/// What becomes of a move that met an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyVerdict {
    /// It is tried again later.
    Retry,
    /// The directory that it goes to has failed, and the move is over.
    DirectoryFailed,
    /// The copy is dropped and begun again.
    BeginAgain,
    /// The move is over. The partition stays where it is.
    Over,
}

impl CopyVerdict {
    /// `is_resumed`: the copy was found at the start, which may be why it cannot go on.
    pub fn of(error: &StorageError, is_resumed: bool) -> Self {
        match error {
            error if error.is_passing() => Self::Retry,
            StorageError::Disk(_) | StorageError::Failed(_) => Self::DirectoryFailed,
            _ if is_resumed => Self::BeginAgain,
            _ => Self::Over,
        }
    }
}

/// What a replica that moved has left behind.
#[derive(Debug)]
pub struct LeftBehind {
    pub directory: usize,
    /// Bytes that were in memory and in the old journal alone. They are in the new segments.
    pub unwritten_bytes: u64,
    /// The old journal's order to write back, which is done.
    pub order: Option<Arc<JournalPartition>>,
}

impl LogCopy {
    pub fn new(place: LogPlace, files: FilePool) -> Self {
        Self { place, log: None, files, clean_to: None, unsynced: 0 }
    }

    /// Goes on with what an earlier process, which stopped cleanly, has copied.
    ///
    /// # Errors
    /// What is there cannot be gone on with.
    pub fn resume(&mut self, config: Arc<LogConfig>, now: TimestampMs) -> Result<(), StorageError> {
        let from = OpenFrom::default();
        let (log, _) = Log::open(&mut self.files, self.place.clone(), config, from, now)?;
        self.log = log.is_on_disk().then_some(log);
        Ok(())
    }

    pub fn path(&self) -> PathBuf {
        self.place.dir()
    }

    /// Where the next piece begins; `None`: at the log's start.
    pub fn end(&self) -> Option<Offset> {
        self.log.as_ref().map(Log::end)
    }

    /// Whether it has all that was durable when `piece` was read: the owner does the rest.
    pub fn has_caught_up(&self, piece: &LogPiece) -> bool {
        self.end().unwrap_or(piece.log_start) >= piece.durable_end
    }

    /// Appends a piece.
    ///
    /// # Errors
    /// [`StorageError::Full`] leaves the copy as it was.
    pub fn put(&mut self, piece: &LogPiece, now: TimestampMs) -> Result<Fits, StorageError> {
        // A log may start in the middle of its first batch, and in front of it where compaction left a hole.
        let first = piece.from.min(piece.log_start);
        let log = match &mut self.log {
            Some(log) => log,
            empty => empty.insert(Log::create(self.place.clone(), piece.config.clone(), first)),
        };
        if piece.log_start > log.end() && piece.from > log.end() {
            // Retention was faster than the copy.
            let delete = log.truncate_fully_and_start_at(&mut self.files, first, now)?;
            for file in delete.map(|delete| delete.files).unwrap_or_default() {
                self.files.disk().remove_file(&file)?;
            }
        }
        if piece.records.is_empty() {
            log.skip_to(&mut self.files, piece.durable_end, now)?;
        } else {
            if piece.from < log.end() {
                return Ok(Fits::No);
            }
            append(log, &mut self.files, piece, now)?;
            self.unsynced += piece.records.len() as u64;
            for aborted in &piece.aborted {
                log.append_aborted(&mut self.files, *aborted)?;
            }
        }
        log.advance_start(piece.log_start);
        if self.unsynced > UNSYNCED_MAX { self.sync().map(|()| Fits::Yes) } else { Ok(Fits::Yes) }
    }

    /// A log that has become empty since has a file to give a name to all the same.
    pub fn fill_empty(&mut self, piece: &LogPiece) {
        let place = &self.place;
        self.log.get_or_insert_with(|| Log::create(place.clone(), piece.config.clone(), piece.log_start));
    }

    /// Makes what is there durable.
    ///
    /// # Errors
    /// A failed sync is final for the directory.
    pub fn sync(&mut self) -> Result<(), StorageError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        self.unsynced = 0;
        let Some(dirty) = log.take_dirty() else { return Ok(()) };
        dirty.sync(&**self.files.disk(), self.files.file_system())?;
        log.mark_synced(dirty.ticket);
        Ok(())
    }

    /// Closes the copy so that the next start can go on with it.
    ///
    /// # Errors
    /// As for any write.
    pub fn close(&mut self) -> Result<(), StorageError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if let Some(dirty) = log.close(&mut self.files)? {
            dirty.sync(&**self.files.disk(), self.files.file_system())?;
        }
        Ok(())
    }

    /// Closes the files, which are to be removed.
    pub fn abandon(&mut self) {
        if let Some(mut log) = self.log.take() {
            log.abandon(&mut self.files);
        }
    }

    /// Gives the copy the partition's name, durably. `log_dir`: of the directory that it goes to.
    ///
    /// # Errors
    /// With no room nothing has changed. Otherwise the name may have been given.
    pub fn promote(&mut self, log_dir: &mut LogDir, high_watermark: Offset) -> Result<(), StorageError> {
        let (Some(log), Some(unique)) = (&mut self.log, self.place.future) else {
            return Err(StorageError::Failed(self.place.dir()));
        };
        log.abandon_files(&mut self.files);
        let name = &self.place.topic_partition;
        let start = log.start();
        log_dir.set_recovery_point(name.clone(), log.recovery_point());
        log_dir.set_log_start(name.clone(), (start > Offset::ZERO).then_some(start));
        log_dir.set_high_watermark(name.clone(), high_watermark);
        log_dir.set_cleaner_point(name.clone(), self.clean_to);
        if let Err(error) = log_dir.promote_future(name, unique) {
            // With no room it is tried again, or taken back: nothing of it is to be left in the checkpoints.
            log_dir.forget(name);
            return Err(error);
        }
        log.become_current();
        Ok(())
    }
}

impl Replica {
    /// Begins a move. The round is empty.
    pub fn begin_move(&mut self, to: usize) -> MoveBegins {
        if self.directory == to {
            return MoveBegins::There;
        }
        // A truncation that is under way comes after what is copied until then.
        self.was_truncated = self.truncation.is_some();
        match self.log.is_on_disk() || self.log.end() > Offset::ZERO {
            true => MoveBegins::ToCopy { bytes: self.log.size_bytes() },
            false => MoveBegins::Empty,
        }
    }

    /// Whole batches that are durable. `from`: the log's start where it is not known yet.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read_durable_piece(
        &mut self,
        from: Option<Offset>,
        max_bytes: usize,
        has_journal: bool,
        files: &mut FilePool,
    ) -> Result<LogPiece, StorageError> {
        let synced = self.log.recovery_point();
        let durable = if has_journal { synced.max(self.partition.durable_end()) } else { synced };
        self.read_piece(from, max_bytes, durable.min(self.log.end()), files)
    }

    fn read_piece(
        &mut self,
        from: Option<Offset>,
        max_bytes: usize,
        upper: Offset,
        files: &mut FilePool,
    ) -> Result<LogPiece, StorageError> {
        let log_start = self.log.start();
        let from = from.map_or(log_start, |from| from.max(log_start));
        let (mut records, mut aborted) = (Bytes::new(), Vec::new());
        if from < upper {
            let read = self.log.read(files, from, max_bytes, upper, true)?;
            if !read.records.is_empty() {
                aborted = self.log.aborted_transactions(files, from, read.next_offset)?;
                aborted.retain(|each| each.last_offset >= from && each.last_offset < read.next_offset);
            }
            records = read.records;
        }
        // The first eight bytes of a batch are its base offset.
        let base = records.first_chunk::<8>().map(|bytes| Offset(i64::from_be_bytes(*bytes)));
        let config = self.log.config().clone();
        Ok(LogPiece { from: base.unwrap_or(from), records, aborted, log_start, durable_end: upper, config })
    }

    /// Whether the copy may take this log's place.
    pub fn may_finish_move(&self, to: usize) -> bool {
        self.directory != to && !self.was_truncated && self.truncation.is_none()
    }

    /// Copies what is left and syncs it. `false`: it is too much for this step. The round is empty.
    ///
    /// # Errors
    /// Of the copy, or of reading the log.
    pub fn catch_up(
        &mut self,
        copy: &mut LogCopy,
        files: &mut FilePool,
        now: TimestampMs,
    ) -> Result<bool, StorageError> {
        let end = self.log.end();
        let mut left = LAST_BYTES_MAX;
        loop {
            let piece = self.read_piece(copy.end(), LAST_PIECE_BYTES, end, files)?;
            let bytes = piece.records.len();
            if bytes > left || copy.put(&piece, now)? == Fits::No {
                return Ok(false);
            }
            left -= bytes;
            if bytes == 0 {
                break;
            }
        }
        let Some(log) = copy.log.as_mut().filter(|log| log.end() == end) else { return Ok(false) };
        log.adopt_epochs(self.log.epochs().clone());
        // With all of a producer's batches that may be sent again, as in `Replica::snapshot_producers`.
        log.write_producer_snapshot(&mut copy.files, end, &self.producer_entries())?;
        log.checkpoint(&mut copy.files)?;
        copy.sync()?;
        Ok(true)
    }

    /// Goes on in the promoted copy. `files`: of the old directory. The old folder is renamed next; then
    /// [`Replica::moved`] follows, or [`Replica::fail`] where that failed.
    ///
    /// The new journal may know the partition from an earlier stay. A `Range` ends that ([`Replica::note_ranges`]), and
    /// until it is durable appends go straight into the segment.
    pub fn move_to(&mut self, to: usize, log: Log, files: &mut FilePool, outbox: &mut Outbox) -> LeftBehind {
        let directory = std::mem::replace(&mut self.directory, to);
        let mut old = std::mem::replace(&mut self.log, log);
        let unwritten_bytes = old.staged_bytes();
        old.abandon(files);
        self.journal.direct_from = Some(self.log.start());
        self.sync.restart(&mut outbox.effects);
        self.upkeep.snapshot_at = self.log.end();
        self.upkeep.is_changed = true;
        let order = self.journal.write_back.take().map(|(order, _)| order);
        LeftBehind { directory, unwritten_bytes, order }
    }

    /// The old folder has another name: all of the log is synced in the new place.
    pub fn moved(&mut self, outbox: &mut Outbox) {
        let end = self.log.end();
        self.partition.written(end, &mut outbox.decisions);
        self.partition.durable(end, &mut outbox.decisions);
    }
}

/// A batch may be larger than segments are now (`segment.bytes` was lowered since): it gets a segment of its own.
fn append(
    log: &mut Log,
    files: &mut FilePool,
    piece: &LogPiece,
    now: TimestampMs,
) -> Result<(), StorageError> {
    let pieces = [AppendBytes::Whole(piece.records.clone())];
    match log.append(files, &pieces, now) {
        Err(StorageError::TooLargeForSegment { .. }) => {
            log.set_config(Arc::new(LogConfig { segment_bytes: u32::MAX >> 1, ..(*piece.config).clone() }));
            let done = log.append(files, &pieces, now);
            log.set_config(piece.config.clone());
            done.map(|_| ())
        }
        done => done.map(|_| ()),
    }
}
