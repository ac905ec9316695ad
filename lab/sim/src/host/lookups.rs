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
        let headers = self.headers(key)?;
        let replica = &mut self.replicas.get_mut(&key)?.replica;
        let bounds = replica.list_bounds(Isolation::LogEnd, None, false).ok()?;
        let (start, end) = (replica.log.start(), replica.log.end());
        let at = headers.get(random.below(headers.len().max(1)))?;
        let (question, of, found, expected) = match random.below(5) {
            0 => {
                let asked = TimestampMs(at.max_timestamp.0 - random.below(3) as i64);
                let from = if time.is(Mistake::SearchesTimesLate) { at.base_offset.plus(1) } else { start };
                let search = Search::ByTime(asked, from);
                let found = replica.timed_batch(search, &mut self.files).ok()?;
                let found = found.and_then(|batch| batch.look(1 << 20).ok()?);
                let expected = headers.iter().find(|header| header.max_timestamp >= asked);
                let offset = |header: &BatchHeader| header.base_offset.max(start).get();
                ("by time", asked.0, found.map(|found| found.offset.get()), expected.map(offset))
            }
            1 => {
                let found = replica.timed_batch(Search::MaxTime, &mut self.files).ok()?;
                let largest = headers.iter().map(|header| header.max_timestamp).max();
                let expected = headers.iter().find(|header| Some(header.max_timestamp) == largest);
                let found = found.map(|batch| batch.first_offset().get());
                ("largest time", 0, found, expected.map(|header| header.base_offset.max(start).get()))
            }
            2 => {
                let found = replica.time_at(at.base_offset, &mut self.files).ok()?;
                ("time at", at.base_offset.get(), found.map(|time| time.0), Some(at.base_timestamp.0))
            }
            3 => {
                let epoch = at.partition_leader_epoch;
                let (_, found) = replica.epoch_end(epoch, None).ok()?;
                let next = headers.iter().find(|header| header.partition_leader_epoch > epoch);
                let expected = next.map_or(end, |next| next.base_offset);
                ("epoch end", i64::from(epoch.get()), Some(found.get()), Some(expected.get()))
            }
            _ => ("log start", 0, Some(bounds.log_start.get()), Some(start.get())),
        };
        Some(Lookup { question, of, found, expected })
    }

    /// Of all batches that hold what is not deleted.
    fn headers(&mut self, key: ReplicaKey) -> Option<Vec<BatchHeader>> {
        let log = &mut self.replicas.get_mut(&key)?.replica.log;
        let (mut at, end): (Offset, Offset) = (log.start(), log.end());
        let mut headers = Vec::new();
        while at < end {
            let read = log.read(&mut self.files, at, 1 << 20, end, true).ok()?;
            for batch in batches(read.records) {
                let batch = batch.ok()?;
                batch.check_crc().ok()?;
                headers.push(*batch.header());
            }
            if read.next_offset <= at {
                return None;
            }
            at = read.next_offset;
        }
        Some(headers)
    }
}
