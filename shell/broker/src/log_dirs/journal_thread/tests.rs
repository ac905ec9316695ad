use super::*;
use crate::mailbox::{Inbox, Mailbox, Report};
use crate::mailbox::{PartitionKey, WriteBackOrder};
use barnabas_base::Offset;
use barnabas_base::{DirectoryId, LeaderEpoch, PartitionIndex, TimestampMs, TopicPartition, Uuid};
use barnabas_metrics::Meter;
use barnabas_storage::journal::{JournalConfig, Recovered, recover, slot_files};
use barnabas_storage::{
    Disk, DiskError, DiskErrorKind, DiskFile, Faults, MemoryDisk, OpenMode, StorageError,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::path::Path;
use std::sync::atomic::AtomicU32;

const ROOT: &str = "/data";
const DIRECTORY: DirectoryId = Uuid([7; 16]);
const FILES: usize = 3;

/// The journal's files on a disk that fails on demand.
struct MemoryJournal(MemoryDisk);

struct MemoryFiles(Vec<Arc<dyn DiskFile>>);

impl JournalDisk for MemoryJournal {
    fn open(&self, dir: &Path, files: usize, file_bytes: u64) -> Result<Box<dyn RoundFiles>, DiskError> {
        let make = |slot| {
            let path = dir.join(barnabas_storage::journal::slot_file_name(slot));
            let file = self.0.open(&path, OpenMode::Create)?;
            file.set_len(file_bytes)?;
            file.sync()?;
            Ok(file)
        };
        let files = (0..files).map(make).collect::<Result<_, DiskError>>()?;
        self.0.sync_dir(dir)?;
        Ok(Box::new(MemoryFiles(files)))
    }
}

/// A disk without room for the journal's files.
struct FullJournal;

impl JournalDisk for FullJournal {
    fn open(&self, dir: &Path, _: usize, _: u64) -> Result<Box<dyn RoundFiles>, DiskError> {
        Err(DiskError::new("make", dir, DiskErrorKind::Full))
    }
}

impl RoundFiles for MemoryFiles {
    fn write_durable(&mut self, slot: usize, position: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.0[slot].write_at(position, &[bytes])?;
        self.0[slot].sync()
    }

    fn forget_last(&mut self) {
        self.0.pop();
    }
}

struct Rig {
    disk: MemoryDisk,
    journal: JournalHandle,
    inbox: Inbox,
    thread: JoinHandle<()>,
    failures: Arc<AtomicU32>,
    /// Reports that were taken from the inbox and not looked at.
    heard: Vec<Report>,
}

fn config() -> JournalConfig {
    JournalConfig {
        files: FILES,
        file_bytes: 64 << 10,
        round_bytes_max: 64 << 10,
        round_bytes_enough: 64 << 10,
        write_back_bytes: 8 << 10,
        write_back_bytes_max: 8 << 10,
        append_bytes_max: 16 << 10,
        staged_bytes_max: 1 << 20,
        ..JournalConfig::default()
    }
}

fn parts(
    disk: &MemoryDisk,
    files: Box<dyn JournalDisk>,
    mailbox: Mailbox,
    failures: &Arc<AtomicU32>,
) -> JournalParts {
    let counted = failures.clone();
    JournalParts {
        directory: 0,
        path: Path::new(ROOT).into(),
        id: DIRECTORY,
        disk: Arc::new(disk.clone()),
        files,
        config: config(),
        recovered: None,
        opening: 1,
        workers: vec![mailbox],
        meter: Arc::<Meter>::default(),
        is_online: Box::new(|| true),
        full: Box::new(|_: &StorageError| {}),
        failed: Box::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    }
}

impl Rig {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        disk.create_dir(Path::new(ROOT)).expect("a directory");
        Self::on(disk)
    }

    fn on(disk: MemoryDisk) -> Self {
        let (mailbox, inbox) = Mailbox::new();
        let failures = Arc::new(AtomicU32::new(0));
        let journal = JournalHandle::new();
        let parts = parts(&disk, Box::new(MemoryJournal(disk.clone())), mailbox, &failures);
        let thread = journal.start(journal.prepare(parts).expect("files")).expect("a thread");
        Self { disk, journal, inbox, thread, failures, heard: Vec::new() }
    }

    fn submit(&self, entries: Vec<Entry>) {
        self.journal.submit(&mut entries.into_iter().collect());
    }

    /// The next report that `wanted` takes; panics after a while.
    fn wait<T>(&mut self, mut wanted: impl FnMut(&mut Report) -> Option<T>) -> T {
        for _ in 0..5_000 {
            let mut reports = Vec::new();
            self.inbox.reports.take(&mut reports);
            self.heard.append(&mut reports);
            for at in 0..self.heard.len() {
                if let Some(found) = wanted(&mut self.heard[at]) {
                    self.heard.remove(at);
                    return found;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("nothing was reported; heard {:?}", self.heard)
    }

    fn durable(&mut self) -> Vec<(PartitionKey, Offset)> {
        self.wait(|report| match report {
            Report::Durable(_, ends, _) => Some(std::mem::take(ends)),
            _ => None,
        })
    }

    /// Waits until the partition is durable up to `end`, writing back nothing.
    fn durable_up_to(&mut self, partition: i32, end: i64) {
        while !self.durable().contains(&(key(partition), Offset(end))) {}
    }

    /// What is to be written back next, as the worker hears it.
    fn orders(&mut self) -> Vec<WriteBackOrder> {
        self.wait(|report| match report {
            Report::WriteBack(orders) => Some(std::mem::take(orders)),
            _ => None,
        })
    }

    /// What a kill between two rounds leaves. Under the writer's lock: a scan follows the rounds to the newest, then
    /// looks for later ones. One that is written between the two would pass for a sign of damage.
    fn recovered(&self) -> Recovered {
        let _writer = self.journal.shared.lock_writer();
        recover(&self.disk, Path::new(ROOT), FILES, DIRECTORY).expect("a journal")
    }

    fn stop(self) -> MemoryDisk {
        self.journal.stop();
        self.thread.join().expect("the journal's thread");
        self.disk
    }
}

fn name(partition: i32) -> Arc<JournalPartition> {
    let topic_partition = TopicPartition::new("t", PartitionIndex(partition));
    Arc::new(JournalPartition { topic_id: Uuid([1; 16]), topic_partition })
}

fn key(partition: i32) -> PartitionKey {
    PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
}

/// One record of `bytes` at `from`.
fn records(partition: i32, from: i64, bytes: usize) -> Entry {
    let options = BatchOptions { base_offset: Offset(from), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    builder.push(TimestampMs(1000), None, Some(&vec![b'x'; bytes]), &[]);
    let records = AppendBytes::Whole(builder.build().expect("a batch"));
    let kind = EntryKind::Records { from: Offset(from), end: Offset(from + 1), records };
    Entry { partition: name(partition), leader_epoch: LeaderEpoch(1), kind }
}

#[test]
fn a_round_makes_all_that_was_handed_in_durable_and_nothing_is_made_before() {
    let mut rig = Rig::new();
    assert!(slot_files(&rig.disk, Path::new(ROOT)).expect("names").is_empty());
    rig.submit(vec![records(0, 0, 10), records(1, 0, 10), records(0, 1, 10)]);
    let mut ends = rig.durable();
    ends.sort_unstable();
    assert_eq!(ends, [(key(0), Offset(2)), (key(1), Offset(1))]);
    // A crash now: both are replayed.
    let recovered = rig.recovered();
    assert_eq!(recovered.partitions.len(), 2);
    rig.stop();
}

#[test]
fn removals_of_what_left_are_durable_before_the_thread_starts() {
    let mut rig = Rig::new();
    rig.submit(vec![records(0, 0, 10), records(1, 0, 10)]);
    rig.durable_up_to(1, 1);
    let mut recovered = rig.recovered();
    let disk = rig.disk.clone();
    recovered.note_left(|replay| replay.partition == name(0));
    let (mailbox, inbox) = Mailbox::new();
    let resume = |files: Box<dyn JournalDisk>, recovered: &Recovered| {
        let parts = parts(&disk, files, mailbox.clone(), &Arc::default());
        JournalParts { recovered: Some(recovered.clone()), opening: 2, ..parts }
    };
    // What is left in the journal is replayed instead; what left has no other place than the journal.
    let mut left_alone = recovered.clone();
    left_alone.keep(|_| false);
    for without_room in [&recovered, &left_alone] {
        let refused = JournalHandle::new().prepare(resume(Box::new(FullJournal), without_room));
        assert!(matches!(refused, Err(StartError::NoRoom)));
    }
    let journal = JournalHandle::new();
    let prepared = journal.prepare(resume(Box::new(MemoryJournal(disk.clone())), &recovered));
    let thread = journal.start(prepared.expect("files")).expect("a thread");
    let mut reports = Vec::new();
    inbox.reports.take(&mut reports);
    let is_removal =
        |report: &Report| matches!(report, Report::Durable(0, ends, _) if *ends == [(key(0), Offset::NONE)]);
    assert!(reports.iter().any(is_removal), "{reports:?}");
    journal.stop();
    thread.join().expect("the journal's thread");
}

#[test]
fn after_a_failed_write_nothing_is_called_durable_any_more() {
    let mut rig = Rig::new();
    rig.submit(vec![records(0, 0, 10)]);
    rig.durable_up_to(0, 1);
    rig.disk.set_faults(Faults { syncs_until_error: Some(0), ..Faults::default() });
    rig.submit(vec![records(0, 1, 10)]);
    rig.wait(|report| matches!(report, Report::DirectoryFailed(0)).then_some(()));
    // A write that would succeed again says nothing.
    rig.disk.set_faults(Faults::default());
    rig.submit(vec![records(0, 1, 10)]);
    let failures = rig.failures.clone();
    let reports = rig.inbox.reports.clone();
    rig.stop();
    let mut left = Vec::new();
    reports.take(&mut left);
    assert!(!left.iter().any(|report| matches!(report, Report::Durable(..))), "{left:?}");
    assert_eq!(failures.load(Ordering::SeqCst), 1);
}

#[test]
fn a_full_ring_holds_appends_back_until_something_is_written_back() {
    let rig = Rig::new();
    // More than the ring, the queue and a round can hold together.
    let entry_bytes = 15 << 10;
    let count = (QUEUE_BYTES_MAX as i64 + (FILES as i64 * (64 << 10))) / entry_bytes + 40;
    for at in 0..count {
        rig.submit(vec![records((at % 8) as i32, at / 8, entry_bytes as usize)]);
    }
    // Nothing is written back, so the ring is full in the end, and workers are told to wait.
    std::thread::sleep(Duration::from_millis(100));
    assert!(rig.journal.is_over());
    // Written back as ordered, everything becomes durable, and workers hear of the room.
    let (mut last, mut room) = ([0; 8], false);
    while last.iter().sum::<i64>() < count {
        let mut reports = Vec::new();
        rig.inbox.reports.take(&mut reports);
        for report in reports {
            match report {
                Report::Durable(_, ends, _) => {
                    for (key, end) in ends {
                        last[key.partition.get() as usize] = end.get();
                    }
                }
                Report::WriteBack(orders) => {
                    let mut written_back = orders.into_iter().map(|order| order.partition).collect();
                    rig.journal.written_back(&mut written_back);
                }
                Report::Room => room = true,
                report => panic!("{report:?}"),
            }
        }
    }
    assert!(room && !rig.journal.is_over());
    rig.stop();
}

#[test]
fn where_room_runs_out_everything_is_written_back_and_what_comes_then() {
    let mut rig = Rig::new();
    rig.submit(vec![records(1, 0, 500), records(2, 0, 500)]);
    rig.durable_up_to(1, 1);
    // So little waits in the journal as a rule, and the thread sleeps.
    rig.journal.write_back_all(true);
    let mut ordered: Vec<_> = rig.orders();
    while ordered.len() < 2 {
        ordered.extend(rig.orders());
    }
    rig.journal.written_back(&mut ordered.into_iter().map(|order| order.partition).collect());
    rig.submit(vec![records(1, 1, 500)]);
    assert_eq!(rig.orders()[0].end, Offset(2));
    rig.stop();
}

#[test]
fn a_clean_stop_leaves_no_file() {
    let mut rig = Rig::new();
    rig.submit((0..20).map(|at| records(at % 3, (at / 3).into(), 3000)).collect());
    rig.durable_up_to(1, 7);
    // Ordered, and not answered: at a clean stop all of it is in segments.
    assert!(!rig.orders().is_empty());
    let disk = rig.stop();
    assert!(slot_files(&disk, Path::new(ROOT)).expect("names").is_empty());
    let recovered = recover(&disk, Path::new(ROOT), FILES, DIRECTORY).expect("no journal");
    assert!(recovered.is_empty());
}

#[test]
fn a_large_append_is_durable_behind_all_that_came_before_it() {
    let mut rig = Rig::new();
    rig.submit(vec![records(0, 0, 10)]);
    // The worker has written back and synced everything below 2, the large append included; the journal was not told
    // yet.
    let kind = EntryKind::Range { from: Offset(1), end: Offset(2) };
    let range = Entry { partition: name(0), leader_epoch: LeaderEpoch(1), kind };
    rig.submit(vec![range, records(1, 0, 10)]);
    rig.durable_up_to(0, 2);
    let recovered = rig.recovered();
    let replay =
        recovered.partitions.iter().find(|replay| replay.partition == name(0)).expect("the partition");
    assert_eq!(replay.synced_end, Some(Offset(2)));
    assert!(replay.items.is_empty());
    rig.stop();
}

/// Lets worker 0 hand in rounds by itself until it would write the next one. Returns the offset behind them.
fn alone(rig: &mut Rig, partition: i32) -> i64 {
    for at in 0..8 {
        rig.journal.submit_or_write(&mut vec![records(partition, at, 10)], 0);
        rig.durable_up_to(partition, at + 1);
        rig.parked();
    }
    8
}

impl Rig {
    /// Waits until the thread sleeps.
    fn parked(&self) {
        while !self.journal.shared.lock().is_parked {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn submit_or_write(&self, entry: Entry, worker: usize) {
        self.journal.submit_or_write(&mut vec![entry], worker);
    }

    /// What has been reported as durable by now.
    fn durable_by_now(&self) -> Vec<(PartitionKey, Offset)> {
        let mut reports = Vec::new();
        self.inbox.reports.take(&mut reports);
        let ends = reports.into_iter().filter_map(|report| match report {
            Report::Durable(_, ends, _) => Some(ends),
            _ => None,
        });
        ends.flatten().collect()
    }
}

#[test]
fn a_worker_that_is_alone_writes_and_what_it_wrote_is_durable_when_it_goes_on() {
    let mut rig = Rig::new();
    let next = alone(&mut rig, 0);
    rig.submit_or_write(records(0, next, 10), 0);
    assert_eq!(rig.durable_by_now(), [(key(0), Offset(next + 1))]);
    // Another worker at another time is alone as well.
    rig.submit_or_write(records(1, 0, 10), 1);
    assert_eq!(rig.durable_by_now(), [(key(1), Offset(1))]);
    // What is large is the thread's.
    rig.submit(vec![records(1, 1, 10)]);
    rig.durable_up_to(1, 2);
    let recovered = rig.recovered();
    let lens: Vec<usize> = recovered.partitions.iter().map(|replay| replay.items.len()).collect();
    assert_eq!(lens, [9, 2]);
    assert!(slot_files(&rig.stop(), Path::new(ROOT)).expect("names").is_empty());
}

#[test]
fn a_write_that_fails_on_a_workers_thread_is_as_final() {
    let mut rig = Rig::new();
    let next = alone(&mut rig, 0);
    rig.disk.set_faults(Faults { syncs_until_error: Some(0), ..Faults::default() });
    rig.submit_or_write(records(0, next, 10), 0);
    let mut reports = Vec::new();
    rig.inbox.reports.take(&mut reports);
    assert!(matches!(reports[..], [Report::DirectoryFailed(0)]), "{reports:?}");
    rig.disk.set_faults(Faults::default());
    rig.submit_or_write(records(0, next, 10), 0);
    let (failures, reports) = (rig.failures.clone(), rig.inbox.reports.clone());
    // The thread has ended by itself.
    rig.thread.join().expect("the journal's thread");
    let mut left = Vec::new();
    reports.take(&mut left);
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(failures.load(Ordering::SeqCst), 1);
}

#[test]
fn workers_and_the_thread_write_in_turn_and_nothing_is_lost_or_changes_places() {
    const EACH: i64 = 600;
    let rig = Rig::new();
    let reports = rig.inbox.reports.clone();
    let (mut last, mut heard) = ([0; 3], 0);
    std::thread::scope(|scope| {
        for worker in 0..3_u64 {
            let journal = rig.journal.clone();
            scope.spawn(move || {
                for at in 0..EACH {
                    journal.submit_or_write(&mut vec![records(worker as i32, at, 100)], worker as usize);
                    // Stretches in which each is alone, and others in which they come at once.
                    if (at / 50 + worker as i64) % 3 != 0 {
                        std::thread::sleep(Duration::from_micros(200 * (at as u64 % 4)));
                    }
                }
            });
        }
        while last.iter().any(|end| *end < EACH) {
            let mut taken = Vec::new();
            reports.take(&mut taken);
            heard += taken.len();
            if heard >= 32 {
                // Whichever threads wrote: each round on disk has all those before it.
                rig.recovered();
                heard = 0;
            }
            for report in taken {
                match report {
                    Report::Durable(_, ends, _) => {
                        for (key, end) in ends {
                            let known = &mut last[key.partition.get() as usize];
                            assert!(end.get() > *known, "{end:?} after {known}");
                            *known = end.get();
                        }
                    }
                    Report::WriteBack(orders) => {
                        let mut written_back = orders.into_iter().map(|order| order.partition).collect();
                        rig.journal.written_back(&mut written_back);
                    }
                    Report::Room => {}
                    report => panic!("{report:?}"),
                }
            }
        }
    });
    // What was not written back is there in its order.
    let recovered = rig.recovered();
    for replay in &recovered.partitions {
        let ends: Vec<i64> = replay.items.iter().map(|item| item.end.get()).collect();
        assert!(ends.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{ends:?}");
        assert_eq!(ends.last(), Some(&EACH));
    }
    rig.stop();
}
