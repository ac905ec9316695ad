//! Topics' and groups' offsets in the words of kafka_exporter and of Kafka Lag Exporter, for dashboards made for those.
//!
//! Such a program asks a whole cluster and stands alone; here each node writes what it leads, so that the page of all
//! nodes together says each thing once: a partition is written by its leader, a topic by the leader of its first
//! partition, a group by its coordinator.
//!
//! Bounded: [`PARTITIONS_MAX`] partitions, and as many of groups. To know where a log ends, it is opened.

use super::survey::{ends_here, survey};
use super::{AT_MOST_EVERY, GIVE_UP_AFTER, Lags};
use crate::mailbox::PartitionKey;
use crate::node::Node;
use barnabas_base::{Map, Text};
use barnabas_coordinator::lag::{Ends, PartitionLag, Whole};
use barnabas_metadata::{Image, Partition};
use barnabas_metrics::text::Page;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const PARTITIONS_MAX: usize = 10_000;

/// A partition that this node leads.
struct Led<'a> {
    topic: &'a Text,
    index: String,
    row: &'a Partition,
    ends: Option<Ends>,
}

/// What both exporters show.
#[derive(Debug)]
pub(super) struct Look {
    image: Arc<Image>,
    ends: Map<PartitionKey, Ends>,
    groups: Vec<PartitionLag>,
}

impl Look {
    /// In the order of names and numbers.
    fn led(&self, node: &Node) -> Vec<Led<'_>> {
        keys(node, &self.image)
            .filter_map(|key| {
                let topic = self.image.topics.by_id(key.topic)?;
                let row = topic.partition(key.partition)?;
                let index = key.partition.get().to_string();
                Some(Led { topic: &topic.name, index, row, ends: self.ends.get(&key).copied() })
            })
            .collect()
    }
}

/// What this node leads.
fn keys<'a>(node: &'a Node, image: &'a Image) -> impl Iterator<Item = PartitionKey> + 'a {
    let mut topics: Vec<_> = image.topics.iter().collect();
    topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let led = topics.into_iter().flat_map(move |topic| {
        let led = topic.partitions().filter(|(_, row)| row.leader == node.identity.broker_id);
        led.map(|(partition, _)| PartitionKey { topic: topic.id, partition })
    });
    led.take(PARTITIONS_MAX)
}

type OfLed = fn(&Led<'_>) -> Option<f64>;
type OfGroup = fn(&PartitionLag) -> Option<f64>;

fn number(value: i64) -> Option<f64> {
    Some(value as f64)
}

impl Lags {
    /// Looks again, if that is due.
    fn look(&mut self, node: &Node) -> Option<&Look> {
        let is_fresh =
            self.exported.as_ref().is_some_and(|(at, _)| barnabas_clock::since(*at) < AT_MOST_EVERY);
        if node.identity.is_broker && !is_fresh {
            let image = node.cluster.image.load_full();
            let keys: Vec<PartitionKey> = keys(node, &image).collect();
            let looked = async {
                let ends = ends_here(node, &keys).await;
                (ends, survey(node, &mut self.times, Whole::Each).await)
            };
            match self.runtime.block_on(async { tokio::time::timeout(GIVE_UP_AFTER, looked).await }) {
                Ok((ends, sample)) => {
                    let mut groups = sample.whole;
                    let key = |lag: &PartitionLag| (lag.group.clone(), lag.topic.clone(), lag.partition);
                    groups.sort_by_cached_key(key);
                    self.exported = Some((barnabas_clock::now(), Look { image, ends, groups }));
                }
                Err(_) => tracing::debug!(
                    "offsets were not found out in time: the page shows what was known before"
                ),
            }
        }
        self.exported.as_ref().map(|(_, look)| look)
    }

    /// As kafka_exporter has it.
    pub fn write_exporter(&mut self, page: &mut Page, node: &Node) {
        let Some(look) = self.look(node) else { return };
        brokers(page, node, &look.image);
        let led = look.led(node);
        for first in led.iter().filter(|led| led.index == "0") {
            let partitions =
                look.image.topics.by_name(first.topic).map_or(0, |topic| topic.partitions().count());
            page.count("kafka_topic_partitions", &[("topic", first.topic)], partitions as u64);
        }
        let figures: [(&str, OfLed); 7] = [
            ("current_offset", |led| number(led.ends?.high_watermark.get())),
            ("oldest_offset", |led| number(led.ends?.log_start.get())),
            ("leader", |led| number(led.row.leader.get().into())),
            ("leader_is_preferred", |led| number((led.row.leader == led.row.preferred_leader()).into())),
            ("replicas", |led| number(led.row.replicas().len() as i64)),
            ("in_sync_replica", |led| number(led.row.isr().len() as i64)),
            ("under_replicated_partition", |led| {
                number((led.row.isr().len() < led.row.replicas().len()).into())
            }),
        ];
        for (figure, of) in figures {
            for each in &led {
                if let Some(value) = of(each) {
                    let labels = [("topic", &**each.topic), ("partition", &*each.index)];
                    page.value(&format!("kafka_topic_partition_{figure}"), &labels, value);
                }
            }
        }
        let mut sums: BTreeMap<(&Text, &Text), (i64, u64)> = BTreeMap::new();
        for lag in &look.groups {
            let sum = sums.entry((&lag.group, &lag.topic)).or_default();
            *sum = (sum.0 + lag.offset.get(), sum.1 + lag.records);
        }
        let figures: [(&str, OfGroup); 2] =
            [("current_offset", |lag| number(lag.offset.get())), ("lag", |lag| Some(lag.records as f64))];
        for (figure, of) in figures {
            let name = format!("kafka_consumergroup_{figure}");
            for lag in &look.groups {
                let partition = lag.partition.to_string();
                let labels =
                    [("consumergroup", &*lag.group), ("topic", &*lag.topic), ("partition", &*partition)];
                page.value(&name, &labels, of(lag).unwrap_or_default());
            }
            for ((group, topic), (offsets, records)) in &sums {
                let value = if figure == "lag" { *records as f64 } else { *offsets as f64 };
                page.value(&format!("{name}_sum"), &[("consumergroup", group), ("topic", topic)], value);
            }
        }
    }

    /// As Kafka Lag Exporter has it; its name for the cluster is the cluster's id.
    pub fn write_lag_exporter(&mut self, page: &mut Page, node: &Node) {
        let Some(look) = self.look(node) else { return };
        let cluster = node.identity.cluster_id.to_string();
        let figures: [(&str, OfLed); 2] = [
            ("latest", |led| number(led.ends?.high_watermark.get())),
            ("earliest", |led| number(led.ends?.log_start.get())),
        ];
        for (figure, of) in figures {
            for each in look.led(node) {
                if let Some(value) = of(&each) {
                    let labels =
                        [("cluster_name", &*cluster), ("topic", &**each.topic), ("partition", &*each.index)];
                    page.value(&format!("kafka_partition_{figure}_offset"), &labels, value);
                }
            }
        }
        let figures: [(&str, OfGroup); 3] = [
            ("offset", |lag| number(lag.offset.get())),
            ("lag", |lag| Some(lag.records as f64)),
            ("lag_seconds", |lag| lag.age.as_ref().map(Duration::as_secs_f64)),
        ];
        for (figure, of) in figures {
            for lag in &look.groups {
                if let Some(value) = of(lag) {
                    let partition = lag.partition.to_string();
                    let labels = [
                        ("cluster_name", &*cluster),
                        ("group", &*lag.group),
                        ("topic", &*lag.topic),
                        ("partition", &*partition),
                    ];
                    page.value(&format!("kafka_consumergroup_group_{figure}"), &labels, value);
                }
            }
        }
        largest(page, &cluster, &look.groups);
    }
}

/// Of each group: its partitions' largest lag, oldest record, and all their records.
fn largest(page: &mut Page, cluster: &str, groups: &[PartitionLag]) {
    let mut by_group: BTreeMap<&Text, (u64, Option<Duration>, u64)> = BTreeMap::new();
    for lag in groups {
        let (most, age, sum) = by_group.entry(&lag.group).or_default();
        (*most, *age, *sum) = ((*most).max(lag.records), (*age).max(lag.age), *sum + lag.records);
    }
    let labels = |group| [("cluster_name", cluster), ("group", group)];
    for (group, (most, ..)) in &by_group {
        page.count("kafka_consumergroup_group_max_lag", &labels(group), *most);
    }
    for (group, (_, age, _)) in &by_group {
        if let Some(age) = age {
            page.value("kafka_consumergroup_group_max_lag_seconds", &labels(group), age.as_secs_f64());
        }
    }
    for (group, (.., sum)) in &by_group {
        page.count("kafka_consumergroup_group_sum_lag", &labels(group), *sum);
    }
}

fn brokers(page: &mut Page, node: &Node, image: &Image) {
    let unfenced = image.cluster.brokers().filter(|broker| !broker.fenced).count();
    page.count("kafka_brokers", &[], unfenced as u64);
    let id = node.identity.broker_id;
    let own = image.cluster.broker(id).and_then(|broker| broker.endpoints.first());
    if let Some(own) = own {
        let address = format!("{}:{}", own.host, own.port);
        page.count("kafka_broker_info", &[("id", &*id.get().to_string()), ("address", &*address)], 1);
    }
}
