//! Moves of replicas between the log directories of their broker: a copy is made piece by piece, and takes the place of
//! the log in one turn.
//!
//! As shell/broker's upkeep/mover.rs and worker/partition_worker/lifecycle/moves.rs. core/replica's `moving` decides.

use barnabas_base::{MonotonicMs, Offset, TimestampMs, TopicPartition, Uuid};
use barnabas_metadata::Image;
use barnabas_partition::ReplicaKey;
use barnabas_replica::{CopyVerdict, Fits, LogCopy, LogPiece, MoveBegins, RequestError};
use barnabas_storage::journal::JournalPartition;
use barnabas_storage::{DirKind, Disk, DiskSpace, FilePool, LogPlace, StorageError, remove_dir};
use std::path::PathBuf;
use std::sync::Arc;

use super::upkeep::reserve;
use super::{Failure, HostTime, News, ReplicaHost, moment};
use crate::counts::Fault;
use crate::random::Random;

const FILES_OPEN: usize = 4;
const PIECE_BYTES: usize = 600;

#[derive(Debug)]
pub(super) struct Move {
    to: usize,
    copy: LogCopy,
    /// A clean stop has left it.
    goes_on: bool,
}

impl ReplicaHost {
    /// AlterReplicaLogDirs: the replica is to lie in directory `to`.
    pub fn begin_move(&mut self, key: ReplicaKey, to: usize, time: &mut HostTime<'_>) {
        let is_ready = self.replica(key).is_some_and(|replica| !replica.partition.is_failed());
        if !is_ready || self.failed.is_some() {
            return;
        }
        self.finish_turn(time.now, None);
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        match hosted.replica.begin_move(to) {
            MoveBegins::There => self.give_up_move(key),
            MoveBegins::ToCopy { .. } => {
                time.faults.note(Fault::MovedDirectory);
                self.give_up_move(key);
                self.copy_to(key, to, Uuid::from_random(time.random.bytes()));
            }
            MoveBegins::Empty => {
                hosted.replica.fail(RequestError::Unknown, &mut self.outbox);
                self.carry_out(key);
                self.replicas.remove(&key);
                self.assign(key, to);
                self.news.push_back(News::Reopen(key));
            }
        }
    }

    fn copy_to(&mut self, key: ReplicaKey, to: usize, unique: Uuid) {
        let Some(place) = self.future_place(key, to, unique) else { return };
        let made = self.disk.create_dir(&place.dir()).and_then(|()| self.disk.sync_dir(&place.root));
        match made.map_err(StorageError::from) {
            Ok(()) => {}
            Err(error) if error.is_passing() => return,
            Err(error) => return self.fail(Failure::from(error)),
        }
        let from = self.replica(key).map_or(0, |replica| replica.directory);
        let files = FilePool::new(Arc::new(self.disk.clone()), FILES_OPEN);
        let mut copy = LogCopy::new(place, files);
        copy.clean_to = self.dirs[from].cleaner_point(&copy.place.topic_partition);
        self.moves.insert(key, Move { to, copy, goes_on: false });
    }

    fn future_place(&self, key: ReplicaKey, to: usize, unique: Uuid) -> Option<LogPlace> {
        let topic_partition = self.replica(key)?.log.place().topic_partition.clone();
        let partition = JournalPartition { topic_id: key.topic, topic_partition };
        Some(LogPlace { future: Some(unique), ..self.place(to, &partition) })
    }

    /// The move is over, and nothing of its copy stays.
    pub(super) fn give_up_move(&mut self, key: ReplicaKey) {
        let Some(mut each) = self.moves.remove(&key) else { return };
        each.copy.abandon();
        match remove_dir(&self.disk, &each.copy.path()) {
            Err(error) if !error.is_passing() => self.fail(Failure::from(error)),
            _ => {}
        }
    }

    /// Begins again what an earlier process has not finished, or goes on with it.
    pub fn resume_moves(&mut self, image: &Image, random: &mut Random) -> Result<(), Failure> {
        let was_clean = self.dirs.iter().all(|dir| dir.was_clean());
        for at in 0..self.dirs.len() {
            for entry in self.dirs[at].partitions()? {
                if entry.kind != DirKind::Future {
                    continue;
                }
                let path = self.dirs[at].path().join(&entry.name);
                let key = key_of(image, &entry.topic_partition);
                let unique = entry.unique().ok_or_else(|| Failure::Lost(format!("{path:?} has no id")))?;
                let known = key.filter(|key| !self.moves.contains_key(key));
                let is_here =
                    |key: &ReplicaKey| self.replica(*key).map(|replica| replica.directory) == Some(at);
                let Some(key) = known.filter(|key| self.replicas.contains_key(key) && !is_here(key)) else {
                    remove_dir(&self.disk, &path)?;
                    continue;
                };
                self.dirs[at].forget(&entry.topic_partition);
                self.dirs[at].write_checkpoints()?;
                self.resume_move(key, at, unique, was_clean, (path, random))?;
            }
        }
        Ok(())
    }

    fn resume_move(
        &mut self,
        key: ReplicaKey,
        to: usize,
        unique: Uuid,
        was_clean: bool,
        (path, random): (PathBuf, &mut Random),
    ) -> Result<(), Failure> {
        let Some(hosted) = self.replicas.get_mut(&key) else { return Ok(()) };
        if !matches!(hosted.replica.begin_move(to), MoveBegins::ToCopy { .. }) {
            return Ok(remove_dir(&self.disk, &path)?);
        }
        let config = Arc::clone(hosted.replica.log.config());
        let Some(place) = self.future_place(key, to, unique).filter(|_| was_clean) else {
            remove_dir(&self.disk, &path)?;
            self.copy_to(key, to, Uuid::from_random(random.bytes()));
            return Ok(());
        };
        let mut copy = LogCopy::new(place, FilePool::new(Arc::new(self.disk.clone()), FILES_OPEN));
        match copy.resume(config, TimestampMs(0)) {
            Ok(()) => _ = self.moves.insert(key, Move { to, copy, goes_on: true }),
            Err(error) => match CopyVerdict::of(&error, true) {
                CopyVerdict::BeginAgain | CopyVerdict::Over => {
                    remove_dir(&self.disk, &path)?;
                    self.copy_to(key, to, Uuid::from_random(random.bytes()));
                }
                CopyVerdict::Retry | CopyVerdict::DirectoryFailed => return Err(error.into()),
            },
        }
        Ok(())
    }

    /// A clean stop leaves what is copied to the next start.
    pub(super) fn close_moves(&mut self) -> Result<(), Failure> {
        for each in self.moves.values_mut() {
            match each.copy.close() {
                Err(error) if !error.is_passing() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// One piece of each move, or its last step.
    pub(super) fn move_some(&mut self, time: &mut HostTime<'_>) {
        for key in self.moves.keys().copied().collect::<Vec<_>>() {
            if time.random.one_in(2) && self.failed.is_none() {
                self.move_piece(key, time);
            }
        }
    }

    fn move_piece(&mut self, key: ReplicaKey, time: &mut HostTime<'_>) {
        let piece = PIECE_BYTES as u64;
        let has_room = |space: DiskSpace| reserve(space.total).admits_copy(space, 0, piece);
        if self.ways.keeps_reserve && !self.dirs[0].space().is_ok_and(has_room) {
            return;
        }
        let Some(mut each) = self.moves.remove(&key) else { return };
        let Some(hosted) = self.replicas.get_mut(&key) else {
            // It is offline for now.
            self.moves.insert(key, each);
            return;
        };
        let files = &mut self.files[hosted.replica.directory];
        let has_journal = !self.ways.acks_are_written;
        let read = hosted.replica.read_durable_piece(each.copy.end(), PIECE_BYTES, has_journal, files);
        let piece = match read {
            Ok(piece) => piece,
            Err(error) => {
                self.moves.insert(key, each);
                return self.read_failed(key, &error);
            }
        };
        match each.copy.put(&piece, moment(time.now).wall) {
            Ok(Fits::Yes) => {}
            Ok(Fits::No) => return self.start_over(key, each, time.random),
            Err(error) => return self.copy_failed(key, each, &error, time.random),
        }
        if !each.copy.has_caught_up(&piece) {
            self.moves.insert(key, each);
            return;
        }
        self.finish_move(key, each, &piece, time);
    }

    fn start_over(&mut self, key: ReplicaKey, each: Move, random: &mut Random) {
        let to = each.to;
        self.moves.insert(key, each);
        self.give_up_move(key);
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        if matches!(hosted.replica.begin_move(to), MoveBegins::ToCopy { .. }) {
            self.copy_to(key, to, Uuid::from_random(random.bytes()));
        }
    }

    fn copy_failed(&mut self, key: ReplicaKey, each: Move, error: &StorageError, random: &mut Random) {
        match CopyVerdict::of(error, each.goes_on) {
            CopyVerdict::Retry => _ = self.moves.insert(key, each),
            CopyVerdict::BeginAgain => self.start_over(key, each, random),
            CopyVerdict::DirectoryFailed => self.fail(Failure::from(error.clone())),
            CopyVerdict::Over => {
                self.moves.insert(key, each);
                self.give_up_move(key);
            }
        }
    }

    /// The copy has all that is durable.
    fn finish_move(&mut self, key: ReplicaKey, mut each: Move, piece: &LogPiece, time: &mut HostTime<'_>) {
        if let Err(error) = each.copy.sync() {
            return self.copy_failed(key, each, &error, time.random);
        }
        each.copy.fill_empty(piece);
        self.finish_turn(time.now, None);
        let may_finish = self.replica(key).is_some_and(|replica| replica.may_finish_move(each.to));
        if !may_finish {
            self.moves.insert(key, each);
            return self.give_up_move(key);
        }
        if self.leaving.is_leaving_directory(key, each.to) {
            self.moves.insert(key, each);
            return;
        }
        match self.catch_up(key, &mut each, time.now) {
            Ok(true) => {}
            Ok(false) => {
                self.moves.insert(key, each);
                return;
            }
            Err(error) => return self.copy_failed(key, each, &error, time.random),
        }
        let high_watermark =
            self.replica(key).map_or(Offset::ZERO, |replica| replica.partition.high_watermark());
        match each.copy.promote(&mut self.dirs[each.to], high_watermark) {
            Ok(()) => self.leave_directory(key, each, time),
            Err(error) if error.is_passing() => _ = self.moves.insert(key, each),
            // Whether the name was given, the next start sees.
            Err(error) => self.fail(Failure::from(error)),
        }
    }

    fn catch_up(&mut self, key: ReplicaKey, each: &mut Move, now: MonotonicMs) -> Result<bool, StorageError> {
        let Some(hosted) = self.replicas.get_mut(&key) else { return Ok(false) };
        let files = &mut self.files[hosted.replica.directory];
        hosted.replica.catch_up(&mut each.copy, files, moment(now).wall)
    }

    /// The old log gives up its name, and the partition goes on in the new one.
    fn leave_directory(&mut self, key: ReplicaKey, each: Move, time: &mut HostTime<'_>) {
        let Move { to, copy: LogCopy { place, log: Some(log), .. }, .. } = each else { return };
        let before = self.log(key);
        let Self { replicas, files, outbox, .. } = self;
        let Some(hosted) = replicas.get_mut(&key) else { return };
        let from = hosted.replica.directory;
        let left = hosted.replica.move_to(to, log, &mut files[from], outbox);
        let unique = Uuid::from_random(time.random.bytes());
        let aside = match self.dirs[from].rename_moved(&place.topic_partition, unique) {
            Ok(aside) => aside,
            Err(error) => {
                hosted.replica.fail(RequestError::Storage, &mut self.outbox);
                self.carry_out(key);
                self.replicas.remove(&key);
                return self.fail(Failure::from(error));
            }
        };
        let due = TimestampMs(time.now.0 as i64 + 50);
        self.deletions.extend(aside.map(|path| (due, path)));
        hosted.replica.moved(&mut self.outbox);
        self.carry_out(key);
        if let Some(order) = left.order {
            self.journals[from].written_back.push(order);
        }
        if !self.ways.acks_are_written {
            if let Some(hosted) = self.replicas.get_mut(&key) {
                hosted.replica.note_ranges(&mut self.entries[to]);
            }
            self.leaving.begin(key, from);
            self.note_removal(from, key, place.topic_partition);
        }
        self.assign(key, to);
        time.faults.note(Fault::FinishedMove);
        let after = self.log(key);
        self.news.push_back(News::Moved { key, before, after });
    }
}

fn key_of(image: &Image, name: &TopicPartition) -> Option<ReplicaKey> {
    Some(ReplicaKey { topic: image.topics.id_of(&name.topic)?, partition: name.partition })
}
