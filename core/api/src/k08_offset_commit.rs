//! # OffsetCommit, key 8, versions 0–10
//!
//! Stores how far a group has read each partition.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request, for offsets kept in ZooKeeper |
//! | 1 | offsets kept by the coordinator; a timestamp per partition |
//! | 2 | retention time for all, timestamps gone |
//! | 3 | throttle time in the answer |
//! | 4 | throttling by the client (KIP-219) |
//! | 5 | retention time gone (KIP-211) |
//! | 6 | leader epochs (KIP-320) |
//! | 7 | static members (KIP-345) |
//! | 8 | flexible (KIP-482) |
//! | 9 | member epochs of the new protocol, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848) |
//! | 10 | topic ids instead of names (KIP-848) |
//!
//! ## Left out
//! - Version 0: refused with UNSUPPORTED_VERSION, as there is no ZooKeeper (Kafka 3.9 without ZooKeeper does the same).
//!
//! Source: Kafka 4.4 `KafkaApis.handleOffsetCommitRequest`.

use barnabas_base::{ErrorCode, PartitionIndex, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::offset_commit_request::{OffsetCommitRequest, OffsetCommitRequestTopic};
use barnabas_wire::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

#[derive(Debug)]
pub struct Work {
    /// Topics carry both name and id.
    pub commit: ToShard<OffsetCommitRequest>,
    pub pending: Pending,
}

/// What was refused before the shard was asked.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    refused: Vec<OffsetCommitResponseTopic>,
}

/// Takes out topics and partitions that do not exist, and sends the rest to the group's shard.
pub fn plan(
    mut request: OffsetCommitRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, OffsetCommitResponse> {
    let mut pending = Pending { version, refused: Vec::new() };
    if !ctx.access.group(Operation::Read, &request.group_id) {
        pending.refuse_all(&request.topics, ErrorCode::GroupAuthorizationFailed);
        return Plan::Answer(pending.respond(OffsetCommitResponse::default()));
    }
    if version == 0 {
        pending.refuse_all(&request.topics, ErrorCode::UnsupportedVersion);
        return Plan::Answer(pending.respond(OffsetCommitResponse::default()));
    }
    request.topics.retain_mut(|topic| pending.sort_out(topic, ctx));
    if request.topics.is_empty() {
        return Plan::Answer(pending.respond(OffsetCommitResponse::default()));
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(Work { commit: ToShard { shard, request }, pending }),
        Err(code) => {
            pending.refuse_all(&request.topics, code);
            Plan::Answer(pending.respond(OffsetCommitResponse::default()))
        }
    }
}

impl Pending {
    /// Whether anything of the topic goes on to the shard.
    fn sort_out(&mut self, topic: &mut OffsetCommitRequestTopic, ctx: &Context<'_>) -> bool {
        let topics = &ctx.image.topics;
        let by_id = self.version >= 10;
        let known = if by_id { topics.by_id(topic.topic_id) } else { topics.by_name(&topic.name) };
        let name = if by_id { known.map(|known| &*known.name) } else { Some(&*topic.name) };
        let is_denied = name.is_some_and(|name| !ctx.access.topic(Operation::Read, name));
        let Some(known) = known.filter(|_| !is_denied) else {
            let code = match () {
                () if is_denied => ErrorCode::TopicAuthorizationFailed,
                () if by_id => ErrorCode::UnknownTopicId,
                () => ErrorCode::UnknownTopicOrPartition,
            };
            self.refuse_all(std::slice::from_ref(topic), code);
            return false;
        };
        topic.name = Str::from(&known.name);
        topic.topic_id = known.id;
        let exists = |index: i32| known.partition(PartitionIndex(index)).is_some();
        let missing: Vec<i32> = topic
            .partitions
            .iter()
            .map(|part| part.partition_index)
            .filter(|index| !exists(*index))
            .collect();
        if !missing.is_empty() {
            self.refused.push(refuse(topic, missing.into_iter(), ErrorCode::UnknownTopicOrPartition));
            topic.partitions.retain(|part| exists(part.partition_index));
        }
        !topic.partitions.is_empty()
    }

    fn refuse_all(&mut self, topics: &[OffsetCommitRequestTopic], code: ErrorCode) {
        for topic in topics {
            let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
            self.refused.push(refuse(topic, partitions, code));
        }
    }

    /// The answer to the client, from the shard's.
    pub fn respond(self, mut response: OffsetCommitResponse) -> OffsetCommitResponse {
        for refused in self.refused {
            let same = |topic: &&mut OffsetCommitResponseTopic| {
                topic.name == refused.name && topic.topic_id == refused.topic_id
            };
            match response.topics.iter_mut().find(same) {
                Some(topic) => topic.partitions.extend(refused.partitions),
                None => response.topics.push(refused),
            }
        }
        for topic in &mut response.topics {
            if self.version >= 10 {
                topic.name = Str::default();
            } else {
                topic.topic_id = TopicId::ZERO;
            }
        }
        response
    }
}

fn refuse(
    topic: &OffsetCommitRequestTopic,
    partitions: impl Iterator<Item = i32>,
    code: ErrorCode,
) -> OffsetCommitResponseTopic {
    let of = |partition_index| OffsetCommitResponsePartition {
        partition_index,
        error_code: code.code(),
        ..OffsetCommitResponsePartition::default()
    };
    OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.map(of).collect(),
        ..OffsetCommitResponseTopic::default()
    }
}

#[cfg(test)]
mod tests;
