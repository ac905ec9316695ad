//! A leader answers only followers that follow it in its own epoch; a follower takes only answers to the fetch that it
//! would send now; and a leader asks the controller for no life of a broker that its metadata knows to be over.
//!
//! Each of these is one of two safeguards in Kafka's protocol, and with the other in place nothing else would show that
//! it is missing.
//!
//! Source: KIP-320 (`FENCED_LEADER_EPOCH`, `UNKNOWN_LEADER_EPOCH`), KIP-903.

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch};
use barnabas_partition::{FetchPosition, ReplicaKey};

use super::Violation;

pub(super) fn check_served(
    id: BrokerId,
    key: ReplicaKey,
    asked: Option<LeaderEpoch>,
    epoch: LeaderEpoch,
) -> Result<(), Violation> {
    if asked == Some(epoch) {
        return Ok(());
    }
    Err(format!("{id} leads {key:?} in epoch {epoch}, and answers a follower of {asked:?}"))
}

pub(super) fn check_taken(
    id: BrokerId,
    key: ReplicaKey,
    asked: &FetchPosition,
    position: Option<&FetchPosition>,
) -> Result<(), Violation> {
    let words = |at: &FetchPosition| (at.leader_epoch, at.offset, at.last_epoch);
    if position.is_some_and(|position| words(position) == words(asked)) {
        return Ok(());
    }
    Err(format!("{id} fetches {key:?} from {position:?}, and takes an answer to {asked:?}"))
}

/// `known`: what the leader's metadata says of those who could join, and the controller's of those who are in sync. The
/// controller's answers are ahead of the leader's metadata.
pub(super) fn check_asked(
    id: BrokerId,
    key: ReplicaKey,
    in_sync: &[(BrokerId, BrokerEpoch)],
    known: &[(BrokerId, Option<BrokerEpoch>)],
) -> Result<(), Violation> {
    // Of a broker that is in sync already no life is named; a follower may know of its new life before the leader does.
    let is_known = |(broker, life): &&(BrokerId, BrokerEpoch)| {
        *life == BrokerEpoch::NONE
            || known.iter().any(|(other, known)| other == broker && known.is_some_and(|known| known <= *life))
    };
    match in_sync.iter().find(|member| !is_known(member)) {
        Some(member) => Err(format!("{id} wants {member:?} in the ISR of {key:?}, and knows {known:?}")),
        None => Ok(()),
    }
}
