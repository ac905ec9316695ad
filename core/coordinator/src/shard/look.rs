//! What operators see of groups: how many are in which state, how often what happened, where each group has come to.
//!
//! The shard is asked for the names first and for some groups at a time after that, so that no number of groups holds
//! its thread up. What was committed shows, and nothing that is on its way to disk.

use barnabas_base::{Offset, PartitionIndex, Text, TopicId};

use super::{Group, GroupShard};
use crate::outbox::GroupCounts;
use crate::records::GroupKind;

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

impl GroupShard {
    /// The groups there are, in no order.
    pub fn group_names(&self) -> Vec<Text> {
        self.groups.keys().cloned().collect()
    }

    /// These groups, without those that are gone: as many as have `most` positions together, and one at least. Gives
    /// how many of the names that was.
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
                let topics = group.own.set_up.initialized.iter();
                topics.map(|(id, topic)| (*id, topic.partitions.iter().copied().collect())).collect()
            }
            _ => Vec::new(),
        };
        GroupLook { group: name.clone(), kind: group.kind(), state: group.state_name(), committed, shared }
    }

    /// What was counted since this was last asked.
    pub fn take_counts(&mut self) -> GroupCounts {
        std::mem::take(&mut self.out.counts)
    }
}
