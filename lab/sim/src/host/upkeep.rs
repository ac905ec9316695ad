//! What a directory needs now and then: checkpoints, files that go for good, room; and what becomes of a replica that
//! is given up.

use std::sync::Arc;

use barnabas_base::{LeaderEpoch, MonotonicMs, Offset, TimestampMs, TopicPartition, Uuid};
use barnabas_partition::ReplicaKey;
use barnabas_replica::{Checkpoint, FlushStep, Replica, RequestError};
use barnabas_storage::journal::{Entry, EntryKind, JournalPartition};
use barnabas_storage::scrub::{KnownEpochs, Scrubbed, SegmentScrub, changed_segments, segments, vouched_at};
use barnabas_storage::{Disk, DiskSpace, Level, LogDir, StorageError, Watermarks, remove_dir};

use super::{Failure, HostTime, News, ReplicaHost};
use crate::counts::Fault;
use crate::mistake::Mistake;
use crate::random::Random;

/// Below so many free bytes producers are refused.
const ROOM_BYTES: u64 = 24 << 10;

/// Of a disk that may be large, or is made full.
pub(super) fn reserve(total: u64) -> Watermarks {
    Watermarks::of(total, (total < 1 << 30).then_some(ROOM_BYTES))
}

impl ReplicaHost {
    pub(super) fn keep_house(&mut self, time: &mut HostTime<'_>) {
        if time.random.one_in(8) {
            self.look_for_room();
        }
        if (self.retains || self.compacts.is_some())
            && time.random.one_in(if self.room_is_short { 8 } else { 24 })
        {
            self.retain(time);
        }
        if time.random.one_in(30) {
            self.write_checkpoints(time);
        }
        if !self.departures.is_empty() && time.random.one_in(8) {
            self.put_aside(time.now, time.random);
        }
        if !self.dirs[0].is_settled() && time.random.one_in(20) {
            match self.disk.sync_all() {
                Ok(()) => self.dirs.iter_mut().for_each(LogDir::note_settled),
                Err(error) => self.fail(StorageError::from(error).into()),
            }
        }
        if self.deletions.iter().any(|(due, _)| due.0 <= time.now.0 as i64) {
            self.delete_due(time.now);
        }
    }

    /// Deletes what is too old or too much, as shell/broker's housekeeping.
    fn retain(&mut self, time: &mut HostTime<'_>) {
        let is_short = self.room_is_short;
        for key in self.replicas.keys().copied().collect::<Vec<_>>() {
            let is_ready = |replica: &Replica| replica.truncation.is_none() && !replica.partition.is_failed();
            if !self.replica(key).is_some_and(is_ready) {
                continue;
            }
            match self.step(key, time.now, |replica, around| replica.retain(is_short, around)) {
                Some(Ok(Some(delete))) => {
                    time.faults.note(Fault::DeletedSegments);
                    self.deletions.extend(delete.files.into_iter().map(|file| (delete.due, file)));
                }
                Some(Ok(None)) | None => {}
                Some(Err(error)) if error.is_passing() => self.room_is_short = true,
                Some(Err(StorageError::Damaged { offset, .. })) => {
                    self.news.push_back(News::Damaged(key, offset));
                }
                Some(Err(error)) => return self.fail(Failure::from(error)),
            }
        }
    }

    /// DeleteRecords. What the log begins with is in the checkpoints before the answer. `None`: it was refused.
    pub fn delete_records(&mut self, key: ReplicaKey, upto: Offset, now: MonotonicMs) -> Option<Offset> {
        let done = self.step(key, now, |replica, around| replica.delete_records(Some(upto), around))?;
        let start = done.ok()?;
        let replica = self.replica(key)?;
        let (at, name) = (replica.directory, replica.log.place().topic_partition.clone());
        self.dirs[at].raise_log_start(name, Some(start));
        match self.dirs[at].write_checkpoints() {
            Ok(()) => Some(start),
            Err(error) if error.is_passing() => None,
            Err(error) => {
                self.fail(Failure::from(error));
                None
            }
        }
    }

    fn look_for_room(&mut self) {
        let Ok(space) = self.dirs[0].space() else { return };
        if self.ways.keeps_reserve {
            let uncounted = self.entries.iter().flatten().count() as u64 * 100;
            self.level = reserve(space.total).level(space, uncounted, self.level);
            self.room_is_short = self.level > Level::Open;
        } else {
            self.room_is_short = space.free < ROOM_BYTES;
        }
    }

    fn delete_due(&mut self, now: MonotonicMs) {
        let (due, later) = std::mem::take(&mut self.deletions)
            .into_iter()
            .partition::<Vec<_>, _>(|(due, _)| due.0 <= now.0 as i64);
        self.deletions = later;
        for (_, path) in due {
            let is_dir = self.disk.stat(&path).ok().flatten().is_some_and(|stat| stat.is_dir);
            let gone = match is_dir {
                true => remove_dir(&self.disk, &path),
                false => self.disk.remove_file(&path).map_err(StorageError::from),
            };
            if let Err(error) = gone {
                self.fail(Failure::from(error));
                return;
            }
        }
    }

    fn write_checkpoints(&mut self, time: &HostTime<'_>) {
        let mut epochs_left = 256;
        for key in self.replicas.keys().copied().collect::<Vec<_>>() {
            let Some(hosted) = self.replicas.get_mut(&key) else { continue };
            let replica = &mut hosted.replica;
            if replica.partition.is_failed() || !std::mem::take(&mut replica.upkeep.is_changed) {
                continue;
            }
            let at = replica.directory;
            let name = replica.log.place().topic_partition.clone();
            match replica.checkpoint_ahead(&mut self.files[at], &mut epochs_left) {
                Ok(Some(mut checkpoint)) => {
                    if time.is(Mistake::ChecksBeforeTheSync) {
                        checkpoint.recovery_point = replica.log.segment_end();
                    }
                    self.note_checkpoint(at, &name, checkpoint);
                }
                Ok(None) => {
                    replica.upkeep.is_changed = true;
                    if !replica.log.has_new_epochs() {
                        self.sync_now(key);
                    }
                }
                Err(error) if error.is_passing() => self.room_is_short = true,
                Err(error) => return self.fail(Failure::from(error)),
            }
        }
        for at in 0..self.dirs.len() {
            self.dirs[at].set_journal(self.journals[at].life());
            match self.dirs[at].write_checkpoints() {
                Err(error) if error.is_passing() => self.room_is_short = true,
                Err(error) => self.fail(Failure::from(error)),
                Ok(()) => {}
            }
        }
    }

    pub(super) fn note_checkpoint(&mut self, at: usize, name: &TopicPartition, checkpoint: Checkpoint) {
        let Checkpoint { recovery_point, log_start, high_watermark } = checkpoint;
        let dir = &mut self.dirs[at];
        dir.set_recovery_point(name.clone(), recovery_point);
        dir.raise_log_start(name.clone(), log_start);
        dir.set_high_watermark(name.clone(), high_watermark);
    }

    /// Drops a replica that is built again from its log. What of it is in files is synced first.
    pub(super) fn drop_replica(&mut self, key: ReplicaKey) {
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        let at = hosted.replica.directory;
        if hosted.replica.log.write_back_all(&mut self.files[at], TimestampMs::NONE).is_err() {
            // What is in memory alone would be lost with it: it stays, and refuses everything.
            return;
        }
        let Some(mut hosted) = self.replicas.remove(&key) else { return };
        let replica = &mut hosted.replica;
        let noted = match replica.sync.is_in_flight {
            true => replica.log.note_unsynced_again(&mut self.files[at]),
            false => Ok(()),
        };
        let (disk, whole) = (&self.disk, self.files[at].file_system());
        let synced = noted.and_then(|()| {
            replica
                .log
                .take_dirty()
                .map_or(Ok(()), |dirty| dirty.sync(disk, whole).map_err(StorageError::from))
        });
        if let Err(error) = synced {
            self.fail(Failure::from(error));
        } else if let Some((order, _)) = replica.journal.write_back.take() {
            self.journals[at].written_back.push(order);
        }
    }

    /// This broker has no replica of the partition any more: it is closed, and its directory is put aside later.
    pub fn leave(&mut self, key: ReplicaKey, name: &TopicPartition) {
        if self.leaving.is_leaving(key) {
            return;
        }
        // A replica that is not open may have been: any journal may still hold some of it.
        let open = self.replica(key).map(|replica| replica.directory);
        let directories = open.map_or_else(|| (0..self.dirs.len()).collect(), |at| vec![at]);
        self.give_up_move(key);
        if !self.ways.acks_are_written {
            directories.iter().for_each(|&at| self.leaving.begin(key, at));
        }
        self.unreplayed.remove(&key);
        self.offline.remove(&key);
        if let Some(hosted) = self.replicas.get_mut(&key) {
            hosted.replica.fail(RequestError::Unknown, &mut self.outbox);
            self.carry_out(key);
        }
        if let Some(mut hosted) = self.replicas.remove(&key) {
            let at = hosted.replica.directory;
            hosted.replica.log.abandon(&mut self.files[at]);
            let order = hosted.replica.journal.write_back.take();
            self.orders.extend(order.map(|(partition, end)| (at, partition, end)));
        }
        // What the turn has for the journal comes before the removal.
        self.submit();
        self.departures.push_back((key, name.clone(), directories));
        self.news.push_back(News::Left { key, is_gone: false });
    }

    /// Whether the partition has left, and its directory is not put aside.
    pub(super) fn is_departing(&self, key: ReplicaKey) -> bool {
        self.departures.iter().any(|(departing, ..)| *departing == key)
    }

    /// Puts the directories of what has left aside, and hands the journal their removals after that.
    pub(super) fn put_aside(&mut self, now: MonotonicMs, random: &mut Random) {
        while let Some((key, name, mut directories)) = self.departures.pop_front() {
            while let Some(&at) = directories.last() {
                match self.put_aside_of(at, key, &name, now, random) {
                    Ok(()) => _ = directories.pop(),
                    // It is tried again.
                    Err(error) if error.is_passing() => {
                        return self.departures.push_front((key, name, directories));
                    }
                    Err(error) => return self.fail(Failure::from(error)),
                }
            }
            self.news.push_back(News::Left { key, is_gone: true });
        }
    }

    fn put_aside_of(
        &mut self,
        at: usize,
        key: ReplicaKey,
        name: &TopicPartition,
        now: MonotonicMs,
        random: &mut Random,
    ) -> Result<(), StorageError> {
        let unique = Uuid::from_random(random.bytes());
        let paths = self.dirs[at].rename_to_delete(&[(name.clone(), unique)])?;
        let due = TimestampMs(now.0 as i64 + 50);
        self.deletions.extend(paths.into_iter().map(|path| (due, path)));
        self.assigned.remove(&key);
        if !self.ways.acks_are_written {
            self.note_removal(at, key, name.clone());
        }
        Ok(())
    }

    /// The journal of that directory notes that the replica has left it.
    pub(super) fn note_removal(&mut self, at: usize, key: ReplicaKey, name: TopicPartition) {
        let partition = Arc::new(JournalPartition { topic_id: key.topic, topic_partition: name });
        let entry = Entry { partition, leader_epoch: LeaderEpoch::NONE, kind: EntryKind::Remove };
        self.entries[at].push(entry);
        self.submit();
    }

    /// `log.ack.durability=written`: hands in what has waited long enough.
    pub(super) fn flush_lazy(&mut self, now: MonotonicMs) {
        for key in std::mem::take(&mut self.lazy) {
            match self.replica(key).map(|replica| replica.flush_step(now)) {
                Some(FlushStep::Sync) => self.sync_now(key),
                Some(FlushStep::Later) => _ = self.lazy.insert(key),
                Some(FlushStep::Nothing) | None => {}
            }
        }
    }

    /// Whether nothing of others is taken either.
    pub fn is_full(&self) -> bool {
        if self.ways.keeps_reserve {
            let allows = |space: DiskSpace| reserve(space.total).allowance(space, 0) > ROOM_BYTES / 4;
            return self.level == Level::Full && !self.dirs[0].space().is_ok_and(allows);
        }
        self.room_is_short && self.dirs[0].space().is_ok_and(|space| space.free < ROOM_BYTES / 2)
    }

    /// Reads the segments of a log as the scrub does. Returns the first offset that is damaged.
    pub fn scrub(&mut self, key: ReplicaKey) -> Option<Offset> {
        let has_no_holes = self.has_no_holes(key);
        let Self { replicas, disk, dirs, .. } = self;
        let replica = &mut replicas.get_mut(&key)?.replica;
        let (log, checkpoints) = (&mut replica.log, &dirs[replica.directory]);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let dir = log.place().dir();
        let checkpointed = checkpoints.recovery_point(&log.place().topic_partition);
        let epochs = KnownEpochs::read(disk, &dir, checkpointed).ok()?;
        let mut found = segments(disk, &dir).ok()?;
        if self.ways.sweeps {
            // What was written last before the start is looked at first.
            let vouched = vouched_at(disk, checkpoints.path()).ok()?.unwrap_or(TimestampMs(0));
            let changed = changed_segments(disk, &dir, vouched).ok()?;
            found.sort_by_key(|listed| !changed.iter().any(|changed| changed.segment.base == listed.base));
        }
        for listed in found {
            let walk = SegmentScrub::open(&shared, &dir, listed, log.recovery_point(), has_no_holes).ok()?;
            let Some(mut walk) = walk.map(|walk| walk.with_epochs(epochs.clone())) else { continue };
            loop {
                match walk.step(64 << 10).ok()? {
                    Scrubbed::Sound(_) => {}
                    Scrubbed::End(_) => break,
                    Scrubbed::Damage(_, error) => {
                        // What readers found sound before may be what has changed.
                        log.forget_sound();
                        let StorageError::Damaged { offset, .. } = error else { return None };
                        return Some(offset);
                    }
                }
            }
        }
        None
    }

    /// A replica that met a full disk and could not be dropped then.
    pub fn reopen(&mut self, key: ReplicaKey) -> bool {
        if self.replica(key).is_some_and(|replica| replica.partition.is_failed()) && self.failed.is_none() {
            self.drop_replica(key);
        }
        !self.replicas.contains_key(&key)
    }
}
