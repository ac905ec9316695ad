//! A log on a disk in memory, beside the plainest model of one: the list of its batches.

mod append_read;
mod behind;
mod chain;
mod crash;
mod damage;
mod epochs;
mod full;
mod headers;
mod kill;
mod mend;
mod retain_truncate;
pub(in crate::log) mod staged;
mod timestamps;
mod unsettled;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicPartition, Uuid};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;

use super::{Log, LogPlace, OpenFrom, Opened, TailMemory};
use crate::AppendBytes;
use crate::disk::file_pool::FilePool;
use crate::disk::memory_disk::MemoryDisk;
use crate::error::StorageError;
use crate::log_config::LogConfig;
use crate::log_dir::LogDir;
use crate::segment::batch::BatchHeader;

pub(super) const ROOT: &str = "/data";
pub(super) const NOW: TimestampMs = TimestampMs(1_000_000);

/// A batch of `records` records of `value_bytes` each, from `base` on.
pub(super) fn batch(base: i64, records: i32, value_bytes: usize, timestamp: i64, epoch: i32) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(epoch),
        ..BatchOptions::default()
    });
    for at in 0..records {
        let value = vec![(base as u8).wrapping_add(at as u8); value_bytes];
        builder.push(TimestampMs(timestamp + i64::from(at)), None, Some(&value), &[]);
    }
    builder.build().unwrap()
}

/// A disk, a pool and a log on them.
#[derive(Debug)]
pub(in crate::log) struct Bench {
    pub disk: MemoryDisk,
    pub files: FilePool,
    pub dir: LogDir,
    pub config: LogConfig,
    pub log: Log,
    pub memory: TailMemory,
    /// Writes from here on go past the page cache.
    pub direct_from: Option<usize>,
    /// Other replicas can repair this one.
    pub is_repairable: bool,
}

pub(super) fn small_segments() -> LogConfig {
    LogConfig { segment_bytes: 1000, index_interval_bytes: 200, ..LogConfig::default() }
}

impl Bench {
    pub fn new(config: LogConfig) -> Self {
        let disk = MemoryDisk::new();
        let mut dir = LogDir::open(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
        dir.begin().unwrap();
        let log = Log::create(place(), Arc::new(config.clone()), Offset(0));
        Self {
            files: FilePool::new(Arc::new(disk.clone()), 8),
            disk,
            dir,
            config,
            log,
            memory: TailMemory::new(4 << 20),
            direct_from: None,
            is_repairable: false,
        }
    }

    /// Appends `count` batches of one record of `value_bytes`.
    pub fn fill(&mut self, count: usize, value_bytes: usize) {
        for _ in 0..count {
            let end = self.log.end().get();
            self.append(batch(end, 1, value_bytes, 1000 + end, 0)).unwrap();
        }
    }

    pub fn append(&mut self, bytes: Bytes) -> Result<super::Appended, StorageError> {
        self.log.append(&mut self.files, &[AppendBytes::Whole(bytes)], NOW)
    }

    /// One round of the committer. Returns what is durable now.
    pub fn sync(&mut self) -> Result<Offset, StorageError> {
        if let Some(dirty) = self.log.take_dirty() {
            for file in &dirty.files {
                file.sync()?;
            }
            for dir in &dirty.dirs {
                self.files.disk().sync_dir(dir)?;
            }
            self.log.mark_synced(dirty.ticket);
        }
        Ok(self.log.recovery_point())
    }

    pub fn checkpoint(&mut self) -> Result<(), StorageError> {
        let recovery_point = self.log.checkpoint(&mut self.files)?;
        let partition = self.log.place().topic_partition.clone();
        let start = self.log.start();
        let start = (start > self.log.first_segment_base()).then_some(start);
        self.dir.set_recovery_point(partition.clone(), recovery_point);
        self.dir.set_log_start(partition, start);
        self.dir.write_checkpoints()
    }

    pub fn stop(&mut self) -> Result<(), StorageError> {
        if let Some(dirty) = self.log.close(&mut self.files)? {
            for file in &dirty.files {
                file.sync()?;
            }
            for dir in &dirty.dirs {
                self.files.disk().sync_dir(dir)?;
            }
            self.log.mark_synced(dirty.ticket);
        }
        self.checkpoint()?;
        self.dir.mark_clean(barnabas_base::BrokerEpoch(7))
    }

    /// A new process on the same disk.
    pub fn reopen(&mut self) -> Result<Opened, StorageError> {
        // Locks die with their process.
        self.disk.kill();
        self.files = FilePool::new(Arc::new(self.disk.clone()), 8);
        self.files.set_direct_from(self.direct_from);
        self.dir = LogDir::open(Arc::new(self.disk.clone()), Path::new(ROOT))?;
        self.dir.begin()?;
        let from = self.dir.open_from(&place().topic_partition);
        let from = OpenFrom { is_repairable: self.is_repairable, ..from };
        let (log, opened) = Log::open(&mut self.files, place(), Arc::new(self.config.clone()), from, NOW)?;
        self.log = log;
        Ok(opened)
    }

    /// All batches from the start on, by reads of `max_bytes`.
    pub fn read_all(&mut self, max_bytes: usize) -> Result<Vec<Bytes>, StorageError> {
        let mut batches = Vec::new();
        let (mut next, end) = (self.log.start(), self.log.end());
        while next < end {
            let read = self.log.read(&mut self.files, next, max_bytes, end, true)?;
            assert!(read.next_offset > next, "a read from {next} got nowhere");
            let mut rest = read.records;
            while !rest.is_empty() {
                let size = BatchHeader::parse(&rest).unwrap().size as usize;
                batches.push(rest.split_to(size));
            }
            next = read.next_offset;
        }
        Ok(batches)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        place().dir().join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = self.files.disk().list(&place().dir()).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }
}

pub(super) fn place() -> LogPlace {
    LogPlace {
        root: Arc::from(Path::new(ROOT)),
        topic_partition: TopicPartition::new("talk", PartitionIndex(3)),
        topic_id: Uuid([7; 16]),
        future: None,
    }
}
