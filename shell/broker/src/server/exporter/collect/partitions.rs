//! Series by partition, where the query asks for them: of one topic (`?topic=NAME`), or of all (`?names=strimzi` and
//! the like), up to [`PARTITIONS_MAX`].
//!
//! What the image says is of the partitions that this node leads, as in Kafka; sizes and offsets are of every replica
//! here. No log is opened for it.

use crate::mailbox::{Command, LogSize};
use crate::node::Node;
use crate::node::topic_settings;
use crate::routing::owners::ask_workers;
use barnabas_base::{Map, Text, TopicPartition};
use barnabas_metadata::{Image, Partition};
use barnabas_metrics::text::Page;

const PARTITIONS_MAX: usize = 10_000;

const FAMILIES: &[&str] = &["kafka_cluster_partition_", "kafka_log_log_"];

/// A replica on this node.
struct Here<'a> {
    name: TopicPartition,
    index: String,
    row: &'a Partition,
    min_in_sync: usize,
    size: Option<LogSize>,
}

type Figure = (&'static str, fn(&Here<'_>) -> Option<u64>);

/// Of what this node leads.
const LED: [Figure; 5] = [
    ("replicascount", |here| Some(here.row.replicas().len() as u64)),
    ("insyncreplicascount", |here| Some(here.row.isr().len() as u64)),
    ("underreplicated", |here| Some((here.row.isr().len() < here.row.replicas().len()).into())),
    ("atminisr", |here| Some((here.row.isr().len() == here.min_in_sync).into())),
    ("underminisr", |here| Some((here.row.isr().len() < here.min_in_sync).into())),
];

const STORED: [Figure; 3] = [
    ("size", |here| here.size.as_ref().map(|size| size.bytes)),
    ("logstartoffset", |here| here.size.as_ref()?.range.map(|(start, _)| start.get().unsigned_abs())),
    ("logendoffset", |here| here.size.as_ref()?.range.map(|(_, end)| end.get().unsigned_abs())),
];

/// `topic`: the one that the query names.
pub fn write(page: &mut Page, node: &Node, topic: Option<&Text>) {
    let has_all = page.form().names.has_partitions();
    if (topic.is_none() && !has_all) || !page.form().may_want(FAMILIES) {
        return;
    }
    let image = node.cluster.image.load_full();
    let here = replicas(node, &image, topic);
    let me = node.identity.broker_id;
    let mut each = |of: &str, figures: &[Figure], is_led_only: bool| {
        for (figure, value) in figures {
            for here in here.iter().filter(|here| !is_led_only || here.row.leader == me) {
                if let Some(value) = value(here) {
                    let labels = [("topic", &*here.name.topic), ("partition", &*here.index)];
                    page.count(&format!("{of}{figure}"), &labels, value);
                }
            }
        }
    };
    each("kafka_cluster_partition_", &LED, true);
    each("kafka_log_log_", &STORED, false);
}

/// Of open logs the sizes are as their owners know them, of others as the file system does.
fn replicas<'a>(node: &Node, image: &'a Image, only: Option<&Text>) -> Vec<Here<'a>> {
    let mut open: Map<TopicPartition, LogSize> = ask_workers(node, Command::Sizes)
        .into_iter()
        .filter(|size| only.is_none_or(|topic| size.partition.topic == *topic))
        .map(|size| (size.partition.clone(), size))
        .collect();
    let mut topics: Vec<_> = match only {
        Some(name) => image.topics.by_name(name).into_iter().collect(),
        None => image.topics.iter().collect(),
    };
    topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut here = Vec::new();
    for topic in topics {
        let min_in_sync = usize::from(topic_settings::min_in_sync(node, image, &topic.name));
        for (partition, row) in topic.partitions() {
            if !row.has_replica(node.identity.broker_id) {
                continue;
            }
            if here.len() == PARTITIONS_MAX {
                return here;
            }
            let name = TopicPartition { topic: topic.name.clone(), partition };
            let size = open.remove(&name).or_else(|| on_disk(node, &name));
            here.push(Here { name, index: partition.get().to_string(), row, min_in_sync, size });
        }
    }
    here
}

/// What cannot be read is not shown.
fn on_disk(node: &Node, partition: &TopicPartition) -> Option<LogSize> {
    let name = partition.to_string();
    let directories = node.log_dirs.directories.iter().enumerate();
    let sizes = directories
        .filter(|(_, directory)| directory.is_usable())
        .filter_map(|(place, directory)| Some((directory.size_on_disk(&name).ok()?, place)));
    let (bytes, directory) = sizes.max()?;
    Some(LogSize { directory, partition: partition.clone(), bytes, range: None })
}
