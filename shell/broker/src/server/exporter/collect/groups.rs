//! What happened in the group and share coordinators, and to the records of share groups.

use crate::node::Node;
use barnabas_metrics::recorder::GROUP_COUNTS;
use barnabas_metrics::text::Page;

/// The words of consumers, as they stand in the counter.
const SAID: [&str; 4] = ["Accept", "Release", "Reject", "Renew"];

pub fn write(page: &mut Page, node: &Node) {
    let cells = || node.workers.metering.workers().iter();
    for (place, name) in GROUP_COUNTS.iter().enumerate() {
        let count = cells().map(|cells| cells.group_counts[place].get()).sum();
        page.count(&format!("kafka_server_group_coordinator_metrics_{name}"), &[], count);
    }
    let meter = &node.workers.meter;
    page.count("kafka_server_share_coordinator_metrics_write_total", &[], meter.share_state_writes.get());
    for (said, counter) in SAID.iter().zip(&meter.share_acknowledged) {
        let name = "kafka_server_sharegroupmetrics_recordacknowledgements_total";
        page.count(name, &[("ackType", said)], counter.get());
    }
    let letters = [
        ("deadletterqueuerecordcount", &meter.dead_letters),
        ("deadletterqueuetotalproducerequests_total", &meter.dead_letter_requests),
        ("deadletterqueuefailedproducerequests_total", &meter.dead_letters_failed),
    ];
    for (name, counter) in letters {
        page.count(&format!("kafka_server_sharegroupmetrics_{name}"), &[], counter.get());
    }
    let records = cells().map(|cells| cells.share_records.get()).sum();
    let batches = cells().map(|cells| cells.share_batches.get()).sum();
    page.count("kafka_server_sharepartitionmetrics_inflightmessagecount", &[], records);
    page.count("kafka_server_sharepartitionmetrics_inflightbatchcount", &[], batches);
    let ended = meter.share_locks_ended.get();
    page.count("kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total", &[], ended);
}
