//! Brokers that are alive and should not lead all that they could: whose log directory has no room for producers'
//! records, or whose copy of a partition is damaged. Where nothing at all can be written, others shall not wait for
//! them either: they are in sync no more.
//!
//! A producer of such a partition gets no acknowledgement until the broker has room, although another in-sync
//! replica may have some. In Apache Kafka a full disk takes the log directory offline, and leadership moves; here
//! the directory stays online, and only leadership moves. An impaired broker says so in each heartbeat ([`said`]).
//! The metadata log does not contain it, and a new controller learns it within two seconds.
//!
//! Always true:
//! 1. an impaired replica leads if there is no better one: no partition loses its leader by this
//! 2. leadership goes only to a replica that is less impaired, so that it never goes to and fro
//! 3. what a broker's former life said does not count
//! 4. no replica leaves the ISR by this if fewer than `min.insync.replicas` unimpaired ones would stay: producers
//!    could not continue
//!
//! | where | what follows |
//! |---|---|
//! | [`super::partition_change`] | elections of every kind prefer replicas that are not impaired |
//! | [`super::replicas`] | leadership leaves impaired leaders, preferred ones get it back once they are well |
//! | [`super::replicas`] | brokers that cannot write leave the ISR, and do not come into one |
//! | [`super::replicas`] | a damaged replica that is in neither ISR nor ELR does not come into the ISR |
//! | [`super::placement`], [`super::topics`] | new partitions are led where there is room |

pub mod said;

use barnabas_base::{BrokerEpoch, BrokerId, DirectoryId, Map, PartitionIndex, Set, TopicId};
use barnabas_metadata::{Broker, Image};
use barnabas_wire::messages::BrokerHeartbeatRequest;
use said::Impairments;

/// What keeps a replica from leading as it should, from nothing to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Impairment {
    Nothing,
    /// Producers are refused where it lies.
    NoRoom,
    /// Nothing can be written there.
    Full,
    /// Some of its records cannot be read.
    Damage,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    epoch: BrokerEpoch,
    directories: Set<DirectoryId>,
    partitions: Set<(TopicId, PartitionIndex)>,
    full: Set<DirectoryId>,
}

/// Who has said what. Nearly always empty.
#[derive(Debug, Default)]
pub(crate) struct Impaired {
    by_broker: Map<BrokerId, Known>,
}

impl Impaired {
    /// Takes over a heartbeat's report. Returns whether any broker is impaired and the set of impairments has
    /// changed.
    pub fn hear(&mut self, image: &Image, request: &BrokerHeartbeatRequest) -> bool {
        let (id, epoch) = (BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch));
        if image.cluster.broker(id).is_none_or(|broker| broker.epoch != epoch) {
            return false;
        }
        // A broker that is gone impairs nothing, and would only cause a search through all partitions.
        let lives = |broker: &Broker, known: &Known| broker.epoch == known.epoch && !broker.fenced;
        self.by_broker.retain(|other, known| {
            *other == id || image.cluster.broker(*other).is_some_and(|broker| lives(broker, known))
        });
        // An unreadable field is from an unknown writer and counts as empty.
        let said = Impairments::read(&request.unknown_tagged_fields).unwrap_or_default();
        if said.are_none() {
            return self.by_broker.remove(&id).is_some() && !self.is_empty();
        }
        let known = Known {
            epoch,
            directories: said.directories.into_iter().collect(),
            partitions: said.partitions.into_iter().collect(),
            full: said.full.into_iter().collect(),
        };
        let is_new = self.by_broker.get(&id) != Some(&known);
        self.by_broker.insert(id, known);
        is_new
    }

    pub fn is_empty(&self) -> bool {
        self.by_broker.is_empty()
    }

    /// `directory`: where the replica lies, if the metadata log says it.
    pub fn of(
        &self,
        image: &Image,
        broker: BrokerId,
        partition: (TopicId, PartitionIndex),
        directory: Option<DirectoryId>,
    ) -> Impairment {
        let Some(known) = self.known(image, broker) else { return Impairment::Nothing };
        if known.partitions.contains(&partition) {
            return Impairment::Damage;
        }
        let directory = directory.filter(|at| *at != DirectoryId::DIRECTORY_MIGRATING);
        let directory = directory.unwrap_or(DirectoryId::DIRECTORY_UNASSIGNED);
        if known.full.contains(&directory) {
            return Impairment::Full;
        }
        match known.directories.contains(&directory) {
            true => Impairment::NoRoom,
            false => Impairment::Nothing,
        }
    }

    /// Whether a new replica would find no room, in whatever directory of the broker.
    pub fn has_no_room(&self, image: &Image, broker: BrokerId) -> bool {
        let known = self.known(image, broker);
        known.is_some_and(|known| known.directories.contains(&DirectoryId::DIRECTORY_UNASSIGNED))
    }

    fn known(&self, image: &Image, broker: BrokerId) -> Option<&Known> {
        let known = self.by_broker.get(&broker)?;
        image.cluster.broker(broker).filter(|broker| broker.epoch == known.epoch).map(|_| known)
    }
}
