//! A disk, a pool of files and one replica that lies on them.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{
    LeaderEpoch, MonotonicMs, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs,
    TopicId, TopicPartition,
};
use barnabas_partition::{Acks, Append, Leadership, Origin, ReplicaKey, Ticket};
use barnabas_storage::{
    AppendBytes, FilePool, Log, LogConfig, LogPlace, MemoryDisk, OpenFrom, StorageError, TailMemory,
};
use barnabas_wire::records::{BatchBuilder, BatchHeader, BatchOptions};
use bytes::Bytes;

use crate::{Effect, Opening, Outbox, Replica, batch_info};

pub const ROOT: &str = "/data";
pub const NOW: TimestampMs = TimestampMs(1_000_000);

pub struct Bench {
    pub files: FilePool,
    pub memory: TailMemory,
    pub replica: Replica,
    pub outbox: Outbox,
}

fn place() -> LogPlace {
    let topic_partition = TopicPartition { topic: "orders".into(), partition: PartitionIndex(0) };
    LogPlace { root: Arc::from(Path::new(ROOT)), topic_partition, topic_id: TopicId::default(), future: None }
}

pub fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 1000, index_interval_bytes: 200, ..LogConfig::default() })
}

fn opening(log: Log) -> Opening<'static> {
    Opening {
        key: ReplicaKey { topic: TopicId::default(), partition: PartitionIndex(0) },
        directory: 0,
        log,
        high_watermark: None,
        producers_max: u32::MAX,
        unreplayed: None,
        log_start: Offset::ZERO,
    }
}

/// `records` records from `base` on; of producer 7 with this sequence, where there is one.
pub fn batch(base: i64, records: i32, sequence: Option<i32>) -> Bytes {
    let mut options = BatchOptions { base_offset: Offset(base), ..BatchOptions::default() };
    if let Some(sequence) = sequence {
        options.producer_id = ProducerId(7);
        options.producer_epoch = ProducerEpoch(0);
        options.base_sequence = Sequence(sequence);
    }
    let mut builder = BatchBuilder::new(options);
    for at in 0..records {
        builder.push(TimestampMs(NOW.0 + i64::from(at)), None, Some(&[base as u8; 40]), &[]);
    }
    builder.build().unwrap()
}

impl Bench {
    /// An empty replica that neither leads nor follows.
    pub fn new() -> Self {
        let mut files = FilePool::new(Arc::new(MemoryDisk::new()), 16);
        files.disk().create_dir(Path::new(ROOT)).unwrap();
        let replica =
            Replica::open(opening(Log::create(place(), config(), Offset::ZERO)), &mut files).unwrap();
        Self { files, memory: TailMemory::default(), replica, outbox: Outbox::default() }
    }

    /// A replica that leads alone.
    pub fn leader() -> Self {
        let mut bench = Self::new();
        let leadership = Leadership { epoch: LeaderEpoch(1), ..Leadership::default() };
        assert!(bench.replica.partition.become_leader(&leadership, &mut bench.outbox.decisions));
        bench.replica.log.assign_epoch(LeaderEpoch(1), Offset::ZERO);
        bench.effects();
        bench
    }

    /// The replica as the next process finds it, with what the page cache holds.
    pub fn reopen(mut self) -> Self {
        let dirty = self.replica.log.take_dirty();
        if let Some(dirty) = dirty {
            dirty.sync(&**self.files.disk(), None).unwrap();
        }
        self.replica.log.abandon_files(&mut self.files);
        let (log, _) = Log::open(&mut self.files, place(), config(), OpenFrom::default(), NOW).unwrap();
        self.replica = Replica::open(opening(log), &mut self.files).unwrap();
        self
    }

    /// Gives a batch its offset and puts it into the log's memory.
    pub fn append(&mut self, records: i32, sequence: Option<i32>, acks: Acks, ticket: u64) {
        let base = self.replica.partition.log_end();
        let bytes = batch(base.get(), records, sequence);
        let info = batch_info(&BatchHeader::parse(&bytes).unwrap(), || bytes.clone());
        let append = Append {
            origin: Origin::Client,
            acks,
            ticket: Ticket(ticket),
            deadline: MonotonicMs(1_000),
            leader_epoch: None,
            verified: false,
        };
        self.replica.partition.append(&info, &append, &mut self.outbox.decisions).unwrap();
        let staged = self.replica.log.stage(&mut self.memory, &[AppendBytes::Whole(bytes)]).unwrap();
        self.replica.readers.unannounced_bytes += staged.bytes as i64;
        if acks != Acks::All {
            self.replica.readers.promised_end = self.replica.partition.log_end();
        }
    }

    /// All that was appended is durable.
    pub fn durable(&mut self) {
        let end = self.replica.partition.log_end();
        self.replica.partition.synced(end, &mut self.outbox.decisions);
    }

    /// Brings all that is in memory into segments.
    pub fn write_back(&mut self) -> Result<(), StorageError> {
        let written = self.replica.log.lay_all(&mut self.files, NOW)?;
        self.replica.note_in_files(written.end, written.rolled, &mut self.outbox.effects);
        Ok(())
    }

    /// What the caller has to do since it was asked last.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.replica.absorb(&mut self.outbox);
        std::mem::take(&mut self.outbox.effects)
    }
}
