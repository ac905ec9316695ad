//! The time for which a client is throttled, in any answer that carries it.
//!
//! Source: KIP-219; Kafka `AbstractResponse.maybeSetThrottleTimeMs`.

use barnabas_wire::ResponseBody;

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

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::{FetchResponse, VoteResponse};

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
}
