//! What goes wrong in the world.
//!
//! Two replicas of each partition that have all that was acknowledged are spared at a time: more than
//! `min.insync.replicas` promises is not asked for.

use std::collections::BTreeSet;
use std::path::Path;

use barnabas_base::{BrokerId, Offset, PartitionIndex, name};
use barnabas_partition::ReplicaKey;
use barnabas_storage::{Disk, Faults as DiskFaults};
use barnabas_wire::Str;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use barnabas_wire::messages::elect_leaders_request::{ElectLeadersRequest, TopicPartitions};

use super::{Climate, PARTITIONS, ROOM, World};
use crate::broker::Broker;
use crate::counts::Fault;
use crate::host::HostTime;
use crate::invariants::Violation;
use crate::network::Place;

impl World {
    pub(super) fn nemesis(&mut self) -> Result<(), Violation> {
        let pause = match self.climate {
            Climate::MovingCoordinators => 18,
            _ if self.writers.is_empty() => 9,
            _ => 36,
        };
        if !self.random.one_in(pause) {
            return Ok(());
        }
        // Whoever has what was acknowledged is let alone until it is known who has not.
        let mut hollow = self.brokers.iter().filter(|broker| broker.is_hollow).peekable();
        let is_hollow = hollow.peek().is_some();
        let is_spared = hollow.any(|broker| !self.may_lose_disk(broker.id));
        let is_harmed = |broker: &Broker| !broker.damaged.is_empty() || broker.has_rotten_journal;
        let is_harmed = is_hollow || self.brokers.iter().any(is_harmed);
        if !self.writers.is_empty() && !is_spared && self.random.one_in(3) {
            self.depose();
            return Ok(());
        }
        let at = self.random.below(self.brokers.len());
        let id = self.brokers[at].id;
        let what = self.random.below(27);
        if self.is_printed {
            println!("{} {id}: fault {what}", self.now.0);
        }
        if self.does_its_own(at, is_harmed, is_spared)? {
            return Ok(());
        }
        match what {
            0 | 1 | 8..=10 | 16..=18 | 20 if is_spared => {}
            // Two disks are not lost, nor do two replicas leave that have what was acknowledged. Nor does a broker that
            // a failed sync keeps from noting its registration: it counts as shut down uncleanly.
            7 | 13 | 14 | 20 | 21 | 24..=26 if is_harmed => {}
            0 | 1 => {
                self.day.faults.note(Fault::Crash);
                self.crash(at);
            }
            2..=6 => return self.start(at),
            7 if self.may_lose_disk(id) => {
                self.day.faults.note(Fault::LostDisk);
                self.brokers[at].lose_disk();
            }
            8 => self.fence(id),
            9 | 10 => self.cut(id),
            11 | 12 => self.network.heal(),
            13 => self.move_replicas(),
            14 => self.call_off(),
            16 | 17 => {
                self.day.faults.note(Fault::Killed);
                self.brokers[at].kill();
            }
            18 => self.stop(at),
            19 => self.fill_disk(at),
            // What a failed sync covered is lost, and nothing has waited for it.
            20 if self.ways.acks_are_written => {}
            20 => {
                self.day.faults.note(Fault::FailedSync);
                let after = Some(self.random.below(4) as u64);
                let faults = DiskFaults { syncs_until_error: after, ..DiskFaults::default() };
                self.brokers[at].disk.set_faults(faults);
            }
            21 | 24..=26 if self.may_lose_disk(id) => self.damage(at),
            22 | 23 => self.brokers[at].disk.set_capacity(ROOM),
            _ => self.elect(),
        }
        Ok(())
    }

    /// What the climate has most of, in half of the cases. `false`: it was something else's turn.
    fn does_its_own(&mut self, at: usize, is_harmed: bool, is_spared: bool) -> Result<bool, Violation> {
        let id = self.brokers[at].id;
        match self.climate {
            Climate::Damage if self.random.one_in(2) => match !is_harmed && self.may_lose_disk(id) {
                true => self.damage(at),
                false => self.start(at)?,
            },
            Climate::Retention if self.random.one_in(2) => match self.random.below(4) {
                0 => self.fill_disk(at),
                1 => self.brokers[at].disk.set_capacity(ROOM),
                _ => self.delete_records()?,
            },
            Climate::Elections if self.random.one_in(2) => {
                let is_damaged = self.brokers.iter().any(|broker| !broker.damaged.is_empty());
                match is_damaged {
                    true if is_spared || self.random.one_in(2) => self.elect(),
                    true => self.depose(),
                    false if !is_harmed && self.may_lose_disk(id) => self.damage(at),
                    false => return Ok(false),
                }
            }
            Climate::Directories if self.random.one_in(2) => match self.random.below(8) {
                0 if !is_harmed && !is_spared => self.fail_operation(at),
                1 => self.stop(at),
                2 => self.start(at)?,
                _ => self.move_to_directory(at)?,
            },
            Climate::Rot if self.random.one_in(2) => match self.random.below(6) {
                0..=2 => self.rot(at, !is_harmed && self.may_lose_disk(id)),
                3 => self.stop(at),
                4 if !is_spared => self.brokers[at].kill(),
                _ => self.start(at)?,
            },
            Climate::Aside if self.random.one_in(2) => match self.random.below(6) {
                0..=2 if !is_harmed && self.is_elsewhere(id, 1) => self.damage(at),
                0..=2 => self.elect(),
                3 => self.restore(),
                4 => self.move_replicas_to(2),
                _ => self.start(at)?,
            },
            Climate::Waiting if self.random.one_in(2) => match self.random.below(5) {
                0 => self.fill_disk(at),
                1 => self.brokers[at].disk.set_capacity(ROOM),
                2 if self.ways.directories > 1 => self.move_to_directory(at)?,
                3 if !is_spared => self.depose(),
                _ => self.elect(),
            },
            Climate::Compaction if self.random.one_in(3) => match self.random.below(5) {
                0 | 1 if !is_harmed && !is_spared => self.fail_cleaning(at),
                2 => self.fill_disk(at),
                3 => self.depose(),
                _ => self.start(at)?,
            },
            Climate::MovingCoordinators if !is_spared && self.random.one_in(2) => {
                let partition = self.random.below(PARTITIONS as usize) as i32;
                self.depose_of(name::TRANSACTION_STATE, partition);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A rename, a write or a sync of the disk fails soon: in the midst of a cleaning or of a swap, maybe.
    fn fail_cleaning(&mut self, at: usize) {
        self.day.faults.note(Fault::FailedCleaning);
        let after = Some(self.random.below(12) as u64);
        let faults = match self.random.below(4) {
            0 => DiskFaults { writes_until_error: after, ..DiskFaults::default() },
            1 => DiskFaults { syncs_until_error: after, ..DiskFaults::default() },
            _ => DiskFaults { renames_until_error: after, ..DiskFaults::default() },
        };
        self.brokers[at].disk.set_faults(faults);
    }

    fn fail_operation(&mut self, at: usize) {
        self.day.faults.note(Fault::FailedOperation);
        let after = Some(self.random.below(6) as u64);
        let faults = match self.random.below(4) {
            0 => DiskFaults { writes_until_error: after, ..DiskFaults::default() },
            1 => DiskFaults { syncs_until_error: after, ..DiskFaults::default() },
            _ => DiskFaults { renames_until_error: after, ..DiskFaults::default() },
        };
        self.brokers[at].disk.set_faults(faults);
    }

    /// A replica is to lie in another log directory of its broker, or is to stay after all.
    fn move_to_directory(&mut self, at: usize) -> Result<(), Violation> {
        let (which, to) = (self.random.draw(), self.random.below(2));
        self.act(at, |broker, around| broker.move_to_directory(which, to, around))
    }

    /// DeleteRecords, of the leader of a partition: up to its high watermark, or some of what lies below.
    fn delete_records(&mut self) -> Result<(), Violation> {
        let (name, partition) = self.a_partition();
        let Some(topic) = self.host.image().topics.id_of(name) else { return Ok(()) };
        let key = ReplicaKey { topic, partition: PartitionIndex(partition) };
        let leader = self.leader(key);
        let Some(at) = self.brokers.iter().position(|broker| broker.id == leader) else { return Ok(()) };
        self.day.faults.note(Fault::DeletedRecords);
        let part = self.random.below(4) as i64;
        self.act(at, |broker, around| broker.delete_records(key, part, around))
    }

    /// Stops cleanly, as far as its disk allows.
    fn stop(&mut self, at: usize) {
        let Self { random, brokers, now, mistake, day, .. } = self;
        let Some(mut process) = brokers[at].process.take() else { return };
        day.faults.note(Fault::CleanStop);
        let mut time = HostTime { now: *now, random, faults: &mut day.faults, mistake: *mistake };
        let stopped = process.stop(&mut time);
        drop(process);
        match stopped {
            Ok(()) => self.brokers[at].kill(),
            Err(_) => self.crash(at),
        }
    }

    fn fill_disk(&mut self, at: usize) {
        if !self.disks_fill {
            return;
        }
        self.day.faults.note(Fault::FullDisk);
        let most = if self.random.one_in(2) { 4 << 10 } else { 60 << 10 };
        let disk = &self.brokers[at].disk;
        let Ok(space) = disk.space(Path::new("/")) else { return };
        disk.set_capacity(space.total - space.free + self.random.below(most) as u64);
    }

    /// Changes bytes of a segment that other replicas have as well. Of two replicas, and `min.insync.replicas` of two,
    /// a damaged one never leaves the ISR, and is not repaired.
    fn damage(&mut self, at: usize) {
        let replicas_min = if self.ways.fetches_aside { 2 } else { 3 };
        let Self { random, brokers, day, host, disks_fill, .. } = self;
        let broker = &mut brokers[at];
        let Some(process) = &mut broker.process else { return };
        let is_repaired = |key: &ReplicaKey| {
            let topic = host.image().topics.by_id(key.topic);
            let state = topic.and_then(|topic| topic.partition(key.partition));
            state.is_some_and(|state| state.replicas().len() >= replicas_min && !state.is_reassigning())
        };
        let keys: Vec<ReplicaKey> =
            process.host.replicas.keys().copied().filter(|key| is_repaired(key)).collect();
        if keys.is_empty() {
            return;
        }
        let key = keys[random.below(keys.len())];
        if let Some(corrupted) = process.host.damage(key, !*disks_fill, random) {
            day.faults.note(Fault::Damage);
            broker.corrupted.insert(key, corrupted);
            broker.damaged.insert(key);
        }
    }

    /// The operator puts a damaged file back as it was, while its broker runs or is down.
    fn restore(&mut self) {
        let Self { brokers, day, .. } = self;
        for broker in brokers.iter_mut().filter(|broker| !broker.damaged.is_empty()) {
            let Broker { damaged, corrupted, disk, .. } = broker;
            for (_, corrupted) in corrupted.extract_if(.., |key, _| damaged.contains(key)) {
                if corrupted.restore(disk) {
                    day.faults.note(Fault::RestoredFile);
                }
            }
        }
    }

    fn fence(&mut self, id: BrokerId) {
        self.day.faults.note(Fault::FencedAlive);
        let known = self.host.image().cluster.broker(id).map(|known| known.epoch);
        if let Some(life) = known {
            self.host.heartbeat(id, life, Offset::NONE, true, self.now);
        }
    }

    /// Somebody else leads a partition from now on. Who led it has yet to hear of that.
    fn depose(&mut self) {
        let (name, partition) = self.a_partition();
        self.depose_of(name, partition);
    }

    fn depose_of(&mut self, name: &str, partition: i32) {
        let topic = self.host.image().topics.by_name(name);
        let leader =
            topic.and_then(|topic| topic.partition(PartitionIndex(partition))).map(|state| state.leader);
        if let Some(leader) = leader {
            self.fence(leader);
        }
    }

    fn cut(&mut self, id: BrokerId) {
        self.day.faults.note(Fault::CutLine);
        let other = Place::Broker(self.brokers[self.random.below(self.brokers.len())].id);
        let other = if self.random.one_in(3) { Place::Controller } else { other };
        self.network.cut(Place::Broker(id), other);
        if self.random.one_in(2) {
            self.network.cut(other, Place::Broker(id));
        }
    }

    /// Whether of every partition two are left who have everything that was acknowledged, and are there: one may be let
    /// go before the loss is known. In the calm, one is enough.
    pub(super) fn may_lose_disk(&self, id: BrokerId) -> bool {
        self.is_elsewhere(id, if self.network.is_calm { 1 } else { 2 })
    }

    /// Whether so many others have it.
    fn is_elsewhere(&self, id: BrokerId, count: usize) -> bool {
        let is_there = |other: BrokerId| {
            let is_cut = self.network.is_cut(Place::Broker(other), Place::Controller);
            let broker = self.brokers.iter().find(|broker| broker.id == other);
            !is_cut && broker.is_some_and(|broker| broker.process.is_some())
        };
        let is_left = |state: &barnabas_metadata::Partition| {
            let others = state.isr().iter().filter(|&&other| other != id && is_there(other)).count();
            !state.has_replica(id) || others >= count
        };
        self.host.image().topics.by_ids().all(|topic| topic.partitions().all(|(_, state)| is_left(state)))
    }

    fn a_partition(&mut self) -> (&'static str, i32) {
        (self.topics[self.random.below(self.topics.len())], self.random.below(PARTITIONS as usize) as i32)
    }

    fn reassign(&mut self, replicas: Option<Vec<i32>>) {
        let (name, partition) = self.a_partition();
        self.reassign_of(name, partition, replicas);
    }

    fn reassign_of(&mut self, name: &str, partition_index: i32, replicas: Option<Vec<i32>>) {
        let partition =
            ReassignablePartition { partition_index, replicas, ..ReassignablePartition::default() };
        let topic = ReassignableTopic {
            name: Str::from(name),
            partitions: vec![partition],
            ..ReassignableTopic::default()
        };
        let request = AlterPartitionReassignmentsRequest {
            allow_replication_factor_change: true,
            topics: vec![topic],
            ..AlterPartitionReassignmentsRequest::default()
        };
        self.host.ask(request, 1, self.now);
    }

    /// Two to four replicas, wherever.
    fn move_replicas(&mut self) {
        let count = 2 + self.random.below(3);
        self.move_replicas_to(count);
    }

    /// What is damaged and does not fit stays as it is while the cluster needs the replica: the operator has others
    /// hold the partition as well.
    pub(super) fn spare_damaged(&mut self) {
        let damaged: BTreeSet<ReplicaKey> =
            self.brokers.iter().flat_map(|broker| broker.damaged.iter().copied()).collect();
        for key in damaged {
            let Some(topic) = self.host.image().topics.by_id(key.topic) else { continue };
            let Some(state) = topic.partition(key.partition) else { continue };
            let (name, held) = (topic.name.clone(), state.replicas().to_vec());
            let others = self.brokers.iter().map(|broker| broker.id).filter(|id| !held.contains(id));
            let target = held.iter().copied().chain(others).take(3).map(BrokerId::get).collect();
            self.reassign_of(&name, key.partition.get(), Some(target));
        }
    }

    fn move_replicas_to(&mut self, count: usize) {
        self.day.faults.note(Fault::MovedReplicas);
        let mut all: Vec<i32> = self.brokers.iter().map(|broker| broker.id.get()).collect();
        let count = count.min(all.len());
        let target = (0..count).map(|_| all.remove(self.random.below(all.len()))).collect();
        self.reassign(Some(target));
    }

    fn call_off(&mut self) {
        self.day.faults.note(Fault::CalledOffMove);
        self.reassign(None);
    }

    fn elect(&mut self) {
        self.day.faults.note(Fault::Election);
        let (name, partition) = self.a_partition();
        let topic = TopicPartitions {
            topic: Str::from(name),
            partitions: vec![partition],
            ..TopicPartitions::default()
        };
        let request =
            ElectLeadersRequest { topic_partitions: Some(vec![topic]), ..ElectLeadersRequest::default() };
        self.host.ask(request, 2, self.now);
    }
}
