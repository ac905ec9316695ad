//! Which of a connection's batches are under way, and until when those of a partition are forwarded to its new leader.
//!
//! What may be forwarded, and how, is the business of produce/forwarding.rs, whose invariants 1 and 2 are kept here.

use super::Session;
use crate::mailbox::PartitionKey;
use crate::node::peers::broker_links::FORWARD_FOR;
use barnabas_base::{DurationMs, LeaderEpoch, Map, MonotonicMs};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Partitions that a connection remembers: batches for others are not handed on.
const REMEMBERED_MAX: usize = 1024;
/// They are forgotten so long after the last batch that was handed on, if there are others: who still sends here by
/// then has been told often.
const REMEMBERED_FOR: DurationMs = DurationMs(60_000);

/// What a connection knows of its batches under way. See the file's header.
#[derive(Debug, Default)]
pub struct Forwarding {
    begun: Cell<u64>,
    /// Requests that are not answered yet, in their order, with the partitions of which they have batches that may be
    /// handed on.
    under_way: RefCell<VecDeque<(u64, Vec<PartitionKey>)>>,
    /// Until when a partition's batches are handed on, in which epoch.
    until: RefCell<Map<PartitionKey, (LeaderEpoch, MonotonicMs)>>,
}

impl Forwarding {
    /// Whether a batch for this partition is handed on now.
    pub fn goes_on(&self, key: PartitionKey, epoch: LeaderEpoch, now: MonotonicMs) -> bool {
        let mut known = self.until.borrow_mut();
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&key) {
            known.retain(|_, (_, until)| now < until.plus(REMEMBERED_FOR));
            if known.len() >= REMEMBERED_MAX {
                return false;
            }
        }
        let (of, until) = known.entry(key).or_insert((epoch, now.plus(FORWARD_FOR)));
        if *of != epoch {
            (*of, *until) = (epoch, now.plus(FORWARD_FOR));
        }
        now < *until
    }

    /// How many requests are not answered yet.
    pub fn under_way(&self) -> usize {
        self.under_way.borrow().len()
    }

    /// One of its batches was not taken: those behind it are not handed on either, or they would come without it.
    pub fn give_up(&self, key: PartitionKey, now: MonotonicMs) {
        if let Some((_, until)) = self.until.borrow_mut().get_mut(&key) {
            *until = now.min(*until);
        }
    }
}

/// A request's place among those of its connection, until it is answered.
#[derive(Debug)]
pub struct Turn {
    session: Rc<Session>,
    number: u64,
}

impl Turn {
    /// To be taken in the order of the requests.
    pub fn take(session: &Rc<Session>, keys: Vec<PartitionKey>) -> Self {
        let of = &session.forwarding;
        let number = of.begun.get();
        of.begun.set(number + 1);
        of.under_way.borrow_mut().push_back((number, keys));
        Self { session: session.clone(), number }
    }

    /// Waits until no earlier request for one of these partitions is in flight. No wake-up is needed: with each
    /// answer the connection polls the requests behind it as well.
    pub async fn comes(&self, keys: &[PartitionKey]) {
        poll_fn(|_| {
            let under_way = self.session.forwarding.under_way.borrow();
            let mut before = under_way.iter().take_while(|(number, _)| *number < self.number);
            match before.any(|(_, theirs)| keys.iter().any(|key| theirs.contains(key))) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.session.forwarding.under_way.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, TopicId};

    fn key(partition: usize) -> PartitionKey {
        PartitionKey { topic: TopicId::default(), partition: PartitionIndex(partition as i32) }
    }

    fn at(ms: i64) -> MonotonicMs {
        MonotonicMs(0).plus(DurationMs(ms))
    }

    #[test]
    fn a_partition_is_forwarded_for_a_moment_in_each_epoch() {
        let forwarding = Forwarding::default();
        let goes_on = |epoch, ms| forwarding.goes_on(key(1), LeaderEpoch(epoch), at(ms));
        assert!(
            goes_on(1, 0)
                && goes_on(1, FORWARD_FOR.0 - 1)
                && !goes_on(1, FORWARD_FOR.0)
                && !goes_on(1, 100 * FORWARD_FOR.0)
        );
        assert!(goes_on(2, 100 * FORWARD_FOR.0));
        forwarding.give_up(key(1), at(100 * FORWARD_FOR.0 + 1));
        assert!(!goes_on(2, 100 * FORWARD_FOR.0 + 1) && goes_on(3, 100 * FORWARD_FOR.0 + 1));
    }

    /// Who has more partitions than are remembered is not handed on for ever, one being forgotten for another.
    #[test]
    fn more_partitions_than_are_remembered_are_not_forwarded() {
        let forwarding = Forwarding::default();
        let going = |ms| {
            let all = 0..2 * REMEMBERED_MAX;
            all.filter(|&partition| forwarding.goes_on(key(partition), LeaderEpoch(1), at(ms))).count()
        };
        assert_eq!(going(0), REMEMBERED_MAX);
        assert_eq!(going(FORWARD_FOR.0), 0);
        assert_eq!(going(2 * FORWARD_FOR.0), 0);
        assert_eq!(forwarding.until.borrow().len(), REMEMBERED_MAX);
        forwarding.goes_on(key(9 * REMEMBERED_MAX), LeaderEpoch(1), at(REMEMBERED_FOR.0 + FORWARD_FOR.0));
        assert_eq!(forwarding.until.borrow().len(), 1);
    }
}
