//! What an operator has to know of the step from one image to the next: brokers and topics that come and go, partitions
//! that lose replicas or leaders.
//!
//! Pure: two images and the list of changes between them. events/lines.rs makes lines
//! of them, which shell/broker/src/node/cluster_events.rs writes.
//!
//! Nothing is found in a step that says only "everything may have changed" (a start, a snapshot): there is no state
//! before it to compare with.
//!
//! Source: KIP-704 (leader recovery), KIP-966 (ELR), Kafka `PartitionRegistration`.

mod leaderless;
mod line;
mod lines;

pub use line::{Level, Line};
pub use lines::{APART, EventLines, Here};

use crate::{Broker, Changes, Image, LeaderRecoveryState, MetadataVersion, Partition};
use barnabas_base::{BrokerId, Text, TopicId, TopicPartition};
use std::sync::Arc;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Registered(BrokerId),
    Unregistered(BrokerId),
    /// `is_planned`: it asked for it, as a part of a controlled shutdown.
    Fenced {
        broker: BrokerId,
        is_planned: bool,
    },
    Unfenced(BrokerId),
    TopicCreated {
        name: Text,
        id: TopicId,
        partitions: usize,
    },
    TopicDeleted {
        name: Text,
        id: TopicId,
    },
    MetadataVersion {
        from: MetadataVersion,
        to: MetadataVersion,
    },
    Partition {
        partition: TopicPartition,
        change: PartitionChange,
        old_leader: BrokerId,
        state: Partition,
    },
}

/// What happened to one partition. `is_planned`: every replica that it lost is in controlled shutdown, or is not
/// assigned any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionChange {
    IsrShrank {
        is_planned: bool,
    },
    IsrExpanded,
    BelowMinIsr {
        is_planned: bool,
        needed: u16,
    },
    MinIsrReached,
    LostLeader,
    LeaderFound,
    /// The new leader was neither in sync nor eligible. `led_last`: it was the last to lead (KIP-966).
    UncleanElection {
        led_last: bool,
    },
}

/// Hands each event between two images to `take`. `min_in_sync`: how many in-sync replicas a topic needs for
/// `acks=all`.
pub fn between(
    before: &Image,
    image: &Image,
    changes: &Changes,
    min_in_sync: impl Fn(&Text) -> u16,
    mut take: impl FnMut(Event),
) {
    let (from, to) = (before.metadata_version(), image.metadata_version());
    if changes.features && !changes.everything && from != to {
        take(Event::MetadataVersion { from, to });
    }
    changes.brokers.iter().flat_map(|&id| of_broker(id, before, image)).flatten().for_each(&mut take);
    for (&id, topic) in &changes.topics {
        let (old, new) = (before.topics.by_id(id), image.topics.by_id(id));
        let Some(new) = new.filter(|_| !topic.deleted) else {
            old.into_iter().for_each(|old| take(Event::TopicDeleted { name: old.name.clone(), id }));
            continue;
        };
        if old.is_none() {
            let partitions = new.partitions().count();
            take(Event::TopicCreated { name: new.name.clone(), id, partitions });
        }
        let needed = min_in_sync(&new.name);
        for &index in &topic.partitions {
            let Some(state) = new.partition(index) else { continue };
            let old = old.and_then(|old| old.partition(index));
            let old_leader = old.map_or(BrokerId::NONE, |old| old.leader);
            of_partition(old, state, needed, image, |change| {
                let partition = TopicPartition::new(new.name.clone(), index);
                take(Event::Partition { partition, change, old_leader, state: state.clone() });
            });
        }
    }
}

/// A broker registers fenced. A node that is behind takes both in one step.
fn of_broker(id: BrokerId, before: &Image, image: &Image) -> [Option<Event>; 2] {
    let registered =
        |new: &Broker| [Some(Event::Registered(id)), (!new.fenced).then_some(Event::Unfenced(id))];
    match (before.cluster.broker(id), image.cluster.broker(id)) {
        (None, None) => [None, None],
        (None, Some(new)) => registered(new),
        (Some(_), None) => [Some(Event::Unregistered(id)), None],
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) => [None, None],
        (Some(old), Some(new)) if old.epoch != new.epoch => registered(new),
        (Some(old), Some(new)) => match (old.fenced, new.fenced) {
            (false, true) => {
                let is_planned = old.in_controlled_shutdown || new.in_controlled_shutdown;
                [Some(Event::Fenced { broker: id, is_planned }), None]
            }
            (true, false) => [Some(Event::Unfenced(id)), None],
            _ => [None, None],
        },
    }
}

/// `old`: `None` if the partition was made in this step. Partitions are made with a leader, so one that has none has
/// lost it in the same step: a broker that was behind takes many records at once.
fn of_partition(
    old: Option<&Partition>,
    new: &Partition,
    min_in_sync: u16,
    image: &Image,
    mut take: impl FnMut(PartitionChange),
) {
    let Some(old) = old else {
        if new.leader == BrokerId::NONE {
            take(PartitionChange::LostLeader);
        }
        return;
    };
    let mut lost = old.isr().iter().filter(|replica| !new.isr().contains(replica)).peekable();
    let has_lost = lost.peek().is_some();
    let leaves = |replica: &BrokerId| {
        let stops = image.cluster.broker(*replica).is_none_or(|broker| broker.in_controlled_shutdown);
        stops || !new.has_replica(*replica)
    };
    let is_planned = lost.all(leaves);
    if has_lost {
        take(PartitionChange::IsrShrank { is_planned });
    }
    if new.isr().iter().any(|replica| !old.isr().contains(replica)) {
        take(PartitionChange::IsrExpanded);
    }
    let needed = |partition: &Partition| usize::from(min_in_sync).min(partition.replicas().len());
    let is_below = |partition: &Partition| partition.isr().len() < needed(partition);
    match (is_below(old), is_below(new)) {
        (false, true) => take(PartitionChange::BelowMinIsr { is_planned, needed: min_in_sync }),
        (true, false) => take(PartitionChange::MinIsrReached),
        _ => {}
    }
    match (old.leader == BrokerId::NONE, new.leader == BrokerId::NONE) {
        (false, true) => take(PartitionChange::LostLeader),
        (true, false) => take(PartitionChange::LeaderFound),
        _ => {}
    }
    if is_unclean(old, new) {
        take(PartitionChange::UncleanElection {
            led_last: old.placement.last_known_elr.contains(&new.leader),
        });
    }
}

/// Whether a partition's leader was elected at the price of records.
///
/// The controller marks the leader of such an election as recovering (KIP-704). A replica outside of the last known ISR
/// may also lead without any loss: the AlterPartition that brings it into the ISR can end a reassignment, and then it
/// leads in the same change.
fn is_unclean(old: &Partition, new: &Partition) -> bool {
    let is_elected = new.leader != BrokerId::NONE && new.leader != old.leader;
    let is_safe = old.isr().contains(&new.leader) || old.elr().contains(&new.leader);
    is_elected && !is_safe && new.placement.recovery == LeaderRecoveryState::Recovering
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broker, Placement};
    use barnabas_base::{BrokerEpoch, LeaderEpoch, PartitionEpoch, Uuid};

    fn state(
        leader: i32,
        replicas: &[i32],
        isr: &[i32],
        elr: &[i32],
        recovery: LeaderRecoveryState,
    ) -> Partition {
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect();
        let (replicas, isr, elr) = (ids(replicas), ids(isr), ids(elr));
        let placement = Placement { replicas, isr, elr, recovery, ..Placement::default() };
        Partition {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(1),
            partition_epoch: PartitionEpoch(1),
            placement: Arc::new(placement),
        }
    }

    fn broker(id: i32) -> Broker {
        Broker {
            id: BrokerId(id),
            epoch: BrokerEpoch(1),
            incarnation: Uuid([1; 16]),
            endpoints: Vec::new(),
            features: Vec::new(),
            rack: None,
            fenced: false,
            in_controlled_shutdown: false,
            is_migrating_zk: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }

    /// Broker ids without a registration count as gone for good: `image` holds 1 to 3.
    fn events(old: &Partition, new: &Partition) -> Vec<PartitionChange> {
        let mut image = Image::default();
        for id in 1..=3 {
            image.cluster.brokers.insert(BrokerId(id), Arc::new(broker(id)));
        }
        let mut found = Vec::new();
        of_partition(Some(old), new, 2, &image, |change| found.push(change));
        found
    }

    #[test]
    fn isr_below_its_minimum_is_found_once() {
        use LeaderRecoveryState::Recovered;
        use PartitionChange::*;
        let of = |leader, isr: &[i32]| state(leader, &[1, 2, 3], isr, &[], Recovered);
        let shrank = IsrShrank { is_planned: false };
        let below = BelowMinIsr { is_planned: false, needed: 2 };
        assert_eq!(events(&of(1, &[1, 2, 3]), &of(1, &[1, 2])), [shrank]);
        assert_eq!(events(&of(1, &[1, 2]), &of(1, &[1])), [shrank, below]);
        assert_eq!(events(&of(1, &[1]), &of(1, &[1])), []);
        assert_eq!(events(&of(1, &[1]), &of(1, &[1, 3])), [IsrExpanded, MinIsrReached]);
        assert_eq!(events(&of(1, &[1]), &of(-1, &[1])), [LostLeader]);
        assert_eq!(events(&of(-1, &[1]), &of(1, &[1])), [LeaderFound]);
    }

    #[test]
    fn partition_made_and_lost_in_one_step_has_lost_its_leader() {
        use LeaderRecoveryState::Recovered;
        let mut found = Vec::new();
        let mut made = |leader| {
            let new = state(leader, &[3], &[3], &[], Recovered);
            of_partition(None, &new, 2, &Image::default(), |change| found.push((leader, change)));
        };
        made(3);
        made(-1);
        assert_eq!(found, [(-1, PartitionChange::LostLeader)]);
    }

    #[test]
    fn broker_registered_and_unfenced_in_one_step_is_both() {
        let image = |epoch, fenced| {
            let mut image = Image::default();
            let broker = Broker { epoch: BrokerEpoch(epoch), fenced, ..broker(3) };
            image.cluster.brokers.insert(BrokerId(3), Arc::new(broker));
            image
        };
        let (registered, unfenced) =
            (Some(Event::Registered(BrokerId(3))), Some(Event::Unfenced(BrokerId(3))));
        let of = |before: &Image, image: &Image| of_broker(BrokerId(3), before, image);
        let (old, behind, new) = (image(1, true), image(2, true), image(2, false));
        assert_eq!(of(&old, &behind), [registered.clone(), None]);
        assert_eq!(of(&behind, &new), [unfenced.clone(), None]);
        assert_eq!(of(&old, &new), [registered.clone(), unfenced.clone()]);
        assert_eq!(of(&Image::default(), &new), [registered, unfenced]);
    }

    #[test]
    fn replica_that_is_not_assigned_any_more_leaves_as_planned() {
        use LeaderRecoveryState::Recovered;
        let old = state(1, &[1, 2], &[1, 2], &[], Recovered);
        let new = state(2, &[2], &[2], &[], Recovered);
        assert_eq!(events(&old, &new), [PartitionChange::IsrShrank { is_planned: true }]);
    }

    #[test]
    fn unclean_is_what_the_controller_marks_as_recovering() {
        use LeaderRecoveryState::{Recovered, Recovering};
        let of = |leader, isr: &[i32], elr: &[i32], recovery| state(leader, &[1, 2, 3], isr, elr, recovery);
        let one = of(1, &[1], &[], Recovered);
        let none = of(-1, &[], &[1], Recovered);
        assert!(is_unclean(&one, &of(2, &[2], &[], Recovering)));
        assert!(is_unclean(&none, &of(2, &[2], &[], Recovering)));
        assert!(!is_unclean(&none, &of(1, &[1], &[], Recovered)), "an eligible leader");
        assert!(!is_unclean(&one, &of(2, &[2], &[], Recovered)), "the end of a reassignment [1] to [2]");
        assert!(!is_unclean(&one, &of(-1, &[], &[1], Recovered)), "no leader");
        let recovering = of(1, &[1], &[], Recovering);
        assert!(!is_unclean(&recovering, &of(1, &[1], &[], Recovering)), "the same leader");
        assert!(is_unclean(&recovering, &of(3, &[3], &[], Recovering)), "once more");
    }
}
