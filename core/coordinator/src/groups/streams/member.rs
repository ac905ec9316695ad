//! What members of streams groups say beside what every member does.
//!
//! A member is one thread of an application; those of one process share state directories, so that a process never runs
//! the same task twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::Text;

use super::Streams;
use crate::groups::reconciled::Member;

/// Where interactive queries reach a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub host: Text,
    pub port: u16,
}

pub(crate) type StreamsMember = Member<Streams>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    /// Of the topology that it runs; −1: not said yet.
    pub topology_epoch: i32,
    pub process: Text,
    pub endpoint: Option<Endpoint>,
    pub tags: Arc<BTreeMap<Text, Text>>,
}

impl Default for Own {
    fn default() -> Self {
        Self { topology_epoch: -1, process: Text::default(), endpoint: None, tags: Arc::default() }
    }
}

impl Member<Streams> {
    /// The epoch in which it was given an active task that it still has.
    pub fn assignment_epoch(&self, subtopology: &str, partition: i32) -> Option<i32> {
        let assigned = self.assigned.epoch(subtopology, partition);
        assigned.or_else(|| self.revoking.epoch(subtopology, partition))
    }
}
