//! # OffsetDelete, key 47, version 0
//!
//! Forgets how far a group has read some partitions.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-496) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleOffsetDeleteRequest`.

use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_security::Operation;
use barnabas_wire::messages::offset_delete_request::{OffsetDeleteRequest, OffsetDeleteRequestTopic};
use barnabas_wire::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

#[derive(Debug)]
pub struct Work {
    pub delete: ToShard<OffsetDeleteRequest>,
    pub pending: Pending,
}

/// What was refused before the shard was asked.
#[derive(Debug)]
pub struct Pending {
    refused: Vec<OffsetDeleteResponseTopic>,
}

/// Takes out topics and partitions that do not exist, and sends the rest to the group's shard, even if nothing remains:
/// it says whether there is such a group.
pub fn plan(mut request: OffsetDeleteRequest, ctx: &Context<'_>) -> Plan<Work, OffsetDeleteResponse> {
    let shard = match ctx.access.group(Operation::Delete, &request.group_id) {
        true => shard_here(&request.group_id, ctx),
        false => Err(ErrorCode::GroupAuthorizationFailed),
    };
    let shard = match shard {
        Ok(shard) => shard,
        Err(code) => {
            return Plan::Answer(OffsetDeleteResponse {
                error_code: code.code(),
                ..OffsetDeleteResponse::default()
            });
        }
    };
    let mut pending = Pending { refused: Vec::new() };
    request.topics.retain_mut(|topic| pending.sort_out(topic, ctx));
    Plan::Work(Work { delete: ToShard { shard, request }, pending })
}

impl Pending {
    /// Whether anything of the topic goes on to the shard.
    fn sort_out(&mut self, topic: &mut OffsetDeleteRequestTopic, ctx: &Context<'_>) -> bool {
        let known = ctx.image.topics.by_name(&topic.name);
        let is_denied = !ctx.access.topic(Operation::Read, &topic.name);
        let code = match is_denied {
            true => ErrorCode::TopicAuthorizationFailed,
            false => ErrorCode::UnknownTopicOrPartition,
        };
        let known = known.filter(|_| !is_denied);
        let exists = |index: i32| known.is_some_and(|known| known.partition(PartitionIndex(index)).is_some());
        let missing = topic.partitions.iter().filter(|part| !exists(part.partition_index));
        let missing: Vec<_> = missing
            .map(|partition| OffsetDeleteResponsePartition {
                partition_index: partition.partition_index,
                error_code: code.code(),
                ..OffsetDeleteResponsePartition::default()
            })
            .collect();
        if !missing.is_empty() {
            self.refused.push(OffsetDeleteResponseTopic {
                name: topic.name.clone(),
                partitions: missing,
                ..OffsetDeleteResponseTopic::default()
            });
            topic.partitions.retain(|partition| exists(partition.partition_index));
        }
        !topic.partitions.is_empty()
    }

    /// The answer to the client, from the shard's. An error of the whole group leaves nothing else to say.
    pub fn respond(self, mut response: OffsetDeleteResponse) -> OffsetDeleteResponse {
        if response.error_code != 0 {
            response.topics.clear();
            return response;
        }
        for refused in self.refused {
            match response.topics.iter_mut().find(|topic| topic.name == refused.name) {
                Some(topic) => topic.partitions.extend(refused.partitions),
                None => response.topics.push(refused),
            }
        }
        response
    }
}

#[cfg(test)]
mod tests;
