//! Every API that is advertised is worked on, in its oldest and its newest version.

use crate::harness::patience::eventually;
use crate::harness::{Client, TestNode};
use barnabas_wire::messages::*;
use barnabas_wire::{RequestBody, encode_request};
use std::collections::BTreeSet;

/// A request of each API that asks for nothing in particular.
fn requests() -> Vec<RequestBody> {
    let features = ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let mut all: Vec<RequestBody> = vec![
        ProduceRequest { acks: 1, ..Default::default() }.into(),
        FetchRequest { replica_id: -1, session_epoch: -1, ..Default::default() }.into(),
        ListOffsetsRequest { replica_id: -1, ..Default::default() }.into(),
        MetadataRequest { topics: Some(Vec::new()), ..Default::default() }.into(),
        OffsetCommitRequest::default().into(),
        OffsetFetchRequest { topics: Some(Vec::new()), ..Default::default() }.into(),
        FindCoordinatorRequest::default().into(),
        JoinGroupRequest::default().into(),
        HeartbeatRequest::default().into(),
        LeaveGroupRequest::default().into(),
        SyncGroupRequest::default().into(),
        DescribeGroupsRequest::default().into(),
        ConsumerGroupHeartbeatRequest::default().into(),
        ConsumerGroupDescribeRequest::default().into(),
        ListGroupsRequest::default().into(),
        features.into(),
        SaslHandshakeRequest::default().into(),
        SaslAuthenticateRequest::default().into(),
        CreateTopicsRequest::default().into(),
        DeleteTopicsRequest::default().into(),
        DeleteRecordsRequest::default().into(),
        InitProducerIdRequest::default().into(),
        OffsetForLeaderEpochRequest { replica_id: -2, ..Default::default() }.into(),
        AddPartitionsToTxnRequest::default().into(),
        AddOffsetsToTxnRequest::default().into(),
        EndTxnRequest::default().into(),
        WriteTxnMarkersRequest::default().into(),
        TxnOffsetCommitRequest::default().into(),
        DescribeConfigsRequest::default().into(),
        AlterConfigsRequest::default().into(),
        AlterReplicaLogDirsRequest::default().into(),
        DescribeLogDirsRequest::default().into(),
        CreatePartitionsRequest::default().into(),
        DeleteGroupsRequest::default().into(),
        ElectLeadersRequest::default().into(),
        IncrementalAlterConfigsRequest::default().into(),
        AlterPartitionReassignmentsRequest::default().into(),
        ListPartitionReassignmentsRequest::default().into(),
        OffsetDeleteRequest::default().into(),
        DescribeQuorumRequest::default().into(),
        UpdateFeaturesRequest::default().into(),
        DescribeClusterRequest::default().into(),
        UnregisterBrokerRequest { broker_id: 99, ..Default::default() }.into(),
        UnregisterControllerRequest { controller_id: 99, ..Default::default() }.into(),
        AddRaftVoterRequest::default().into(),
        RemoveRaftVoterRequest::default().into(),
        DescribeProducersRequest::default().into(),
        DescribeTransactionsRequest::default().into(),
        ListTransactionsRequest::default().into(),
        GetTelemetrySubscriptionsRequest::default().into(),
        PushTelemetryRequest::default().into(),
        ListConfigResourcesRequest::default().into(),
        DescribeTopicPartitionsRequest::default().into(),
    ];
    all.extend(of_access());
    all.extend(of_younger_groups());
    all
}

/// Of ACLs, credentials, tokens and quotas.
fn of_access() -> Vec<RequestBody> {
    vec![
        DescribeAclsRequest::default().into(),
        CreateAclsRequest::default().into(),
        DeleteAclsRequest::default().into(),
        CreateDelegationTokenRequest::default().into(),
        RenewDelegationTokenRequest::default().into(),
        ExpireDelegationTokenRequest::default().into(),
        DescribeDelegationTokenRequest::default().into(),
        DescribeClientQuotasRequest::default().into(),
        AlterClientQuotasRequest::default().into(),
        DescribeUserScramCredentialsRequest::default().into(),
        AlterUserScramCredentialsRequest::default().into(),
    ]
}

/// Of share groups and streams groups.
fn of_younger_groups() -> Vec<RequestBody> {
    vec![
        ShareGroupHeartbeatRequest::default().into(),
        ShareGroupDescribeRequest::default().into(),
        ShareFetchRequest::default().into(),
        ShareAcknowledgeRequest::default().into(),
        InitializeShareGroupStateRequest::default().into(),
        ReadShareGroupStateRequest::default().into(),
        WriteShareGroupStateRequest::default().into(),
        DeleteShareGroupStateRequest::default().into(),
        ReadShareGroupStateSummaryRequest::default().into(),
        DescribeShareGroupOffsetsRequest::default().into(),
        AlterShareGroupOffsetsRequest::default().into(),
        DeleteShareGroupOffsetsRequest::default().into(),
        StreamsGroupHeartbeatRequest::default().into(),
        StreamsGroupDescribeRequest::default().into(),
        StreamsGroupTopologyDescriptionUpdateRequest::default().into(),
    ]
}

#[test]
fn what_is_advertised_is_answered() {
    let mut node = TestNode::start();
    let ResponseBody::ApiVersions(versions) = node.client().call(ApiVersionsRequest::default(), 0) else {
        panic!("another response")
    };
    let advertised: BTreeSet<i16> = versions.api_keys.iter().map(|row| row.api_key).collect();
    let requests = requests();
    let asked: BTreeSet<i16> = requests.iter().map(|request| request.key().number()).collect();
    assert_eq!(asked, advertised, "this test asks for everything that is advertised");
    for request in requests {
        let row =
            versions.api_keys.iter().find(|row| row.api_key == request.key().number()).expect("advertised");
        for version in row.min_version..=row.max_version {
            let key = request.key();
            // What a version cannot carry is the codec's matter.
            let header = RequestHeader {
                request_api_key: key.number(),
                request_api_version: version,
                ..RequestHeader::default()
            };
            if encode_request(&header, &request).is_err() {
                continue;
            }
            let answer = node.client().try_call(request.clone(), version);
            assert!(answer.is_some(), "{key} {version}: {}", node.log());
        }
    }
    assert!(node.stop().success());
}

#[test]
fn controller_listener_answers_what_it_names() {
    let mut node = TestNode::start();
    // Another test's node may have answered in its place while this one starts.
    eventually("its controller listener takes connections", || {
        node.log().contains(" serves on ") && Client::try_connect(node.controller_port).is_ok()
    });
    let client = || Client::try_connect(node.controller_port).expect("connects");
    let ResponseBody::ApiVersions(versions) = client().call(ApiVersionsRequest::default(), 0) else {
        panic!("another response")
    };
    let named = |key: i16| versions.api_keys.iter().find(|row| row.api_key == key);
    let mut asked = 0;
    for request in requests() {
        let Some(row) = named(request.key().number()) else { continue };
        // Of brokers and members alone: the quorum's own requests are asked in extreme_numbers.rs.
        let answer = client().try_call(request.clone(), row.max_version);
        assert!(answer.is_some(), "{}: {}", request.key(), node.log());
        asked += 1;
    }
    assert_eq!(asked, 30, "{:?}", versions.api_keys);
    assert!(node.stop_expecting_trouble().success());
}
