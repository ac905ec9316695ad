//! What operators see of groups: how many are in which state, how often what happened, where each group has come to.
//!
//! The shard is asked for the names first and for some groups at a time after that, so that no number of groups holds its thread up.
//! What was committed shows, and nothing that is on its way to disk.

use barnabas_base::{Offset, PartitionIndex, Text, TopicId};

use super::{Group, GroupShard};

/// Which protocol a group is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// Also a group that has offsets and never had members.
    Classic,
    Consumer,
    Share,
    Streams,
}

impl GroupKind {
    pub const ALL: [Self; 4] = [Self::Classic, Self::Consumer, Self::Share, Self::Streams];

    /// Kafka's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }

    /// Kafka's words for the states that such a group can be in.
    pub const fn states(self) -> &'static [&'static str] {
        match self {
            Self::Classic => &["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"],
            Self::Consumer => &["Empty", "Assigning", "Reconciling", "Stable", "Dead"],
            Self::Share => &["Empty", "Stable", "Dead"],
            Self::Streams => &["Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"],
        }
    }
}

/// One group at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLook {
    pub group: Text,
    pub kind: GroupKind,
    /// One of [`GroupKind::states`].
    pub state: &'static str,
    pub committed: Vec<CommittedOffset>,
    /// The share-partitions that are set up: the share coordinator knows where those stand.
    pub shared: Vec<(TopicId, Vec<i32>)>,
}

/// Where a group goes on in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    pub topic: Text,
    /// Zero: committed by name, by a client of before version 10.
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    pub offset: Offset,
}

/// How often what happened, since the shard was last asked.
///
/// # Source
/// Kafka 4.4 `GroupCoordinatorMetrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupCounts {
    /// Offsets in commits that were taken, within transactions or not.
    pub offset_commits: u64,
    pub offset_expirations: u64,
    /// By OffsetDelete.
    pub offset_deletions: u64,
    /// Classic groups whose members all got an assignment.
    pub classic_rebalances: u64,
    /// Epochs of groups that were raised.
    pub consumer_rebalances: u64,
    pub share_rebalances: u64,
    pub streams_rebalances: u64,
}

impl GroupCounts {
    pub fn add(&mut self, other: &Self) {
        self.offset_commits += other.offset_commits;
        self.offset_expirations += other.offset_expirations;
        self.offset_deletions += other.offset_deletions;
        self.classic_rebalances += other.classic_rebalances;
        self.consumer_rebalances += other.consumer_rebalances;
        self.share_rebalances += other.share_rebalances;
        self.streams_rebalances += other.streams_rebalances;
    }
}

impl GroupShard {
    /// The groups there are, in no order.
    pub fn group_names(&self) -> Vec<Text> {
        self.groups.keys().cloned().collect()
    }

    /// These groups, without those that are gone: as many as have `most` positions together, and one at least. Gives how many of the names
    /// that was.
    pub fn look(&self, names: &[Text], most: usize) -> (Vec<GroupLook>, usize) {
        let (mut looks, mut positions) = (Vec::new(), 0);
        for (seen, name) in names.iter().enumerate() {
            if positions >= most {
                return (looks, seen);
            }
            if let Some(group) = self.groups.get(name) {
                let look = self.look_at(name, group);
                positions += look.committed.len();
                positions += look.shared.iter().map(|(_, partitions)| partitions.len()).sum::<usize>();
                looks.push(look);
            }
        }
        (looks, names.len())
    }

    fn look_at(&self, name: &Text, group: &Group) -> GroupLook {
        let (kind, state) = match group {
            Group::Classic(group) => (GroupKind::Classic, group.state.name()),
            Group::Consumer(group) => (GroupKind::Consumer, group.state_name()),
            Group::Share(group) => (GroupKind::Share, group.state_name()),
            Group::Streams(group) => (GroupKind::Streams, group.state_name()),
        };
        let mut committed = Vec::new();
        for (topic, partitions) in self.offsets.of_group(name).into_iter().flatten() {
            let there =
                partitions.iter().filter_map(|(partition, slot)| Some((*partition, slot.committed()?)));
            committed.extend(there.map(|(partition, entry)| CommittedOffset {
                topic: topic.clone(),
                topic_id: entry.topic_id,
                partition,
                offset: Offset(entry.offset),
            }));
        }
        let shared = match group {
            Group::Share(group) => {
                let topics = group.set_up.initialized.iter();
                topics.map(|(id, topic)| (*id, topic.partitions.iter().copied().collect())).collect()
            }
            _ => Vec::new(),
        };
        GroupLook { group: name.clone(), kind, state, committed, shared }
    }

    /// What was counted since this was last asked.
    pub fn take_counts(&mut self) -> GroupCounts {
        std::mem::take(&mut self.out.counts)
    }
}
