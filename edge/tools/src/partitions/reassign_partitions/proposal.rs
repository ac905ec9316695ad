//! `--generate`: replicas for the partitions of topics, spread evenly over brokers and racks.
//!
//! Source of the placement: Kafka 3 `AdminUtils.assignReplicasToBrokers`: leaders in turn, each next replica further
//! away with every round over the brokers, and a rack twice only when every rack has a replica. Source of the refusals:
//! Kafka 4.3 `StripedReplicaPlacer`.

use super::plan::{Partition, duplicates, failed, line, topics};
use super::{BROKERS, TOPICS, file, replicas_of};
use crate::command_line::args::text;
use crate::{ToolError, say};
use barnabas_client::Cluster;
use clap::ArgMatches;
use std::collections::{BTreeMap, BTreeSet};

/// A broker that may get replicas, and its rack where racks count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub id: i32,
    pub rack: Option<String>,
}

pub async fn generate(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let wanted = text(matches, BROKERS).unwrap_or_default();
    let wanted: Result<Vec<i32>, _> = wanted.split(',').map(|id| id.trim().parse::<i32>()).collect();
    let wanted = wanted.map_err(|_| ToolError::Usage(format!("--{BROKERS} takes ids. Example: 1,2,3")))?;
    let twice: Vec<String> = duplicates(&wanted).into_iter().map(ToString::to_string).collect();
    if !twice.is_empty() {
        return Err(failed(&format!("Broker list contains duplicate entries: [{}]", twice.join(", "))));
    }
    let topics = topics(&file(matches, TOPICS)?)?;
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let current = replicas_of(cluster, &names).await?;
    let brokers = brokers(cluster, &wanted, !matches.get_flag("disable-rack-aware")).await?;
    let mut proposed = BTreeMap::new();
    for topic in &topics {
        let of_topic: Vec<&Vec<i32>> = current
            .iter()
            .filter(|(partition, _)| partition.0 == *topic)
            .map(|(_, replicas)| replicas)
            .collect();
        let Some(first) = of_topic.first() else { continue };
        let start = Start::random(brokers.len())?;
        let assigned = assign(&brokers, of_topic.len(), first.len(), &start)?;
        let partition = |number: usize| -> Partition { (topic.clone(), number as i32) };
        proposed
            .extend(assigned.into_iter().enumerate().map(|(number, replicas)| (partition(number), replicas)));
    }
    say(&format!("Current partition replica assignment\n{}\n", line(&current)))?;
    say(&format!("Proposed partition reassignment configuration\n{}", line(&proposed)))
}

/// Those of `wanted` that are there, in order.
async fn brokers(cluster: &mut Cluster, wanted: &[i32], with_racks: bool) -> Result<Vec<Broker>, ToolError> {
    let known = cluster.refresh(Some(&[]), false).await?.brokers;
    let mut found: Vec<Broker> = known
        .iter()
        .filter(|broker| wanted.contains(&broker.node_id))
        .map(|broker| Broker {
            id: broker.node_id,
            rack: broker.rack.as_ref().map(ToString::to_string).filter(|_| with_racks),
        })
        .collect();
    found.sort_by_key(|broker| broker.id);
    let without = found.iter().filter(|broker| broker.rack.is_none()).count();
    if with_racks && without != 0 && without != found.len() {
        return Err(failed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information.",
        ));
    }
    Ok(found)
}

/// Where the first partition's leader is, and how far from it its next replica.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    pub leader: usize,
    pub shift: usize,
}

impl Start {
    fn random(brokers: usize) -> Result<Self, ToolError> {
        let number = || getrandom::u32().map_err(|error| failed(&format!("no random number: {error}")));
        let brokers = brokers.max(1);
        Ok(Self { leader: number()? as usize % brokers, shift: number()? as usize % brokers })
    }
}

/// The replicas of each of `partitions` partitions.
///
/// # Errors
/// More replicas than brokers.
pub fn assign(
    brokers: &[Broker],
    partitions: usize,
    replicas: usize,
    start: &Start,
) -> Result<Vec<Vec<i32>>, ToolError> {
    if brokers.is_empty() {
        return Err(failed("All brokers are currently fenced, or have all their log directories cordoned."));
    }
    if replicas > brokers.len() {
        return Err(failed(&format!(
            "The target replication factor of {replicas} cannot be reached because only {} broker(s) are registered or some brokers have all \
             their log directories cordoned.",
            brokers.len()
        )));
    }
    let racks: BTreeSet<&String> = brokers.iter().filter_map(|broker| broker.rack.as_ref()).collect();
    let arranged = if racks.is_empty() { brokers.to_vec() } else { alternating(brokers) };
    let count = arranged.len();
    // Whole rounds over the racks, so that the next replica stays in the next rack.
    let stride = racks.len().max(1);
    let mut shift = start.shift;
    let mut all = Vec::with_capacity(partitions);
    for partition in 0..partitions {
        if partition > 0 && partition % count == 0 {
            shift += 1;
        }
        let first = (partition + start.leader) % count;
        let mut chosen = vec![&arranged[first]];
        let mut at = 0;
        while chosen.len() < replicas {
            let next = &arranged[(first + 1 + (shift * stride + at) % (count - 1)) % count];
            at += 1;
            if fits(next, &chosen, racks.len()) {
                chosen.push(next);
            }
        }
        all.push(chosen.iter().map(|broker| broker.id).collect());
    }
    Ok(all)
}

/// Whether a broker has no replica yet, and its rack none either while other racks are without.
fn fits(next: &Broker, chosen: &[&Broker], racks: usize) -> bool {
    let taken: BTreeSet<&String> = chosen.iter().filter_map(|broker| broker.rack.as_ref()).collect();
    let is_rack_free = next.rack.as_ref().is_none_or(|rack| !taken.contains(rack) || taken.len() == racks);
    is_rack_free && chosen.iter().all(|broker| broker.id != next.id)
}

/// One broker of each rack in turn.
fn alternating(brokers: &[Broker]) -> Vec<Broker> {
    let mut racks: BTreeMap<&Option<String>, Vec<&Broker>> = BTreeMap::new();
    for broker in brokers {
        racks.entry(&broker.rack).or_default().push(broker);
    }
    let longest = racks.values().map(Vec::len).max().unwrap_or(0);
    let rounds = (0..longest).flat_map(|round| racks.values().filter_map(move |rack| rack.get(round)));
    rounds.map(|broker| (*broker).clone()).collect()
}
