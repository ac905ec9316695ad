//! What a request needs as a whole, before its API looks at it, and the answer where it is denied.
//!
//! The broker asks [`gate`] once for each request. An API without a [`Rule`] is refused while there is an authorizer:
//! one that is forgotten here is closed, not open. Resources that are judged one by one ([`Rule::Each`]) are the
//! business of their APIs.
//!
//! Source: Kafka 4.4 `KafkaApis`, `ControllerApis`, `AuthHelper.authorizeClusterOperation`.

mod denied;

use barnabas_base::ErrorCode;
use barnabas_security::Operation::{
    self, Alter, AlterConfigs, ClusterAction, Describe, DescribeConfigs, Read, Write,
};
use barnabas_wire::{ApiKey, RequestBody, ResponseBody};

use crate::Access;
use crate::k18_api_versions::Listener;

/// What a request needs as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: it authenticates, tells what every client may know, or takes what the client says of itself.
    Nothing,
    /// One of these operations on the cluster.
    Cluster(&'static [Operation]),
    /// READ on the group that it names.
    Group,
    /// WRITE on the transactional id that it names.
    TransactionalId,
    /// As [`Self::TransactionalId`], then as [`Self::Group`].
    TransactionalIdAndGroup,
    /// Something of each resource: see its API's file.
    Each,
}

/// By what they need on the cluster.
const OF_THE_CLUSTER: &[(&[Operation], &[ApiKey])] = &[
    (&[Alter, ClusterAction], &[ApiKey::WriteTxnMarkers]),
    (
        &[Describe],
        &[
            ApiKey::DescribeAcls,
            ApiKey::DescribeLogDirs,
            ApiKey::ListPartitionReassignments,
            ApiKey::DescribeUserScramCredentials,
            ApiKey::DescribeQuorum,
        ],
    ),
    (
        &[Alter],
        &[
            ApiKey::CreateAcls,
            ApiKey::DeleteAcls,
            ApiKey::AlterReplicaLogDirs,
            ApiKey::ElectLeaders,
            ApiKey::AlterPartitionReassignments,
            ApiKey::AlterUserScramCredentials,
            ApiKey::UpdateFeatures,
            ApiKey::UnregisterBroker,
            ApiKey::UnregisterController,
            ApiKey::AddRaftVoter,
            ApiKey::RemoveRaftVoter,
        ],
    ),
    (&[DescribeConfigs], &[ApiKey::DescribeClientQuotas, ApiKey::ListConfigResources]),
    (&[AlterConfigs], &[ApiKey::AlterClientQuotas]),
    (
        &[ClusterAction],
        &[
            ApiKey::InitializeShareGroupState,
            ApiKey::ReadShareGroupState,
            ApiKey::WriteShareGroupState,
            ApiKey::DeleteShareGroupState,
            ApiKey::ReadShareGroupStateSummary,
            ApiKey::Vote,
            ApiKey::BeginQuorumEpoch,
            ApiKey::EndQuorumEpoch,
            ApiKey::UpdateRaftVoter,
            ApiKey::AlterPartition,
            ApiKey::Envelope,
            ApiKey::FetchSnapshot,
            ApiKey::BrokerRegistration,
            ApiKey::BrokerHeartbeat,
            ApiKey::AllocateProducerIds,
            ApiKey::ControllerRegistration,
            ApiKey::AssignReplicasToDirs,
        ],
    ),
];

/// What these need is asked for each resource.
const OF_EACH_RESOURCE: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::TxnOffsetCommit,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::CreatePartitions,
    ApiKey::CreateDelegationToken,
    ApiKey::RenewDelegationToken,
    ApiKey::ExpireDelegationToken,
    ApiKey::DescribeDelegationToken,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::DescribeTopicPartitions,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::StreamsGroupHeartbeat,
    ApiKey::StreamsGroupDescribe,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
    ApiKey::StreamsGroupTopologyDescriptionUpdate,
];

/// The rule for an API on a listener. `None`: no rule, so that it is denied.
pub fn rule(api: ApiKey, listener: Listener) -> Option<Rule> {
    let of_cluster = || OF_THE_CLUSTER.iter().find(|(_, apis)| apis.contains(&api)).map(|row| row.0);
    Some(match api {
        ApiKey::ApiVersions | ApiKey::SaslHandshake | ApiKey::SaslAuthenticate => Rule::Nothing,
        ApiKey::GetTelemetrySubscriptions | ApiKey::PushTelemetry => Rule::Nothing,
        ApiKey::DescribeCluster if listener == Listener::Controller => Rule::Cluster(&[Alter]),
        ApiKey::Fetch if listener == Listener::Controller => Rule::Cluster(&[ClusterAction]),
        ApiKey::JoinGroup | ApiKey::SyncGroup | ApiKey::Heartbeat | ApiKey::LeaveGroup => Rule::Group,
        ApiKey::EndTxn => Rule::TransactionalId,
        ApiKey::AddOffsetsToTxn => Rule::TransactionalIdAndGroup,
        api if OF_EACH_RESOURCE.contains(&api) => Rule::Each,
        _ => Rule::Cluster(of_cluster()?),
    })
}

/// What becomes of a request before its API looks at it.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// Its API goes on with it.
    Pass,
    Refuse(ResponseBody),
    /// There is no answer that says so.
    Close,
}

/// Whether the client may send this request at all.
pub fn gate(body: &RequestBody, version: i16, listener: Listener, access: &Access<'_>) -> Gate {
    if access.is_open() {
        return Gate::Pass;
    }
    let code = match rule(body.key(), listener) {
        None => ErrorCode::ClusterAuthorizationFailed,
        Some(Rule::Nothing | Rule::Each) => return Gate::Pass,
        Some(Rule::Cluster(any_of)) if may_any_of(any_of, access) => return Gate::Pass,
        Some(Rule::Cluster(_)) => ErrorCode::ClusterAuthorizationFailed,
        Some(rule) => match denied_name(rule, body, access) {
            None => return Gate::Pass,
            Some(code) => code,
        },
    };
    denied::response(body, version, code).map_or(Gate::Close, Gate::Refuse)
}

/// Only the last denial is logged: it is the operation that clients of this kind are meant to have.
fn may_any_of(operations: &[Operation], access: &Access<'_>) -> bool {
    let Some((last, others)) = operations.split_last() else { return false };
    others.iter().any(|operation| access.holds_cluster(*operation)) || access.cluster(*last)
}

/// Why a request is denied for the group or the transactional id that it names.
fn denied_name(rule: Rule, body: &RequestBody, access: &Access<'_>) -> Option<ErrorCode> {
    let (transactional_id, group) = match body {
        RequestBody::JoinGroup(request) => (None, Some(&request.group_id)),
        RequestBody::SyncGroup(request) => (None, Some(&request.group_id)),
        RequestBody::Heartbeat(request) => (None, Some(&request.group_id)),
        RequestBody::LeaveGroup(request) => (None, Some(&request.group_id)),
        RequestBody::EndTxn(request) => (Some(&request.transactional_id), None),
        RequestBody::AddOffsetsToTxn(request) => (Some(&request.transactional_id), Some(&request.group_id)),
        // A rule for a name without a line here: a test holds that there is none.
        _ => return Some(ErrorCode::ClusterAuthorizationFailed),
    };
    debug_assert!(!matches!(rule, Rule::Nothing | Rule::Each | Rule::Cluster(_)));
    if transactional_id.is_some_and(|id| !access.transactional_id(Write, id)) {
        return Some(ErrorCode::TransactionalIdAuthorizationFailed);
    }
    group.is_some_and(|group| !access.group(Read, group)).then_some(ErrorCode::GroupAuthorizationFailed)
}

#[cfg(test)]
mod tests;
