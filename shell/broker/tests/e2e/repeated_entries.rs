//! A request that names one thing again and again: the answer and the node's memory stay within bounds, for every API
//! that has a list.
//!
//! One DescribeConfigs of 40 kB made the node take a gigabyte and answer 278 MB; one of 384 kB ended it. Any list that
//! is answered entry by entry could do the same.

use crate::harness::{Client, TestNode, batch};
use barnabas_base::Uuid;
use barnabas_wire::messages::*;
use barnabas_wire::{RequestBody, encode_request};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// `answer.bytes.max` of the node.
const ANSWER_MAX: u64 = MIB;
/// Bytes of an answer for each byte of its request where the answer has an entry of a fixed size for each of the
/// request's.
const ECHO_MAX: u64 = 32;
/// What one request may make the node hold: frames, the decoded request, its answer, buffers.
const HELD_MAX: u64 = 96 * MIB;
const TIMES: usize = 8000;

fn many<T: Clone>(entry: T) -> Vec<T> {
    vec![entry; TIMES]
}

/// A request of each API that has a list, with one entry of it that is there, [`TIMES`] times.
fn requests(topic_id: Uuid) -> Vec<RequestBody> {
    [
        records(topic_id),
        groups(topic_id),
        topics(),
        leaders(),
        transactions(),
        settings(),
        share_state(topic_id),
        share_offsets(),
    ]
    .concat()
}

/// Requests of records: what reads them, and what removes them.
fn records(topic_id: Uuid) -> Vec<RequestBody> {
    let mut requests = vec![
        FetchRequest {
            replica_id: -1,
            session_epoch: -1,
            max_bytes: 1 << 20,
            isolation_level: 1,
            topics: vec![fetch_request::FetchTopic {
                topic_id,
                partitions: many(fetch_request::FetchPartition {
                    partition_max_bytes: 1 << 20,
                    current_leader_epoch: -1,
                    ..Default::default()
                }),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        ListOffsetsRequest {
            replica_id: -1,
            topics: vec![list_offsets_request::ListOffsetsTopic {
                name: "t".into(),
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        MetadataRequest {
            topics: Some(many(metadata_request::MetadataRequestTopic {
                name: Some("t".into()),
                ..Default::default()
            })),
            ..Default::default()
        }
        .into(),
    ];
    requests.extend(logs());
    requests
}

/// As [`records`], about logs.
fn logs() -> Vec<RequestBody> {
    vec![
        DeleteRecordsRequest {
            topics: vec![delete_records_request::DeleteRecordsTopic {
                name: "t".into(),
                partitions: many(Default::default()),
                ..Default::default()
            }],
            timeout_ms: 10_000,
            ..Default::default()
        }
        .into(),
        OffsetForLeaderEpochRequest {
            replica_id: -2,
            topics: vec![offset_for_leader_epoch_request::OffsetForLeaderTopic {
                topic: "t".into(),
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        DescribeLogDirsRequest {
            topics: Some(many(describe_log_dirs_request::DescribableLogDirTopic {
                topic: "t".into(),
                partitions: vec![0],
                ..Default::default()
            })),
            ..Default::default()
        }
        .into(),
        AlterReplicaLogDirsRequest {
            dirs: many(alter_replica_log_dirs_request::AlterReplicaLogDir {
                path: "/nowhere".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of groups and their offsets.
fn groups(topic_id: Uuid) -> Vec<RequestBody> {
    vec![
        OffsetCommitRequest {
            group_id: "other".into(),
            generation_id_or_member_epoch: -1,
            topics: vec![offset_commit_request::OffsetCommitRequestTopic {
                topic_id,
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        offset_fetch(topic_id, true),
        offset_fetch(topic_id, false),
        FindCoordinatorRequest { coordinator_keys: many("g".into()), ..Default::default() }.into(),
        LeaveGroupRequest {
            group_id: "g".into(),
            members: many(leave_group_request::MemberIdentity {
                member_id: "member-1".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        DescribeGroupsRequest { groups: many("g".into()), ..Default::default() }.into(),
        ConsumerGroupDescribeRequest { group_ids: many("g".into()), ..Default::default() }.into(),
        ShareGroupDescribeRequest { group_ids: many("g".into()), ..Default::default() }.into(),
        StreamsGroupDescribeRequest { group_ids: many("g".into()), ..Default::default() }.into(),
        ListGroupsRequest {
            states_filter: many("Empty".into()),
            types_filter: many("classic".into()),
            ..Default::default()
        }
        .into(),
        DeleteGroupsRequest { groups_names: many("nothing".into()), ..Default::default() }.into(),
        OffsetDeleteRequest {
            group_id: "g".into(),
            topics: many(offset_delete_request::OffsetDeleteRequestTopic {
                name: "nothing".into(),
                partitions: vec![Default::default()],
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of topics.
fn topics() -> Vec<RequestBody> {
    vec![
        CreateTopicsRequest {
            validate_only: true,
            timeout_ms: 10_000,
            topics: many(create_topics_request::CreatableTopic {
                name: "new".into(),
                num_partitions: 1,
                replication_factor: 1,
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        CreateTopicsRequest {
            validate_only: true,
            timeout_ms: 10_000,
            topics: (0..TIMES)
                .map(|number| create_topics_request::CreatableTopic {
                    name: format!("new-{number}").into(),
                    num_partitions: 1,
                    replication_factor: 1,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        }
        .into(),
        DeleteTopicsRequest {
            topics: many(delete_topics_request::DeleteTopicState {
                name: Some("nothing".into()),
                ..Default::default()
            }),
            timeout_ms: 10_000,
            ..Default::default()
        }
        .into(),
        CreatePartitionsRequest {
            validate_only: true,
            timeout_ms: 10_000,
            topics: many(create_partitions_request::CreatePartitionsTopic {
                name: "t".into(),
                count: 2,
                assignments: None,
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        DescribeTopicPartitionsRequest {
            topics: many(describe_topic_partitions_request::TopicRequest {
                name: "t".into(),
                ..Default::default()
            }),
            response_partition_limit: 2000,
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of leaders and replicas.
fn leaders() -> Vec<RequestBody> {
    vec![
        ElectLeadersRequest {
            topic_partitions: Some(many(elect_leaders_request::TopicPartitions {
                topic: "t".into(),
                partitions: vec![0],
                ..Default::default()
            })),
            timeout_ms: 10_000,
            ..Default::default()
        }
        .into(),
        AlterPartitionReassignmentsRequest {
            topics: many(alter_partition_reassignments_request::ReassignableTopic {
                name: "t".into(),
                partitions: vec![alter_partition_reassignments_request::ReassignablePartition {
                    replicas: None,
                    ..Default::default()
                }],
                ..Default::default()
            }),
            timeout_ms: 10_000,
            ..Default::default()
        }
        .into(),
        ListPartitionReassignmentsRequest {
            topics: Some(many(list_partition_reassignments_request::ListPartitionReassignmentsTopics {
                name: "t".into(),
                partition_indexes: vec![0],
                ..Default::default()
            })),
            ..Default::default()
        }
        .into(),
        DescribeQuorumRequest {
            topics: many(describe_quorum_request::TopicData {
                topic_name: "__cluster_metadata".into(),
                partitions: vec![Default::default()],
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of transactions.
fn transactions() -> Vec<RequestBody> {
    vec![
        AddPartitionsToTxnRequest {
            transactions: many(add_partitions_to_txn_request::AddPartitionsToTxnTransaction {
                transactional_id: "x".into(),
                verify_only: true,
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        TxnOffsetCommitRequest {
            transactional_id: "x".into(),
            group_id: "g".into(),
            topics: vec![txn_offset_commit_request::TxnOffsetCommitRequestTopic {
                name: "t".into(),
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        DescribeProducersRequest {
            topics: vec![describe_producers_request::TopicRequest {
                name: "t".into(),
                partition_indexes: many(0),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        DescribeTransactionsRequest { transactional_ids: many("x".into()), ..Default::default() }.into(),
        ListTransactionsRequest {
            state_filters: many("Nothing".into()),
            producer_id_filters: many(1),
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of settings and features.
fn settings() -> Vec<RequestBody> {
    vec![
        describe_configs(4, "1"),
        describe_configs(2, "t"),
        DescribeConfigsRequest {
            resources: (0..TIMES).map(|number| resource(32, &format!("g{number}"))).collect(),
            include_documentation: true,
            include_synonyms: true,
            ..Default::default()
        }
        .into(),
        AlterConfigsRequest {
            validate_only: true,
            resources: many(alter_configs_request::AlterConfigsResource {
                resource_type: 2,
                resource_name: "t".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        IncrementalAlterConfigsRequest {
            validate_only: true,
            resources: many(incremental_alter_configs_request::AlterConfigsResource {
                resource_type: 2,
                resource_name: "t".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        UpdateFeaturesRequest {
            feature_updates: many(update_features_request::FeatureUpdateKey {
                feature: "nothing".into(),
                max_version_level: 1,
                upgrade_type: 1,
                ..Default::default()
            }),
            validate_only: true,
            ..Default::default()
        }
        .into(),
        ListConfigResourcesRequest { resource_types: many(2), ..Default::default() }.into(),
    ]
}

/// Requests of share groups' state.
fn share_state(topic_id: Uuid) -> Vec<RequestBody> {
    vec![
        ReadShareGroupStateRequest {
            group_id: "g".into(),
            topics: vec![read_share_group_state_request::ReadStateData {
                topic_id,
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        ReadShareGroupStateSummaryRequest {
            group_id: "g".into(),
            topics: vec![read_share_group_state_summary_request::ReadStateSummaryData {
                topic_id,
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        WriteShareGroupStateRequest {
            group_id: "g".into(),
            topics: vec![write_share_group_state_request::WriteStateData {
                topic_id,
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
        DeleteShareGroupStateRequest {
            group_id: "g".into(),
            topics: vec![delete_share_group_state_request::DeleteStateData {
                topic_id,
                partitions: many(Default::default()),
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
    ]
}

/// Requests of share groups' offsets.
fn share_offsets() -> Vec<RequestBody> {
    vec![
        DescribeShareGroupOffsetsRequest {
            groups: many(describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
                group_id: "g".into(),
                topics: None,
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        AlterShareGroupOffsetsRequest {
            group_id: "g".into(),
            topics: many(alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic {
                topic_name: "nothing".into(),
                partitions: vec![Default::default()],
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
        DeleteShareGroupOffsetsRequest {
            group_id: "g".into(),
            topics: many(delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
                topic_name: "nothing".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .into(),
    ]
}

/// The partition with 4 kB of committed metadata: again and again in one group, or in one group after the other.
fn offset_fetch(topic_id: Uuid, in_one_group: bool) -> RequestBody {
    let topic = offset_fetch_request::OffsetFetchRequestTopics {
        topic_id,
        partition_indexes: if in_one_group { many(0) } else { vec![0] },
        ..Default::default()
    };
    let group = offset_fetch_request::OffsetFetchRequestGroup {
        group_id: "g".into(),
        member_epoch: -1,
        topics: Some(vec![topic]),
        ..Default::default()
    };
    OffsetFetchRequest { groups: if in_one_group { vec![group] } else { many(group) }, ..Default::default() }
        .into()
}

fn resource(kind: i8, name: &str) -> describe_configs_request::DescribeConfigsResource {
    describe_configs_request::DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned().into(),
        configuration_keys: None,
        ..Default::default()
    }
}

fn describe_configs(kind: i8, name: &str) -> RequestBody {
    DescribeConfigsRequest {
        resources: many(resource(kind, name)),
        include_synonyms: true,
        include_documentation: true,
        ..Default::default()
    }
    .into()
}

fn versions(client: &mut Client) -> BTreeMap<i16, i16> {
    let ResponseBody::ApiVersions(versions) = client.call(ApiVersionsRequest::default(), 0) else {
        panic!("another response")
    };
    versions.api_keys.iter().map(|row| (row.api_key, row.max_version)).collect()
}

fn sent_bytes(request: &RequestBody, version: i16) -> u64 {
    let header = RequestHeader {
        request_api_key: request.key().number(),
        request_api_version: version,
        ..RequestHeader::default()
    };
    encode_request(&header, request).expect("encodes").len as u64
}

/// A topic with a record, and a group with as much metadata as a commit may carry.
fn prepared(client: &mut Client) -> Uuid {
    client.create_topic("t", 1, &[]);
    let data = produce_request::PartitionProduceData { records: Some(batch(&["a"])), ..Default::default() };
    let topic = produce_request::TopicProduceData {
        name: "t".into(),
        partition_data: vec![data],
        ..Default::default()
    };
    let produce =
        ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
    client.call(produce, 9);
    crate::harness::patience::until("a coordinator", || {
        let partition = offset_commit_request::OffsetCommitRequestPartition {
            committed_offset: 1,
            committed_metadata: Some("m".repeat(4096).into()),
            ..Default::default()
        };
        let topic = offset_commit_request::OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let commit = OffsetCommitRequest {
            group_id: "g".into(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        let find = FindCoordinatorRequest { key: "g".into(), ..Default::default() };
        client.call(find, 3);
        let ResponseBody::OffsetCommit(response) = client.call(commit, 8) else { panic!("another response") };
        (response.topics[0].partitions[0].error_code == 0).then_some(())
    });
    client.topic_id("t")
}

#[test]
fn answers_and_memory_stay_within_bounds() {
    let limit = format!("answer.bytes.max={ANSWER_MAX}");
    let mut node = TestNode::start_with(&[&limit, "log.cache.bytes=1048576"]);
    let mut client = node.client();
    let versions = versions(&mut client);
    let topic_id = prepared(&mut client);
    node.peak_bytes();
    let mut wrong = Vec::new();
    for request in requests(topic_id) {
        let key = request.key();
        // OffsetFetch has ids from version 10 on, which the request is made for.
        let Some(&version) = versions.get(&key.number()) else { continue };
        let sent = sent_bytes(&request, version);
        let before = node.rss_bytes();
        let begun = Instant::now();
        let mut client = node.client();
        client.send(request, version);
        let answer = client.receive_frame().map(|frame| frame.len() as u64);
        let took = begun.elapsed();
        let held = node.peak_bytes().saturating_sub(before);
        println!("{key} v{version}: {sent} bytes, answer {answer:?}, held {held}, {} ms", took.as_millis());
        let answer_max = sent * ECHO_MAX + ANSWER_MAX + 64 * 1024;
        match answer {
            None => wrong.push(format!("{key}: closed")),
            Some(answer) if answer > answer_max => wrong.push(format!("{key}: {sent} bytes make {answer}")),
            Some(_) if held > HELD_MAX => wrong.push(format!("{key}: {sent} bytes make it hold {held}")),
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(node.stop().success());
}

#[test]
fn node_outlives_a_resource_described_80_000_times() {
    let mut node = TestNode::start();
    let mut client = node.client();
    node.peak_bytes();
    let before = node.rss_bytes();
    let mut request = describe_configs(4, "1");
    if let RequestBody::DescribeConfigs(request) = &mut request {
        request.resources = vec![resource(4, "1"); 80_000];
    }
    client.send(request, 4);
    // Others are served while the answer is made.
    let mut other = node.client();
    for _ in 0..20 {
        other.call(ApiVersionsRequest::default(), 0);
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer = client.receive_frame().expect("an answer").len() as u64;
    let held = node.peak_bytes().saturating_sub(before);
    println!("answer {answer}, held {held}, after {}", node.rss_bytes().saturating_sub(before));
    assert!(answer < 110 * MIB, "{answer}");
    assert!(held < 64 * MIB, "{held}");
    assert!(node.stop().success());
}

/// Answers of which the node makes pieces when the cluster is large: what they say, and that an unknown topic is still
/// created.
#[test]
fn lists_of_a_large_cluster_are_whole() {
    const TOPICS: usize = 2500;
    let mut node = TestNode::start();
    let mut client = node.client();
    let names: Vec<String> = (0..TOPICS).map(|number| format!("t-{number}")).collect();
    let topic = |name: &String| create_topics_request::CreatableTopic {
        name: name.as_str().into(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let create = CreateTopicsRequest {
        topics: names.iter().map(topic).collect(),
        timeout_ms: 60_000,
        ..Default::default()
    };
    client.call(create, 7);
    let request = ListConfigResourcesRequest { resource_types: vec![2], ..Default::default() };
    let ResponseBody::ListConfigResources(listed) = client.call(request, 1) else { panic!("another") };
    let mut listed: Vec<&str> = listed.config_resources.iter().map(|each| &*each.resource_name).collect();
    let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    let request = ListPartitionReassignmentsRequest { topics: None, ..Default::default() };
    let ResponseBody::ListPartitionReassignments(moves) = client.call(request, 0) else { panic!("another") };
    assert_eq!((moves.error_code, moves.topics.len()), (0, 0));
    let named =
        |name: &str| metadata_request::MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let topics = names.iter().map(String::as_str).chain(["new"]).map(named).collect();
    let request =
        MetadataRequest { topics: Some(topics), allow_auto_topic_creation: true, ..Default::default() };
    let ResponseBody::Metadata(metadata) = client.call(request, 12) else { panic!("another") };
    let unknown: Vec<_> = metadata.topics.iter().filter(|topic| topic.error_code != 0).collect();
    assert_eq!((metadata.topics.len(), unknown.len()), (TOPICS + 1, 1));
    assert_eq!((unknown[0].name.as_deref(), unknown[0].error_code), (Some("new"), 3));
    crate::harness::patience::until("the topic", || {
        let request = MetadataRequest { topics: Some(vec![named("new")]), ..Default::default() };
        let ResponseBody::Metadata(metadata) = client.call(request, 12) else { panic!("another") };
        (metadata.topics[0].error_code == 0).then_some(())
    });
    assert!(node.stop().success());
}

/// One worker, a question about each of 4000 partitions that it has not opened yet, and another client of the same
/// worker.
#[test]
fn many_questions_leave_other_clients_their_turn() {
    const PARTITIONS: usize = 4000;
    let list = |partitions: &[i32]| {
        let of = |&partition_index: &i32| list_offsets_request::ListOffsetsPartition {
            partition_index,
            timestamp: -1,
            current_leader_epoch: -1,
            ..Default::default()
        };
        let topic = list_offsets_request::ListOffsetsTopic {
            name: "t".into(),
            partitions: partitions.iter().map(of).collect(),
            ..Default::default()
        };
        ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() }
    };
    let mut node = TestNode::start_limited(Some("taskset -pc 0 $$ >/dev/null"), &[]);
    node.client().create_topic("t", PARTITIONS as i32, &[]);
    let mut client = node.client();
    let mut other = node.client();
    let all: Vec<i32> = (0..PARTITIONS as i32).collect();
    client.send(list(&all), 7);
    let (mut answers, mut longest, begun) = (0, Duration::ZERO, Instant::now());
    while !client.has_answer() {
        let asked = Instant::now();
        other.call(list(&[answers % PARTITIONS as i32]), 7);
        longest = longest.max(asked.elapsed());
        answers += 1;
    }
    let (_, ResponseBody::ListOffsets(listed)) = client.receive(barnabas_wire::ApiKey::ListOffsets, 7) else {
        panic!("another response")
    };
    println!("{answers} others answered in {} ms, the longest in {longest:?}", begun.elapsed().as_millis());
    let partitions = &listed.topics[0].partitions;
    assert!(partitions.iter().map(|row| row.partition_index).eq(all), "in the request's order");
    assert!(partitions.iter().all(|row| (row.error_code, row.offset) == (0, 0)));
    assert!(answers >= 5, "{answers}");
    assert!(node.stop().success());
}
