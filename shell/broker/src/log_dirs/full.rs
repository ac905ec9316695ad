//! How much may still be written in each log directory: asked of the file system now and then, counted in between.
//!
//! core/storage's `room.rs` turns the figures into a level. They are gathered here, so that a batch costs two
//! additions. The file system is asked once a second, ten times a second while producers are refused, and at once
//! when the bytes admitted since the last answer have used up its allowance. Two directories on one file system see
//! the same figures.
//!
//! A write can fail for reasons that the file system does not report (a quota, no more inodes, another process's
//! files between two looks). Then [`Room::hit`] refuses every writer to the directory, and a second later the next
//! one tries.
//!
//! Where producers are refused here, others lead, if there are any; where nothing can be written, they do not wait for
//! this broker either ([`Room::impairs`], node/log_dirs/impaired_partitions.rs).
//!
//! Always true:
//! 1. bytes that were let in count as used until [`Room::settle`], whether they lie in memory, in the journal or in a
//!    write that is under way
//! 2. the file system's figures count in the order in which they were read. A thread that read them while the directory
//!    was full and was then held up cannot shut a directory that another thread has since opened
//! 3. a write that failed while the figures were short does not shut the directory once they show room again

use barnabas_base::MonotonicMs;
use barnabas_metadata::config::BrokerConfig;
use barnabas_storage::{Disk, Level, StorageError, Watermarks, Writer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub const MIN_FREE: &str = "log.dir.min.free.bytes";
/// Between two questions to the file system.
const LOOK_MS: u64 = 1_000;
/// The same while producers are refused.
const LOOK_WHILE_SHORT_MS: u64 = 100;
/// How long a directory is shut after a write found it full.
const SHUT_MS: u64 = 1_000;
/// So long after producers are let in again, a write that found no room counts as one that began before: the figures
/// were short then.
const LATE_MS: u64 = 1_000;
/// A directory says at most so often as an ERROR that it is short of room, and at most so often that it is so again.
const SAY_MS: u64 = 60_000;
const SAY_AGAIN_MS: u64 = 10_000;
/// How long the directory must have had room before this broker may lead again: longer if a write found no room that
/// the figures showed, since the figures do not show the end of that.
const LEAD_AFTER_MS: u64 = 10_000;
const LEAD_AFTER_HIT_MS: u64 = 60_000;
/// So long after a write found no room others do not wait for what lies here: it comes into no ISR.
const FULL_AFTER_HIT_MS: u64 = 10_000;

/// What a directory's want of room keeps this broker from, from nothing to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impairs {
    Nothing,
    /// Others are to lead what lies here.
    Leading,
    /// Nor are they to wait for it: nothing can be written.
    Writing,
}

/// Which line says that a directory is short of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    First,
    /// Soon after the first.
    Again,
}

/// One log directory's room. Shared by all workers.
#[derive(Debug)]
pub struct Room {
    disk: Arc<dyn Disk>,
    path: Arc<Path>,
    /// `log.dir.min.free.bytes`; negative: our own choice.
    wanted: AtomicI64,
    level: AtomicU8,
    /// Bytes that may be let in before the file system is asked again.
    left: AtomicI64,
    /// Let in, and not in the file system's own count yet.
    uncounted: AtomicI64,
    next_look_ms: AtomicU64,
    shut_until_ms: AtomicU64,
    say_from_ms: AtomicU64,
    say_again_from_ms: AtomicU64,
    say_exhausted_from_ms: AtomicU64,
    /// The operator was told that it is short.
    was_said: AtomicU8,
    /// Until when others are to lead what lies here.
    impairs_until_ms: AtomicU64,
    /// Until when others are not to wait for what lies here.
    full_until_ms: AtomicU64,
    /// What the controller was told last.
    impairs_was_told: AtomicU8,
    /// Held while the figures are read and taken: invariant 2.
    looking: Mutex<()>,
    /// Until when a write that found no room counts as late: invariant 3.
    late_until_ms: AtomicU64,
    /// The last write that found no room did so although the figures showed some.
    is_unseen: AtomicBool,
}

impl Room {
    pub fn new(disk: Arc<dyn Disk>, path: Arc<Path>) -> Self {
        Self {
            disk,
            path,
            wanted: AtomicI64::new(-1),
            level: AtomicU8::new(Level::Open as u8),
            left: AtomicI64::new(0),
            uncounted: AtomicI64::new(0),
            next_look_ms: AtomicU64::new(0),
            shut_until_ms: AtomicU64::new(0),
            say_from_ms: AtomicU64::new(0),
            say_again_from_ms: AtomicU64::new(0),
            say_exhausted_from_ms: AtomicU64::new(0),
            was_said: AtomicU8::new(0),
            impairs_until_ms: AtomicU64::new(0),
            full_until_ms: AtomicU64::new(0),
            impairs_was_told: AtomicU8::new(Impairs::Nothing as u8),
            looking: Mutex::new(()),
            late_until_ms: AtomicU64::new(0),
            is_unseen: AtomicBool::new(false),
        }
    }

    /// Whether `writer` may write `bytes` now. They count as used from then on.
    pub fn admit(&self, bytes: usize, writer: Writer, now: MonotonicMs) -> bool {
        let bytes = signed(bytes as u64);
        self.look_if(now, bytes, || {
            let lacks = self.left.load(Ordering::Relaxed) < bytes && self.level() == Level::Open;
            lacks || self.is_due(now)
        });
        let level = self.level();
        let fits = level > Level::Open || self.left.load(Ordering::Relaxed) >= bytes;
        if !fits || !level.admits(writer) {
            return false;
        }
        self.left.fetch_sub(bytes, Ordering::Relaxed);
        self.uncounted.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Bytes that an earlier process let in, and that are in the journal alone.
    pub fn count(&self, bytes: u64) {
        self.uncounted.fetch_add(signed(bytes), Ordering::Relaxed);
    }

    /// Bytes that were let in are in files now, or will never be written.
    pub fn settle(&self, bytes: u64) {
        self.uncounted.fetch_sub(signed(bytes), Ordering::Relaxed);
    }

    /// A write found the disk full, whatever the figures say. If the process or the system lacked a descriptor or
    /// memory, no producer is refused: open partitions continue.
    pub fn hit(&self, error: &StorageError, now: MonotonicMs) {
        if let StorageError::Exhausted(_) = error {
            return self.say_exhausted(error, now);
        }
        let _one = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let shows_room = self.shows_room();
        let is_late = match self.level() {
            Level::Open => now.0 < self.late_until_ms.load(Ordering::Relaxed),
            // The figures were short, and have not been read since there was room.
            Level::Low | Level::Full => !self.is_unseen.load(Ordering::Relaxed),
        };
        if shows_room && is_late {
            let path = self.path.display();
            tracing::debug!(%error, "{path}: a write that began before there was room again failed");
            return;
        }
        self.is_unseen.store(shows_room, Ordering::Relaxed);
        self.shut_until_ms.store(now.0 + SHUT_MS, Ordering::Relaxed);
        self.next_look_ms.store(now.0 + SHUT_MS, Ordering::Relaxed);
        self.impairs_until_ms.fetch_max(now.0 + LEAD_AFTER_HIT_MS, Ordering::Relaxed);
        self.full_until_ms.fetch_max(now.0 + FULL_AFTER_HIT_MS, Ordering::Relaxed);
        self.become_level(Level::Full, now, || error.to_string());
    }

    /// Whether the figures alone would let producers in.
    fn shows_room(&self) -> bool {
        let Ok(space) = self.disk.space(&self.path) else { return false };
        let uncounted = self.uncounted.load(Ordering::Relaxed).max(0) as u64;
        self.watermarks(space.total).level(space, uncounted, Level::Full) == Level::Open
    }

    fn say_exhausted(&self, error: &StorageError, now: MonotonicMs) {
        let due = self.say_exhausted_from_ms.load(Ordering::Relaxed);
        if now.0 >= due {
            self.say_exhausted_from_ms.store(now.0 + SAY_MS, Ordering::Relaxed);
            let path = self.path.display();
            tracing::warn!("{path}: produce requests are refused with a retriable error: {error}");
        }
    }

    /// Whether a copy may write `bytes` more: asked of the file system each time, as it is written at once.
    pub fn admits_copy(&self, bytes: u64) -> bool {
        let uncounted = self.uncounted.load(Ordering::Relaxed).max(0) as u64;
        // A file system that cannot be asked refuses the write itself.
        let Ok(space) = self.disk.space(&self.path) else { return true };
        self.watermarks(space.total).admits_copy(space, uncounted, bytes)
    }

    fn watermarks(&self, total: u64) -> Watermarks {
        Watermarks::of(total, u64::try_from(self.wanted.load(Ordering::Relaxed)).ok())
    }

    /// Bytes that were let in and are not settled: none once every log is closed.
    pub fn uncounted(&self) -> i64 {
        self.uncounted.load(Ordering::Relaxed)
    }

    /// Whether anybody is refused: what takes room and is out of use goes at once then.
    pub fn is_short(&self) -> bool {
        self.level() > Level::Open
    }

    /// Others are to lead what lies here where producers are refused, or were a short while ago.
    pub fn impairs(&self, now: MonotonicMs) -> Impairs {
        if now.0 < self.full_until_ms.load(Ordering::Relaxed) {
            return Impairs::Writing;
        }
        match self.is_short() || now.0 < self.impairs_until_ms.load(Ordering::Relaxed) {
            true => Impairs::Leading,
            false => Impairs::Nothing,
        }
    }

    /// The same, if it is something else than the controller was told last. It counts as told from now on.
    pub fn take_impairment(&self, now: MonotonicMs) -> Option<Impairs> {
        let impairs = self.impairs(now);
        (self.impairs_was_told.swap(impairs as u8, Ordering::Relaxed) != impairs as u8).then_some(impairs)
    }

    /// Takes the operator's `log.dir.min.free.bytes` over, as the key says it. Returns whether it is another.
    pub fn set_min_free(&self, bytes: i64) -> bool {
        let before = self.wanted.swap(bytes, Ordering::Relaxed);
        // So that it counts at once.
        self.next_look_ms.store(0, Ordering::Relaxed);
        before != bytes
    }

    /// Asks the file system, if the last answer is old enough.
    pub fn look_if_due(&self, now: MonotonicMs) {
        self.look_if(now, 0, || self.is_due(now));
    }

    fn is_due(&self, now: MonotonicMs) -> bool {
        now.0 >= self.next_look_ms.load(Ordering::Relaxed)
    }

    /// Asks the file system where `is_wanted` still holds once no other thread does.
    fn look_if(&self, now: MonotonicMs, wanted_now: i64, is_wanted: impl Fn() -> bool) {
        if !is_wanted() {
            return;
        }
        let _one = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if is_wanted() {
            self.look(now, wanted_now);
        }
    }

    fn look(&self, now: MonotonicMs, wanted_now: i64) {
        // Before the file system is asked: what settles in between counts twice, which only refuses a little early.
        let uncounted = self.uncounted.load(Ordering::Relaxed).max(0) as u64;
        let space = match self.disk.space(&self.path) {
            Ok(space) => space,
            Err(error) => {
                // The next write meets the same error, and decides about the directory.
                tracing::debug!(%error, "free room is not known");
                self.left.store(i64::MAX, Ordering::Relaxed);
                self.next_look_ms.store(now.0 + LOOK_MS, Ordering::Relaxed);
                return;
            }
        };
        let marks = self.watermarks(space.total);
        let allowance = signed(marks.allowance(space, uncounted));
        let mut level = marks.level(space, uncounted, self.level());
        if now.0 < self.shut_until_ms.load(Ordering::Relaxed) {
            level = Level::Full;
        } else if level == Level::Open
            && allowance < wanted_now
            && wanted_now <= signed(marks.resume_at - marks.refuse_below)
        {
            // An ordinary batch does not fit any more. A huge one alone is no reason to refuse the others.
            level = Level::Low;
        }
        self.left.store(allowance, Ordering::Relaxed);
        let pause = if level == Level::Open { LOOK_MS } else { LOOK_WHILE_SHORT_MS };
        self.next_look_ms.store(now.0 + pause, Ordering::Relaxed);
        self.become_level(level, now, || {
            let mib = |bytes: u64| bytes >> 20;
            format!(
                "{} of {} MiB are free, {} MiB must stay so (log.dir.min.free.bytes)",
                mib(space.free),
                mib(space.total),
                mib(marks.refuse_below)
            )
        });
    }

    fn become_level(&self, level: Level, now: MonotonicMs, why: impl FnOnce() -> String) {
        if level > Level::Open {
            self.impairs_until_ms.fetch_max(now.0 + LEAD_AFTER_MS, Ordering::Relaxed);
        }
        let before = level_of(self.level.swap(level as u8, Ordering::Relaxed));
        if (before > Level::Open) == (level > Level::Open) {
            return;
        }
        if level == Level::Open && !self.is_unseen.swap(false, Ordering::Relaxed) {
            self.late_until_ms.store(now.0 + LATE_MS, Ordering::Relaxed);
        }
        let path = self.path.display();
        if level > Level::Open {
            self.say_short(now, why);
        } else if self.was_said.swap(0, Ordering::Relaxed) == 1 {
            tracing::info!("log directory {path} has free space again; produce requests are accepted");
        }
    }

    fn say_short(&self, now: MonotonicMs, why: impl FnOnce() -> String) {
        let Some(line) = self.take_line(now) else { return };
        let path = self.path.display();
        self.was_said.store(1, Ordering::Relaxed);
        match line {
            Shortage::First => tracing::error!(
                "log directory {path} is nearly full; produce requests are refused until there is more free space: {}",
                why()
            ),
            Shortage::Again => tracing::warn!(
                "log directory {path} is nearly full again; produce requests are refused until there is more free \
                 space: {}",
                why()
            ),
        }
    }

    /// Which line a shortage that begins now is worth, if any. It counts as written.
    fn take_line(&self, now: MonotonicMs) -> Option<Shortage> {
        let is_due = |from: &AtomicU64| now.0 >= from.load(Ordering::Relaxed);
        let line = match (is_due(&self.say_from_ms), is_due(&self.say_again_from_ms)) {
            (true, _) => Shortage::First,
            (false, true) => Shortage::Again,
            (false, false) => return None,
        };
        if line == Shortage::First {
            self.say_from_ms.store(now.0 + SAY_MS, Ordering::Relaxed);
        }
        self.say_again_from_ms.store(now.0 + SAY_AGAIN_MS, Ordering::Relaxed);
        Some(line)
    }

    fn level(&self) -> Level {
        level_of(self.level.load(Ordering::Relaxed))
    }
}

/// What the operator asks to be kept free; `None`: our own choice.
pub fn wanted(config: &BrokerConfig) -> Option<u64> {
    u64::try_from(config.long(MIN_FREE)).ok()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn level_of(number: u8) -> Level {
    match number {
        0 => Level::Open,
        1 => Level::Low,
        _ => Level::Full,
    }
}

#[cfg(test)]
mod tests;
