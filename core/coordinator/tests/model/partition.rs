//! A partition as far as transactions see it: epochs, open transactions, markers. The rules are core/partition's.

use std::collections::BTreeMap;

use barnabas_base::ErrorCode;
use barnabas_coordinator::{MarkerOrder, MarkerOutcome};

use super::Bug;

/// What a client writes; never twice the same.
pub type Value = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub value: Value,
    pub producer: i64,
    pub epoch: i16,
    /// `None` while its transaction is open.
    pub committed: Option<bool>,
}

#[derive(Debug, Default, Clone)]
struct Producer {
    epoch: i16,
    is_open: bool,
    coordinator_epoch: i32,
    /// Markers so far that do not rise above what they end: what was verified before the last one is not verified any
    /// more.
    markers: u64,
}

#[derive(Debug, Default)]
pub struct Partition {
    pub log: Vec<Written>,
    producers: BTreeMap<i64, Producer>,
}

/// What the leader does with a write.
#[derive(Debug, PartialEq, Eq)]
pub enum Take {
    Done,
    /// Ask the coordinator first; the guard is handed back with its word.
    Ask {
        guard: u64,
    },
    Refused,
}

impl Partition {
    pub fn write(&mut self, value: Value, producer: i64, epoch: i16, guard: Option<u64>, bug: Bug) -> Take {
        if bug != Bug::DuplicatesAreNew && self.log.iter().any(|written| written.value == value) {
            return Take::Done;
        }
        let known = self.producers.entry(producer).or_insert(Producer { epoch: -1, ..Default::default() });
        if epoch < known.epoch && bug != Bug::EpochsUnchecked {
            return Take::Refused;
        }
        let is_ongoing = known.is_open && known.epoch == epoch;
        let is_verified = match bug {
            Bug::Unverified => true,
            Bug::EpochsUnchecked => guard.is_some(),
            _ => guard == Some(known.markers),
        };
        if !is_ongoing && !is_verified {
            return if guard.is_some() { Take::Refused } else { Take::Ask { guard: known.markers } };
        }
        known.epoch = known.epoch.max(epoch);
        known.is_open = true;
        self.log.push(Written { value, producer, epoch, committed: None });
        Take::Done
    }

    pub fn mark(&mut self, order: &MarkerOrder) -> MarkerOutcome {
        let (producer, epoch) = (order.producer_id.get(), order.producer_epoch.get());
        let coordinator_epoch = order.ticket.coordinator_epoch.get();
        let known = self.producers.entry(producer).or_insert(Producer { epoch: -1, ..Default::default() });
        let is_late = order.version.bumps_epoch() && epoch == known.epoch && known.is_open;
        if epoch < known.epoch || is_late {
            return MarkerOutcome::Failed(ErrorCode::InvalidProducerEpoch);
        }
        if coordinator_epoch < known.coordinator_epoch {
            return MarkerOutcome::Failed(ErrorCode::TransactionCoordinatorFenced);
        }
        let markers = known.markers + u64::from(!order.version.bumps_epoch());
        *known = Producer { epoch, is_open: false, coordinator_epoch, markers };
        let own = self.log.iter_mut().filter(|written| written.producer == producer);
        for written in own.filter(|written| written.committed.is_none()) {
            written.committed = Some(order.commit);
        }
        MarkerOutcome::Written
    }

    pub fn is_open(&self) -> bool {
        self.producers.values().any(|producer| producer.is_open)
    }
}
