//! # DescribeCluster, key 60, versions 0–2
//!
//! Tells which nodes the cluster has: brokers when asked on a broker's listener, controllers on a controller's.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-700) |
//! | 1 | brokers or controllers (KIP-919) |
//! | 2 | fenced brokers, if asked for (KIP-1073) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeCluster`, `AuthHelper.computeDescribeClusterResponse`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_cluster_request::DescribeClusterRequest;
use barnabas_wire::messages::describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse};

use crate::Context;
use crate::access::OPERATIONS_NOT_ASKED;
use crate::k18_api_versions::Listener;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// The answer. `quorum_leader` is the active controller, [`BrokerId::NONE`] while there is none.
pub fn answer(
    request: &DescribeClusterRequest,
    version: i16,
    listener: Listener,
    quorum_leader: BrokerId,
    ctx: &Context<'_>,
) -> DescribeClusterResponse {
    let here = match listener {
        Listener::Broker => BROKERS,
        Listener::Controller => CONTROLLERS,
    };
    let wanted = if version >= 1 { request.endpoint_type } else { BROKERS };
    if !matches!(wanted, BROKERS | CONTROLLERS) {
        return refuse(
            ErrorCode::UnsupportedEndpointType,
            version,
            format!("Unsupported endpoint type {wanted}"),
        );
    }
    if wanted != here {
        let word = |kind| if kind == BROKERS { "BROKER" } else { "CONTROLLER" };
        let message = format!(
            "The request was sent to an endpoint of type {}, but we wanted an endpoint of type {}",
            word(here),
            word(wanted)
        );
        return refuse(ErrorCode::MismatchedEndpointType, version, message);
    }
    let (nodes, controller_id) = match listener {
        Listener::Broker => {
            (brokers(version >= 2 && request.include_fenced_brokers, ctx), ctx.controller_id())
        }
        Listener::Controller => (controllers(ctx), quorum_leader.get()),
    };
    let is_there = nodes.iter().any(|node| node.broker_id == controller_id);
    DescribeClusterResponse {
        endpoint_type: here,
        cluster_id: Str::from(ctx.cluster_id),
        controller_id: if is_there { controller_id } else { BrokerId::NONE.get() },
        brokers: nodes,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            ctx.access.cluster_operations()
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..DescribeClusterResponse::default()
    }
}

fn refuse(code: ErrorCode, version: i16, message: String) -> DescribeClusterResponse {
    let code = if version == 0 { ErrorCode::InvalidRequest } else { code };
    DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(Str::from(message)),
        ..DescribeClusterResponse::default()
    }
}

fn brokers(with_fenced: bool, ctx: &Context<'_>) -> Vec<DescribeClusterBroker> {
    let shown = ctx.image.cluster.brokers().filter(|broker| with_fenced || !broker.fenced);
    let described = shown.filter_map(|broker| {
        let node = ctx.node_of(broker)?;
        Some(DescribeClusterBroker {
            broker_id: node.id.get(),
            host: node.host,
            port: node.port,
            rack: node.rack,
            is_fenced: with_fenced && broker.fenced,
            ..DescribeClusterBroker::default()
        })
    });
    described.collect()
}

fn controllers(ctx: &Context<'_>) -> Vec<DescribeClusterBroker> {
    let described = ctx.image.cluster.controllers().filter_map(|controller| {
        let endpoint =
            controller.endpoints.iter().find(|endpoint| endpoint.listener == ctx.client.listener)?;
        Some(DescribeClusterBroker {
            broker_id: controller.id.get(),
            host: Str::from(&endpoint.host),
            port: i32::from(endpoint.port),
            ..DescribeClusterBroker::default()
        })
    });
    described.collect()
}

#[cfg(test)]
mod tests;
