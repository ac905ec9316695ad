//! Commands → requests.

use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Uuid};
use barnabas_coordinator::{EndTransaction, Producer, Request, TransactionVersion};
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions as OwnedPartitions;
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerProtocolAssignment,
    ConsumerProtocolSubscription, DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest,
    JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    SyncGroupRequest, TxnOffsetCommitRequest,
};
use barnabas_wire::messages::{
    consumer_protocol_assignment as assignment, consumer_protocol_subscription as subscription,
};
use barnabas_wire::{Message, Writer};
use bytes::Bytes;

use super::{Words, long_id, streams};

pub fn request<'a>(words: &Words<'a>) -> (&'a str, i16, Request) {
    if let Some((newest, request)) = super::share::request(words) {
        return (words.text("client", "c"), words.number("v", newest), request);
    }
    let (newest, request) = match words.verb {
        "join" => (9, Request::JoinGroup(join(words))),
        "sync" => (5, Request::SyncGroup(sync(words))),
        "heartbeat" => (4, Request::Heartbeat(heartbeat(words))),
        "hb" => (1, Request::ConsumerGroupHeartbeat(consumer_heartbeat(words))),
        "describe-consumer" => (1, Request::ConsumerGroupDescribe(describe_consumer(words))),
        "shb" => (1, Request::StreamsGroupHeartbeat(Box::new(streams::heartbeat_request(words)))),
        "describe-streams" => (1, Request::StreamsGroupDescribe(streams::describe_request(words))),
        "describe-topology" => {
            (0, Request::StreamsTopologyDescription(Box::new(streams::description_request(words))))
        }
        "leave" => (5, Request::LeaveGroup(leave(words))),
        "commit" => (9, Request::OffsetCommit(commit(words))),
        "txn-commit" => (5, Request::TxnOffsetCommit(txn_commit(words))),
        "marker" => (2, Request::EndTransaction(marker(words))),
        "fetch" => (9, fetch(words)),
        "delete-offsets" => (0, Request::OffsetDelete(delete_offsets(words))),
        "list" => (5, Request::ListGroups(list(words))),
        "describe" => (6, Request::DescribeGroups(describe(words))),
        "delete-groups" => (3, Request::DeleteGroups(delete_groups(words))),
        other => panic!("unknown request {other:?}"),
    };
    (words.text("client", "c"), words.number("v", newest), request)
}

fn group(words: &Words<'_>) -> Str {
    match words.text("group", "g") {
        "-" => Str::default(),
        name => name.into(),
    }
}

fn member(words: &Words<'_>) -> Str {
    words.get("member").map(|id| Str::from(long_id(id))).unwrap_or_default()
}

fn instance(words: &Words<'_>) -> Option<Str> {
    words.get("instance").map(Str::from)
}

fn list_of<'a>(words: &Words<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    words.get(name).unwrap_or_default().split(',').filter(|part| !part.is_empty())
}

pub fn topic_id(words: &Words<'_>) -> Uuid {
    let mut id = [0; 16];
    id[15] = words.number("id", 0);
    Uuid(id)
}

/// What a consumer says in version 0 of its protocol: `topics=a+b`. Anything else is taken as it is.
fn metadata(text: &str) -> Bytes {
    if let Some(said) = text.strip_prefix("v3=") {
        return subscription(said);
    }
    let Some(topics) = text.strip_prefix("topics=") else { return Bytes::copy_from_slice(text.as_bytes()) };
    let names: Vec<&str> = topics.split('+').collect();
    let mut bytes = vec![0, 0];
    bytes.extend((names.len() as i32).to_be_bytes());
    for name in names {
        bytes.extend((name.len() as i16).to_be_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    Bytes::from(bytes)
}

/// Version 3 of it, for groups that change their protocol: `v3=t+u/1.0.1/…`: topics, then what is owned: topic,
/// partitions.
fn subscription(said: &str) -> Bytes {
    let (topics, owned) = said.split_once('/').unwrap_or((said, ""));
    let owned = owned.split('/').filter(|each| !each.is_empty()).map(|each| {
        let mut words = each.split('.');
        subscription::TopicPartition {
            topic: words.next().expect("a topic").into(),
            partitions: words.map(|each| each.parse().expect("a partition")).collect(),
            ..Default::default()
        }
    });
    let subscription = ConsumerProtocolSubscription {
        topics: topics.split('+').map(Str::from).collect(),
        owned_partitions: owned.collect(),
        ..Default::default()
    };
    let mut writer = Writer::new();
    subscription.encode(&mut writer, 3).expect("it can be said");
    let mut bytes = vec![0, 3];
    bytes.extend(writer.finish().into_bytes());
    Bytes::from(bytes)
}

/// An assignment of the consumer protocol: `v3=t.0.1/u.0`, with user data `v3=t.0.1/!data`.
pub fn assignment(said: &str) -> Bytes {
    let Some(said) = said.strip_prefix("v3=") else { return Bytes::copy_from_slice(said.as_bytes()) };
    let (said, user_data) = match said.split_once('!') {
        Some((said, data)) => (said, Some(Bytes::copy_from_slice(data.as_bytes()))),
        None => (said, None),
    };
    let topics = said.split('/').filter(|each| !each.is_empty()).map(|each| {
        let mut words = each.split('.');
        assignment::TopicPartition {
            topic: words.next().expect("a topic").into(),
            partitions: words.map(|each| each.parse().expect("a partition")).collect(),
            ..Default::default()
        }
    });
    let assignment =
        ConsumerProtocolAssignment { assigned_partitions: topics.collect(), user_data, ..Default::default() };
    let mut writer = Writer::new();
    assignment.encode(&mut writer, 3).expect("it can be said");
    let mut bytes = vec![0, 3];
    bytes.extend(writer.finish().into_bytes());
    Bytes::from(bytes)
}

fn join(words: &Words<'_>) -> JoinGroupRequest {
    let protocols = match words.get("protocols") {
        None => vec!["range:-"],
        Some("-") => Vec::new(),
        Some(list) => list.split(',').collect(),
    };
    let protocols = protocols.into_iter().map(|protocol| {
        let (name, said) = protocol.split_once(':').unwrap_or((protocol, "-"));
        JoinGroupRequestProtocol { name: name.into(), metadata: metadata(said), ..Default::default() }
    });
    JoinGroupRequest {
        group_id: group(words),
        session_timeout_ms: words.number("session", 10_000),
        rebalance_timeout_ms: words.number("rebalance", 30_000),
        member_id: member(words),
        group_instance_id: instance(words),
        protocol_type: words.text("type", "consumer").into(),
        protocols: protocols.collect(),
        ..Default::default()
    }
}

fn sync(words: &Words<'_>) -> SyncGroupRequest {
    let assignments = list_of(words, "assign").map(|pair| {
        let (who, what) = pair.split_once(':').expect("member:assignment");
        SyncGroupRequestAssignment {
            member_id: long_id(who).into(),
            assignment: assignment(what),
            ..Default::default()
        }
    });
    let said = |name, default| match words.text(name, default) {
        "-" => None,
        text => Some(Str::from(text)),
    };
    SyncGroupRequest {
        group_id: group(words),
        generation_id: words.number("gen", 1),
        member_id: member(words),
        group_instance_id: instance(words),
        protocol_type: said("type", "consumer"),
        protocol_name: said("protocol", "range"),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

/// `member=a epoch=0 names=t,u owned=1:0+1,2:0`; `names=-` names none.
fn consumer_heartbeat(words: &Words<'_>) -> ConsumerGroupHeartbeatRequest {
    let epoch = words.number("epoch", 0);
    let names = |list: &str| list.split(',').filter(|name| *name != "-").map(Str::from).collect();
    let owned = |list: &str| {
        let topics = list.split(',').filter(|topic| *topic != "-").map(|topic| {
            let (id, partitions) = topic.split_once(':').expect("topic:partitions");
            let mut topic_id = [0; 16];
            topic_id[15] = id.parse().expect("an id");
            OwnedPartitions {
                topic_id: Uuid(topic_id),
                partitions: partitions.split('+').map(|each| each.parse().expect("a partition")).collect(),
                ..Default::default()
            }
        });
        topics.collect()
    };
    ConsumerGroupHeartbeatRequest {
        group_id: group(words),
        member_id: words.get("member").map(Str::from).unwrap_or_default(),
        member_epoch: epoch,
        instance_id: instance(words),
        rack_id: words.get("rack").map(Str::from),
        rebalance_timeout_ms: words.number("rebalance", if epoch == 0 { 10_000 } else { -1 }),
        subscribed_topic_names: words.get("names").map(names),
        subscribed_topic_regex: words.get("regex").map(|regex| if regex == "-" { "" } else { regex }.into()),
        server_assignor: words.get("assignor").map(Str::from),
        topic_partitions: match words.get("owned") {
            Some(list) => Some(owned(list)),
            None if epoch == 0 => Some(Vec::new()),
            None => None,
        },
        ..Default::default()
    }
}

fn describe_consumer(words: &Words<'_>) -> ConsumerGroupDescribeRequest {
    ConsumerGroupDescribeRequest { group_ids: vec![group(words)], ..Default::default() }
}

fn heartbeat(words: &Words<'_>) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group(words),
        generation_id: words.number("gen", 1),
        member_id: member(words),
        group_instance_id: instance(words),
        ..Default::default()
    }
}

/// `members=a~1,/instance,b~2/instance`.
fn leave(words: &Words<'_>) -> LeaveGroupRequest {
    let members = list_of(words, "members").map(|who| {
        let (id, instance) = who.split_once('/').map_or((who, None), |(id, instance)| (id, Some(instance)));
        MemberIdentity {
            member_id: long_id(id).into(),
            group_instance_id: instance.map(Str::from),
            ..Default::default()
        }
    });
    LeaveGroupRequest {
        group_id: group(words),
        member_id: member(words),
        members: members.collect(),
        ..Default::default()
    }
}

/// `topic-partition:offset`.
fn commit(words: &Words<'_>) -> OffsetCommitRequest {
    let topics = list_of(words, "offsets").map(|part| {
        let (partition, offset) = part.split_once(':').expect("partition:offset");
        let (name, index) = partition.rsplit_once('-').expect("topic-partition");
        let partition = OffsetCommitRequestPartition {
            partition_index: index.parse().expect("a partition"),
            committed_offset: offset.parse().expect("an offset"),
            committed_leader_epoch: words.number("epoch", -1),
            commit_timestamp: words.number("timestamp", -1),
            committed_metadata: words.get("metadata").map(Str::from),
            ..Default::default()
        };
        OffsetCommitRequestTopic {
            name: name.into(),
            topic_id: topic_id(words),
            partitions: vec![partition],
            ..Default::default()
        }
    });
    OffsetCommitRequest {
        group_id: group(words),
        generation_id_or_member_epoch: words.number("gen", -1),
        member_id: member(words),
        group_instance_id: instance(words),
        retention_time_ms: words.number("retention", -1),
        topics: topics.collect(),
        ..Default::default()
    }
}

/// `producer=7 producer-epoch=0 offsets=topic-partition:offset`.
fn txn_commit(words: &Words<'_>) -> TxnOffsetCommitRequest {
    let plain = commit(words);
    let topics = plain.topics.into_iter().map(|topic| TxnOffsetCommitRequestTopic {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| TxnOffsetCommitRequestPartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                committed_metadata: partition.committed_metadata,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    TxnOffsetCommitRequest {
        transactional_id: "x".into(),
        group_id: plain.group_id,
        producer_id: words.number("producer", 7),
        producer_epoch: words.number("producer-epoch", 0),
        generation_id_or_member_epoch: plain.generation_id_or_member_epoch,
        member_id: plain.member_id,
        group_instance_id: plain.group_instance_id,
        topics: topics.collect(),
        ..Default::default()
    }
}

/// `producer=7 producer-epoch=0 abort`.
fn marker(words: &Words<'_>) -> EndTransaction {
    let (id, epoch) = (words.number("producer", 7), words.number("producer-epoch", 0));
    EndTransaction {
        producer: Producer { id: ProducerId(id), epoch: ProducerEpoch(epoch) },
        commit: !words.has("abort"),
        coordinator_epoch: CoordinatorEpoch(words.number("coordinator", 0)),
        version: TransactionVersion(words.number("version", 0)),
    }
}

fn fetch(words: &Words<'_>) -> Request {
    let topics = list_of(words, "partitions").map(|partition| {
        let (name, index) = partition.rsplit_once('-').expect("topic-partition");
        OffsetFetchRequestTopics {
            name: name.into(),
            topic_id: topic_id(words),
            partition_indexes: vec![index.parse().expect("a partition")],
            ..Default::default()
        }
    });
    let topics = words.has("partitions").then(|| topics.collect());
    let group = OffsetFetchRequestGroup {
        group_id: group(words),
        topics,
        member_id: words.get("member").map(|id| Str::from(long_id(id))),
        member_epoch: words.number("epoch", -1),
        ..Default::default()
    };
    Request::OffsetFetch { group, require_stable: words.has("stable") }
}

fn delete_offsets(words: &Words<'_>) -> OffsetDeleteRequest {
    let topics = list_of(words, "partitions").map(|partition| {
        let (name, index) = partition.rsplit_once('-').expect("topic-partition");
        let index = index.parse().expect("a partition");
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: index, ..Default::default() }];
        OffsetDeleteRequestTopic { name: name.into(), partitions, ..Default::default() }
    });
    OffsetDeleteRequest { group_id: group(words), topics: topics.collect(), ..Default::default() }
}

fn list(words: &Words<'_>) -> ListGroupsRequest {
    ListGroupsRequest {
        states_filter: list_of(words, "states").map(Str::from).collect(),
        types_filter: list_of(words, "types").map(Str::from).collect(),
        ..Default::default()
    }
}

fn describe(words: &Words<'_>) -> DescribeGroupsRequest {
    DescribeGroupsRequest { groups: vec![group(words)], ..Default::default() }
}

fn delete_groups(words: &Words<'_>) -> DeleteGroupsRequest {
    DeleteGroupsRequest {
        groups_names: list_of(words, "groups").map(Str::from).collect(),
        ..Default::default()
    }
}
