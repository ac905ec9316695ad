//! Facts of one node by two of its metrics pages, for `barnabas doctor` and for the node's own checks.

use super::machine::Pages;
use super::{Client, Dir, DirFigures, Facts, Figures, Histogram, Node, Room, Seen, Shared, Unseen};
use crate::scrape::{Sample, Scrape};
use std::collections::BTreeMap;

/// What happened between two pages of a node.
///
/// # Errors
/// The node was started again in between.
pub fn figures_between(node: i32, before: &Scrape, after: &Scrape) -> Seen<Figures> {
    if after.sum("barnabas_uptime_seconds", &[]) < before.sum("barnabas_uptime_seconds", &[]) {
        return Err(Unseen(format!("node {node} was started again between the two looks")));
    }
    Ok(figures(&Pages { node, before, after }))
}

impl Facts {
    /// What a node knows by itself; everything about others is not seen. `connect`: the flags by which a command
    /// reaches it; `configs`: what its rules ask for.
    pub fn of_node(
        (id, connect): (i32, String),
        configs: super::Configs,
        (before, after): (&Scrape, &Scrape),
        now_ms: i64,
    ) -> Self {
        let unseen = || Unseen("a node alone does not see it".to_owned());
        let figures = figures_between(id, before, after);
        let node = Node {
            id,
            host: String::new(),
            port: 0,
            rack: None,
            is_fenced: false,
            reached: Ok(()),
            configs: Ok(configs),
            features: Err(unseen()),
            dirs: Ok(dirs(after)),
            figures,
        };
        let seconds = node.figures.as_ref().map_or(0.0, |figures| figures.seconds);
        Self {
            connect,
            now_ms,
            seconds,
            nodes: vec![node],
            topics: Err(unseen()),
            groups: Err(unseen()),
            quorum: Err(unseen()),
            no_leader: None,
            controllers: Err(unseen()),
            reassigning: Err(unseen()),
            quotas: Err(unseen()),
            acls: Err(unseen()),
            scram: Err(unseen()),
            transactions: Err(unseen()),
            samples: Err(unseen()),
        }
    }
}

/// The log directories of a page, without their replicas.
fn dirs(page: &Scrape) -> Vec<Dir> {
    const OFFLINE: &str = "kafka_log_logmanager_logdirectoryoffline";
    let dir = |path: String| {
        let labels = [("log_directory", path.as_str())];
        let bytes = |name: &str| page.sum(name, &labels) as i64;
        let total = bytes("barnabas_log_directory_total_bytes");
        let room = Room { total, usable: bytes("barnabas_log_directory_free_bytes") };
        Dir {
            error: (page.sum(OFFLINE, &[("logDirectory", &path)]) > 0.0)
                .then(|| "KAFKA_STORAGE_ERROR".to_owned()),
            bytes: (total > 0).then_some(room),
            replicas: Vec::new(),
            path,
        }
    };
    page.values(OFFLINE, "logDirectory").into_iter().map(dir).collect()
}

fn figures(pages: &Pages<'_>) -> Figures {
    let Pages { before, after, .. } = *pages;
    let now = |name: &str| after.sum(name, &[]);
    let of =
        |name: &str, labels: &[(&str, &str)]| (after.sum(name, labels) - before.sum(name, labels)).max(0.0);
    let rise = |name: &str| of(name, &[]);
    let directories = after.values("barnabas_log_directory_total_bytes", "log_directory");
    let certificates = after.samples("barnabas_certificate_not_after_seconds").iter();
    let certificate = |sample: &Sample| {
        let (used_by, subject) = (sample.label("used_by"), sample.label("subject"));
        (format!("{used_by} ({subject})"), sample.value)
    };
    let produce =
        |phase: &str| of("barnabas_request_phase_seconds_sum", &[("request", "Produce"), ("phase", phase)]);
    // Also of each topic: the sample without a label is their sum.
    let of_topics = |name: &str| of(name, &[("topic", "")]);
    Figures {
        seconds: rise("barnabas_uptime_seconds"),
        cpu_seconds: rise("barnabas_thread_cpu_seconds_total"),
        runqueue_seconds: rise("barnabas_thread_runqueue_seconds_total"),
        open_fds: now("process_open_fds"),
        max_fds: now("process_max_fds"),
        connections: now("barnabas_connections"),
        accepted: rise("barnabas_connections_accepted_total"),
        request_memory: now("barnabas_request_memory_bytes"),
        request_memory_limit: now("barnabas_request_memory_limit_bytes"),
        produce_requests: of("kafka_network_requestmetrics_requests_total", &[("request", "Produce")]),
        batch_records: histogram("barnabas_batch_records", &[], before, after),
        apis: apis(before, after),
        throttled_requests: rise("barnabas_quota_throttled_requests_total"),
        throttle_seconds: rise("barnabas_quota_throttle_seconds_total"),
        failed_logins: of("barnabas_authentications_total", &[("result", "failure")]),
        isr_shrinks: rise("kafka_server_replicamanager_isrshrinks_total"),
        isr_expands: rise("kafka_server_replicamanager_isrexpands_total"),
        unclean_elections_total: now("kafka_controller_controllerstats_uncleanleaderelections_total"),
        uncleanable_partitions: now("kafka_log_logcleanermanager_uncleanable_partitions_count"),
        damage_found_total: now("barnabas_damage_found_total"),
        offline_replicas: now("kafka_server_replicamanager_offlinereplicacount"),
        dirs: directories.into_iter().map(|path| dir_figures(pages, path)).collect(),
        clients: clients(before, after),
        certificates: certificates.map(certificate).collect(),
        produced: of_topics("kafka_server_brokertopicmetrics_totalproducerequests_total"),
        produced_weakly: pages.rise("barnabas_produce_partitions_weak_acks_total", &[]),
        produce_refused: of_topics("kafka_server_brokertopicmetrics_failedproducerequests_total"),
        produce_seconds: of("barnabas_request_seconds_sum", &[("request", "Produce")]),
        produce_sync_seconds: produce("journal_wait") + produce("sync"),
        versions: versions(before, after),
        fetch_bytes: histogram("barnabas_fetch_bytes", &[], before, after),
        denied: pages.rise("barnabas_authorizations_denied_total", &[]),
        rebalances: REBALANCES.iter().map(|name| rise(name)).sum(),
        shared: shared(of),
        machine: pages.machine(),
    }
}

const REBALANCES: [&str; 4] = [
    "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
    "kafka_server_group_coordinator_metrics_consumer_group_rebalance_count",
    "kafka_server_group_coordinator_metrics_share_group_rebalance_count",
    "kafka_server_group_coordinator_metrics_streams_group_rebalance_count",
];

fn shared(of: impl Fn(&str, &[(&str, &str)]) -> f64) -> Shared {
    const ACKNOWLEDGED: &str = "kafka_server_sharegroupmetrics_recordacknowledgements_total";
    Shared {
        acknowledged: of(ACKNOWLEDGED, &[]),
        rejected: of(ACKNOWLEDGED, &[("ackType", "Reject")]),
        lock_timeouts: of("kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total", &[]),
    }
}

fn dir_figures(pages: &Pages<'_>, path: String) -> DirFigures {
    let labels = [("log_directory", path.as_str())];
    let (before, after) = (pages.before, pages.after);
    const ROUNDS: &str = "barnabas_journal_round_bytes_sum";
    DirFigures {
        refuses_producers: after.sum("barnabas_log_directory_refuses_producers", &labels) > 0.0,
        journal_writes: histogram("barnabas_journal_write_seconds", &labels, before, after),
        journal_bytes: (after.sum(ROUNDS, &labels) - before.sum(ROUNDS, &labels)).max(0.0),
        holder: pages.holder(&path),
        busy_seconds: pages.rise("barnabas_log_directory_device_busy_seconds_total", &labels),
        inodes: pages.inodes(&path),
        path: path.clone(),
    }
}

fn versions(before: &Scrape, after: &Scrape) -> Vec<(String, i32, f64)> {
    const NAME: &str = "kafka_network_requestmetrics_requests_total";
    let version = |sample: &Sample| {
        let (api, version) = (sample.label("request"), sample.label("version"));
        let old = before.sum(NAME, &[("request", api), ("version", version)]);
        Some((api.to_owned(), version.parse().ok()?, (sample.value - old).max(0.0)))
    };
    after.samples(NAME).iter().filter_map(version).collect()
}

fn histogram(name: &str, labels: &[(&str, &str)], before: &Scrape, after: &Scrape) -> Histogram {
    Histogram(after.buckets(name, labels)).since(&Histogram(before.buckets(name, labels)))
}

fn apis(before: &Scrape, after: &Scrape) -> Vec<(String, f64)> {
    const NAME: &str = "kafka_network_requestmetrics_requests_total";
    let api = |api: String| {
        let labels = [("request", api.as_str())];
        let rise = after.sum(NAME, &labels) - before.sum(NAME, &labels);
        (api.clone(), rise.max(0.0))
    };
    after.values(NAME, "request").into_iter().map(api).collect()
}

fn clients(before: &Scrape, after: &Scrape) -> Vec<Client> {
    const NAME: &str = "barnabas_client_requests_total";
    const PHASES: &str = "barnabas_client_phase_seconds_total";
    let mut clients: BTreeMap<&str, Client> = BTreeMap::new();
    for sample in after.samples(NAME) {
        let (id, request) = (sample.label("client_id"), sample.label("request"));
        let old = before.sum(NAME, &[("client_id", id), ("request", request)]);
        let client = clients.entry(id).or_insert_with(|| Client { id: id.to_owned(), ..Client::default() });
        client.requests.push((request.to_owned(), (sample.value - old).max(0.0)));
    }
    for (id, client) in &mut clients {
        let of = |labels: &[(&str, &str)]| (after.sum(PHASES, labels) - before.sum(PHASES, labels)).max(0.0);
        let of_phase = |phase: &str| of(&[("client_id", id), ("phase", phase)]);
        client.write_seconds = of_phase("write");
        client.busy_seconds = of(&[("client_id", id)]) - of_phase("wait");
    }
    clients.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Severity, examine_node};

    #[test]
    fn figures_are_what_happened_between_two_pages() {
        let page = |uptime: u32, metadata: u32, below: u32, all: u32| {
            Scrape::parse(&format!(
                "barnabas_uptime_seconds {uptime}\nprocess_open_fds 80\n\
                 barnabas_client_requests_total{{client_id=\"a\",request=\"other\"}} {metadata}\n\
                 barnabas_log_directory_total_bytes{{log_directory=\"/d\"}} 9\n\
                 barnabas_journal_write_seconds_bucket{{log_directory=\"/d\",le=\"0.01\"}} {below}\n\
                 barnabas_journal_write_seconds_bucket{{log_directory=\"/d\",le=\"+Inf\"}} {all}\n"
            ))
        };
        let (before, after) = (page(100, 3, 5, 7), page(110, 23, 6, 17));
        let figures = figures(&Pages { node: 1, before: &before, after: &after });
        assert_eq!((figures.seconds, figures.open_fds), (10.0, 80.0));
        assert_eq!(figures.clients[0].of("other"), 20.0);
        assert_eq!(figures.dirs[0].journal_writes, Histogram(vec![(0.01, 1.0), (f64::INFINITY, 10.0)]));
        assert_eq!(figures.dirs[0].journal_writes.quantile(0.1), Some(0.01));
        assert_eq!(figures.dirs[0].journal_writes.quantile(0.5), None);
    }

    /// A page of node 1 with a directory of which `free` of 100 bytes are free.
    fn page(uptime: u32, free: u32) -> Scrape {
        Scrape::parse(&format!(
            "barnabas_uptime_seconds {uptime}\nprocess_open_fds 90\nprocess_max_fds 100\n\
             kafka_log_logmanager_logdirectoryoffline{{logDirectory=\"/d\"}} 0\n\
             kafka_log_logmanager_logdirectoryoffline{{logDirectory=\"/e\"}} 1\n\
             barnabas_log_directory_total_bytes{{log_directory=\"/d\"}} 100\n\
             barnabas_log_directory_free_bytes{{log_directory=\"/d\"}} {free}\n"
        ))
    }

    fn found(before: &Scrape, after: &Scrape) -> Vec<String> {
        let facts =
            Facts::of_node((1, "--bootstrap-server h:1".into()), Default::default(), (before, after), 0);
        let report = examine_node(&facts, &Limits::default());
        report.findings.iter().map(|finding| format!("{} {}", finding.id, finding.severity.name())).collect()
    }

    #[test]
    fn node_judges_what_its_own_pages_show() {
        let critical = Severity::Critical.name();
        assert_eq!(found(&page(1, 50), &page(2, 50)), [format!("D12 {critical}"), "O6 warning".to_owned()]);
        assert!(found(&page(1, 50), &page(2, 5)).contains(&"D9 warning".to_owned()));
        let restarted = found(&page(9, 50), &page(2, 50));
        assert_eq!(
            restarted,
            [format!("D12 {critical}")],
            "without figures the gauges of figures count neither"
        );
    }
}
