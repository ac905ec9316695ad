//! StreamsGroupHeartbeat, -Describe and -TopologyDescriptionUpdate. A heartbeat that comes to a group whose internal
//! topics are missing has them made, before it is answered: the member that founds an application finds its topics on
//! its next heartbeat.

use super::{ask, ask_each, response_of, send};
use crate::requests::call::parts::Gone;
use crate::requests::call::{Answer, Call, Started, Starting};
use crate::requests::cluster::admin;
use barnabas_api::{
    Plan, k88_streams_group_heartbeat, k89_streams_group_describe,
    k93_streams_group_topology_description_update,
};
use barnabas_coordinator::{Request, Response, StreamsHeartbeat};
use barnabas_wire::messages::{
    StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest, StreamsGroupTopologyDescriptionUpdateRequest,
};

pub async fn heartbeat(call: Call, request: StreamsGroupHeartbeatRequest) -> Started {
    let moment = call.moment();
    let work = match k88_streams_group_heartbeat::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let asked = send(&call, work.shard, Request::StreamsGroupHeartbeat(Box::new(work.request))).await;
    Started::wait(async move {
        let StreamsHeartbeat { mut response, create } = match asked.wait().await {
            Ok(Response::StreamsGroupHeartbeat(answer)) => *answer,
            Ok(_) | Err(Gone) => return Answer::Close,
        };
        let creates = !create.is_empty()
            && k88_streams_group_heartbeat::may_create(&mut response, &create, &call.access());
        if !creates {
            return Answer::Reply(response.into());
        }
        let moment = call.moment();
        let creation = k88_streams_group_heartbeat::creation(create, &call.context(&moment));
        let created = admin::create_for_group(&call, creation).await;
        Answer::Reply(k88_streams_group_heartbeat::respond(response, &created).into())
    })
}

pub async fn describe(call: Call, request: StreamsGroupDescribeRequest) -> Started {
    let moment = call.moment();
    let work = match k89_streams_group_describe::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let parts = work.parts.into_iter().map(|part| (part.shard, Request::StreamsGroupDescribe(part.request)));
    let of_kind = |response| response_of!(response, StreamsGroupDescribe);
    ask_each(
        call,
        parts,
        of_kind,
        work.pending,
        |pending, response, call| {
            pending.add(response, &call.room, &call.access());
            true
        },
        k89_streams_group_describe::Pending::respond,
    )
    .await
}

pub fn take_description(call: Call, request: StreamsGroupTopologyDescriptionUpdateRequest) -> Starting {
    let moment = call.moment();
    let plan = k93_streams_group_topology_description_update::plan(request, &call.context(&moment));
    let to_shard = |request| Request::StreamsTopologyDescription(Box::new(request));
    ask(&call, plan, to_shard, |response| {
        response_of!(response, StreamsTopologyDescription).map(|response| response.into())
    })
}
