//! The directory's journal: its rounds are written when they are due, and synced a moment later. A crash in between
//! tears them.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use barnabas_base::{MonotonicMs, Offset};
use barnabas_storage::journal::{
    DurableEnd, Entry, EntryKind, InlineWrites, Journal, JournalConfig, JournalError, JournalPartition,
    Micros, Recovered, Refused, Round, Take, WriteBackTicket, recover, slot_file_name,
};
use barnabas_storage::{Disk, DiskError, DiskFile, LogDir, MemoryDisk, OpenMode};

use super::{Failure, HostTime};
use crate::counts::Fault;
use crate::mistake::Mistake;

/// Entries that wait for a round before appends are held back.
const QUEUE_MAX: usize = 64;

pub(super) const JOURNAL_FILES: usize = 4;

pub(super) fn config(lingers: bool) -> JournalConfig {
    // Where it lingers it is narrow as well.
    let narrows = if lingers { 3 } else { 0 };
    JournalConfig {
        files: JOURNAL_FILES,
        file_bytes: 64 << 10 >> (narrows / 2),
        round_bytes_max: 32 << 10 >> narrows,
        round_bytes_enough: 16 << 10 >> narrows,
        linger_us: if lingers { 1500 } else { 0 },
        append_bytes_max: super::JOURNAL_APPEND_BYTES_MAX as u32,
        write_back_bytes: 2 << 10,
        write_back_bytes_max: 16 << 10,
        staged_bytes_max: 96 << 10 >> narrows,
    }
}

#[derive(Debug, Default)]
pub(super) struct JournalWriter {
    open: Option<Journal>,
    files: Vec<Arc<dyn DiskFile>>,
    pub pending: VecDeque<Entry>,
    /// Large appends whose partition still has something here.
    ranges: Vec<Entry>,
    pub written_back: Vec<Arc<JournalPartition>>,
    /// What is being written back.
    ordered: BTreeMap<Arc<JournalPartition>, WriteBackTicket>,
    /// Written, and synced when its time has come.
    in_flight: Option<(MonotonicMs, Round)>,
    is_failed: bool,
    /// Whether the worker had better write a round itself; `None`: it never does.
    inline: Option<InlineWrites>,
}

impl JournalWriter {
    pub fn is_over(&self) -> bool {
        self.pending.len() > QUEUE_MAX
    }

    pub fn fail(&mut self) {
        self.is_failed = true;
        self.in_flight = None;
        self.pending.clear();
        if let Some(journal) = &mut self.open {
            journal.fail();
            assert!(journal.is_failed(), "it takes nothing more");
        }
    }

    /// The newest life that is durable.
    pub fn life(&self) -> Option<u64> {
        self.open.as_ref().map(Journal::durable_life).filter(|life| *life > 0)
    }

    /// Goes on in the files that were recovered. The first rounds are written before anybody is served.
    pub fn go_on(
        &mut self,
        disk: &MemoryDisk,
        dir: &Path,
        recovered: &Recovered,
        opening: u64,
        now: MonotonicMs,
    ) -> Result<(), JournalError> {
        self.start(disk, dir, recovered, opening)?;
        let Some(journal) = &mut self.open else { return Ok(()) };
        while !journal.is_open()
            && let Take::Write(round) = journal.take_round(micros(now))
        {
            let file = &self.files[round.slot];
            file.write_at(round.position, &[round.bytes()])?;
            file.sync()?;
            journal.round_durable(round, micros(now));
        }
        Ok(())
    }

    fn start(
        &mut self,
        disk: &MemoryDisk,
        dir: &Path,
        recovered: &Recovered,
        opening: u64,
    ) -> Result<(), JournalError> {
        let journal = Journal::open(config(self.inline.is_some()), recovered, opening)?;
        let mut files = Vec::new();
        for slot in 0..journal.files() {
            let path = dir.join(slot_file_name(slot));
            files.push(make(disk, &path, u64::from(journal.file_bytes()), self.inline.is_some())?);
        }
        disk.sync_dir(dir)?;
        (self.open, self.files) = (Some(journal), files);
        Ok(())
    }

    /// One step. Says what is durable now.
    pub fn turn(
        &mut self,
        disk: &MemoryDisk,
        dir: &LogDir,
        time: &mut HostTime<'_>,
    ) -> Result<Vec<DurableEnd>, Failure> {
        if self.is_failed || self.open.is_none() && self.pending.is_empty() {
            return Ok(Vec::new());
        }
        if self.open.is_none() {
            let directory = dir.meta().and_then(|meta| meta.directory_id).unwrap_or_default();
            let recovered = recover(disk, dir.path(), JOURNAL_FILES, directory)?;
            self.start(disk, dir.path(), &recovered, time.random.draw())?;
        }
        let mut ends = Vec::new();
        if let Some((_, round)) = self.in_flight.take_if(|(due, _)| *due <= time.now) {
            ends = self.written(disk, dir.path(), round, time)?;
        }
        self.take_written_back();
        if let Some(journal) = self.open.as_mut().filter(|_| self.inline.is_some()) {
            journal.write_back_all(time.random.one_in(6));
            assert!(journal.gathered_bytes() <= 64 << 10, "a round has a bound");
        }
        self.fill();
        self.write(time)?;
        Ok(ends)
    }

    fn written(
        &mut self,
        disk: &MemoryDisk,
        dir: &Path,
        round: Round,
        time: &HostTime<'_>,
    ) -> Result<Vec<DurableEnd>, JournalError> {
        let Some(journal) = &mut self.open else { return Ok(Vec::new()) };
        if !time.is(Mistake::SkipsTheSync) {
            self.files[round.slot].sync()?;
        }
        let done = journal.round_durable(round, micros(time.now));
        let figures = journal.figures();
        assert!(
            figures.staged_bytes <= config(self.inline.is_some()).staged_bytes_max
                && figures.files_free <= journal.files(),
            "the journal keeps to its bounds: {figures:?}"
        );
        while journal.shrink() {
            self.files.pop();
            disk.remove_file(&dir.join(slot_file_name(journal.files())))?;
        }
        Ok(done.ends)
    }

    fn take_written_back(&mut self) {
        let Some(journal) = &mut self.open else { return };
        for partition in self.written_back.drain(..) {
            if let Some(ticket) = self.ordered.remove(&partition) {
                journal.written_back(&ticket);
            }
        }
    }

    fn fill(&mut self) {
        let Some(journal) = &mut self.open else { return };
        let ordered = &self.ordered;
        self.ranges.retain(|range| !journal.submit_range(range, ordered.contains_key(&range.partition)));
        while let Some(entry) = self.pending.pop_front() {
            if matches!(entry.kind, EntryKind::Range { .. }) {
                if !journal.submit_range(&entry, ordered.contains_key(&entry.partition)) {
                    self.ranges.push(entry);
                }
                continue;
            }
            match journal.submit(entry.clone()) {
                Ok(_) => {}
                Err(Refused::TooLarge) => panic!("what is too large for a round goes into its segment"),
                Err(_) => {
                    self.pending.push_front(entry);
                    return;
                }
            }
        }
    }

    fn write(&mut self, time: &mut HostTime<'_>) -> Result<(), JournalError> {
        let Some(journal) = self.open.as_mut().filter(|_| self.in_flight.is_none()) else { return Ok(()) };
        let Take::Write(round) = journal.take_round(micros(time.now)) else { return Ok(()) };
        self.files[round.slot].write_at(round.position, &[round.bytes()])?;
        if self.writes_inline(&round, time)? {
            self.in_flight = Some((time.now, round));
            return Ok(());
        }
        let is_late = time.random.one_in(25);
        if is_late {
            time.faults.note(Fault::SlowSync);
        }
        let late = if is_late { time.random.below(80) } else { time.random.below(4) };
        self.in_flight = Some((MonotonicMs(time.now.0 + 1 + late as u64), round));
        Ok(())
    }

    pub fn write_inline(&mut self) {
        self.inline = Some(InlineWrites::default());
    }

    /// Syncs a round at once, where one worker alone has written lately and that was quick.
    fn writes_inline(&mut self, round: &Round, time: &mut HostTime<'_>) -> Result<bool, JournalError> {
        let Some(inline) = &mut self.inline else { return Ok(false) };
        let since = Duration::from_micros(time.random.below(200) as u64);
        let workers = if time.random.one_in(8) { 0b11 } else { 0b1 };
        let may_write = inline.may_write(Duration::from_millis(1), Some(since));
        let took = may_write.then(|| Duration::from_millis(if time.random.one_in(20) { 5 } else { 1 }));
        inline.note(workers, took);
        if may_write {
            self.files[round.slot].sync()?;
        }
        Ok(may_write)
    }

    /// What is to be written back now.
    pub fn orders(&mut self) -> Vec<(Arc<JournalPartition>, Offset)> {
        let mut orders = Vec::new();
        let Some(journal) = &mut self.open else { return orders };
        while let Some(write_back) = journal.next_write_back() {
            orders.push((Arc::clone(&write_back.partition), write_back.end()));
            self.ordered.insert(write_back.partition, write_back.ticket);
        }
        orders
    }

    /// Everything is written back and synced: says so in a last round, and removes the files.
    pub fn close(&mut self, disk: &MemoryDisk, dir: &Path, now: MonotonicMs) -> Result<(), JournalError> {
        self.pending.clear();
        let Some(mut journal) = self.open.take() else { return Ok(()) };
        if let Some((_, round)) = self.in_flight.take() {
            self.files[round.slot].sync()?;
            journal.round_durable(round, micros(now));
        }
        for ticket in std::mem::take(&mut self.ordered).into_values() {
            journal.written_back(&ticket);
        }
        journal.close();
        let mut last = None;
        while !journal.is_closed() {
            while let Some(write_back) = journal.next_write_back() {
                journal.written_back(&write_back.ticket);
            }
            let Take::Write(round) = journal.take_round(Micros(u64::MAX)) else {
                panic!("a journal that is closed has a last round to write");
            };
            self.files[round.slot].write_at(round.position, &[round.bytes()])?;
            self.files[round.slot].sync()?;
            last = Some(round.slot);
            journal.round_durable(round, micros(now));
        }
        Ok(remove_files(disk, dir, last)?)
    }
}

fn micros(now: MonotonicMs) -> Micros {
    Micros(now.0 * 1000)
}

/// `fills`: zeros are written, where a file system would only note the length otherwise.
fn make(disk: &MemoryDisk, path: &Path, bytes: u64, fills: bool) -> Result<Arc<dyn DiskFile>, DiskError> {
    let file = disk.open(path, OpenMode::Create)?;
    if file.len()? < bytes {
        match fills {
            true => file.fill(bytes)?,
            false => file.set_len(bytes)?,
        }
        file.sync()?;
    }
    Ok(file)
}

/// The files of a journal that are there.
pub(super) fn files_in(disk: &MemoryDisk, dir: &Path) -> Result<usize, DiskError> {
    let mut count = 0;
    for slot in 0..100 {
        count += usize::from(disk.stat(&dir.join(slot_file_name(slot)))?.is_some());
    }
    Ok(count)
}

/// Removes a journal that holds nothing; `last` goes last: it is the file that says so.
pub(super) fn remove_files(disk: &MemoryDisk, dir: &Path, last: Option<usize>) -> Result<(), DiskError> {
    for slot in (0..100).filter(|slot| Some(*slot) != last) {
        disk.remove_file(&dir.join(slot_file_name(slot)))?;
    }
    disk.sync_dir(dir)?;
    if let Some(last) = last {
        disk.remove_file(&dir.join(slot_file_name(last)))?;
        disk.sync_dir(dir)?;
    }
    Ok(())
}
