//! The metrics page of this node: what the threads have counted (shell/metrics), and what only the node's own state
//! says.
//!
//! | file | answers |
//! |---|---|
//! | `exporter/collect/` | which values do the metrics have now |
//! | `exporter/doctor.rs` | what do two pages show to be wrong |
//! | `exporter/lag.rs` | how far behind are groups |
//! | `exporter/otlp.rs` | who gets the metrics without asking |
//!
//! requests/cluster/metrics_in_band.rs gives the same page through the Kafka protocol, for `barnabas hotspots`.

pub mod collect;
pub mod doctor;
pub mod lag;
pub mod otlp;

use crate::node::Node;
use barnabas_metrics::reader;
use collect::Collector;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Starts the thread that collects for readers.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    let mut collector = Collector::new()?;
    let handle = node.workers.metering.reader().clone();
    reader::start(&handle, move |detail| collector.collect(&node, detail))
}
