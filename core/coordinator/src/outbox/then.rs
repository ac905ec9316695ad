//! What is to happen when a batch is on disk, or lost.

use std::collections::BTreeMap;

use barnabas_base::{ProducerId, Text};
use bytes::Bytes;

use super::effect::ShareStateOrder;
use crate::framework::Record;
use crate::records::{Entry, GroupKind, OffsetKey};
use crate::request::Protocols;

/// What is to happen when a batch is decided.
#[derive(Debug, Default)]
pub(crate) struct Then {
    /// The offsets that the batch changes.
    pub offsets: Vec<OffsetKey>,
    /// The producer, and the offsets that the batch adds to its transaction.
    pub in_transaction: Option<(ProducerId, Vec<OffsetKey>)>,
    /// The producer whose transaction the batch ends, and whether it is committed.
    pub ends: Option<(ProducerId, bool)>,
    pub groups: Vec<GroupThen>,
}

#[derive(Debug)]
pub(crate) enum GroupThen {
    /// A group came into being. It is forgotten if its first record is lost.
    Created(Text),
    /// Entries of a consumer, share or streams group. They are written again if they are lost.
    Written { kind: GroupKind, group: Text, entries: Vec<Entry> },
    /// A consumer group has become a classic one. These tombstones, and the classic group, are written again if they
    /// are lost.
    Downgraded { group: Text, tombstones: Vec<Record> },
    /// To be given out once the records that speak of it are on disk.
    ShareOrdered(ShareStateOrder),
    /// The leader's assignment. The group is stable once it is on disk.
    Assigned { group: Text, generation: i32, assignments: BTreeMap<Text, Bytes> },
    /// A static member came back under a new id while the group was stable (KIP-345).
    Replaced(Box<Replacement>),
}

/// A static member's new id, and what it was before.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub group: Text,
    pub instance: Text,
    pub old_member: Text,
    pub new_member: Text,
    pub old_protocols: Protocols,
    pub old_rebalance_timeout_ms: i32,
    pub old_session_timeout_ms: i32,
    /// The answer to the member once its new id is on disk.
    pub old_leader: Option<Text>,
    pub version: i16,
}
