//! Group requests: each to the shard that looks after its group, on the worker that owns the shard's partition.

pub mod streams;

use crate::mailbox::{Command, GroupCommand, PartitionKey, Standing};
use crate::requests::call::parts::{Coordinator, Gone, Questions};
use crate::requests::call::{Answer, Call, Started, Starting, now};
use barnabas_api::groups::ToShard;
use barnabas_api::{
    Plan, Slot, k08_offset_commit, k09_offset_fetch, k11_join_group, k12_heartbeat, k13_leave_group,
    k14_sync_group, k15_describe_groups, k16_list_groups, k42_delete_groups, k47_offset_delete,
    k68_consumer_group_heartbeat, k69_consumer_group_describe,
};
use barnabas_base::{ErrorCode, PartitionIndex, Text, name};
use barnabas_coordinator::{Describable, Part, Request, Response};
use barnabas_security::Operation;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest, DescribeGroupsRequest,
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest,
};
use tokio::sync::oneshot;

/// A shard's answer on its way.
pub(super) struct Asked {
    answer: oneshot::Receiver<Response>,
}

impl Asked {
    pub(super) async fn wait(self) -> Result<Response, Gone> {
        self.answer.await.map_err(|_| Gone)
    }
}

/// The shards of groups.
pub(super) struct Groups;

impl Coordinator for Groups {
    type Request = Request;
    type Response = Response;

    async fn send(
        call: &Call,
        shard: PartitionIndex,
        request: Request,
        room: usize,
    ) -> oneshot::Receiver<Response> {
        let (asked, left) = hand_over(call, shard, request, Standing::Open, Some(room));
        if let Some((owner, command)) = left {
            call.session.node.workers.owner(owner).send(*command).await;
        }
        asked.answer
    }

    fn refuse(request: &Request, code: ErrorCode) -> Response {
        request.refuse(code)
    }

    fn parts(response: Response) -> Result<Vec<Part<Request>>, Response> {
        match response {
            Response::Parts(parts) => Ok(parts),
            response => Err(response),
        }
    }
}

/// Sends a request to a shard, now.
pub(super) async fn send(call: &Call, shard: PartitionIndex, request: Request) -> Asked {
    send_standing(call, shard, request, Standing::Open).await
}

/// As [`send`]; `standing` is that of records within a transaction.
pub(super) async fn send_standing(
    call: &Call,
    shard: PartitionIndex,
    request: Request,
    standing: Standing,
) -> Asked {
    let (asked, left) = hand_over(call, shard, request, standing, None);
    if let Some((owner, command)) = left {
        call.session.node.workers.owner(owner).send(*command).await;
    }
    asked
}

/// Sends a request to a shard; what is given back finds the mailbox of the shard's owner full.
fn hand_over(
    call: &Call,
    shard: PartitionIndex,
    request: Request,
    standing: Standing,
    room: Option<usize>,
) -> (Asked, Option<(PartitionKey, Box<Command>)>) {
    let (reply, answer) = oneshot::channel();
    let asked = Asked { answer };
    let node = &call.session.node;
    let Some(topic) = node.cluster.image.load().topics.id_of(name::CONSUMER_OFFSETS) else {
        // Deleted since the plan was made.
        drop(reply.send(request.refuse(ErrorCode::NotCoordinator)));
        return (asked, None);
    };
    let shard = PartitionKey { topic, partition: shard };
    // A consumer asks its coordinator by a connection of its own, which had better be where the shard is.
    call.session.worked_for(std::iter::once(shard.owner(node.workers.count)));
    let names_topics = matches!(request, Request::ConsumerGroupHeartbeat(_));
    let command = GroupCommand {
        shard,
        request,
        version: call.version,
        client_id: call.client.client_id.clone().unwrap_or_else(|| Text::from("")),
        client_host: call.client.host.clone(),
        connection: Some(call.session.number),
        describable: names_topics.then(|| describable(call)).flatten(),
        standing,
        room,
        reply,
    };
    let left = node.workers.owner(shard).offer(Command::Group(command)).err();
    (asked, left.map(|command| (shard, command)))
}

/// What the client may describe, for expressions that are resolved on another thread; `None`: all topics.
fn describable(call: &Call) -> Option<Describable> {
    let client = call.caller.elsewhere(call.api, &call.session.node, call.who());
    let may_describe = move |topic: &str| client.access().sees_topic(Operation::Describe, topic);
    (!call.access().is_open()).then(|| Describable::new(may_describe))
}

/// One request, one shard, one answer.
pub(super) fn ask<R, A: Into<ResponseBody>>(
    call: &Call,
    plan: Plan<ToShard<R>, A>,
    wrap: impl FnOnce(R) -> Request,
    respond: impl FnOnce(Response) -> Option<ResponseBody> + 'static,
) -> Starting {
    let work = match plan {
        Plan::Answer(response) => return now(Started::reply(response)),
        Plan::Work(work) => work,
    };
    let (asked, left) = hand_over(call, work.shard, wrap(work.request), Standing::Open, None);
    let started = Started::wait(async move {
        match asked.wait().await {
            Ok(response) => respond(response).map_or(Answer::Close, Answer::Reply),
            Err(Gone) => Answer::Close,
        }
    });
    let Some((owner, command)) = left else { return now(started) };
    let node = call.session.node.clone();
    Box::pin(async move {
        node.workers.owner(owner).send(*command).await;
        started
    })
}

/// One request, a part of it for each of several shards, and one answer of all that they say. `add` returns whether the
/// rest is wanted.
pub(super) async fn ask_each<R, P: 'static, A: Into<ResponseBody>>(
    call: Call,
    parts: impl Iterator<Item = (PartitionIndex, Request)>,
    of_kind: impl Fn(Response) -> Option<R> + 'static,
    mut pending: P,
    add: impl Fn(&mut P, R, &Call) -> bool + 'static,
    respond: impl FnOnce(P) -> A + 'static,
) -> Started {
    let parts = parts.map(|(shard, request)| ((), shard, request));
    let mut questions: Questions<Groups, ()> = Questions::begin(&call, parts).await;
    Started::wait(async move {
        while let Some(answer) = questions.next().await {
            let Some(response) = answer.ok().and_then(|((), response)| of_kind(response)) else {
                return Answer::Close;
            };
            if !add(&mut pending, response, &call) {
                break;
            }
        }
        call.room.reply(respond(pending))
    })
}

/// The response of one kind; a shard answers a request with its own kind only.
macro_rules! response_of {
    ($response:expr, $kind:ident) => {
        match $response {
            Response::$kind(response) => Some(response),
            _ => None,
        }
    };
}
pub(super) use response_of;

pub fn join_group(call: Call, request: JoinGroupRequest) -> Starting {
    let moment = call.moment();
    let version = call.version;
    let plan = k11_join_group::plan(request, version, &call.context(&moment));
    let respond = move |response| {
        response_of!(response, JoinGroup).map(|response| k11_join_group::respond(response, version).into())
    };
    ask(&call, plan, Request::JoinGroup, respond)
}

pub fn sync_group(call: Call, request: SyncGroupRequest) -> Starting {
    let moment = call.moment();
    let plan = k14_sync_group::plan(request, call.version, &call.context(&moment));
    ask(&call, plan, Request::SyncGroup, |response| response_of!(response, SyncGroup).map(Into::into))
}

pub fn heartbeat(call: Call, request: HeartbeatRequest) -> Starting {
    let moment = call.moment();
    let plan = k12_heartbeat::plan(request, &call.context(&moment));
    ask(&call, plan, Request::Heartbeat, |response| response_of!(response, Heartbeat).map(Into::into))
}

pub fn consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> Starting {
    let moment = call.moment();
    let plan = k68_consumer_group_heartbeat::plan(request, &call.context(&moment));
    let respond = |response| response_of!(response, ConsumerGroupHeartbeat).map(Into::into);
    ask(&call, plan, Request::ConsumerGroupHeartbeat, respond)
}

pub async fn consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> Started {
    let moment = call.moment();
    let work = match k69_consumer_group_describe::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.parts.into_iter().map(|part| (part.shard, Request::ConsumerGroupDescribe(part.request)));
    let of_kind = |response| response_of!(response, ConsumerGroupDescribe);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, call| {
            pending.add(response, &call.room, &call.access());
            true
        },
        k69_consumer_group_describe::Pending::respond,
    )
    .await
}

pub fn leave_group(call: Call, request: LeaveGroupRequest) -> Starting {
    let moment = call.moment();
    let version = call.version;
    let plan = k13_leave_group::plan(request, &call.context(&moment));
    let respond = move |response| {
        response_of!(response, LeaveGroup).map(|response| k13_leave_group::respond(response, version).into())
    };
    ask(&call, plan, Request::LeaveGroup, respond)
}

pub fn offset_commit(call: Call, request: OffsetCommitRequest) -> Starting {
    let moment = call.moment();
    let (plan, pending) = match k08_offset_commit::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return now(Started::reply(response)),
        Plan::Work(work) => (Plan::<_, ResponseBody>::Work(work.commit), work.pending),
    };
    let respond =
        move |response| response_of!(response, OffsetCommit).map(|response| pending.respond(response).into());
    ask(&call, plan, Request::OffsetCommit, respond)
}

pub fn offset_delete(call: Call, request: OffsetDeleteRequest) -> Starting {
    let moment = call.moment();
    let (plan, pending) = match k47_offset_delete::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return now(Started::reply(response)),
        Plan::Work(work) => (Plan::<_, ResponseBody>::Work(work.delete), work.pending),
    };
    let respond =
        move |response| response_of!(response, OffsetDelete).map(|response| pending.respond(response).into());
    ask(&call, plan, Request::OffsetDelete, respond)
}

pub async fn offset_fetch(call: Call, request: OffsetFetchRequest) -> Started {
    let moment = call.moment();
    let work = match k09_offset_fetch::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut pending, require_stable) = (work.pending, work.require_stable);
    let parts = work.parts.into_iter().map(|part| {
        let request = Request::OffsetFetch { group: part.group, require_stable };
        (part.slot, part.shard, request)
    });
    let mut questions: Questions<Groups, Slot> = Questions::begin(&call, parts).await;
    Started::wait(async move {
        while let Some(answer) = questions.next().await {
            let Ok((slot, Response::OffsetFetch(response))) = answer else { return Answer::Close };
            // One group named again and again is asked about no longer than the answer has room.
            if !pending.set(slot, response, &call.room) {
                questions.into_left().for_each(|slot| pending.refuse(slot));
                break;
            }
        }
        let moment = call.moment();
        let response = pending.respond(&call.context(&moment));
        call.room.reply(response)
    })
}

pub async fn describe_groups(call: Call, request: DescribeGroupsRequest) -> Started {
    let moment = call.moment();
    let work = match k15_describe_groups::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.parts.into_iter().map(|part| (part.shard, Request::DescribeGroups(part.request)));
    let of_kind = |response| response_of!(response, DescribeGroups);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, call| {
            pending.add(response, &call.room, &call.access());
            true
        },
        k15_describe_groups::Pending::respond,
    )
    .await
}

pub async fn delete_groups(call: Call, request: DeleteGroupsRequest) -> Started {
    let moment = call.moment();
    let work = match k42_delete_groups::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.parts.into_iter().map(|part| (part.shard, Request::DeleteGroups(part.request)));
    let of_kind = |response| response_of!(response, DeleteGroups);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, _| {
            pending.add(response);
            true
        },
        k42_delete_groups::Pending::respond,
    )
    .await
}

pub async fn list_groups(call: Call, request: ListGroupsRequest) -> Started {
    let moment = call.moment();
    let work = match k16_list_groups::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.shards.into_iter().map(|shard| (shard, Request::ListGroups(work.request.clone())));
    let of_kind = |response| response_of!(response, ListGroups);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, call| pending.add(response, &call.room, &call.access()),
        k16_list_groups::Pending::respond,
    )
    .await
}
