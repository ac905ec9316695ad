//! Which configs limit the bytes of a reassignment: a rate on each broker, and on each topic the replicas that it holds
//! for. KIP-73.

use super::plan::Partition;
use super::{Ongoing, ids, plural};
use crate::{ToolError, say, tell};
use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::IncrementalAlterConfigsRequest;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use std::collections::{BTreeMap, BTreeSet};

const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
const LOG_DIRS_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
const LEADERS: &str = "leader.replication.throttled.replicas";
const FOLLOWERS: &str = "follower.replication.throttled.replicas";
/// Types of resources, and operations on their configs.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;

/// From which brokers a partition is copied, and to which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Move {
    pub sources: BTreeSet<i32>,
    pub destinations: BTreeSet<i32>,
}

pub type Moves = BTreeMap<Partition, Move>;

/// What is under way, and what is proposed.
pub fn moves(
    ongoing: &BTreeMap<Partition, Ongoing>,
    proposed: &BTreeMap<Partition, Vec<i32>>,
    current: &BTreeMap<Partition, Vec<i32>>,
) -> Moves {
    let of_ongoing = |of: &Ongoing| {
        let destinations: BTreeSet<i32> = of.adding.iter().copied().collect();
        let sources = of.replicas.iter().copied().filter(|id| !destinations.contains(id)).collect();
        Move { sources, destinations }
    };
    let mut moves: Moves =
        ongoing.iter().map(|(partition, of)| (partition.clone(), of_ongoing(of))).collect();
    for (partition, replicas) in proposed {
        let sources = match moves.get(partition) {
            Some(under_way) => under_way.sources.clone(),
            None => current.get(partition).into_iter().flatten().copied().collect(),
        };
        let destinations = replicas.iter().copied().filter(|id| !sources.contains(id)).collect();
        moves.insert(partition.clone(), Move { sources, destinations });
    }
    moves
}

/// The values of [`LEADERS`] or [`FOLLOWERS`] by topic: `partition:broker,…`, in the order of the text.
pub fn throttled(moves: &Moves, brokers: impl Fn(&Move) -> &BTreeSet<i32>) -> BTreeMap<&str, String> {
    let mut topics: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for ((topic, number), of) in moves {
        let entries = topics.entry(topic).or_default();
        entries.extend(brokers(of).iter().map(|broker| format!("{number}:{broker}")));
    }
    let joined = |entries: BTreeSet<String>| entries.into_iter().collect::<Vec<_>>().join(",");
    topics.into_iter().map(|(topic, entries)| (topic, joined(entries))).collect()
}

/// Limits replication between brokers for these moves.
pub async fn set(cluster: &mut Cluster, moves: &Moves, rate: i64) -> Result<(), ToolError> {
    let leaders = throttled(moves, |of| &of.sources);
    let followers = throttled(moves, |of| &of.destinations);
    let topics = leaders.iter().map(|(topic, value)| {
        let followers = followers.get(topic).cloned().unwrap_or_default();
        resource(TOPIC, topic, &[(LEADERS, Some(value.clone())), (FOLLOWERS, Some(followers))])
    });
    alter(cluster, None, topics.collect()).await?;
    let brokers: BTreeSet<i32> =
        moves.values().flat_map(|of| of.sources.iter().chain(&of.destinations)).copied().collect();
    for broker in brokers {
        set_broker(cluster, broker, &[LEADER_RATE, FOLLOWER_RATE], rate).await?;
    }
    say(&format!("The inter-broker throttle limit was set to {rate} B/s"))
}

/// Limits moves between log directories on these brokers.
pub async fn set_log_dirs(
    cluster: &mut Cluster,
    brokers: &BTreeSet<i32>,
    rate: i64,
) -> Result<(), ToolError> {
    for broker in brokers {
        set_broker(cluster, *broker, &[LOG_DIRS_RATE], rate).await?;
    }
    say(&format!("The replica-alter-dir throttle limit was set to {rate} B/s"))
}

async fn set_broker(cluster: &mut Cluster, broker: i32, keys: &[&str], rate: i64) -> Result<(), ClientError> {
    let configs: Vec<(&str, Option<String>)> =
        keys.iter().map(|key| (*key, Some(rate.to_string()))).collect();
    alter(cluster, Some(broker), vec![resource(BROKER, &broker.to_string(), &configs)]).await
}

/// Removes all limits of these partitions' topics, and of all brokers.
pub async fn clear(cluster: &mut Cluster, partitions: &[(Partition, Vec<i32>)]) -> Result<(), ToolError> {
    let alive: BTreeSet<i32> = cluster.nodes().await?.into_iter().map(|node| node.0).collect();
    let named = partitions.iter().flat_map(|(_, replicas)| replicas).copied();
    let brokers: BTreeSet<i32> = alive.iter().copied().chain(named).collect();
    say(&format!("Clearing broker-level throttles on broker{} {}", plural(brokers.len()), ids(&brokers)))?;
    let rates = [LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE].map(|key| (key, None));
    for broker in &brokers {
        if !alive.contains(broker) {
            tell(&format!(
                "WARN broker {broker} is not there, and its throttles are left. Remove them when it is back: barnabas configs --alter \
                 --broker {broker} --delete-config {LEADER_RATE},{FOLLOWER_RATE},{LOG_DIRS_RATE}"
            ));
            continue;
        }
        alter(cluster, Some(*broker), vec![resource(BROKER, &broker.to_string(), &rates)]).await?;
    }
    let topics: BTreeSet<&str> = partitions.iter().map(|(partition, _)| partition.0.as_str()).collect();
    let names: Vec<&str> = topics.iter().copied().collect();
    say(&format!("Clearing topic-level throttles on topic{} {}", plural(topics.len()), names.join(",")))?;
    let keys = [LEADERS, FOLLOWERS].map(|key| (key, None));
    let resources = topics.iter().map(|topic| resource(TOPIC, topic, &keys));
    Ok(alter(cluster, None, resources.collect()).await?)
}

fn resource(resource_type: i8, name: &str, configs: &[(&str, Option<String>)]) -> AlterConfigsResource {
    let config = |(key, value): &(&str, Option<String>)| AlterableConfig {
        name: (*key).into(),
        config_operation: if value.is_some() { SET } else { DELETE },
        value: value.as_deref().map(Into::into),
        ..Default::default()
    };
    AlterConfigsResource {
        resource_type,
        resource_name: name.into(),
        configs: configs.iter().map(config).collect(),
        ..Default::default()
    }
}

/// A broker takes its own configs alone; those of topics any node takes.
async fn alter(
    cluster: &mut Cluster,
    broker: Option<i32>,
    resources: Vec<AlterConfigsResource>,
) -> Result<(), ClientError> {
    if resources.is_empty() {
        return Ok(());
    }
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let answer = match broker {
        Some(broker) => cluster.ask(BrokerId(broker), &request).await?,
        None => cluster.ask_any(&request).await?,
    };
    match answer.responses.iter().find(|told| told.error_code != 0) {
        Some(told) => Err(ClientError::refused(
            format!("configs of {}", &*told.resource_name),
            told.error_code,
            told.error_message.as_deref(),
        )),
        None => Ok(()),
    }
}
