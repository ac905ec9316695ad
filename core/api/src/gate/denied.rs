//! The answer to a request that is denied as a whole, in each API's form.
//!
//! Source: Kafka 4.4 `AbstractRequest.getErrorResponse` of each request.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::alter_client_quotas_response::{EntityData, EntryData};
use barnabas_wire::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use barnabas_wire::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use barnabas_wire::messages::create_acls_response::AclCreationResult;
use barnabas_wire::messages::delete_acls_response::DeleteAclsFilterResult;
use barnabas_wire::messages::{
    AddOffsetsToTxnResponse, AlterClientQuotasResponse, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse, AlterUserScramCredentialsResponse, BeginQuorumEpochResponse,
    CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse, DescribeClientQuotasResponse,
    DescribeClusterResponse, DescribeLogDirsResponse, EndQuorumEpochResponse, EndTxnResponse, FetchResponse,
    FetchSnapshotResponse, HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse,
    ListConfigResourcesResponse, ListPartitionReassignmentsResponse, SyncGroupResponse,
    UpdateRaftVoterResponse, VoteResponse, alter_client_quotas_request,
};
use barnabas_wire::{RequestBody, ResponseBody, Str};

use crate::access::{refusal, sentence};
use crate::{
    Plan, k11_join_group, k27_write_txn_markers, k43_elect_leaders, k45_alter_partition_reassignments,
    k50_describe_user_scram_credentials, k55_describe_quorum, k56_alter_partition, k57_update_features,
    k58_envelope, k62_broker_registration, k63_broker_heartbeat, k64_unregister_broker,
    k67_allocate_producer_ids, k70_controller_registration, k73_assign_replicas_to_dirs, k80_add_raft_voter,
    k81_remove_raft_voter, k83_initialize_share_group_state, k84_read_share_group_state,
    k85_write_share_group_state, k86_delete_share_group_state, k87_read_share_group_state_summary,
    k94_unregister_controller,
};

/// `None`: the API has no such answer.
pub(super) fn response(body: &RequestBody, version: i16, code: ErrorCode) -> Option<ResponseBody> {
    let of_members = of_groups(body, version, code).or_else(|| of_nodes(body, code));
    let of_data = of_members.or_else(|| of_share_state(body, code));
    of_data.or_else(|| of_access(body, code)).or_else(|| of_administrators(body, version, code))
}

macro_rules! coded {
    ($response:ident, $code:expr) => {
        Some($response { error_code: $code.code(), ..$response::default() }.into())
    };
}

fn of_groups(body: &RequestBody, version: i16, code: ErrorCode) -> Option<ResponseBody> {
    match body {
        RequestBody::JoinGroup(_) => {
            let refused = JoinGroupResponse {
                error_code: code.code(),
                generation_id: -1,
                ..JoinGroupResponse::default()
            };
            Some(k11_join_group::respond(refused, version).into())
        }
        RequestBody::SyncGroup(_) => coded!(SyncGroupResponse, code),
        RequestBody::Heartbeat(_) => coded!(HeartbeatResponse, code),
        RequestBody::LeaveGroup(_) => coded!(LeaveGroupResponse, code),
        RequestBody::EndTxn(_) => coded!(EndTxnResponse, code),
        RequestBody::AddOffsetsToTxn(_) => coded!(AddOffsetsToTxnResponse, code),
        _ => None,
    }
}

fn of_nodes(body: &RequestBody, code: ErrorCode) -> Option<ResponseBody> {
    Some(match body {
        RequestBody::Fetch(_) => return coded!(FetchResponse, code),
        RequestBody::FetchSnapshot(_) => return coded!(FetchSnapshotResponse, code),
        RequestBody::Vote(_) => return coded!(VoteResponse, code),
        RequestBody::BeginQuorumEpoch(_) => return coded!(BeginQuorumEpochResponse, code),
        RequestBody::EndQuorumEpoch(_) => return coded!(EndQuorumEpochResponse, code),
        RequestBody::UpdateRaftVoter(_) => return coded!(UpdateRaftVoterResponse, code),
        RequestBody::Envelope(_) => k58_envelope::refuse(code).into(),
        RequestBody::BrokerRegistration(_) => k62_broker_registration::refuse(code).into(),
        RequestBody::BrokerHeartbeat(_) => k63_broker_heartbeat::refuse(code).into(),
        RequestBody::AlterPartition(_) => k56_alter_partition::refuse(code).into(),
        RequestBody::AllocateProducerIds(_) => k67_allocate_producer_ids::refuse(code).into(),
        RequestBody::AssignReplicasToDirs(_) => k73_assign_replicas_to_dirs::refuse(code).into(),
        RequestBody::ControllerRegistration(_) => k70_controller_registration::refuse(code).into(),
        RequestBody::WriteTxnMarkers(request) => k27_write_txn_markers::refuse(request, code).into(),
        _ => return None,
    })
}

fn of_share_state(body: &RequestBody, code: ErrorCode) -> Option<ResponseBody> {
    macro_rules! each {
        ($api:ident, $request:expr) => {
            match $api::plan((**$request).clone()) {
                Plan::Answer(answer) => answer.into(),
                Plan::Work(mut work) => {
                    work.pending.refuse_all(code, sentence(code));
                    work.pending.respond().into()
                }
            }
        };
    }
    Some(match body {
        RequestBody::InitializeShareGroupState(request) => each!(k83_initialize_share_group_state, request),
        RequestBody::ReadShareGroupState(request) => each!(k84_read_share_group_state, request),
        RequestBody::WriteShareGroupState(request) => each!(k85_write_share_group_state, request),
        RequestBody::DeleteShareGroupState(request) => each!(k86_delete_share_group_state, request),
        RequestBody::ReadShareGroupStateSummary(request) => {
            each!(k87_read_share_group_state_summary, request)
        }
        _ => return None,
    })
}

/// ACLs, credentials and quotas.
fn of_access(body: &RequestBody, code: ErrorCode) -> Option<ResponseBody> {
    let (error_code, error_message) = (code.code(), refusal(code).text());
    macro_rules! each {
        ($response:ident, $field:ident, $one:ty, $count:expr) => {
            $response {
                $field: (0..$count).map(|_| <$one>::from_denial(error_code, error_message.clone())).collect(),
                ..$response::default()
            }
            .into()
        };
    }
    Some(match body {
        RequestBody::DescribeAcls(_) => {
            DescribeAclsResponse { error_code, error_message, ..DescribeAclsResponse::default() }.into()
        }
        RequestBody::CreateAcls(request) => {
            each!(CreateAclsResponse, results, AclCreationResult, request.creations.len())
        }
        RequestBody::DeleteAcls(request) => {
            each!(DeleteAclsResponse, filter_results, DeleteAclsFilterResult, request.filters.len())
        }
        _ => return of_quotas(body, code).or_else(|| of_credentials(body, code)),
    })
}

fn of_quotas(body: &RequestBody, code: ErrorCode) -> Option<ResponseBody> {
    let (error_code, error_message) = (code.code(), refusal(code).text());
    Some(match body {
        RequestBody::DescribeClientQuotas(_) => DescribeClientQuotasResponse {
            error_code,
            error_message,
            entries: None,
            ..DescribeClientQuotasResponse::default()
        }
        .into(),
        RequestBody::AlterClientQuotas(request) => {
            let entity = |entity: &alter_client_quotas_request::EntityData| EntityData {
                entity_type: entity.entity_type.clone(),
                entity_name: entity.entity_name.clone(),
                ..EntityData::default()
            };
            let entry = |entry: &alter_client_quotas_request::EntryData| EntryData {
                error_code,
                error_message: error_message.clone(),
                entity: entry.entity.iter().map(entity).collect(),
                ..EntryData::default()
            };
            let entries = request.entries.iter().map(entry).collect();
            AlterClientQuotasResponse { entries, ..AlterClientQuotasResponse::default() }.into()
        }
        _ => return None,
    })
}

fn of_credentials(body: &RequestBody, code: ErrorCode) -> Option<ResponseBody> {
    let (error_code, error_message) = (code.code(), refusal(code).text());
    Some(match body {
        RequestBody::DescribeUserScramCredentials(request) => {
            k50_describe_user_scram_credentials::deny(request, &refusal(code)).into()
        }
        RequestBody::AlterUserScramCredentials(request) => {
            let users = request.deletions.iter().map(|each| &each.name);
            let users = users.chain(request.upsertions.iter().map(|each| &each.name));
            let users: std::collections::BTreeSet<&str> = users.map(Str::as_str).collect();
            let results = users.into_iter().map(|user| AlterUserScramCredentialsResult {
                user: Str::from(user),
                error_code,
                error_message: error_message.clone(),
                ..AlterUserScramCredentialsResult::default()
            });
            AlterUserScramCredentialsResponse {
                results: results.collect(),
                ..AlterUserScramCredentialsResponse::default()
            }
            .into()
        }
        _ => return None,
    })
}

trait Denied {
    fn from_denial(error_code: i16, error_message: Option<Str>) -> Self;
}

impl Denied for AclCreationResult {
    fn from_denial(error_code: i16, error_message: Option<Str>) -> Self {
        Self { error_code, error_message, ..Self::default() }
    }
}

impl Denied for DeleteAclsFilterResult {
    fn from_denial(error_code: i16, error_message: Option<Str>) -> Self {
        Self { error_code, error_message, ..Self::default() }
    }
}

fn of_administrators(body: &RequestBody, version: i16, code: ErrorCode) -> Option<ResponseBody> {
    let refusal = refusal(code);
    Some(match body {
        RequestBody::AlterReplicaLogDirs(request) => log_dirs(request, code).into(),
        // Before version 3 the answer is an empty list and says no more.
        RequestBody::DescribeLogDirs(_) => DescribeLogDirsResponse {
            error_code: if version >= 3 { code.code() } else { 0 },
            ..DescribeLogDirsResponse::default()
        }
        .into(),
        RequestBody::ElectLeaders(request) => {
            k43_elect_leaders::plan((**request).clone(), version).pending.respond(Err(refusal)).into()
        }
        RequestBody::AlterPartitionReassignments(request) => {
            k45_alter_partition_reassignments::Pending::new(request).respond(Err(refusal)).into()
        }
        RequestBody::ListPartitionReassignments(_) => ListPartitionReassignmentsResponse {
            error_code: code.code(),
            error_message: refusal.text(),
            ..ListPartitionReassignmentsResponse::default()
        }
        .into(),
        RequestBody::DescribeQuorum(_) => k55_describe_quorum::respond(Err(refusal), version).into(),
        RequestBody::UpdateFeatures(request) => {
            k57_update_features::plan((**request).clone(), version).pending.respond(Err(refusal)).into()
        }
        RequestBody::DescribeCluster(_) => DescribeClusterResponse {
            error_code: code.code(),
            error_message: refusal.text(),
            ..DescribeClusterResponse::default()
        }
        .into(),
        RequestBody::UnregisterBroker(_) => k64_unregister_broker::respond(Err(refusal)).into(),
        RequestBody::UnregisterController(_) => k94_unregister_controller::respond(Err(refusal)).into(),
        RequestBody::AddRaftVoter(_) => k80_add_raft_voter::respond(Err(refusal)).into(),
        RequestBody::RemoveRaftVoter(_) => k81_remove_raft_voter::respond(Err(refusal)).into(),
        RequestBody::ListConfigResources(_) => return coded!(ListConfigResourcesResponse, code),
        _ => return None,
    })
}

fn log_dirs(request: &AlterReplicaLogDirsRequest, code: ErrorCode) -> AlterReplicaLogDirsResponse {
    let partition = |index: &i32| AlterReplicaLogDirPartitionResult {
        partition_index: *index,
        error_code: code.code(),
        ..AlterReplicaLogDirPartitionResult::default()
    };
    let topics = request.dirs.iter().flat_map(|dir| &dir.topics);
    let results = topics.map(|topic| AlterReplicaLogDirTopicResult {
        topic_name: Str::clone(&topic.name),
        partitions: topic.partitions.iter().map(partition).collect(),
        ..AlterReplicaLogDirTopicResult::default()
    });
    AlterReplicaLogDirsResponse { results: results.collect(), ..AlterReplicaLogDirsResponse::default() }
}
