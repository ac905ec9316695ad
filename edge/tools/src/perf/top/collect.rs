//! Asks the cluster for what the views show: by Kafka's protocol, and a Barnabas node for its metrics page besides.
//!
//! All nodes are asked side by side over connections that are kept. A node that does not answer costs a note, not the
//! look. What is asked for is bounded: offsets of [`PARTITIONS_MAX`] partitions, and the groups of each node
//! (`top/node.rs`).
//!
//! | look | asks for |
//! |---|---|
//! | each | Metadata; the metrics page of each node |
//! | topics, groups | the page with series by topic and group |
//! | nodes, topics | DescribeLogDirs; for topics also ListOffsets where a node has no such series |
//! | groups, clients | ListGroups, DescribeGroups, ConsumerGroupDescribe; OffsetFetch and ListOffsets likewise |

use super::facts::{Facts, Node, Room, Topic, Totals};
use super::node::{Told, Wishes};
use super::sheet::{ROWS_MAX, View};
use crate::now_ms;
use barnabas_client::{ClientError, Cluster};
use barnabas_doctor::Scrape;
use barnabas_wire::Str;
use barnabas_wire::messages::MetadataResponse;
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::task::JoinSet;

/// Ends of more partitions are not asked for.
const PARTITIONS_MAX: usize = 20_000;

/// Looks again and again.
#[derive(Debug)]
pub struct Collector {
    cluster: Cluster,
    /// A connection to each node, kept from look to look.
    links: BTreeMap<i32, Cluster>,
    looked: Option<Instant>,
}

impl Collector {
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, links: BTreeMap::new(), looked: None }
    }

    /// One look for these views.
    ///
    /// # Errors
    /// No node tells which nodes and topics there are.
    pub async fn look(&mut self, views: &[View]) -> Result<Facts, ClientError> {
        let metadata = self.cluster.metadata(None, false).await?;
        let now = Instant::now();
        let seconds = self.looked.replace(now).map(|before| (now - before).as_secs_f64().max(1e-3));
        let mut facts = Facts { taken_ms: now_ms(), seconds, ..of_metadata(&metadata) };
        let ids: Vec<i32> = facts.nodes.iter().map(|node| node.id).collect();
        self.links.retain(|id, _| ids.contains(id));
        let has_series = views.iter().any(|view| matches!(view, View::Topics | View::Groups));
        let pages = Wishes { has_page: true, has_series, ..Wishes::default() };
        self.ask(ids.iter().map(|id| (*id, pages.clone())), &mut facts).await;
        let rest = wishes(&metadata, &mut facts, views);
        self.ask(rest.into_iter(), &mut facts).await;
        facts.groups.sort_by(|one, other| one.name.cmp(&other.name));
        facts.notes.sort();
        facts.notes.dedup();
        Ok(facts)
    }

    async fn ask(&mut self, wishes: impl Iterator<Item = (i32, Wishes)>, facts: &mut Facts) {
        let mut asked = JoinSet::new();
        for (node, wishes) in wishes {
            let link = self.links.remove(&node);
            let mut link = link.unwrap_or_else(|| self.cluster.with_new_connections());
            asked.spawn(async move {
                let told = super::node::ask(&mut link, node, wishes).await;
                (node, link, told)
            });
        }
        for (node, link, told) in asked.join_all().await {
            // The node may come back at another address.
            if !told.is_lost {
                self.links.insert(node, link);
            }
            take(facts, node, told);
        }
    }
}

fn take(facts: &mut Facts, node: i32, told: Told) {
    facts.pages.extend(told.page.map(|page| (node, page)));
    facts.series.extend(told.series.map(|page| (node, page)));
    if let Some(dirs) = told.dirs {
        let room = |dirs: &[super::node::Dir]| Room {
            total: dirs.iter().map(|dir| dir.room.total).sum(),
            usable: dirs.iter().map(|dir| dir.room.usable).sum(),
        };
        facts.dirs.insert(node, room(&dirs));
        for (topic, bytes) in dirs.into_iter().flat_map(|dir| dir.sizes) {
            *facts.sizes.entry(topic).or_default() += bytes;
        }
    }
    for (topic, partition, end) in told.ends {
        facts.ends.entry(topic).or_default().insert(partition, end);
    }
    facts.groups.extend(told.groups);
    facts.notes.extend(told.trouble);
}

/// What each node is asked for besides its page.
fn wishes(metadata: &MetadataResponse, facts: &mut Facts, views: &[View]) -> Vec<(i32, Wishes)> {
    let wants = |some: &[View]| views.iter().any(|view| some.contains(view));
    let have_series = facts.nodes.iter().all(|node| facts.series.get(&node.id).is_some_and(has_topics));
    let has_ends = wants(&[View::Topics, View::Groups]) && !have_series;
    let wishes = Wishes {
        has_page: false,
        has_series: false,
        has_dirs: wants(&[View::Nodes, View::Topics]),
        has_sizes: wants(&[View::Topics]) && facts.totals.partitions <= PARTITIONS_MAX,
        has_groups: wants(&[View::Groups, View::Clients]),
        has_offsets: false,
        ends: BTreeMap::new(),
    };
    let mut of: BTreeMap<i32, Wishes> = BTreeMap::new();
    for node in &facts.nodes {
        let knows_lags = |page: &Scrape| !page.samples("barnabas_group_lag").is_empty();
        let has_offsets = wants(&[View::Groups]) && !facts.series.get(&node.id).is_some_and(knows_lags);
        of.insert(node.id, Wishes { has_offsets, ..wishes.clone() });
    }
    if has_ends && facts.totals.partitions > PARTITIONS_MAX {
        let words = "lags and rates of topics are not asked for: more than";
        facts.notes.push(format!("{words} {PARTITIONS_MAX} partitions, and nodes without such series"));
    } else if has_ends {
        for topic in &metadata.topics {
            let name = topic.name.clone().unwrap_or_default();
            for row in &topic.partitions {
                if let Some(wishes) = of.get_mut(&row.leader_id) {
                    wishes.ends.entry(name.to_string()).or_default().push(row.partition_index);
                }
            }
        }
    }
    of.into_iter().filter(|(_, wishes)| *wishes != Wishes::default()).collect()
}

/// Whether a page has series by topic. An older node's has none, nor has that of a node without traffic.
fn has_topics(page: &Scrape) -> bool {
    let samples = page.samples("kafka_server_brokertopicmetrics_messagesin_total");
    samples.iter().any(|sample| !sample.label("topic").is_empty())
}

/// Nodes and topics, with what Metadata alone says of them.
fn of_metadata(metadata: &MetadataResponse) -> Facts {
    let text = |text: &Option<Str>| text.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut nodes: BTreeMap<i32, Node> = BTreeMap::new();
    for broker in &metadata.brokers {
        let (id, address) = (broker.node_id, format!("{}:{}", &*broker.host, broker.port));
        nodes.insert(id, Node { id, address, rack: text(&broker.rack), ..Node::default() });
    }
    let mut totals = Totals { topics: metadata.topics.len(), ..Totals::default() };
    let mut topics = Vec::new();
    for told in &metadata.topics {
        let mut topic = Topic { name: text(&told.name), ..Topic::default() };
        topic.partitions = told.partitions.len();
        topic.replication_factor =
            told.partitions.iter().map(|row| row.replica_nodes.len()).max().unwrap_or(0);
        for row in &told.partitions {
            topic.under_replicated += usize::from(row.isr_nodes.len() < row.replica_nodes.len());
            topic.leaderless += usize::from(row.leader_id < 0);
            if let Some(node) = nodes.get_mut(&row.leader_id) {
                node.leaders += 1;
            }
            for id in &row.replica_nodes {
                let Some(node) = nodes.get_mut(id) else { continue };
                node.replicas += 1;
                node.out_of_sync += usize::from(!row.isr_nodes.contains(id));
            }
        }
        totals.partitions += topic.partitions;
        totals.under_replicated += topic.under_replicated;
        totals.leaderless += topic.leaderless;
        if topics.len() < ROWS_MAX {
            topics.push(topic);
        }
    }
    Facts {
        cluster: text(&metadata.cluster_id),
        controller: metadata.controller_id,
        nodes: nodes.into_values().collect(),
        topics,
        totals,
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests;
