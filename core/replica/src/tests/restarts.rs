//! A replica over the real journal and a disk that forgets what was not synced: appended to, written back, truncated,
//! and crashed at any moment. What was acknowledged is there after each restart, and what was truncated stays away.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, Uuid};
use barnabas_partition::{Acks, Cut, Leadership};
use barnabas_storage::journal::{
    Entry, EntryKind, Journal, JournalConfig, JournalError, Micros, PartitionReplay, Recovered, Take,
    WriteBackOp, WriteBackTicket, recover, slot_file_name,
};
use barnabas_storage::{Disk, FilePool, LogDir, MemoryDisk, OpenMode};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use super::Bench;
use super::bench::{NOW, ROOT, batch, config, opening, place};
use crate::{
    Checkpoint, Checkpointed, Effect, Replica, Standing, read_journal, replay_log, waits_for_opening,
};

mod stays;

const DIRECTORY: Uuid = Uuid([3; 16]);
/// Of a record batch.
const HEADER_BYTES: usize = 61;
const FILES: usize = 3;
const FILE_BYTES: u32 = 16 << 10;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One process after another on the same disk.
struct Restarts {
    random: Random,
    bench: Bench,
    log_dir: RefCell<LogDir>,
    journal: Journal,
    queue: VecDeque<Entry>,
    order: Option<WriteBackTicket>,
    /// The batches of the log, by what was appended.
    written: Vec<Bytes>,
    acknowledged: Offset,
    /// The log was truncated there, durably, and nothing was appended since.
    truncated_to: Option<Offset>,
    epoch: i32,
    /// What the next start's image says of the replica.
    standing: Standing,
    /// The replica has left, and no round is reported to it.
    is_closed: bool,
    /// One round in so many is torn by a crash; 0: none is.
    torn_one_in: u64,
}

fn slot_path(slot: usize) -> PathBuf {
    Path::new(ROOT).join(slot_file_name(slot))
}

fn make_files(disk: &MemoryDisk, files: usize) {
    for slot in 0..files {
        if disk.stat(&slot_path(slot)).unwrap().is_none() {
            let file = disk.open(&slot_path(slot), OpenMode::Create).unwrap();
            file.set_len(FILE_BYTES.into()).unwrap();
            file.sync().unwrap();
        }
    }
    disk.sync_dir(Path::new(ROOT)).unwrap();
}

fn open_dir(disk: &MemoryDisk) -> RefCell<LogDir> {
    let mut log_dir = LogDir::open(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
    log_dir.begin().unwrap();
    log_dir.set_synced(true);
    RefCell::new(log_dir)
}

/// `None`: its files have no room to go on with what is left in it.
fn open_journal(recovered: &Recovered, random: &mut Random) -> Option<Journal> {
    let config = JournalConfig {
        files: FILES,
        file_bytes: FILE_BYTES,
        round_bytes_max: 8192,
        round_bytes_enough: 8192,
        linger_us: 0,
        append_bytes_max: 2000,
        write_back_bytes: 300,
        write_back_bytes_max: 1500,
        staged_bytes_max: 1 << 20,
    };
    match Journal::open(config, recovered, random.below(u64::MAX >> 33)) {
        Ok(journal) => Some(journal),
        Err(JournalError::NoRoom) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Replays what does not wait.
fn replay_but(
    waits: impl Fn(&PartitionReplay) -> bool,
    recovered: &mut Recovered,
    log_dir: &RefCell<LogDir>,
    files: &mut FilePool,
) {
    for replay in recovered.partitions.iter().filter(|replay| !waits(replay)) {
        let end = replay_log(replay, place(), config(), false, log_dir, files, NOW).unwrap().unwrap();
        log_dir.borrow_mut().vouch_for(place().topic_partition, end);
    }
    log_dir.borrow_mut().write_checkpoints().unwrap();
    recovered.keep(waits);
}

impl Restarts {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let bench = Bench::new();
        bench.disk.sync_dir(Path::new("/")).unwrap();
        make_files(&bench.disk, FILES);
        let empty = recover(&bench.disk, Path::new(ROOT), FILES, DIRECTORY).unwrap();
        let journal = open_journal(&empty, &mut random).expect("it is empty");
        let log_dir = open_dir(&bench.disk);
        let mut restarts = Self {
            random,
            bench,
            log_dir,
            journal,
            queue: VecDeque::new(),
            order: None,
            written: Vec::new(),
            acknowledged: Offset::ZERO,
            truncated_to: None,
            epoch: 0,
            standing: Standing::CountedOn,
            is_closed: false,
            torn_one_in: 10,
        };
        restarts.lead();
        restarts
    }

    fn replica(&mut self) -> &mut Replica {
        &mut self.bench.replica
    }

    fn lead(&mut self) {
        self.epoch += 1;
        let leadership = Leadership { epoch: LeaderEpoch(self.epoch), ..Leadership::default() };
        let Bench { replica, outbox, .. } = &mut self.bench;
        let end = replica.partition.log_end();
        assert!(replica.partition.become_leader(&leadership, &mut outbox.decisions));
        replica.log.assign_epoch(LeaderEpoch(self.epoch), end);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for effect in self.bench.effects() {
            match effect {
                Effect::Answer { answer, .. } => {
                    let base = answer.expect("nothing fails here").base;
                    let end =
                        self.written.iter().map(end_of).find(|end| *end > base).expect("it was appended");
                    self.acknowledged = self.acknowledged.max(end);
                }
                Effect::Sync if self.replica().sync.is_in_flight => {}
                Effect::Sync => self.sync(),
                Effect::WriteBackDone(_) => {
                    if let Some(ticket) = self.order.take() {
                        self.journal.written_back(&ticket);
                    }
                }
                _ => {}
            }
        }
        self.queue.extend(self.bench.entries.drain(..));
    }

    fn sync(&mut self) {
        if let Some((dirty, _)) = self.replica().take_sync() {
            dirty.sync(&self.bench.disk, None).unwrap();
            self.bench.step(|replica, around| replica.synced(dirty.ticket, dirty.ticket.end(), around));
            self.carry_out();
        }
    }

    fn append(&mut self) {
        let records = 1 + self.random.below(3) as i32;
        // Now and then one that is too large for a round of the journal.
        let records = if self.random.below(12) == 0 { 12 } else { records };
        let base = self.replica().partition.log_end();
        let sequence = base.get() as i32;
        let bytes = batch(base.get(), records, Some(sequence));
        self.written.push(bytes.clone());
        self.bench.place_of(bytes, Acks::Leader, 1).unwrap();
        self.bench.finish_round();
        self.truncated_to = None;
        self.carry_out();
    }

    fn write_round(&mut self) {
        while let Some(entry) = self.queue.pop_front() {
            if self.is_behind_staged(&entry) || self.journal.submit(entry.clone()).is_err() {
                self.queue.push_front(entry);
                break;
            }
        }
        let Take::Write(round) = self.journal.take_round(Micros(0)) else { return };
        let file = self.bench.disk.open(&slot_path(round.slot), OpenMode::Write).unwrap();
        file.write_at(round.position, &[round.bytes()]).unwrap();
        if self.torn_one_in > 0 && self.random.below(self.torn_one_in) == 0 {
            // The power goes before it is synced; or after that, before anything learns of it.
            return self.crash();
        }
        file.sync().unwrap();
        let ends = self.journal.round_durable(round, Micros(0)).ends;
        if self.is_closed {
            return;
        }
        for done in ends {
            let Bench { replica, outbox, .. } = &mut self.bench;
            replica.journal_durable(done.end, outbox);
            self.carry_out();
        }
    }

    /// A `Range` says that the segments are synced as far as that: what the journal holds below it is done with.
    fn is_behind_staged(&mut self, entry: &Entry) -> bool {
        if !matches!(entry.kind, EntryKind::Range { .. }) {
            return false;
        }
        if self.order.is_none()
            && self.journal.has(&entry.partition)
            && let Some(write_back) = self.journal.take_write_back(&entry.partition)
        {
            self.journal.written_back(&write_back.ticket);
        }
        self.journal.has(&entry.partition)
    }

    fn write_back(&mut self) {
        if self.order.is_some() {
            return;
        }
        let Some(write_back) = self.journal.next_write_back() else { return };
        let ends = write_back.ops.iter().filter_map(|op| match op {
            WriteBackOp::Append { end, .. } => Some(*end),
            _ => None,
        });
        let end = ends.max().unwrap_or(Offset::ZERO);
        self.order = Some(write_back.ticket);
        let name = self.replica().name.clone();
        self.bench.step(|replica, around| replica.write_back_as_ordered(name, end, around)).unwrap();
        self.carry_out();
    }

    /// A new leader has less: what is not acknowledged goes, with what is acknowledged by this one alone.
    fn truncate(&mut self) {
        let end = self.replica().partition.log_end();
        let to = Offset(self.random.below(end.get() as u64 + 1) as i64).max(self.replica().log.start());
        if self.replica().log.end() != end || self.replica().partition.high_watermark() < end || to == end {
            return;
        }
        self.truncated_to = None;
        self.epoch += 1;
        let epoch = LeaderEpoch(self.epoch);
        let Bench { replica, files, outbox, .. } = &mut self.bench;
        replica.partition.become_follower(epoch, &mut outbox.decisions);
        let (cut, _) = replica.truncation_at(files, Cut::To(to)).unwrap();
        let entry = replica.want_truncation(cut, false, true).expect("there is a journal");
        let Cut::To(to) = cut else { unreachable!("it was asked for an end") };
        self.acknowledged = self.acknowledged.min(to);
        self.carry_out();
        self.queue.push_back(entry);
        let life = self.bench.replica.number;
        while !self.queue.is_empty() && self.bench.replica.number == life {
            self.write_round();
            self.write_back();
            self.sync();
        }
        if self.bench.replica.number != life {
            return;
        }
        self.truncated_to = Some(to);
        self.bench.replica.truncation_noted();
        assert!(self.bench.replica.may_truncate());
        if self.random.below(3) == 0 {
            return self.crash();
        }
        let Bench { replica, files, outbox, .. } = &mut self.bench;
        replica.lower_checkpoints(&mut self.log_dir.borrow_mut()).unwrap();
        replica.truncate(files, NOW, &mut outbox.effects).unwrap();
        replica.finish_truncation(files).unwrap();
        self.forget_truncated();
        self.carry_out();
        self.lead();
    }

    fn forget_truncated(&mut self) {
        let end = self.bench.replica.log.end();
        self.written.retain(|bytes| end_of(bytes) <= end);
    }

    fn checkpoint(&mut self) {
        let Bench { replica, files, .. } = &mut self.bench;
        let Checkpoint { recovery_point, log_start, high_watermark } = replica.checkpoint(files).unwrap();
        let name = replica.name.topic_partition.clone();
        let mut log_dir = self.log_dir.borrow_mut();
        log_dir.set_recovery_point(name.clone(), recovery_point);
        log_dir.raise_log_start(name.clone(), log_start);
        log_dir.set_high_watermark(name, high_watermark);
        log_dir.write_checkpoints().unwrap();
    }

    /// The power goes, and the next process starts.
    fn crash(&mut self) {
        let seed = self.random.below(1 << 30);
        self.bench.disk.crash(seed);
        self.queue.clear();
        self.order = None;
        let bench = &mut self.bench;
        (bench.entries, bench.outbox) = Default::default();
        bench.files = FilePool::new(Arc::new(bench.disk.clone()), 16);
        self.log_dir = open_dir(&bench.disk);
        let mut recovered = read_journal(&self.log_dir, DIRECTORY).unwrap().expect("there is a journal");
        stays::note_left(&mut recovered, self.standing, &self.log_dir);
        let waits = |replay: &PartitionReplay| waits_for_opening(replay, true, true);
        replay_but(waits, &mut recovered, &self.log_dir, &mut bench.files);
        self.journal = match open_journal(&recovered, &mut self.random) {
            Some(journal) => journal,
            None => {
                replay_but(|_| false, &mut recovered, &self.log_dir, &mut bench.files);
                open_journal(&recovered, &mut self.random).expect("it is empty")
            }
        };
        make_files(&bench.disk, self.journal.files());
        stays::write_removals(&mut self.journal, &bench.disk);
        let is_there = bench.disk.stat(&place().dir()).unwrap().is_some() || !recovered.is_empty();
        let checkpointed = is_there.then(|| stays::checkpointed(&self.log_dir));
        let number = bench.replica.number + 1;
        let next = crate::Opening { number, ..opening(checkpointed, recovered.partitions.first()) };
        (bench.replica, _) = Replica::open(next, &mut bench.files).unwrap();
        self.is_closed = false;
        self.check();
        self.lead();
    }

    fn check(&mut self) {
        let Bench { replica, files, .. } = &mut self.bench;
        let (start, end) = (replica.log.start(), replica.log.end());
        assert!(end >= self.acknowledged, "it ends at {end}, and {} was acknowledged", self.acknowledged);
        if let Some(to) = self.truncated_to.take() {
            assert_eq!(end, to, "a truncation that was noted is undone");
        }
        assert_eq!(replica.partition.log_end(), end);
        self.written.retain(|bytes| end_of(bytes) <= end);
        let expected = self.written.concat();
        let mut found = Vec::new();
        let mut from = start;
        while from < end {
            let read = replica.log.read(files, from, usize::MAX >> 1, end, true).unwrap();
            found.extend_from_slice(&read.records);
            from = read.next_offset;
        }
        // The header has the leader's epoch and a checksum, which `written` does not know.
        assert!(records_of(&found) == records_of(&expected), "other records up to {end}");
        let last = self.written.last().map(|bytes| end_of(bytes).get() as i32 - 1);
        let producers = replica.partition.producers();
        let known = producers.first().and_then(|known| known.last_batch);
        assert_eq!(known.map(|batch| batch.last_sequence.0), last);
        self.acknowledged = end;
    }
}

fn end_of(bytes: &Bytes) -> Offset {
    BatchHeader::parse(bytes).unwrap().next_offset()
}

/// Each batch's offset and what follows its header.
fn records_of(mut batches: &[u8]) -> Vec<(Offset, &[u8])> {
    let mut found = Vec::new();
    while let Ok(header) = BatchHeader::parse(batches) {
        let (batch, rest) = batches.split_at(header.size_bytes());
        found.push((header.base_offset, &batch[HEADER_BYTES..]));
        batches = rest;
    }
    found
}

#[test]
fn restart_finds_what_was_acknowledged_and_nothing_truncated() {
    for seed in 0..60 {
        let mut restarts = Restarts::new(seed);
        for _ in 0..150 {
            match restarts.random.below(30) {
                0..12 => restarts.append(),
                12..20 => restarts.write_round(),
                20..24 => restarts.write_back(),
                24..26 => restarts.sync(),
                26 | 27 => restarts.checkpoint(),
                28 => restarts.truncate(),
                _ => restarts.crash(),
            }
        }
    }
}
