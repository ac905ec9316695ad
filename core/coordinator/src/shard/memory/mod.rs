//! Whether there is room for what a request says; groups are weighed ([`weights`]).

mod weights;

use barnabas_base::{ErrorCode, PartitionIndex, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{OffsetCommitRequest, TxnOffsetCommitRequest};

use super::{Group, GroupShard};
use crate::Request;
use crate::framework::Caller;
use crate::framework::Room;

pub(super) use weights::Weights;

/// Bytes that a new member and a new offset take, besides their texts. The first member brings its group along.
const MEMBER_BYTES: usize = 1_024;
const OFFSET_BYTES: usize = 256;

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoRoom {
    pub code: ErrorCode,
    pub why: String,
}

impl GroupShard {
    /// What the groups hold, and refusals for want of room.
    pub fn room(&self) -> &Room {
        &self.weights.room
    }

    /// Bytes that the node's other shards hold now.
    pub fn others_hold(&mut self, bytes: usize) {
        self.weights.room.others_hold(bytes);
    }

    /// Whether what the request says may be held, and how many bytes that may be.
    ///
    /// # Errors
    /// GROUP_MAX_SIZE_REACHED, which members of every protocol take for final; INVALID_COMMIT_OFFSET_SIZE for offsets;
    /// STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED for a description, which a member is asked for again.
    pub(super) fn find_room(&mut self, caller: &Caller<'_>, request: &Request) -> Result<usize, NoRoom> {
        let Some((group, bytes)) = request.brings() else { return Ok(0) };
        // A member is kept with its client's id, which may be a part of its own.
        let member = MEMBER_BYTES + 2 * caller.client_id.len() + caller.client_host.len();
        let config = &self.out.config;
        let code = code(request);
        let is_commit = code == ErrorCode::InvalidCommitOffsetSize;
        // What members of the other protocols say is bounded by what a record can hold.
        if matches!(request, Request::JoinGroup(_)) && bytes > config.member_bytes_max {
            let most = config.member_bytes_max;
            let why = format!(
                "The member says {bytes} bytes of itself; group.member.metadata.max.bytes allows {most}."
            );
            return Err(self.no_room(code, why));
        }
        let (group_max, node_max) = (config.group_bytes_max, config.groups_bytes_max);
        let is_over = |shard: &Self, bytes: usize| {
            shard.weights.of(group) + bytes > group_max || shard.weights.room.node() + bytes > node_max
        };
        let most = if is_commit { bytes } else { bytes + member };
        if !is_over(self, most) {
            return Ok(if is_commit || self.growth(request, bytes, member) > bytes { most } else { bytes });
        }
        let more = self.growth(request, bytes, member);
        if more == 0 {
            return Ok(bytes);
        }
        if !self.weights.is_exact(group) {
            self.weigh(group);
        }
        if !is_over(self, more) {
            return Ok(more);
        }
        let has = self.weights.of(group);
        if has + more > group_max {
            let why =
                format!("Group {group} holds {has} bytes, and group.memory.max.bytes allows {group_max}.");
            return Err(self.no_room(code, why));
        }
        self.weights.room.refuse_for_node(node_max);
        Err(NoRoom { code, why: self.weights.room.why().to_owned() })
    }

    fn no_room(&mut self, code: ErrorCode, why: String) -> NoRoom {
        self.weights.room.refuse(why.clone());
        NoRoom { code, why }
    }

    /// By how much the request makes its group heavier, of at most `bytes`, and of `member` for a new one.
    fn growth(&self, request: &Request, bytes: usize, member: usize) -> usize {
        match request {
            Request::OffsetCommit(commit) => self.growth_by_commit(commit),
            Request::TxnOffsetCommit(commit) => self.growth_in_transaction(commit),
            // The assignment takes the place of the last one, and is bounded by what a record can hold.
            Request::SyncGroup(_) => 0,
            // So does a description.
            Request::StreamsTopologyDescription(update) => match self.groups.get(update.group_id.as_str()) {
                Some(Group::Streams(group)) => bytes.saturating_sub(group.own.description.bytes()),
                _ => bytes,
            },
            Request::JoinGroup(join) => {
                let instance = join.group_instance_id.as_deref();
                more_than(bytes, member, self.member_bytes(&join.group_id, &join.member_id, instance))
            }
            Request::ConsumerGroupHeartbeat(beat) => {
                let instance = beat.instance_id.as_deref();
                more_than(bytes, member, self.member_bytes(&beat.group_id, &beat.member_id, instance))
            }
            Request::StreamsGroupHeartbeat(beat) => {
                let instance = beat.instance_id.as_deref();
                more_than(bytes, member, self.member_bytes(&beat.group_id, &beat.member_id, instance))
            }
            Request::ShareGroupHeartbeat(beat) => {
                more_than(bytes, member, self.member_bytes(&beat.group_id, &beat.member_id, None))
            }
            _ => bytes,
        }
    }

    /// What a member that is known has said of itself.
    fn member_bytes(&self, group: &str, member: &str, instance: Option<&str>) -> usize {
        match self.groups.get(group) {
            Some(Group::Classic(group)) => {
                let by_instance = instance.and_then(|instance| group.static_members.get(instance));
                let id = by_instance.map_or(member, |id| id.as_str());
                let said = group.members.get(id).map(|known| {
                    let said = known.protocols.pairs().map(|(name, said)| name.len() + said.len());
                    id.len() + instance.map_or(0, str::len) + said.sum::<usize>()
                });
                said.unwrap_or(0)
            }
            Some(Group::Consumer(group)) => {
                group.member_or_static(member, instance).map_or(0, |known| known.said_bytes())
            }
            Some(Group::Streams(group)) => group.said_bytes(member, instance),
            Some(Group::Share(group)) => group.member(member).map_or(0, |known| known.said_bytes()),
            None => 0,
        }
    }

    fn growth_by_commit(&self, commit: &OffsetCommitRequest) -> usize {
        let offsets = commit.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|each| {
                (
                    &topic.name,
                    each.partition_index,
                    each.committed_metadata.as_ref().map_or(0, |note| note.len()),
                )
            })
        });
        offsets.map(|(topic, partition, note)| self.growth_by(&commit.group_id, topic, partition, note)).sum()
    }

    fn growth_in_transaction(&self, commit: &TxnOffsetCommitRequest) -> usize {
        let partitions = commit.topics.iter().flat_map(|topic| &topic.partitions);
        partitions
            .map(|each| OFFSET_BYTES + each.committed_metadata.as_ref().map_or(0, |note| note.len()))
            .sum()
    }

    fn growth_by(&self, group: &str, topic: &Str, partition: i32, note: usize) -> usize {
        let known = self.offsets.get(group, topic, PartitionIndex(partition)).and_then(|slot| slot.latest());
        match known {
            None => OFFSET_BYTES + note,
            Some(known) => note.saturating_sub(known.metadata.as_ref().map_or(0, |note| note.len())),
        }
    }

    /// After a request was worked on.
    pub(super) fn weigh_after(&mut self, request: &Request, cost: usize) {
        if let Some((group, _)) = request.brings() {
            if self.weights.note(group, cost.max(1)) {
                self.weigh(group);
            }
            return;
        }
        for group in request.takes_from() {
            self.lighter(group);
        }
    }

    /// Members may have gone, or offsets.
    pub(super) fn lighter(&mut self, group: &str) {
        let is_small = self.groups.get(group).is_none_or(|group| group.members() == 0);
        if self.weights.note(group, 0) || is_small {
            self.weigh(group);
        }
    }

    pub(super) fn weigh(&mut self, group: &str) {
        let weighed = weights::weigh(group, self.groups.get(group), &self.offsets);
        self.weights.set(group, weighed);
    }

    /// Weighs everything: after a load, and when groups and offsets may have gone of which no request spoke.
    pub(super) fn weigh_all(&mut self) {
        let mut ids: Vec<Text> = self.groups.keys().cloned().collect();
        ids.extend(self.weights.groups());
        ids.extend(self.offsets.group_ids());
        ids.iter().for_each(|id| self.weigh(id));
    }
}

/// How a request is refused for which there is no room.
fn code(request: &Request) -> ErrorCode {
    match request {
        Request::OffsetCommit(_) | Request::TxnOffsetCommit(_) => ErrorCode::InvalidCommitOffsetSize,
        Request::StreamsTopologyDescription(_) => ErrorCode::StreamsTopologyDescriptionUpdateFailed,
        _ => ErrorCode::GroupMaxSizeReached,
    }
}

/// By how much a member grows that said `known` bytes; a new one, which has said nothing, also takes a place.
fn more_than(bytes: usize, member: usize, known: usize) -> usize {
    if known == 0 { bytes + member } else { bytes.saturating_sub(known) }
}
