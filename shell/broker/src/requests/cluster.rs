//! Requests that are answered from the metadata image, without a partition or a coordinator: ApiVersions, Metadata,
//! FindCoordinator, DescribeCluster, DescribeConfigs, DescribeTopicPartitions, ListConfigResources,
//! ListPartitionReassignments.
//!
//! Metadata and FindCoordinator also send the controller a CreateTopics request for topics that do not exist
//! (core/api/src/auto_create.rs). They do not wait for it: the answer says that the topic is missing, and the client
//! asks again. Metadata that names very many topics is answered by the threads of node/workers/unpacking.rs.

pub mod access;
pub mod admin;
mod auto_creation;
pub mod log_dirs;
mod metrics_in_band;
mod security_changes;
pub mod telemetry;

use crate::requests::call::{Answer, Call, Started, pieces, unencodable};
use barnabas_api::{
    Context, Plan, k03_metadata, k10_find_coordinator, k18_api_versions, k32_describe_configs,
    k46_list_partition_reassignments, k60_describe_cluster, k74_list_config_resources,
    k75_describe_topic_partitions,
};
use barnabas_wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, DescribeConfigsRequest,
    DescribeTopicPartitionsRequest, FindCoordinatorRequest, ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest, MetadataRequest,
};
use std::time::Duration;

/// How often it is looked whether the cluster has decided what an answer waits for.
const LOOK: Duration = Duration::from_millis(2);

pub fn api_versions(call: &Call, request: &ApiVersionsRequest) -> Started {
    Started::reply(answer_api_versions(call, request))
}

/// For SASL's exchange, which comes before requests.
pub fn answer_api_versions(call: &Call, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let moment = call.moment();
    let kraft_version = call.session.node.peers.controller.kraft_version();
    let context = call.context(&moment);
    let response = k18_api_versions::answer(request, call.version, call.listener(), kraft_version, &context);
    if call.version >= 3 && response.error_code == 0 {
        call.session.names_software(&request.client_software_name, &request.client_software_version);
    }
    response
}

/// Topics that are missing are asked for in the broker's own name; the client asks again, as with Kafka.
///
/// How long the answer waits for the cluster: `k03_metadata::waits`.
pub fn metadata(call: Call, request: MetadataRequest) -> Started {
    let arrived = call.session.node.clock.monotonic();
    let must_wait = move |call: &Call| {
        let node = &call.session.node;
        node.cluster.suspected_brokers.must_wait(&node.cluster.image.load(), arrived, node.clock.monotonic())
    };
    if !must_wait(&call) {
        return metadata_now(&call, request);
    }
    Started::wait(async move {
        while must_wait(&call) {
            tokio::time::sleep(LOOK).await;
        }
        match metadata_now(&call, request) {
            Started::Answer(answer) => answer,
            Started::Wait(waiting) => waiting.await,
        }
    })
}

fn metadata_now(call: &Call, request: MetadataRequest) -> Started {
    let moment = call.moment();
    match k03_metadata::names_many(&request, &call.context(&moment)) {
        true => Started::wait(metadata_of_many(call.clone(), request)),
        false => metadata_here(call, request),
    }
}

/// Looks up beside the workers what a request names: a hundred thousand topics take a tenth of a second.
async fn metadata_of_many(call: Call, request: MetadataRequest) -> Answer {
    let (moment, version, node) = (call.moment(), call.version, call.session.node.clone());
    let client = call.asking();
    let work = move |ctx: &Context<'_>| {
        let mut large = k03_metadata::large(&request, version, ctx);
        if let Ok(Some(large)) = &mut large
            && let Some(create) = large.take_creation()
        {
            node.cluster.topic_creation.ask(&node, create, client);
        }
        (request, large)
    };
    match pieces::beside(&call, &moment, work).await {
        Some((_, Ok(Some(large)))) => pieces::answer(&call, moment, Box::new(large.write()), None).await,
        Some((_, Err(error))) => unencodable(&call.session, &error),
        // It names the same few again and again, or is invalid.
        Some((request, Ok(None))) => match metadata_here(&call, request) {
            Started::Answer(answer) => answer,
            Started::Wait(waiting) => waiting.await,
        },
        None => Answer::Close,
    }
}

fn metadata_here(call: &Call, request: MetadataRequest) -> Started {
    let moment = call.moment();
    match k03_metadata::large(&request, call.version, &call.context(&moment)) {
        Ok(None) => {}
        Ok(Some(mut large)) => {
            if let Some(create) = large.take_creation() {
                let node = &call.session.node;
                node.cluster.topic_creation.ask(node, create, call.asking());
            }
            return pieces::start(call, moment, Box::new(large.write()));
        }
        Err(error) => {
            return Started::Answer(unencodable(&call.session, &error));
        }
    }
    match k03_metadata::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => {
            let node = &call.session.node;
            node.cluster.topic_creation.ask(node, work.create, call.asking());
            Started::reply(work.response)
        }
    }
}

/// As [`metadata`]: where the coordinators' topic is missing it is asked for, and the client asks again.
pub fn find_coordinator(call: &Call, request: FindCoordinatorRequest) -> Started {
    let moment = call.moment();
    match k10_find_coordinator::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => {
            call.session.node.peers.controller.auto_create(work.create, None);
            Started::reply(work.response)
        }
    }
}

pub fn describe_configs(call: &Call, request: DescribeConfigsRequest) -> Started {
    if let Some(metrics) = metrics_in_band::describe(call, &request) {
        return metrics;
    }
    let moment = call.moment();
    let node = &call.session.node;
    match k32_describe_configs::large(request, call.version, node.workers.answer_bytes_max) {
        Ok(Ok(large)) => pieces::start(call, moment, Box::new(large)),
        Ok(Err(request)) => {
            Started::reply(k32_describe_configs::answer(&request, call.version, &call.context(&moment)))
        }
        Err(error) => Started::Answer(unencodable(&call.session, &error)),
    }
}

pub fn describe_cluster(call: &Call, request: &DescribeClusterRequest) -> Started {
    let moment = call.moment();
    let leader = call.session.node.peers.controller.leader();
    let context = call.context(&moment);
    Started::reply(k60_describe_cluster::answer(request, call.version, call.listener(), leader, &context))
}

pub fn describe_topic_partitions(call: &Call, request: &DescribeTopicPartitionsRequest) -> Started {
    let moment = call.moment();
    Started::reply(k75_describe_topic_partitions::answer(request, &call.context(&moment)))
}

pub fn list_config_resources(call: &Call, request: &ListConfigResourcesRequest) -> Started {
    let moment = call.moment();
    match k74_list_config_resources::large(request, call.version, &call.context(&moment)) {
        Ok(Some(large)) => pieces::start(call, moment, Box::new(large)),
        Ok(None) => {
            Started::reply(k74_list_config_resources::answer(request, call.version, &call.context(&moment)))
        }
        Err(error) => Started::Answer(unencodable(&call.session, &error)),
    }
}

pub fn list_partition_reassignments(call: &Call, request: &ListPartitionReassignmentsRequest) -> Started {
    let moment = call.moment();
    if let Some(large) = k46_list_partition_reassignments::large(request, &call.context(&moment)) {
        return pieces::start(call, moment, Box::new(large));
    }
    let response = k46_list_partition_reassignments::answer(request, &call.context(&moment));
    Started::Answer(call.room.reply(response))
}
