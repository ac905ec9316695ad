//! Directories for Apache's classes to read, and Apache's snapshots of them to be read here: see `tests/kafka/run`.
//!
//! Without `QUORUM_WRITE` and `QUORUM_READ` the same directories are written into memory and read by ourselves.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use std::path::{Path, PathBuf};

use barnabas_base::{TimestampMs, Uuid};
use barnabas_metadata::{Delta, Image, MetadataVersion};
use barnabas_quorum::snapshot::SnapshotReader;
use barnabas_quorum::{QuorumError, SnapshotId, SnapshotTask};
use barnabas_wire::messages::client_quota_record::EntityData;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::register_controller_record::{ControllerEndpoint, ControllerFeature};
use barnabas_wire::messages::*;
use barnabas_wire::{MetadataRecord, Str};
use bytes::Bytes;
use world::{World, registration};

/// Files of one metadata directory, and what they say.
struct Directory {
    name: &'static str,
    files: Vec<(String, Bytes)>,
    newest: SnapshotId,
    image: Image,
}

/// A directory as a node leaves it: a log from 0 on, the bootstrap snapshot, a snapshot of the end.
fn of_a_node(name: &'static str, release: &str, static_voters: bool) -> Directory {
    let mut world = World::new(1);
    world.static_voters = static_voters;
    world.format(MetadataVersion::parse(release).unwrap());
    world.start().unwrap();
    world.sync();
    world.answer(registration(2, 1, &[2, 3], Some("rack")), 4);
    let epoch = world.image.cluster.broker(2.into()).unwrap().epoch.get();
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 2,
        broker_epoch: epoch,
        current_metadata_offset: i64::MAX,
        want_fence: false,
        ..BrokerHeartbeatRequest::default()
    };
    world.answer(heartbeat.clone(), 1);
    for (name, num_partitions, replication_factor) in
        [("a", 3, 1), ("b.c", 2, 2), ("large", 12_000, 1), ("gone", 1, 1)]
    {
        let config = CreatableTopicConfig {
            name: Str::from("retention.ms"),
            value: Some(Str::from("1000")),
            ..CreatableTopicConfig::default()
        };
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions,
            replication_factor,
            configs: vec![config],
            ..CreatableTopic::default()
        };
        world.answer(CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() }, 7);
    }
    let topics = vec![delete_topics_request::DeleteTopicState {
        name: Some(Str::from("gone")),
        ..delete_topics_request::DeleteTopicState::default()
    }];
    world.answer(DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() }, 6);
    world.answer(BrokerHeartbeatRequest { want_fence: true, ..heartbeat }, 1);
    let broker_epoch = world.image.cluster.broker(1.into()).unwrap().epoch.get();
    let ids =
        AllocateProducerIdsRequest { broker_id: 1, broker_epoch, ..AllocateProducerIdsRequest::default() };
    world.answer(ids, 0);
    let now = world.time();
    assert!(world.node().snapshot(now));
    world.carry_out();
    let log: Vec<u8> = world.files.log.iter().flat_map(|batch| batch.bytes.to_vec()).collect();
    let mut files = vec![("00000000000000000000.log".to_owned(), Bytes::from(log))];
    files.push(("quorum-state".to_owned(), Bytes::from(world.files.quorum_state.clone().unwrap())));
    files.extend(world.files.snapshots.iter().map(|(id, file)| (id.file_name(), file.clone())));
    let newest = *world.files.snapshots.keys().next_back().unwrap();
    Directory { name, files, newest, image: (*world.image).clone() }
}

/// A snapshot alone, with a record of every kind that a snapshot can hold.
fn of_everything() -> Directory {
    let mut delta = Delta::new(Image::default());
    for record in everything() {
        delta.replay(&record).unwrap();
    }
    let (image, _) = delta.take();
    let newest = SnapshotId { end: 500.into(), epoch: 7.into() };
    let task = SnapshotTask { id: newest, image: image.clone(), voters: None, now: TimestampMs(77) };
    let mut file = Vec::new();
    task.write(|piece| -> Result<(), QuorumError> {
        file.extend_from_slice(&piece);
        Ok(())
    })
    .unwrap();
    Directory { name: "everything", files: vec![(newest.file_name(), file.into())], newest, image }
}

const fn id(of: u8) -> Uuid {
    Uuid([of; 16])
}

fn broker() -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: 1,
        incarnation_id: id(11),
        broker_epoch: 12,
        rack: Some(Str::from("rack")),
        fenced: false,
        in_controlled_shutdown: true,
        log_dirs: vec![id(1), id(2)],
        cordoned_log_dirs: Some(vec![id(2)]),
        ..RegisterBrokerRecord::default()
    }
}

fn controller() -> RegisterControllerRecord {
    RegisterControllerRecord {
        controller_id: 3,
        incarnation_id: id(33),
        end_points: vec![ControllerEndpoint {
            name: Str::from("CONTROLLER"),
            host: Str::from("h"),
            port: 9093,
            ..ControllerEndpoint::default()
        }],
        features: vec![ControllerFeature {
            name: Str::from("metadata.version"),
            min_supported_version: 7,
            max_supported_version: 33,
            ..ControllerFeature::default()
        }],
        ..RegisterControllerRecord::default()
    }
}

fn partition() -> PartitionRecord {
    PartitionRecord {
        partition_id: 0,
        topic_id: id(5),
        replicas: vec![1, 2, 3],
        isr: vec![1],
        removing_replicas: vec![2],
        adding_replicas: vec![3],
        leader: 1,
        leader_recovery_state: 1,
        leader_epoch: 8,
        partition_epoch: 9,
        directories: vec![id(1), Uuid::DIRECTORY_LOST, Uuid::DIRECTORY_UNASSIGNED],
        eligible_leader_replicas: Some(vec![2]),
        last_known_elr: Some(vec![3]),
        ..PartitionRecord::default()
    }
}

fn acl() -> AccessControlEntryRecord {
    AccessControlEntryRecord {
        id: id(44),
        resource_type: 2,
        resource_name: Str::from("t"),
        pattern_type: 3,
        principal: Str::from("User:u"),
        host: Str::from("*"),
        operation: 3,
        permission_type: 3,
        ..AccessControlEntryRecord::default()
    }
}

fn token() -> DelegationTokenRecord {
    DelegationTokenRecord {
        owner: Str::from("User:o"),
        requester: Str::from("User:r"),
        renewers: vec![Str::from("User:n")],
        issue_timestamp: 1,
        max_timestamp: 9,
        expiration_timestamp: 5,
        token_id: Str::from("token"),
        ..DelegationTokenRecord::default()
    }
}

fn quota(entity: &[(&str, Option<&str>)], key: &str, value: f64) -> ClientQuotaRecord {
    ClientQuotaRecord {
        entity: entity
            .iter()
            .map(|(kind, name)| EntityData {
                entity_type: Str::from(*kind),
                entity_name: name.map(Str::from),
                ..EntityData::default()
            })
            .collect(),
        key: Str::from(key),
        value,
        ..ClientQuotaRecord::default()
    }
}

fn scram(name: &str, mechanism: i8) -> UserScramCredentialRecord {
    UserScramCredentialRecord {
        name: Str::from(name),
        mechanism,
        salt: Bytes::from_static(b"salt"),
        stored_key: Bytes::from_static(b"stored"),
        server_key: Bytes::from_static(b"server"),
        iterations: 4096,
        ..UserScramCredentialRecord::default()
    }
}

/// A record of every kind that a snapshot can hold.
fn everything() -> Vec<MetadataRecord> {
    let feature = |name: &str, level| FeatureLevelRecord {
        name: Str::from(name),
        feature_level: level,
        ..FeatureLevelRecord::default()
    };
    let config = |resource_type, name: &str, key: &str| ConfigRecord {
        resource_type,
        resource_name: Str::from(name),
        name: Str::from(key),
        value: Some(Str::from("5")),
        ..ConfigRecord::default()
    };
    vec![
        feature("metadata.version", 33).into(),
        feature("eligible.leader.replicas.version", 1).into(),
        feature("transaction.version", 2).into(),
        broker().into(),
        controller().into(),
        TopicRecord { name: Str::from("t"), topic_id: id(5), ..TopicRecord::default() }.into(),
        partition().into(),
        config(2, "t", "retention.ms").into(),
        config(4, "", "min.insync.replicas").into(),
        config(4, "1", "log.cleaner.threads").into(),
        config(16, "metrics", "interval.ms").into(),
        config(32, "group", "consumer.session.timeout.ms").into(),
        quota(&[("user", Some("u")), ("client-id", None)], "producer_byte_rate", 1.5).into(),
        quota(&[("ip", Some("127.0.0.1"))], "connection_creation_rate", 10.0).into(),
        ProducerIdsRecord {
            broker_id: 1,
            broker_epoch: 12,
            next_producer_id: 3000,
            ..ProducerIdsRecord::default()
        }
        .into(),
        acl().into(),
        scram("alice", 1).into(),
        scram("alice", 2).into(),
        token().into(),
    ]
}

fn directories() -> Vec<Directory> {
    vec![
        of_a_node("newest", "4.4", false),
        of_a_node("release-4.3", "4.3", false),
        of_a_node("release-3.9", "3.9", true),
        of_a_node("release-3.6", "3.6", true),
        of_everything(),
    ]
}

fn read(id: SnapshotId, file: &[u8]) -> Image {
    let mut delta = Delta::new(Image::default());
    let mut reader = SnapshotReader::new(id);
    reader
        .feed(file, |record| {
            delta.replay(&record).unwrap();
            Ok(())
        })
        .unwrap();
    reader.finish().unwrap();
    delta.take().0
}

#[test]
fn what_is_written_reads_back() {
    for directory in directories() {
        let (_, file) =
            directory.files.iter().find(|(name, _)| *name == directory.newest.file_name()).unwrap();
        assert!(read(directory.newest, file) == directory.image, "{}", directory.name);
        if let Ok(to) = std::env::var("QUORUM_WRITE") {
            let to = Path::new(&to).join(directory.name);
            std::fs::create_dir_all(&to).unwrap();
            for (name, bytes) in &directory.files {
                std::fs::write(to.join(name), bytes).unwrap();
            }
        }
        if let Ok(from) = std::env::var("QUORUM_READ") {
            let theirs = PathBuf::from(from).join("theirs").join(directory.name);
            let theirs = std::fs::read(theirs.join(directory.newest.file_name())).unwrap();
            assert!(read(directory.newest, &theirs) == directory.image, "Apache's {}", directory.name);
        }
    }
}

/// `QUORUM_OPEN` names the `__cluster_metadata-0` of an Apache node that was stopped: it is gone on from, as node 1.
#[test]
fn what_apache_left_is_gone_on_from() {
    let Ok(dir) = std::env::var("QUORUM_OPEN") else { return };
    let dir = PathBuf::from(dir);
    let mut world = World::new(1);
    world.local_dirs = vec![9];
    world.files.quorum_state = Some(std::fs::read_to_string(dir.join("quorum-state")).unwrap());
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(id) = SnapshotId::parse(&name) {
            world.files.snapshots.insert(id, std::fs::read(dir.join(&name)).unwrap().into());
        } else if name.ends_with(".log") {
            logs.push(name);
        }
    }
    logs.sort();
    for name in logs {
        let bytes = Bytes::from(std::fs::read(dir.join(name)).unwrap());
        for batch in barnabas_wire::records::batches(bytes) {
            let batch = batch.unwrap();
            let (base, end) = (batch.header().base_offset, batch.header().next_offset());
            let bytes = batch.bytes().clone();
            world.files.log.push(barnabas_quorum::batches::EncodedBatch { base, end, bytes });
        }
    }
    world.files.log_start = world.files.log[0].base;
    world.files.synced = world.files.log.len();
    world.start().unwrap();
    world.sync();
    for event in std::mem::take(&mut world.events) {
        print!("{}", world::show::event(&event));
    }
    println!("topics {:?}, partitions {}", world.topic_names(), world.image.topics.partition_count());
    let without_leader = world.image.topics.iter().flat_map(|topic| {
        topic
            .partitions()
            .filter(|(_, partition)| partition.leader.get() < 0)
            .map(|(index, _)| (topic.name.clone(), index))
    });
    println!("partitions without a leader: {}", without_leader.count());
}
