//! What comes in on a controller's listener from brokers and other controllers: the quorum's own requests, those of
//! brokers, and clients' requests that a broker passes on.
//!
//! Requests of the quorum go to this node's member, leader or not. Only the active controller answers those of
//! brokers: others return NOT_CONTROLLER, and the broker tries the next one.
//!
//! Source: Kafka `ControllerApis`, `EnvelopeUtils`; KIP-590, KIP-595.

pub mod identity_mismatch;

use crate::node::peers::controller::NotTaken;
use crate::node::workers::repeated::Repeated;
use crate::requests::call::{Answer, Call, Started, Waiting};
use crate::requests::decode::decode;
use barnabas_api::{
    k56_alter_partition, k58_envelope, k62_broker_registration, k63_broker_heartbeat,
    k67_allocate_producer_ids, k70_controller_registration, k73_assign_replicas_to_dirs,
};
use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode};
use barnabas_net::Standing;
use barnabas_quorum::controller::Asked;
use barnabas_quorum::raft::message::Request;
use barnabas_quorum::raft::requests::{
    k01_fetch, k52_vote, k53_begin_quorum_epoch, k54_end_quorum_epoch, k59_fetch_snapshot,
    k80_add_raft_voter, k81_remove_raft_voter, k82_update_raft_voter,
};
use barnabas_wire::messages::EnvelopeRequest;
use barnabas_wire::{ApiKey, Decoded, RequestBody, ResponseBody, Str, encode_response};
use identity_mismatch::Registrant;
use std::future::Future;
use std::sync::Arc;

/// Starts what is the controller's; gives back what is answered as on any listener.
pub fn start(call: Call, body: RequestBody) -> Result<Started, (Call, RequestBody)> {
    let node = &call.session.node;
    let listener = &node.identity.listeners[call.session.listener].0.endpoint.listener;
    let here = node.peers.controller.here().at(listener.as_str());
    let asked = identity_mismatch::cluster_of(&body);
    let version = call.version;
    macro_rules! member {
        ($planned:expr, $respond:expr) => {
            match $planned {
                Ok(request) => ask_member(call, request, $respond),
                Err(answer) => refused(&call, answer.into(), asked.as_ref()),
            }
        };
    }
    Ok(match body {
        RequestBody::Fetch(request) => {
            call.session.follows.set(true);
            member!(k01_fetch::plan(&request, &here, version), move |answer| k01_fetch::respond(
                answer, &here, version
            )
            .into())
        }
        RequestBody::FetchSnapshot(request) => {
            member!(k59_fetch_snapshot::plan(&request, &here), move |answer| {
                k59_fetch_snapshot::respond(answer, &here, version).into()
            })
        }
        RequestBody::Vote(request) => {
            member!(k52_vote::plan(&request, &here), move |answer| k52_vote::respond(&answer, &here, version)
                .into())
        }
        RequestBody::BeginQuorumEpoch(request) => {
            member!(k53_begin_quorum_epoch::plan(&request, &here), move |answer| {
                k53_begin_quorum_epoch::respond(&answer, &here, version).into()
            })
        }
        RequestBody::EndQuorumEpoch(request) => {
            member!(k54_end_quorum_epoch::plan(&request, &here), move |answer| {
                k54_end_quorum_epoch::respond(&answer, &here, version).into()
            })
        }
        RequestBody::AddRaftVoter(request) => {
            member!(k80_add_raft_voter::plan(&request, &here, version), move |answer| {
                k80_add_raft_voter::respond(&answer).into()
            })
        }
        RequestBody::RemoveRaftVoter(request) => {
            member!(k81_remove_raft_voter::plan(&request, &here), move |answer| {
                k81_remove_raft_voter::respond(&answer).into()
            })
        }
        RequestBody::UpdateRaftVoter(request) => {
            member!(k82_update_raft_voter::plan(&request, &here), move |answer| {
                k82_update_raft_voter::respond(&answer, &here).into()
            })
        }
        RequestBody::Envelope(request) => Started::wait(envelope(call, *request)),
        body if k58_envelope::is_own(body.key()) => Started::wait(ask_active(call, body)),
        body => return Err((call, body)),
    })
}

fn ask_member(
    call: Call,
    request: Request,
    respond: impl FnOnce(barnabas_quorum::raft::message::Response) -> ResponseBody + 'static,
) -> Started {
    Started::wait(async move {
        match call.session.node.peers.controller.ask_member(request).await {
            Some(answer) => Answer::Reply(respond(answer)),
            None => Answer::Close,
        }
    })
}

/// Another cluster's node has come here: its operator has mixed up addresses. (One who changes voters learns it from
/// the answer.)
fn refused(call: &Call, answer: ResponseBody, asked: Option<&Str>) -> Started {
    let by_hand = matches!(answer, ResponseBody::AddRaftVoter(_) | ResponseBody::RemoveRaftVoter(_));
    if !by_hand {
        identity_mismatch::note_foreign(call, answer.key(), asked);
    }
    Started::reply(answer)
}

async fn ask_active(call: Call, body: RequestBody) -> Answer {
    let api = body.key();
    let sender = match &body {
        RequestBody::BrokerHeartbeat(request) => {
            Some((BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)))
        }
        _ => None,
    };
    let registrant = match &body {
        RequestBody::BrokerRegistration(request) => Some(Registrant::of(request)),
        _ => None,
    };
    let asked = Asked { version: call.version, ..Asked::default() };
    let session = &call.session;
    match session.node.peers.controller.ask_active(body, asked).await {
        Ok(Some(response)) => {
            let is_known =
                matches!(&response, ResponseBody::BrokerHeartbeat(response) if response.error_code == 0);
            if let Some(sender) = sender.filter(|_| is_known) {
                session.registered.set(Some(sender));
            }
            if let (Some(registrant), ResponseBody::BrokerRegistration(response)) = (&registrant, &response) {
                identity_mismatch::note_refused(&call, registrant, response);
            }
            Answer::Reply(response)
        }
        Ok(None) | Err(NotTaken::NoController | NotTaken::Unknown) => not_controller(api),
        // The broker asks again.
        Err(NotTaken::Busy | NotTaken::DiskFull | NotTaken::NoRoom | NotTaken::Refused(_)) => {
            not_controller(api)
        }
    }
}

fn not_controller(api: ApiKey) -> Answer {
    let code = ErrorCode::NotController;
    Answer::Reply(match api {
        ApiKey::BrokerRegistration => k62_broker_registration::refuse(code).into(),
        ApiKey::BrokerHeartbeat => k63_broker_heartbeat::refuse(code).into(),
        ApiKey::AlterPartition => k56_alter_partition::refuse(code).into(),
        ApiKey::AllocateProducerIds => k67_allocate_producer_ids::refuse(code).into(),
        ApiKey::AssignReplicasToDirs => k73_assign_replicas_to_dirs::refuse(code).into(),
        ApiKey::ControllerRegistration => k70_controller_registration::refuse(code).into(),
        _ => return Answer::Close,
    })
}

/// A client's request that a broker passes on.
async fn envelope(call: Call, request: EnvelopeRequest) -> Answer {
    let refuse = |code: ErrorCode| Answer::Reply(k58_envelope::refuse(code).into());
    let node = &call.session.node;
    if !node.peers.controller.is_active() {
        return refuse(ErrorCode::NotController);
    }
    let mut claim = call.session.claim();
    claim.stand(Standing::Small);
    let unclaimed = &call.session.unclaimed;
    let (memory_max, beside) = (node.workers.decode_bytes_max, call.session.beside());
    let decoded = decode(request.request_data, memory_max, &mut claim, unclaimed, beside).await;
    let Ok((Decoded { header, body, .. }, _free)) = decoded else {
        return refuse(ErrorCode::InvalidRequest);
    };
    let (api, version) = (body.key(), header.request_api_version);
    if !k58_envelope::is_forwarded(api) {
        return refuse(ErrorCode::InvalidRequest);
    }
    if !super::versions(api).contains(version) {
        return refuse(ErrorCode::UnsupportedVersion);
    }
    let client_id = header.client_id.as_ref().map(|id| id.as_str());
    let listener = &call.client.listener;
    let address = &request.client_host_address;
    let client = match k58_envelope::client(request.request_principal, address, client_id, listener) {
        Ok(client) => Arc::new(client),
        Err(code) => return refuse(code),
    };
    let correlation_id = header.correlation_id;
    let session = call.session.clone();
    let inner: std::pin::Pin<Box<dyn Future<Output = Started>>> =
        super::start_as(true, client, call.session, header, body);
    let answer = match inner.await {
        Started::Answer(answer) => answer,
        Started::Wait(waiting) => finish(waiting).await,
    };
    // The claim on memory is given back here: the answer is copied into the envelope's.
    let (Answer::Reply(body) | Answer::Held(body, _)) = answer else {
        return refuse(ErrorCode::UnknownServerError);
    };
    match encode_response(correlation_id, &body, version) {
        Ok(frame) => Answer::Reply(k58_envelope::respond(frame.into_bytes()).into()),
        Err(error) => {
            if let Some(unsaid) = session.node.workers.repeated.happened(Repeated::BrokenAnswer(Some(api))) {
                tracing::error!(%api, version, %error, "a response for a forwarded request cannot be encoded{unsaid}");
            }
            refuse(ErrorCode::UnknownServerError)
        }
    }
}

async fn finish(waiting: Waiting) -> Answer {
    waiting.await
}
