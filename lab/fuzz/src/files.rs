//! What lies on disk: every file of a log and of a log directory, replaced by hostile bytes, must be found out or read
//! right.
//!
//! Held after every open that succeeds: what is read after an unclean open has right checksums and rising offsets, and
//! the log takes new records and gives them back.

use barnabas_base::{Offset, PartitionIndex, TimestampMs, TopicPartition, Uuid};
use barnabas_storage::{
    AppendBytes, Disk, FilePool, Log, LogConfig, LogDir, LogPlace, MemoryDisk, OpenFrom, OpenMode,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Entry, entries};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
/// The files of a log, in the order of the choice byte.
const LOG_FILES: &[&str] = &[
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000030.snapshot",
    "leader-epoch-checkpoint",
    "partition.metadata",
];
/// The files of a log directory.
const DIR_FILES: &[&str] = &[
    "meta.properties",
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
];

fn place() -> LogPlace {
    LogPlace {
        root: Arc::from(Path::new("/logs")),
        topic_partition: TopicPartition::new("hostile", PartitionIndex(0)),
        topic_id: Uuid([7; 16]),
        future: None,
    }
}

fn batch(base: Offset, records: i32) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..Default::default() });
    for number in 0..records {
        builder.push(NOW, Some(&number.to_be_bytes()), Some(b"some value"), &[]);
    }
    builder.build().expect("a small batch")
}

/// A log of three batches, on a disk of its own.
fn healthy(disk: &MemoryDisk) -> Result<(), barnabas_storage::StorageError> {
    let mut files = FilePool::new(Arc::new(disk.clone()), 8);
    let mut log = Log::create(place(), Arc::new(LogConfig::default()), Offset::ZERO);
    for base in [0, 10, 20] {
        log.append(&mut files, &[AppendBytes::Whole(batch(Offset(base), 10))], NOW)?;
    }
    log.close(&mut files).map(drop)
}

/// One file of a log replaced; the first byte chooses the file and what the checkpoints say.
pub fn log_file(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new("/logs")).expect("an empty disk takes a directory");
    healthy(&disk).expect("a healthy log can be made");
    let name = LOG_FILES[usize::from(choice & 7) % LOG_FILES.len()];
    let path = place().dir().join(name);
    if disk.contents(&path).is_none() {
        let made = disk.open(&path, OpenMode::Create);
        drop(made.expect("a file can be made"));
    }
    disk.corrupt(&path, |bytes| *bytes = rest.to_vec());
    let is_clean = choice & 8 != 0;
    let recovery_point = if choice & 16 == 0 { Offset::ZERO } else { Offset(20) };
    let from = OpenFrom { clean: is_clean, recovery_point, ..OpenFrom::default() };
    let mut files = FilePool::new(Arc::new(disk.clone()), 8);
    let Ok((mut log, _)) = Log::open(&mut files, place(), Arc::new(LogConfig::default()), from, NOW) else {
        return;
    };
    let is_checked = !is_clean && recovery_point == Offset::ZERO;
    let readable = read_all(&mut log, &mut files, is_checked);
    assert!(readable || !is_checked, "a log that was checked batch by batch cannot be read");
    write_on(&mut log, &mut files, readable);
}

fn read_all(log: &mut Log, files: &mut FilePool, is_checked: bool) -> bool {
    let (mut next, end) = (log.start(), log.end());
    while next < end {
        let Ok(read) = log.read(files, next, 1 << 16, end, true) else { return false };
        for entry in entries(read.records) {
            let Ok(Entry::Batch(batch)) = entry else { continue };
            assert!(
                !is_checked || batch.check_crc().is_ok(),
                "a batch that was checked has a wrong checksum"
            );
        }
        if read.next_offset <= next {
            return false;
        }
        next = read.next_offset;
    }
    true
}

fn write_on(log: &mut Log, files: &mut FilePool, is_readable: bool) {
    let base = log.end();
    if log.append(files, &[AppendBytes::Whole(batch(base, 3))], NOW).is_err() || !is_readable {
        return;
    }
    let read = log.read(files, base, 1 << 16, log.end(), true).expect("what was just written can be read");
    assert_eq!(read.next_offset, base.plus(3));
}

/// One file of a log directory.
pub fn directory_file(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let disk = MemoryDisk::new();
    let root = Path::new("/logs");
    disk.create_dir(root).expect("an empty disk takes a directory");
    let path = root.join(DIR_FILES[usize::from(*choice) % DIR_FILES.len()]);
    drop(disk.open(&path, OpenMode::Create).expect("a file can be made"));
    disk.corrupt(&path, |bytes| *bytes = rest.to_vec());
    drop(LogDir::open(Arc::new(disk), root));
}
