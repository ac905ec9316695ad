//! # ApiVersions, key 18, versions 0–5
//!
//! Tells a client which APIs this node answers, in which versions, and which features the cluster has agreed on. It is
//! the first request of nearly every client, and the one whose answer must be readable whatever the client's age.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | keys and their versions (KIP-35) |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | flexible; the client's software in the request (KIP-511), features in the answer (KIP-584) |
//! | 4 | features whose lowest level is 0 are no longer left out (KAFKA-17011) |
//! | 5 | the client says which cluster and node it means (KIP-1242) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleApiVersionsRequest`, `ApiVersionsRequest`, `ApiVersionsResponse`.

use barnabas_base::ErrorCode;
use barnabas_metadata::features::{FEATURES, name};
use barnabas_wire::messages::api_versions_request::ApiVersionsRequest;
use barnabas_wire::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use barnabas_wire::{ApiKey, Str};

use crate::Context;

/// What is answered on a listener for clients. Stands here and nowhere else.
pub const ANSWERED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::SaslHandshake,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::DescribeAcls,
    ApiKey::CreateAcls,
    ApiKey::DeleteAcls,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::DescribeLogDirs,
    ApiKey::SaslAuthenticate,
    ApiKey::CreatePartitions,
    ApiKey::CreateDelegationToken,
    ApiKey::RenewDelegationToken,
    ApiKey::ExpireDelegationToken,
    ApiKey::DescribeDelegationToken,
    ApiKey::DeleteGroups,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
    ApiKey::OffsetDelete,
    ApiKey::DescribeClientQuotas,
    ApiKey::AlterClientQuotas,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::AlterUserScramCredentials,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::UnregisterBroker,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::AddRaftVoter,
    ApiKey::RemoveRaftVoter,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
    ApiKey::StreamsGroupHeartbeat,
    ApiKey::StreamsGroupDescribe,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
    ApiKey::StreamsGroupTopologyDescriptionUpdate,
    ApiKey::UnregisterController,
];

/// What brokers and controllers ask of controllers, answered on their listener alone.
pub const ANSWERED_BY_CONTROLLERS: &[ApiKey] = &[
    ApiKey::Vote,
    ApiKey::BeginQuorumEpoch,
    ApiKey::EndQuorumEpoch,
    ApiKey::AlterPartition,
    ApiKey::Envelope,
    ApiKey::FetchSnapshot,
    ApiKey::BrokerRegistration,
    ApiKey::BrokerHeartbeat,
    ApiKey::AllocateProducerIds,
    ApiKey::ControllerRegistration,
    ApiKey::AssignReplicasToDirs,
    ApiKey::UpdateRaftVoter,
];

/// Which kind of listener a request came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    Broker,
    Controller,
}

/// Whether this node answers `key` on such a listener; what it does not answer closes the connection.
pub fn is_answered(key: ApiKey, listener: Listener) -> bool {
    match listener {
        Listener::Broker => key.on_broker() && ANSWERED.contains(&key),
        Listener::Controller => {
            key.on_controller() && (ANSWERED.contains(&key) || ANSWERED_BY_CONTROLLERS.contains(&key))
        }
    }
}

/// The answer to a version that does not exist, to be written as version 0: it names the versions that do (KIP-511).
pub fn unsupported_version() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![row(ApiKey::ApiVersions)],
        ..ApiVersionsResponse::default()
    }
}

/// The answer. `kraft_version` is the quorum's: it stands in no record of the image.
pub fn answer(
    request: &ApiVersionsRequest,
    version: i16,
    listener: Listener,
    kraft_version: i16,
    ctx: &Context<'_>,
) -> ApiVersionsResponse {
    let refuse = |code: ErrorCode| ApiVersionsResponse { error_code: code.code(), ..Default::default() };
    if !is_valid(request, version) {
        return refuse(ErrorCode::InvalidRequest);
    }
    let elsewhere = |cluster: &Str| *cluster != *ctx.cluster_id || request.node_id != ctx.node.get();
    if version >= 5 && request.cluster_id.as_ref().is_some_and(elsewhere) {
        return refuse(ErrorCode::RebootstrapRequired);
    }
    let mut response = ApiVersionsResponse {
        api_keys: answered(listener).map(row).collect(),
        ..ApiVersionsResponse::default()
    };
    if version >= 3 {
        add_features(&mut response, version, kraft_version, ctx);
    }
    response
}

/// In the order of their keys.
fn answered(listener: Listener) -> impl Iterator<Item = ApiKey> {
    ApiKey::ALL.iter().copied().filter(move |key| is_answered(*key, listener))
}

fn row(key: ApiKey) -> ApiVersion {
    let versions = key.stable_versions();
    ApiVersion {
        api_key: key.number(),
        min_version: versions.min,
        max_version: versions.max,
        ..ApiVersion::default()
    }
}

fn add_features(response: &mut ApiVersionsResponse, version: i16, kraft_version: i16, ctx: &Context<'_>) {
    // Clients that know only version 3 cannot read a lowest level of 0.
    let shown = FEATURES.iter().filter(|feature| version >= 4 || feature.min > 0);
    response.supported_features = shown
        .map(|feature| SupportedFeatureKey {
            name: Str::from_static(feature.name),
            min_version: feature.min,
            max_version: feature.max,
            ..SupportedFeatureKey::default()
        })
        .collect();
    let kraft = (kraft_version > 0).then_some((name::KRAFT, kraft_version));
    response.finalized_features = ctx
        .image
        .features
        .all()
        .chain(kraft)
        .filter(|(_, level)| *level != 0)
        .map(|(name, level)| FinalizedFeatureKey {
            name: Str::from(name),
            min_version_level: level,
            max_version_level: level,
            ..FinalizedFeatureKey::default()
        })
        .collect();
    response.finalized_features_epoch = ctx.image.provenance.end.get() - 1;
}

fn is_valid(request: &ApiVersionsRequest, version: i16) -> bool {
    if version >= 5 && request.cluster_id.is_some() != (request.node_id != -1) {
        return false;
    }
    version < 3
        || (is_software_word(&request.client_software_name)
            && is_software_word(&request.client_software_version))
}

/// Letters and digits, with `-` and `.` between them.
fn is_software_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests;
