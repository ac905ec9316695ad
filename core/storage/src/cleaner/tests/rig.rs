//! A log with keys and transactions, a model of it, and what must be true of the two after whatever happened.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use barnabas_base::{
    CoordinatorEpoch, DurationMs, Map, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence,
    TimestampMs, TopicPartition, Uuid,
};
use barnabas_wire::records::{
    Batch, BatchBuilder, BatchOptions, Codec, Compression, EndTxnMarker, HEADER_BYTES, control_batch, crc32c,
};
use bytes::Bytes;

use super::super::{CleanError, Cleaning, LastRecord, MapMemory, Replaced, Replacement};
use crate::AppendBytes;
use crate::log::{CleanBounds, CompactionDebt, Log, LogPlace};
use crate::{
    AbortedTransaction, CleanupPolicy, CompactionConfig, FilePool, LogConfig, LogDir, MemoryDisk,
    StorageError,
};

pub const RETENTION: i64 = 500;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        barnabas_base::split_mix_64(&mut self.0) % bound
    }
}

/// A record as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
    pub timestamp: TimestampMs,
    pub producer: i64,
    pub aborted: bool,
    /// When a cleaning first began that covered it.
    pub cleaned_at: Option<i64>,
}

#[derive(Default, Clone, Copy)]
struct Producer {
    sequence: i32,
    txn_first: Option<i64>,
    last_data_offset: Option<i64>,
}

pub struct Rig {
    pub disk: MemoryDisk,
    pub dir: LogDir,
    pub files: FilePool,
    pub log: Log,
    pub now: i64,
    pub records: BTreeMap<i64, Written>,
    producers: [Producer; 4],
    aborted: Vec<AbortedTransaction>,
}

pub fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig {
        segment_bytes: 900,
        index_interval_bytes: 150,
        cleanup: CleanupPolicy { delete: false, compact: true },
        compaction: CompactionConfig {
            delete_retention_ms: DurationMs(RETENTION),
            ..CompactionConfig::default()
        },
        ..LogConfig::default()
    })
}

pub fn place() -> LogPlace {
    LogPlace {
        root: Arc::from(Path::new("/data")),
        topic_partition: TopicPartition::new("keys", PartitionIndex(0)),
        topic_id: Uuid([5; 16]),
        future: None,
    }
}

/// Goes on for ever.
pub fn full_speed(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Rig {
    pub fn new() -> Self {
        let disk = MemoryDisk::new();
        let mut dir = LogDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        dir.begin().unwrap();
        Self {
            files: FilePool::new(Arc::new(disk.clone()), 8),
            log: Log::create(place(), config(), Offset(0)),
            disk,
            dir,
            now: 10_000,
            records: BTreeMap::new(),
            producers: [Producer::default(); 4],
            aborted: Vec::new(),
        }
    }

    pub fn time(&self) -> TimestampMs {
        TimestampMs(self.now)
    }

    fn options(&self, producer: usize, random: &mut Random) -> BatchOptions {
        let codec = [Codec::None, Codec::None, Codec::Gzip, Codec::Lz4][random.below(4) as usize];
        let mut options = BatchOptions {
            base_offset: self.log.end(),
            compression: Compression::of(codec),
            leader_epoch: 0.into(),
            ..BatchOptions::default()
        };
        if producer > 0 {
            options.producer_id = ProducerId(producer as i64);
            options.producer_epoch = ProducerEpoch(0);
            options.base_sequence = Sequence(self.producers[producer].sequence);
            options.transactional = producer > 1;
        }
        options
    }

    /// A batch of one of four producers: 0 has no id, 1 is idempotent, 2 and 3 are transactional.
    pub fn write(&mut self, random: &mut Random) -> Result<(), StorageError> {
        let producer = random.below(4) as usize;
        if producer > 1 && self.producers[producer].txn_first.is_some() && random.below(3) == 0 {
            return self.end_transaction(producer, random.below(2) == 0);
        }
        let base = self.log.end().get();
        let mut builder = BatchBuilder::new(self.options(producer, random));
        let mut written = Vec::new();
        for _ in 0..1 + random.below(4) {
            self.now += 1;
            let record = Written {
                key: format!("k{}", random.below(9)).into_bytes(),
                value: (random.below(4) != 0)
                    .then(|| vec![random.below(256) as u8; random.below(60) as usize]),
                timestamp: self.time(),
                producer: producer as i64,
                aborted: false,
                cleaned_at: None,
            };
            builder.push(record.timestamp, Some(&record.key), record.value.as_deref(), &[(b"h", None)]);
            written.push(record);
        }
        let count = written.len() as i64;
        let batch = builder.build().unwrap();
        self.log.append(&mut self.files, &[AppendBytes::Whole(batch)], TimestampMs(self.now))?;
        self.records.extend((base..).zip(written));
        let state = &mut self.producers[producer];
        state.sequence += count as i32;
        state.last_data_offset = Some(base + count - 1);
        if producer > 1 {
            state.txn_first.get_or_insert(base);
        }
        Ok(())
    }

    fn end_transaction(&mut self, producer: usize, commit: bool) -> Result<(), StorageError> {
        let options = BatchOptions {
            base_offset: self.log.end(),
            leader_epoch: 0.into(),
            producer_id: ProducerId(producer as i64),
            producer_epoch: ProducerEpoch(0),
            transactional: true,
            ..BatchOptions::default()
        };
        let marker = EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(0) };
        let batch = control_batch(options, self.time(), marker.control_type(), &marker.value()).unwrap();
        let at = self.log.end();
        self.log.append(&mut self.files, &[AppendBytes::Whole(batch)], TimestampMs(self.now))?;
        let first = self.producers[producer].txn_first.take().unwrap();
        if !commit {
            let mine = |record: &&mut Written| record.producer == producer as i64;
            self.records
                .range_mut(first..)
                .map(|(_, record)| record)
                .filter(mine)
                .for_each(|r| r.aborted = true);
            let aborted = AbortedTransaction {
                producer_id: ProducerId(producer as i64),
                first_offset: Offset(first),
                last_offset: at,
                last_stable_offset: self.last_stable(),
            };
            self.log.append_aborted(&mut self.files, aborted)?;
            self.aborted.push(aborted);
        }
        Ok(())
    }

    pub fn last_stable(&self) -> Offset {
        let open = self.producers.iter().filter_map(|producer| producer.txn_first).min();
        open.map_or(self.log.end(), Offset)
    }

    pub fn sync(&mut self) -> Result<(), StorageError> {
        if let Some(dirty) = self.log.take_dirty() {
            dirty.sync(&**self.files.disk(), None)?;
            self.log.mark_synced(dirty.ticket);
        }
        Ok(())
    }

    pub fn checkpoint(&mut self) -> Result<(), StorageError> {
        let recovery_point = self.log.checkpoint(&mut self.files)?;
        self.dir.set_recovery_point(place().topic_partition, recovery_point);
        self.dir.write_checkpoints()
    }

    pub fn debt(&mut self) -> CompactionDebt {
        let bounds = CleanBounds {
            clean_to: self.dir.cleaner_point(&place().topic_partition),
            last_stable: self.last_stable(),
        };
        self.log.compaction_debt(&mut self.files, bounds, TimestampMs(self.now)).unwrap()
    }

    fn last_records(&self) -> Map<ProducerId, LastRecord> {
        let known = self.producers.iter().enumerate().skip(1);
        let last = known.filter_map(|(id, producer)| {
            let last_data_offset = Some(Offset(producer.last_data_offset?));
            Some((ProducerId(id as i64), LastRecord { last_data_offset, epoch: ProducerEpoch(0) }))
        });
        last.collect()
    }

    /// Begins a cleaning. `None`: nothing is dirty.
    pub fn begin(&mut self, map_bytes: usize) -> Result<Option<Cleaning>, CleanError> {
        let debt = self.debt();
        let Some(log) = self.log.log_to_clean(&mut self.files, &debt).unwrap() else { return Ok(None) };
        for (_, record) in self.records.range_mut(..debt.first_uncleanable.get()) {
            record.cleaned_at.get_or_insert(self.now);
        }
        let memory = MapMemory { bytes: map_bytes, load_factor: 0.9, seed: [3, 4] };
        let last_records = self.last_records();
        let disk = Arc::new(self.disk.clone());
        Cleaning::begin(disk, log, last_records, memory, TimestampMs(self.now), &mut full_speed).map(Some)
    }

    pub fn swap(&mut self, replacement: &Replacement) -> Result<Replaced, StorageError> {
        self.log.replace_segments(&mut self.files, replacement, TimestampMs(self.now))
    }

    /// A whole cleaning, as the shell does it.
    pub fn clean(&mut self, map_bytes: usize) -> Result<(), CleanError> {
        self.sync().map_err(CleanError::Storage)?;
        self.checkpoint().map_err(CleanError::Storage)?;
        let Some(mut cleaning) = self.begin(map_bytes)? else { return Ok(()) };
        while let Some(replacement) = cleaning.next_group(&mut full_speed)? {
            let replaced = self.swap(&replacement).map_err(CleanError::Storage)?;
            assert!(matches!(replaced, Replaced::Done(_)));
        }
        self.finish(cleaning.end()).map_err(CleanError::Storage)
    }

    pub fn finish(&mut self, end: Offset) -> Result<(), StorageError> {
        self.sync()?;
        self.dir.set_cleaner_point(place().topic_partition, Some(end));
        self.dir.write_checkpoints()
    }

    /// A new process on the same disk.
    pub fn reopen(&mut self) -> Result<(), StorageError> {
        self.disk.kill();
        self.close_files();
        self.dir = LogDir::open(Arc::new(self.disk.clone()), Path::new("/data"))?;
        self.dir.begin()?;
        let from = self.dir.open_from(&place().topic_partition);
        let (log, _) = Log::open(&mut self.files, place(), config(), from, TimestampMs(self.now))?;
        self.log = log;
        Ok(())
    }

    /// All batches, and the records in them by offset.
    pub fn found(&mut self) -> (Vec<Batch>, BTreeMap<i64, Written>) {
        let mut batches = Vec::new();
        let (mut at, end) = (self.log.start(), self.log.end());
        while at < end {
            let read = self.log.read(&mut self.files, at, 600, end, true).expect("reads");
            if read.records.is_empty() {
                break;
            }
            batches
                .extend(barnabas_wire::records::batches(read.records).map(|batch| batch.expect("a batch")));
            at = read.next_offset;
        }
        let mut found = BTreeMap::new();
        for batch in batches.iter().filter(|batch| !batch.header().attributes.is_control()) {
            batch.check_crc().expect("its checksum");
            for record in &batch.records().expect("records") {
                let record = record.expect("a record");
                let headers: Vec<_> = record.headers().collect();
                assert_eq!(headers, [(&b"h"[..], None)]);
                let written = Written {
                    key: record.key.expect("a key").to_vec(),
                    value: record.value.map(<[u8]>::to_vec),
                    timestamp: record.timestamp,
                    producer: batch.header().producer_id.get().max(0),
                    aborted: false,
                    cleaned_at: None,
                };
                found.insert(record.offset.get(), written);
            }
        }
        (batches, found)
    }

    /// What must be true, or why it is not.
    pub fn check(&mut self) -> Result<(), String> {
        let (batches, found) = self.found();
        let end = self.log.end();
        for (at, is) in &found {
            let was = self.records.get(at).ok_or(format!("offset {at} was never written"))?;
            let same = (&is.key, &is.value, is.timestamp) == (&was.key, &was.value, was.timestamp);
            if !same || is.producer != was.producer {
                return Err(format!("offset {at} is {is:?} and was {was:?}"));
            }
        }
        self.check_newest(&found)?;
        self.check_transactions(&batches)?;
        self.check_markers(&batches)?;
        let lasts = self.producers.iter().enumerate().skip(1);
        for (id, last) in lasts.filter_map(|(id, producer)| Some((id as i64, producer.last_data_offset?))) {
            let is_last = |batch: &Batch| {
                batch.header().producer_id.get() == id && batch.header().last_offset().get() == last
            };
            if last < end.get() && !batches.iter().any(is_last) {
                return Err(format!("the last batch of producer {id}, which ends at {last}, is gone"));
            }
        }
        Ok(())
    }

    /// A consumer that follows the batches finds exactly the open transactions open.
    fn check_markers(&self, batches: &[Batch]) -> Result<(), String> {
        let mut open = std::collections::BTreeSet::new();
        for batch in batches.iter().map(Batch::header).filter(|header| header.attributes.is_transactional()) {
            match batch.attributes.is_control() {
                true => open.remove(&batch.producer_id.get()),
                false => open.insert(batch.producer_id.get()),
            };
        }
        let is_open = |id: &i64| self.producers[*id as usize].txn_first.is_some();
        match open.into_iter().find(|id| !is_open(id)) {
            Some(id) => Err(format!("the transaction of producer {id} never ends")),
            None => Ok(()),
        }
    }

    fn check_newest(&self, found: &BTreeMap<i64, Written>) -> Result<(), String> {
        let open: Vec<_> =
            self.producers.iter().enumerate().filter_map(|(id, p)| Some((id, p.txn_first?))).collect();
        let is_open = |at: i64, record: &Written| {
            open.iter().any(|&(id, first)| id as i64 == record.producer && at >= first)
        };
        let mut newest: BTreeMap<&[u8], i64> = BTreeMap::new();
        for (at, record) in &self.records {
            if is_open(*at, record) && !found.contains_key(at) {
                return Err(format!("offset {at} of an open transaction is gone"));
            }
            if !record.aborted {
                newest.insert(&record.key, *at);
            }
        }
        for (key, at) in newest {
            let record = &self.records[&at];
            let expired = record.cleaned_at.is_some_and(|cleaned| self.now >= cleaned + RETENTION);
            let may_be_gone = record.value.is_none() && expired;
            if !found.contains_key(&at) && !may_be_gone {
                return Err(format!(
                    "the newest record of {}, at {at}, is gone",
                    String::from_utf8_lossy(key)
                ));
            }
            // Were the tombstone gone, an older record would stand for the key.
            let visible = |(other, older): (&i64, &Written)| {
                *other < at && older.key == *key && !self.records[other].aborted
            };
            if !found.contains_key(&at) && found.iter().any(visible) {
                return Err(format!("a deleted record of {} is back", String::from_utf8_lossy(key)));
            }
        }
        Ok(())
    }

    /// A read_committed consumer sees no aborted record, and every other one.
    fn check_transactions(&mut self, batches: &[Batch]) -> Result<(), String> {
        let (start, stable) = (self.log.start(), self.last_stable());
        let aborted = self.log.aborted_transactions(&mut self.files, start, stable);
        let aborted = aborted.map_err(|error| error.to_string())?;
        let mut open: Vec<(ProducerId, Offset)> = Vec::new();
        for batch in batches.iter().filter(|batch| batch.header().next_offset() <= stable) {
            let header = batch.header();
            let begun = aborted.iter().filter(|a| a.producer_id == header.producer_id);
            let begun = begun
                .filter(|a| a.first_offset <= header.last_offset() && a.last_offset >= header.base_offset);
            if let Some(begun) = begun.max_by_key(|begun| begun.first_offset) {
                open.retain(|(id, _)| *id != begun.producer_id);
                open.push((begun.producer_id, begun.last_offset));
            }
            if header.attributes.is_control() {
                open.retain(|(id, _)| *id != header.producer_id);
                continue;
            }
            let hidden =
                header.attributes.is_transactional() && open.iter().any(|(id, _)| *id == header.producer_id);
            for record in &batch.records().expect("records") {
                let at = record.expect("a record").offset.get();
                if self.records[&at].aborted != hidden {
                    return Err(format!("offset {at}: aborted is {}, hidden is {hidden}", !hidden));
                }
            }
        }
        Ok(())
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        place().dir().join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = self.files.disk().list(&place().dir()).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// As a client of the old days would: one uncompressed record.
    pub fn put(&mut self, key: &str, value: Option<&[u8]>) {
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: self.log.end(),
            leader_epoch: 0.into(),
            ..Default::default()
        });
        self.now += 1;
        builder.push(self.time(), Some(key.as_bytes()), value, &[(b"h", None)]);
        let batch: Bytes = builder.build().unwrap();
        let record = Written {
            key: key.as_bytes().to_vec(),
            value: value.map(<[u8]>::to_vec),
            timestamp: self.time(),
            producer: 0,
            aborted: false,
            cleaned_at: None,
        };
        self.records.insert(self.log.end().get(), record);
        let now = self.time();
        self.log.append(&mut self.files, &[AppendBytes::Whole(batch)], now).unwrap();
    }

    /// A batch whose checksum is right and whose record is none.
    pub fn put_rubbish(&mut self) {
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: self.log.end(),
            leader_epoch: 0.into(),
            ..Default::default()
        });
        self.now += 1;
        builder.push(self.time(), Some(b"key"), Some(b"value"), &[]);
        let mut batch = builder.build().unwrap().to_vec();
        batch[HEADER_BYTES..].fill(0xFF);
        // The checksum covers all that lies behind it.
        let crc = crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        let now = self.time();
        self.log.append(&mut self.files, &[AppendBytes::Whole(batch.into())], now).unwrap();
    }

    pub fn close_files(&mut self) {
        self.files = FilePool::new(Arc::new(self.disk.clone()), 8);
    }

    pub fn roll(&mut self) {
        let now = self.time();
        self.log.roll(&mut self.files, now).unwrap();
    }
}
