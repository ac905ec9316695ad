//! # DeleteShareGroupOffsets, key 92, version 0
//!
//! Forgets how far a share group that has no members has come with topics.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-932) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDeleteShareGroupOffsetsRequest`.

use barnabas_base::ErrorCode;
use barnabas_security::Operation;
use barnabas_wire::messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use barnabas_wire::messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic;
use barnabas_wire::messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};

use crate::access::refusal;
use crate::groups::{ToShard, shard_of_named_if};
use crate::{Context, Plan, k76_share_group_heartbeat};

/// For the group's shard, which is asked even if no topic remains: it says whether there is such a group.
#[derive(Debug)]
pub struct Work {
    pub asked: ToShard<DeleteShareGroupOffsetsRequest>,
    pub pending: Pending,
}

/// What was refused before the shard was asked.
#[derive(Debug)]
pub struct Pending {
    refused: Vec<DeleteShareGroupOffsetsResponseTopic>,
}

/// Takes out topics that the client may not read, and sends the rest to the group's shard.
pub fn plan(
    mut request: DeleteShareGroupOffsetsRequest,
    ctx: &Context<'_>,
) -> Plan<Work, DeleteShareGroupOffsetsResponse> {
    let is_enabled = k76_share_group_heartbeat::is_enabled(ctx);
    let shard = match is_enabled && !ctx.access.group(Operation::Delete, &request.group_id) {
        true => Err(ErrorCode::GroupAuthorizationFailed),
        false => shard_of_named_if(is_enabled, &request.group_id, ctx),
    };
    let shard = match shard {
        Ok(shard) => shard,
        Err(code) => {
            return Plan::Answer(DeleteShareGroupOffsetsResponse {
                error_code: code.code(),
                ..Default::default()
            });
        }
    };
    let mut refused_topics = Vec::new();
    request.topics.retain(|topic| {
        let is_allowed = ctx.access.topic(Operation::Read, &topic.topic_name);
        if !is_allowed {
            refused_topics.push(refused(topic));
        }
        is_allowed
    });
    let pending = Pending { refused: refused_topics };
    Plan::Work(Work { asked: ToShard { shard, request }, pending })
}

impl Pending {
    /// The answer to the client, from the shard's. An error of the whole group leaves nothing else to say.
    pub fn respond(self, mut response: DeleteShareGroupOffsetsResponse) -> DeleteShareGroupOffsetsResponse {
        if response.error_code == 0 {
            response.responses.extend(self.refused);
        }
        response
    }
}

fn refused(topic: &DeleteShareGroupOffsetsRequestTopic) -> DeleteShareGroupOffsetsResponseTopic {
    let denied = refusal(ErrorCode::TopicAuthorizationFailed);
    DeleteShareGroupOffsetsResponseTopic {
        topic_name: topic.topic_name.clone(),
        error_code: denied.code.code(),
        error_message: denied.text(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
