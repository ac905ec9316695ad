//! What is answered from the image alone, and what comes to be because a client named it: ApiVersions, Metadata,
//! FindCoordinator, InitProducerId.

use super::{Answer, Call, Started};
use barnabas_api::{Plan, k03_metadata, k10_find_coordinator, k18_api_versions, k22_init_producer_id};
use barnabas_wire::messages::{
    ApiVersionsRequest, FindCoordinatorRequest, InitProducerIdRequest, MetadataRequest,
};

pub fn api_versions(call: &Call, request: &ApiVersionsRequest) -> Started {
    let moment = call.moment();
    let kraft_version = call.session.node.controller.kraft_version();
    let context = call.context(&moment);
    Started::reply(k18_api_versions::answer(request, call.version, call.listener(), kraft_version, &context))
}

/// Topics that are missing are asked for in the broker's own name; the client asks again, as with Kafka.
pub fn metadata(call: &Call, request: MetadataRequest) -> Started {
    let moment = call.moment();
    match k03_metadata::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => {
            call.session.node.controller.auto_create(work.create);
            Started::reply(work.response)
        }
    }
}

/// As [`metadata`]: where `__consumer_offsets` is missing it is asked for, and the client asks again.
pub fn find_coordinator(call: &Call, request: FindCoordinatorRequest) -> Started {
    let moment = call.moment();
    match k10_find_coordinator::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => {
            call.session.node.controller.auto_create(work.create);
            Started::reply(work.response)
        }
    }
}

pub fn init_producer_id(call: Call, request: &InitProducerIdRequest) -> Started {
    match k22_init_producer_id::plan(request) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(_) => Started::wait(async move {
            let node = &call.session.node;
            let id = node.producer_ids.next(node).await;
            Answer::Reply(k22_init_producer_id::respond(id).into())
        }),
    }
}
