//! One broker's questions to the controller: what its partitions ask in one AlterPartition at a time.
//!
//! While one request is under way the others wait, and go with the next one. A partition has one question at most: a
//! newer one takes the place of one that is not sent. What the controller says to a whole request (it is none, or does
//! not know this broker's life) is no answer to anybody's question: all are asked again, after a while.
//!
//! Always true: one request is under way at most; a question that was sent is answered, or sent again.
//!
//! Source: KIP-497; Kafka `DefaultAlterPartitionManager`.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, ErrorCode, MonotonicMs};

use crate::{IsrChange, ReplicaKey};

/// Partitions in one request: more go with the next.
const QUESTIONS_MAX: usize = 10_000;

/// The questions of one broker.
#[derive(Debug)]
pub struct IsrRequests {
    waiting: BTreeMap<ReplicaKey, IsrChange>,
    under_way: Vec<(ReplicaKey, IsrChange)>,
    backoff: DurationMs,
    not_before: MonotonicMs,
}

impl IsrRequests {
    /// `backoff`: Kafka waits 50 ms.
    pub fn new(backoff: DurationMs) -> Self {
        Self { waiting: BTreeMap::new(), under_way: Vec::new(), backoff, not_before: MonotonicMs(0) }
    }

    /// `key` asks, or asks again.
    pub fn ask(&mut self, key: ReplicaKey, change: IsrChange) {
        self.waiting.insert(key, change);
    }

    /// Drops the request of `key`: it has another leader, or was deleted.
    pub fn withdraw(&mut self, key: ReplicaKey) {
        self.waiting.remove(&key);
    }

    /// When [`Self::take`] has something, if nothing else happens.
    pub fn due(&self) -> Option<MonotonicMs> {
        (self.under_way.is_empty() && !self.waiting.is_empty()).then_some(self.not_before)
    }

    /// What is to be sent now; empty: nothing.
    pub fn take(&mut self, now: MonotonicMs) -> &[(ReplicaKey, IsrChange)] {
        if self.due().is_none_or(|due| due > now) {
            return &[];
        }
        while self.under_way.len() < QUESTIONS_MAX
            && let Some(question) = self.waiting.pop_first()
        {
            self.under_way.push(question);
        }
        &self.under_way
    }

    /// The controller has answered. `true`: each question has its own answer, which its partition is to be told.
    /// `false`: none has, and all are asked again.
    pub fn answered(&mut self, error: ErrorCode, now: MonotonicMs) -> bool {
        let sent = std::mem::take(&mut self.under_way);
        if error == ErrorCode::None {
            return true;
        }
        self.again(sent, now);
        false
    }

    /// No answer came: the controller may have heard it all the same.
    pub fn unanswered(&mut self, now: MonotonicMs) {
        let sent = std::mem::take(&mut self.under_way);
        self.again(sent, now);
    }

    /// Holds all requests back for the backoff: the controller asked for a pause, or there is a new controller.
    pub fn hold(&mut self, now: MonotonicMs) {
        self.not_before = now.plus(self.backoff);
    }

    fn again(&mut self, sent: Vec<(ReplicaKey, IsrChange)>, now: MonotonicMs) {
        for (key, change) in sent {
            self.waiting.entry(key).or_insert(change);
        }
        self.hold(now);
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::{LeaderEpoch, PartitionEpoch, PartitionIndex, Uuid};

    use super::*;

    fn key(partition: i32) -> ReplicaKey {
        ReplicaKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
    }

    fn change(number: u32) -> IsrChange {
        let (leader_epoch, partition_epoch) = (LeaderEpoch(1), PartitionEpoch(1));
        IsrChange { number, leader_epoch, partition_epoch, in_sync: Vec::new() }
    }

    fn sent(requests: &mut IsrRequests, now: u64) -> Vec<(i32, u32)> {
        let taken = requests.take(MonotonicMs(now));
        taken.iter().map(|(key, change)| (key.partition.get(), change.number)).collect()
    }

    #[test]
    fn what_comes_while_one_is_under_way_goes_with_the_next() {
        let mut requests = IsrRequests::new(DurationMs(50));
        requests.ask(key(1), change(1));
        assert_eq!(sent(&mut requests, 0), [(1, 1)]);
        requests.ask(key(2), change(1));
        requests.ask(key(3), change(1));
        requests.withdraw(key(3));
        assert_eq!((requests.due(), sent(&mut requests, 0)), (None, vec![]));
        assert!(requests.answered(ErrorCode::None, MonotonicMs(1)));
        assert_eq!(sent(&mut requests, 1), [(2, 1)]);
    }

    #[test]
    fn unanswered_request_is_sent_again_unless_there_is_a_newer_one() {
        let mut requests = IsrRequests::new(DurationMs(50));
        requests.ask(key(1), change(1));
        requests.ask(key(2), change(1));
        assert_eq!(sent(&mut requests, 0), [(1, 1), (2, 1)]);
        requests.ask(key(2), change(2));
        requests.unanswered(MonotonicMs(10));
        assert_eq!((requests.due(), sent(&mut requests, 59)), (Some(MonotonicMs(60)), vec![]));
        assert_eq!(sent(&mut requests, 60), [(1, 1), (2, 2)]);
        assert!(!requests.answered(ErrorCode::NotController, MonotonicMs(60)));
        assert_eq!(sent(&mut requests, 110), [(1, 1), (2, 2)]);
    }
}
