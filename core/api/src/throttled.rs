//! What of a request and its answer quotas count, and the time for which a client is throttled, in any answer that
//! carries it.
//!
//! Neighbour: shell/broker/src/requests/connection/throttle.rs, which charges.
//!
//! Source: KIP-124, KIP-219, KIP-599; Kafka `AbstractResponse.maybeSetThrottleTimeMs`, `KafkaApis`.

use barnabas_base::DurationMs;
use barnabas_wire::{ApiKey, ResponseBody};

use crate::k58_envelope;

macro_rules! carriers {
    ($($api:ident,)*) => {
        /// Sets the time, unless the answer has a longer one already. An answer without such a field stays as it is.
        pub fn set_throttle_time(body: &mut ResponseBody, ms: i32) {
            match body {
                $(ResponseBody::$api(response) => {
                    response.throttle_time_ms = response.throttle_time_ms.max(ms);
                })*
                _ => {}
            }
        }
    };
}
carriers!(
    Produce,
    Fetch,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    FindCoordinator,
    JoinGroup,
    Heartbeat,
    LeaveGroup,
    SyncGroup,
    DescribeGroups,
    ListGroups,
    ApiVersions,
    CreateTopics,
    DeleteTopics,
    DeleteRecords,
    InitProducerId,
    OffsetForLeaderEpoch,
    AddPartitionsToTxn,
    AddOffsetsToTxn,
    EndTxn,
    TxnOffsetCommit,
    DescribeAcls,
    CreateAcls,
    DeleteAcls,
    DescribeConfigs,
    AlterConfigs,
    AlterReplicaLogDirs,
    DescribeLogDirs,
    CreatePartitions,
    CreateDelegationToken,
    RenewDelegationToken,
    ExpireDelegationToken,
    DescribeDelegationToken,
    DeleteGroups,
    ElectLeaders,
    IncrementalAlterConfigs,
    AlterPartitionReassignments,
    ListPartitionReassignments,
    OffsetDelete,
    DescribeClientQuotas,
    AlterClientQuotas,
    DescribeUserScramCredentials,
    AlterUserScramCredentials,
    AlterPartition,
    UpdateFeatures,
    FetchSnapshot,
    DescribeCluster,
    DescribeProducers,
    BrokerRegistration,
    BrokerHeartbeat,
    UnregisterBroker,
    DescribeTransactions,
    ListTransactions,
    AllocateProducerIds,
    ConsumerGroupHeartbeat,
    ConsumerGroupDescribe,
    ControllerRegistration,
    GetTelemetrySubscriptions,
    PushTelemetry,
    AssignReplicasToDirs,
    ListConfigResources,
    DescribeTopicPartitions,
    ShareGroupHeartbeat,
    ShareGroupDescribe,
    ShareFetch,
    ShareAcknowledge,
    AddRaftVoter,
    RemoveRaftVoter,
    UpdateRaftVoter,
    StreamsGroupHeartbeat,
    StreamsGroupDescribe,
    DescribeShareGroupOffsets,
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    StreamsGroupTopologyDescriptionUpdate,
    UnregisterController,
);

/// Whether the controller throttles it: its answer has the time.
pub fn is_mutation(api: ApiKey) -> bool {
    matches!(api, ApiKey::CreateTopics | ApiKey::DeleteTopics | ApiKey::CreatePartitions)
}

/// How long the controller throttles the client.
pub fn mutation_wait(body: &ResponseBody) -> Option<DurationMs> {
    let ms = match body {
        ResponseBody::CreateTopics(response) => response.throttle_time_ms,
        ResponseBody::DeleteTopics(response) => response.throttle_time_ms,
        ResponseBody::CreatePartitions(response) => response.throttle_time_ms,
        _ => 0,
    };
    (ms > 0).then(|| DurationMs(ms.into()))
}

/// Whether brokers and controllers ask such things of each other.
pub fn is_exempt(api: ApiKey) -> bool {
    k58_envelope::is_own(api)
        || matches!(
            api,
            ApiKey::Envelope
                | ApiKey::FetchSnapshot
                | ApiKey::Vote
                | ApiKey::BeginQuorumEpoch
                | ApiKey::EndQuorumEpoch
                | ApiKey::UpdateRaftVoter
                | ApiKey::WriteTxnMarkers
                | ApiKey::InitializeShareGroupState
                | ApiKey::ReadShareGroupState
                | ApiKey::WriteShareGroupState
                | ApiKey::DeleteShareGroupState
                | ApiKey::ReadShareGroupStateSummary
        )
}

/// Bytes of records in an answer to a share consumer. Those of a Fetch are charged before.
pub fn share_record_bytes(body: &ResponseBody) -> Option<usize> {
    let bytes = match body {
        ResponseBody::ShareFetch(response) => {
            let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
            partitions.map(|one| one.records.as_ref().map_or(0, |records| records.len())).sum()
        }
        _ => return None,
    };
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::{CreateTopicsResponse, FetchResponse, VoteResponse};

    #[test]
    fn longer_time_stands_in_the_answer() {
        let mut body: ResponseBody = FetchResponse { throttle_time_ms: 5, ..FetchResponse::default() }.into();
        set_throttle_time(&mut body, 3);
        assert_eq!(body, FetchResponse { throttle_time_ms: 5, ..FetchResponse::default() }.into());
        set_throttle_time(&mut body, 9);
        assert_eq!(body, FetchResponse { throttle_time_ms: 9, ..FetchResponse::default() }.into());
        let mut other: ResponseBody = VoteResponse::default().into();
        set_throttle_time(&mut other, 9);
        assert_eq!(other, VoteResponse::default().into());
    }

    #[test]
    fn requests_between_nodes_are_exempt_and_mutations_are_the_controllers() {
        let exempt = [ApiKey::Envelope, ApiKey::Vote, ApiKey::WriteTxnMarkers, ApiKey::BrokerHeartbeat];
        assert!(exempt.into_iter().all(is_exempt));
        let charged = [ApiKey::Produce, ApiKey::Fetch, ApiKey::Metadata, ApiKey::CreateTopics];
        assert!(!charged.into_iter().any(is_exempt));
        assert_eq!(charged.map(is_mutation), [false, false, false, true]);
        let answer =
            |throttle_time_ms| CreateTopicsResponse { throttle_time_ms, ..Default::default() }.into();
        assert_eq!(mutation_wait(&answer(7)), Some(DurationMs(7)));
        assert_eq!(mutation_wait(&answer(0)), None);
        assert_eq!(mutation_wait(&FetchResponse { throttle_time_ms: 7, ..Default::default() }.into()), None);
    }
}
