//! What the metadata says: who leads, whom to follow, which replicas come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{BrokerId, DurationMs, Offset, TopicPartition};
use barnabas_metadata::{Image, Partition as State};
use barnabas_partition::{FetcherSettings, ReplicaKey};
use barnabas_replica::{RoleChange, RoleView, registered};

use super::{Around, Broker, Event, LAG_MAX, Process};
use crate::host::{Failure, HostTime, Unopened};
use crate::mistake::Mistake;

pub(super) const SETTINGS: FetcherSettings =
    FetcherSettings { backoff_min: DurationMs(5), backoff_max: DurationMs(60), patience: DurationMs(10) };

impl Broker {
    /// Learns the state of that number.
    pub fn learn(&mut self, number: usize, image: &Arc<Image>, around: &mut Around<'_>) {
        let Some(process) = &mut self.process else { return };
        process.former = std::mem::replace(&mut process.image, Arc::clone(image));
        process.seen = number;
        let is_first = !process.has_begun;
        if is_first {
            if let Err(failure) = process.host.recover(image, &mut around.time()) {
                around.events.push(Event::Failed(failure));
                return;
            }
            process.has_begun = true;
            process.put_strays_aside(around);
        }
        process.take_image(around);
        if is_first && let Err(failure) = process.host.resume_moves(image, around.random) {
            around.events.push(Event::Failed(failure));
            return;
        }
        process.finish_turn(around);
    }
}

impl Process {
    /// Stops cleanly.
    pub fn stop(&mut self, time: &mut HostTime<'_>) -> Result<(), Failure> {
        if !self.has_begun {
            return Err(Failure::Disk("the journal was not read".to_owned()));
        }
        self.host.close(self.life, &self.image, time)
    }

    fn take_image(&mut self, around: &mut Around<'_>) {
        let image = Arc::clone(&self.image);
        let (me, mut mine) = (self.id, BTreeSet::new());
        for topic in image.topics.by_ids() {
            for (partition, state) in topic.partitions().filter(|(_, state)| state.has_replica(me)) {
                let key = ReplicaKey { topic: topic.id, partition };
                mine.insert(key);
                self.take_partition(key, state, around);
            }
        }
        for key in self.keys().into_iter().filter(|key| !mine.contains(key)) {
            self.leave(key);
            self.drop_shard(key, around);
            if let Some(name) = self.name_of(key) {
                self.host.leave(key, &name);
            }
            self.hindered.remove(&key);
            self.to_reopen.remove(&key);
        }
        self.hear(around);
    }

    /// What others hold now, since this broker was away.
    fn put_strays_aside(&mut self, around: &mut Around<'_>) {
        let image = Arc::clone(&self.image);
        let mut mine = BTreeSet::new();
        for topic in image.topics.by_ids() {
            for (partition, _) in topic.partitions().filter(|(_, state)| state.has_replica(self.id)) {
                mine.insert(TopicPartition::new(topic.name.clone(), partition));
            }
        }
        match self.host.strays(&mine) {
            Ok(strays) => {
                for name in strays {
                    let Some(topic) = image.topics.id_of(&name.topic) else { continue };
                    let key = ReplicaKey { topic, partition: name.partition };
                    self.host.leave(key, &name);
                }
            }
            Err(failure) => around.events.push(Event::Failed(failure)),
        }
    }

    fn take_partition(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        if self.host.replica(key).is_none() {
            let Some(name) = self.name_of(key) else { return };
            if let Err(unopened) = self.host.open(key, &name, &around.time()) {
                self.to_reopen.insert(key);
                if let Unopened::Failed(failure) = unopened {
                    around.events.push(Event::Failed(failure));
                }
                return;
            }
            self.hear(around);
        }
        self.take_role(key, state, around);
    }

    /// The role that the newest image gives.
    pub(super) fn take_role_again(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        let image = Arc::clone(&self.image);
        let topic = image.topics.by_id(key.topic);
        if let Some(state) = topic.and_then(|topic| topic.partition(key.partition)) {
            self.take_role(key, state, around);
        }
    }

    fn take_role(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        if hosted.replica.truncation.is_some() {
            hosted.role_waits = true;
            return;
        }
        hosted.role_waits = false;
        let (image, me, now) = (Arc::clone(&self.image), self.id, around.now);
        let min_in_sync = if around.is(Mistake::LeadsBelowTheMinimum) { 1 } else { 2 };
        let view = RoleView { me, image: &image, row: state, min_in_sync, lag_max: LAG_MAX, now };
        let change = self.host.step(key, now, |replica, around| {
            let change = replica.take_role(&view, around.outbox);
            if state.leader == me && replica.partition.is_leader() {
                for &follower in state.replicas().iter().filter(|&&follower| follower != me) {
                    let registered = registered(&image, follower);
                    replica.partition.set_registered(follower, registered, &mut around.outbox.decisions);
                }
            }
            change
        });
        if change == Some(RoleChange::Leads) {
            self.slip_after_election(key, state, around);
            let log = self.host.log(key);
            around.events.push(Event::Leads { key, log });
            self.load_shard(key, state.leader_epoch, around);
        }
        if state.leader != self.id {
            self.drop_shard(key, around);
        }
        self.turn_to_leader(key, state, around);
        self.hear(around);
    }

    /// Fetches from the leader that the image names, or from none.
    fn turn_to_leader(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let replica = &mut hosted.replica;
        let leads = state.leader == self.id;
        if !leads || replica.partition.isr_change().is_none() {
            self.questions.withdraw(key);
        }
        let follows = !leads && state.leader != BrokerId::NONE && !replica.partition.is_failed();
        let whom = follows.then_some((state.leader, state.leader_epoch));
        let was = std::mem::replace(&mut replica.following, whom);
        let in_sync = state.isr().contains(&self.id);
        match whom {
            Some((leader, epoch)) if was == whom => {
                let turns = self.fetchers.is_in_bulk(key) == in_sync && replica.truncation.is_none();
                if turns {
                    let position = replica.partition.fetch_position(replica.log.epochs());
                    self.fetchers.follow(key, leader, epoch, in_sync, position);
                }
            }
            Some((leader, epoch)) => {
                replica.leader_start = Offset::ZERO;
                let position = replica.partition.fetch_position(replica.log.epochs());
                self.fetchers.follow(key, leader, epoch, in_sync, position);
                if around.is(Mistake::TruncatesToHighWatermark) && replica.truncation.is_none() {
                    let high_watermark = replica.partition.high_watermark();
                    let cut = replica.partition.out_of_range(Offset::ZERO, high_watermark);
                    self.fetchers.follow(key, leader, epoch, in_sync, None);
                    self.host.truncate(key, cut, &around.time());
                }
            }
            None if was.is_some() => self.fetchers.unfollow(key),
            None => {}
        }
        self.repair(key, around);
    }

    /// Stops following `key`.
    fn leave(&mut self, key: ReplicaKey) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        if hosted.replica.following.take().is_some() {
            self.fetchers.unfollow(key);
        }
        self.questions.withdraw(key);
    }

    /// More is durable, or a truncation is noted: goes on from there.
    pub(super) fn settle(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        if self.host.may_truncate(key) && self.host.truncate_now(key, around.now) {
            let waits = |hosted: &crate::host::Hosted| hosted.role_waits;
            if self.host.replicas.get(&key).is_some_and(waits) {
                self.take_role_again(key, around);
            }
        }
        let lags = |replica: &barnabas_replica::Replica| {
            replica.leader_start > replica.partition.log_start() && !replica.partition.is_leader()
        };
        if self.host.replica(key).is_some_and(lags) {
            self.host.step(key, around.now, |replica, around| replica.follow_start(around));
        }
        self.repair(key, around);
        let Some(replica) = self.host.replica(key) else { return };
        if replica.partition.is_failed() {
            self.fetchers.unfollow(key);
            self.to_reopen.insert(key);
            return;
        }
        self.tell_position(key);
    }

    /// The fetcher goes on from where the replica stands now.
    pub(super) fn tell_position(&mut self, key: ReplicaKey) {
        let Some(replica) = self.host.replica(key) else { return };
        if replica.truncation.is_none()
            && let Some(position) = replica.partition.fetch_position(replica.log.epochs())
            && let Some(fetcher) = self.fetchers.of(key)
        {
            fetcher.settled(key, position);
        }
    }

    /// Replicas that met a full disk are opened again now and then, and truncations that did are gone on with.
    pub(super) fn reopen_some(&mut self, around: &mut Around<'_>) {
        for key in self.keys().into_iter().filter(|key| self.host.may_truncate(*key)).collect::<Vec<_>>() {
            if around.random.one_in(10) {
                self.settle(key, around);
            }
        }
        for key in std::mem::take(&mut self.to_reopen) {
            if !around.random.one_in(20) || !self.host.reopen(key) {
                self.to_reopen.insert(key);
                continue;
            }
            let image = Arc::clone(&self.image);
            let topic = image.topics.by_id(key.topic);
            let state = topic.and_then(|topic| topic.partition(key.partition));
            if let Some(state) = state.filter(|state| state.has_replica(self.id)) {
                self.take_partition(key, state, around);
            }
        }
        self.hear(around);
    }
}
