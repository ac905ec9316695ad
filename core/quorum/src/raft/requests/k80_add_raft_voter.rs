//! # AddRaftVoter, key 80, as the quorum takes it
//!
//! Adds a voter to the quorum. What its versions brought stands in core/api's `k80_add_raft_voter`, which words the
//! answer where no leader could be asked.
//!
//! Source: Kafka `KafkaRaftClient.handleAddVoterRequest`.

use barnabas_base::{BrokerId, DurationMs, ErrorCode};
use barnabas_wire::Str;
use barnabas_wire::messages::add_raft_voter_request::Listener;
use barnabas_wire::messages::{AddRaftVoterRequest, AddRaftVoterResponse};

use super::Here;
use crate::raft::message::{AddVoter, ReplicaKey, Request, Response};
use crate::voters::VoterEndpoint;

/// # Errors
/// The answer: another cluster's.
pub fn plan(
    request: &AddRaftVoterRequest,
    here: &Here,
    version: i16,
) -> Result<Request, AddRaftVoterResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        let what = "the request is for another cluster";
        return Err(refuse(ErrorCode::InconsistentClusterId, Some(Str::from_static(what))));
    }
    let endpoint = |listener: &Listener| VoterEndpoint {
        listener: listener.name.text(),
        host: listener.host.text(),
        port: listener.port,
    };
    Ok(Request::AddVoter(AddVoter {
        voter: ReplicaKey { id: BrokerId(request.voter_id), directory: request.voter_directory_id },
        endpoints: request.listeners.iter().map(endpoint).collect(),
        ack_when_committed: version < 1 || request.ack_when_committed,
        timeout: DurationMs(i64::from(request.timeout_ms)),
    }))
}

fn refuse(error: ErrorCode, message: Option<Str>) -> AddRaftVoterResponse {
    AddRaftVoterResponse {
        error_code: error.code(),
        error_message: message,
        ..AddRaftVoterResponse::default()
    }
}

pub fn respond(answer: &Response) -> AddRaftVoterResponse {
    match answer {
        Response::AddVoter { error, message } => refuse(*error, message.as_ref().map(Str::from)),
        Response::Refused(error) => refuse(*error, None),
        _ => refuse(ErrorCode::UnknownServerError, None),
    }
}

pub fn ask(add: &AddVoter, here: &Here, version: i16) -> Option<AddRaftVoterRequest> {
    if version < 1 && !add.ack_when_committed {
        return None;
    }
    let listener = |endpoint: &VoterEndpoint| Listener {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..Listener::default()
    };
    Some(AddRaftVoterRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        timeout_ms: i32::try_from(add.timeout.0).unwrap_or(i32::MAX),
        voter_id: add.voter.id.get(),
        voter_directory_id: add.voter.directory,
        listeners: add.endpoints.iter().map(listener).collect(),
        ack_when_committed: add.ack_when_committed,
        ..AddRaftVoterRequest::default()
    })
}

pub fn read(answer: &AddRaftVoterResponse) -> Response {
    let message = answer.error_message.as_ref().map(Str::text);
    Response::AddVoter { error: ErrorCode::from_code(answer.error_code), message }
}
