//! Where the time goes: what the node counts of itself while it works, always, and who may read it.
//!
//! | file | answers |
//! |---|---|
//! | `histogram.rs` | how often which value came |
//! | `requests.rs` | into which phases is a request's latency cut |
//! | `tracks.rs` | which of a connection's requests are under way, and since when |
//! | `spans.rs` | which requests are pushed as spans, and who asked |
//! | `recorder.rs` | what does a worker count, and where |
//! | `topics.rs` | which topics have figures of their own |
//! | `storage.rs` | what do the journal's and the committer's threads count |
//! | `counters.rs` | how often did rare things happen |
//! | `clients.rs` | which client ids have figures of their own |
//! | `threads.rs` | how much CPU has each thread taken; what does the process hold |
//! | `reader.rs` | the thread that collects when a reader asks |
//! | `endpoint.rs` | HTTP: `GET /metrics` on `metrics.listener` |
//!
//! The thread that does the work counts, in memory that no other thread writes. Reading adds the threads up and stops
//! none of them. What the system knows at any time (a thread's CPU time) is not counted at all.
//!
//! Which metrics there are, and how they are written: core/exposition.
//!
//! Knows nothing of the broker: shell/broker/src/server/exporter.rs collects the values that a page shows.

pub mod clients;
pub mod counters;
pub mod endpoint;
pub mod histogram;
pub mod reader;
pub mod recorder;
pub mod requests;
pub mod spans;
pub mod storage;
pub mod threads;
pub mod topics;
pub mod tracks;

pub use barnabas_clock::Stamp;
pub use barnabas_exposition::{families, names, text};
pub use counters::{Counter, Meter};
pub use reader::Detail;
pub use recorder::{Recorder, WorkerCells};
pub use requests::{AppendTimes, Passed, RoundTimes, Track};
pub use tracks::Tracks;

use barnabas_base::Text;
use clients::Clients;
use recorder::ClientCounts;
use spans::{Sampler, Samples};
use std::sync::Arc;
use topics::{TopicPen, Topics};

/// Replicas that a reassignment brings to this node, at a moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Arriving {
    pub replicas: u64,
    pub records_left: u64,
    /// Since the start.
    pub came: u64,
}

/// All of a node's cells.
#[derive(Debug)]
pub struct Metering {
    workers: Vec<Arc<WorkerCells>>,
    clients: Clients,
    topics: Arc<Topics>,
    reader: Arc<reader::Handle>,
    samples: Option<Arc<Samples>>,
}

impl Metering {
    /// `topics_max`: topics with figures of their own. `samples`: where requests are put that are pushed as spans.
    pub fn new(workers: usize, topics_max: usize, samples: Option<Arc<Samples>>) -> Self {
        let topics = Arc::new(Topics::new(workers, topics_max));
        let workers = (0..workers).map(|_| Arc::new(WorkerCells::default())).collect();
        Self { workers, clients: Clients::default(), topics, reader: Arc::default(), samples }
    }

    /// The pen of a worker; to be asked for once by each.
    pub fn recorder(&self, worker: usize) -> Recorder {
        let seed = Stamp::now().0.rotate_left(32) ^ (worker as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sampler = self.samples.clone().map(|samples| Sampler::new(samples, seed));
        Recorder::new(self.workers[worker].clone(), TopicPen::new(self.topics.clone(), worker), sampler)
    }

    /// Requests that are pushed as spans; `None`: none are.
    pub fn samples(&self) -> Option<&Arc<Samples>> {
        self.samples.as_ref()
    }

    /// What is counted by topic.
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// The place of a client id that a connection names, until [`Metering::client_left`].
    pub fn client_came(&self, id: Option<&str>) -> u16 {
        self.clients.enter(id, |at| self.client(at))
    }

    pub fn client_left(&self, at: u16) {
        self.clients.leave(at);
    }

    /// How many connections a worker serves.
    pub fn connections(&self, worker: usize) -> u64 {
        let cells = &self.workers[worker];
        cells.connected.get().saturating_sub(cells.disconnected.get())
    }

    /// Replicas that a reassignment brings here, of all workers.
    pub fn arriving(&self) -> Arriving {
        let sum = |of: fn(&WorkerCells) -> u64| self.workers.iter().map(|cells| of(cells)).sum();
        Arriving {
            replicas: sum(|cells| cells.arriving.get()),
            records_left: sum(|cells| cells.arriving_left.get()),
            came: sum(|cells| cells.arrived.get()),
        }
    }

    /// Each worker's cells.
    pub fn workers(&self) -> &[Arc<WorkerCells>] {
        &self.workers
    }

    /// Every client id with its own figures; `None`: all others.
    pub fn clients(&self) -> Vec<(Option<Text>, ClientCounts)> {
        self.clients.each(|at| self.client(at))
    }

    /// Where to ask for the page.
    pub fn reader(&self) -> &Arc<reader::Handle> {
        &self.reader
    }

    /// For how long a worker did not wait for something to do. Its runtime counts that anyway.
    pub fn busy(&self, worker: usize) -> std::time::Duration {
        let metrics = self.workers[worker].runtime.get();
        metrics.map_or_else(Default::default, |metrics| metrics.worker_total_busy_duration(0))
    }

    /// Ends the thread that collects.
    pub fn stop(&self) {
        self.reader.stop();
    }

    fn client(&self, at: u16) -> ClientCounts {
        let mut counts = ClientCounts::default();
        self.workers.iter().filter_map(|worker| worker.client(at)).for_each(|cells| counts.add(cells));
        counts
    }
}
