//! Where new partitions go: spread over racks first, over brokers next.
//!
//! Leaders go round the racks, and within a rack round its brokers; the replicas after the leader come from the
//! racks after its own. Fenced brokers hold replicas only where there are not enough others, and never the leader's
//! place. Where the round begins is drawn, so that small topics do not all begin with the same broker.
//!
//! A broker without room for producers' records follows only where its rack has no other, and leads only where there is
//! no other: the spread over racks, which lasts, goes before room, which comes back.
//!
//! Always true: a partition's replicas are different brokers, the first of them not fenced, and one with room if any
//! is.
//!
//! Source: KIP-36; the properties (not the steps) of Kafka's `StripedReplicaPlacer`.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, DirectoryId, PartitionIndex, Text};
use barnabas_metadata::{Broker, Image};

use crate::controller::impaired::Impaired;

/// A broker that partitions can be placed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: BrokerId,
    pub rack: Option<Text>,
    pub fenced: bool,
    /// Producers are not refused there ([`crate::controller::impaired`]).
    pub has_room: bool,
}

/// The brokers that take new replicas: neither on their way out nor with every directory cordoned.
pub(super) fn candidates(image: &Image, impaired: &Impaired) -> Vec<Candidate> {
    let usable = |broker: &&std::sync::Arc<Broker>| !broker.in_controlled_shutdown && takes_replicas(broker);
    let candidate = |broker: &std::sync::Arc<Broker>| Candidate {
        id: broker.id,
        rack: broker.rack.clone(),
        fenced: broker.fenced,
        has_room: !impaired.has_no_room(image, broker.id),
    };
    image.cluster.brokers().filter(usable).map(candidate).collect()
}

/// Whether a directory of the broker takes new replicas (KIP-1066).
pub fn takes_replicas(broker: &Broker) -> bool {
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    broker.log_dirs.is_empty() || broker.log_dirs.iter().any(|dir| !cordoned.contains(dir))
}

/// The directory for a new replica on a broker: the only one that takes any, else the broker chooses.
pub fn directory_for(image: &Image, broker: BrokerId) -> DirectoryId {
    let Some(broker) = image.cluster.broker(broker) else { return DirectoryId::DIRECTORY_UNASSIGNED };
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    let mut open = broker.log_dirs.iter().filter(|dir| !cordoned.contains(dir));
    match (broker.log_dirs.is_empty(), open.next(), open.next()) {
        (true, _, _) => DirectoryId::DIRECTORY_MIGRATING,
        (false, Some(&only), None) => only,
        _ => DirectoryId::DIRECTORY_UNASSIGNED,
    }
}

/// A directory of the broker that takes new replicas: they go round with the partitions. `None`: there is none.
pub fn directory_in_turn(broker: &Broker, partition: PartitionIndex) -> Option<DirectoryId> {
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    let open: Vec<DirectoryId> =
        broker.log_dirs.iter().filter(|dir| !cordoned.contains(dir)).copied().collect();
    let turn = usize::try_from(partition.get()).unwrap_or(0).checked_rem(open.len())?;
    Some(open[turn])
}

/// Hands out partitions one after the other.
#[derive(Debug)]
pub struct Placer {
    racks: Vec<Rack>,
    replicas: usize,
    next: usize,
}

impl Placer {
    /// # Errors
    /// Why that many replicas cannot be placed: the sentence of an INVALID_REPLICATION_FACTOR.
    pub fn new(candidates: &[Candidate], replicas: i16, draw: u64) -> Result<Self, String> {
        let count = usize::try_from(replicas).unwrap_or(0);
        if candidates.iter().all(|candidate| candidate.fenced) {
            return Err("All brokers are currently fenced.".into());
        }
        if count > candidates.len() {
            let known = candidates.len();
            return Err(format!(
                "The target replication factor of {replicas} cannot be reached because only {known} broker(s) are \
                 registered."
            ));
        }
        let mut racks: BTreeMap<Option<Text>, Rack> = BTreeMap::new();
        for candidate in candidates {
            let rack = racks.entry(candidate.rack.clone()).or_default();
            let kind = match candidate {
                Candidate { fenced: true, .. } => &mut rack.fenced,
                Candidate { has_room: true, .. } => &mut rack.open,
                Candidate { has_room: false, .. } => &mut rack.full,
            };
            kind.push(candidate.id);
        }
        let next = usize::try_from(draw % 1_000_003).unwrap_or(0);
        Ok(Self { racks: racks.into_values().collect(), replicas: count, next })
    }

    /// The replicas of the next partition, in order of preference.
    pub fn place(&mut self) -> Vec<BrokerId> {
        let turn = self.next;
        self.next += 1;
        let count = self.racks.len();
        // The leader's rack is the next one with a usable broker.
        let first = (0..count).find(|step| !self.racks[(turn + step) % count].open.is_empty()).unwrap_or(0);
        let mut chosen = Vec::with_capacity(self.replicas);
        // First who is alive, then who is fenced; within each, one broker of each rack, then a second of each.
        for of_rack in [Rack::alive, Rack::fenced] {
            let deepest = self.racks.iter().map(Rack::len).max().unwrap_or(0);
            for depth in 0..deepest {
                for step in 0..count {
                    if chosen.len() == self.replicas {
                        return chosen;
                    }
                    let rack = &self.racks[(turn + first + step) % count];
                    chosen.extend(of_rack(rack, turn / count, depth));
                }
            }
        }
        chosen
    }
}

/// One rack's brokers.
#[derive(Debug, Default)]
struct Rack {
    /// May lead.
    open: Vec<BrokerId>,
    /// May lead as well, but have no room for producers' records.
    full: Vec<BrokerId>,
    /// May only follow.
    fenced: Vec<BrokerId>,
}

impl Rack {
    fn len(&self) -> usize {
        self.open.len() + self.full.len() + self.fenced.len()
    }

    /// The one at `depth` of those that are alive, in the round'th round.
    fn alive(&self, round: usize, depth: usize) -> Option<BrokerId> {
        match depth.checked_sub(self.open.len()) {
            None => in_turn(&self.open, round, depth),
            Some(depth) => in_turn(&self.full, round, depth),
        }
    }

    fn fenced(&self, round: usize, depth: usize) -> Option<BrokerId> {
        in_turn(&self.fenced, round, depth)
    }
}

fn in_turn(brokers: &[BrokerId], round: usize, depth: usize) -> Option<BrokerId> {
    (depth < brokers.len()).then(|| brokers[(round + depth) % brokers.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(id: i32, rack: Option<&str>, fenced: bool) -> Candidate {
        Candidate { id: BrokerId(id), rack: rack.map(Text::from), fenced, has_room: true }
    }

    fn place(candidates: &[Candidate], replicas: i16, partitions: usize) -> Vec<Vec<i32>> {
        let mut placer = Placer::new(candidates, replicas, 0).unwrap();
        (0..partitions).map(|_| placer.place().iter().map(|id| id.get()).collect()).collect()
    }

    #[test]
    fn leaders_go_round_the_brokers() {
        let brokers = [broker(1, None, false), broker(2, None, false), broker(3, None, false)];
        assert_eq!(place(&brokers, 2, 4), [[1, 2], [2, 3], [3, 1], [1, 2]]);
    }

    #[test]
    fn replicas_lie_in_different_racks_while_there_are_enough() {
        let brokers = [
            broker(1, Some("a"), false),
            broker(2, Some("a"), false),
            broker(3, Some("b"), false),
            broker(4, Some("b"), false),
        ];
        for replicas in place(&brokers, 2, 20) {
            assert_ne!(replicas[0] <= 2, replicas[1] <= 2, "{replicas:?}");
        }
        for replicas in place(&brokers, 4, 20) {
            let mut sorted = replicas.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_fenced_broker_follows_only_where_it_must_and_never_leads() {
        let brokers = [broker(1, None, false), broker(2, None, true), broker(3, None, false)];
        for replicas in place(&brokers, 2, 9) {
            assert!(!replicas.contains(&2));
        }
        for replicas in place(&brokers, 3, 9) {
            assert_eq!(replicas[2], 2);
        }
    }

    #[test]
    fn a_broker_without_room_leads_only_if_no_other_can() {
        let full = |id, rack| Candidate { has_room: false, ..broker(id, rack, false) };
        let one_rack = [broker(1, None, false), full(2, None), broker(3, None, false)];
        assert_eq!(place(&one_rack, 1, 4), [[1], [3], [1], [3]]);
        for replicas in place(&one_rack, 3, 9) {
            assert_eq!(replicas[2], 2, "where its rack has no other it follows");
        }
        let racks = [broker(1, Some("a"), false), broker(2, Some("a"), false), full(3, Some("b"))];
        assert_eq!(place(&racks, 1, 4), [[1], [1], [2], [2]]);
        for replicas in place(&racks, 2, 9) {
            assert!(replicas[0] <= 2 && replicas[1] == 3, "the spread over racks stays: {replicas:?}");
        }
        let all = [full(1, None), full(2, None)];
        assert_eq!(place(&all, 2, 2), [[1, 2], [2, 1]]);
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        assert!(Placer::new(&[broker(1, None, false)], 2, 0).unwrap_err().contains("only 1 broker"));
        assert!(Placer::new(&[broker(1, None, true)], 1, 0).unwrap_err().contains("fenced"));
    }

    #[test]
    fn leaders_are_spread_evenly_whatever_the_draw() {
        let brokers: Vec<Candidate> = (0..5).map(|id| broker(id, None, false)).collect();
        for draw in [0, 7, u64::MAX] {
            let mut placer = Placer::new(&brokers, 3, draw).unwrap();
            let mut leads = [0; 5];
            for _ in 0..100 {
                leads[placer.place()[0].get() as usize] += 1;
            }
            assert_eq!(leads, [20; 5]);
        }
    }
}
