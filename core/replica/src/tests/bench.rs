//! A disk, a pool of files and one replica that lies on them.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{
    LeaderEpoch, MonotonicMs, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs,
    TopicId, TopicPartition,
};
use barnabas_partition::{Acks, Append, Leadership, Origin, ReplicaKey, Ticket};
use barnabas_storage::journal::{Entry, EntryKind, PartitionReplay};
use barnabas_storage::{
    AppendBytes, FilePool, LogConfig, LogPlace, MemoryDisk, OpenFrom, StorageError, TailMemory,
};
use barnabas_wire::records::{BatchBuilder, BatchHeader, BatchOptions, ReadyBatch};
use bytes::Bytes;

use crate::{
    Appended, BatchLists, Checkpointed, Durability, Effect, Moment, Opening, Outbox, Replica, RequestError,
    Surroundings, TxnVerification, batch_info,
};

pub const ROOT: &str = "/data";
pub const NOW: TimestampMs = TimestampMs(1_000_000);

pub struct Bench {
    pub disk: MemoryDisk,
    pub files: FilePool,
    pub memory: TailMemory,
    pub entries: Vec<Entry>,
    pub lists: BatchLists,
    pub durability: Durability,
    pub now: Moment,
    pub replica: Replica,
    pub outbox: Outbox,
}

pub fn place() -> LogPlace {
    let topic_partition = TopicPartition { topic: "orders".into(), partition: PartitionIndex(0) };
    LogPlace { root: Arc::from(Path::new(ROOT)), topic_partition, topic_id: TopicId::default(), future: None }
}

pub fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 1000, index_interval_bytes: 200, ..LogConfig::default() })
}

/// The partition, to be opened with what the checkpoints and the journal say of it.
pub fn opening(checkpointed: Option<Checkpointed>, unreplayed: Option<&PartitionReplay>) -> Opening<'_> {
    Opening {
        key: ReplicaKey { topic: TopicId::default(), partition: PartitionIndex(0) },
        number: 1,
        directory: 0,
        place: place(),
        config: config(),
        checkpointed,
        producers_max: u32::MAX,
        unreplayed,
        has_other_replicas: false,
        now: NOW,
    }
}

/// Nothing but that files are there.
pub fn unknown() -> Checkpointed {
    Checkpointed { from: OpenFrom::default(), high_watermark: None, held_end: None }
}

/// `records` records from `base` on; of producer 7 with this sequence, where there is one.
pub fn batch(base: i64, records: i32, sequence: Option<i32>) -> Bytes {
    let mut options = BatchOptions { base_offset: Offset(base), ..BatchOptions::default() };
    if let Some(sequence) = sequence {
        options.producer_id = ProducerId(7);
        options.producer_epoch = ProducerEpoch(0);
        options.base_sequence = Sequence(sequence);
    }
    build(options, records)
}

fn build(options: BatchOptions, records: i32) -> Bytes {
    let base = options.base_offset.get();
    let mut builder = BatchBuilder::new(options);
    for at in 0..records {
        builder.push(TimestampMs(NOW.0 + i64::from(at)), None, Some(&[base as u8; 40]), &[]);
    }
    builder.build().unwrap()
}

pub fn append_of(acks: Acks, ticket: u64) -> Append {
    Append {
        origin: Origin::Client,
        acks,
        ticket: Ticket(ticket),
        deadline: MonotonicMs(1_000),
        leader_epoch: None,
        verified: false,
        follows_refused: false,
    }
}

/// As [`batch`], written under that leader epoch.
pub fn batch_of_epoch(base: i64, records: i32, epoch: i32) -> Bytes {
    let options = BatchOptions {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(epoch),
        ..BatchOptions::default()
    };
    build(options, records)
}

impl Bench {
    /// An empty replica that neither leads nor follows.
    pub fn new() -> Self {
        let disk = MemoryDisk::new();
        let mut files = FilePool::new(Arc::new(disk.clone()), 16);
        files.disk().create_dir(Path::new(ROOT)).unwrap();
        let (replica, _) = Replica::open(opening(None, None), &mut files).unwrap();
        Self {
            disk,
            files,
            memory: TailMemory::default(),
            entries: Vec::new(),
            lists: BatchLists::default(),
            durability: Durability { acks_are_synced: true, journal_append_bytes_max: 500 },
            now: Moment { wall: NOW, monotonic: MonotonicMs(1) },
            replica,
            outbox: Outbox::default(),
        }
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
        (self.replica, _) = Replica::open(opening(Some(unknown()), None), &mut self.files).unwrap();
        self
    }

    /// Gives a batch its offset and puts it into the log's memory.
    pub fn append(&mut self, records: i32, sequence: Option<i32>, acks: Acks, ticket: u64) {
        let base = self.replica.partition.log_end();
        let bytes = batch(base.get(), records, sequence);
        let info = batch_info(&BatchHeader::parse(&bytes).unwrap(), || bytes.clone());
        self.replica.partition.append(&info, &append_of(acks, ticket), &mut self.outbox.decisions).unwrap();
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
        let written = self.replica.log.write_back_all(&mut self.files, NOW)?;
        self.replica.note_in_files(written.end, written.rolled, &mut self.outbox.effects);
        Ok(())
    }

    /// What the caller has to do since it was asked last.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.replica.absorb(&mut self.outbox);
        std::mem::take(&mut self.outbox.effects)
    }

    /// One step, with all that it may need.
    pub fn step<R>(&mut self, work: impl FnOnce(&mut Replica, &mut Surroundings<'_>) -> R) -> R {
        let Self { files, memory, entries, lists, durability, now, replica, outbox, .. } = self;
        let (now, durability) = (*now, *durability);
        work(replica, &mut Surroundings { now, durability, files, memory, entries, lists, outbox })
    }

    /// Hands in a batch of so many records, which joins the round.
    pub fn place(&mut self, records: i32, acks: Acks, ticket: u64) -> Result<Appended, RequestError> {
        self.place_of(batch(0, records, None), acks, ticket)
    }

    pub fn place_of(&mut self, bytes: Bytes, acks: Acks, ticket: u64) -> Result<Appended, RequestError> {
        let ready = ReadyBatch::from_bytes(bytes).unwrap();
        self.step(|replica, around| {
            replica.append(ready, TxnVerification::Open, append_of(acks, ticket), |_, _| true, around)
        })
    }

    pub fn finish_round(&mut self) {
        self.step(|replica, around| replica.finish_round(around));
    }

    /// The committer syncs what is handed in.
    pub fn sync(&mut self) {
        let (dirty, _) = self.replica.take_sync().unwrap();
        dirty.sync(&**self.files.disk(), None).unwrap();
        self.step(|replica, around| replica.synced(dirty.ticket, dirty.ticket.end(), around));
    }

    /// What the journal was handed since it was asked last, in short.
    pub fn journal(&mut self) -> Vec<String> {
        let word = |entry: Entry| match entry.kind {
            EntryKind::Records { from, end, .. } => format!("records {from}..{end}"),
            EntryKind::Range { from, end } => format!("range {from}..{end}"),
            other => format!("{other:?}"),
        };
        self.entries.drain(..).map(word).collect()
    }
}
