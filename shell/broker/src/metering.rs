//! Where the time goes: what the node counts of itself while it works, always, and who may read it.
//!
//! | file | answers |
//! |---|---|
//! | `metering/histogram.rs` | how often which value came |
//! | `metering/requests.rs` | into which phases is a request's latency cut |
//! | `metering/tracks.rs` | which of a connection's requests are under way, and since when |
//! | `metering/recorder.rs` | what does a worker count, and where |
//! | `metering/storage.rs` | what do the journal's and the committer's threads count |
//! | `metering/clients.rs` | which client ids have figures of their own |
//! | `metering/threads.rs` | how much CPU has each thread taken; what does the process hold |
//! | `metering/families.rs` | every metric: name, type, labels, Kafka's name, meaning (docs/METRICS.md) |
//! | `metering/text.rs` | how is that written for Prometheus |
//! | `metering/collect/` | which values do the metrics have now |
//! | `metering/lag.rs` | how far behind are groups |
//! | `metering/reader.rs` | the thread that collects, for whoever asks |
//! | `metering/endpoint.rs` | HTTP: `GET /metrics` on `metrics.listener` |
//! | `metering/in_band.rs` | the same through the Kafka protocol, for `barnabas hotspots` |
//!
//! Counting is done by the thread that does the work, in memory that no other thread writes; reading adds the threads up and never
//! stops anybody. What can be had from the system when somebody asks (a thread's CPU time) is not counted at all.
//!
//! meter.rs keeps the plain counters of rare things.

pub mod clients;
pub mod collect;
pub mod endpoint;
pub mod families;
pub mod histogram;
pub mod in_band;
pub mod lag;
pub mod reader;
pub mod recorder;
pub mod requests;
pub mod storage;
pub mod text;
pub mod threads;
pub mod tracks;

pub use recorder::{Recorder, WorkerCells};
pub use requests::{AppendTimes, Passed, RoundTimes, Stamp, Track};
pub use tracks::Tracks;

use crate::replica::arrivals::Standing;
use clients::Clients;
use recorder::ClientCounts;
use std::sync::Arc;

/// All of a node's cells.
#[derive(Debug)]
pub struct Metering {
    workers: Vec<Arc<WorkerCells>>,
    clients: Clients,
    reader: reader::Handle,
}

impl Metering {
    pub fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| Arc::new(WorkerCells::new())).collect();
        Self { workers, clients: Clients::default(), reader: reader::Handle::default() }
    }

    /// The pen of a worker; to be asked for once by each.
    pub fn recorder(&self, worker: usize) -> Recorder {
        Recorder::new(self.workers[worker].clone())
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
    pub fn arriving(&self) -> Standing {
        let sum = |of: fn(&WorkerCells) -> u64| self.workers.iter().map(|cells| of(cells)).sum();
        Standing {
            replicas: sum(|cells| cells.arriving.get()),
            records_left: sum(|cells| cells.arriving_left.get()),
            came: sum(|cells| cells.arrived.get()),
        }
    }

    /// For how long a worker did not wait for something to do. Its runtime counts that anyway.
    fn busy(&self, worker: usize) -> std::time::Duration {
        let metrics = self.workers[worker].runtime.get();
        metrics.map_or_else(Default::default, |metrics| metrics.worker_total_busy_duration(0))
    }

    /// Lets the thread end that collects.
    pub fn stop(&self) {
        self.reader.stop();
    }

    fn client(&self, at: u16) -> ClientCounts {
        let mut counts = ClientCounts::default();
        self.workers.iter().filter_map(|worker| worker.client(at)).for_each(|cells| counts.add(cells));
        counts
    }
}
