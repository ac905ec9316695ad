//! Which member is to have what: Kafka's assignors as functions, and the work of large groups as values.
//!
//! | file | answers |
//! |---|---|
//! | `consumer/` | the target of a consumer group: `uniform` and `range` |
//! | `share/` | the target of a share group: `simple` |
//! | `streams/` | the target of a streams group: `sticky`; tasks in their three roles |
//! | `resolve.rs` | which topics a consumer group's expressions match |
//! | `job.rs` | which of that runs away from the shard |
//!
//! Does not know: groups, epochs of members, records. What goes in is a copy of what a group knows at one moment.

mod consumer;
mod job;
mod resolve;
pub(crate) mod share;
pub(crate) mod streams;

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Text, TopicId};

pub(crate) use consumer::{PartitionsJob, Subscriber};
pub use job::{Done, Job};
pub(crate) use job::{Outcome, Work};
pub use resolve::Describable;
pub(crate) use resolve::{Resolved, Resolving, Topics};
pub(crate) use streams::{Target as Tasks, TasksJob};

/// What a member of a consumer or share group is to have: sorted partitions by topic.
pub(crate) type Partitions = BTreeMap<TopicId, Vec<i32>>;

/// Partitions as a record lists them.
pub(crate) fn partitions_from(topics: impl Iterator<Item = (TopicId, Vec<i32>)>) -> Partitions {
    let mut all = Partitions::new();
    for (topic, partitions) in topics {
        all.entry(topic).or_default().extend(partitions);
    }
    for partitions in all.values_mut() {
        partitions.sort_unstable();
        partitions.dedup();
    }
    all.retain(|_, partitions| !partitions.is_empty());
    all
}

/// The target of a member that had another one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewTarget<T> {
    pub member: Text,
    pub instance: Option<Text>,
    pub target: Arc<T>,
}
