//! Over seeded random requests, syncs and crashes: what a restart reads is what was committed, an image and its
//! snapshot are one, what changed is named, and the image holds together. Planted bugs show that each of these checks
//! can fire.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{BrokerId, Map, Offset};
use barnabas_metadata::{Changes, Delta, Image, Partition, ResourceType, snapshot};
use barnabas_quorum::batches::{Content, read_batch};
use barnabas_quorum::{QuorumError, SnapshotId, SnapshotTask};
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::*;
use barnabas_wire::records::batches;
use barnabas_wire::{MetadataRecord, ResponseBody, Str};
use world::{Event, World, draw, registration};

/// What of an image does not hold together.
fn broken(image: &Image) -> Vec<String> {
    let mut broken = Vec::new();
    let mut partitions = 0;
    let mut topics = 0;
    for topic in image.topics.iter() {
        topics += 1;
        for (position, (index, partition)) in topic.partitions().enumerate() {
            partitions += 1;
            let mut not = |holds: bool, what: &str| {
                if !holds {
                    broken.push(format!("{}-{index}: {what}", topic.name));
                }
            };
            let replicas: BTreeSet<BrokerId> = partition.replicas().iter().copied().collect();
            not(index.get() == position as i32, "partitions have no gap");
            not(replicas.len() == partition.replicas().len(), "replicas are different brokers");
            not(!replicas.is_empty(), "there is a replica");
            not(partition.isr().iter().all(|id| replicas.contains(id)), "the ISR is of the replicas");
            not(partition.elr().iter().all(|id| replicas.contains(id)), "the ELR is of the replicas");
            not(!partition.isr().iter().any(|id| partition.elr().contains(id)), "ISR and ELR do not overlap");
            not(
                partition.leader == BrokerId::NONE || partition.isr().contains(&partition.leader),
                "the leader is in sync",
            );
            not(
                partition.placement.directories.len() == partition.replicas().len(),
                "a directory for each replica",
            );
        }
        if image.topics.by_id(topic.id).is_none_or(|known| known.name != topic.name) {
            broken.push(format!("{}: found by its id", topic.name));
        }
    }
    if topics != image.topics.len() || partitions != image.topics.partition_count() {
        broken.push("topics and partitions are counted".into());
    }
    for (resource, _) in image.configs.of_kind(ResourceType::Topic) {
        if image.topics.by_name(&resource.name).is_none() {
            broken.push(format!("configs of topic {}, which is gone", resource.name));
        }
    }
    broken
}

/// What differs between two images and is not named.
fn unnamed(before: &Image, after: &Image, changes: &Changes) -> Vec<String> {
    if changes.everything {
        return Vec::new();
    }
    let mut unnamed = Vec::new();
    for topic in after.topics.iter() {
        let change = changes.topics.get(&topic.id);
        let old = before.topics.by_id(topic.id);
        if old.is_none() && change.is_none_or(|change| !change.created) {
            unnamed.push(format!("topic {} is new", topic.name));
        }
        for (index, partition) in topic.partitions() {
            let same = old.and_then(|old| old.partition(index)) == Some(partition);
            if !same && change.is_none_or(|change| !change.partitions.contains(&index)) {
                unnamed.push(format!("partition {}-{index} changed", topic.name));
            }
        }
    }
    for topic in before.topics.iter() {
        let gone = after.topics.by_id(topic.id).is_none();
        if gone && changes.topics.get(&topic.id).is_none_or(|change| !change.deleted) {
            unnamed.push(format!("topic {} is gone", topic.name));
        }
    }
    let resources: BTreeSet<_> =
        before.configs.iter().chain(after.configs.iter()).map(|(resource, _)| resource.clone()).collect();
    for resource in resources {
        if before.configs.of(&resource) != after.configs.of(&resource) && !changes.configs.contains(&resource)
        {
            unnamed.push(format!("configs of {resource:?}"));
        }
    }
    let ids: BTreeSet<BrokerId> =
        before.cluster.brokers().chain(after.cluster.brokers()).map(|broker| broker.id).collect();
    for id in ids {
        if before.cluster.broker(id) != after.cluster.broker(id) && !changes.brokers.contains(&id) {
            unnamed.push(format!("broker {id}"));
        }
    }
    if before.features != after.features && !changes.features {
        unnamed.push("features".into());
    }
    if before.next_producer_id != after.next_producer_id && !changes.producer_ids {
        unnamed.push("producer ids".into());
    }
    unnamed
}

/// An image out of a log's batches, from empty.
fn replayed(log: &[MetadataRecord]) -> Result<Image, String> {
    let mut delta = Delta::new(Image::default());
    for record in log {
        delta.replay(record).map_err(|error| error.to_string())?;
    }
    Ok(delta.take().0)
}

fn records_of(world: &World, end: Offset) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for batch in world.files.log.iter().filter(|batch| batch.end <= end) {
        for batch in batches(batch.bytes.clone()) {
            if let Content::Records(of_batch) = read_batch(&batch.unwrap()).unwrap() {
                records.extend(of_batch);
            }
        }
    }
    records
}

/// The image after a snapshot was made of it and read.
fn through_a_snapshot(image: &Image) -> Image {
    let id = SnapshotId { end: image.provenance.end, epoch: image.provenance.last_epoch };
    let now = barnabas_base::TimestampMs(1);
    let task = SnapshotTask { id, image: image.clone(), voters: None, now };
    let mut file = Vec::new();
    task.write(|piece| -> Result<(), QuorumError> {
        file.extend_from_slice(&piece);
        Ok(())
    })
    .unwrap();
    let mut reader = barnabas_quorum::snapshot::SnapshotReader::new(id);
    let mut delta = Delta::new(Image::default());
    for piece in file.chunks(777) {
        reader
            .feed(piece, |record| {
                delta.replay(&record).map_err(|source| QuorumError::Replay { offset: id.end, source })
            })
            .unwrap();
    }
    reader.finish().unwrap();
    delta.take().0
}

struct Run {
    world: World,
    seed: u64,
    shown: Arc<Image>,
    transactions: usize,
    crashes: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let world = World::started(seed);
        let shown = world.image.clone();
        Self { world, seed, shown, transactions: 0, crashes: 0 }
    }

    fn below(&mut self, limit: u64) -> u64 {
        draw(&mut self.seed) % limit
    }

    fn name(&mut self) -> Str {
        const NAMES: [&str; 12] =
            ["a", "b", "c.d", "c_d", "e.f_g", "e_f.g", "h", "i", "j-k", "l", "m.n", "__consumer_offsets"];
        let at = self.below(NAMES.len() as u64) as usize;
        Str::from(NAMES[at])
    }

    fn step(&mut self) {
        match self.below(16) {
            0..=3 => self.create(),
            4 => {
                let name = Some(self.name());
                let topics = vec![DeleteTopicState { name, ..DeleteTopicState::default() }];
                self.world.ask(DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() }, 6);
            }
            5 => {
                let count = 1 + self.below(20) as i32;
                let name = self.name();
                let topics = vec![CreatePartitionsTopic { name, count, ..CreatePartitionsTopic::default() }];
                self.world.ask(CreatePartitionsRequest { topics, ..CreatePartitionsRequest::default() }, 3);
            }
            6 | 7 => self.configure(),
            8 => {
                let broker = 2 + self.below(3) as i32;
                let life = self.below(3) as u8;
                self.world.ask(registration(broker, life, &[broker as u8], None), 4);
            }
            9 | 10 => self.heartbeat(),
            11 => {
                let broker_epoch = self.epoch(1);
                let request = AllocateProducerIdsRequest {
                    broker_id: 1,
                    broker_epoch,
                    ..AllocateProducerIdsRequest::default()
                };
                self.world.ask(request, 0);
            }
            12 => {
                let ms = self.below(6000);
                self.world.tick(ms);
            }
            13 => {
                let now = self.world.time();
                self.world.node().snapshot(now);
                self.world.carry_out();
            }
            14 => self.world.sync(),
            _ => self.crash(),
        }
        self.check();
    }

    fn create(&mut self) {
        let large = self.below(40) == 0;
        let num_partitions = if large { 12_000 } else { 1 + self.below(5) as i32 };
        let replication_factor = 1 + self.below(3) as i16;
        let name = self.name();
        let topic = CreatableTopic { name, num_partitions, replication_factor, ..CreatableTopic::default() };
        self.transactions += usize::from(large);
        self.world.ask(CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() }, 7);
    }

    fn configure(&mut self) {
        let (resource_type, resource_name) = match self.below(4) {
            0 => (4, Str::from("")),
            1 => (32, Str::from("g")),
            _ => (2, self.name()),
        };
        let key = match resource_type {
            32 => "consumer.session.timeout.ms",
            _ => "min.insync.replicas",
        };
        let number = if resource_type == 32 { 50_000 } else { 1 + self.below(3) };
        let config = AlterableConfig {
            name: Str::from(key),
            config_operation: self.below(2) as i8,
            value: Some(Str::from(number.to_string())),
            ..AlterableConfig::default()
        };
        let resource = AlterConfigsResource {
            resource_type,
            resource_name,
            configs: vec![config],
            ..AlterConfigsResource::default()
        };
        let request = IncrementalAlterConfigsRequest {
            resources: vec![resource],
            ..IncrementalAlterConfigsRequest::default()
        };
        self.world.ask(request, 1);
    }

    fn epoch(&mut self, broker: i32) -> i64 {
        let image = self.world.node().working_image();
        image.cluster.broker(BrokerId(broker)).map_or(-1, |broker| broker.epoch.get())
    }

    fn heartbeat(&mut self) {
        let broker_id = 1 + self.below(4) as i32;
        let request = BrokerHeartbeatRequest {
            broker_id,
            broker_epoch: self.epoch(broker_id),
            current_metadata_offset: i64::MAX,
            want_fence: self.below(4) == 0 && broker_id != 1,
            want_shut_down: self.below(4) == 0 && broker_id != 1,
            ..BrokerHeartbeatRequest::default()
        };
        self.world.ask(request, 1);
    }

    fn crash(&mut self) {
        self.crashes += 1;
        let kept = self.below(4) as usize;
        self.check();
        self.world.crash(kept);
        // Everything that was shown is still there: no reader saw what could be lost.
        let read = self.world.read().unwrap();
        assert!(read.log_from() >= self.shown.provenance.end, "what was shown is in the log");
        self.world.start().unwrap();
        self.world.sync();
    }

    /// After each step: what was published names its changes, and holds together.
    fn check(&mut self) {
        for event in std::mem::take(&mut self.world.events) {
            if let Event::Publish(image, changes) = event {
                assert_eq!(unnamed(&self.shown, &image, &changes), [""; 0]);
                assert_eq!(broken(&image), [""; 0]);
                self.shown = image;
            }
        }
    }

    /// At the end: log and snapshots say what the live state says.
    fn finish(mut self) -> (usize, usize) {
        self.world.sync();
        self.check();
        let live = self.world.image.clone();
        assert!(through_a_snapshot(&live) == *live, "an image is equal to its snapshot");
        self.world.crash(0);
        let read = self.world.read().unwrap();
        assert!(*read.image() == *live, "a restart reads what was there");
        (self.transactions, self.crashes)
    }
}

#[test]
fn live_state_log_and_snapshot_are_one() {
    let mut seen = Map::default();
    for seed in 0..30 {
        let mut run = Run::new(seed);
        for _ in 0..120 {
            run.step();
        }
        let (transactions, crashes) = run.finish();
        *seen.entry("transactions").or_insert(0) += transactions;
        *seen.entry("crashes").or_insert(0) += crashes;
    }
    assert!(seen["transactions"] > 10 && seen["crashes"] > 100, "{seen:?}");
}

#[test]
fn the_same_seed_writes_the_same_log() {
    let log = |seed| {
        let mut run = Run::new(seed);
        for _ in 0..100 {
            run.step();
        }
        run.world.files.log
    };
    assert!(log(3) == log(3));
    assert!(log(3) != log(4));
}

/// A log without snapshots, with something of everything in it.
fn a_log() -> (World, Vec<MetadataRecord>) {
    let mut run = Run::new(11);
    for _ in 0..60 {
        run.create();
        run.configure();
        run.heartbeat();
        run.world.sync();
        run.check();
    }
    let end = run.world.files.log_end();
    let records = records_of(&run.world, end);
    (run.world, records)
}

#[test]
fn a_log_from_its_start_says_what_is_live() {
    let (world, records) = a_log();
    assert!(replayed(&records).unwrap() == *world.image);
}

#[test]
fn a_record_that_is_lost_is_noticed() {
    let (world, records) = a_log();
    let without = |drop: &dyn Fn(&MetadataRecord) -> bool| {
        let at = records.iter().position(drop).unwrap();
        let mut less = records.clone();
        less.remove(at);
        replayed(&less)
    };
    // No topic: its partitions do not fit. No partition: a gap, and another state. No config: another state.
    assert!(without(&|record| matches!(record, MetadataRecord::Topic(_))).is_err());
    let holed = without(&|record| matches!(record, MetadataRecord::Partition(_))).unwrap();
    assert!(holed != *world.image);
    assert!(without(&|record| matches!(record, MetadataRecord::RegisterBroker(_))).is_err());
    let end = without(&|record| matches!(record, MetadataRecord::EndTransaction(_)));
    assert!(end.map_or(true, |image| image != *world.image));
}

#[test]
fn a_change_that_is_not_named_is_noticed() {
    let (world, _) = a_log();
    let before = world.image.clone();
    let mut delta = Delta::new((*before).clone());
    let topic = before.topics.iter().next().unwrap().clone();
    let change = PartitionChangeRecord {
        topic_id: topic.id,
        partition_id: 0,
        leader: -1,
        ..PartitionChangeRecord::default()
    };
    delta.replay(&change.into()).unwrap();
    let (after, mut changes) = delta.take();
    assert_eq!(unnamed(&before, &after, &changes), [""; 0]);
    changes.topics.clear();
    assert_eq!(unnamed(&before, &after, &changes).len(), 1);
}

#[test]
fn an_image_that_does_not_hold_together_is_noticed() {
    let (world, _) = a_log();
    let topic = world.image.topics.iter().next().unwrap().clone();
    let (index, partition) = topic.partitions().next().unwrap();
    let with = |edit: &dyn Fn(&mut PartitionRecord)| {
        let version = world.image.metadata_version();
        let MetadataRecord::Partition(mut record) =
            snapshot::partition_record(topic.id, index, partition, version)
        else {
            unreachable!()
        };
        edit(&mut record);
        let mut delta = Delta::new((*world.image).clone());
        delta.replay(&record.into()).map(|()| broken(&delta.take().0))
    };
    assert_eq!(with(&|_| {}).unwrap(), [""; 0]);
    assert_eq!(with(&|record| record.leader = 77).unwrap().len(), 1);
    assert_eq!(with(&|record| record.isr = vec![77]).unwrap().len(), 2);
    assert_eq!(with(&|record| record.eligible_leader_replicas = Some(record.isr.clone())).unwrap().len(), 1);
    assert!(with(&|record| record.directories.push(world::directory(1))).is_err());
    assert!(with(&|record| record.partition_id = -1).is_err());
    assert!(with(&|record| record.leader_recovery_state = 9).is_err());
    let _: &Partition = partition;
}

#[test]
fn damage_stops_the_start() {
    let (mut world, _) = a_log();
    world.crash(0);
    let whole = world.files.log.clone();
    // A flipped bit, a missing batch, an epoch that goes back, a log that ends early.
    let mut bytes = whole[3].bytes.to_vec();
    let middle = bytes.len() - 3;
    bytes[middle] ^= 1;
    world.files.log[3].bytes = bytes.into();
    assert!(matches!(world.start(), Err(QuorumError::Batch { .. })));
    world.files.log = whole.clone();
    world.files.log.remove(3);
    assert!(matches!(world.start(), Err(QuorumError::Order { .. })));
    world.files.log = whole.clone();
    let mut bytes = whole[5].bytes.to_vec();
    bytes[12..16].copy_from_slice(&0_i32.to_be_bytes());
    world.files.log[5].bytes = bytes.into();
    assert!(matches!(world.start(), Err(QuorumError::Epoch { .. })));
    world.files.log = whole;
    world.files.quorum_state = Some("{}".into());
    assert!(matches!(world.start(), Err(QuorumError::State { .. })));
    world.files.quorum_state = None;
    world.start().unwrap();
}

#[test]
fn a_snapshot_that_is_not_whole_is_refused() {
    let mut world = World::started(5);
    let now = world.time();
    assert!(world.node().snapshot(now));
    world.carry_out();
    world.crash(0);
    let (&id, whole) = world.files.snapshots.iter().next_back().unwrap();
    let whole = whole.clone();
    for cut in [whole.len() - 1, whole.len() - 70, 30, 0] {
        world.files.snapshots.insert(id, whole.slice(..cut));
        assert!(world.start().is_err(), "cut at {cut}");
    }
    world.files.snapshots.insert(id, whole);
    world.start().unwrap();
}

#[test]
fn a_log_whose_beginning_no_snapshot_covers_is_refused() {
    let mut world = World::started(5);
    world.crash(0);
    world.files.log.remove(0);
    world.files.log_start = world.files.log[0].base;
    assert!(matches!(world.start(), Err(QuorumError::Gap { .. })));
}

#[test]
fn a_name_that_no_record_can_carry_is_refused_and_stops_nobody() {
    let mut world = World::started(5);
    // What is not UTF-8 grows when it is made so: longer than a string may be.
    let name = Str::from("\u{fffd}".repeat(30_000));
    for (resource_type, resource_name, key) in
        [(4, Str::from("1"), name.clone()), (32, name.clone(), "a.b".into())]
    {
        let config = AlterableConfig {
            name: key,
            config_operation: 0,
            value: Some(Str::from("1")),
            ..AlterableConfig::default()
        };
        let resource = AlterConfigsResource {
            resource_type,
            resource_name,
            configs: vec![config],
            ..AlterConfigsResource::default()
        };
        let resources = vec![resource];
        let end = world.files.log_end();
        let request =
            IncrementalAlterConfigsRequest { resources, ..IncrementalAlterConfigsRequest::default() };
        let ResponseBody::IncrementalAlterConfigs(response) = world.answer(request, 1) else {
            panic!("that answer")
        };
        assert_ne!(response.responses[0].error_code, 0);
        assert_eq!(world.files.log_end(), end);
    }
    let mut request = registration(2, 1, &[2], None);
    request.rack = Some(name);
    let ResponseBody::BrokerRegistration(response) = world.answer(request, 4) else { panic!("that answer") };
    assert_eq!(response.error_code, barnabas_base::ErrorCode::InvalidRegistration.code());
}
