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

use barnabas_base::{Map, Text, TimestampMs};
use barnabas_wire::Str;
use barnabas_wire::messages::GroupRecordValue;
use barnabas_wire::messages::list_groups_response::ListedGroup;

use self::classic::ClassicGroup;
use self::consumer::{Consumer, ConsumerGroup};
use self::reconciled::{Kind, ReconciledGroup, Records, Refused, not_found, wrong_kind};
use self::share::{Share, ShareGroup};
use self::streams::{Streams, StreamsGroup};
use crate::framework::Record;
use crate::outbox::Outbox;
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

    /// How many members it has.
    pub fn members(&self) -> usize {
        match self {
            Self::Classic(group) => group.members.len(),
            Self::Consumer(group) => group.members().len(),
            Self::Share(group) => group.members().len(),
            Self::Streams(group) => group.members().len(),
        }
    }

    /// Kafka's word for the state it is in.
    pub fn state_name(&self) -> &'static str {
        match self {
            Self::Classic(group) => group.state.name(),
            Self::Consumer(group) => group.progress(),
            Self::Share(group) => group.state_name(),
            Self::Streams(group) => group.state_name(),
        }
    }

    /// For ListGroups.
    pub fn list(&self) -> ListedGroup {
        let kind = self.kind().name();
        let protocol_type = match self {
            Self::Classic(group) => group.protocol_type.as_ref().map(Str::from).unwrap_or_default(),
            Self::Consumer(_) | Self::Share(_) | Self::Streams(_) => kind.into(),
        };
        ListedGroup {
            group_id: Str::from(self.id()),
            protocol_type,
            group_state: self.state_name().into(),
            group_type: kind.into(),
            ..Default::default()
        }
    }

    /// The group is going: nothing is waited for any more.
    pub fn forget_timers(&mut self, out: &mut Outbox) {
        match self {
            Self::Classic(group) => classic::forget_timers(group, out),
            Self::Consumer(group) => group.forget_timers(out),
            Self::Share(group) => group.forget_timers(out),
            Self::Streams(group) => group.forget_timers(out),
        }
    }

    /// What its members take in memory beside their structures, and how many they are.
    pub fn weight(&self) -> (usize, usize) {
        match self {
            Self::Classic(group) => (group.bytes(), group.members.len() + group.pending_members.len()),
            Self::Consumer(group) => (group.bytes(), self.members()),
            Self::Share(group) => (group.bytes(), self.members()),
            Self::Streams(group) => (group.memory_bytes(), self.members()),
        }
    }

    /// Hands out the records that changed; those of a classic group never wait.
    pub fn flush(&mut self, out: &mut Outbox) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(group) => group.flush(out),
            Self::Share(group) => group.flush(out),
            Self::Streams(group) => group.flush(out),
        }
    }

    /// A batch with these entries never got to disk.
    pub fn lost(&mut self, entries: Vec<Entry>, out: &mut Outbox) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(group) => group.lost(entries, out),
            Self::Share(group) => group.lost(entries, out),
            Self::Streams(group) => group.lost(entries, out),
        }
    }

    /// Whether records of it were lost and are not written again yet.
    pub fn has_lost(&self) -> bool {
        match self {
            Self::Classic(_) => false,
            Self::Consumer(group) => group.unwritten.has_lost(),
            Self::Share(group) => group.unwritten.has_lost(),
            Self::Streams(group) => group.unwritten.has_lost(),
        }
    }

    /// Applies a record of the log, while loading. A classic group is replaced as a whole instead.
    pub fn replay(&mut self, entry: Entry, value: GroupRecordValue) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(group) => Consumer::replay(group, entry, value),
            Self::Share(group) => Share::replay(group, entry, value),
            Self::Streams(group) => Streams::replay(group, entry, value),
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

/// The group of this name and kind.
///
/// # Errors
/// GROUP_ID_NOT_FOUND.
pub(crate) fn find<'a, K: Kind>(
    groups: &'a Map<Text, Group>,
    id: &str,
) -> Result<&'a ReconciledGroup<K>, Refused> {
    let group = groups.get(id).ok_or_else(|| not_found(id))?;
    K::of(group).ok_or_else(|| wrong_kind(K::KIND, id))
}

/// As [`find`].
///
/// # Errors
/// As [`find`].
pub(crate) fn find_mut<'a, K: Kind>(
    groups: &'a mut Map<Text, Group>,
    id: &str,
) -> Result<&'a mut ReconciledGroup<K>, Refused> {
    let group = groups.get_mut(id).ok_or_else(|| not_found(id))?;
    K::of_mut(group).ok_or_else(|| wrong_kind(K::KIND, id))
}
