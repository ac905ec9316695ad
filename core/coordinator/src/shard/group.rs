//! A group of one of the four kinds.

use barnabas_base::{Text, TimestampMs};
use barnabas_wire::messages::GroupRecordValue;

use crate::classic::ClassicGroup;
use crate::consumer::ConsumerGroup;
use crate::framework::Record;
use crate::records::{self, Entry, GroupKind};
use crate::share_group::ShareGroup;
use crate::streams::StreamsGroup;

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
