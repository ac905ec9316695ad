//! What a share group knows beside what every group does.
//!
//! Always true (checked by `shard/invariants/share.rs`):
//! 1. the names that are counted are those that members subscribe to
//! 2. nothing is assigned that is not set up

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, MonotonicMs, Text};

use super::Share;
use super::set_up::SetUp;
use crate::framework::weight;
use crate::groups::reconciled::{Names, ReconciledGroup};

pub(crate) type ShareGroup = ReconciledGroup<Share>;

#[derive(Debug, Default)]
pub(crate) struct Own {
    pub set_up: SetUp,
    pub names: Names,
    /// The order that is under way for it.
    pub order: Option<u64>,
    /// The share coordinator had no room for its share-partitions: it is not asked before.
    pub set_up_again_at: MonotonicMs,
}

/// How long the share coordinator is not asked again that had no room for a group's share-partitions.
const SET_UP_AGAIN: DurationMs = DurationMs(5_000);

impl ReconciledGroup<Share> {
    /// What members and share-partitions take, beside the members' structures.
    pub fn bytes(&self) -> usize {
        let members = self.members().values().map(|member| {
            let has = member.assigned.values().map(Vec::len).sum();
            member.said_bytes() + weight::texts(member.own.names.iter()) + weight::partitions(has) * 2
        });
        let SetUp { initialized, initializing, .. } = &self.own.set_up;
        let set_up = initialized
            .values()
            .chain(initializing.values())
            .map(|topic| weight::texts([&topic.name]) + weight::partitions(topic.partitions.len()));
        members.sum::<usize>() + set_up.sum::<usize>()
    }

    /// The share coordinator was asked, and had no room if it `is_full`.
    pub fn wait_for_room(&mut self, is_full: bool, now: MonotonicMs) {
        self.own.set_up_again_at = if is_full { now.plus(SET_UP_AGAIN) } else { now };
    }

    /// Kafka's word for the state it is in.
    pub fn state_name(&self) -> &'static str {
        if self.is_empty() { "Empty" } else { "Stable" }
    }

    /// Subscribed names with how many members name each.
    pub fn names(&self) -> &BTreeMap<Text, usize> {
        self.own.names.counts()
    }
}
