//! The metrics of this moment: adds up what the threads have counted, asks the system and the image for the rest, and
//! writes it down.
//!
//! Runs on the reader's thread. Nothing here stops a worker: cells are read as they stand, so that figures of one page
//! may be some requests apart.

mod cluster;
mod groups;
mod machine;
mod partitions;
mod quorum;
mod requests;
mod storage;
mod telemetry;
mod topics;

use super::lag::{self, Lags};
use crate::node::Node;
use barnabas_base::Offset;
use barnabas_metrics::histogram::{Counts, Scale};
use barnabas_metrics::names::Names;
use barnabas_metrics::recorder::ApiCells;
use barnabas_metrics::requests::PHASES;
use barnabas_metrics::text::Page;
use barnabas_metrics::{Detail, Metering, Stamp};
use barnabas_wire::ApiKey;
use cluster::ClusterCounts;
use std::time::Duration;

/// The quantiles of Kafka's histograms are of the last one to two of these.
const WINDOW: Duration = Duration::from_secs(60);

/// One API's figures of all workers.
#[derive(Debug, Clone)]
struct ApiCounts {
    versions: Vec<u64>,
    bytes: Counts,
    total: Counts,
    local: Counts,
    remote: Counts,
    phases: [Counts; PHASES],
}

impl ApiCounts {
    fn new() -> Self {
        let time = || Counts::new(Scale::Nanoseconds);
        Self {
            versions: Vec::new(),
            bytes: Counts::new(Scale::Count),
            total: time(),
            local: time(),
            remote: time(),
            phases: std::array::from_fn(|_| time()),
        }
    }

    fn of(metering: &Metering, api: ApiKey) -> Option<Self> {
        Self::sum(metering.workers().iter().filter_map(|worker| worker.api(api)))
    }

    fn sum<'a>(cells: impl Iterator<Item = &'a ApiCells>) -> Option<Self> {
        let mut counts: Option<Self> = None;
        for cells in cells {
            let counts = counts.get_or_insert_with(Self::new);
            counts.versions.resize(cells.versions.len(), 0);
            counts.versions.iter_mut().zip(&cells.versions).for_each(|(mine, cell)| *mine += cell.get());
            counts.bytes.add(&cells.bytes);
            counts.total.add(&cells.total);
            counts.local.add(&cells.local);
            counts.remote.add(&cells.remote);
            counts.phases.iter_mut().zip(&cells.phases).for_each(|(mine, cells)| mine.add(cells));
        }
        counts
    }

    fn merge(mut self, other: &Self) -> Self {
        self.versions.resize(self.versions.len().max(other.versions.len()), 0);
        self.versions.iter_mut().zip(&other.versions).for_each(|(mine, theirs)| *mine += theirs);
        self.bytes.merge(&other.bytes);
        self.total.merge(&other.total);
        self.local.merge(&other.local);
        self.remote.merge(&other.remote);
        self.phases.iter_mut().zip(&other.phases).for_each(|(mine, theirs)| mine.merge(theirs));
        self
    }
}

/// Fetches by who sends them.
#[derive(Debug, Default)]
struct Fetches {
    consumers: Option<ApiCounts>,
    followers: Option<ApiCounts>,
}

impl Fetches {
    fn of(metering: &Metering) -> Self {
        let followers = metering.workers().iter().filter_map(|worker| worker.followers());
        Self { consumers: ApiCounts::of(metering, ApiKey::Fetch), followers: ApiCounts::sum(followers) }
    }

    fn all(&self) -> Option<ApiCounts> {
        match (self.consumers.clone(), &self.followers) {
            (Some(consumers), Some(followers)) => Some(consumers.merge(followers)),
            (consumers, followers) => consumers.or_else(|| followers.clone()),
        }
    }
}

/// What recent figures are told from.
#[derive(Debug)]
struct Snapshot {
    at: Stamp,
    /// By [`ApiKey::ALL`]'s places.
    apis: Vec<Option<ApiCounts>>,
    fetches: Fetches,
    /// The metadata quorum's: from a leader's append to its commitment, and from the loss of a leader to the next one.
    commits: Counts,
    elections: Counts,
    /// Journals' rounds and committers' syncs.
    syncs: Counts,
    busy: Duration,
    metadata_end: Offset,
}

impl Snapshot {
    fn of(node: &Node) -> Self {
        let metering = &node.workers.metering;
        let mut syncs = Counts::new(Scale::Nanoseconds);
        for directory in node.log_dirs.directories.iter() {
            syncs.add(&directory.journal.cells().writes);
            syncs.add(&directory.committer.cells().syncs);
        }
        let fetches = Fetches::of(metering);
        let of = |api: &ApiKey| match api {
            ApiKey::Fetch => fetches.all(),
            api => ApiCounts::of(metering, *api),
        };
        let apis = ApiKey::ALL.iter().map(of).collect();
        let figures = node.peers.controller.figures();
        let (commits, elections) = (figures.commits.counts(), figures.elections.counts());
        let busy = (0..node.workers.count).map(|worker| metering.busy(worker)).sum();
        let metadata_end = node.peers.controller.log_end();
        Self { at: Stamp::now(), apis, fetches, commits, elections, syncs, busy, metadata_end }
    }

    fn empty() -> Self {
        let apis = ApiKey::ALL.iter().map(|_| None).collect();
        let none = || Counts::new(Scale::Nanoseconds);
        Self {
            at: Stamp::default(),
            apis,
            fetches: Fetches::default(),
            commits: none(),
            elections: none(),
            syncs: none(),
            busy: Duration::ZERO,
            metadata_end: Offset::ZERO,
        }
    }
}

/// Keeps what was seen before. One for the node, on the reader's thread.
#[derive(Debug)]
pub struct Collector {
    /// Two earlier moments: recent is what came since the first.
    older: Snapshot,
    newer: Snapshot,
    cluster: ClusterCounts,
    lags: Lags,
}

impl Collector {
    /// # Errors
    /// The system gives no event queue.
    pub fn new() -> std::io::Result<Self> {
        let (older, newer) = (Snapshot::empty(), Snapshot::empty());
        Ok(Self { older, newer, cluster: ClusterCounts::default(), lags: Lags::new()? })
    }

    /// The metrics as text.
    pub fn collect(&mut self, node: &Node, detail: &Detail) -> String {
        let mut page = Page::new(detail.form.clone());
        match detail.form.names {
            Names::Exporter => self.lags.write_exporter(&mut page, node),
            Names::LagExporter => self.lags.write_lag_exporter(&mut page, node),
            _ => self.write(&mut page, node, detail),
        }
        page.into_text()
    }

    fn write(&mut self, page: &mut Page, node: &Node, detail: &Detail) {
        let now = Snapshot::of(node);
        topics::write(page, node, !detail.is_fine);
        requests::fetch_sessions(page, node);
        requests::kafka(page, &now, &self.older);
        requests::idle(page, node, &now, &self.older);
        self.cluster.follow(node);
        self.cluster.write(page, node);
        quorum::write(page, node, &now, &self.older);
        groups::write(page, node);
        if !detail.is_fine && detail.form.may_want(lag::FAMILIES) {
            self.lags.follow(node, detail.group.as_ref());
            self.lags.write(page, detail.group.as_ref());
        }
        storage::kafka(page, node, &now, &self.older);
        partitions::write(page, node, detail.topic.as_ref());
        requests::phases(page, node, &now, detail.is_fine);
        requests::clients(page, node, detail.is_fine);
        telemetry::write(page, node, !detail.is_fine);
        requests::links(page, node);
        requests::workers(page, node, detail.is_fine);
        storage::directories(page, node, detail.is_fine);
        storage::process(page, node);
        machine::write(page, node);
        if now.at.since(self.newer.at) >= WINDOW.as_nanos() as u64 {
            self.older = std::mem::replace(&mut self.newer, now);
        }
    }
}
