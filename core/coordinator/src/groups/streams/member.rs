//! One member of a streams group: what it said of itself, and where it stands.
//!
//! A member is one thread of an application; those of one process share state directories, so that a process never runs the same
//! task twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::Text;

use crate::assignment::streams::Held;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberState {
    Stable,
    /// It has something to give up first.
    Unrevoked,
    /// It waits for what others are to give up.
    Unreleased,
    /// Of a later version's making.
    Unknown,
}

impl MemberState {
    pub const fn number(self) -> i8 {
        match self {
            Self::Stable => 1,
            Self::Unrevoked => 2,
            Self::Unreleased => 3,
            Self::Unknown => 127,
        }
    }

    pub const fn from_number(number: i8) -> Self {
        match number {
            1 => Self::Stable,
            2 => Self::Unrevoked,
            3 => Self::Unreleased,
            _ => Self::Unknown,
        }
    }
}

/// Where interactive queries reach a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub host: Text,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamsMember {
    pub id: Text,
    /// `group.instance.id` of a static member.
    pub instance: Option<Text>,
    pub rack: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    pub rebalance_timeout_ms: i32,
    /// Of the topology that it runs; −1: not said yet.
    pub topology_epoch: i32,
    pub process: Text,
    pub endpoint: Option<Endpoint>,
    pub tags: Arc<BTreeMap<Text, Text>>,
    /// 0: about to join. −2: a static member that is away for a moment.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Arc<Held>,
    pub revoking: Arc<Held>,
}

impl StreamsMember {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            instance: None,
            rack: None,
            client_id: Text::default(),
            client_host: Text::default(),
            rebalance_timeout_ms: -1,
            topology_epoch: -1,
            process: Text::default(),
            endpoint: None,
            tags: Arc::default(),
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: Arc::default(),
            revoking: Arc::default(),
        }
    }

    pub fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == assignment_epoch
    }

    /// Moves on to `epoch`, which may be the one it is in.
    pub fn advance(&mut self, epoch: i32) {
        self.previous_epoch = self.epoch;
        self.epoch = epoch;
    }

    /// The epoch in which it was given an active task that it still has.
    pub fn assignment_epoch(&self, subtopology: &str, partition: i32) -> Option<i32> {
        let assigned = self.assigned.epoch(subtopology, partition);
        assigned.or_else(|| self.revoking.epoch(subtopology, partition))
    }
}
