//! Which puts go together in the next batch of a partition, and what each of them is answered. Pure: no I/O, no clock.
//!
//! A partition has one batch under way. Puts that come meanwhile wait, and the next batch takes one of each connection
//! in turn until it is full. There is no linger: where no batch is under way, the first put is a batch.
//!
//! | the batch ends with | its puts |
//! |---|---|
//! | success | are done |
//! | an error of one of several records | go again in two halves, before all others, until it has the error alone |
//! | an error that outlasted the producer's tries | get it, and so do those that wait for this partition |
//! | any other error | get it |
//!
//! Always true:
//! 1. each put that was added comes out of [`Batching::next_outcome`] once
//! 2. puts of one connection for one partition are sent in the order in which they were added
//! 3. a batch takes [`ROUND_BYTES`] at most, or one record
//!
//! Before: puts.rs. After: driver.rs.

use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Outgoing, murmur2};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Of the records of a batch: below what a topic takes by default (1 MiB).
pub const ROUND_BYTES: usize = 500 * 1024;
/// The largest record: sections of a message come twice in it at most.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most that a record takes beside its key, value and headers, and a header beside its name and value.
const RECORD_OVERHEAD: usize = 40;
const HEADER_OVERHEAD: usize = 10;

/// A client's connection. Its puts without a key go to one partition of a topic, so that they keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(pub(super) u64);

/// What became of a put. Those of one batch share their error.
pub type Outcome = Result<(), Rc<ClientError>>;

/// A put: its outcome goes to `tag`.
#[derive(Debug)]
pub struct Put<T> {
    pub tag: T,
    pub from: Origin,
    pub record: Outgoing,
    /// As [`size_bytes`] says.
    pub bytes: usize,
}

/// What a record takes in a batch, at the most.
pub fn size_bytes(record: &Outgoing) -> usize {
    let len = |part: &Option<bytes::Bytes>| part.as_ref().map_or(0, bytes::Bytes::len);
    let headers = record.headers.iter().map(|(name, value)| HEADER_OVERHEAD + name.len() + len(value));
    RECORD_OVERHEAD + len(&record.key) + len(&record.value) + headers.sum::<usize>()
}

/// One partition's puts.
#[derive(Debug)]
struct Lane<T> {
    under_way: Vec<Put<T>>,
    /// Parts of a batch that was refused for one of its records. Each is a batch, before those that wait.
    again: VecDeque<Vec<Put<T>>>,
    /// Connections with something that waits, each once.
    turns: VecDeque<Origin>,
    waiting: BTreeMap<Origin, VecDeque<Put<T>>>,
}

/// See the file's header.
#[derive(Debug)]
pub struct Batching<T> {
    lanes: BTreeMap<i32, Lane<T>>,
    /// Partitions that may have a batch to send.
    ready: VecDeque<i32>,
    busy: usize,
    /// Lower where the topic refused a batch as too large.
    round_bytes: usize,
    /// A record of this size was refused as too large: the next one of it goes alone, and fails no neighbour again.
    alone_from: usize,
    outcomes: VecDeque<(Put<T>, Outcome)>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        let (under_way, again) = (Vec::new(), VecDeque::new());
        Self { under_way, again, turns: VecDeque::new(), waiting: BTreeMap::new() }
    }
}

impl<T> Default for Batching<T> {
    fn default() -> Self {
        let (lanes, ready, outcomes) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { lanes, ready, busy: 0, round_bytes: ROUND_BYTES, alone_from: usize::MAX, outcomes }
    }
}

/// Which partition a put is for, of `count`.
fn partition_of<T>(put: &Put<T>, count: i32) -> Result<i32, ErrorCode> {
    if put.bytes > RECORD_BYTES_MAX {
        return Err(ErrorCode::MessageTooLarge);
    }
    match (put.record.partition, &put.record.key) {
        (Some(partition), _) if (0..count).contains(&partition) => Ok(partition),
        (Some(_), _) => Err(ErrorCode::UnknownTopicOrPartition),
        (None, Some(key)) => Ok((murmur2(key) & i32::MAX) % count.max(1)),
        (None, None) => Ok((put.from.0 % u64::from(count.max(1).unsigned_abs())) as i32),
    }
}

impl<T> Batching<T> {
    /// Adds a put to a topic of `partitions` partitions.
    pub fn add(&mut self, put: Put<T>, partitions: i32) {
        let partition = match partition_of(&put, partitions) {
            Ok(partition) => partition,
            Err(code) => {
                let error = ClientError::refused("a put", code.code(), None);
                return self.outcomes.push_back((put, Err(Rc::new(error))));
            }
        };
        let lane = self.lanes.entry(partition).or_default();
        if lane.is_idle() && lane.has_nothing() {
            self.ready.push_back(partition);
        }
        let of = lane.waiting.entry(put.from).or_default();
        if of.is_empty() {
            lane.turns.push_back(put.from);
        }
        of.push_back(put);
    }

    /// Partitions with a batch under way.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// The next batch to send: it is under way from now on, until [`Self::ended`].
    pub fn next_round(&mut self) -> Option<(i32, &[Put<T>])> {
        let partition = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&partition)?;
        lane.under_way = match lane.again.pop_front() {
            Some(part) => part,
            None => lane.take(self.round_bytes, self.alone_from),
        };
        self.busy += 1;
        Some((partition, &lane.under_way))
    }

    /// The partition's batch was answered, or given up.
    pub fn ended(&mut self, partition: i32, outcome: Result<(), ClientError>) {
        let Some(lane) = self.lanes.get_mut(&partition).filter(|lane| !lane.is_idle()) else { return };
        let puts = std::mem::take(&mut lane.under_way);
        self.busy -= 1;
        match outcome {
            Ok(()) => self.outcomes.extend(puts.into_iter().map(|put| (put, Ok(())))),
            Err(error) if is_of_a_record(&error) && puts.len() > 1 => {
                if is_too_large(&error) {
                    let bytes = puts.iter().map(|put| put.bytes).sum::<usize>();
                    self.round_bytes = self.round_bytes.min(bytes / 2);
                }
                let (first, second) = halves(puts);
                lane.again.push_front(second);
                lane.again.push_front(first);
            }
            Err(error) => {
                if let ([put], true) = (&puts[..], is_too_large(&error)) {
                    self.alone_from = self.alone_from.min(put.bytes);
                }
                let outlasted = error.is_retriable() || matches!(error, ClientError::TimedOut { .. });
                let waiting = if outlasted { lane.take_all() } else { Vec::new() };
                let error = Rc::new(error);
                let puts = puts.into_iter().chain(waiting);
                self.outcomes.extend(puts.map(|put| (put, Err(error.clone()))));
            }
        }
        if lane.has_nothing() {
            self.lanes.remove(&partition);
        } else {
            self.ready.push_back(partition);
        }
    }

    /// The producer is gone: nothing is under way any more, and nothing will be.
    pub fn fail_all(&mut self, error: &Rc<ClientError>) {
        for mut lane in std::mem::take(&mut self.lanes).into_values() {
            let puts = std::mem::take(&mut lane.under_way).into_iter().chain(lane.take_all());
            self.outcomes.extend(puts.map(|put| (put, Err(error.clone()))));
        }
        self.ready.clear();
        self.busy = 0;
    }

    /// What became of the next put.
    pub fn next_outcome(&mut self) -> Option<(Put<T>, Outcome)> {
        self.outcomes.pop_front()
    }
}

impl<T> Lane<T> {
    fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    fn has_nothing(&self) -> bool {
        self.again.is_empty() && self.turns.is_empty()
    }

    /// One put of each connection in turn, until the batch is full.
    fn take(&mut self, bytes_max: usize, alone_from: usize) -> Vec<Put<T>> {
        let (mut round, mut bytes) = (Vec::new(), 0);
        let fits = |put: &Put<T>, bytes: usize| put.bytes < alone_from && bytes + put.bytes <= bytes_max;
        while let Some(origin) = self.turns.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&origin) else { continue };
            if let Some(put) = waiting.pop_front_if(|put| round.is_empty() || fits(put, bytes)) {
                // Behind one that goes alone nothing fits.
                bytes += if put.bytes < alone_from { put.bytes } else { bytes_max };
                round.push(put);
                if waiting.is_empty() {
                    self.waiting.remove(&origin);
                } else {
                    self.turns.push_back(origin);
                }
            } else {
                // Its turn is the first one of the next batch.
                self.turns.push_front(origin);
                break;
            }
        }
        round
    }

    fn take_all(&mut self) -> Vec<Put<T>> {
        self.turns.clear();
        let again = std::mem::take(&mut self.again).into_iter().flatten();
        again.chain(std::mem::take(&mut self.waiting).into_values().flatten()).collect()
    }
}

/// Whether one record can be the reason, so that others of its batch may be written.
fn is_of_a_record(error: &ClientError) -> bool {
    let codes = [ErrorCode::InvalidRecord, ErrorCode::InvalidTimestamp, ErrorCode::PolicyViolation];
    is_too_large(error) || error.code().is_some_and(|code| codes.contains(&code))
}

fn is_too_large(error: &ClientError) -> bool {
    matches!(error.code(), Some(ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge))
}

/// Each has about half of the bytes, and one put at least.
fn halves<T>(mut puts: Vec<Put<T>>) -> (Vec<Put<T>>, Vec<Put<T>>) {
    let half = puts.iter().map(|put| put.bytes).sum::<usize>() / 2;
    let mut before = 0;
    let fits = |put: &&Put<T>| {
        before += put.bytes;
        before <= half
    };
    let at = puts.iter().take_while(fits).count().clamp(1, puts.len() - 1);
    let second = puts.split_off(at);
    (puts, second)
}

#[cfg(test)]
mod tests;
