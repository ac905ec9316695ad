//! Truncations, in the order that core/replica asks for: the journal notes them, checkpoints are lowered, the log is
//! truncated.
//!
//! As shell/broker's partition_worker/replication/truncation.rs.

use barnabas_base::{MonotonicMs, Offset, TimestampMs};
use barnabas_partition::{Cut, ReplicaKey};
use barnabas_replica::{RequestError, TruncationVerdict};
use barnabas_storage::StorageError;

use super::{Failure, HostTime, News, ReplicaHost};
use crate::mistake::Mistake;

impl ReplicaHost {
    /// Begins to truncate. All that the replica has is durable.
    pub fn truncate(&mut self, key: ReplicaKey, cut: Cut, time: &HostTime<'_>) {
        if cut == Cut::Nothing {
            return self.news.push_back(News::FollowOn(key));
        }
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        match hosted.replica.truncation_at(&mut self.files[hosted.replica.directory], cut) {
            Ok((cut, damage)) => {
                if let Some(StorageError::Damaged { offset, .. }) = damage {
                    self.news.push_back(News::Damaged(key, offset));
                }
                self.note_truncation(key, cut, false, time);
            }
            Err(error) => {
                self.truncation_failed(key, error);
                self.news.push_back(News::FollowOn(key));
            }
        }
    }

    /// Notes where the log is truncated. `is_repair`: what goes is damaged.
    pub fn note_truncation(&mut self, key: ReplicaKey, cut: Cut, is_repair: bool, time: &HostTime<'_>) {
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        let (has_journal, forgets) = (!self.ways.acks_are_written, time.is(Mistake::TruncatesUnnoted));
        match hosted.replica.want_truncation(cut, is_repair, has_journal && !forgets) {
            Some(entry) => self.entries[hosted.replica.directory].push(entry),
            None => self.news.push_back(News::FollowOn(key)),
        }
        let upto = match cut {
            Cut::Nothing => return,
            Cut::To(end) => end,
            Cut::StartAt(_) => Offset::ZERO,
        };
        hosted.seen_durable = hosted.seen_durable.min(upto);
        self.news.push_back(News::WillCut { key, cut });
    }

    pub fn may_truncate(&self, key: ReplicaKey) -> bool {
        self.replica(key).is_some_and(barnabas_replica::Replica::may_truncate)
    }

    /// The truncation is noted: no crash brings back what goes now. `true`: it is done.
    pub fn truncate_now(&mut self, key: ReplicaKey, now: MonotonicMs) -> bool {
        let Some(high_watermark) = self.replica(key).map(|replica| replica.partition.high_watermark()) else {
            return false;
        };
        let is_repair = match self.carry_out_truncation(key, now) {
            Ok(is_repair) => is_repair,
            Err(error) => {
                self.truncation_failed(key, error);
                return false;
            }
        };
        let Some(hosted) = self.replicas.get_mut(&key) else { return false };
        let end = hosted.replica.log.end();
        hosted.seen_durable = hosted.seen_durable.min(end);
        hosted.seen_high = Offset::ZERO;
        hosted.seen_stable = Offset::ZERO;
        self.news.push_back(match is_repair {
            true => News::GaveUp { key, to: end },
            false => News::Cut { key, to: end, high_watermark },
        });
        self.step(key, now, |replica, around| replica.settle_write_back(around.outbox));
        true
    }

    fn carry_out_truncation(&mut self, key: ReplicaKey, now: MonotonicMs) -> Result<bool, StorageError> {
        let Self { replicas, files, dirs, outbox, deletions, .. } = self;
        let Some(hosted) = replicas.get_mut(&key) else { return Ok(false) };
        let at = hosted.replica.directory;
        let (files, dir) = (&mut files[at], &mut dirs[at]);
        let wall = TimestampMs(now.0 as i64);
        hosted.replica.lower_checkpoints(dir)?;
        let truncated = hosted.replica.truncate(files, wall, &mut outbox.effects)?;
        if let Some(delete) = truncated.delete {
            deletions.extend(delete.files.into_iter().map(|file| (delete.due, file)));
        }
        let is_repair = hosted.replica.finish_truncation(files)?;
        hosted.loaded_to = hosted.replica.log.end();
        self.carry_out(key);
        Ok(is_repair)
    }

    /// The replica waits, or is of no use any more, or its directory.
    pub fn truncation_failed(&mut self, key: ReplicaKey, error: StorageError) {
        match TruncationVerdict::of(&error) {
            TruncationVerdict::Retry => {}
            TruncationVerdict::DirectoryFailed => self.fail(Failure::from(error)),
            TruncationVerdict::Offline => {
                let Some(hosted) = self.replicas.get_mut(&key) else { return };
                hosted.replica.log.fail();
                hosted.replica.fail(RequestError::Storage, &mut self.outbox);
                self.stays_offline(key, error.to_string());
                self.carry_out(key);
            }
        }
    }
}
