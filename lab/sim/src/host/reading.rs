//! Logs, read: for the invariants, for coordinators that load, and as a consumer of committed records reads them.

use barnabas_base::Offset;
use barnabas_partition::{Isolation, ReplicaKey};
use barnabas_replica::ReadRequest;
use barnabas_storage::MemoryDisk;
use barnabas_storage::journal::{PartitionReplay, recover};
use barnabas_wire::records::HEADER_BYTES;
use bytes::Bytes;
use std::path::PathBuf;

use super::journal::JOURNAL_FILES;
use super::{News, ReplicaHost};
use crate::batch::{Batch, Contents};
use crate::random::Random;

/// What can be read of a part of a log.
#[derive(Debug, Clone)]
pub(crate) struct Readable {
    pub batches: Vec<Batch>,
    /// The log begins here.
    pub start: Offset,
    /// The part ends here.
    pub end: Offset,
    /// Nothing of it is damaged.
    pub is_whole: bool,
}

/// A byte of a segment that was changed, in the batch that stood there.
#[derive(Debug, Clone)]
pub(crate) struct Corrupted {
    path: PathBuf,
    begin: usize,
    byte: usize,
    sound: Bytes,
}

impl Corrupted {
    /// The operator restores the file, unless it was written to there since. `false`: it was.
    pub fn restore(&self, disk: &MemoryDisk) -> bool {
        let now = disk.contents(&self.path).unwrap_or_default();
        let mut damaged = self.sound.to_vec();
        damaged[self.byte - self.begin] ^= 0x40;
        let is_as_left = now.get(self.begin..self.begin + damaged.len()) == Some(&damaged[..]);
        if is_as_left {
            disk.corrupt(&self.path, |bytes| bytes[self.byte] ^= 0x40);
        }
        is_as_left
    }
}

impl ReplicaHost {
    /// The batches from `from` up to `upto`, durable or not.
    pub fn batches(&mut self, key: ReplicaKey, from: Offset, upto: Offset) -> Readable {
        let mut found = Readable { batches: Vec::new(), start: Offset::ZERO, end: upto, is_whole: true };
        let Some(hosted) = self.replicas.get_mut(&key) else { return found };
        let files = &mut self.files[hosted.replica.directory];
        let log = &mut hosted.replica.log;
        found.start = log.start();
        let (mut at, upto) = (from.max(log.start()), upto.min(log.end()));
        while at < upto {
            let read = log.read(files, at, 1 << 20, upto, true).ok();
            let is_a_hole = read.as_ref().is_some_and(|read| read.records.is_empty());
            if is_a_hole && log.config().cleanup.compact {
                // Compaction took what was there.
                break;
            }
            let batches = read.and_then(|read| Batch::read(read.records).ok()).unwrap_or_default();
            match batches.last() {
                Some(last) => at = last.end(),
                // It is damaged. What lies behind it may not be.
                None => (at, found.is_whole) = (at.plus(1), false),
            }
            found.batches.extend(batches);
        }
        found.batches.retain(|batch| batch.base >= from);
        found
    }

    /// The whole log.
    pub fn log(&mut self, key: ReplicaKey) -> Readable {
        let end = self.replica(key).map_or(Offset::ZERO, |replica| replica.log.end());
        self.batches(key, Offset::ZERO, end)
    }

    /// Whether something of it cannot be read.
    pub fn is_offline_or_damaged(&mut self, key: ReplicaKey) -> bool {
        self.offline.contains(&key) || self.replica(key).is_none() || !self.log(key).is_whole
    }

    /// Changes a byte in a segment, where what lies there is synced and shown, and a start knows that. `by_journal`: it
    /// may know by the journal alone. `None`: there is no such place.
    pub fn damage(&mut self, key: ReplicaKey, by_journal: bool, random: &mut Random) -> Option<Corrupted> {
        let noted = self.known_as_synced(key, by_journal);
        let hosted = self.replicas.get_mut(&key)?;
        let replica = &mut hosted.replica;
        let files = &mut self.files[replica.directory];
        let (start, safe) = (
            replica.log.start().get(),
            noted.min(replica.log.recovery_point()).min(replica.partition.high_watermark()).get(),
        );
        if safe <= start {
            return None;
        }
        let at = Offset(start + random.below((safe - start) as usize) as i64);
        replica.log.forget_below(Offset(safe));
        let read = replica.log.read(files, at, 1, Offset(safe), true).ok()?;
        let place = read.position.filter(|_| !read.records.is_empty())?;
        let path = replica.log.place().dir().join(format!("{:020}.log", place.segment.get()));
        let reach = if random.one_in(3) { HEADER_BYTES } else { read.records.len() };
        // Kafka's checksum does not cover the leader epoch: a batch beside it has to be of the same one
        // (docs/DAMAGE.md).
        let bytes = self.disk.contents(&path).unwrap_or_default();
        let epoch_at = |position: usize| bytes.get(position + 12..position + 16);
        let (begin, behind) = (place.position as usize, place.position as usize + read.records.len());
        let is_borne_out = read.next_offset < Offset(safe) && epoch_at(begin) == epoch_at(behind);
        let byte = match random.below(reach) {
            byte @ 12..16 if !is_borne_out => byte + 4,
            byte => byte,
        };
        let byte = begin + byte;
        self.disk.corrupt(&path, |bytes| bytes[byte] ^= 0x40);
        replica.log.forget_sound();
        Some(Corrupted { path, begin, byte, sound: read.records })
    }

    /// Up to where the checkpoint file, or the journal as it is, says that the log is synced. The file lags behind on a
    /// full disk, and until then the journal's files may be reused: past it a start takes damage for a torn tail, as
    /// Kafka's does.
    fn known_as_synced(&self, key: ReplicaKey, by_journal: bool) -> Offset {
        let Some(replica) = self.replica(key) else { return Offset::ZERO };
        let name = &replica.log.place().topic_partition;
        let dir = &self.dirs[replica.directory];
        let text = self.disk.contents(&dir.path().join("recovery-point-offset-checkpoint"));
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let prefix = format!("{} {} ", name.topic, name.partition);
        let noted = text
            .lines()
            .find_map(|line| line.strip_prefix(&prefix)?.parse().ok())
            .map_or(Offset::ZERO, Offset);
        if !by_journal {
            return noted;
        }
        let directory = dir.meta().and_then(|meta| meta.directory_id).unwrap_or_default();
        let found = recover(&self.disk, dir.path(), JOURNAL_FILES, directory).ok();
        let known = found.iter().flat_map(|found| found.partitions.iter().chain(&found.written_back));
        let known =
            known.filter(|replay| *replay.partition == *replica.name).map(PartitionReplay::synced_below);
        known.fold(noted, Offset::max)
    }

    pub(super) fn batch_at(&mut self, key: ReplicaKey, base: Offset) -> Option<Batch> {
        let replica = &mut self.replicas.get_mut(&key)?.replica;
        let (log, files) = (&mut replica.log, &mut self.files[replica.directory]);
        let end = log.end();
        let read = log.read(files, base, 1, end, true).ok()?;
        Batch::read(read.records).ok()?.into_iter().find(|batch| batch.base == base)
    }

    /// Says what has become durable, shown and stable since the last step.
    pub(super) fn observe(&mut self, key: ReplicaKey) {
        let Some(hosted) = self.replicas.get(&key) else { return };
        let (partition, log) = (&hosted.replica.partition, &hosted.replica.log);
        if partition.is_failed() {
            return;
        }
        let (start, end, leads) = (log.start(), log.end(), partition.is_leader());
        // Its leader has deleted what lies below its start. On a full disk a follower has yet to follow it there.
        let deleted = if leads { start } else { hosted.replica.leader_start };
        if start > hosted.seen_start {
            self.news.push_back(News::Started { key, start });
        }
        let (durable, high, stable) = (
            partition.durable_end().min(end),
            partition.high_watermark().min(end),
            partition.last_stable().min(end),
        );
        let high = if self.shows_everything { end } else { high };
        let seen = (hosted.seen_durable, hosted.seen_high, hosted.seen_stable);
        // What is about to be truncated counts no more.
        let durable = if hosted.replica.truncation.is_some() { seen.0 } else { durable };
        if durable > seen.0 {
            let batches = self.batches(key, seen.0, durable).batches;
            self.news.push_back(News::Durable { key, batches });
        }
        if high > seen.1 {
            let batches = self.batches(key, seen.1.max(deleted), high);
            self.news.push_back(News::HighWatermark { key, to: high, leads, read: batches });
        }
        if stable > seen.2
            && let Some(read) = self.read_committed(key, seen.2.max(deleted), stable)
        {
            let loaded = self.loaded_markers(key, high);
            self.news.push_back(News::LastStable { key, to: stable, read, loaded });
        }
        if let Some(hosted) = self.replicas.get_mut(&key) {
            hosted.seen_start = start;
            hosted.seen_durable = hosted.seen_durable.max(durable);
            hosted.seen_high = hosted.seen_high.max(high);
            hosted.seen_stable = hosted.seen_stable.max(stable);
        }
    }

    fn loaded_markers(&mut self, key: ReplicaKey, high: Offset) -> Vec<Batch> {
        let to = self.replicas.get(&key).map_or(high, |hosted| hosted.loaded_to);
        let above = if high < to { self.batches(key, high, to).batches } else { Vec::new() };
        above.into_iter().filter(|batch| matches!(batch.contents, Contents::Marker { .. })).collect()
    }

    /// All that is sent to a reader of committed records.
    pub fn read_all_committed(&mut self, key: ReplicaKey) -> Option<Vec<(Batch, bool)>> {
        let replica = self.replica(key)?;
        let to = replica.partition.last_stable().min(replica.log.end());
        self.read_committed(key, Offset::ZERO, to)
    }

    /// The batches that a consumer is sent, each with whether it passes over it, as it belongs to an aborted
    /// transaction.
    fn read_committed(&mut self, key: ReplicaKey, from: Offset, to: Offset) -> Option<Vec<(Batch, bool)>> {
        let Self { replicas, files, outbox, .. } = self;
        let replica = &mut replicas.get_mut(&key)?.replica;
        let files = &mut files[replica.directory];
        let mut at = from.max(replica.log.start());
        let mut read = Vec::new();
        while at < to {
            let request = ReadRequest {
                from: at,
                max_bytes: 1 << 20,
                at_least_one: true,
                isolation: Isolation::ReadCommitted,
                from_any: true,
                leader_epoch: None,
                last_fetched_epoch: None,
            };
            let bounds = replica.bounds_for(&request).ok()?;
            let done = replica.read(&request, bounds, files, outbox).ok()?;
            if done.next <= at {
                return None;
            }
            at = done.next;
            for batch in Batch::read(done.records).ok()? {
                let is_hidden = done.aborted.iter().any(|aborted| {
                    aborted.producer_id == batch.producer
                        && (aborted.first_offset..=aborted.last_offset).contains(&batch.base)
                });
                read.push((batch, is_hidden));
            }
        }
        Some(read)
    }
}
