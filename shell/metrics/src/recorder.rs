//! The metrics of one worker: written by its own thread alone.
//!
//! A request costs about ten histogram entries when its answer is written, a turn of the worker two clock readings. The
//! cells of an API or a client are made when the first of its requests comes: an idle node has none.

use crate::histogram::{Cell, Counts, Histogram, Scale};
use crate::requests::{PHASES, Phase, Track, spans};
use crate::spans::Sampler;
use crate::topics::{TopicCells, TopicPen};
use barnabas_base::TopicId;
use barnabas_clock::Stamp;
use barnabas_coordinator::GroupCounts;
use barnabas_wire::ApiKey;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::runtime::RuntimeMetrics;

/// Client ids with figures of their own.
pub const CLIENTS_MAX: usize = 64;

/// A place for each number that Kafka has given to an API.
const APIS: usize = ApiKey::ALL[ApiKey::ALL.len() - 1].number() as usize + 1;
/// The place of followers' fetches: they are told apart from consumers'.
const FOLLOWERS: usize = APIS;
/// More versions than any API has: Produce and Fetch have 13 and 18.
const VERSIONS: usize = 24;
/// The kinds of requests that a client's are told apart by.
pub const KINDS: usize = 3;
pub const KIND_NAMES: [&str; KINDS] = ["Produce", "Fetch", "other"];

/// What is counted of groups: Kafka's names.
pub const GROUP_COUNTS: [&str; 7] = [
    "offset_commit_count",
    "offset_expiration_count",
    "offset_deletion_count",
    "group_completed_rebalance_count",
    "consumer_group_rebalance_count",
    "share_group_rebalance_count",
    "streams_group_rebalance_count",
];

fn kind_of(api: ApiKey) -> usize {
    match api {
        ApiKey::Produce => 0,
        ApiKey::Fetch => 1,
        _ => 2,
    }
}

/// One API's requests on one worker.
#[derive(Debug)]
pub struct ApiCells {
    pub versions: [Cell; VERSIONS],
    /// Of whole requests, with their lengths.
    pub bytes: Histogram,
    pub total: Histogram,
    /// [`Phase::is_local`] together, and [`Phase::is_remote`].
    pub local: Histogram,
    pub remote: Histogram,
    pub phases: [Histogram; PHASES],
}

impl ApiCells {
    fn new() -> Self {
        let time = || Histogram::new(Scale::Nanoseconds);
        Self {
            versions: std::array::from_fn(|_| Cell::default()),
            bytes: Histogram::new(Scale::Count),
            total: time(),
            local: time(),
            remote: time(),
            phases: std::array::from_fn(|_| time()),
        }
    }
}

/// One client id's requests on one worker.
#[derive(Debug)]
pub struct ClientCells {
    requests: [Cell; KINDS],
    bytes_in: Cell,
    bytes_out: Cell,
    phases: [[Cell; PHASES]; KINDS],
    latency: [Histogram; KINDS],
}

impl Default for ClientCells {
    fn default() -> Self {
        Self {
            requests: Default::default(),
            bytes_in: Cell::default(),
            bytes_out: Cell::default(),
            phases: Default::default(),
            latency: std::array::from_fn(|_| Histogram::new(Scale::Nanoseconds)),
        }
    }
}

impl ClientCells {
    #[cfg(test)]
    pub fn one_more(&self, kind: usize) {
        self.requests[kind].add(1);
    }

    /// One request of this kind; what its phases took is added by the caller, who goes through them anyway.
    fn count(&self, kind: usize, track: &Track, total_ns: u64) -> &[Cell; PHASES] {
        self.requests[kind].add(1);
        self.bytes_in.add(track.bytes.into());
        self.bytes_out.add(track.bytes_out);
        self.latency[kind].record(total_ns);
        &self.phases[kind]
    }
}

/// A client's figures of all workers.
#[derive(Debug, Clone)]
pub struct ClientCounts {
    pub requests: [u64; KINDS],
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub phases: [[u64; PHASES]; KINDS],
    pub latency: [Counts; KINDS],
}

impl Default for ClientCounts {
    fn default() -> Self {
        Self {
            requests: [0; KINDS],
            bytes_in: 0,
            bytes_out: 0,
            phases: [[0; PHASES]; KINDS],
            latency: std::array::from_fn(|_| Counts::new(Scale::Nanoseconds)),
        }
    }
}

impl ClientCounts {
    pub fn add(&mut self, cells: &ClientCells) {
        self.bytes_in += cells.bytes_in.get();
        self.bytes_out += cells.bytes_out.get();
        for kind in 0..KINDS {
            self.requests[kind] += cells.requests[kind].get();
            self.latency[kind].add(&cells.latency[kind]);
            for phase in 0..PHASES {
                self.phases[kind][phase] += cells.phases[kind][phase].get();
            }
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add, Counts::merge);
    }

    pub fn since(&self, earlier: &Self) -> Self {
        let mut left = self.clone();
        left.combine(earlier, u64::saturating_sub, |mine, theirs| *mine = mine.since(theirs));
        left
    }

    fn combine(&mut self, other: &Self, number: fn(u64, u64) -> u64, counts: fn(&mut Counts, &Counts)) {
        self.bytes_in = number(self.bytes_in, other.bytes_in);
        self.bytes_out = number(self.bytes_out, other.bytes_out);
        for kind in 0..KINDS {
            self.requests[kind] = number(self.requests[kind], other.requests[kind]);
            counts(&mut self.latency[kind], &other.latency[kind]);
            for phase in 0..PHASES {
                self.phases[kind][phase] = number(self.phases[kind][phase], other.phases[kind][phase]);
            }
        }
    }
}

/// One worker's cells, as everybody may read them.
#[derive(Debug)]
pub struct WorkerCells {
    apis: [OnceLock<Box<ApiCells>>; APIS + 1],
    clients: [OnceLock<Box<ClientCells>>; CLIENTS_MAX + 1],
    /// Requests that were started, and those that are answered or given up.
    pub started: Cell,
    pub ended: Cell,
    /// Connections that this worker began to serve, and those that it serves no more.
    pub connected: Cell,
    pub disconnected: Cell,
    pub bytes_in: Cell,
    pub bytes_out: Cell,
    /// Commands that a turn took from the mailbox.
    pub turn_commands: Histogram,
    pub turns: Histogram,
    pub write_backs: Histogram,
    pub batch_records: Histogram,
    pub batch_bytes: Histogram,
    /// Records' bytes that consumers were given, for each request.
    pub fetched: Histogram,
    /// Partitions of Produce requests that ask for less than `acks=all`.
    pub produces_weak: Cell,
    pub segments_deleted: Cell,
    /// What of all topics no histogram above counts.
    pub topics: TopicCells,
    /// Of the coordinators, as of a few seconds ago.
    pub groups: Cell,
    pub group_offsets: Cell,
    /// What happened in the coordinators, by [`GROUP_COUNTS`].
    pub group_counts: [Cell; GROUP_COUNTS.len()],
    /// Of share groups: records in flight and the entries that keep them, as of a few seconds ago.
    pub share_records: Cell,
    pub share_batches: Cell,
    /// Records' bytes that came from leaders, and that went to followers.
    pub replicated_in: Cell,
    pub replicated_out: Cell,
    /// Replicas that a reassignment brings here, the records that they lack still, and those that have come.
    pub arriving: Cell,
    pub arriving_left: Cell,
    pub arrived: Cell,
    /// What the replica here that lacks most of its leader's records lacks of them.
    pub behind_most: Cell,
    pub runtime: OnceLock<RuntimeMetrics>,
}

impl Default for WorkerCells {
    fn default() -> Self {
        let (time, count) = (|| Histogram::new(Scale::Nanoseconds), || Histogram::new(Scale::Count));
        Self {
            apis: std::array::from_fn(|_| OnceLock::new()),
            clients: std::array::from_fn(|_| OnceLock::new()),
            started: Cell::default(),
            ended: Cell::default(),
            connected: Cell::default(),
            disconnected: Cell::default(),
            bytes_in: Cell::default(),
            bytes_out: Cell::default(),
            turn_commands: count(),
            turns: time(),
            write_backs: time(),
            batch_records: count(),
            batch_bytes: count(),
            fetched: count(),
            produces_weak: Cell::default(),
            segments_deleted: Cell::default(),
            topics: TopicCells::default(),
            groups: Cell::default(),
            group_offsets: Cell::default(),
            group_counts: Default::default(),
            share_records: Cell::default(),
            share_batches: Cell::default(),
            replicated_in: Cell::default(),
            replicated_out: Cell::default(),
            arriving: Cell::default(),
            arriving_left: Cell::default(),
            arrived: Cell::default(),
            behind_most: Cell::default(),
            runtime: OnceLock::new(),
        }
    }
}

impl WorkerCells {
    /// A Fetch: of consumers.
    pub fn api(&self, api: ApiKey) -> Option<&ApiCells> {
        self.apis[api.number() as usize].get().map(|cells| &**cells)
    }

    /// The fetches of followers.
    pub fn followers(&self) -> Option<&ApiCells> {
        self.apis[FOLLOWERS].get().map(|cells| &**cells)
    }

    pub fn client(&self, at: u16) -> Option<&ClientCells> {
        self.clients.get(usize::from(at))?.get().map(|cells| &**cells)
    }
}

/// What a Fetch was answered for one topic.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    pub partitions: u64,
    /// Of these, those with an error.
    pub failed: u64,
    /// To consumers.
    pub bytes_out: u64,
}

/// The pen: one for each worker, and it stays on its thread.
#[derive(Debug)]
pub struct Recorder {
    cells: Arc<WorkerCells>,
    topics: TopicPen,
    /// Chooses requests that are pushed as spans.
    sampler: Option<Sampler>,
    /// Cells have one writer.
    _stays: PhantomData<std::cell::Cell<()>>,
}

impl Recorder {
    pub fn new(cells: Arc<WorkerCells>, topics: TopicPen, sampler: Option<Sampler>) -> Self {
        Self { cells, topics, sampler, _stays: PhantomData }
    }

    /// Its cells, for what is counted in one place only.
    pub fn cells(&self) -> &WorkerCells {
        &self.cells
    }

    /// `None`: no request is pushed as a span.
    pub fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_ref()
    }

    /// A request's answer is with the socket.
    pub fn answered(&self, track: &Track, written: Stamp) {
        let (spans, total) = (spans(track, written), written.since(track.read));
        let place = if track.is_follower { FOLLOWERS } else { track.api.number() as usize };
        let api = self.cells.apis[place].get_or_init(|| Box::new(ApiCells::new()));
        let client = self.cells.clients[usize::from(track.client).min(CLIENTS_MAX)].get_or_init(Box::default);
        api.versions[usize::try_from(track.version).unwrap_or(0).min(VERSIONS - 1)].add(1);
        api.bytes.record(track.bytes.into());
        let of_client = client.count(kind_of(track.api), track, total);
        let (mut local, mut remote) = (0, 0);
        for phase in Phase::ALL {
            let span = spans[phase as usize];
            if span > 0 {
                api.phases[phase as usize].record(span);
                of_client[phase as usize].add(span);
                local += if phase.is_local() { span } else { 0 };
                remote += if phase.is_remote() { span } else { 0 };
            }
        }
        api.local.record(local);
        if remote > 0 {
            api.remote.record(remote);
        }
        api.total.record(total);
    }

    /// The worker looked after its partitions once.
    pub fn turn(&self, begun: Stamp, commands: usize) {
        self.cells.turns.record(Stamp::now().since(begun));
        if commands > 0 {
            self.cells.turn_commands.record(commands as u64);
        }
    }

    /// More of what happened in the coordinators.
    pub fn group_counts(&self, counts: &GroupCounts) {
        let GroupCounts {
            offset_commits,
            offset_expirations,
            offset_deletions,
            classic_rebalances,
            consumer_rebalances,
            share_rebalances,
            streams_rebalances,
        } = *counts;
        let all = [
            offset_commits,
            offset_expirations,
            offset_deletions,
            classic_rebalances,
            consumer_rebalances,
            share_rebalances,
            streams_rebalances,
        ];
        self.cells.group_counts.iter().zip(all).for_each(|(cell, more)| cell.add(more));
    }

    /// Retention has taken these files out of a log.
    pub fn retained(&self, files: &[PathBuf]) {
        let name =
            |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().contains(".log"));
        self.cells.segments_deleted.add(files.iter().filter(|file| name(file)).count() as u64);
    }

    /// A batch was given its offsets.
    pub fn batch(&self, topic: TopicId, records: u64, bytes: usize) {
        self.cells.batch_records.record(records);
        self.cells.batch_bytes.record(bytes as u64);
        self.topics.count(topic, |cells| {
            cells.messages_in.add(records);
            cells.bytes_in.add(bytes as u64);
        });
    }

    /// A Produce request names a partition of this topic.
    pub fn produced(&self, topic: TopicId) {
        self.topic(topic, |cells| cells.produces.add(1));
    }

    /// A Produce request with so many partitions asks for less than `acks=all`.
    pub fn produced_weakly(&self, partitions: u64) {
        self.cells.produces_weak.add(partitions);
    }

    /// A batch of a Produce request was refused.
    pub fn refused(&self, topic: TopicId) {
        self.topic(topic, |cells| cells.produces_failed.add(1));
    }

    /// A batch of so many bytes exceeds `max.message.bytes`.
    pub fn too_large(&self, topic: TopicId, bytes: u64) {
        self.topic(topic, |cells| cells.bytes_rejected.add(bytes));
    }

    /// A Fetch was answered for partitions of this topic.
    pub fn fetched(&self, topic: TopicId, read: &Fetched) {
        self.topic(topic, |cells| {
            cells.fetches.add(read.partitions);
            cells.fetches_failed.add(read.failed);
        });
        // Of all topics, WorkerCells::fetched counts them.
        if read.bytes_out > 0 {
            self.topics.count(topic, |cells| cells.bytes_out.add(read.bytes_out));
        }
    }

    /// Counts for the topic, and for all.
    fn topic(&self, topic: TopicId, count: impl Fn(&TopicCells)) {
        count(&self.cells.topics);
        self.topics.count(topic, count);
    }
}
