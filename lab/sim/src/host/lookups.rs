//! What clients and followers ask of a log by time and by epoch, answered by core/replica's queries, and by reading all
//! batches.

use barnabas_base::{Offset, TimestampMs};
use barnabas_partition::{Isolation, ReplicaKey};
use barnabas_replica::Search;
use barnabas_wire::records::{BatchHeader, batches};

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
                    let batch = replica.timed_batch(Search::ByTime(time, from), &mut self.files).ok()?;
                    found = batch.as_ref().and_then(|batch| batch.look(1 << 20).ok()?);
                    next = batch.filter(|_| found.is_none()).map(|batch| batch.next());
                }
                let mut records = seen.iter().flat_map(|batch| &batch.records);
                let expected = records.find(|(offset, time)| *offset >= start && *time >= asked);
                ("by time", asked.0, found.map(|found| found.offset.get()), expected.map(|(at, _)| at.get()))
            }
            1 => {
                let found = replica.timed_batch(Search::MaxTime, &mut self.files).ok()?;
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
                let found = replica.time_at(first, &mut self.files).ok()?;
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

    /// All batches that hold what is not deleted.
    fn seen(&mut self, key: ReplicaKey) -> Option<Vec<Seen>> {
        let log = &mut self.replicas.get_mut(&key)?.replica.log;
        let (mut at, end): (Offset, Offset) = (log.start(), log.end());
        let mut seen = Vec::new();
        while at < end {
            let read = log.read(&mut self.files, at, 1 << 20, end, true).ok()?;
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
