//! # DescribeTopicPartitions, key 75, version 0
//!
//! Describes topics page by page: the Java admin client's way to describe topics, eligible leader replicas included.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-966) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `DescribeTopicPartitionsRequestHandler`, `KRaftMetadataCache.describeTopicResponse`.

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, TopicId, check_topic_name, is_internal_topic};
use barnabas_metadata::{Partition, Topic};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use barnabas_wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};

use crate::Context;
use crate::k03_metadata::{leader, offline_replicas};

/// The answer.
pub fn answer(
    request: &DescribeTopicPartitionsRequest,
    ctx: &Context<'_>,
) -> DescribeTopicPartitionsResponse {
    let names: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    let cursor = request.cursor.as_ref().map(|cursor| (cursor.topic_name.as_str(), cursor.partition_index));
    if let Some((topic, partition)) = cursor
        && (partition < 0 || !(names.is_empty() || names.contains(topic)))
    {
        return invalid(request);
    }
    let from = cursor.map_or("", |cursor| cursor.0);
    let limit =
        ctx.config.int("max.request.partition.size.limit").min(request.response_partition_limit).max(1);
    let mut page = Page {
        response: DescribeTopicPartitionsResponse::default(),
        left: usize::try_from(limit).unwrap_or(1),
        cursor,
    };
    if names.is_empty() {
        let sees = |topic: &&Arc<Topic>| ctx.access.sees_topic(Operation::Describe, &topic.name);
        for topic in ctx.image.topics.iter_from(from).filter(sees) {
            if !page.add(&topic.name, Some(topic), ctx) {
                break;
            }
        }
    } else {
        for name in names.range(from..) {
            if !ctx.access.topic(Operation::Describe, name) {
                page.response.topics.push(denied(name));
                continue;
            }
            if !page.add(name, ctx.image.topics.by_name(name).map(|topic| &**topic), ctx) {
                break;
            }
        }
    }
    page.response
}

/// One answer while it fills.
struct Page<'a> {
    response: DescribeTopicPartitionsResponse,
    left: usize,
    cursor: Option<(&'a str, i32)>,
}

impl Page<'_> {
    /// Adds a topic, or the part of it that there is room for. Returns whether there may be more.
    fn add(&mut self, name: &str, topic: Option<&Topic>, ctx: &Context<'_>) -> bool {
        if self.left == 0 {
            return self.go_on_at(name, 0);
        }
        let Some(topic) = topic else {
            self.response.topics.push(unknown(name, ctx));
            return true;
        };
        let start = self.cursor.filter(|cursor| cursor.0 == name).map_or(0, |cursor| cursor.1);
        let start = usize::try_from(start).unwrap_or(0);
        let end = topic.partition_count().min(start.saturating_add(self.left));
        let indexes = (start..end).map(|index| PartitionIndex(index as i32));
        let partitions =
            indexes.filter_map(|index| Some(describe((topic.id, index), topic.partition(index)?, ctx)));
        let partitions: Vec<_> = partitions.collect();
        self.left -= partitions.len();
        self.response.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(Str::from(name)),
            topic_id: topic.id,
            is_internal: is_internal_topic(name),
            partitions,
            topic_authorized_operations: ctx.access.operations(ResourceType::Topic, name),
            ..DescribeTopicPartitionsResponseTopic::default()
        });
        end >= topic.partition_count() || self.go_on_at(name, end as i32)
    }

    fn go_on_at(&mut self, topic: &str, partition_index: i32) -> bool {
        let topic_name = Str::from(topic);
        self.response.next_cursor = Some(Cursor { topic_name, partition_index, ..Cursor::default() });
        false
    }
}

/// The same whether there is such a topic or not.
fn denied(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::TopicAuthorizationFailed.code(),
        name: Some(Str::from(name)),
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn unknown(name: &str, ctx: &Context<'_>) -> DescribeTopicPartitionsResponseTopic {
    let code = match check_topic_name(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: code.code(),
        name: Some(Str::from(name)),
        is_internal: is_internal_topic(name),
        topic_authorized_operations: ctx.access.operations(ResourceType::Topic, name),
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn invalid(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let refused = request.topics.iter().map(|topic| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some(topic.name.clone()),
        ..DescribeTopicPartitionsResponseTopic::default()
    });
    DescribeTopicPartitionsResponse {
        topics: refused.collect(),
        ..DescribeTopicPartitionsResponse::default()
    }
}

fn describe(
    named: (TopicId, PartitionIndex),
    state: &Partition,
    ctx: &Context<'_>,
) -> DescribeTopicPartitionsResponsePartition {
    let ids = |brokers: &[BrokerId]| brokers.iter().map(|id| id.get()).collect::<Vec<i32>>();
    let leader = leader(named, state, ctx);
    let reachable = leader.is_some_and(|broker| broker.endpoint(&ctx.client.listener).is_some());
    DescribeTopicPartitionsResponsePartition {
        partition_index: named.1.get(),
        leader_id: if reachable { state.leader.get() } else { BrokerId::NONE.get() },
        leader_epoch: state.leader_epoch.get(),
        replica_nodes: ids(state.replicas()),
        isr_nodes: ids(state.isr()),
        eligible_leader_replicas: Some(ids(state.elr())),
        last_known_elr: Some(ids(&state.placement.last_known_elr)),
        offline_replicas: offline_replicas(named, state, ctx),
        ..DescribeTopicPartitionsResponsePartition::default()
    }
}

#[cfg(test)]
mod tests;
