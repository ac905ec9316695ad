//! Dead letters (KIP-1191): what a share partition gives up is written to its group's topic, and archived after that,
//! whether that worked or not. One errand at a time for each share partition; what comes meanwhile goes with the next.

use super::{PartitionWorker, ShareCommand, ShareKey};
use crate::mailbox::Command;
use crate::mailbox::share::Undelivered;
use crate::routing::dead_letters;
use barnabas_api::dead_letters::{Cause, Letter};
use barnabas_base::{Map, Offset, Text};
use barnabas_partition::DeadLetterCause;

/// Records of one cause and delivery count; `last` is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    pub first: Offset,
    pub last: Offset,
    pub delivery_count: u16,
    pub cause: DeadLetterCause,
}

impl Given {
    fn letters(self) -> impl Iterator<Item = Letter> {
        let cause = match self.cause {
            DeadLetterCause::Rejected => Cause::Rejected,
            DeadLetterCause::DeliveryCountExceeded => Cause::DeliveryCountExceeded,
        };
        let offsets = self.first.get()..=self.last.get();
        offsets.map(move |offset| Letter {
            offset: Offset(offset),
            delivery_count: self.delivery_count,
            cause,
        })
    }
}

/// What waits of one share partition.
#[derive(Debug, Default)]
pub(super) struct Letters {
    queue: Vec<Given>,
    is_under_way: bool,
}

impl Letters {
    pub fn push(&mut self, given: Given) {
        self.queue.push(given);
    }

    /// Nothing waits, and nothing is under way.
    pub fn are_done(&self) -> bool {
        self.queue.is_empty() && !self.is_under_way
    }
}

/// Groups whose letters were not written last time, and why: to be said once.
#[derive(Debug, Default)]
pub(super) struct Complaints(Map<Text, Undelivered>);

/// Groups of whom that is remembered; when there are more, some are complained of again.
const COMPLAINTS_MAX: usize = 1_000;

impl Complaints {
    fn note(&mut self, key: &ShareKey, result: Result<(), Undelivered>) {
        let group = &key.group;
        let Err(why) = result else {
            self.0.remove(group);
            return;
        };
        if self.0.get(group) == Some(&why) {
            tracing::debug!(%group, partition = %key.partition, %why, "dead letters were not written");
            return;
        }
        tracing::warn!(
            %group, partition = %key.partition, %why,
            "rejected records of the share group were archived but not written to its dead-letter topic \
             (logged once per reason)"
        );
        if self.0.len() >= COMPLAINTS_MAX {
            self.0.clear();
        }
        self.0.insert(group.clone(), why);
    }
}

impl PartitionWorker {
    /// Sends what was given up, unless something is under way.
    pub(super) fn send_letters(&mut self, key: &ShareKey) {
        let (node, me) = (self.node.clone(), self.id);
        let Some(number) = self.shares.map.get(key).map(|share| share.number) else { return };
        let Some(share) = self.shares.get_active(key) else { return };
        if share.letters.is_under_way || share.letters.queue.is_empty() {
            return;
        }
        let given = std::mem::take(&mut share.letters.queue);
        share.letters.is_under_way = true;
        let key = key.clone();
        tokio::task::spawn_local(async move {
            let letters: Vec<Letter> = given.iter().copied().flat_map(Given::letters).collect();
            let result = dead_letters::deliver(&node, &key.group, key.partition, &letters).await;
            let ranges = given.iter().map(|given| (given.first, given.last)).collect();
            let delivered = ShareCommand::Delivered { key, number, ranges, result };
            node.workers.mailboxes[me].send(Command::Share(Box::new(delivered))).await;
        });
    }

    pub(super) fn letters_delivered(
        &mut self,
        key: &ShareKey,
        number: u64,
        ranges: &[(Offset, Offset)],
        result: Result<(), Undelivered>,
    ) {
        self.shares.complaints.note(key, result);
        if self.shares.map.get(key).is_none_or(|share| share.number != number) {
            return;
        }
        let Some(share) = self.shares.get_active(key) else { return };
        share.letters.is_under_way = false;
        let mut effects = Vec::new();
        for &(first, last) in ranges {
            share.machine.dead_lettered(first, last, &mut effects);
        }
        self.carry_out_share(key, effects);
        if self.shares.get_active(key).is_some_and(|share| share.is_leaving && share.is_idle()) {
            self.drop_share(key);
        }
    }
}
