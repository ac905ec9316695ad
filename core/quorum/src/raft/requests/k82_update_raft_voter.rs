//! # UpdateRaftVoter, key 82, version 0
//!
//! A voter tells the leader where it is reached now, and which levels of `kraft.version` it supports.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-853) |
//!
//! At `kraft.version` 0 the leader only remembers the update, for a later upgrade to 1.
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka `KafkaRaftClient.handleUpdateVoterRequest`, `UpdateVoterHandler`.

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch};
use barnabas_wire::Str;
use barnabas_wire::messages::update_raft_voter_request::{KRaftVersionFeature, Listener};
use barnabas_wire::messages::update_raft_voter_response::CurrentLeader;
use barnabas_wire::messages::{UpdateRaftVoterRequest, UpdateRaftVoterResponse};

use super::{Here, head_of, id_or_none, leader_address};
use crate::raft::message::{ReplicaKey, Request, Response, UpdateVoter};
use crate::voters::VoterEndpoint;

/// # Errors
/// The answer: another cluster's.
pub fn plan(request: &UpdateRaftVoterRequest, here: &Here) -> Result<Request, UpdateRaftVoterResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let endpoint = |listener: &Listener| VoterEndpoint {
        listener: listener.name.text(),
        host: listener.host.text(),
        port: listener.port,
    };
    Ok(Request::UpdateVoter(UpdateVoter {
        epoch: LeaderEpoch(request.current_leader_epoch),
        voter: ReplicaKey { id: BrokerId(request.voter_id), directory: request.voter_directory_id },
        endpoints: request.listeners.iter().map(endpoint).collect(),
        kraft_min: request.kraft_version_feature.min_supported_version,
        kraft_max: request.kraft_version_feature.max_supported_version,
    }))
}

fn refuse(error: ErrorCode) -> UpdateRaftVoterResponse {
    UpdateRaftVoterResponse { error_code: error.code(), ..UpdateRaftVoterResponse::default() }
}

pub fn respond(answer: &Response, here: &Here) -> UpdateRaftVoterResponse {
    let head = match answer {
        Response::UpdateVoter(head) => head,
        Response::Refused(error) => return refuse(*error),
        _ => return refuse(ErrorCode::UnknownServerError),
    };
    let (_, host, port) = leader_address(head, here).unwrap_or_default();
    let current_leader = CurrentLeader {
        leader_id: id_or_none(head.leader),
        leader_epoch: head.epoch.get(),
        host,
        port: i32::from(port),
        ..CurrentLeader::default()
    };
    UpdateRaftVoterResponse {
        error_code: head.error.code(),
        current_leader,
        ..UpdateRaftVoterResponse::default()
    }
}

pub fn ask(update: &UpdateVoter, here: &Here) -> UpdateRaftVoterRequest {
    let listener = |endpoint: &VoterEndpoint| Listener {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..Listener::default()
    };
    UpdateRaftVoterRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        current_leader_epoch: update.epoch.get(),
        voter_id: update.voter.id.get(),
        voter_directory_id: update.voter.directory,
        listeners: update.endpoints.iter().map(listener).collect(),
        kraft_version_feature: KRaftVersionFeature {
            min_supported_version: update.kraft_min,
            max_supported_version: update.kraft_max,
            ..KRaftVersionFeature::default()
        },
        ..UpdateRaftVoterRequest::default()
    }
}

pub fn read(answer: &UpdateRaftVoterResponse, here: &Here) -> Response {
    let leader = &answer.current_leader;
    let port = u16::try_from(leader.port).ok().filter(|_| !leader.host.is_empty());
    let address = port.map(|port| (leader.leader_id, here.endpoint(&leader.host, port)));
    let head = head_of(answer.error_code, leader.leader_id, leader.leader_epoch, address.into_iter());
    Response::UpdateVoter(head)
}
