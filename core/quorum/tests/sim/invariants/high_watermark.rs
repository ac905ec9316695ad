//! The high watermark never moves back while a node lives, and is never above what is on its disk.

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

pub struct HighWatermark;

impl Invariant for HighWatermark {
    fn name(&self) -> &'static str {
        "the high watermark only rises, on disk"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = &step.after else { return Ok(()) };
        let end = after.high_watermark;
        if let Some(before) = &step.before
            && before.high_watermark > end
        {
            return Err(format!("node {}: from {} back to {end}", step.node, before.high_watermark));
        }
        let disk = &cluster.nodes[&step.node].disk;
        let of_snapshot = disk.snapshots.keys().next_back().map_or(disk.durable.start, |id| id.end);
        if end > disk.durable.end().max(of_snapshot) {
            return Err(format!("node {}: {end} is not on its disk", step.node));
        }
        if end > after.log_end {
            return Err(format!("node {}: {end} is past the log's end {}", step.node, after.log_end));
        }
        Ok(())
    }
}
