//! What the metadata says: who leads, whom to follow, which replicas come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs};
use barnabas_metadata::{Image, Partition as State};
use barnabas_partition::{FetcherSettings, FollowerState, Leadership, ReplicaKey};

use super::{Around, Broker, Event, LAG_MAX, Process};
use crate::mistake::Mistake;
use crate::replica::{DiskLog, Replica};

pub(super) const SETTINGS: FetcherSettings =
    FetcherSettings { backoff_min: DurationMs(5), backoff_max: DurationMs(60), patience: DurationMs(10) };

/// The life in which a broker is registered, if it may join.
pub(super) fn registered(image: &Image, broker: BrokerId) -> Option<BrokerEpoch> {
    image.cluster.broker(broker).filter(|known| known.is_active()).map(|known| known.epoch)
}

impl Broker {
    /// Learns the state of that number.
    pub fn learn(&mut self, number: usize, image: &Arc<Image>, around: &mut Around<'_>) {
        let Self { process, disk, given_up, .. } = self;
        let Some(process) = process else { return };
        (process.seen, process.image) = (number, Arc::clone(image));
        let id = process.id;
        let mut mine = BTreeSet::new();
        for topic in image.topics.by_ids() {
            for (partition, state) in topic.partitions().filter(|(_, state)| state.has_replica(id)) {
                let key = ReplicaKey { topic: topic.id, partition };
                mine.insert(key);
                process.take_role(key, state, around, disk);
            }
        }
        for key in process.keys().into_iter().filter(|key| !mine.contains(key)) {
            process.leave(key);
            process.let_go(key, around);
            process.replicas.remove(&key);
            disk.remove(&key);
            given_up.insert(key);
        }
    }
}

impl Process {
    fn take_role(
        &mut self,
        key: ReplicaKey,
        state: &State,
        around: &mut Around<'_>,
        disk: &mut BTreeMap<ReplicaKey, DiskLog>,
    ) {
        let disk = disk.entry(key).or_default();
        self.replicas.entry(key).or_insert_with(|| Replica::open(disk, around.is(Mistake::ForgetsProducers)));
        if state.leader == self.id {
            self.lead(key, state, around);
        } else {
            self.follow(key, state, around);
        }
    }

    fn lead(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        self.leave(key);
        let image = Arc::clone(&self.image);
        let others = state.replicas().iter().filter(|&&replica| replica != self.id);
        let followers: Vec<FollowerState> = others
            .map(|&broker| FollowerState {
                broker,
                in_sync: state.isr().contains(&broker),
                registered: registered(&image, broker),
            })
            .collect();
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let mut effects = Vec::new();
        let leadership = Leadership {
            epoch: state.leader_epoch,
            partition_epoch: state.partition_epoch,
            followers: &followers,
            min_in_sync: if around.is(Mistake::LeadsBelowTheMinimum) { 1 } else { 2 },
            lag_max: LAG_MAX,
            now: around.now,
        };
        let was = replica.partition.leader_epoch();
        let end = replica.partition.log_end();
        if replica.partition.become_leader(&leadership, &mut effects) && was != state.leader_epoch {
            replica.epochs.assign(state.leader_epoch, end);
            around.events.push(Event::Leads { key });
            self.host(key, state.leader_epoch, around);
        }
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        for follower in &followers {
            replica.partition.set_registered(follower.broker, follower.registered, &mut effects);
        }
        if replica.partition.isr_change().is_none() {
            self.questions.withdraw(key);
        }
        self.carry_out(key, effects, around);
    }

    fn follow(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        let whom = (state.leader.get() >= 0).then_some((state.leader, state.leader_epoch));
        self.let_go(key, around);
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let mut effects = Vec::new();
        replica.partition.become_follower(state.leader_epoch, &mut effects);
        let was = std::mem::replace(&mut replica.following, whom);
        match whom {
            Some((leader, epoch)) if was != whom => {
                let position = replica.partition.fetch_position(&replica.epochs);
                let in_sync = state.isr().contains(&self.id);
                self.fetchers.follow(key, leader, epoch, in_sync, position);
                self.questions.withdraw(key);
            }
            Some(_) => {}
            None => self.fetchers.unfollow(key),
        }
        self.carry_out(key, effects, around);
    }

    /// Follows nobody in `key` any more.
    fn leave(&mut self, key: ReplicaKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        if replica.following.take().is_some() {
            self.fetchers.unfollow(key);
        }
    }

    /// What a follower has is durable: it may go on from there.
    pub(super) fn settle(&mut self, key: ReplicaKey) {
        let Some(replica) = self.replicas.get(&key) else { return };
        if let Some(position) = replica.partition.fetch_position(&replica.epochs)
            && let Some(fetcher) = self.fetchers.of(key)
        {
            fetcher.settled(key, position);
        }
    }
}
