//! Offsets, epochs, timestamps and sizes at the ends of their types, in requests that are otherwise sound: each is
//! answered, and none overflows. A test build panics where arithmetic does; so do the core crates of a release build
//! (Cargo.toml).

use crate::harness::{Client, TestNode, batch};
use barnabas_base::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs, Uuid};
use barnabas_wire::messages::*;
use barnabas_wire::records::{BatchHeader, crc32c};
use barnabas_wire::{RequestBody, Str};
use bytes::{Bytes, BytesMut};

const EXTREMES: [i64; 7] = [i64::MIN, i64::MIN + 1, -2, 0, 1, i64::MAX - 1, i64::MAX];

/// The same end of a narrower type.
fn narrow(wide: i64) -> i32 {
    i32::try_from(wide).unwrap_or(if wide < 0 { i32::MIN + (wide != i64::MIN) as i32 } else { i32::MAX })
}

fn short(wide: i64) -> i16 {
    i16::try_from(wide).unwrap_or(if wide < 0 { i16::MIN } else { i16::MAX })
}

struct Place {
    topic: Str,
    id: Uuid,
}

/// A batch whose header says `x`, with the CRC that belongs to it.
fn extreme_batch(x: i64, change: impl FnOnce(&mut BatchHeader, i64)) -> Bytes {
    let sound = batch(&["a"]);
    let mut header = BatchHeader::parse(&sound).expect("sound");
    change(&mut header, x);
    let mut bytes = BytesMut::from(&sound[..]);
    bytes[..61].copy_from_slice(&header.to_raw());
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.freeze()
}

fn produce(place: &Place, records: Bytes) -> RequestBody {
    use produce_request::{PartitionProduceData, TopicProduceData};
    let data = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic =
        TopicProduceData { name: place.topic.clone(), partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }.into()
}

/// Batches with one field of the header at the end of its type.
fn batches(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let changes: [fn(&mut BatchHeader, i64); 6] = [
        |header, x| header.base_offset = Offset(x),
        |header, x| header.max_timestamp = TimestampMs(x),
        |header, x| (header.base_timestamp, header.max_timestamp) = (TimestampMs(x), TimestampMs(x)),
        |header, x| header.last_offset_delta = narrow(x),
        |header, x| header.record_count = narrow(x),
        |header, x| {
            (header.producer_id, header.producer_epoch) = (ProducerId(x), ProducerEpoch(short(x)));
            header.base_sequence = Sequence(narrow(x));
        },
    ];
    changes.into_iter().map(|change| (produce(place, extreme_batch(x, change)), 8)).collect()
}

fn log_requests(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let mut all = batches(place, x);
    let (name, partition, epoch) = (place.topic.clone(), 0, narrow(x));
    {
        use fetch_request::{FetchPartition, FetchTopic};
        let partition = FetchPartition {
            partition,
            fetch_offset: x,
            last_fetched_epoch: epoch,
            log_start_offset: x,
            partition_max_bytes: epoch,
            ..Default::default()
        };
        let topics = vec![FetchTopic {
            topic: name.clone(),
            topic_id: place.id,
            partitions: vec![partition],
            ..Default::default()
        }];
        for replica_id in [-1, 1, epoch] {
            let topics = topics.clone();
            let request = FetchRequest {
                replica_id,
                min_bytes: epoch,
                max_bytes: epoch,
                session_epoch: -1,
                topics,
                ..Default::default()
            };
            all.push((request.into(), 12));
        }
    }
    {
        use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
        let partition = ListOffsetsPartition { timestamp: x, ..Default::default() };
        let topics =
            vec![ListOffsetsTopic { name: name.clone(), partitions: vec![partition], ..Default::default() }];
        all.push((ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }.into(), 7));
    }
    {
        use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
        for current_leader_epoch in [-1, epoch] {
            let partition =
                OffsetForLeaderPartition { current_leader_epoch, leader_epoch: epoch, ..Default::default() };
            let topics = vec![OffsetForLeaderTopic {
                topic: name.clone(),
                partitions: vec![partition],
                ..Default::default()
            }];
            all.push((
                OffsetForLeaderEpochRequest { replica_id: -2, topics, ..Default::default() }.into(),
                4,
            ));
        }
    }
    {
        use delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
        let partition = DeleteRecordsPartition { offset: x, ..Default::default() };
        let topics = vec![DeleteRecordsTopic { name, partitions: vec![partition], ..Default::default() }];
        all.push((DeleteRecordsRequest { topics, timeout_ms: 10_000, ..Default::default() }.into(), 2));
    }
    all
}

fn group_requests(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let (name, epoch) = (place.topic.clone(), narrow(x));
    let mut all: Vec<(RequestBody, i16)> = Vec::new();
    {
        use offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
        let partition = OffsetCommitRequestPartition {
            committed_offset: x,
            committed_leader_epoch: epoch,
            ..Default::default()
        };
        for (generation, group) in [(-1, "g"), (epoch, "h")] {
            let topics = vec![OffsetCommitRequestTopic {
                name: name.clone(),
                partitions: vec![partition.clone()],
                ..Default::default()
            }];
            let request = OffsetCommitRequest {
                group_id: group.into(),
                generation_id_or_member_epoch: generation,
                retention_time_ms: x,
                topics,
                ..Default::default()
            };
            all.push((request.clone().into(), 8));
            all.push((request.into(), 2));
        }
    }
    let heartbeat = HeartbeatRequest { group_id: "g".into(), generation_id: epoch, ..Default::default() };
    all.push((heartbeat.into(), 4));
    let consumer = ConsumerGroupHeartbeatRequest {
        group_id: "c".into(),
        member_id: "m".into(),
        member_epoch: epoch,
        rebalance_timeout_ms: epoch,
        subscribed_topic_names: Some(vec![name.clone()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    all.push((consumer.into(), 1));
    let share = ShareGroupHeartbeatRequest {
        group_id: "s".into(),
        member_id: "m".into(),
        member_epoch: epoch,
        subscribed_topic_names: Some(vec![name]),
        ..Default::default()
    };
    all.push((share.into(), 1));
    all
}

fn producer_requests(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let (producer_id, producer_epoch) = (x, short(x));
    let init = |transactional_id: Option<&str>| InitProducerIdRequest {
        transactional_id: transactional_id.map(Into::into),
        transaction_timeout_ms: narrow(x),
        producer_id,
        producer_epoch,
        ..Default::default()
    };
    let end = EndTxnRequest {
        transactional_id: "t".into(),
        producer_id,
        producer_epoch,
        committed: true,
        ..Default::default()
    };
    use write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
    let topic = WritableTxnMarkerTopic {
        name: place.topic.clone(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let marker = WritableTxnMarker {
        producer_id,
        producer_epoch,
        transaction_result: true,
        topics: vec![topic],
        coordinator_epoch: narrow(x),
        ..Default::default()
    };
    vec![
        (init(Some("t")).into(), 4),
        (init(None).into(), 4),
        (end.into(), 3),
        (WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() }.into(), 1),
        (ListTransactionsRequest { duration_filter: x, ..Default::default() }.into(), 1),
    ]
}

/// Ranges of offsets in share groups: as the persister writes them, and as members acknowledge them.
fn share_ranges(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let mut all: Vec<(RequestBody, i16)> = Vec::new();
    let epoch = narrow(x);
    for (first_offset, last_offset) in [(x, x), (0, x), (x, i64::MAX), (i64::MIN, x)] {
        use write_share_group_state_request::{PartitionData, StateBatch, WriteStateData};
        let batch = StateBatch {
            first_offset,
            last_offset,
            delivery_state: 2,
            delivery_count: short(x),
            ..Default::default()
        };
        let partition = PartitionData {
            state_epoch: epoch,
            leader_epoch: epoch,
            start_offset: x,
            delivery_complete_count: epoch,
            state_batches: vec![batch],
            ..Default::default()
        };
        let topic = WriteStateData { topic_id: place.id, partitions: vec![partition], ..Default::default() };
        let request =
            WriteShareGroupStateRequest { group_id: "s".into(), topics: vec![topic], ..Default::default() };
        all.push((request.into(), 1));
        use share_acknowledge_request::{AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch};
        let batch = AcknowledgementBatch {
            first_offset,
            last_offset,
            acknowledge_types: vec![1],
            ..Default::default()
        };
        let partition = AcknowledgePartition { acknowledgement_batches: vec![batch], ..Default::default() };
        let topic =
            AcknowledgeTopic { topic_id: place.id, partitions: vec![partition], ..Default::default() };
        for share_session_epoch in [1, epoch] {
            let request = ShareAcknowledgeRequest {
                group_id: Some("s".into()),
                member_id: Some("AAAAAAAAAAAAAAAAAAAAAQ".into()),
                share_session_epoch,
                topics: vec![topic.clone()],
                ..Default::default()
            };
            all.push((request.into(), 1));
        }
    }
    all
}

fn share_requests(place: &Place, x: i64) -> Vec<(RequestBody, i16)> {
    let mut all: Vec<(RequestBody, i16)> = Vec::new();
    let epoch = narrow(x);
    {
        use initialize_share_group_state_request::{InitializeStateData, PartitionData};
        let partition = PartitionData { state_epoch: epoch.max(0), start_offset: x, ..Default::default() };
        let topic =
            InitializeStateData { topic_id: place.id, partitions: vec![partition], ..Default::default() };
        let request = InitializeShareGroupStateRequest {
            group_id: "s".into(),
            topics: vec![topic],
            ..Default::default()
        };
        all.push((request.into(), 0));
    }
    all.extend(share_ranges(place, x));
    {
        use share_fetch_request::{FetchPartition, FetchTopic};
        let partitions = vec![FetchPartition::default()];
        let topic = FetchTopic { topic_id: place.id, partitions, ..Default::default() };
        let request = ShareFetchRequest {
            group_id: Some("s".into()),
            member_id: Some("AAAAAAAAAAAAAAAAAAAAAQ".into()),
            share_session_epoch: 0,
            max_records: epoch,
            batch_size: epoch,
            max_bytes: epoch,
            min_bytes: epoch,
            topics: vec![topic],
            ..Default::default()
        };
        all.push((request.into(), 1));
    }
    {
        use alter_share_group_offsets_request::*;
        let partition = AlterShareGroupOffsetsRequestPartition { start_offset: x, ..Default::default() };
        let topic = AlterShareGroupOffsetsRequestTopic {
            topic_name: place.topic.clone(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request =
            AlterShareGroupOffsetsRequest { group_id: "s".into(), topics: vec![topic], ..Default::default() };
        all.push((request.into(), 0));
    }
    all
}

/// Fetches of the metadata log and of its snapshots.
fn metadata_fetches(x: i64) -> Vec<(RequestBody, i16)> {
    let mut all: Vec<(RequestBody, i16)> = Vec::new();
    let epoch = narrow(x);
    {
        use fetch_snapshot_request::{PartitionSnapshot, SnapshotId, TopicSnapshot};
        let snapshot_id = SnapshotId { end_offset: x, epoch, ..Default::default() };
        let partition =
            PartitionSnapshot { current_leader_epoch: epoch, snapshot_id, position: x, ..Default::default() };
        let topic = TopicSnapshot {
            name: "__cluster_metadata".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = FetchSnapshotRequest { max_bytes: epoch, topics: vec![topic], ..Default::default() };
        all.push((request.into(), 0));
    }
    {
        use fetch_request::{FetchPartition, FetchTopic};
        let partition = FetchPartition {
            current_leader_epoch: epoch,
            fetch_offset: x,
            last_fetched_epoch: epoch,
            partition_max_bytes: epoch,
            ..Default::default()
        };
        let topics = vec![FetchTopic {
            topic: "__cluster_metadata".into(),
            partitions: vec![partition],
            ..Default::default()
        }];
        let request =
            FetchRequest { replica_id: 99, max_wait_ms: 0, max_bytes: epoch, topics, ..Default::default() };
        all.push((request.into(), 12));
    }
    all
}

fn controller_requests(x: i64) -> Vec<(RequestBody, i16)> {
    let epoch = narrow(x);
    let mut all: Vec<(RequestBody, i16)> = Vec::new();
    {
        use vote_request::{PartitionData, TopicData};
        for pre_vote in [false, true] {
            let partition = PartitionData {
                replica_epoch: epoch,
                replica_id: 99,
                last_offset: x,
                last_offset_epoch: epoch,
                pre_vote,
                ..Default::default()
            };
            let topic = TopicData {
                topic_name: "__cluster_metadata".into(),
                partitions: vec![partition],
                ..Default::default()
            };
            all.push((VoteRequest { voter_id: -1, topics: vec![topic], ..Default::default() }.into(), 2));
        }
    }
    {
        use begin_quorum_epoch_request::{PartitionData, TopicData};
        let partition = PartitionData { leader_id: 99, leader_epoch: epoch, ..Default::default() };
        let topic = TopicData {
            topic_name: "__cluster_metadata".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        all.push((BeginQuorumEpochRequest { topics: vec![topic], ..Default::default() }.into(), 0));
    }
    {
        use end_quorum_epoch_request::{PartitionData, TopicData};
        let partition = PartitionData { leader_id: 99, leader_epoch: epoch, ..Default::default() };
        let topic = TopicData {
            topic_name: "__cluster_metadata".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        all.push((EndQuorumEpochRequest { topics: vec![topic], ..Default::default() }.into(), 0));
    }
    all.extend(metadata_fetches(x));
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: x,
        current_metadata_offset: x,
        ..Default::default()
    };
    all.push((heartbeat.into(), 1));
    let ids = AllocateProducerIdsRequest { broker_id: 1, broker_epoch: x, ..Default::default() };
    all.push((ids.into(), 0));
    all
}

fn ask(node: &TestNode, port: u16, requests: Vec<(RequestBody, i16)>, x: i64) {
    for (request, version) in requests {
        let key = request.key();
        let answered = Client::try_connect(port).ok().and_then(|mut one| one.try_call(request, version));
        let log = node.log();
        assert!(!log.contains("panicked"), "{key} {version} with {x}: {log}");
        assert!(answered.is_some(), "{key} {version} with {x}: {log}");
    }
}

#[test]
fn numbers_at_the_ends_of_their_types_are_answered() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let id = client.topic_id("t");
    let place = Place { topic: "t".into(), id };
    for x in EXTREMES {
        ask(&node, node.port, log_requests(&place, x), x);
        ask(&node, node.port, group_requests(&place, x), x);
        ask(&node, node.port, producer_requests(&place, x), x);
        ask(&node, node.port, share_requests(&place, x), x);
        ask(&node, node.controller_port, controller_requests(x), x);
    }
    // What was taken of it is read again.
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    node.launch();
    ask(&node, node.port, log_requests(&place, i64::MAX), i64::MAX);
    ask(&node, node.port, share_requests(&place, i64::MAX), i64::MAX);
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
}
