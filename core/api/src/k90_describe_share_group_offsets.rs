//! # DescribeShareGroupOffsets, key 90, versions 0–1
//!
//! Tells how far share groups have come (KIP-932): where each share-partition begins, and how many records it has
//! before it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | the lag (KIP-1226) |
//!
//! With topic names, the share coordinator is asked for their offsets, whether the group exists or
//! not. Without names, the group's coordinator lists every topic that the group has initialized.
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeShareGroupOffsetsRequest`,
//! `GroupCoordinatorService.describeShareGroupOffsets`, `computeShareGroupLagAndBuildResponse`.

use barnabas_base::{ErrorCode, PartitionIndex, Text, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use barnabas_wire::messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use barnabas_wire::messages::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};

use crate::access::refusal;
use crate::groups::shard_here;
use crate::repeats::once;
use crate::{Context, Plan, k76_share_group_heartbeat};

pub use crate::k87_read_share_group_state_summary::Summary;

/// The first version with the lag.
const LAG_SINCE: i16 = 1;

/// One group of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its place in the answer.
    pub place: usize,
    pub group: Text,
    pub wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// What the group has set up: its shard knows.
    All(PartitionIndex),
    These(Vec<Topic>),
}

/// A topic that there is.
#[derive(Debug, Clone, PartialEq)]
pub struct Topic {
    pub id: TopicId,
    pub name: Text,
    pub partitions: Vec<i32>,
}

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    groups: Vec<DescribeShareGroupOffsetsResponseGroup>,
}

/// Splits a request by group.
pub fn plan(
    request: DescribeShareGroupOffsetsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, DescribeShareGroupOffsetsResponse> {
    let (mut parts, mut groups) = (Vec::new(), Vec::with_capacity(request.groups.len()));
    for (place, asked) in request.groups.into_iter().enumerate() {
        let mut group =
            DescribeShareGroupOffsetsResponseGroup { group_id: asked.group_id.clone(), ..Default::default() };
        match wanted(asked, &mut group, ctx) {
            Ok(Some(wanted)) => parts.push(Part { place, group: group.group_id.text(), wanted }),
            Ok(None) => {}
            Err(code) => group.error_code = code.code(),
        }
        groups.push(group);
    }
    let pending = Pending { groups };
    if parts.is_empty() {
        Plan::Answer(pending.respond(version))
    } else {
        Plan::Work(Work { parts, pending })
    }
}

/// What is to be asked for a group; what is known already is put into `group`.
fn wanted(
    asked: DescribeShareGroupOffsetsRequestGroup,
    group: &mut DescribeShareGroupOffsetsResponseGroup,
    ctx: &Context<'_>,
) -> Result<Option<Wanted>, ErrorCode> {
    if !k76_share_group_heartbeat::is_enabled(ctx) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    if !ctx.access.group(Operation::Describe, &asked.group_id) {
        return Err(ErrorCode::GroupAuthorizationFailed);
    }
    let Some(topics) = asked.topics else {
        return shard_here(&asked.group_id, ctx).map(|shard| Some(Wanted::All(shard)));
    };
    let mut these = Vec::with_capacity(topics.len());
    for topic in topics {
        if !ctx.access.topic(Operation::Describe, &topic.topic_name) {
            group.topics.push(denied(topic));
            continue;
        }
        match ctx.image.topics.by_name(&topic.topic_name) {
            Some(known) => {
                let mut topic = topic;
                once(&mut topic.partitions);
                let name = known.name.clone();
                these.push(Topic { id: known.id, name, partitions: topic.partitions });
            }
            // Nothing is known of such a topic, which is no error (Kafka too).
            None => {
                let partitions =
                    topic.partitions.iter().map(|partition| DescribeShareGroupOffsetsResponsePartition {
                        partition_index: *partition,
                        start_offset: -1,
                        ..Default::default()
                    });
                group.topics.push(DescribeShareGroupOffsetsResponseTopic {
                    topic_name: topic.topic_name,
                    partitions: partitions.collect(),
                    ..Default::default()
                });
            }
        }
    }
    Ok((!these.is_empty()).then_some(Wanted::These(these)))
}

fn denied(topic: DescribeShareGroupOffsetsRequestTopic) -> DescribeShareGroupOffsetsResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| DescribeShareGroupOffsetsResponsePartition {
        partition_index: *partition,
        error_code: ErrorCode::TopicAuthorizationFailed.code(),
        error_message: refusal(ErrorCode::TopicAuthorizationFailed).text(),
        ..Default::default()
    });
    DescribeShareGroupOffsetsResponseTopic {
        topic_name: topic.topic_name,
        partitions: partitions.collect(),
        ..Default::default()
    }
}

/// What the answer about these topics takes, with what is asked to make it.
pub fn answer_bytes(topics: &[Topic]) -> usize {
    const ASKED_BYTES: usize = 256;
    let partition = size_of::<DescribeShareGroupOffsetsResponsePartition>() + ASKED_BYTES;
    topics.iter().map(|topic| 2 * topic.name.len() + ASKED_BYTES + topic.partitions.len() * partition).sum()
}

/// Whether the lag of a share-partition can be told once its log's end is known.
pub fn has_lag(summary: &Result<Summary, ErrorCode>) -> bool {
    summary.is_ok_and(|summary| summary.start_offset != -1 && summary.delivery_complete_count != -1)
}

/// One share-partition's answer. `end`: the end of its log as consumers see it, where it was asked for.
pub fn partition(
    index: i32,
    summary: Result<Summary, ErrorCode>,
    end: Option<Result<i64, ErrorCode>>,
) -> DescribeShareGroupOffsetsResponsePartition {
    let mut partition = DescribeShareGroupOffsetsResponsePartition {
        partition_index: index,
        start_offset: -1,
        ..Default::default()
    };
    let summary = match (summary, end) {
        (Err(code), _) => {
            partition.error_code = code.code();
            return partition;
        }
        (Ok(_), Some(Err(code))) => {
            // What Kafka says then has neither start nor epoch.
            partition.start_offset = 0;
            partition.error_code = code.code();
            return partition;
        }
        (Ok(summary), Some(Ok(end))) => {
            let done = i64::from(summary.delivery_complete_count);
            partition.lag = end.saturating_sub(summary.start_offset).saturating_sub(done);
            summary
        }
        (Ok(summary), None) => summary,
    };
    partition.start_offset = summary.start_offset;
    partition.leader_epoch = summary.leader_epoch;
    partition
}

impl Pending {
    /// Takes over what is known of a group.
    pub fn add(
        &mut self,
        place: usize,
        topics: Vec<(Topic, Vec<DescribeShareGroupOffsetsResponsePartition>)>,
    ) {
        let topics = topics.into_iter().map(|(topic, partitions)| DescribeShareGroupOffsetsResponseTopic {
            topic_name: Str::from(&topic.name),
            topic_id: topic.id,
            partitions,
            ..Default::default()
        });
        self.groups[place].topics.extend(topics);
    }

    /// Takes over that nothing can be said of a group.
    pub fn refuse(&mut self, place: usize, code: ErrorCode) {
        self.groups[place].error_code = code.code();
    }

    /// The answer, once every group's is in.
    pub fn respond(mut self, version: i16) -> DescribeShareGroupOffsetsResponse {
        if version < LAG_SINCE {
            let topics = self.groups.iter_mut().flat_map(|group| &mut group.topics);
            topics.flat_map(|topic| &mut topic.partitions).for_each(|partition| partition.lag = -1);
        }
        DescribeShareGroupOffsetsResponse { groups: self.groups, ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
