//! Requests: by API, by client, by worker.

use super::{ApiCounts, Snapshot};
use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use barnabas_metrics::clients::{self, OTHER};
use barnabas_metrics::histogram::{Counts, Histogram, Scale};
use barnabas_metrics::names::Names;
use barnabas_metrics::recorder::{ClientCounts, KIND_NAMES, WorkerCells};
use barnabas_metrics::requests::Phase;
use barnabas_metrics::text::{Page, Summary};
use barnabas_metrics::threads;
use barnabas_wire::ApiKey;

type CountsOf = fn(&ApiCounts) -> &Counts;
type BytesOf = fn(&ClientCounts) -> u64;

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// One histogram of all workers.
fn of_workers(node: &Node, scale: Scale, of: impl Fn(&WorkerCells) -> &Histogram) -> Counts {
    let mut counts = Counts::new(scale);
    node.workers.metering.workers().iter().for_each(|cells| counts.add(of(cells)));
    counts
}

pub fn fetch_sessions(page: &mut Page, node: &Node) {
    let name = |of: &str| format!("kafka_server_fetchsessioncache_{of}");
    let counts = node.workers.fetch_sessions.counts();
    page.count(&name("numincrementalfetchsessions"), &[], counts.sessions);
    page.count(&name("numincrementalfetchpartitionscached"), &[], counts.partitions);
    page.count(&name("incrementalfetchsessionevictions_total"), &[], counts.evictions);
}

pub fn kafka(page: &mut Page, now: &Snapshot, older: &Snapshot) {
    let name = |of: &str| format!("kafka_network_requestmetrics_{of}");
    // What Kafka calls an API in its metrics is its name; a Fetch also has a label for its sender (consumer or
    // follower).
    let fetches = [
        ("FetchConsumer", &now.fetches.consumers, &older.fetches.consumers),
        ("FetchFollower", &now.fetches.followers, &older.fetches.followers),
    ];
    let each = |write: &mut dyn FnMut(&str, &ApiCounts, Option<&ApiCounts>)| {
        let apis = ApiKey::ALL.iter().enumerate();
        let apis = apis.map(|(at, api)| (api.name(), &now.apis[at], &older.apis[at]));
        for (name, counts, older) in apis.chain(fetches) {
            if let Some(counts) = counts {
                write(name, counts, older.as_ref());
            }
        }
    };
    each(&mut |api, counts, _| {
        for (version, requests) in counts.versions.iter().enumerate().filter(|(_, requests)| **requests > 0) {
            let labels = [("request", api), ("version", &*version.to_string())];
            page.count(&name("requests_total"), &labels, *requests);
        }
    });
    let figures: [(&str, u64, CountsOf); 6] = [
        ("requestbytes", 1, |counts| &counts.bytes),
        ("requestqueuetimems", MS, |counts| &counts.phases[Phase::Queue as usize]),
        ("localtimems", MS, |counts| &counts.local),
        ("remotetimems", MS, |counts| &counts.remote),
        ("responsesendtimems", MS, |counts| &counts.phases[Phase::Write as usize]),
        ("totaltimems", MS, |counts| &counts.total),
    ];
    for (figure, unit, of) in figures {
        each(&mut |api, counts, older| {
            let all = of(counts);
            let recent = older.map_or_else(|| all.clone(), |older| all.since(of(older)));
            let count = counts.total.count();
            let recent_count = count - older.map_or(0, |older| older.total.count());
            let summary = Summary { all, recent: &recent, requests: (count, recent_count), unit };
            page.summary(&name(figure), &[("request", api)], &summary);
        });
    }
}

pub fn idle(page: &mut Page, node: &Node, now: &Snapshot, older: &Snapshot) {
    let available = seconds(now.at.since(older.at)) * node.workers.count as f64;
    let busy = now.busy.saturating_sub(older.busy).as_secs_f64();
    let idle = if available > 0.0 { (1.0 - busy / available).clamp(0.0, 1.0) } else { 1.0 };
    page.value("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", &[], idle);
    page.value("kafka_network_socketserver_networkprocessoravgidle_percent", &[], idle);
    if page.form().names == Names::Reporter {
        let busy = now.busy.as_nanos() as f64 / node.workers.count.max(1) as f64;
        let idle = (node.clock.monotonic().0 as f64 * 1e6 - busy).max(0.0);
        let name = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total";
        page.value(name, &[], idle.round());
    }
    let queued: usize = node.workers.mailboxes.iter().map(|mailbox| mailbox.waiting()).sum();
    page.count("kafka_network_requestchannel_requestqueuesize", &[], queued as u64);
}

pub fn phases(page: &mut Page, node: &Node, now: &Snapshot, is_fine: bool) {
    let apis =
        || ApiKey::ALL.iter().zip(&now.apis).filter_map(|(api, counts)| Some((api.name(), counts.as_ref()?)));
    for (api, counts) in apis() {
        page.times("barnabas_request_seconds", &[("request", api)], &counts.total, is_fine);
    }
    for (api, counts) in apis() {
        for phase in Phase::ALL {
            let times = &counts.phases[phase as usize];
            if times.count() > 0 {
                let labels = [("request", api), ("phase", phase.name())];
                page.times("barnabas_request_phase_seconds", &labels, times, is_fine);
            }
        }
    }
    let cells = || node.workers.metering.workers().iter();
    // Ended first: one that ends in between is counted as in flight, and never as less than none.
    let ended: u64 = cells().map(|cells| cells.ended.get()).sum();
    let started: u64 = cells().map(|cells| cells.started.get()).sum();
    page.count("barnabas_requests_in_flight", &[], started.saturating_sub(ended));
}

pub fn clients(page: &mut Page, node: &Node, is_fine: bool) {
    let all = node.workers.metering.clients();
    debug_assert!(all.len() <= usize::from(OTHER) + 1);
    let each = |write: &mut dyn FnMut(&str, usize, &ClientCounts)| {
        for (name, counts) in &all {
            let name = clients::label(name.as_deref());
            (0..KIND_NAMES.len())
                .filter(|kind| counts.requests[*kind] > 0)
                .for_each(|kind| write(name, kind, counts));
        }
    };
    each(&mut |client, kind, counts| {
        let labels = [("client_id", client), ("request", KIND_NAMES[kind])];
        page.count("barnabas_client_requests_total", &labels, counts.requests[kind]);
    });
    each(&mut |client, kind, counts| {
        for phase in Phase::ALL {
            let ns = counts.phases[kind][phase as usize];
            if ns > 0 {
                let labels = [("client_id", client), ("request", KIND_NAMES[kind]), ("phase", phase.name())];
                page.value("barnabas_client_phase_seconds_total", &labels, seconds(ns));
            }
        }
    });
    each(&mut |client, kind, counts| {
        let labels = [("client_id", client), ("request", KIND_NAMES[kind])];
        page.times("barnabas_client_request_seconds", &labels, &counts.latency[kind], is_fine);
    });
    let bytes: [(&str, BytesOf); 2] = [("in", |counts| counts.bytes_in), ("out", |counts| counts.bytes_out)];
    for (way, of) in bytes {
        for (name, counts) in all.iter().filter(|(_, counts)| counts.requests.iter().any(|count| *count > 0))
        {
            let labels = [("client_id", clients::label(name.as_deref()))];
            page.count(&format!("barnabas_client_bytes_{way}_total"), &labels, of(counts));
        }
    }
}

/// What other brokers are asked by coordinators here, and of coordinators there.
pub fn links(page: &mut Page, node: &Node) {
    for purpose in Purpose::ALL {
        let (depth, _) = node.peers.broker_links.awaited(purpose).depth_and_age();
        page.count("barnabas_broker_link_waiting", &[("purpose", purpose.word())], depth as u64);
    }
    for purpose in Purpose::ALL {
        let (_, age) = node.peers.broker_links.awaited(purpose).depth_and_age();
        let labels = [("purpose", purpose.word())];
        page.value("barnabas_broker_link_oldest_seconds", &labels, age.as_secs_f64());
    }
}

pub fn workers(page: &mut Page, node: &Node, is_fine: bool) {
    let workers: Vec<String> = (0..node.workers.count).map(|worker| worker.to_string()).collect();
    let each = || workers.iter().zip(node.workers.metering.workers());
    for (worker, _) in each() {
        let busy = node.workers.metering.busy(worker.parse().unwrap_or(0)).as_secs_f64();
        page.value("barnabas_worker_busy_seconds_total", &[("worker", worker)], busy);
    }
    for (worker, cells) in each() {
        page.times("barnabas_worker_turn_seconds", &[("worker", worker)], &cells.turns.counts(), is_fine);
    }
    for (worker, cells) in each() {
        page.times(
            "barnabas_worker_write_back_seconds",
            &[("worker", worker)],
            &cells.write_backs.counts(),
            is_fine,
        );
    }
    for (worker, mailbox) in workers.iter().zip(&node.workers.mailboxes) {
        page.count("barnabas_worker_mailbox_commands", &[("worker", worker)], mailbox.waiting() as u64);
    }
    let counts = |of: fn(&WorkerCells) -> &Histogram| of_workers(node, Scale::Count, of);
    page.sizes("barnabas_worker_turn_commands", &[], &counts(|cells| &cells.turn_commands), 4, 4);
    for thread in threads::threads() {
        let labels = [("thread", &*thread.name)];
        page.value("barnabas_thread_cpu_seconds_total", &labels, seconds(thread.cpu_ns));
    }
    for thread in threads::threads() {
        let labels = [("thread", &*thread.name)];
        page.value("barnabas_thread_runqueue_seconds_total", &labels, seconds(thread.queued_ns));
    }
    page.sizes("barnabas_batch_records", &[], &counts(|cells| &cells.batch_records), 4, 8);
    page.sizes("barnabas_batch_bytes", &[], &counts(|cells| &cells.batch_bytes), 4, 12);
    page.sizes("barnabas_fetch_bytes", &[], &counts(|cells| &cells.fetched), 4, 13);
}
