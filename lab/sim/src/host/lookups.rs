//! What clients and followers ask of a log by time and by epoch, answered by core/replica's queries, and by reading all
//! batches.

use barnabas_base::{Offset, TimestampMs};
use barnabas_partition::{Isolation, ReplicaKey};
use barnabas_replica::Search;
use barnabas_storage::SegmentReader;
use barnabas_wire::records::{BatchHeader, batches};
use std::sync::Arc;

use super::{HostTime, ReplicaHost};
use crate::mistake::Mistake;
use crate::random::Random;

/// The two answers to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub question: &'static str,
    pub of: i64,
    pub found: Option<i64>,
    pub expected: Option<i64>,
}

impl ReplicaHost {
    /// Asks a log that leads. `None`: it does not lead, is empty, or cannot be read whole.
    pub fn look_up(&mut self, key: ReplicaKey, time: &HostTime<'_>) -> Option<Lookup> {
        // What happens to the world does not depend on what is asked.
        let mut random = Random(time.now.0 ^ key.partition.get() as u64);
        let seen = self.seen(key)?;
        let replica = &mut self.replicas.get_mut(&key)?.replica;
        let files = &mut self.files[replica.directory];
        let is_compacted = replica.log.config().cleanup.compact;
        let bounds = replica.list_bounds(Isolation::LogEnd, None, false).ok()?;
        let (start, end) = (replica.log.start(), replica.log.end());
        let at = seen.get(random.below(seen.len().max(1)))?;
        let (question, of, found, expected) = match random.below(5) {
            0 => {
                let asked = TimestampMs(at.header.max_timestamp.0 - random.below(3) as i64);
                let from = match time.is(Mistake::SearchesTimesLate) {
                    true => at.header.base_offset.plus(1),
                    false => start,
                };
                let mut found = None;
                let mut next = Some((asked, from));
                while let Some((time, from)) = next.take() {
                    let batch = replica.timed_batch(Search::ByTime(time, from), files).ok()?;
                    found = batch.as_ref().and_then(|batch| batch.look(1 << 20).ok()?);
                    next = batch.filter(|_| found.is_none()).map(|batch| batch.next());
                }
                let mut records = seen.iter().flat_map(|batch| &batch.records);
                let expected = records.find(|(offset, time)| *offset >= start && *time >= asked);
                ("by time", asked.0, found.map(|found| found.offset.get()), expected.map(|(at, _)| at.get()))
            }
            1 => {
                let found = replica.timed_batch(Search::MaxTime, files).ok()?;
                let largest = seen.iter().map(|batch| batch.header.max_timestamp).max();
                let expected = seen.iter().find(|batch| Some(batch.header.max_timestamp) == largest)?;
                if is_compacted && expected.records.is_empty() {
                    return None;
                }
                let expected = Some(expected.header.base_offset.max(start).get());
                ("largest time", 0, found.map(|batch| batch.first_offset().get()), expected)
            }
            2 => {
                let (first, time) = *at.records.first()?;
                let found = replica.time_at(first, files).ok()?;
                ("time at", first.get(), found.map(|time| time.0), Some(time.0))
            }
            // A compacted log may have nothing left of where an epoch began.
            3 if !is_compacted => {
                let epoch = at.header.partition_leader_epoch;
                let (_, found) = replica.epoch_end(epoch, None).ok()?;
                let next = seen.iter().find(|next| next.header.partition_leader_epoch > epoch);
                let expected = next.map_or(end, |next| next.header.base_offset);
                ("epoch end", i64::from(epoch.get()), Some(found.get()), Some(expected.get()))
            }
            _ => ("log start", 0, Some(bounds.log_start.get()), Some(start.get())),
        };
        Some(Lookup { question, of, found, expected })
    }

    /// Reads the segments of a log as the console does, beside the log's owner. `None`: there are none, or they cannot
    /// be read whole. Nor of a log that is compacted: until a swap has ended, the files may be older than the log.
    pub fn read_beside(&mut self, key: ReplicaKey) -> Option<Lookup> {
        if self.compacts.is_some() {
            return None;
        }
        let replica = &mut self.replicas.get_mut(&key)?.replica;
        let files = &mut self.files[replica.directory];
        let log = &mut replica.log;
        let (start, end) = (log.start(), log.segment_end());
        if start >= end {
            return None;
        }
        let (mut at, mut expected) = (start, Vec::new());
        while at < end {
            let read = log.read(files, at, 1 << 20, end, true).ok().filter(|read| read.next_offset > at)?;
            expected.extend(batches(read.records).filter_map(Result::ok).map(|batch| *batch.header()));
            at = read.next_offset;
        }
        let mut reader = SegmentReader::new(Arc::new(self.disk.clone()), log.place().dir());
        let (mut at, mut found) = (start, Vec::new());
        while at < end {
            let piece = reader.read(at, 700).ok().filter(|piece| !piece.is_empty())?;
            let headers = batches(piece).filter_map(Result::ok).map(|batch| *batch.header());
            found.extend(headers.filter(|header| header.last_offset() >= at && header.base_offset < end));
            at = at.plus(1).max(found.last()?.last_offset().plus(1));
        }
        let first = expected.iter().zip(&found).find(|(expected, found)| expected != found);
        let differs = first.map(|(expected, _)| expected.base_offset.get());
        let lacks = (expected.len() != found.len()).then_some(-1);
        Some(Lookup { question: "beside", of: end.get(), found: differs.or(lacks), expected: None })
    }

    /// All batches that hold what is not deleted.
    fn seen(&mut self, key: ReplicaKey) -> Option<Vec<Seen>> {
        let replica = &mut self.replicas.get_mut(&key)?.replica;
        let (log, files) = (&mut replica.log, &mut self.files[replica.directory]);
        let (mut at, end): (Offset, Offset) = (log.start(), log.end());
        let mut seen = Vec::new();
        while at < end {
            let read = log.read(files, at, 1 << 20, end, true).ok()?;
            for batch in batches(read.records) {
                let batch = batch.ok()?;
                batch.check_crc().ok()?;
                let records = batch.records().ok()?;
                let records = records.iter().map(|record| record.ok().map(|it| (it.offset, it.timestamp)));
                seen.push(Seen { header: *batch.header(), records: records.collect::<Option<_>>()? });
            }
            if read.next_offset <= at {
                return None;
            }
            at = read.next_offset;
        }
        Some(seen)
    }
}

/// A batch, with its records' offsets and times.
#[derive(Debug)]
struct Seen {
    header: BatchHeader,
    records: Vec<(Offset, TimestampMs)>,
}
