//! # RemoveRaftVoter, key 81, as the quorum takes it
//!
//! Takes a voter out of the quorum. What its version brought stands in core/api's `k81_remove_raft_voter`, which words
//! the answer where no leader could be asked.
//!
//! Source: Kafka `KafkaRaftClient.handleRemoveVoterRequest`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_wire::Str;
use barnabas_wire::messages::{RemoveRaftVoterRequest, RemoveRaftVoterResponse};

use super::Here;
use crate::raft::message::{RemoveVoter, ReplicaKey, Request, Response};

/// # Errors
/// The answer: another cluster's.
pub fn plan(request: &RemoveRaftVoterRequest, here: &Here) -> Result<Request, RemoveRaftVoterResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        let what = "the request is for another cluster";
        return Err(refuse(ErrorCode::InconsistentClusterId, Some(Str::from_static(what))));
    }
    let voter = ReplicaKey { id: BrokerId(request.voter_id), directory: request.voter_directory_id };
    Ok(Request::RemoveVoter(RemoveVoter { voter }))
}

fn refuse(error: ErrorCode, message: Option<Str>) -> RemoveRaftVoterResponse {
    RemoveRaftVoterResponse {
        error_code: error.code(),
        error_message: message,
        ..RemoveRaftVoterResponse::default()
    }
}

pub fn respond(answer: &Response) -> RemoveRaftVoterResponse {
    match answer {
        Response::RemoveVoter { error, message } => refuse(*error, message.as_ref().map(Str::from)),
        Response::Refused(error) => refuse(*error, None),
        _ => refuse(ErrorCode::UnknownServerError, None),
    }
}

pub fn ask(remove: &RemoveVoter, here: &Here) -> RemoveRaftVoterRequest {
    RemoveRaftVoterRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        voter_id: remove.voter.id.get(),
        voter_directory_id: remove.voter.directory,
        ..RemoveRaftVoterRequest::default()
    }
}

pub fn read(answer: &RemoveRaftVoterResponse) -> Response {
    let message = answer.error_message.as_ref().map(Str::text);
    Response::RemoveVoter { error: ErrorCode::from_code(answer.error_code), message }
}
