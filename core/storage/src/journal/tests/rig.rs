//! A log directory in miniature: a journal and three real logs over a disk that tears, driven at random, and a model
//! that says what may be there after a crash.
//!
//! The model is the list of what was done to each partition. What is acknowledged is a prefix of it; after a crash the
//! partition must hold what some prefix left, at least as long as the acknowledged one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition, Uuid};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;

use crate::journal::*;
use crate::{
    AppendBytes, Disk, DiskFile, FilePool, Log, LogConfig, LogPlace, MemoryDisk, OpenFrom, OpenMode,
};

pub const DIRECTORY: Uuid = Uuid([3; 16]);
pub const ROOT: &str = "/data";
pub const PARTITIONS: usize = 3;

/// A plausible mistake in the code that calls the journal. Those of the journal itself: lab/planted/storage.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The write's return counts as durable, before its sync.
    AckBeforeSync,
    /// `written_back` is called before the segments are synced.
    WrittenBackBeforeSync,
    /// Replay keeps what lies behind a truncation.
    ForgetCut,
    /// A large append is acknowledged before its range is durable.
    AckRangeEarly,
    /// The journal goes on before what was replayed is synced.
    OpenBeforeSync,
    /// The journal goes on as if what waits in memory had been written back.
    ReplayPointEarly,
    /// What waits in memory for its partition to be opened is forgotten.
    PendingDropped,
    /// The journal goes on behind rounds that a killed process wrote and did not sync.
    GoOnUnsynced,
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        barnabas_base::split_mix_64(&mut self.0) % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The power went, in the middle of something.
pub struct Crash;

#[derive(Debug, Clone)]
enum Op {
    Append { from: Offset, end: Offset, records: Bytes },
    Truncate { end: Offset },
    Restart { at: Offset },
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    end: Offset,
    batches: Vec<Bytes>,
}

struct Part {
    name: Arc<JournalPartition>,
    log: Log,
    /// What the directory's `log-start-offset-checkpoint` says; durable at once.
    log_start: Offset,
    ops: Vec<Op>,
    /// So many of `ops` are acknowledged.
    acknowledged: usize,
    /// For each round that is not durable: how many of `ops` are done once it is.
    rounds: Vec<(u64, usize)>,
    /// What the journal holds of it, until it is opened.
    pending: Option<PartitionReplay>,
    /// What the log held below this when it was opened is not written back once more.
    opened_at: Offset,
}

pub struct Rig {
    pub disk: MemoryDisk,
    pub random: Random,
    bug: Option<Bug>,
    config: JournalConfig,
    journal: Journal,
    slots: Vec<Arc<dyn DiskFile>>,
    files: FilePool,
    parts: Vec<Part>,
    log_config: Arc<LogConfig>,
}

fn name(index: usize) -> Arc<JournalPartition> {
    let topic_partition = TopicPartition::new("t", PartitionIndex(index as i32));
    Arc::new(JournalPartition { topic_id: TopicId::default(), topic_partition })
}

fn place(name: &JournalPartition) -> LogPlace {
    LogPlace {
        root: Arc::from(Path::new(ROOT)),
        topic_partition: name.topic_partition.clone(),
        topic_id: name.topic_id,
        future: None,
    }
}

pub fn batch(from: Offset, records: i64, fill: u8, value_bytes: usize) -> Bytes {
    let options = BatchOptions { base_offset: from, leader_epoch: LeaderEpoch(1), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for _ in 0..records {
        builder.push(TimestampMs(1000), None, Some(&vec![fill; value_bytes]), &[]);
    }
    builder.build().unwrap()
}

impl Rig {
    pub fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut random = Random(seed);
        let config = JournalConfig {
            files: 3 + random.below(2) as usize,
            file_bytes: 8192 << random.below(2),
            round_bytes_max: 8192,
            round_bytes_enough: 8192,
            linger_us: 0,
            append_bytes_max: 2000,
            write_back_bytes: 600,
            write_back_bytes_max: 1500,
            staged_bytes_max: 1 << 20,
        };
        let disk = MemoryDisk::new();
        disk.create_dir(Path::new(ROOT)).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        for slot in 0..config.files {
            let file = disk.open(&slot_path(slot), OpenMode::Create).unwrap();
            file.set_len(config.file_bytes.into()).unwrap();
            file.sync().unwrap();
        }
        disk.sync_dir(Path::new(ROOT)).unwrap();
        let log_config = Arc::new(LogConfig { segment_bytes: 4000, ..LogConfig::default() });
        let empty = recover(&disk, Path::new(ROOT), config.files, DIRECTORY).unwrap();
        let mut rig = Self {
            journal: Journal::open(config.clone(), &empty, random.below(u64::MAX)).unwrap(),
            slots: Vec::new(),
            files: FilePool::new(Arc::new(disk.clone()), 100),
            parts: Vec::new(),
            disk,
            random,
            bug,
            config,
            log_config,
        };
        for index in 0..PARTITIONS {
            let log = Log::create(place(&name(index)), Arc::clone(&rig.log_config), Offset::ZERO);
            rig.parts.push(Part {
                name: name(index),
                log,
                log_start: Offset::ZERO,
                ops: Vec::new(),
                acknowledged: 0,
                rounds: Vec::new(),
                pending: None,
                opened_at: Offset::ZERO,
            });
        }
        rig.begin();
        rig
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Opens the journal's files for writing, in a process that has just started.
    fn begin(&mut self) {
        for slot in self.config.files..self.journal.files() {
            let file = self.disk.open(&slot_path(slot), OpenMode::Create).unwrap();
            file.set_len(self.config.file_bytes.into()).unwrap();
            file.sync().unwrap();
        }
        self.disk.sync_dir(Path::new(ROOT)).unwrap();
        let open = |slot| self.disk.open(&slot_path(slot), OpenMode::Write).unwrap();
        self.slots = (0..self.journal.files()).map(open).collect();
    }

    /// Random operations; now and then the power fails.
    pub fn step(&mut self) -> Result<(), Crash> {
        match self.random.below(21) {
            0..8 => self.append(),
            8 => self.cut()?,
            9 => self.large()?,
            10..15 => self.write_round()?,
            15..19 => {
                if let Some(write_back) = self.journal.next_write_back() {
                    self.write_back(write_back)?;
                }
            }
            19 => {
                let index = self.any();
                if let Some(write_back) = self.journal.take_write_back(&name(index)) {
                    self.write_back(write_back)?;
                }
            }
            _ => self.journal.write_back_all(self.random.one_in(3)),
        }
        self.may_crash(150)
    }

    fn may_crash(&mut self, one_in: u64) -> Result<(), Crash> {
        if self.random.one_in(one_in) { Err(Crash) } else { Ok(()) }
    }

    fn any(&mut self) -> usize {
        self.random.below(PARTITIONS as u64) as usize
    }

    fn end(&self, index: usize) -> Offset {
        contents(&self.parts[index].ops).end
    }

    fn submit(&mut self, index: usize, kind: EntryKind, op: Op) {
        let part = &mut self.parts[index];
        let entry = Entry { partition: Arc::clone(&part.name), leader_epoch: LeaderEpoch(1), kind };
        if let Ok(round) = self.journal.submit(entry) {
            part.ops.push(op);
            part.rounds.push((round, part.ops.len()));
        }
    }

    fn append(&mut self) {
        let index = self.any();
        self.open_pending(index);
        let from = self.end(index);
        let (mut at, mut bytes) = (from, Vec::new());
        for _ in 0..1 + self.random.below(3) {
            let records = 1 + self.random.below(3) as i64;
            let (fill, len) = (self.random.below(256) as u8, 1 + self.random.below(200) as usize);
            bytes.extend_from_slice(&batch(at, records, fill, len));
            at = at.plus(records);
        }
        let records = Bytes::from(bytes);
        let kind = EntryKind::Records { from, end: at, records: AppendBytes::Whole(records.clone()) };
        self.submit(index, kind, Op::Append { from, end: at, records });
    }

    fn cut(&mut self) -> Result<(), Crash> {
        let index = self.any();
        self.open_pending(index);
        let now = contents(&self.parts[index].ops);
        match self.random.below(6) {
            0 => {
                let at = now.end.plus(self.random.below(50) as i64);
                self.submit(index, EntryKind::Restart { at }, Op::Restart { at });
            }
            1 => self.submit(index, EntryKind::Remove, Op::Remove),
            _ if !now.batches.is_empty() => {
                let keep = self.random.below(now.batches.len() as u64) as usize;
                let end = Offset(i64::from_be_bytes(now.batches[keep][..8].try_into().unwrap()));
                let before = self.parts[index].ops.len();
                self.submit(index, EntryKind::Truncate { end }, Op::Truncate { end });
                if self.parts[index].ops.len() > before {
                    self.truncate(index, end)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// As core/replica: once the journal has noted a truncation it is carried out, before anything follows.
    fn truncate(&mut self, index: usize, end: Offset) -> Result<(), Crash> {
        while !self.parts[index].rounds.is_empty() {
            self.write_round()?;
            if let Some(write_back) = self.journal.next_write_back() {
                self.write_back(write_back)?;
            }
        }
        let log = &mut self.parts[index].log;
        if log.end() > end {
            log.truncate_to(&mut self.files, end, TimestampMs(0)).unwrap();
        }
        self.may_crash(30)
    }

    /// A large append: what the journal has of the partition goes first.
    fn large(&mut self) -> Result<(), Crash> {
        let index = self.any();
        self.open_pending(index);
        self.write_round()?;
        while let Some(write_back) = self.journal.take_write_back(&name(index)) {
            self.write_back(write_back)?;
        }
        if !self.journal.is_open() || !self.parts[index].rounds.is_empty() {
            return Ok(());
        }
        let from = self.end(index);
        let records = batch(from, 2, self.random.below(256) as u8, 1500);
        let op = Op::Append { from, end: from.plus(2), records: records.clone() };
        let part = &mut self.parts[index];
        part.ops.push(op);
        part.log.append(&mut self.files, &[AppendBytes::Whole(records)], TimestampMs(0)).unwrap();
        self.may_crash(30)?;
        self.sync_log(index);
        if self.has(Bug::AckRangeEarly) {
            self.parts[index].acknowledged = self.parts[index].ops.len();
        }
        self.may_crash(10)?;
        // A refusal leaves it unacknowledged, and the next round may carry it.
        let kind = EntryKind::Range { from, end: from.plus(2) };
        let entry = Entry { partition: name(index), leader_epoch: LeaderEpoch(1), kind };
        for _ in 0..100 {
            match self.journal.submit(entry.clone()) {
                Ok(round) => {
                    let part = &mut self.parts[index];
                    part.rounds.push((round, part.ops.len()));
                    return Ok(());
                }
                Err(_) => {
                    self.write_round()?;
                    if let Some(write_back) = self.journal.next_write_back() {
                        self.write_back(write_back)?;
                    }
                }
            }
        }
        panic!("writing and writing back frees the journal: {:#?}", self.journal);
    }

    fn write_round(&mut self) -> Result<(), Crash> {
        let Take::Write(round) = self.journal.take_round(Micros(0)) else { return Ok(()) };
        let file = Arc::clone(&self.slots[round.slot]);
        file.write_at(round.position, &[round.bytes()]).unwrap();
        if self.has(Bug::AckBeforeSync) {
            self.acknowledge(round.number);
        }
        self.may_crash(12)?;
        file.sync().unwrap();
        self.acknowledge(round.number);
        self.may_crash(40)?;
        self.journal.round_durable(round, Micros(0));
        while self.journal.shrink() {
            self.slots.pop();
            self.disk.remove_file(&slot_path(self.slots.len())).unwrap();
        }
        Ok(())
    }

    fn acknowledge(&mut self, round: u64) {
        for part in &mut self.parts {
            while part.rounds.first().is_some_and(|(number, _)| *number <= round) {
                part.acknowledged = part.rounds.remove(0).1;
            }
        }
    }

    fn write_back(&mut self, write_back: WriteBack) -> Result<(), Crash> {
        let index = write_back.partition.topic_partition.partition.get() as usize;
        self.open_pending(index);
        for op in write_back.ops {
            self.carry_out(index, op);
            self.may_crash(40)?;
        }
        if !self.has(Bug::WrittenBackBeforeSync) {
            self.sync_log(index);
        }
        self.may_crash(40)?;
        self.journal.written_back(&write_back.ticket);
        Ok(())
    }

    /// A request opens the partition: the journal's batches are replayed into its log.
    fn open_pending(&mut self, index: usize) {
        let Some(replay) = self.parts[index].pending.take() else { return };
        if self.has(Bug::PendingDropped) {
            self.parts[index].opened_at = Offset(i64::MAX);
            return;
        }
        for step in replay.steps(self.parts[index].log.end()).unwrap() {
            self.carry_out(index, step);
        }
        self.parts[index].opened_at = self.parts[index].log.end();
        // The log's content is not reported before it is synced: a killed process may have left it in the page
        // cache.
        self.sync_log(index);
        self.parts[index].acknowledged = self.parts[index].ops.len();
    }

    fn carry_out(&mut self, index: usize, op: WriteBackOp) {
        let (part, now) = (&mut self.parts[index], TimestampMs(0));
        if !matches!(op, WriteBackOp::Append { .. }) {
            part.opened_at = Offset::ZERO;
        }
        match op {
            WriteBackOp::Append { end, .. } if end <= part.opened_at => {}
            WriteBackOp::Append { from, end, records, .. } => {
                assert_eq!(part.log.end(), from);
                part.log.append(&mut self.files, &[records], now).unwrap();
                assert_eq!(part.log.end(), end);
            }
            WriteBackOp::Truncate { end } => {
                part.log.truncate_to(&mut self.files, end, now).unwrap();
                assert_eq!(part.log.end(), end);
            }
            WriteBackOp::Restart { at } => {
                part.log.truncate_fully_and_start_at(&mut self.files, at, now).unwrap();
                part.log_start = at;
            }
            WriteBackOp::Remove => {
                part.log.abandon(&mut self.files);
                part.log_start = Offset::ZERO;
                let place = place(&part.name);
                if self.disk.stat(&place.dir()).unwrap().is_some() {
                    crate::remove_dir(&self.disk, &place.dir()).unwrap();
                }
                self.disk.sync_dir(Path::new(ROOT)).unwrap();
                part.log = Log::create(place, Arc::clone(&self.log_config), Offset::ZERO);
            }
        }
    }

    fn sync_log(&mut self, index: usize) {
        let log = &mut self.parts[index].log;
        if let Some(dirty) = log.take_dirty() {
            dirty.files.iter().for_each(|file| file.sync().unwrap());
            dirty.dirs.iter().for_each(|dir| self.disk.sync_dir(dir).unwrap());
            log.mark_synced(dirty.ticket);
        }
    }

    /// The power goes and comes back, perhaps several times; what is there then is compared with the model.
    pub fn crash_and_recover(&mut self) -> Result<(), String> {
        loop {
            // Half of the time only the process is killed: what it wrote and did not sync is there, until the power
            // goes as well.
            if self.random.one_in(2) {
                self.disk.crash(self.random.below(u64::MAX));
            } else {
                self.disk.kill();
            }
            self.files = FilePool::new(Arc::new(self.disk.clone()), 100);
            let mut recovered = recover(&self.disk, Path::new(ROOT), self.config.files, DIRECTORY)
                .map_err(|error| error.to_string())?;
            if !self.has(Bug::GoOnUnsynced) {
                recovered.sync_files(&self.disk, Path::new(ROOT)).unwrap();
            }
            let waits: Vec<bool> = (0..PARTITIONS).map(|_| self.random.one_in(2)).collect();
            let is_pending = |replay: &PartitionReplay| {
                replay.only_appends() && waits[replay.partition.topic_partition.partition.get() as usize]
            };
            match self.replay(&recovered, is_pending) {
                Ok(()) => {}
                Err(None) => continue,
                Err(Some(why)) => return Err(why),
            }
            for index in 0..PARTITIONS {
                if !self.has(Bug::OpenBeforeSync) && self.parts[index].pending.is_none() {
                    self.sync_log(index);
                }
                self.compare(index)?;
            }
            recovered.keep(|replay| is_pending(replay) && !self.has(Bug::ReplayPointEarly));
            let opening = self.random.below(u64::MAX);
            match Journal::open(self.config.clone(), &recovered, opening) {
                Ok(journal) => self.journal = journal,
                Err(JournalError::NoRoom) => self.replay_the_rest(recovered, opening)?,
                Err(error) => return Err(error.to_string()),
            }
            self.begin();
            return Ok(());
        }
    }

    /// No file is free to go on in.
    fn replay_the_rest(&mut self, mut recovered: Recovered, opening: u64) -> Result<(), String> {
        for index in 0..PARTITIONS {
            self.open_pending(index);
            self.sync_log(index);
        }
        recovered.keep(|_| false);
        self.journal = Journal::open(self.config.clone(), &recovered, opening).map_err(|e| e.to_string())?;
        Ok(())
    }

    /// `Err(None)`: the power went again.
    fn replay(
        &mut self,
        recovered: &Recovered,
        is_pending: impl Fn(&PartitionReplay) -> bool,
    ) -> Result<(), Option<String>> {
        for index in 0..PARTITIONS {
            self.parts[index].pending = None;
            self.parts[index].opened_at = Offset::ZERO;
            let replay = recovered.partitions.iter().find(|replay| replay.partition == name(index));
            let from = OpenFrom {
                recovery_point: replay.map_or(Offset::ZERO, PartitionReplay::synced_below),
                log_start: self.parts[index].log_start,
                is_ours: true,
                ..OpenFrom::default()
            };
            let config = Arc::clone(&self.log_config);
            let (log, _) = Log::open(&mut self.files, place(&name(index)), config, from, TimestampMs(0))
                .map_err(|error| Some(error.to_string()))?;
            self.parts[index].log = log;
            let Some(replay) = replay else { continue };
            let mut replay = replay.clone();
            if self.has(Bug::ForgetCut) {
                (replay.cut, replay.pending_cut) = (None, None);
            }
            if is_pending(&replay) {
                self.parts[index].pending = Some(replay);
                continue;
            }
            let end = self.parts[index].log.end();
            for step in replay.steps(end).map_err(|error| Some(error.to_string()))? {
                self.carry_out(index, step);
                if self.random.one_in(60) {
                    return Err(None);
                }
            }
        }
        Ok(())
    }

    fn compare(&mut self, index: usize) -> Result<(), String> {
        let part = &mut self.parts[index];
        let mut found = Contents { end: part.log.end(), batches: Vec::new() };
        let (mut at, end) = (part.log.start(), part.log.end());
        while at < end {
            let read = part.log.read(&mut self.files, at, 1, end, true).map_err(|error| error.to_string())?;
            found.batches.push(read.records);
            at = read.next_offset;
        }
        for step in part.pending.iter().flat_map(|pending| pending.steps(end).expect("nothing is missing")) {
            let WriteBackOp::Append { end, records: AppendBytes::Whole(records), .. } = step else {
                panic!("what waits only appends")
            };
            found.batches.extend(batches_of(&records));
            found.end = end;
        }
        let fits = (part.acknowledged..=part.ops.len()).find(|done| contents(&part.ops[..*done]) == found);
        let Some(done) = fits else {
            let wanted = contents(&part.ops[..part.acknowledged]);
            return Err(format!(
                "partition {index}: {} batches up to {}, but {} up to {} are acknowledged",
                found.batches.len(),
                found.end,
                wanted.batches.len(),
                wanted.end
            ));
        };
        part.ops.truncate(done);
        if part.pending.is_none() {
            part.acknowledged = done;
        }
        part.rounds.clear();
        Ok(())
    }
}

pub fn slot_path(slot: usize) -> PathBuf {
    Path::new(ROOT).join(slot_file_name(slot))
}

fn batches_of(records: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = records.clone();
    std::iter::from_fn(move || {
        let len = 12 + u32::from_be_bytes(rest.get(8..12)?.try_into().unwrap()) as usize;
        Some(rest.split_to(len))
    })
}

/// What a log holds after `ops`.
fn contents(ops: &[Op]) -> Contents {
    let mut now = Contents { end: Offset::ZERO, batches: Vec::new() };
    for op in ops {
        match op {
            Op::Append { from, end, records } => {
                assert_eq!(now.end, *from);
                now.batches.extend(batches_of(records));
                now.end = *end;
            }
            Op::Truncate { end } => {
                now.batches.retain(|batch| i64::from_be_bytes(batch[..8].try_into().unwrap()) < end.get());
                now.end = *end;
            }
            Op::Restart { at } => now = Contents { end: *at, batches: Vec::new() },
            Op::Remove => now = Contents { end: Offset::ZERO, batches: Vec::new() },
        }
    }
    now
}
