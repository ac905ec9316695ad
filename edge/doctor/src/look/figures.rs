//! Two metrics pages of a node, as figures.

use super::ask::Asker;
use crate::{NoPage, Scrape, metrics_page};
use barnabas_base::BrokerId;
use barnabas_findings::{Client, DirFigures, Figures, Histogram, Seen, Unseen};
use std::collections::BTreeMap;

/// The pages of all nodes, by node.
pub type Pages = BTreeMap<i32, Seen<Scrape>>;

pub async fn pages(asker: &mut Asker, nodes: &[i32]) -> Pages {
    let mut pages = Pages::new();
    for node in nodes {
        pages.insert(*node, page(asker, *node).await);
    }
    pages
}

async fn page(asker: &mut Asker, node: i32) -> Seen<Scrape> {
    asker.check(node)?;
    match metrics_page(&mut asker.cluster, BrokerId(node)).await {
        Ok(page) => Ok(page),
        Err(NoPage::Client(error)) => Err(asker.unseen(node, &error)),
        Err(other) => Err(Unseen(other.to_string())),
    }
}

/// What happened between two pages of `node`.
pub fn between(node: i32, before: &Pages, after: &Pages) -> Seen<Figures> {
    let missing = || Err(Unseen(format!("node {node} was not asked for its metrics")));
    let before = before.get(&node).cloned().unwrap_or_else(missing)?;
    let after = after.get(&node).cloned().unwrap_or_else(missing)?;
    if after.sum("barnabas_uptime_seconds", &[]) < before.sum("barnabas_uptime_seconds", &[]) {
        return Err(Unseen(format!("node {node} was started again between the two looks")));
    }
    Ok(figures(&before, &after))
}

fn figures(before: &Scrape, after: &Scrape) -> Figures {
    let now = |name: &str| after.sum(name, &[]);
    let of =
        |name: &str, labels: &[(&str, &str)]| (after.sum(name, labels) - before.sum(name, labels)).max(0.0);
    let rise = |name: &str| of(name, &[]);
    let directories = after.values("barnabas_log_directory_total_bytes", "log_directory");
    let dir = |path: String| {
        let labels = [("log_directory", path.as_str())];
        DirFigures {
            refuses_producers: after.sum("barnabas_log_directory_refuses_producers", &labels) > 0.0,
            journal_writes: histogram("barnabas_journal_write_seconds", &labels, before, after),
            path: path.clone(),
        }
    };
    let certificates = after.samples("barnabas_certificate_not_after_seconds").iter();
    let certificate = |sample: &crate::Sample| {
        let (used_by, subject) = (sample.label("used_by"), sample.label("subject"));
        (format!("{used_by} ({subject})"), sample.value)
    };
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
        dirs: directories.into_iter().map(dir).collect(),
        clients: clients(before, after),
        certificates: certificates.map(certificate).collect(),
    }
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
    let mut clients: BTreeMap<&str, Vec<(String, f64)>> = BTreeMap::new();
    for sample in after.samples(NAME) {
        let (id, request) = (sample.label("client_id"), sample.label("request"));
        let old = before.sum(NAME, &[("client_id", id), ("request", request)]);
        clients.entry(id).or_default().push((request.to_owned(), (sample.value - old).max(0.0)));
    }
    clients.into_iter().map(|(id, requests)| Client { id: id.to_owned(), requests }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let figures = figures(&page(100, 3, 5, 7), &page(110, 23, 6, 17));
        assert_eq!((figures.seconds, figures.open_fds), (10.0, 80.0));
        assert_eq!(figures.clients[0].of("other"), 20.0);
        assert_eq!(figures.dirs[0].journal_writes, Histogram(vec![(0.01, 1.0), (f64::INFINITY, 10.0)]));
        assert_eq!(figures.dirs[0].journal_writes.quantile(0.1), Some(0.01));
        assert_eq!(figures.dirs[0].journal_writes.quantile(0.5), None);
    }

    #[test]
    fn pages_of_a_restarted_node_are_not_compared() {
        let page = |uptime: u32| {
            Pages::from([(1, Ok(Scrape::parse(&format!("barnabas_uptime_seconds {uptime}\n"))))])
        };
        assert!(between(1, &page(10), &page(20)).is_ok());
        assert!(between(1, &page(20), &page(10)).is_err());
        assert!(between(2, &page(10), &page(20)).is_err());
    }
}
