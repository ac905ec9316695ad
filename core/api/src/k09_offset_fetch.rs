//! # OffsetFetch, key 9, versions 0–10
//!
//! Tells how far groups have read.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request, for offsets kept in ZooKeeper |
//! | 1 | offsets kept by the coordinator |
//! | 2 | all partitions of a group; an error for the whole answer |
//! | 3 | throttle time in the answer |
//! | 4 | throttling by the client (KIP-219) |
//! | 5 | leader epochs (KIP-320) |
//! | 6 | flexible (KIP-482) |
//! | 7 | whether offsets of open transactions are waited for (KIP-447) |
//! | 8 | several groups at once (KIP-709) |
//! | 9 | member epochs of the new protocol, STALE_MEMBER_EPOCH (KIP-848) |
//! | 10 | topic ids instead of names (KIP-848) |
//!
//! ## Left out
//! - Version 0: refused with UNSUPPORTED_VERSION, as there is no ZooKeeper (Kafka 3.9 without ZooKeeper does the same).
//!
//! Source: Kafka 4.4 `KafkaApis.handleOffsetFetchRequest`, `OffsetFetchResponse`.

use barnabas_base::{ErrorCode, PartitionIndex, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::offset_fetch_request::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use barnabas_wire::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use crate::groups::shard_here;
use crate::{AnswerRoom, Context, Plan, Slot};

mod repeated;

use repeated::Repeated;

/// Names and ids of topics are in what a shard says; so wide is no version on the wire.
const SHARDS_VERSION: i16 = 9;

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    pub require_stable: bool,
    pub pending: Pending,
}

/// One group, in the form of version 8 on whatever the version; topics carry both name and id.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub shard: PartitionIndex,
    pub group: OffsetFetchRequestGroup,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    response: OffsetFetchResponseGroup,
    /// What was refused before the shard was asked.
    refused: Vec<OffsetFetchResponseTopics>,
    /// Topics and partitions asked for, for versions that answer an error partition by partition.
    asked: Vec<(Str, Vec<i32>)>,
    asks_all: bool,
    /// What the request named where it named partitions more than once; the shard is asked for each of them once.
    repeated: Option<Repeated>,
}

/// Splits a request by group.
pub fn plan(request: OffsetFetchRequest, version: i16, ctx: &Context<'_>) -> Plan<Work, OffsetFetchResponse> {
    let require_stable = version >= 7 && request.require_stable;
    let mut pending = Pending { version, groups: Vec::new() };
    let mut parts = Vec::new();
    for (at, mut group) in groups(request, version).into_iter().enumerate() {
        let mut answer = Group {
            response: OffsetFetchResponseGroup {
                group_id: group.group_id.clone(),
                ..OffsetFetchResponseGroup::default()
            },
            refused: Vec::new(),
            asked: Vec::new(),
            asks_all: group.topics.is_none(),
            repeated: None,
        };
        if version < 2 {
            let topics = group.topics.iter().flatten();
            answer.asked =
                topics.map(|topic| (topic.name.clone(), topic.partition_indexes.clone())).collect();
        }
        let shard = match () {
            () if !ctx.access.group(Operation::Describe, &group.group_id) => {
                Err(ErrorCode::GroupAuthorizationFailed)
            }
            () if version == 0 => Err(ErrorCode::UnsupportedVersion),
            () => shard_here(&group.group_id, ctx),
        };
        match shard {
            Ok(shard) => {
                answer.fill_in(&mut group, version, ctx);
                answer.repeated = group.topics.as_mut().and_then(repeated::take_out);
                parts.push(Part { slot: Slot::new(at, 0), shard, group });
            }
            // Consumers older than 3.9 do not know COORDINATOR_NOT_AVAILABLE here; Kafka answers NOT_COORDINATOR.
            Err(ErrorCode::CoordinatorNotAvailable) => {
                answer.response.error_code = ErrorCode::NotCoordinator.code();
            }
            Err(code) => answer.response.error_code = code.code(),
        }
        pending.groups.push(answer);
    }
    if parts.is_empty() {
        return Plan::Answer(pending.respond(ctx));
    }
    Plan::Work(Work { parts, require_stable, pending })
}

fn groups(request: OffsetFetchRequest, version: i16) -> Vec<OffsetFetchRequestGroup> {
    if version >= 8 {
        return request.groups;
    }
    // Before version 2 none named means none; from then on null means all.
    let topics = if version < 2 { Some(request.topics.unwrap_or_default()) } else { request.topics };
    let topics = topics.map(|topics| {
        let in_new_form = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..OffsetFetchRequestTopics::default()
        });
        in_new_form.collect()
    });
    vec![OffsetFetchRequestGroup { group_id: request.group_id, topics, ..OffsetFetchRequestGroup::default() }]
}

impl Group {
    /// Finds the names of topics by id, or the ids by name. Unknown topic ids are refused, and topics that the client
    /// may not describe.
    fn fill_in(&mut self, group: &mut OffsetFetchRequestGroup, version: i16, ctx: &Context<'_>) {
        let Some(topics) = &mut group.topics else { return };
        topics.retain_mut(|topic| {
            if version < 10 {
                topic.topic_id = ctx.image.topics.id_of(&topic.name).unwrap_or(TopicId::ZERO);
            } else {
                let Some(known) = ctx.image.topics.by_id(topic.topic_id) else {
                    self.refused.push(refused(topic, ErrorCode::UnknownTopicId));
                    return false;
                };
                topic.name = Str::from(&known.name);
            }
            let is_allowed = ctx.access.topic(Operation::Describe, &topic.name);
            if !is_allowed {
                self.refused.push(refused(topic, ErrorCode::TopicAuthorizationFailed));
            }
            is_allowed
        });
    }
}

fn refused(topic: &OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics {
    let of = |partition_index: &i32| OffsetFetchResponsePartitions {
        partition_index: *partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::default()),
        error_code: code.code(),
        ..OffsetFetchResponsePartitions::default()
    };
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(of).collect(),
        ..OffsetFetchResponseTopics::default()
    }
}

impl Pending {
    /// Takes over one group's answer. Returns whether it had room; otherwise the group is refused.
    pub fn set(&mut self, slot: Slot, mut response: OffsetFetchResponseGroup, room: &AnswerRoom) -> bool {
        let group = &mut self.groups[slot.topic()];
        let taken = match group.repeated.take() {
            Some(repeated) => repeated.put_back(&mut response, room),
            None => room.take_struct(&response, SHARDS_VERSION),
        };
        match taken {
            Ok(()) => group.response = response,
            Err(large) => group.response.error_code = large.code(ErrorCode::CoordinatorLoadInProgress).code(),
        }
        taken.is_ok()
    }

    /// Takes over that a group was not asked about, because the answer has no room for it.
    pub fn refuse(&mut self, slot: Slot) {
        self.groups[slot.topic()].response.error_code = ErrorCode::InvalidRequest.code();
    }

    /// The answer, once every group's is in.
    pub fn respond(self, ctx: &Context<'_>) -> OffsetFetchResponse {
        let version = self.version;
        let mut groups = self.groups.into_iter().map(|group| group.finish(version, ctx));
        if version >= 8 {
            return OffsetFetchResponse { groups: groups.collect(), ..OffsetFetchResponse::default() };
        }
        let group = groups.next().unwrap_or_default();
        OffsetFetchResponse {
            error_code: if version >= 2 { group.error_code } else { 0 },
            topics: group.topics.into_iter().map(|topic| in_old_form(topic, version)).collect(),
            ..OffsetFetchResponse::default()
        }
    }
}

impl Group {
    fn finish(self, version: i16, ctx: &Context<'_>) -> OffsetFetchResponseGroup {
        let mut response = self.response;
        if response.error_code != 0 {
            response.topics.clear();
            if version < 2 {
                response.topics =
                    self.asked.iter().map(|(name, parts)| refuse(name, parts, response.error_code)).collect();
            }
            return response;
        }
        if self.asks_all {
            // Topics that the client may not describe are left out in silence.
            response.topics.retain(|topic| ctx.access.sees_topic(Operation::Describe, &topic.name));
        }
        response.topics.extend(self.refused);
        if version >= 10 {
            if self.asks_all {
                for topic in response.topics.iter_mut().filter(|topic| topic.topic_id.is_zero()) {
                    topic.topic_id = ctx.image.topics.id_of(&topic.name).unwrap_or(TopicId::ZERO);
                }
                // What has no id cannot be named in this version.
                response.topics.retain(|topic| !topic.topic_id.is_zero());
            }
            response.topics.iter_mut().for_each(|topic| topic.name = Str::default());
        } else {
            response.topics.iter_mut().for_each(|topic| topic.topic_id = TopicId::ZERO);
        }
        response
    }
}

fn refuse(name: &Str, partitions: &[i32], error_code: i16) -> OffsetFetchResponseTopics {
    let of = |partition_index: &i32| OffsetFetchResponsePartitions {
        partition_index: *partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::default()),
        error_code,
        ..OffsetFetchResponsePartitions::default()
    };
    OffsetFetchResponseTopics {
        name: name.clone(),
        partitions: partitions.iter().map(of).collect(),
        ..OffsetFetchResponseTopics::default()
    }
}

fn in_old_form(topic: OffsetFetchResponseTopics, version: i16) -> OffsetFetchResponseTopic {
    let of = |partition: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: if version >= 5 { partition.committed_leader_epoch } else { -1 },
        metadata: partition.metadata,
        error_code: partition.error_code,
        ..OffsetFetchResponsePartition::default()
    };
    OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(of).collect(),
        ..OffsetFetchResponseTopic::default()
    }
}

#[cfg(test)]
mod tests;
