//! The whole way of a batch, as the shell goes it: staged, made durable by the journal, written back, synced by a
//! committer that may cover more than it was handed, vouched for by checkpoints; segments closed with batches that
//! are not durable yet; several kills and power cuts in a row, behind which the journal goes on. Every durable batch
//! is there once, in its place, and what is known of producers (snapshot, and headers after it) is what all batches
//! say.

use std::collections::{BTreeMap, VecDeque};

use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};

use super::crash::Random;
use super::*;
use crate::journal::{
    Entry, EntryKind, Journal, JournalConfig, JournalError, JournalPartition, Micros, PartitionReplay, Take,
    WriteBackOp, WriteBackTicket, recover, slot_file_name,
};
use crate::{AbortedTransaction, Dirty, Disk, DiskFile, Log, OpenMode, ProducerEntry};

const DIRECTORY: Uuid = Uuid([3; 16]);
const PARTITIONS: usize = 2;

/// A producer's last sequence and offset.
type States = BTreeMap<i64, (i32, Offset)>;

struct Flying {
    dirty: Dirty,
    covers: Offset,
    is_extended: bool,
    is_synced: bool,
}

struct Part {
    name: Arc<JournalPartition>,
    /// `None`: no reader has asked for it yet.
    log: Option<Log>,
    waiting: Option<PartitionReplay>,
    written: Vec<Bytes>,
    acknowledged: Offset,
    rounds: Vec<(u64, Offset)>,
    ticket: Option<Flying>,
    laying: Option<(WriteBackTicket, Offset)>,
    /// Large appends are under way; ranges were handed in up to here.
    direct: Option<Offset>,
    states: States,
}

struct Rig {
    disk: MemoryDisk,
    files: FilePool,
    memory: TailMemory,
    dir: LogDir,
    random: Random,
    journal_config: JournalConfig,
    journal: Journal,
    slots: Vec<Arc<dyn DiskFile>>,
    queue: VecDeque<(usize, Entry, Offset)>,
    parts: Vec<Part>,
    config: Arc<LogConfig>,
    /// All batches have one length, so that what was in a file before may go on where a new batch ends.
    is_even: bool,
    /// What is staged is often written back before it is durable.
    writes_back_early: bool,
    /// In this life each second opening of a log is its end.
    is_hasty: bool,
}

/// The power goes in the middle of something.
struct Cut;

fn name(at: usize) -> Arc<JournalPartition> {
    let topic_partition = TopicPartition::new("chain", PartitionIndex(at as i32));
    Arc::new(JournalPartition { topic_id: Uuid([7; 16]), topic_partition })
}

fn place_of(at: usize) -> LogPlace {
    let JournalPartition { topic_id, topic_partition } = &*name(at);
    LogPlace {
        root: Arc::from(Path::new(ROOT)),
        topic_partition: topic_partition.clone(),
        topic_id: *topic_id,
        future: None,
    }
}

fn slot_path(slot: usize) -> PathBuf {
    Path::new(ROOT).join(slot_file_name(slot))
}

fn follow(states: &mut States, bytes: &[u8]) {
    let header = BatchHeader::parse(bytes).unwrap();
    let sequence = i32::from_be_bytes(bytes[53..57].try_into().unwrap());
    states.insert(header.producer_id.get(), (sequence, header.last_offset));
}

fn end_of(bytes: &Bytes) -> Offset {
    BatchHeader::parse(bytes).unwrap().next_offset()
}

fn from_scratch(batches: &[Bytes]) -> States {
    let mut states = States::new();
    batches.iter().for_each(|bytes| follow(&mut states, bytes));
    states
}

fn split(mut rest: Bytes) -> Vec<Bytes> {
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let size = BatchHeader::parse(&rest).unwrap().size as usize;
        batches.push(rest.split_to(size));
    }
    batches
}

impl Rig {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let journal_config = JournalConfig {
            files: 3 + random.below(3) as usize,
            file_bytes: 8192 << random.below(2),
            round_bytes_max: 8192,
            round_bytes_enough: 8192,
            linger_us: 0,
            append_bytes_max: 2000,
            write_back_bytes: 300 << random.below(5),
            write_back_bytes_max: 1500,
            staged_bytes_max: 1 << 20,
        };
        let disk = MemoryDisk::new();
        let mut dir = LogDir::open(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
        dir.begin().unwrap();
        for slot in 0..journal_config.files {
            let file = disk.open(&slot_path(slot), OpenMode::Create).unwrap();
            file.set_len(journal_config.file_bytes.into()).unwrap();
            file.sync().unwrap();
        }
        disk.sync_dir(Path::new(ROOT)).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let empty = recover(&disk, Path::new(ROOT), journal_config.files, DIRECTORY).unwrap();
        let segment_bytes = [600, 1500, 4000, 20_000][random.below(4) as usize];
        let config = LogConfig { segment_bytes, index_interval_bytes: 300, ..LogConfig::default() };
        let part = |at| Part {
            name: name(at),
            log: Some(Log::create(place_of(at), Arc::new(config.clone()), Offset(0))),
            waiting: None,
            written: Vec::new(),
            acknowledged: Offset(0),
            rounds: Vec::new(),
            ticket: None,
            laying: None,
            direct: None,
            states: States::new(),
        };
        let mut rig = Self {
            files: FilePool::new(Arc::new(disk.clone()), 100),
            memory: TailMemory::new(4 << 20),
            journal: Journal::open(journal_config.clone(), &empty, random.below(u64::MAX)).unwrap(),
            parts: (0..PARTITIONS).map(part).collect(),
            disk,
            dir,
            random,
            journal_config,
            slots: Vec::new(),
            queue: VecDeque::new(),
            config: Arc::new(config),
            is_even: seed.is_multiple_of(2),
            writes_back_early: seed % 4 < 2,
            is_hasty: false,
        };
        rig.begin();
        rig
    }

    fn begin(&mut self) {
        for slot in self.journal_config.files..self.journal.files() {
            let file = self.disk.open(&slot_path(slot), OpenMode::Create).unwrap();
            file.set_len(self.journal_config.file_bytes.into()).unwrap();
            file.sync().unwrap();
        }
        self.disk.sync_dir(Path::new(ROOT)).unwrap();
        let open = |slot| self.disk.open(&slot_path(slot), OpenMode::Write).unwrap();
        self.slots = (0..self.journal.files()).map(open).collect();
    }

    fn log(&mut self, at: usize) -> &mut Log {
        self.parts[at].log.as_mut().expect("it is open")
    }

    fn step(&mut self) -> Result<(), Cut> {
        let at = self.random.below(PARTITIONS as u64) as usize;
        match self.random.below(40) {
            0..12 => self.append(at)?,
            12..20 => self.write_round()?,
            20..24 => self.order_write_backs()?,
            24..28 => self.sync_ticket(at),
            28..31 => self.answer_ticket(at),
            31 => self.close_segment(at)?,
            32 | 33 => self.checkpoint(at)?,
            34 => self.large(at)?,
            35 => self.write_back(at, Offset(i64::MAX))?,
            36 => self.take_ticket(at),
            37 => self.abort(at),
            38 => self.settle_disk(),
            _ => self.place_ranges(),
        }
        if self.random.below(120) == 0 { Err(Cut) } else { Ok(()) }
    }

    fn batch(&mut self, at: usize, value_bytes: u64) -> Bytes {
        let base_offset = self.log(at).end();
        let producer = self.random.below(3) as i64;
        let last = self.parts[at].states.get(&producer).map_or(-1, |(sequence, _)| *sequence);
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset,
            leader_epoch: LeaderEpoch((base_offset.get() / 30) as i32),
            producer_id: ProducerId(producer),
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(last + 1),
            ..BatchOptions::default()
        });
        let size = if self.is_even { 100 } else { 1 + self.random.below(value_bytes) };
        let value = vec![self.random.below(256) as u8; size as usize];
        builder.push(TimestampMs(1000 + base_offset.get()), None, Some(&value), &[]);
        let bytes = builder.build().unwrap();
        follow(&mut self.parts[at].states, &bytes);
        self.parts[at].written.push(bytes.clone());
        bytes
    }

    fn append(&mut self, at: usize) -> Result<(), Cut> {
        self.open(at)?;
        if self.parts[at].direct.is_some() {
            return self.large(at);
        }
        let due = self.log(at).is_on_disk() && {
            let log = self.log(at);
            let bytes = log.staged_bytes() as u32 + 200;
            log.roll_is_due(bytes, log.end().plus(1), NOW, NOW)
        };
        if due {
            self.close_segment(at)?;
        }
        let bytes = self.batch(at, 200);
        let Self { parts, memory, .. } = self;
        let staged = parts[at].log.as_mut().unwrap().stage(memory, &[bytes.into()]).unwrap();
        for piece in staged.records {
            let records = AppendBytes::Whole(piece.bytes);
            let kind = EntryKind::Records { from: piece.from, end: piece.end, records };
            self.hand_in(at, kind, piece.end);
        }
        if self.writes_back_early && self.random.below(3) == 0 {
            self.write_back(at, Offset(i64::MAX))?;
        }
        Ok(())
    }

    fn hand_in(&mut self, at: usize, kind: EntryKind, end: Offset) {
        let partition = Arc::clone(&self.parts[at].name);
        self.queue.push_back((at, Entry { partition, leader_epoch: LeaderEpoch(1), kind }, end));
    }

    /// What has room goes into the round.
    fn place_ranges(&mut self) {
        while let Some((at, entry, end)) = self.queue.pop_front() {
            if matches!(entry.kind, EntryKind::Range { .. }) {
                let part = &self.parts[at];
                if self.journal.has(&part.name)
                    && part.laying.is_none()
                    && let Some(write_back) = self.journal.take_write_back(&part.name)
                {
                    self.journal.written_back(&write_back.ticket);
                }
                if self.journal.has(&self.parts[at].name) {
                    return self.queue.push_front((at, entry, end));
                }
            }
            match self.journal.submit(entry.clone()) {
                Ok(round) => self.parts[at].rounds.push((round, end)),
                Err(_) => return self.queue.push_front((at, entry, end)),
            }
        }
    }

    fn write_round(&mut self) -> Result<(), Cut> {
        self.place_ranges();
        let Take::Write(round) = self.journal.take_round(Micros(0)) else { return Ok(()) };
        let file = Arc::clone(&self.slots[round.slot]);
        file.write_at(round.position, &[round.bytes()]).unwrap();
        if self.random.below(10) == 0 {
            return Err(Cut);
        }
        file.sync().unwrap();
        for part in &mut self.parts {
            while part.rounds.first().is_some_and(|(number, _)| *number <= round.number) {
                part.acknowledged = part.rounds.remove(0).1;
            }
            if part.log.as_ref().is_some_and(|log| log.end() == part.acknowledged) {
                part.direct = None;
            }
        }
        self.journal.round_durable(round, Micros(0));
        while self.journal.shrink() {
            self.slots.pop();
            self.disk.remove_file(&slot_path(self.slots.len())).unwrap();
        }
        if self.random.below(30) == 0 { Err(Cut) } else { Ok(()) }
    }

    fn order_write_backs(&mut self) -> Result<(), Cut> {
        while let Some(write_back) = self.journal.next_write_back() {
            let at = write_back.partition.topic_partition.partition.get() as usize;
            self.open(at)?;
            let end = write_back.ops.iter().map(|op| match op {
                WriteBackOp::Append { end, .. } => *end,
                _ => Offset::NONE,
            });
            let end = end.max().unwrap_or(Offset::ZERO);
            self.write_back(at, end)?;
            self.parts[at].laying = Some((write_back.ticket, end));
            if self.random.below(4) == 0 {
                self.close_segment(at)?;
            }
            self.settle(at);
            if self.random.below(3) == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    fn write_back(&mut self, at: usize, end: Offset) -> Result<(), Cut> {
        self.open(at)?;
        let Self { parts, files, .. } = self;
        let log = parts[at].log.as_mut().unwrap();
        let written_back = log.write_back(files, end.min(log.end()), NOW).unwrap();
        if written_back.bytes > 0 {
            self.extend(at, written_back.end, written_back.rolled);
        }
        Ok(())
    }

    fn extend(&mut self, at: usize, end: Offset, rolled: Option<Offset>) {
        if let Some(flying) = &mut self.parts[at].ticket {
            flying.is_extended &= rolled.is_none();
            if flying.is_extended && !flying.is_synced {
                flying.covers = end;
            }
        }
    }

    fn settle(&mut self, at: usize) {
        let synced = self.log(at).recovery_point();
        if let Some((ticket, _)) = self.parts[at].laying.take_if(|(_, end)| *end <= synced) {
            self.journal.written_back(&ticket);
        }
        self.take_ticket(at);
    }

    fn take_ticket(&mut self, at: usize) {
        let part = &mut self.parts[at];
        if let (Some(log), None) = (&mut part.log, &part.ticket)
            && let Some(dirty) = log.take_dirty()
        {
            let covers = dirty.ticket.end();
            part.ticket = Some(Flying { dirty, covers, is_extended: true, is_synced: false });
        }
    }

    /// The committer's part: what is written after that may not be covered.
    fn sync_ticket(&mut self, at: usize) {
        self.take_ticket(at);
        if let Some(flying) = &mut self.parts[at].ticket {
            flying.dirty.sync(&self.disk, None).unwrap();
            flying.is_synced = true;
        }
    }

    fn answer_ticket(&mut self, at: usize) {
        let Some(flying) = self.parts[at].ticket.take_if(|flying| flying.is_synced) else { return };
        let log = self.log(at);
        let synced = log.mark_synced_to(flying.dirty.ticket, flying.covers);
        if let Some(ranged) = self.parts[at].direct.filter(|ranged| *ranged < synced) {
            self.parts[at].direct = Some(synced);
            self.hand_in(at, EntryKind::Range { from: ranged, end: synced }, synced);
        }
        self.settle(at);
    }

    fn large(&mut self, at: usize) -> Result<(), Cut> {
        self.write_back(at, Offset(i64::MAX))?;
        let from = self.log(at).end();
        let bytes = self.batch(at, 1200.min(u64::from(self.config.segment_bytes) - 200));
        let Self { parts, files, memory, .. } = self;
        let log = parts[at].log.as_mut().unwrap();
        let appended = log.append_kept(files, memory, &[bytes.into()], NOW).unwrap();
        self.extend(at, appended.end, appended.rolled);
        self.parts[at].direct.get_or_insert(from);
        self.take_ticket(at);
        Ok(())
    }

    /// Also writes back what is not durable.
    fn close_segment(&mut self, at: usize) -> Result<(), Cut> {
        self.write_back(at, Offset(i64::MAX))?;
        let Self { parts, files, .. } = self;
        let part = &mut parts[at];
        let entry = |(id, (sequence, last_offset)): (&i64, &(i32, Offset))| ProducerEntry {
            producer_id: ProducerId(*id),
            epoch: ProducerEpoch(0),
            last_sequence: Sequence(*sequence),
            last_offset: *last_offset,
            offset_delta: 0,
            timestamp: NOW,
            coordinator_epoch: CoordinatorEpoch(0),
            current_txn_first_offset: Offset::NONE,
        };
        let entries: Vec<ProducerEntry> = part.states.iter().map(entry).collect();
        let log = part.log.as_mut().unwrap();
        let end = log.end();
        log.write_producer_snapshot(files, end, &entries).unwrap();
        if let Some(flying) = &mut part.ticket {
            flying.is_extended = false;
        }
        Ok(())
    }

    /// Only that it dirties another file than the segment's matters here.
    fn abort(&mut self, at: usize) {
        let Self { parts, files, .. } = self;
        let Some(log) = parts[at].log.as_mut().filter(|log| log.end() > log.start()) else { return };
        let marker = log.end().plus(-1);
        let first_offset = marker.plus(-1).max(Offset(0));
        let aborted = AbortedTransaction {
            producer_id: ProducerId(1),
            first_offset,
            last_offset: marker,
            last_stable_offset: marker,
        };
        log.append_aborted(files, aborted).unwrap();
    }

    fn checkpoint(&mut self, at: usize) -> Result<(), Cut> {
        self.open(at)?;
        let Self { parts, files, dir, .. } = self;
        let point = parts[at].log.as_mut().unwrap().checkpoint(files).unwrap();
        dir.set_recovery_point(parts[at].name.topic_partition.clone(), point);
        dir.write_checkpoints().unwrap();
        Ok(())
    }

    /// What the shell does in the background after an unclean stop.
    fn settle_disk(&mut self) {
        if self.random.below(4) == 0 {
            self.disk.sync_all().unwrap();
            self.dir.note_settled();
        }
    }

    /// All is written back, synced and vouched for, and the journal holds nothing.
    fn rest(&mut self) -> Result<(), Cut> {
        for _ in 0..3 {
            self.write_round()?;
            self.order_write_backs()?;
            for at in 0..PARTITIONS {
                self.write_back(at, Offset(i64::MAX))?;
                self.sync_ticket(at);
                self.answer_ticket(at);
                self.checkpoint(at)?;
            }
        }
        Ok(())
    }

    /// As the partition's owner opens it. Now and then the power goes meanwhile.
    fn open(&mut self, at: usize) -> Result<(), Cut> {
        if self.parts[at].log.is_some() {
            return Ok(());
        }
        let waiting = self.parts[at].waiting.clone();
        let mut from = self.dir.open_from(&self.parts[at].name.topic_partition);
        let synced = waiting.as_ref().map_or(Offset::ZERO, PartitionReplay::synced_below);
        from.recovery_point = from.recovery_point.max(synced);
        let opened = Log::open(&mut self.files, place_of(at), Arc::clone(&self.config), from, NOW);
        let (mut log, _) = opened.unwrap_or_else(|error| panic!("partition {at}: {error}"));
        if self.random.below(if self.is_hasty { 2 } else { 20 }) == 0 {
            return Err(Cut);
        }
        if let Some(dirty) = log.take_dirty() {
            dirty.sync(&self.disk, None).unwrap();
            log.mark_synced(dirty.ticket);
        }
        let steps = waiting.map_or(Vec::new(), |waiting| waiting.steps(log.end()).unwrap());
        let records = steps.into_iter().map(|step| match step {
            WriteBackOp::Append { records, .. } => records,
            _ => panic!("what waits only appends"),
        });
        log.stage(&mut TailMemory::default(), &records.collect::<Vec<_>>()).unwrap();
        self.check(at, &mut log);
        let part = &mut self.parts[at];
        part.acknowledged = log.end();
        part.waiting = None;
        part.log = Some(log);
        Ok(())
    }

    fn check(&mut self, at: usize, log: &mut Log) {
        let (part, end) = (&mut self.parts[at], log.end());
        assert!(end >= part.acknowledged, "partition {at} ends at {end}, not {}", part.acknowledged);
        part.written.retain(|bytes| end_of(bytes) <= end);
        let (mut found, mut next) = (Vec::new(), log.start());
        while next < end {
            let read = log.read(&mut self.files, next, 900, end, true).unwrap();
            found.extend(split(read.records));
            next = read.next_offset;
        }
        assert!(found == part.written, "partition {at}: other batches than were written");
        let (from, entries) = log
            .read_producer_snapshot(&mut self.files, end)
            .unwrap()
            .unwrap_or((log.first_segment_base(), Vec::new()));
        let of_entry =
            |entry: &ProducerEntry| (entry.producer_id.get(), (entry.last_sequence.get(), entry.last_offset));
        let mut states: States = entries.iter().map(of_entry).collect();
        log.scan_headers(&mut self.files, from, end, &mut |bytes| follow(&mut states, &bytes)).unwrap();
        assert_eq!(
            states,
            from_scratch(&part.written),
            "partition {at}, producers after a snapshot at {from}"
        );
        part.states = states;
    }

    fn crash(&mut self) {
        let by_power = if self.is_hasty { 4 } else { 2 };
        if self.random.below(by_power) == 0 {
            self.disk.crash(self.random.below(u64::MAX));
        } else {
            self.disk.kill();
        }
        self.files = FilePool::new(Arc::new(self.disk.clone()), 100);
        self.dir = LogDir::open(Arc::new(self.disk.clone()), Path::new(ROOT)).unwrap();
        self.dir.begin().unwrap();
        self.queue.clear();
        self.is_hasty = false;
        let mut recovered =
            recover(&self.disk, Path::new(ROOT), self.journal_config.files, DIRECTORY).unwrap();
        recovered.sync_files(&self.disk, Path::new(ROOT)).unwrap();
        for part in &mut self.parts {
            part.log = None;
            part.rounds.clear();
            (part.ticket, part.laying, part.direct) = (None, None, None);
            part.waiting = recovered.partitions.iter().find(|replay| replay.partition == part.name).cloned();
        }
        loop {
            let opening = self.random.below(u64::MAX);
            match Journal::open(self.journal_config.clone(), &recovered, opening) {
                Ok(journal) => break self.journal = journal,
                Err(JournalError::NoRoom) => self.write_back_everything(),
                Err(error) => panic!("{error}"),
            }
            recovered.keep(|_| false);
        }
        self.begin();
    }

    /// No file is free to go on in.
    fn write_back_everything(&mut self) {
        for at in 0..PARTITIONS {
            while self.open(at).is_err() {}
            let _ = self.write_back(at, Offset(i64::MAX));
            self.sync_ticket(at);
            self.answer_ticket(at);
            self.sync_ticket(at);
            self.answer_ticket(at);
        }
    }
}

/// Lives are long, short, or so short that a start is killed while it opens the first log.
fn story(seed: u64) {
    let mut rig = Rig::new(seed);
    for _ in 0..9 {
        let steps = match rig.random.below(8) {
            0 | 1 => rig.random.below(12),
            2 | 3 => {
                rig.is_hasty = true;
                rig.random.below(40)
            }
            _ => 150,
        };
        let _ = (0..steps).try_for_each(|_| rig.step());
        if rig.random.below(3) == 0 {
            let _ = rig.rest().and_then(|()| {
                let steps = rig.random.below(12);
                (0..steps).try_for_each(|_| rig.step())
            });
        }
        rig.crash();
    }
    for at in 0..PARTITIONS {
        while rig.open(at).is_err() {
            rig.crash();
        }
    }
}

fn told(seed: u64) {
    if let Err(panic) = std::panic::catch_unwind(|| story(seed)) {
        println!("seed {seed}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn what_is_durable_is_there_once_after_several_crashes() {
    (0..600).for_each(told);
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_several_lives_are_noticed() {
    barnabas_base::planted::hunt("chain", |seed| {
        story(seed);
        Ok(())
    });
}

#[test]
#[ignore = "a minute: run with --release and --ignored"]
fn what_is_durable_is_there_once_after_several_crashes_of_very_many() {
    (0..60_000).for_each(told);
}
