//! A share group over three brokers: its coordinator, its partitions' leaders and the shards that hold its state are
//! different brokers.

use crate::harness::cluster::{Cluster, GROUP, SHARE, ask, eventually, until};
use crate::harness::{Client, batch};
use barnabas_base::TopicId;
use barnabas_wire::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::share_fetch_response::ShareFetchResponse;
use barnabas_wire::messages::{
    DescribeShareGroupOffsetsRequest, ProduceRequest, ResponseBody, ShareAcknowledgeRequest,
    ShareFetchRequest, ShareGroupHeartbeatRequest, share_acknowledge_request, share_fetch_request,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

type Row = barnabas_wire::messages::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponsePartition;

const NAME: &str = "shared";
const MEMBER: &str = "AAAAAAAAAAAAAAAAAAAABA";
const PARTITIONS: i32 = 6;
const SETTINGS: &str = "offsets.topic.num.partitions=6\nshare.coordinator.state.topic.num.partitions=6\n\
     auto.leader.rebalance.enable=false\nreplica.lag.time.max.ms=3000";

/// Joins, or says that it is there; how many partitions it was given. `None`: to be said again.
fn heartbeat(cluster: &Cluster, epoch: i32) -> Option<usize> {
    let request = ShareGroupHeartbeatRequest {
        group_id: NAME.into(),
        member_id: MEMBER.into(),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        ..Default::default()
    };
    let node = cluster.coordinator(GROUP, NAME)?;
    let ResponseBody::ShareGroupHeartbeat(response) = cluster.ask(node, request, 1)? else {
        panic!("no heartbeat")
    };
    if [14, 15, 16].contains(&response.error_code) {
        return None;
    }
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
    let topics = response.assignment.iter().flat_map(|assignment| &assignment.topic_partitions);
    Some(topics.map(|topic| topic.partitions.len()).sum())
}

/// Waits until so many records lie before each share-partition.
fn await_lag(cluster: &Cluster, lag: i64) {
    let (started, mut seen) = (Instant::now(), None);
    let expected: Vec<_> = (0..PARTITIONS).map(|partition| (partition, lag, 0)).collect();
    while seen.as_ref() != Some(&expected) {
        assert!(started.elapsed() < Duration::from_secs(20), "{seen:?}");
        std::thread::sleep(Duration::from_millis(20));
        seen = lags(cluster);
    }
}

/// Partition, lag and error of each share-partition.
fn lags(cluster: &Cluster) -> Option<Vec<(i32, i64, i16)>> {
    let group =
        DescribeShareGroupOffsetsRequestGroup { group_id: NAME.into(), topics: None, ..Default::default() };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    let node = cluster.coordinator(GROUP, NAME)?;
    let ResponseBody::DescribeShareGroupOffsets(response) = cluster.ask(node, request, 1)? else {
        panic!("no offsets")
    };
    let rows = response.groups[0].topics.iter().flat_map(|topic| &topic.partitions);
    let row = |row: &Row| (row.partition_index, row.lag, row.error_code);
    let mut rows: Vec<_> = rows.map(row).collect();
    rows.sort_unstable();
    Some(rows)
}

fn produce(cluster: &Cluster, partition: i32, value: &str) {
    let code = until("a record is written", || {
        let records = Some(batch(&[value]));
        let data = PartitionProduceData { index: partition, records, ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![topic], ..Default::default() };
        let node = cluster.leader("t", partition)?;
        let ResponseBody::Produce(response) = cluster.ask(node, request, 9)? else {
            panic!("another response")
        };
        let code = response.responses[0].partition_responses[0].error_code;
        (![3, 5, 6, 7, 19, 20].contains(&code)).then_some(code)
    });
    assert_eq!(code, 0);
}

/// A member's session with one leader.
struct Session {
    client: Client,
    epoch: i32,
    partitions: Vec<i32>,
}

impl Session {
    fn fetch(&mut self, topic: TopicId) -> Box<ShareFetchResponse> {
        let partitions = self.partitions.iter().map(|&partition_index| share_fetch_request::FetchPartition {
            partition_index,
            ..Default::default()
        });
        let topics = vec![share_fetch_request::FetchTopic {
            topic_id: topic,
            partitions: partitions.collect(),
            ..Default::default()
        }];
        let request = ShareFetchRequest {
            group_id: Some(NAME.into()),
            member_id: Some(MEMBER.into()),
            share_session_epoch: self.epoch,
            max_wait_ms: 300,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 100,
            batch_size: 100,
            topics: if self.epoch == 0 { topics } else { Vec::new() },
            ..Default::default()
        };
        self.epoch += 1;
        let Some(ResponseBody::ShareFetch(response)) = ask(&mut self.client, request, 1) else {
            panic!("no records")
        };
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        response
    }

    fn accept(&mut self, topic: TopicId, acquired: &BTreeMap<i32, (i64, i64)>) {
        let partitions = acquired.iter().map(|(&partition_index, &(first_offset, last_offset))| {
            share_acknowledge_request::AcknowledgePartition {
                partition_index,
                acknowledgement_batches: vec![share_acknowledge_request::AcknowledgementBatch {
                    first_offset,
                    last_offset,
                    acknowledge_types: vec![1],
                    ..Default::default()
                }],
                ..Default::default()
            }
        });
        let topics = vec![share_acknowledge_request::AcknowledgeTopic {
            topic_id: topic,
            partitions: partitions.collect(),
            ..Default::default()
        }];
        let request = ShareAcknowledgeRequest {
            group_id: Some(NAME.into()),
            member_id: Some(MEMBER.into()),
            share_session_epoch: self.epoch,
            topics,
            ..Default::default()
        };
        self.epoch += 1;
        let Some(ResponseBody::ShareAcknowledge(response)) = ask(&mut self.client, request, 1) else {
            panic!("not acknowledged")
        };
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        let codes = response.responses.iter().flat_map(|topic| &topic.partitions);
        codes.for_each(|row| assert_eq!(row.error_code, 0, "{:?}", row.error_message));
    }
}

fn sessions(cluster: &Cluster) -> Vec<Session> {
    let mut led: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for partition in 0..PARTITIONS {
        led.entry(until("a leader", || cluster.leader("t", partition))).or_default().push(partition);
    }
    let session = |(node, partitions): (i32, Vec<i32>)| Session {
        client: cluster.nodes[&node].client(),
        epoch: 0,
        partitions,
    };
    led.into_iter().map(session).collect()
}

/// What became of each partition that an answer tells of.
fn codes(response: &ShareFetchResponse) -> Vec<i16> {
    let rows = response.responses.iter().flat_map(|topic| &topic.partitions);
    rows.map(|row| row.error_code).collect()
}

/// Fetches until each partition has given one record, and accepts them all.
fn take_one_each(sessions: &mut [Session], topic: TopicId) {
    for session in sessions {
        let mut acquired = BTreeMap::new();
        eventually("a record of each partition is acquired", || {
            let response = session.fetch(topic);
            for row in response.responses.iter().flat_map(|topic| &topic.partitions) {
                for records in &row.acquired_records {
                    acquired.insert(row.partition_index, (records.first_offset, records.last_offset));
                }
            }
            acquired.len() == session.partitions.len()
        });
        session.accept(topic, &acquired);
    }
}

#[test]
fn a_share_groups_state_is_on_other_brokers_and_outlives_its_coordinator() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let topic = cluster.nodes[&1].client().topic_id("t");
    eventually("the member is given all partitions", || heartbeat(&cluster, 0) == Some(PARTITIONS as usize));
    let of_partition =
        |partition: i32| cluster.await_coordinator(SHARE, &format!("{NAME}:{topic}:{partition}"));
    let shards: BTreeSet<i32> = (0..PARTITIONS).map(of_partition).collect();
    assert!(shards.len() > 1, "all state is on one broker: {shards:?}");

    // From here on: the first fetch begins at the end.
    let mut members = sessions(&cluster);
    assert_eq!(members.len(), 3);
    eventually("all share-partitions have begun", || {
        let codes = members.iter_mut().flat_map(|session| codes(&session.fetch(topic)));
        codes.collect::<Vec<i16>>().iter().all(|&code| code == 0)
    });
    (0..PARTITIONS).for_each(|partition| produce(&cluster, partition, "a"));
    take_one_each(&mut members, topic);
    await_lag(&cluster, 0);

    cluster.await_in_sync();
    let victim = cluster.await_coordinator(GROUP, NAME);
    drop(members);
    cluster.kill(victim);
    await_lag(&cluster, 0);
    (0..PARTITIONS).for_each(|partition| produce(&cluster, partition, "b"));
    await_lag(&cluster, 1);
    until("the member is still one", || heartbeat(&cluster, 2));
    take_one_each(&mut sessions(&cluster), topic);
    await_lag(&cluster, 0);
    cluster.launch(victim);
    cluster.await_in_sync();
    cluster.stop();
}
