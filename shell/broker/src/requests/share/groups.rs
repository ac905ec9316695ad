//! Share groups (KIP-932): requests of members and tools to the group's shard, questions about their state to the share
//! coordinator.
//!
//! ShareFetch and ShareAcknowledge are not here: requests/share/fetch.rs.

use crate::node::Node;
use crate::requests::call::{Answer, Call, Started, Starting, now};
use crate::requests::groups::{ask, ask_each, response_of, send};
use crate::routing::share_persister;
use barnabas_api::k90_describe_share_group_offsets::{self as describe_offsets, Summary, Topic, Wanted};
use barnabas_api::{
    Plan, k76_share_group_heartbeat, k77_share_group_describe, k91_alter_share_group_offsets,
    k92_delete_share_group_offsets,
};
use barnabas_base::{ErrorCode, PartitionIndex, Text};
use barnabas_coordinator::{Request, Response, SharePartitionKey};
use barnabas_security::Operation;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest, ShareGroupHeartbeatRequest,
};
use std::sync::Arc;

pub fn heartbeat(call: Call, request: ShareGroupHeartbeatRequest) -> Starting {
    let moment = call.moment();
    let plan = k76_share_group_heartbeat::plan(request, &call.context(&moment));
    ask(&call, plan, Request::ShareGroupHeartbeat, |response| {
        response_of!(response, ShareGroupHeartbeat).map(Into::into)
    })
}

pub async fn describe(call: Call, request: ShareGroupDescribeRequest) -> Started {
    let moment = call.moment();
    let work = match k77_share_group_describe::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.parts.into_iter().map(|part| (part.shard, Request::ShareGroupDescribe(part.request)));
    let of_kind = |response| response_of!(response, ShareGroupDescribe);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, call| {
            pending.add(response, &call.room, &call.access());
            true
        },
        k77_share_group_describe::Pending::respond,
    )
    .await
}

pub fn alter_offsets(call: Call, request: AlterShareGroupOffsetsRequest) -> Starting {
    let moment = call.moment();
    let (plan, pending) = match k91_alter_share_group_offsets::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return now(Started::reply(response)),
        Plan::Work(work) => (Plan::<_, ResponseBody>::Work(work.asked), work.pending),
    };
    let respond = move |response| {
        response_of!(response, AlterShareGroupOffsets).map(|response| pending.respond(response).into())
    };
    ask(&call, plan, Request::AlterShareGroupOffsets, respond)
}

pub fn delete_offsets(call: Call, request: DeleteShareGroupOffsetsRequest) -> Starting {
    let moment = call.moment();
    let (plan, pending) = match k92_delete_share_group_offsets::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return now(Started::reply(response)),
        Plan::Work(work) => (Plan::<_, ResponseBody>::Work(work.asked), work.pending),
    };
    let respond = move |response| {
        response_of!(response, DeleteShareGroupOffsets).map(|response| pending.respond(response).into())
    };
    ask(&call, plan, Request::DeleteShareGroupOffsets, respond)
}

pub async fn describe_offsets(call: Call, request: DescribeShareGroupOffsetsRequest) -> Started {
    let moment = call.moment();
    let work = match describe_offsets::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let mut pending = work.pending;
    Started::wait(async move {
        let node = &call.session.node;
        // One group after the other: what has no room in the answer is not asked for.
        for describe_offsets::Part { place, group, wanted } in work.parts {
            let topics = match wanted {
                Wanted::These(topics) => topics,
                Wanted::All(shard) => {
                    let asked = send(&call, shard, Request::SharePartitions((&group).into())).await;
                    match asked.wait().await {
                        Ok(Response::SharePartitions(Ok(topics))) => named(&call, topics),
                        Ok(Response::SharePartitions(Err(code))) => {
                            pending.refuse(place, code);
                            continue;
                        }
                        _ => return Answer::Close,
                    }
                }
            };
            match call.room.hold(describe_offsets::answer_bytes(&topics)).await {
                Ok(()) => pending.add(place, offsets_of(node, &group, topics).await),
                Err(large) => pending.refuse(place, large.code(ErrorCode::CoordinatorLoadInProgress)),
            }
        }
        call.room.reply(pending.respond(call.version))
    })
}

/// Topics that are gone are left out, and those that the client may not describe.
fn named(call: &Call, topics: Vec<(barnabas_base::TopicId, Vec<i32>)>) -> Vec<Topic> {
    let image = call.session.node.cluster.image.load();
    let access = call.access();
    let there = topics.into_iter().filter_map(|(id, partitions)| {
        let name = image.topics.by_id(id)?.name.clone();
        if !access.sees_topic(Operation::Describe, &name) {
            return None;
        }
        Some(Topic { id, name, partitions })
    });
    there.collect()
}

type Described = barnabas_wire::messages::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponsePartition;

/// Where each of the share-partitions stands, and how much it has before it.
async fn offsets_of(node: &Arc<Node>, group: &Text, topics: Vec<Topic>) -> Vec<(Topic, Vec<Described>)> {
    let keys = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| SharePartitionKey {
            group: group.clone(),
            topic: topic.id,
            partition: PartitionIndex(*partition),
        })
    });
    let keys: Vec<SharePartitionKey> = keys.collect();
    let summaries = share_persister::read_summaries(node, keys.clone()).await;
    let summaries: Vec<Result<Summary, ErrorCode>> = summaries
        .into_iter()
        .map(|summary| {
            summary.map(|summary| Summary {
                state_epoch: summary.state_epoch,
                leader_epoch: summary.leader_epoch.get(),
                start_offset: summary.start_offset.get(),
                delivery_complete_count: summary.delivery_complete_count,
            })
        })
        .collect();
    let ends = share_persister::log_ends(
        node,
        keys.iter()
            .zip(&summaries)
            .filter(|(_, summary)| describe_offsets::has_lag(summary))
            .map(|(key, _)| key),
    )
    .await;
    let mut summaries = keys.iter().zip(summaries);
    let described = topics.into_iter().map(|topic| {
        let partitions = summaries.by_ref().take(topic.partitions.len()).map(|(key, summary)| {
            let end = ends.get(&(key.topic, key.partition)).copied();
            let end = describe_offsets::has_lag(&summary)
                .then(|| end.unwrap_or(Err(ErrorCode::LeaderNotAvailable)).map(|end| end.get()));
            describe_offsets::partition(key.partition.get(), summary, end)
        });
        let partitions = partitions.collect();
        (topic, partitions)
    });
    described.collect()
}
