//! The configs that throttle a reassignment: a rate on each broker, and on each topic its throttled replicas. KIP-73.

use super::plan::Partition;
use super::{Ongoing, ids, plural};
use crate::asking::alter_configs::{alter, changes};
use crate::{ToolError, say, tell};
use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster};
use std::collections::{BTreeMap, BTreeSet};

const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
const LOG_DIRS_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
const LEADERS: &str = "leader.replication.throttled.replicas";
const FOLLOWERS: &str = "follower.replication.throttled.replicas";
/// Types of resources.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const TOPIC_CONFIGS: &str = "configs of topics";

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
        let followers = followers.get(topic).map_or("", String::as_str);
        changes(TOPIC, topic, [(LEADERS, Some(value.as_str())), (FOLLOWERS, Some(followers))])
    });
    alter(cluster, None, TOPIC_CONFIGS, topics.collect()).await?;
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
    let rate = rate.to_string();
    alter_broker(cluster, broker, keys.iter().map(|key| (*key, Some(rate.as_str())))).await
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
                "WARN broker {broker} is offline and keeps its throttles. Remove them when it is back: barnabas configs --alter \
                 --broker {broker} --delete-config {LEADER_RATE},{FOLLOWER_RATE},{LOG_DIRS_RATE}"
            ));
            continue;
        }
        alter_broker(cluster, *broker, rates).await?;
    }
    let topics: BTreeSet<&str> = partitions.iter().map(|(partition, _)| partition.0.as_str()).collect();
    let names: Vec<&str> = topics.iter().copied().collect();
    say(&format!("Clearing topic-level throttles on topic{} {}", plural(topics.len()), names.join(",")))?;
    let keys = [LEADERS, FOLLOWERS].map(|key| (key, None));
    let topics = topics.iter().map(|topic| changes(TOPIC, topic, keys));
    Ok(alter(cluster, None, TOPIC_CONFIGS, topics.collect()).await?)
}

/// A broker takes its own configs alone.
async fn alter_broker<'a>(
    cluster: &mut Cluster,
    broker: i32,
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<(), ClientError> {
    let changes = changes(BROKER, &broker.to_string(), configs);
    alter(cluster, Some(BrokerId(broker)), &format!("configs of broker {broker}"), vec![changes]).await
}
