//! How far behind groups are, of every kind, in records and in time: looked at when the page is asked for, at most
//! every [`AT_MOST_EVERY`], for [`survey::BUDGET`] at most.
//!
//! A group is looked at where its coordinator is. The end of a log is its high watermark; a record's age counts from
//! the timestamp of the batch that holds the next record to be read. Of a log that is not on this node its leader tells
//! where it ends; ages are not known then.
//!
//! Bounded: 500 groups have series of their own, those with the largest lag. One group is shown whole, up to 10,000
//! partitions, where it is asked for (`/metrics?group=NAME`); all are in the words of other exporters
//! (`lag/exporters.rs`).
//!
//! Neighbours: coordinator_worker/look.rs (what groups have committed), partition_worker/reading/asks.rs (ends, times),
//! share_persister.rs (where share-partitions stand), core/coordinator/src/shard/lag.rs (what of it makes a lag).

mod exporters;
mod survey;
mod times;

use crate::node::Node;
use barnabas_base::Text;
use barnabas_coordinator::GroupKind;
use barnabas_coordinator::lag::{GroupLag, LagSample, PartitionLag, Whole};
use barnabas_metrics::text::Page;
use std::time::{Duration, Instant};
use times::Times;
use tokio::runtime::Runtime;

/// More frequent reads get the same figures again.
const AT_MOST_EVERY: Duration = Duration::from_secs(10);
/// A worker that does not answer holds the page up for this long, no longer.
const GIVE_UP_AFTER: Duration = Duration::from_secs(4);

/// How the names begin that [`Lags::write`] writes.
pub const FAMILIES: &[&str] =
    &["barnabas_group", "kafka_server_group_coordinator_metrics_", "kafka_coordinator_group_"];

/// Keeps the newest look. One for the node, on the reader's thread.
#[derive(Debug)]
pub struct Lags {
    runtime: Runtime,
    newest: Option<(Instant, LagSample)>,
    /// What other exporters' pages were last written from.
    exported: Option<(Instant, exporters::Look)>,
    times: Times,
}

impl Lags {
    /// # Errors
    /// The system gives no event queue.
    pub fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self { runtime, newest: None, exported: None, times: Times::default() })
    }

    /// Looks again, if that is due or a read names a group.
    pub fn follow(&mut self, node: &Node, group: Option<&Text>) {
        let is_fresh = self.newest.as_ref().is_some_and(|(at, _)| barnabas_clock::since(*at) < AT_MOST_EVERY);
        if !node.identity.is_broker || (is_fresh && group.is_none()) {
            return;
        }
        let whole = group.map_or(Whole::None, |group| Whole::One(group.clone()));
        let looked = survey::survey(node, &mut self.times, whole);
        match self.runtime.block_on(async { tokio::time::timeout(GIVE_UP_AFTER, looked).await }) {
            Ok(sample) => self.newest = Some((barnabas_clock::now(), sample)),
            Err(_) => tracing::debug!(
                "the lag of groups was not found out in time: the page shows what was known before"
            ),
        }
    }

    /// `group`: of which the partitions are wanted.
    pub fn write(&self, page: &mut Page, group: Option<&Text>) {
        let Some((at, sample)) = &self.newest else { return };
        write_states(page, sample);
        for kind in GroupKind::ALL {
            let records = sample.records.get(&kind).copied().unwrap_or(0);
            page.count("barnabas_groups_lag", &[("protocol", kind.name())], records);
        }
        for kind in GroupKind::ALL {
            let lagging = sample.lagging.get(&kind).copied().unwrap_or(0);
            page.count("barnabas_groups_lagging", &[("protocol", kind.name())], lagging);
        }
        let each = |page: &mut Page, name: &str, value: fn(&GroupLag) -> Option<f64>| {
            for lag in &sample.shown {
                let labels = [("group", &*lag.group), ("protocol", lag.kind.name())];
                if let Some(value) = value(lag) {
                    page.value(name, &labels, value);
                }
            }
        };
        each(page, "barnabas_group_lag", |lag| Some(lag.records as f64));
        each(page, "barnabas_group_lag_read_committed", |lag| Some(lag.stable as f64));
        each(page, "barnabas_group_lag_max_partition", |lag| Some(lag.most as f64));
        each(page, "barnabas_group_lag_seconds", |lag| lag.age.map(|age| age.as_secs_f64()));
        page.count("barnabas_groups_lag_unlisted", &[], sample.left_out);
        page.count("barnabas_groups_lag_unknown", &[], sample.unseen);
        page.count("barnabas_group_partitions_unknown", &[], sample.unknown);
        page.value("barnabas_group_lag_age_seconds", &[], barnabas_clock::since(*at).as_secs_f64());
        if let Some(group) = group {
            write_whole(page, group, &sample.whole);
        }
    }
}

/// Kafka's own figures of how many groups are in which state.
fn write_states(page: &mut Page, sample: &LagSample) {
    let of = |kind: GroupKind, state| sample.states.get(&(kind, state)).copied().unwrap_or(0);
    for kind in GroupKind::ALL {
        let all = kind.states().iter().map(|state| of(kind, state)).sum();
        let name = "kafka_server_group_coordinator_metrics_group_count";
        page.count(name, &[("protocol", kind.name())], all);
    }
    for kind in GroupKind::ALL {
        let name = format!("kafka_server_group_coordinator_metrics_{}_group_count", kind.name());
        for state in kind.states() {
            page.count(&name, &[("state", state)], of(kind, state));
        }
    }
    page.count("kafka_server_group_coordinator_metrics_offset_count", &[], sample.offsets);
    // As dashboards for Kafka before 4.0 know them.
    for state in GroupKind::Classic.states() {
        let name = format!("kafka_coordinator_group_groupmetadatamanager_numgroups{}", state.to_lowercase());
        page.count(&name, &[], of(GroupKind::Classic, state));
    }
}

fn write_whole(page: &mut Page, group: &Text, partitions: &[PartitionLag]) {
    let each = |page: &mut Page, name: &str, value: fn(&PartitionLag) -> Option<f64>| {
        for lag in partitions.iter().filter(|lag| lag.group == *group) {
            let partition = lag.partition.to_string();
            let labels = [("group", &**group), ("topic", &*lag.topic), ("partition", &*partition)];
            if let Some(value) = value(lag) {
                page.value(name, &labels, value);
            }
        }
    };
    each(page, "barnabas_group_partition_lag", |lag| Some(lag.records as f64));
    each(page, "barnabas_group_partition_lag_seconds", |lag| lag.age.map(|age| age.as_secs_f64()));
}

#[cfg(test)]
mod tests;
