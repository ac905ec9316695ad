//! The metadata quorum as this node sees it, and what became of leaders and of those who follow them.

use super::Snapshot;
use crate::node::Node;
use barnabas_base::{BrokerId, Offset};
use barnabas_metrics::histogram::Counts;
use barnabas_metrics::text::Page;
use barnabas_quorum::raft::RoleName;

/// The client id that Kafka's fetchers have in its metrics.
const REPLICA: &str = "Replica";

pub fn write(page: &mut Page, node: &Node, now: &Snapshot, older: &Snapshot) {
    replicas(page, node);
    let figures = node.peers.controller.figures();
    let standing = figures.standing();
    let active = node.peers.controller.active();
    let name = |of: &str| format!("kafka_server_raft_metrics_{of}");
    let leader = active.leader.map_or(-1, barnabas_base::BrokerId::get);
    page.value(&name("current_leader"), &[], f64::from(leader));
    page.value(&name("current_epoch"), &[], f64::from(active.epoch.get()));
    page.value(&name("high_watermark"), &[], standing.high_watermark.get() as f64);
    page.value(&name("log_end_offset"), &[], node.peers.controller.log_end().get() as f64);
    page.count(&name("number_of_voters"), &[], standing.voters);
    latency(page, &name("commit_latency"), &now.commits, &older.commits);
    latency(page, &name("election_latency"), &now.elections, &older.elections);
    records(page, now, older, standing.role == RoleName::Leader);
    page.count(&name("current_state"), &[("current_state", state(standing.role))], 1);
    page.value(&name("current_vote"), &[], f64::from(standing.voted.map_or(-1, BrokerId::get)));
    let traffic = figures.traffic.counts();
    for (name, value) in [
        ("incoming_byte", traffic.bytes_in),
        ("outgoing_byte", traffic.bytes_out),
        ("request", traffic.requests),
        ("response", traffic.answers),
    ] {
        page.count(&format!("kafka_server_raft_channel_metrics_{name}_total"), &[], value);
    }
}

/// By how much the log grew: what a leader appends, another one fetches. Of a log that was truncated nothing is known.
fn records(page: &mut Page, now: &Snapshot, older: &Snapshot, leads: bool) {
    let seconds = now.at.since(older.at) as f64 / 1e9;
    let grown = now.metadata_end.get().saturating_sub(older.metadata_end.get()).max(0) as f64;
    let rate = if seconds > 0.0 && older.metadata_end > Offset::ZERO { grown / seconds } else { 0.0 };
    let (appended, fetched) = if leads { (rate, 0.0) } else { (0.0, rate) };
    page.value("kafka_server_raft_metrics_append_records_rate", &[], appended);
    page.value("kafka_server_raft_metrics_fetch_records_rate", &[], fetched);
}

/// Kafka's words.
const fn state(role: RoleName) -> &'static str {
    match role {
        RoleName::Unattached => "unattached",
        RoleName::Prospective => "prospective",
        RoleName::Candidate => "candidate",
        RoleName::Leader => "leader",
        RoleName::Follower => "follower",
        RoleName::Resigned => "resigned",
        RoleName::Observer => "observer",
    }
}

/// Of the last one to two minutes; 0 where there was none.
fn latency(page: &mut Page, name: &str, all: &Counts, older: &Counts) {
    let recent = all.since(older);
    let (count, ms) = (recent.count(), 1e6);
    let average = if count == 0 { 0.0 } else { recent.sum as f64 / count as f64 / ms };
    page.value(&format!("{name}_avg"), &[], average);
    page.value(&format!("{name}_max"), &[], recent.quantile_of(1.0, count) as f64 / ms);
}

fn replicas(page: &mut Page, node: &Node) {
    let meter = &node.workers.meter;
    for (name, counter) in [
        ("isrshrinks", &meter.isr_shrinks),
        ("isrexpands", &meter.isr_expands),
        ("failedisrupdates", &meter.isr_updates_failed),
    ] {
        page.count(&format!("kafka_server_replicamanager_{name}_total"), &[], counter.get());
    }
    let behind =
        node.workers.metering.workers().iter().map(|cells| cells.behind_most.get()).max().unwrap_or(0);
    page.count("kafka_server_replicafetchermanager_maxlag", &[("clientId", REPLICA)], behind);
    let unclean = meter.unclean_elections.get();
    page.count("kafka_controller_controllerstats_uncleanleaderelections_total", &[], unclean);
}
