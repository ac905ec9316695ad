//! GetTelemetrySubscriptions and PushTelemetry (KIP-714). core/telemetry decides; node/workers/client_metrics.rs holds
//! its table.
//!
//! A push that inflates to little is read at once. A larger one, up to `telemetry.max.bytes`, is a job for the threads
//! of node/workers/unpacking.rs: it would hold up the worker's other connections.

use crate::log_dirs::directories::random_uuid;
use crate::node::workers::unpacking::AT_ONCE;
use crate::requests::call::{Answer, Call, Started};
use barnabas_api::{k71_get_telemetry_subscriptions as k71, k72_push_telemetry as k72};
use barnabas_base::{ErrorCode, Text, Uuid};
use barnabas_telemetry::{Client, Points, payload};
use barnabas_wire::messages::{GetTelemetrySubscriptionsRequest, PushTelemetryRequest};

pub fn subscriptions(call: &Call, request: &GetTelemetrySubscriptionsRequest) -> Started {
    let node = &call.session.node;
    let metrics = &node.workers.client_metrics;
    let instance_id = k71::instance_id(request).unwrap_or_else(random_uuid);
    let client = client(call, instance_id);
    let offered = metrics.current(node).get(client, node.clock.monotonic());
    Started::reply(k71::respond(instance_id, offered, metrics.push_bytes_max))
}

pub fn push(call: Call, request: PushTelemetryRequest) -> Started {
    let node = call.session.node.clone();
    let k72::Work { instance_id, push, metrics } = k72::plan(request);
    let client = client(&call, instance_id);
    let state = &node.workers.client_metrics;
    let admitted = state.current(&node).push(client, push, node.clock.monotonic());
    let codec = match admitted {
        Ok(codec) => codec,
        Err(code) => return Started::reply(k72::respond(Err(code))),
    };
    let (bytes_max, limits) = (state.push_bytes_max, state.limits);
    let at_once = AT_ONCE.read_bytes_max.min(bytes_max);
    let read = payload::read(codec, metrics.clone(), at_once, limits);
    let is_large = matches!(read, Err(ErrorCode::TelemetryTooLarge)) && at_once < bytes_max;
    if !is_large {
        return Started::reply(k72::respond(kept(&call, instance_id, read)));
    }
    Started::wait(async move {
        let beside = call.session.beside();
        let read = move || payload::read(codec, metrics, bytes_max, limits);
        let read = beside.threads.run(Some(beside.address), read).await;
        let read = read.unwrap_or(Err(ErrorCode::UnknownServerError));
        Answer::Reply(k72::respond(kept(&call, instance_id, read)).into())
    })
}

/// Hands on what was read of a push.
fn kept(call: &Call, instance_id: Uuid, read: Result<Points, ErrorCode>) -> Result<(), ErrorCode> {
    let mut table = call.session.node.workers.client_metrics.table();
    match read {
        Ok(points) => {
            table.take(instance_id, points);
            Ok(())
        }
        Err(code) => {
            table.refuse(instance_id, code);
            Err(code)
        }
    }
}

fn client(call: &Call, instance_id: Uuid) -> Client {
    let peer = call.session.peer;
    let address = Text::from(peer.ip().to_canonical().to_string());
    let client_id = call.client.client_id.as_deref();
    let software = call.session.software().unwrap_or_default();
    Client::new(instance_id, client_id, software, address, peer.port())
}
