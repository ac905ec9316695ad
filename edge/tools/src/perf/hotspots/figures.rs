//! What happened in a node between two pages of its metrics.

use barnabas_doctor::Scrape;

/// Times of one kind: how many, how long together, and how they are spread.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Times {
    pub count: f64,
    pub seconds: f64,
    /// Bounds with how many were not above them.
    buckets: Vec<(f64, f64)>,
}

impl Times {
    fn between(before: &Scrape, after: &Scrape, name: &str, labels: &[(&str, &str)]) -> Self {
        let grown = |suffix: &str| {
            let name = format!("{name}_{suffix}");
            (after.sum(&name, labels) - before.sum(&name, labels)).max(0.0)
        };
        let earlier = before.buckets(name, labels);
        // A bound that the earlier page lacks was not reached by more than those below it.
        let earlier_at = |bound: f64| {
            let known = earlier.iter().take_while(|(known, _)| *known <= bound).last();
            known.map_or(0.0, |(_, count)| *count)
        };
        let buckets = after.buckets(name, labels);
        let buckets = buckets.into_iter().map(|(bound, count)| (bound, count - earlier_at(bound))).collect();
        Self { count: grown("count"), seconds: grown("sum"), buckets }
    }

    pub fn mean(&self) -> f64 {
        if self.count > 0.0 { self.seconds / self.count } else { 0.0 }
    }

    /// What `share` of them did not exceed, as the bound of its bucket.
    pub fn quantile(&self, share: f64) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        let rank = (self.count * share).ceil();
        let found = self.buckets.iter().find(|(bound, count)| bound.is_finite() && *count >= rank);
        let last = self.buckets.iter().rev().find(|(bound, _)| bound.is_finite());
        found.or(last).map_or(0.0, |(bound, _)| *bound)
    }
}

/// A phase of an API's requests.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOf {
    pub request: String,
    pub phase: String,
    pub times: Times,
}

impl PhaseOf {
    /// Waiting for something to happen that no faster server would bring about: data, a group's members.
    pub fn is_idle(&self) -> bool {
        self.phase == "wait"
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClientOf {
    pub name: String,
    pub requests: f64,
    /// Without [`PhaseOf::is_idle`].
    pub seconds: f64,
    /// Of these, the work of reading and checking its requests.
    pub decide_seconds: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// Produce requests alone, where there are any; else all that are no Fetch; else Fetches.
    pub latency: Times,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThreadOf {
    pub name: String,
    pub cpu_seconds: f64,
    pub queued_seconds: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryOf {
    pub path: String,
    pub writes: Times,
    pub write_bytes: f64,
    pub partitions: f64,
    pub syncs: Times,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerOf {
    pub name: String,
    pub busy_seconds: f64,
    pub turns: Times,
    pub write_back_seconds: f64,
}

/// Everything between two pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub seconds: f64,
    pub requests: f64,
    pub records_in: f64,
    pub batches: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    pub connections: f64,
    pub phases: Vec<PhaseOf>,
    pub clients: Vec<ClientOf>,
    pub threads: Vec<ThreadOf>,
    pub workers: Vec<WorkerOf>,
    pub directories: Vec<DirectoryOf>,
}

impl Figures {
    pub fn between(before: &Scrape, after: &Scrape) -> Self {
        let grown = |name: &str, labels: &[(&str, &str)]| {
            (after.sum(name, labels) - before.sum(name, labels)).max(0.0)
        };
        let topics = |name: &str| grown(&format!("kafka_server_brokertopicmetrics_{name}_total"), &[]);
        let times = |name: &str, labels: &[(&str, &str)]| Times::between(before, after, name, labels);
        Self {
            seconds: grown("barnabas_uptime_seconds", &[]).max(1e-3),
            requests: grown("barnabas_request_seconds_count", &[]),
            records_in: topics("messagesin"),
            batches: grown("barnabas_batch_records_count", &[]),
            bytes_in: topics("bytesin"),
            bytes_out: topics("bytesout"),
            connections: after.sum("barnabas_connections", &[]),
            phases: phases(after, &times),
            clients: clients(after, &grown, &times),
            threads: threads(after, &grown),
            workers: workers(after, &grown, &times),
            directories: directories(after, &grown, &times),
        }
    }

    /// Request time that a faster server would shorten: requests under way, on average, times seconds.
    pub fn busy_request_seconds(&self) -> f64 {
        self.phases.iter().filter(|phase| !phase.is_idle()).map(|phase| phase.times.seconds).sum()
    }

    /// Of that, what went into one of these phases.
    pub fn phase_share(&self, names: &[&str]) -> f64 {
        let of = self.phases.iter().filter(|phase| names.contains(&&*phase.phase));
        share(of.map(|phase| phase.times.seconds).sum(), self.busy_request_seconds())
    }
}

/// 0 where there is nothing to share.
pub fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

type Grown<'a> = &'a dyn Fn(&str, &[(&str, &str)]) -> f64;
type TimesOf<'a> = &'a dyn Fn(&str, &[(&str, &str)]) -> Times;

fn phases(after: &Scrape, times: TimesOf<'_>) -> Vec<PhaseOf> {
    const NAME: &str = "barnabas_request_phase_seconds";
    let counts = after.samples("barnabas_request_phase_seconds_count");
    let mut phases: Vec<PhaseOf> = counts
        .iter()
        .map(|sample| {
            let (request, phase) = (sample.label("request"), sample.label("phase"));
            let times = times(NAME, &[("request", request), ("phase", phase)]);
            PhaseOf { request: request.to_owned(), phase: phase.to_owned(), times }
        })
        .filter(|phase| phase.times.count > 0.0)
        .collect();
    phases.sort_by(|one, other| other.times.seconds.total_cmp(&one.times.seconds));
    phases
}

fn clients(after: &Scrape, grown: Grown<'_>, times: TimesOf<'_>) -> Vec<ClientOf> {
    const PHASES: &str = "barnabas_client_phase_seconds_total";
    let of = |name: String| {
        let client = [("client_id", &*name)];
        let idle = grown(PHASES, &[client[0], ("phase", "wait")]);
        let kinds = ["Produce", "other", "Fetch"]
            .map(|kind| times("barnabas_client_request_seconds", &[client[0], ("request", kind)]));
        ClientOf {
            requests: grown("barnabas_client_requests_total", &client),
            seconds: grown(PHASES, &client) - idle,
            decide_seconds: grown(PHASES, &[client[0], ("phase", "decide")]),
            bytes_in: grown("barnabas_client_bytes_in_total", &client),
            bytes_out: grown("barnabas_client_bytes_out_total", &client),
            latency: kinds.into_iter().find(|times| times.count > 0.0).unwrap_or_default(),
            name,
        }
    };
    let names = after.values("barnabas_client_requests_total", "client_id");
    let mut clients: Vec<ClientOf> =
        names.into_iter().map(of).filter(|client| client.requests > 0.0).collect();
    clients.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    clients
}

fn threads(after: &Scrape, grown: Grown<'_>) -> Vec<ThreadOf> {
    let of = |name: String| ThreadOf {
        cpu_seconds: grown("barnabas_thread_cpu_seconds_total", &[("thread", &name)]),
        queued_seconds: grown("barnabas_thread_runqueue_seconds_total", &[("thread", &name)]),
        name,
    };
    let names = after.values("barnabas_thread_cpu_seconds_total", "thread");
    let mut threads: Vec<ThreadOf> = names.into_iter().map(of).collect();
    threads.sort_by(|one, other| other.cpu_seconds.total_cmp(&one.cpu_seconds));
    threads
}

fn workers(after: &Scrape, grown: Grown<'_>, times: TimesOf<'_>) -> Vec<WorkerOf> {
    let of = |name: String| WorkerOf {
        busy_seconds: grown("barnabas_worker_busy_seconds_total", &[("worker", &name)]),
        turns: times("barnabas_worker_turn_seconds", &[("worker", &name)]),
        write_back_seconds: grown("barnabas_worker_write_back_seconds_sum", &[("worker", &name)]),
        name,
    };
    after.values("barnabas_worker_busy_seconds_total", "worker").into_iter().map(of).collect()
}

fn directories(after: &Scrape, grown: Grown<'_>, times: TimesOf<'_>) -> Vec<DirectoryOf> {
    let of = |path: String| {
        let labels = [("log_directory", &*path)];
        DirectoryOf {
            writes: times("barnabas_journal_write_seconds", &labels),
            write_bytes: grown("barnabas_journal_round_bytes_sum", &labels),
            partitions: grown("barnabas_journal_round_partitions_sum", &labels),
            syncs: times("barnabas_segment_sync_seconds", &labels),
            path,
        }
    };
    after.values("barnabas_journal_queue_bytes", "log_directory").into_iter().map(of).collect()
}
