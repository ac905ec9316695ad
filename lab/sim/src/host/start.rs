//! The start of a process on what its disk has kept: the directory, its journal, its logs; and a clean stop.
//!
//! core/replica reads the journal, replays and opens. What is done around it is what shell/broker does: replay.rs and
//! pending.rs, server/stop.rs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use barnabas_base::{
    BrokerEpoch, BrokerId, DirectoryId, DurationMs, MonotonicMs, Offset, Set, Text, TimestampMs,
    TopicPartition,
};
use barnabas_metadata::Image;
use barnabas_partition::ReplicaKey;
use barnabas_replica::{
    BatchLists, Checkpointed, Checkpoints, Found, Leaving, OpenError, OpenVerdict, Opening, Outbox, Replica,
    Standing, forget_left, has_left, has_returned, is_checkpointed, note_written_back, read_journal,
    replay_log, waits_for_opening,
};
use barnabas_storage::journal::{JournalError, JournalPartition, PartitionReplay, Recovered};
use barnabas_storage::{
    CleanupPolicy, CompactionConfig, Disk, FilePool, Level, LogConfig, LogDir, LogPlace, MemoryDisk,
    MetaProperties, StorageError, TailMemory, quarantine,
};

use super::cleaning::{Cleaner, Compacting};
use super::journal::{JournalWriter, files_in, remove_files};
use super::syncs::Syncs;
use super::{Failure, HostTime, Hosted, News, ReplicaHost, Unopened, Ways, moment};
use crate::controller::CLUSTER;
use crate::mistake::Mistake;
use barnabas_storage::sweep::{Fate, Known, Swept, sweep};
use barnabas_storage::{DiskError, FileSystem, PartitionDir};

const ROOTS: [&str; 2] = ["/data", "/data-2"];
/// Of recent records, kept to be used again.
const TAIL_BYTES: u64 = 1 << 20;
const FILES_OPEN: usize = 12;

pub(super) fn config(ways: Ways, retains: bool, compacts: Option<Compacting>) -> LogConfig {
    let config = LogConfig {
        segment_bytes: if retains { 4 << 10 } else { 8 << 10 },
        index_interval_bytes: 512,
        retention_ms: DurationMs(if retains { 500 } else { -1 }),
        retention_bytes: if retains { 12 << 10 } else { -1 },
        file_delete_delay_ms: DurationMs(50),
        preallocate: ways.preallocates,
        segment_ms: if ways.rolls_by_time { DurationMs(250) } else { LogConfig::default().segment_ms },
        segment_jitter_ms: DurationMs(if ways.rolls_by_time { 120 } else { 0 }),
        ..LogConfig::default()
    };
    let Some(Compacting { deletes, delete_retention, min_lag, max_lag }) = compacts else { return config };
    LogConfig {
        // The largest batch fits.
        segment_bytes: 1400,
        index_interval_bytes: 256,
        cleanup: CleanupPolicy { delete: deletes, compact: true },
        compaction: CompactionConfig {
            min_lag_ms: min_lag,
            max_lag_ms: max_lag,
            delete_retention_ms: delete_retention,
            min_dirty_ratio: 0.3,
        },
        ..config
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Journal(error) => error.into(),
            OpenError::Storage(error) => error.into(),
        }
    }
}

impl ReplicaHost {
    /// Takes the log directories.
    pub fn start(
        disk: &MemoryDisk,
        id: BrokerId,
        ways: Ways,
        mistake: Option<Mistake>,
    ) -> Result<Self, Failure> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut dirs = Vec::new();
        for (at, root) in ROOTS.iter().enumerate().take(ways.directories) {
            dirs.push(take_directory(disk, Path::new(root), (id, at), ways, mistake)?);
        }
        let each = 0..dirs.len();
        let files = || {
            let mut files = FilePool::new(Arc::clone(&shared), FILES_OPEN);
            files.set_direct_from(ways.direct_from);
            let whole: Arc<dyn FileSystem> = Arc::new(WholeDisk(disk.clone()));
            files.with_file_system(ways.syncs_whole.then_some(whole))
        };
        let journal = || {
            let mut journal = JournalWriter::default();
            if ways.writes_inline {
                journal.write_inline();
            }
            journal
        };
        Ok(Self {
            id,
            disk: disk.clone(),
            ways,
            dirs,
            config: Arc::new(config(ways, false, None)),
            files: each.clone().map(|_| files()).collect(),
            memory: TailMemory::new(TAIL_BYTES),
            entries: each.clone().map(|_| Vec::new()).collect(),
            lists: BatchLists::default(),
            outbox: Outbox::default(),
            journals: each.map(|_| journal()).collect(),
            syncs: Syncs::default(),
            orders: VecDeque::new(),
            replicas: BTreeMap::new(),
            unreplayed: BTreeMap::new(),
            assigned: BTreeMap::new(),
            moves: BTreeMap::new(),
            offline: BTreeSet::new(),
            leaving: Leaving::default(),
            departures: VecDeque::new(),
            touched: BTreeSet::new(),
            lazy: BTreeSet::new(),
            news: VecDeque::new(),
            deletions: Vec::new(),
            cached: VecDeque::new(),
            cached_bytes: 0,
            opened: 0,
            tickets: 0,
            room_is_short: false,
            level: Level::Open,
            retains: false,
            compacts: None,
            cleaner: Cleaner::default(),
            shows_everything: mistake == Some(Mistake::ShowsEverything),
            failed: None,
        })
    }

    /// Its logs are compacted.
    pub fn compact(&mut self, compacts: Option<Compacting>) {
        self.compacts = compacts;
        if let Some(compacting) = compacts {
            self.retains = compacting.deletes;
            self.config = Arc::new(config(self.ways, self.retains, compacts));
        }
    }

    /// The life that left all that it had acknowledged, by the directory's word.
    pub fn kept_life(&self) -> Option<BrokerEpoch> {
        let mut kept = self.dirs.iter().map(|dir| dir.kept_life().map(|life| life.epoch));
        let first = kept.next()?;
        if kept.all(|other| other == first) { first } else { None }
    }

    /// Notes the life that begins. A full disk that has taken none before does not take it: after a crash this broker
    /// does not count as one that has kept anything.
    pub fn note_life(&mut self, life: BrokerEpoch) -> Result<(), Failure> {
        for dir in &mut self.dirs {
            match dir.note_life(life, TimestampMs::NONE) {
                Err(error) if error.is_passing() => {}
                noted => noted?,
            }
        }
        Ok(())
    }

    /// Reads the journal, and brings those logs up to it that it does more to than append.
    pub fn recover(&mut self, image: &Image, time: &mut HostTime<'_>) -> Result<(), Failure> {
        self.disk.set_now(TimestampMs(time.now.0 as i64));
        (0..self.dirs.len()).try_for_each(|at| self.recover_directory(at, image, time))
    }

    fn recover_directory(
        &mut self,
        at: usize,
        image: &Image,
        time: &mut HostTime<'_>,
    ) -> Result<(), Failure> {
        let path = Arc::clone(self.dirs[at].path());
        let directory = self.dirs[at].meta().and_then(|meta| meta.directory_id).unwrap_or_default();
        let recovered = read_journal(&OneDir(RefCell::new(&mut self.dirs[at])), directory)?;
        let Some(mut recovered) = recovered else { return Ok(()) };
        let is_known = |replay: &PartitionReplay| image.topics.by_id(replay.partition.topic_id).is_some();
        recovered.keep(is_known);
        if time.is(Mistake::ForgetsOlderRounds) {
            recovered.written_back.clear();
        }
        if time.is(Mistake::ForgetsTheJournal) {
            recovered.keep(|_| false);
        }
        self.note_left(at, &mut recovered, image)?;
        let synced = !self.ways.acks_are_written;
        let waits = |replay: &PartitionReplay| waits_for_opening(replay, synced, is_known(replay));
        let at_once: Vec<PartitionReplay> =
            recovered.partitions.iter().filter(|replay| !waits(replay)).cloned().collect();
        self.replay_now(at, &at_once, time.now)?;
        recovered.keep(waits);
        let opening = time.random.draw();
        match self.journals[at].go_on(&self.disk, &path, &recovered, opening, time.now) {
            Err(JournalError::NoRoom) if !recovered.is_empty() => {
                self.replay_now(at, &recovered.partitions, time.now)?;
                recovered.keep(|_| false);
                self.journals[at].go_on(&self.disk, &path, &recovered, opening, time.now)?;
            }
            gone_on => gone_on?,
        }
        self.wait_for(at, recovered);
        Ok(())
    }

    /// Takes those partitions out whose last stay on this broker is over.
    fn note_left(&mut self, at: usize, recovered: &mut Recovered, image: &Image) -> Result<(), StorageError> {
        let (mut left, mut returned) = (BTreeSet::new(), BTreeSet::new());
        for replay in recovered.partitions.iter().chain(&recovered.written_back) {
            let JournalPartition { topic_id, topic_partition: name } = &*replay.partition;
            let is_here = || self.lies_in(at, &replay.partition);
            if has_returned(replay, is_here)? {
                returned.insert(Arc::clone(&replay.partition));
                continue;
            }
            let others = (0..self.dirs.len()).filter(|other| *other != at);
            let has_moved = others.map(|other| self.lies_in(other, &replay.partition));
            if !is_here()? && has_moved.collect::<Result<Vec<_>, _>>()?.contains(&true) {
                left.insert(Arc::clone(&replay.partition));
                continue;
            }
            let row = image.topics.by_id(*topic_id).and_then(|topic| topic.partition(name.partition));
            let found = Found {
                standing: Standing::of(row, self.id),
                has_folder: is_here()?,
                is_checkpointed: is_checkpointed(&self.dirs[at], name),
                log_was_cut: false,
            };
            if has_left(replay, found) {
                if found.standing == Standing::Absent {
                    let key = ReplicaKey { topic: *topic_id, partition: name.partition };
                    self.news.push_back(News::Left { key, is_gone: true });
                }
                left.insert(Arc::clone(&replay.partition));
            }
        }
        forget_left(&mut self.dirs[at], left.iter().map(|partition| &partition.topic_partition))?;
        recovered.note_left(|replay| left.contains(&replay.partition));
        recovered.note_returned(|replay| returned.contains(&replay.partition));
        note_written_back(&OneDir(RefCell::new(&mut self.dirs[at])), recovered)
    }

    fn wait_for(&mut self, at: usize, recovered: Recovered) {
        for replay in recovered.partitions {
            let JournalPartition { topic_id, topic_partition } = &*replay.partition;
            let key = ReplicaKey { topic: *topic_id, partition: topic_partition.partition };
            self.unreplayed.insert(key, (at, Arc::new(replay)));
        }
    }

    fn replay_now(
        &mut self,
        at: usize,
        partitions: &[PartitionReplay],
        now: MonotonicMs,
    ) -> Result<(), Failure> {
        for replay in partitions {
            match self.replay_one(at, replay, now)? {
                Ok(end) => self.dirs[at].vouch_for(replay.partition.topic_partition.clone(), end),
                // It is of this log alone, which is found to be offline when it is opened.
                Err(_) => self.keep_aside(at, replay)?,
            }
        }
        if !partitions.is_empty() {
            self.dirs[at].write_checkpoints()?;
        }
        Ok(())
    }

    pub(super) fn place(&self, at: usize, partition: &JournalPartition) -> LogPlace {
        LogPlace {
            root: Arc::clone(self.dirs[at].path()),
            topic_partition: partition.topic_partition.clone(),
            topic_id: partition.topic_id,
            future: None,
        }
    }

    pub(super) fn lies_in(&self, at: usize, partition: &JournalPartition) -> Result<bool, StorageError> {
        Ok(self.disk.stat(&self.place(at, partition).dir())?.is_some())
    }

    fn keep_aside(&self, at: usize, replay: &PartitionReplay) -> Result<(), StorageError> {
        quarantine::keep(&self.disk, self.dirs[at].path(), replay).map(drop)
    }

    fn replay_one(
        &mut self,
        at: usize,
        replay: &PartitionReplay,
        now: MonotonicMs,
    ) -> Result<Result<Offset, OpenError>, StorageError> {
        let (place, config) = (self.place(at, &replay.partition), Arc::clone(&self.config));
        let Self { dirs, files, .. } = self;
        let dir = OneDir(RefCell::new(&mut dirs[at]));
        replay_log(replay, place, config, false, &dir, &mut files[at], moment(now).wall)
    }

    /// Opens a replica, unless it is open.
    pub fn open(
        &mut self,
        key: ReplicaKey,
        name: &TopicPartition,
        time: &HostTime<'_>,
    ) -> Result<(), Unopened> {
        if self.replicas.contains_key(&key) || self.offline.contains(&key) || self.failed.is_some() {
            return Ok(());
        }
        if self.leaving.is_leaving(key) {
            return Err(Unopened::Leaving);
        }
        let partition = JournalPartition { topic_id: key.topic, topic_partition: name.clone() };
        let (at, is_known) = self.locate(key, &partition, time)?;
        let unreplayed = self.unreplayed.get(&key).map(|(_, replay)| Arc::clone(replay));
        let place = self.place(at, &partition);
        let checkpointed = is_known.then(|| Checkpointed::read(&mut self.dirs[at], name, key.topic));
        let opening = Opening {
            key,
            number: self.opened + 1,
            directory: at,
            place,
            config: Arc::new(config(self.ways, self.retains, self.compacts)),
            checkpointed,
            producers_max: u32::MAX,
            unreplayed: unreplayed.as_deref(),
            has_other_replicas: true,
            now: moment(time.now).wall,
        };
        match Replica::open(opening, &mut self.files[at]) {
            Ok((replica, report)) => {
                self.unreplayed.remove(&key);
                self.opened += 1;
                self.note_opened(replica);
                for damage in report.log.damaged {
                    if let StorageError::Damaged { offset, .. } = damage {
                        self.news.push_back(News::Damaged(key, offset));
                    }
                }
                Ok(())
            }
            Err(error) => self.cannot_open(at, key, unreplayed.as_deref(), error),
        }
    }

    fn cannot_open(
        &mut self,
        at: usize,
        key: ReplicaKey,
        unreplayed: Option<&PartitionReplay>,
        error: OpenError,
    ) -> Result<(), Unopened> {
        match error.verdict(unreplayed.is_some()) {
            OpenVerdict::Retry => return Err(Unopened::Later(error)),
            OpenVerdict::DirectoryFailed => return Err(Unopened::Failed(error.into())),
            OpenVerdict::Quarantine | OpenVerdict::Offline => {}
        }
        match unreplayed.map_or(Ok(()), |replay| self.keep_aside(at, replay)) {
            Ok(()) => {}
            Err(error) if error.is_passing() => return Err(Unopened::Later(error.into())),
            Err(error) => return Err(Unopened::Failed(error.into())),
        }
        self.unreplayed.remove(&key);
        self.stays_offline(key, error.to_string());
        Ok(())
    }

    pub(super) fn stays_offline(&mut self, key: ReplicaKey, why: String) {
        self.offline.insert(key);
        self.news.push_back(News::Offline { key, why });
    }

    fn note_opened(&mut self, replica: Replica) {
        let (key, start, end) = (replica.key, replica.log.start(), replica.log.end());
        let mut replica = replica;
        if self.ways.flush_messages > 0 {
            replica.flush.messages_max = self.ways.flush_messages;
        }
        replica.flush.after = DurationMs(40);
        let hosted = Hosted {
            replica,
            waiting: VecDeque::new(),
            seen_start: start,
            seen_durable: end,
            seen_high: start,
            seen_stable: start,
            loaded_to: end,
            role_waits: false,
        };
        self.replicas.insert(key, hosted);
        let log = self.log(key);
        self.news.push_back(News::Opened { key, start, log });
        self.observe(key);
    }

    /// Stops cleanly: everything is written back and synced, the journal closed, and the directory says so.
    pub fn close(
        &mut self,
        life: BrokerEpoch,
        image: &Image,
        time: &mut HostTime<'_>,
    ) -> Result<(), Failure> {
        self.finish_turn(time.now, None);
        self.put_aside(time.now, time.random);
        if !self.departures.is_empty() {
            return Err(Failure::Disk("what has left is not put aside".to_owned()));
        }
        for key in self.unreplayed.keys().copied().collect::<Vec<_>>() {
            if let Some(topic) = image.topics.by_id(key.topic) {
                self.open(key, &TopicPartition::new(topic.name.clone(), key.partition), time)?;
            }
        }
        self.close_moves()?;
        let mut closed = Set::default();
        for (_, mut hosted) in std::mem::take(&mut self.replicas) {
            let replica = &mut hosted.replica;
            let at = replica.directory;
            let files = &mut self.files[at];
            let name = replica.log.place().topic_partition.clone();
            replica.log.write_back_all(files, moment(time.now).wall)?;
            if replica.log.is_on_disk() {
                if replica.sync.is_in_flight && !time.is(Mistake::ClosesOverASync) {
                    replica.log.note_unsynced_again(files)?;
                }
                replica.snapshot_producers(files, &mut Vec::new())?;
                if let Some(dirty) = replica.log.close(files)? {
                    dirty.sync(&self.disk, files.file_system()).map_err(StorageError::from)?;
                    replica.log.mark_synced(dirty.ticket);
                }
            }
            let checkpoint = replica.checkpoint(files)?;
            self.note_checkpoint(at, &name, checkpoint);
            closed.insert(name);
        }
        for at in 0..self.dirs.len() {
            self.close_directory(at, life, &closed, time.now)?;
        }
        Ok(())
    }

    fn close_directory(
        &mut self,
        at: usize,
        life: BrokerEpoch,
        closed: &Set<TopicPartition>,
        now: MonotonicMs,
    ) -> Result<(), Failure> {
        let dir = &mut self.dirs[at];
        dir.set_journal(None);
        dir.write_checkpoints()?;
        let path = Arc::clone(dir.path());
        self.journals[at].close(&self.disk, &path, now)?;
        match dir.unrecovered(closed)? {
            0 if dir.is_settled() => dir.mark_clean(life)?,
            _ => dir.mark_left()?,
        }
        Ok(())
    }

    /// Partitions that this broker has no replica of, in directories or in the journal alone.
    pub fn strays(&mut self, mine: &BTreeSet<TopicPartition>) -> Result<BTreeSet<TopicPartition>, Failure> {
        let mut dirs = Vec::new();
        for at in 0..self.dirs.len() {
            for dir in self.dirs[at].partitions()? {
                match sweep(dir.kind, standing(mine, &dir), Fate::Unknown, false) {
                    Swept::Close => dirs.push(dir),
                    Swept::Remove if self.ways.sweeps => {
                        let path = self.dirs[at].path().join(&dir.name);
                        self.deletions.push((TimestampMs(0), path));
                    }
                    _ => {}
                }
            }
        }
        let unreplayed = self.unreplayed.values().map(|(_, replay)| replay.partition.topic_partition.clone());
        let found = dirs.into_iter().map(|dir| dir.topic_partition).chain(unreplayed);
        Ok(found.filter(|name| !mine.contains(name)).collect())
    }
}

/// Opens a log directory, and formats it where it is empty.
fn take_directory(
    disk: &MemoryDisk,
    root: &Path,
    (id, at): (BrokerId, usize),
    ways: Ways,
    mistake: Option<Mistake>,
) -> Result<LogDir, Failure> {
    let mut dir = LogDir::open(Arc::new(disk.clone()), root)?;
    if dir.meta().is_none() {
        dir.write_meta(MetaProperties {
            version: 1,
            cluster_id: Some(Text::from(CLUSTER)),
            node_id: Some(id),
            directory_id: Some(directory_id(id, at)),
        })?;
    }
    dir.set_synced(!ways.acks_are_written);
    if dir.was_clean() && files_in(disk, dir.path()).map_err(StorageError::from)? > 0 {
        remove_files(disk, dir.path(), None).map_err(StorageError::from)?;
    }
    if mistake != Some(Mistake::KeepsTheCleanMark) {
        dir.begin()?;
    }
    Ok(dir)
}

pub(super) fn directory_id(id: BrokerId, at: usize) -> DirectoryId {
    DirectoryId::from_random([id.get() as u8 + 100 * at as u8; 16])
}

fn standing(mine: &BTreeSet<TopicPartition>, dir: &PartitionDir) -> Known {
    if mine.contains(&dir.topic_partition) { Known::Mine } else { Known::Others }
}

/// The disk as one file system.
#[derive(Debug)]
struct WholeDisk(MemoryDisk);

impl FileSystem for WholeDisk {
    fn sync(&self) -> Result<(), DiskError> {
        self.0.sync_all()
    }
}

/// The checkpoints of one directory.
struct OneDir<'a>(RefCell<&'a mut LogDir>);

impl Checkpoints for OneDir<'_> {
    fn with<R>(&self, work: impl FnOnce(&mut LogDir) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}
