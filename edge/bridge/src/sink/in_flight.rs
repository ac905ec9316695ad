//! What was taken from the topic and is not done: sent, given back, or dead. Pure, but for the moments it is given.
//!
//! Bounded, with what the peer has not settled: by `bridge.in.flight.max` records and by [`BYTES_MAX`].

use barnabas_amqp::DeliveryId;
use barnabas_client::Received;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Of records that are held. One more may be taken below it.
const BYTES_MAX: usize = 32 << 20;

/// A record that cannot be delivered.
#[derive(Debug)]
pub(super) struct Dead {
    pub record: Received,
    /// Connect's word.
    pub stage: &'static str,
    pub why: String,
}

#[derive(Debug, Default)]
pub(super) struct InFlight {
    sent: HashMap<DeliveryId, Received>,
    /// Given back: to be sent again from this moment on.
    again: VecDeque<(Instant, Received)>,
    dead: VecDeque<Dead>,
    bytes: usize,
}

impl InFlight {
    pub fn len(&self) -> usize {
        self.sent.len() + self.again.len() + self.dead.len()
    }

    /// Whether records wait for an outcome.
    pub fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether another record may be taken. `unsettled`: deliveries at the peer, those of an older membership too.
    pub fn has_room(&self, most: usize, unsettled: usize) -> bool {
        self.len().max(unsettled + self.again.len()) < most && self.bytes < BYTES_MAX
    }

    /// A record is taken.
    pub fn begin(&mut self, record: &Received) {
        self.bytes += bytes_of(record);
    }

    /// A record that was begun is done.
    pub fn end(&mut self, record: &Received) {
        self.bytes = self.bytes.saturating_sub(bytes_of(record));
    }

    pub fn sent(&mut self, id: DeliveryId, record: Received) {
        self.sent.insert(id, record);
    }

    /// `None`: it is of a membership before this one.
    pub fn outcome(&mut self, id: DeliveryId) -> Option<Received> {
        self.sent.remove(&id)
    }

    /// Last of those that are sent again.
    pub fn later(&mut self, at: Instant, record: Received) {
        self.again.push_back((at, record));
    }

    /// First of those that are sent again.
    pub fn first(&mut self, at: Instant, record: Received) {
        self.again.push_front((at, record));
    }

    pub fn next_again(&mut self, now: Instant) -> Option<Received> {
        self.again.pop_front_if(|(at, _)| *at <= now).map(|(_, record)| record)
    }

    pub fn bury(&mut self, dead: Dead) {
        self.dead.push_back(dead);
    }

    pub fn next_dead(&mut self) -> Option<Dead> {
        self.dead.pop_front()
    }
}

fn bytes_of(record: &Received) -> usize {
    let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    let headers = record.headers.iter().map(|(name, value)| name.len() + length(value));
    length(&record.key) + length(&record.value) + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, PartitionIndex};

    fn record(bytes: usize) -> Received {
        Received {
            partition: PartitionIndex(0),
            offset: Offset(0),
            timestamp_ms: 0,
            dated_by_broker: false,
            key: None,
            value: Some(Bytes::from(vec![0; bytes])),
            headers: Vec::new(),
        }
    }

    #[test]
    fn records_are_bounded_by_number_and_bytes() {
        let mut held = InFlight::default();
        let large = record(BYTES_MAX / 2);
        held.begin(&large);
        held.sent(DeliveryId(0), large.clone());
        assert!(held.has_room(2, 1) && !held.has_room(1, 1));
        assert!(!held.has_room(2, 2), "the peer still has one of an older membership");
        held.begin(&large);
        held.later(Instant::now(), large.clone());
        assert!(!held.has_room(100, 1), "bytes");
        assert!(held.outcome(DeliveryId(0)).is_some() && held.outcome(DeliveryId(0)).is_none());
        held.end(&large);
        assert!(held.has_room(100, 0));
    }
}
