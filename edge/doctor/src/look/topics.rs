//! Topics, their settings, and the offsets of their partitions.

use super::ask::{Asker, checked};
use super::nodes::config;
use barnabas_base::{ErrorCode, Uuid};
use barnabas_findings::{Configs, Offsets, Partition, Seen, Topic, Unseen};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{DescribeConfigsRequest, ListOffsetsRequest, MetadataResponse};
use std::collections::{BTreeMap, BTreeSet};

/// ListOffsets' timestamps; the last one is of KIP-734.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const NEWEST: i64 = -3;
/// Offsets of more partitions are not asked for.
const PARTITIONS_MAX: usize = 20_000;
/// Topics of one DescribeConfigs.
const CONFIGS_AT_ONCE: usize = 500;
/// DescribeConfigs' type of a topic.
const TOPIC: i8 = 2;
/// What the rules read.
const KEYS: &[&str] = &[
    "cleanup.policy",
    "delete.retention.ms",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// An offset and its timestamp, by topic and partition.
pub type Ends = BTreeMap<(String, i32), Seen<(i64, i64)>>;

/// Partitions for which their leader answered `KAFKA_STORAGE_ERROR`.
type Unreadable = BTreeSet<(String, i32)>;

/// The names of topics by their ids.
pub fn names(metadata: &MetadataResponse) -> BTreeMap<Uuid, String> {
    let named = |topic: &MetadataResponseTopic| Some((topic.topic_id, topic.name.as_ref()?.to_string()));
    metadata.topics.iter().filter_map(named).collect()
}

/// The end of every partition.
pub async fn latest(asker: &mut Asker, metadata: &MetadataResponse) -> Ends {
    offsets(asker, metadata, LATEST).await.0
}

async fn offsets(asker: &mut Asker, metadata: &MetadataResponse, timestamp: i64) -> (Ends, Unreadable) {
    let mut by_leader: BTreeMap<i32, BTreeMap<String, Vec<i32>>> = BTreeMap::new();
    let (mut ends, mut unreadable) = (Ends::new(), Unreadable::new());
    let all: usize = metadata.topics.iter().map(|topic| topic.partitions.len()).sum();
    for (name, partition) in partitions(metadata) {
        let place = (name.clone(), partition.partition_index);
        if all > PARTITIONS_MAX {
            ends.insert(
                place,
                Err(Unseen(format!("offsets of more than {PARTITIONS_MAX} partitions are not asked for"))),
            );
        } else if partition.leader_id < 0 {
            ends.insert(place, Err(Unseen(format!("{name}-{} has no leader", partition.partition_index))));
        } else {
            let topics = by_leader.entry(partition.leader_id).or_default();
            topics.entry(name).or_default().push(partition.partition_index);
        }
    }
    for (leader, topics) in by_leader {
        ask_leader(asker, leader, topics, timestamp, (&mut ends, &mut unreadable)).await;
    }
    (ends, unreadable)
}

fn partitions(metadata: &MetadataResponse) -> impl Iterator<Item = (String, &MetadataResponsePartition)> {
    metadata.topics.iter().flat_map(|topic| {
        let name = topic.name.as_ref().map(ToString::to_string).unwrap_or_default();
        topic.partitions.iter().map(move |partition| (name.clone(), partition))
    })
}

async fn ask_leader(
    asker: &mut Asker,
    leader: i32,
    topics: BTreeMap<String, Vec<i32>>,
    timestamp: i64,
    (ends, unreadable): (&mut Ends, &mut Unreadable),
) {
    let topic = |(name, indexes): (&String, &Vec<i32>)| ListOffsetsTopic {
        name: name.as_str().into(),
        partitions: indexes
            .iter()
            .map(|index| ListOffsetsPartition { partition_index: *index, timestamp, ..Default::default() })
            .collect(),
        ..Default::default()
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: topics.iter().map(topic).collect(),
        ..Default::default()
    };
    let asked = asker.ask(leader, |_| request.clone()).await;
    for (name, indexes) in topics {
        for index in indexes {
            let told = asked.as_ref().map_err(Clone::clone).and_then(|answer| {
                let mut topics = answer.topics.iter().filter(|topic| *topic.name == *name.as_str());
                let row =
                    topics.find_map(|topic| topic.partitions.iter().find(|p| p.partition_index == index));
                let missing = || Unseen(format!("node {leader} told no offset of {name}-{index}"));
                let row = row.ok_or_else(missing)?;
                if row.error_code == ErrorCode::KafkaStorageError.code() {
                    unreadable.insert((name.clone(), index));
                }
                checked(&format!("offset of {name}-{index}"), row.error_code, None)?;
                Ok((row.offset, row.timestamp))
            });
            ends.insert((name.clone(), index), told);
        }
    }
}

/// All topics, as they are at the second look.
pub async fn topics(
    asker: &mut Asker,
    before: &MetadataResponse,
    after: &MetadataResponse,
    ends_before: &Ends,
) -> Vec<Topic> {
    let starts = offsets(asker, after, EARLIEST).await.0;
    let (ends, unreadable) = offsets(asker, after, LATEST).await;
    let newest = offsets(asker, after, NEWEST).await.0;
    let mut configs = configs(asker, after).await;
    let small = under_replicated(before);
    let mut topics = Vec::new();
    for topic in &after.topics {
        let Some(name) = topic.name.as_ref().map(ToString::to_string) else { continue };
        let partition = |row: &MetadataResponsePartition| {
            let place = (name.clone(), row.partition_index);
            Partition {
                index: row.partition_index,
                leader: (row.leader_id >= 0).then_some(row.leader_id),
                replicas: row.replica_nodes.clone(),
                isr: row.isr_nodes.clone(),
                was_under_replicated: small.contains(&place),
                offsets: of(&place, &starts, &ends, ends_before, &newest),
                is_unreadable: unreadable.contains(&place),
            }
        };
        let mut partitions: Vec<Partition> = topic.partitions.iter().map(partition).collect();
        partitions.sort_by_key(|partition| partition.index);
        let missing = || Err(Unseen(format!("settings of topic {name} were not told")));
        let configs = configs.remove(&name).unwrap_or_else(missing);
        topics.push(Topic { is_internal: topic.is_internal, partitions, configs, name: name.clone() });
    }
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    topics
}

/// Partitions whose ISR is smaller than their replicas.
fn under_replicated(metadata: &MetadataResponse) -> Vec<(String, i32)> {
    let is_small =
        |row: &MetadataResponsePartition| row.isr_nodes.len() < row.replica_nodes.len() || row.leader_id < 0;
    let small = partitions(metadata).filter(|(_, row)| is_small(row));
    small.map(|(name, row)| (name, row.partition_index)).collect()
}

fn of(place: &(String, i32), starts: &Ends, ends: &Ends, before: &Ends, newest: &Ends) -> Seen<Offsets> {
    let get = |ends: &Ends| {
        let missing = || Err(Unseen(format!("no offset of {}-{} was told", place.0, place.1)));
        ends.get(place).cloned().unwrap_or_else(missing)
    };
    let end = get(ends)?.0;
    Ok(Offsets {
        start: get(starts)?.0,
        end,
        // A partition that is new since the first look began empty.
        end_before: before.get(place).map_or(Ok(0), |told| told.clone().map(|told| told.0))?.min(end),
        newest_ms: get(newest).map(|(_, timestamp)| (timestamp >= 0).then_some(timestamp)),
    })
}

async fn configs(asker: &mut Asker, metadata: &MetadataResponse) -> BTreeMap<String, Seen<Configs>> {
    let names: Vec<String> =
        metadata.topics.iter().filter_map(|topic| Some(topic.name.as_ref()?.to_string())).collect();
    let mut known = BTreeMap::new();
    for names in names.chunks(CONFIGS_AT_ONCE) {
        let resource = |name: &String| DescribeConfigsResource {
            resource_type: TOPIC,
            resource_name: name.as_str().into(),
            configuration_keys: Some(KEYS.iter().map(|key| (*key).into()).collect()),
            ..Default::default()
        };
        let resources: Vec<DescribeConfigsResource> = names.iter().map(resource).collect();
        let asked = asker
            .ask_any(|_| DescribeConfigsRequest { resources: resources.clone(), ..Default::default() })
            .await;
        match asked {
            Ok(answer) => {
                for result in answer.results {
                    let what = format!("settings of topic {}", &*result.resource_name);
                    // It was deleted since Metadata named it.
                    if ErrorCode::from_code(result.error_code) == ErrorCode::UnknownTopicOrPartition {
                        continue;
                    }
                    let told = checked(&what, result.error_code, result.error_message.as_deref())
                        .map(|()| result.configs.iter().map(config).collect());
                    known.insert(result.resource_name.to_string(), told);
                }
            }
            Err(why) => known.extend(names.iter().map(|name| (name.clone(), Err(why.clone())))),
        }
    }
    known
}
