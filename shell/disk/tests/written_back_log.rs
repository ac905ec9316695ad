//! A log that grows in large pieces on a real file system: room is set aside ahead of them, and given back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicPartition, Uuid};
use barnabas_disk::LinuxDisk;
use barnabas_storage::{AppendBytes, FilePool, Log, LogConfig, LogPlace, OpenFrom, TailMemory};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;

const NOW: TimestampMs = TimestampMs(1_000_000);
/// A file's last block is not full, and its extents may need blocks of their own.
const SLACK_BYTES: u64 = 16 << 10;

struct Bench {
    root: PathBuf,
    files: FilePool,
    log: Log,
    direct_from: Option<usize>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 3_000_000, ..LogConfig::default() })
}

impl Bench {
    fn new(folder: &Path, name: &str) -> Self {
        let root = folder.join(format!("barnabas-written_back-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        let files = FilePool::new(Arc::new(LinuxDisk), 8);
        let log = Log::create(place(&root), config(), Offset(0));
        Self { root, files, log, direct_from: None }
    }

    fn sync(&mut self) {
        let dirty = self.log.take_dirty().unwrap();
        dirty.files.iter().for_each(|file| file.sync().unwrap());
        self.log.mark_synced(dirty.ticket);
    }

    /// Another process, after this one has ended without a word.
    fn reopen(&mut self) {
        self.files = FilePool::new(Arc::new(LinuxDisk), 8);
        self.files.set_direct_from(self.direct_from);
        let from = OpenFrom { recovery_point: self.log.recovery_point(), ..OpenFrom::default() };
        let (log, opened) = Log::open(&mut self.files, place(&self.root), config(), from, NOW).unwrap();
        assert_eq!(opened.cut, None);
        self.log = log;
    }

    /// The last megabyte, more or less, in reads of odd sizes.
    fn read_back(&mut self) -> Vec<u8> {
        let mut next = self.log.end().plus(-8).max(Offset(0));
        let mut bytes = Vec::new();
        while next < self.log.end() {
            let read = self.log.read(&mut self.files, next, 200_003, self.log.end(), true).unwrap();
            bytes.extend_from_slice(&read.records);
            next = read.next_offset;
        }
        bytes
    }

    /// Length and room of each segment, oldest first.
    fn segments(&self) -> Vec<(Vec<u8>, u64)> {
        let entries = std::fs::read_dir(self.log.place().dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
        paths.sort();
        let look = |path: &PathBuf| {
            let file = std::fs::File::open(path).unwrap();
            file.sync_all().unwrap();
            (std::fs::read(path).unwrap(), file.metadata().unwrap().blocks() * 512)
        };
        paths.iter().map(look).collect()
    }

    fn has_spare_room(&self) -> Vec<bool> {
        let segments = self.segments();
        segments.iter().map(|(bytes, room)| *room > bytes.len() as u64 + SLACK_BYTES).collect()
    }
}

fn place(root: &Path) -> LogPlace {
    LogPlace {
        root: Arc::from(root),
        topic_partition: TopicPartition::new("written_back", PartitionIndex(0)),
        topic_id: Uuid([7; 16]),
        future: None,
    }
}

fn batch(base: i64, value_bytes: usize) -> Bytes {
    let options =
        BatchOptions { base_offset: Offset(base), leader_epoch: LeaderEpoch(0), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    let value: Vec<u8> = (0..value_bytes).map(|at| (at as i64 ^ base) as u8).collect();
    builder.push(TimestampMs(base), None, Some(&value), &[]);
    builder.build().unwrap()
}

/// `direct_from`: what is written at once goes past the page cache from so many bytes on.
fn large_and_odd(folder: &Path, name: &str, direct_from: Option<usize>) {
    let mut written_back = Bench::new(folder, name);
    written_back.direct_from = direct_from;
    written_back.files.set_direct_from(direct_from);
    let mut appended = Bench::new(folder, &format!("{name}-appended"));
    let sizes = [70_001, 130_003, 1, 262_139, 4_096, 99_999, 511, 300_007, 65_475];
    for (base, size) in sizes.iter().cycle().take(100).enumerate() {
        let bytes = batch(base as i64, *size);
        appended.log.append(&mut appended.files, &[bytes.clone().into()], NOW).unwrap();
        written_back.log.stage(&mut TailMemory::default(), &[AppendBytes::Whole(bytes)]).unwrap();
        if base % 7 == 0 || base % 10 == 0 {
            written_back.log.write_back_all(&mut written_back.files, NOW).unwrap();
            // Readers go through the page cache, before the sync as after it.
            written_back.log.forget_below(written_back.log.end());
            assert!(written_back.read_back() == appended.read_back(), "{base}");
        }
        if base % 7 == 0 {
            written_back.sync();
        }
        if base == 44 || base == 71 {
            written_back.log.write_back_all(&mut written_back.files, NOW).unwrap();
            written_back.reopen();
            written_back.sync();
        }
    }
    assert!(written_back.log.segment_count() > 3);
    let sealed = written_back.has_spare_room();
    assert!(!sealed[..sealed.len() - 1].contains(&true), "{sealed:?}");
    for bench in [&mut written_back, &mut appended] {
        if let Some(dirty) = bench.log.close(&mut bench.files).unwrap() {
            dirty.files.iter().for_each(|file| file.sync().unwrap());
        }
        assert!(!bench.has_spare_room().contains(&true), "{:?}", bench.has_spare_room());
    }
    let bytes = |bench: &Bench| bench.segments().into_iter().map(|(bytes, _)| bytes).collect::<Vec<_>>();
    assert!(bytes(&written_back) == bytes(&appended));
}

#[test]
fn what_is_written_back_in_large_odd_pieces_is_what_was_staged_and_no_room_is_kept() {
    for (at, direct_from) in [Some(256 << 10), Some(1), Some(100_000), None].into_iter().enumerate() {
        large_and_odd(&std::env::temp_dir(), &format!("disk-{at}"), direct_from);
        if Path::new("/dev/shm").is_dir() {
            large_and_odd(Path::new("/dev/shm"), &format!("memory-{at}"), direct_from);
        }
    }
}

#[test]
fn a_segment_that_grows_fast_has_room_ahead_until_it_is_closed() {
    let mut bench = Bench::new(&std::env::temp_dir(), "ahead");
    for base in 0..3 {
        bench.log.stage(&mut TailMemory::default(), &[batch(base, 200_000).into()]).unwrap();
        bench.log.write_back_all(&mut bench.files, NOW).unwrap();
    }
    if bench.has_spare_room() == [false] {
        // A file system that sets no room aside.
        return;
    }
    // What a process left that ended uncleanly is given back by the next.
    bench.sync();
    bench.reopen();
    assert_eq!(bench.has_spare_room(), [true]);
    bench.log.close(&mut bench.files).unwrap();
    assert_eq!(bench.has_spare_room(), [false]);
}
