//! The four kinds of groups: what each is, and what changes it.
//!
//! | folder | whose members |
//! |---|---|
//! | `classic/` | agree on a protocol, and one of them assigns |
//! | `consumer/` | are assigned partitions by the coordinator, each partition to one of them (KIP-848) |
//! | `share/` | read the same partitions together (KIP-932) |
//! | `streams/` | run the tasks of a topology (KIP-1071) |
//! | `reconciled/` | what the last three have in common |
//!
//! Does not know: offsets, other groups, requests that concern several groups. Those are the shard's.

pub(crate) mod classic;
pub(crate) mod consumer;
pub(crate) mod reconciled;
pub(crate) mod share;
pub(crate) mod streams;
pub(crate) mod table_order;

use barnabas_base::{Text, TimestampMs};
use barnabas_wire::messages::GroupRecordValue;

use self::classic::ClassicGroup;
use self::consumer::ConsumerGroup;
use self::share::ShareGroup;
use self::streams::StreamsGroup;
use crate::framework::Record;
use crate::records::{self, Entry, GroupKind};

/// A group of one of the four kinds.
#[derive(Debug)]
pub(crate) enum Group {
    Classic(Box<ClassicGroup>),
    Consumer(Box<ConsumerGroup>),
    Streams(Box<StreamsGroup>),
    Share(Box<ShareGroup>),
}

impl Group {
    /// A group without members.
    pub fn new(kind: GroupKind, id: Text) -> Self {
        match kind {
            GroupKind::Classic => Self::Classic(Box::new(ClassicGroup::new(id, TimestampMs(0)))),
            GroupKind::Consumer => Self::Consumer(Box::new(ConsumerGroup::new(id))),
            GroupKind::Share => Self::Share(Box::new(ShareGroup::new(id))),
            GroupKind::Streams => Self::Streams(Box::new(StreamsGroup::new(id))),
        }
    }

    pub fn kind(&self) -> GroupKind {
        match self {
            Self::Classic(_) => GroupKind::Classic,
            Self::Consumer(_) => GroupKind::Consumer,
            Self::Share(_) => GroupKind::Share,
            Self::Streams(_) => GroupKind::Streams,
        }
    }

    pub fn id(&self) -> &Text {
        match self {
            Self::Classic(group) => &group.id,
            Self::Consumer(group) => &group.id,
            Self::Share(group) => &group.id,
            Self::Streams(group) => &group.id,
        }
    }

    /// What its members take in memory beside their structures, and how many they are.
    pub fn weight(&self) -> (usize, usize) {
        match self {
            Self::Classic(group) => (group.bytes(), group.members.len() + group.pending_members.len()),
            Self::Consumer(group) => (group.bytes(), group.members().len()),
            Self::Share(group) => (group.bytes(), group.members().len()),
            Self::Streams(group) => (group.memory_bytes(), group.members().len()),
        }
    }

    /// Applies a record of the log, while loading. A classic group is replaced as a whole instead.
    pub fn replay(&mut self, entry: Entry, value: GroupRecordValue) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(group) => group.replay(entry, value),
            Self::Share(group) => group.replay(entry, value),
            Self::Streams(group) => group.replay(entry, value),
        }
    }

    /// Likewise a tombstone, but for the one that ends the group.
    pub fn replay_tombstone(&mut self, entry: &Entry) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(group) => group.replay_tombstone(entry),
            Self::Share(group) => group.replay_tombstone(entry),
            Self::Streams(group) => group.replay_tombstone(entry),
        }
    }

    /// The records that end the group.
    pub fn tombstones(&self) -> Vec<Record> {
        match self {
            Self::Classic(group) => vec![records::group_tombstone(&group.id)],
            Self::Consumer(group) => group.tombstones(),
            Self::Share(group) => group.tombstones(),
            Self::Streams(group) => group.tombstones(),
        }
    }
}
