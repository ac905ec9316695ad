//! # AlterShareGroupOffsets, key 91, version 0
//!
//! Moves the start of share-partitions of a group that has no members; the group is founded if there is none.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-932) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAlterShareGroupOffsetsRequest`.

use barnabas_base::{ErrorCode, TopicId};
use barnabas_security::Operation;
use barnabas_wire::messages::alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic;
use barnabas_wire::messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use barnabas_wire::messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};

use crate::access::refusal;
use crate::groups::{ToShard, shard_of_named_if};
use crate::{Context, Plan, k76_share_group_heartbeat};

/// For the group's shard, which is asked even if no topic remains: it says whether there is such a group.
#[derive(Debug)]
pub struct Work {
    pub asked: ToShard<AlterShareGroupOffsetsRequest>,
    pub pending: Pending,
}

/// What was refused before the shard was asked.
#[derive(Debug)]
pub struct Pending {
    refused: Vec<AlterShareGroupOffsetsResponseTopic>,
}

/// Takes out topics that the client may not read, and sends the rest to the group's shard.
pub fn plan(
    mut request: AlterShareGroupOffsetsRequest,
    ctx: &Context<'_>,
) -> Plan<Work, AlterShareGroupOffsetsResponse> {
    let is_enabled = k76_share_group_heartbeat::is_enabled(ctx);
    let shard = match is_enabled && !ctx.access.group(Operation::Read, &request.group_id) {
        true => Err(ErrorCode::GroupAuthorizationFailed),
        false => shard_of_named_if(is_enabled, &request.group_id, ctx),
    };
    let shard = match shard {
        Ok(shard) => shard,
        Err(code) => {
            return Plan::Answer(AlterShareGroupOffsetsResponse {
                error_code: code.code(),
                ..Default::default()
            });
        }
    };
    let mut refused_topics = Vec::new();
    request.topics.retain(|topic| {
        let is_allowed = ctx.access.topic(Operation::Read, &topic.topic_name);
        if !is_allowed {
            refused_topics.push(refused(topic, ctx));
        }
        is_allowed
    });
    let pending = Pending { refused: refused_topics };
    Plan::Work(Work { asked: ToShard { shard, request }, pending })
}

impl Pending {
    /// The answer to the client, from the shard's. An error of the whole group leaves nothing else to say.
    pub fn respond(self, mut response: AlterShareGroupOffsetsResponse) -> AlterShareGroupOffsetsResponse {
        if response.error_code == 0 {
            response.responses.extend(self.refused);
        }
        response
    }
}

fn refused(
    topic: &AlterShareGroupOffsetsRequestTopic,
    ctx: &Context<'_>,
) -> AlterShareGroupOffsetsResponseTopic {
    let denied = refusal(ErrorCode::TopicAuthorizationFailed);
    AlterShareGroupOffsetsResponseTopic {
        topic_id: ctx.image.topics.id_of(&topic.topic_name).unwrap_or(TopicId::ZERO),
        topic_name: topic.topic_name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| AlterShareGroupOffsetsResponsePartition {
                partition_index: partition.partition_index,
                error_code: denied.code.code(),
                error_message: denied.text(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
