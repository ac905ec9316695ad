//! How large must a cluster be: partitions, consumers, disks, network and nodes, with the arithmetic.
//!
//! Every figure comes with the line that computes it, so that a reader can put another number in. What was not given is
//! assumed, and says so.
//!
//! Source: Little's law (L = λ · W): as many consumers are busy as records come in the time that one of them takes.

use crate::rules::words::{bytes, span};

const MIB: f64 = 1_048_576.0;
/// A log directory's journal.
const JOURNAL_BYTES: f64 = 256.0 * MIB;
/// Of a network interface, with one node gone.
const NETWORK_SHARE: f64 = 0.8;
const NODES_MAX: u32 = 1000;

/// What is known of the load and of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Records a second, on average.
    pub rate: f64,
    pub record_bytes: f64,
    /// What one consumer takes for a record.
    pub handling_ms: f64,
    pub retention_h: f64,
    pub replication: u32,
    /// Consumer groups that read everything.
    pub groups: u32,
    /// The busiest rate by the average.
    pub peak: f64,
    /// Compressed by uncompressed bytes.
    pub compression: f64,
    /// Share of the disk that stays free.
    pub headroom: f64,
    /// MiB a second that one partition takes.
    pub partition_mib_s: f64,
    /// MiB a second of a node's network interface, each way.
    pub network_mib_s: f64,
    /// GiB of a node's disks; `None`: as large as it comes out.
    pub disk_gib: Option<f64>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            rate: 0.0,
            record_bytes: 1000.0,
            handling_ms: 1.0,
            retention_h: 168.0,
            replication: 3,
            groups: 1,
            peak: 2.0,
            compression: 1.0,
            headroom: 0.2,
            partition_mib_s: 10.0,
            network_mib_s: 1192.0,
            disk_gib: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    pub consumers: u64,
    pub partitions: u64,
    pub nodes: u32,
    pub disk_bytes: f64,
    pub disk_bytes_node: f64,
    /// Bytes a second of the cluster, at the peak.
    pub network_in: f64,
    pub network_out: f64,
    /// The lines of the arithmetic.
    pub lines: Vec<String>,
}

/// No number of nodes carries this load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLarge;

/// # Errors
/// More than a thousand nodes would be needed.
pub fn size(load: &Load) -> Result<Size, TooLarge> {
    let peak = load.rate * load.peak;
    let consumers = ceil(peak * load.handling_ms / 1000.0).max(1);
    let wire = load.record_bytes * load.compression;
    let by_rate = ceil(peak * wire / (load.partition_mib_s * MIB)).max(1);
    let network_in = peak * wire * f64::from(load.replication);
    let network_out = peak * wire * f64::from(load.replication - 1 + load.groups);
    let kept =
        load.rate * wire * load.retention_h * 3600.0 * f64::from(load.replication) / (1.0 - load.headroom);
    let nodes = nodes(load, network_in.max(network_out), kept).ok_or(TooLarge)?;
    let partitions = consumers.max(by_rate).next_multiple_of(u64::from(nodes));
    let disk_bytes = kept + JOURNAL_BYTES * f64::from(nodes);
    let mut size = Size {
        consumers,
        partitions,
        nodes,
        disk_bytes,
        disk_bytes_node: disk_bytes / f64::from(nodes),
        network_in,
        network_out,
        lines: Vec::new(),
    };
    size.lines = lines(load, &size, by_rate);
    Ok(size)
}

fn ceil(number: f64) -> u64 {
    // A hair above a whole number is the whole number: 3000 × 0.02 is 60.
    (number - 1e-9).ceil().max(0.0) as u64
}

/// As many nodes as the replicas need, the network with one node gone, and the disks.
fn nodes(load: &Load, network: f64, kept: f64) -> Option<u32> {
    (load.replication.max(1)..=NODES_MAX).find(|nodes| {
        let left = f64::from((nodes - 1).max(1));
        let fits_network = network / left <= load.network_mib_s * MIB * NETWORK_SHARE;
        let room = load.disk_gib.map(|gib| gib * 1024.0 * MIB - JOURNAL_BYTES);
        fits_network && room.is_none_or(|room| kept / f64::from(*nodes) <= room)
    })
}

fn lines(load: &Load, size: &Size, by_rate: u64) -> Vec<String> {
    let Load { rate, peak, record_bytes, compression, handling_ms, replication, groups, .. } = load;
    let left = f64::from((size.nodes - 1).max(1));
    let busiest = size.network_in.max(size.network_out) / left;
    let wire = record_bytes * compression;
    // What is not needed for new records catches up, from one replica to one group.
    let spare = load.network_mib_s * MIB * NETWORK_SHARE * f64::from(size.nodes) - size.network_out;
    let behind = rate * wire * f64::from(*groups);
    vec![
        format!(
            "consumers   {rate} records/s × peak {peak} × {handling_ms} ms = {} busy at a time (Little's law)",
            size.consumers
        ),
        format!(
            "partitions  the larger of {} consumers and {rate}/s × {peak} × {wire:.0} B ÷ {} MiB/s of a partition = {by_rate}, in multiples of {} nodes: {}",
            size.consumers, load.partition_mib_s, size.nodes, size.partitions
        ),
        format!(
            "disk        {rate}/s × {record_bytes} B × compression {compression} × {} h × {replication} replicas ÷ (1 − headroom {}) + {} journals of 256 MiB = {}, {} a node",
            load.retention_h,
            load.headroom,
            size.nodes,
            bytes(size.disk_bytes),
            bytes(size.disk_bytes_node)
        ),
        format!(
            "network in  {rate}/s × {peak} × {wire:.0} B × {replication} replicas = {}/s",
            bytes(size.network_in)
        ),
        format!(
            "network out {rate}/s × {peak} × {wire:.0} B × ({replication} − 1 + {groups} groups) = {}/s",
            bytes(size.network_out)
        ),
        format!(
            "nodes       {}: with one gone the busier way is {}/s a node, {:.0} % of {} MiB/s (at most {:.0} %)",
            size.nodes,
            bytes(busiest),
            busiest / (load.network_mib_s * MIB) * 100.0,
            load.network_mib_s,
            NETWORK_SHARE * 100.0
        ),
        format!(
            "catching up after an outage of 1 h of all groups: 1 h × {}/s ÷ {}/s to spare = {}",
            bytes(behind),
            bytes(spare.max(0.0)),
            if spare > 0.0 { span(3_600_000.0 * behind / spare) } else { "never".to_owned() }
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn littles_law_gives_the_consumers() {
        let load = Load { rate: 3000.0, peak: 1.0, handling_ms: 20.0, ..Load::default() };
        let size = size(&load).expect("a size");
        assert_eq!((size.consumers, size.partitions, size.nodes), (60, 60, 3));
        assert!(size.lines[0].contains("3000 records/s × peak 1 × 20 ms = 60 busy"), "{}", size.lines[0]);
    }

    #[test]
    fn partitions_follow_the_bytes_where_consumers_are_fast() {
        let load =
            Load { rate: 100_000.0, peak: 1.0, handling_ms: 0.01, record_bytes: 1048.576, ..Load::default() };
        // 100 MiB/s by 10 MiB/s of a partition are 10, in multiples of three.
        assert_eq!(size(&load).expect("a size").partitions, 12);
    }

    #[test]
    fn disk_is_what_retention_keeps_with_headroom() {
        let load = Load {
            rate: 1000.0,
            record_bytes: 1000.0,
            retention_h: 1.0,
            compression: 0.5,
            ..Load::default()
        };
        let size = size(&load).expect("a size");
        // 1000 × 1000 × 0.5 × 3600 × 3 ÷ 0.8
        let kept = 6_750_000_000.0;
        assert!((size.disk_bytes - kept - 3.0 * JOURNAL_BYTES).abs() < 1.0, "{}", size.disk_bytes);
    }

    #[test]
    fn nodes_follow_network_and_disks() {
        let load = Load { rate: 1_000_000.0, peak: 1.0, network_mib_s: 1000.0, groups: 2, ..Load::default() };
        // Out: 1 GB/s × 4 = 3815 MiB/s over 800 MiB/s a node are 5, and one may be gone.
        assert_eq!(size(&load).expect("a size").nodes, 6);
        let small = Load { disk_gib: Some(1.0), rate: 1.0, retention_h: 0.0, ..Load::default() };
        assert_eq!(size(&small).expect("a size").nodes, 3);
        let never = Load { disk_gib: Some(0.1), ..small };
        assert_eq!(size(&never), Err(TooLarge));
    }
}
