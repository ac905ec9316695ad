//! What the controller decides: checked by core/api, passed on to the controller, answered when it is committed and
//! published.

use crate::config::logging;
use crate::node::peers::controller::NotTaken;
use crate::node::workers::repeated::Repeated;
use crate::requests::call::{Answer, Call, Started};
use crate::requests::cluster::security_changes;
use crate::requests::quorum;
use barnabas_api::{
    Plan, Refusal, k19_create_topics, k20_delete_topics, k33_alter_configs, k37_create_partitions,
    k43_elect_leaders, k44_incremental_alter_configs, k45_alter_partition_reassignments, k55_describe_quorum,
    k57_update_features, k64_unregister_broker, k80_add_raft_voter, k81_remove_raft_voter,
    k94_unregister_controller, loggers,
};
use barnabas_base::ErrorCode;
use barnabas_quorum::controller::Asked;
use barnabas_wire::messages::create_topics_response::CreatableTopicResult;
use barnabas_wire::messages::{
    AlterConfigsRequest, AlterConfigsResponse, AlterPartitionReassignmentsRequest, CreatePartitionsRequest,
    CreateTopicsRequest, DeleteTopicsRequest, DescribeQuorumRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, UnregisterBrokerRequest,
    UnregisterControllerRequest, UpdateFeaturesRequest,
};
use barnabas_wire::{RequestBody, ResponseBody};

/// The controller's answer, or why there is none. For requests that the controller is asked as the client asked them.
pub(super) async fn ask(call: &Call, body: impl Into<RequestBody>) -> Result<ResponseBody, Refusal> {
    ask_in(call.version, call, body).await
}

/// The same for a request in the form of another version than the client's: its plan says which.
async fn ask_in(version: i16, call: &Call, body: impl Into<RequestBody>) -> Result<ResponseBody, Refusal> {
    let asked = Asked { version, client: Some(call.asking()), ..Asked::default() };
    call.session.node.peers.controller.ask(body, asked).await.map_err(refusal)
}

fn refusal(why: NotTaken) -> Refusal {
    match why {
        NotTaken::Busy => {
            Refusal::new(ErrorCode::RequestTimedOut, "The controller has too much to do; try again.")
        }
        NotTaken::NoController => Refusal::new(
            ErrorCode::RequestTimedOut,
            "No active controller could be reached: is half of the metadata quorum gone?",
        ),
        NotTaken::Unknown => Refusal::new(
            ErrorCode::RequestTimedOut,
            "The active controller changed while it worked on this: it may have come about or not.",
        ),
        NotTaken::Refused(code) => code.into(),
        NotTaken::DiskFull => Refusal::new(
            ErrorCode::KafkaStorageError,
            "The disk of the active controller's metadata log is full: delete topics or free space there, then try again.",
        ),
        NotTaken::NoRoom => Refusal::new(
            ErrorCode::KafkaStorageError,
            "The disk of the metadata log is full to the last byte: this comes about once there is room. Free space there.",
        ),
    }
}

/// CreateTopics as this broker asks for it for a group.
const CREATE_TOPICS_VERSION: i16 = 7;

/// Takes the response of one API out of the controller's answer.
macro_rules! response_of {
    ($answer:expr, $api:ident) => {
        match $answer {
            Ok(ResponseBody::$api(response)) => Ok(*response),
            Ok(_) => Err(Refusal::from(ErrorCode::UnknownServerError)),
            Err(refusal) => Err(refusal),
        }
    };
}

pub(super) use response_of;

/// Creates a group's internal topics in the name of its member, and gives what became of each.
///
/// # Errors
/// Nothing was decided; why, in words.
pub async fn create_for_group(
    call: &Call,
    request: CreateTopicsRequest,
) -> Result<Vec<CreatableTopicResult>, String> {
    let asked = Asked { version: CREATE_TOPICS_VERSION, client: Some(call.asking()), ..Asked::default() };
    match call.session.node.peers.controller.ask(request, asked).await.map_err(refusal) {
        Ok(ResponseBody::CreateTopics(response)) => Ok(response.topics),
        Ok(_) => Err(ErrorCode::UnknownServerError.name().to_owned()),
        Err(refusal) => Err(refusal.message.unwrap_or_else(|| refusal.code.name().to_owned())),
    }
}

pub fn create_topics(call: Call, request: CreateTopicsRequest) -> Started {
    let moment = call.moment();
    match k19_create_topics::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => Started::wait(async move {
            let answer = response_of!(ask_in(work.version, &call, work.request).await, CreateTopics);
            // The moment after the creation: the answer shows the topics as they are configured now.
            let moment = call.moment();
            call.room.reply(work.pending.respond(answer, &call.context(&moment)))
        }),
    }
}

pub fn delete_topics(call: Call, request: DeleteTopicsRequest) -> Started {
    let moment = call.moment();
    match k20_delete_topics::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => Started::wait(async move {
            let answer = response_of!(ask_in(work.version, &call, work.request).await, DeleteTopics);
            Answer::Reply(work.pending.respond(answer).into())
        }),
    }
}

pub fn create_partitions(call: Call, request: CreatePartitionsRequest) -> Started {
    let moment = call.moment();
    match k37_create_partitions::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => Started::wait(async move {
            let answer = response_of!(ask(&call, work.request).await, CreatePartitions);
            Answer::Reply(work.pending.respond(answer).into())
        }),
    }
}

pub fn alter_configs(call: Call, request: AlterConfigsRequest) -> Started {
    let moment = call.moment();
    match k33_alter_configs::plan(request, call.route(), &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(mut work) => {
            let after = work.security_after(&call.context(&moment));
            Started::wait(async move {
                let node = call.session.node.clone();
                let own = node.identity.broker_id;
                if let Some(why) = security_changes::refusal(node, after).await {
                    work.refuse_own(own, why);
                }
                let answer = match work.request.resources.is_empty() {
                    true => Ok(AlterConfigsResponse::default()),
                    false => response_of!(ask(&call, work.request).await, AlterConfigs),
                };
                Answer::Reply(work.pending.respond(answer).into())
            })
        }
    }
}

/// Levels of loggers are changed here, at once; everything else is the controller's.
pub fn incremental_alter_configs(call: Call, mut request: IncrementalAlterConfigsRequest) -> Started {
    let node = call.session.node.identity.broker_id;
    let (listener, access) = (call.listener(), call.access());
    let decided = loggers::decide(&mut request, node, logging::shown, listener, &access);
    let altered = logging::alter(&decided.changes);
    if !altered.is_empty()
        && let Some(unsaid) = call.session.node.workers.repeated.happened_to(Repeated::LogLevels, &altered)
    {
        tracing::info!("log levels changed: {altered}{unsaid}");
    }
    let moment = call.moment();
    match k44_incremental_alter_configs::plan(request, call.route(), &call.context(&moment)) {
        Plan::Answer(mut response) => {
            response.responses.extend(decided.responses);
            Started::reply(response)
        }
        Plan::Work(mut work) => {
            let after = work.security_after(&call.context(&moment));
            Started::wait(async move {
                let node = call.session.node.clone();
                let own = node.identity.broker_id;
                if let Some(why) = security_changes::refusal(node, after).await {
                    work.refuse_own(own, why);
                }
                let answer = match work.request.resources.is_empty() {
                    true => Ok(IncrementalAlterConfigsResponse::default()),
                    false => response_of!(ask(&call, work.request).await, IncrementalAlterConfigs),
                };
                let mut response = work.pending.respond(answer);
                response.responses.extend(decided.responses);
                Answer::Reply(response.into())
            })
        }
    }
}

pub fn elect_leaders(call: Call, request: ElectLeadersRequest) -> Started {
    let work = k43_elect_leaders::plan(request, call.version);
    Started::wait(async move {
        let answer = response_of!(ask(&call, work.request).await, ElectLeaders);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

pub fn update_features(call: Call, request: UpdateFeaturesRequest) -> Started {
    let work = k57_update_features::plan(request, call.version);
    Started::wait(async move {
        let answer = response_of!(ask_in(work.version, &call, work.request).await, UpdateFeatures);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

/// What other replicas partitions are to have.
pub fn alter_partition_reassignments(call: Call, request: AlterPartitionReassignmentsRequest) -> Started {
    Started::wait(async move {
        let pending = k45_alter_partition_reassignments::Pending::new(&request);
        let answer = response_of!(ask(&call, request).await, AlterPartitionReassignments);
        Answer::Reply(pending.respond(answer).into())
    })
}

/// A broker that will not come back.
pub fn unregister_broker(call: Call, request: UnregisterBrokerRequest) -> Started {
    Started::wait(async move {
        let answer = response_of!(ask(&call, request).await, UnregisterBroker);
        Answer::Reply(k64_unregister_broker::respond(answer).into())
    })
}

/// A controller that will not come back.
pub fn unregister_controller(call: Call, request: UnregisterControllerRequest) -> Started {
    Started::wait(async move {
        let answer = response_of!(ask(&call, request).await, UnregisterController);
        Answer::Reply(k94_unregister_controller::respond(answer).into())
    })
}

/// Who votes in the quorum: its leader's member decides, here or on the node that leads.
pub fn change_voters(call: Call, request: impl Into<RequestBody>) -> Started {
    let request = request.into();
    Started::wait(async move {
        if call.session.node.peers.controller.is_active() {
            return match quorum::start(call, request) {
                Ok(Started::Answer(answer)) => answer,
                Ok(Started::Wait(waiting)) => waiting.await,
                Err(_) => Answer::Close,
            };
        }
        let is_added = matches!(request, RequestBody::AddRaftVoter(_));
        let answer = ask(&call, request).await;
        Answer::Reply(if is_added {
            k80_add_raft_voter::respond(response_of!(answer, AddRaftVoter)).into()
        } else {
            k81_remove_raft_voter::respond(response_of!(answer, RemoveRaftVoter)).into()
        })
    })
}

pub fn describe_quorum(call: Call, request: DescribeQuorumRequest) -> Started {
    Started::wait(async move {
        let answer = response_of!(ask(&call, request).await, DescribeQuorum);
        Answer::Reply(k55_describe_quorum::respond(answer, call.version).into())
    })
}
