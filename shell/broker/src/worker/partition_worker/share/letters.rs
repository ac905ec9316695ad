//! Dead letters (KIP-1191): what a share partition gives up is written to its group's topic, and archived after that,
//! whether that worked or not. One errand at a time for each share partition; what comes meanwhile goes with the next.

use super::{PartitionWorker, ShareCommand, ShareKey};
use crate::mailbox::Command;
use crate::mailbox::share::Undelivered;
use crate::routing::dead_letters;
use barnabas_api::dead_letters::{Cause, Letter};
use barnabas_base::{Map, Offset, Text};
use barnabas_partition::DeadLetterCause;
use barnabas_replica::GivenUp;

/// Groups whose letters were not written last time, and why: to be said once.
#[derive(Debug, Default)]
pub(super) struct Complaints(Map<Text, Undelivered>);

/// Groups of whom that is remembered; when there are more, some are complained of again.
const COMPLAINTS_MAX: usize = 1_000;

impl Complaints {
    pub(super) fn note(&mut self, key: &ShareKey, result: Result<(), Undelivered>) {
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
    pub(super) fn send_letters(&mut self, key: ShareKey, number: u64, given_up: Vec<GivenUp>) {
        let (node, me) = (self.node.clone(), self.id);
        tokio::task::spawn_local(async move {
            let letters: Vec<Letter> = given_up.iter().flat_map(letters_of).collect();
            let result = dead_letters::deliver(&node, &key.group, key.partition, &letters).await;
            let ranges = given_up.iter().map(|each| (each.first, each.last)).collect();
            let delivered = ShareCommand::Delivered { key, number, ranges, result };
            node.workers.mailboxes[me].send(Command::Share(Box::new(delivered))).await;
        });
    }
}

fn letters_of(given_up: &GivenUp) -> impl Iterator<Item = Letter> + use<> {
    let GivenUp { first, last, delivery_count, cause } = *given_up;
    let cause = match cause {
        DeadLetterCause::Rejected => Cause::Rejected,
        DeadLetterCause::DeliveryCountExceeded => Cause::DeliveryCountExceeded,
    };
    let offsets = first.get()..=last.get();
    offsets.map(move |offset| Letter { offset: Offset(offset), delivery_count, cause })
}
