//! Kafka's BrokerTopicMetrics: of all topics together, and of each topic with cells of its own.

use crate::node::Node;
use barnabas_base::Text;
use barnabas_metrics::histogram::{Cell, Counted, Histogram};
use barnabas_metrics::recorder::WorkerCells;
use barnabas_metrics::text::Page;
use barnabas_metrics::topics::TopicCounts;

/// What the topics without cells are called: no topic can have this name.
const OTHERS: &str = "(others)";

type Figure = (&'static str, fn(&TopicCounts) -> u64);

const FIGURES: [Figure; 8] = [
    ("messagesin", |counts| counts.messages_in),
    ("bytesin", |counts| counts.bytes_in),
    ("bytesout", |counts| counts.bytes_out),
    ("bytesrejected", |counts| counts.bytes_rejected),
    ("totalproducerequests", |counts| counts.produces),
    ("totalfetchrequests", |counts| counts.fetches),
    ("failedproducerequests", |counts| counts.produces_failed),
    ("failedfetchrequests", |counts| counts.fetches_failed),
];

/// `has_topics`: not for tools that add up all series of a name.
pub fn write(page: &mut Page, node: &Node, has_topics: bool) {
    let cells = || node.workers.metering.workers().iter();
    let sum = |of: fn(&WorkerCells) -> &Histogram| cells().map(|cells| of(cells).sum()).sum();
    let all = TopicCounts {
        messages_in: sum(|cells| &cells.batch_records),
        bytes_in: sum(|cells| &cells.batch_bytes),
        bytes_out: sum(|cells| &cells.fetched),
        ..TopicCounts::sum(cells().map(|cells| &cells.topics))
    };
    let (topics, unlisted) = listed(node);
    for (figure, of) in FIGURES {
        let name = format!("kafka_server_brokertopicmetrics_{figure}_total");
        page.count(&name, &[], of(&all));
        for (topic, counts) in topics.iter().filter(|_| has_topics) {
            page.count(&name, &[("topic", topic)], of(counts));
        }
    }
    let replicated = |of: fn(&WorkerCells) -> &Cell| cells().map(|cells| of(cells).get()).sum();
    for (way, bytes) in
        [("in", replicated(|cells| &cells.replicated_in)), ("out", replicated(|cells| &cells.replicated_out))]
    {
        page.count(&format!("kafka_server_brokertopicmetrics_replicationbytes{way}_total"), &[], bytes);
    }
    let weak = cells().map(|cells| cells.produces_weak.get()).sum();
    page.count("barnabas_produce_partitions_weak_acks_total", &[], weak);
    page.count("barnabas_topics_unlisted", &[], unlisted);
}

/// The topics that are shown, by name, and how many are not.
fn listed(node: &Node) -> (Vec<(Text, TopicCounts)>, u64) {
    let image = node.cluster.image.load_full();
    let of_node = node.workers.metering.topics();
    of_node.keep(|topic| image.topics.by_id(topic).is_some());
    let name = |topic| image.topics.by_id(topic).map(|topic| topic.name.clone());
    let named = of_node.each().into_iter().filter_map(|(topic, counts)| Some((name(topic)?, counts)));
    let mut topics: Vec<(Text, TopicCounts)> = named.collect();
    topics.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let unlisted = if of_node.is_full() { image.topics.len().saturating_sub(topics.len()) } else { 0 };
    let others = of_node.others();
    if others != TopicCounts::default() {
        topics.push((Text::from(OTHERS), others));
    }
    (topics, unlisted as u64)
}
