//! What each API needs, and what it answers where that is denied: a row for every served API. An API without a row, or
//! without a rule, fails.

mod each;

use super::*;
use crate::k18_api_versions::is_answered;
use crate::testing::Fixture;
use barnabas_security::ResourceType;
use barnabas_wire::Reader;
use bytes::Bytes;
use each::Mode::{Enforces, Reports};
use std::collections::BTreeSet;

/// API → what was denied (in the order in which it was asked, each once) → the error codes of the answer. A client
/// without any ACL asks about `orders`, the group `g`, the transactional id `x`.
const BROKER: &[(ApiKey, &str)] = &[
    (ApiKey::Produce, "WRITE TRANSACTIONAL_ID:x → 53; WRITE TOPIC:orders → 29"),
    (ApiKey::Fetch, "READ TOPIC:orders → 29; CLUSTER_ACTION CLUSTER:kafka-cluster → 29"),
    (ApiKey::ListOffsets, "DESCRIBE TOPIC:orders → 29"),
    (ApiKey::Metadata, "DESCRIBE TOPIC:orders → 29"),
    (ApiKey::OffsetCommit, "READ GROUP:g → 30"),
    (ApiKey::OffsetFetch, "DESCRIBE GROUP:g → 30"),
    (
        ApiKey::FindCoordinator,
        "DESCRIBE GROUP:g → 30; DESCRIBE TRANSACTIONAL_ID:x → 53; CLUSTER_ACTION CLUSTER:kafka-cluster → 31",
    ),
    (ApiKey::JoinGroup, "READ GROUP: → 30"),
    (ApiKey::Heartbeat, "READ GROUP: → 30"),
    (ApiKey::LeaveGroup, "READ GROUP: → 30"),
    (ApiKey::SyncGroup, "READ GROUP: → 30"),
    (ApiKey::DescribeGroups, "DESCRIBE GROUP:g → 30"),
    (ApiKey::ListGroups, " → hidden"),
    (ApiKey::ApiVersions, "nothing"),
    (ApiKey::SaslHandshake, "nothing"),
    (ApiKey::SaslAuthenticate, "nothing"),
    (ApiKey::CreateTopics, "CREATE TOPIC:orders → 29"),
    (ApiKey::DeleteTopics, "DELETE TOPIC:orders → 29"),
    (ApiKey::DeleteRecords, "DELETE TOPIC:orders → 29"),
    (ApiKey::InitProducerId, "WRITE TRANSACTIONAL_ID:x → 53; IDEMPOTENT_WRITE CLUSTER:kafka-cluster → 31"),
    (ApiKey::OffsetForLeaderEpoch, "DESCRIBE TOPIC:orders → 29"),
    (ApiKey::AddPartitionsToTxn, "WRITE TRANSACTIONAL_ID:x → 53; CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::AddOffsetsToTxn, "WRITE TRANSACTIONAL_ID: → 53"),
    (ApiKey::EndTxn, "WRITE TRANSACTIONAL_ID: → 53"),
    (ApiKey::WriteTxnMarkers, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::TxnOffsetCommit, "WRITE TRANSACTIONAL_ID:x → 53"),
    (ApiKey::DescribeAcls, "DESCRIBE CLUSTER:kafka-cluster → 31"),
    (ApiKey::CreateAcls, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::DeleteAcls, "ALTER CLUSTER:kafka-cluster → 31"),
    (
        ApiKey::DescribeConfigs,
        "DESCRIBE_CONFIGS TOPIC:orders, DESCRIBE_CONFIGS GROUP:g, DESCRIBE_CONFIGS CLUSTER:kafka-cluster → 29 30 31; \
         DESCRIBE_CONFIGS CLUSTER:kafka-cluster → 31",
    ),
    (
        ApiKey::AlterConfigs,
        "ALTER_CONFIGS TOPIC:orders, ALTER_CONFIGS GROUP:g, ALTER_CONFIGS CLUSTER:kafka-cluster → 29 30 31",
    ),
    (ApiKey::AlterReplicaLogDirs, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeLogDirs, "DESCRIBE CLUSTER:kafka-cluster → 31"),
    (ApiKey::CreatePartitions, "ALTER TOPIC:orders → 29"),
    (ApiKey::CreateDelegationToken, "CREATE_TOKENS USER:User:carol → 65"),
    (ApiKey::RenewDelegationToken, " → 64"),
    (ApiKey::ExpireDelegationToken, " → 64"),
    (ApiKey::DescribeDelegationToken, " → hidden"),
    (ApiKey::DeleteGroups, "DELETE GROUP:g → 30"),
    (ApiKey::ElectLeaders, "ALTER CLUSTER:kafka-cluster → 31"),
    (
        ApiKey::IncrementalAlterConfigs,
        "ALTER_CONFIGS TOPIC:orders, ALTER_CONFIGS GROUP:g, ALTER_CONFIGS CLUSTER:kafka-cluster → 29 30 31",
    ),
    (ApiKey::AlterPartitionReassignments, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::ListPartitionReassignments, "DESCRIBE CLUSTER:kafka-cluster → 31"),
    (ApiKey::OffsetDelete, "DELETE GROUP:g → 30"),
    (ApiKey::DescribeClientQuotas, "DESCRIBE_CONFIGS CLUSTER:kafka-cluster → 31"),
    (ApiKey::AlterClientQuotas, "ALTER_CONFIGS CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeUserScramCredentials, "DESCRIBE CLUSTER:kafka-cluster → 31"),
    (ApiKey::AlterUserScramCredentials, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeQuorum, "DESCRIBE CLUSTER:kafka-cluster → 31"),
    (ApiKey::UpdateFeatures, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeCluster, "DESCRIBE CLUSTER:kafka-cluster → no operations"),
    (ApiKey::DescribeProducers, "READ TOPIC:orders → 29"),
    (ApiKey::UnregisterBroker, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeTransactions, "DESCRIBE TRANSACTIONAL_ID:x → 53"),
    (ApiKey::ListTransactions, " → hidden"),
    (ApiKey::ConsumerGroupHeartbeat, "READ GROUP:g → 30"),
    (ApiKey::ConsumerGroupDescribe, "DESCRIBE GROUP:g → 30"),
    (ApiKey::GetTelemetrySubscriptions, "nothing"),
    (ApiKey::PushTelemetry, "nothing"),
    (ApiKey::ListConfigResources, "DESCRIBE_CONFIGS CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeTopicPartitions, "DESCRIBE TOPIC:orders → 29"),
    (ApiKey::ShareGroupHeartbeat, "READ GROUP:g → 30"),
    (ApiKey::ShareGroupDescribe, "DESCRIBE GROUP:g → 30"),
    (ApiKey::ShareFetch, "READ GROUP:g → 30"),
    (ApiKey::ShareAcknowledge, "READ GROUP:g → 30"),
    (ApiKey::AddRaftVoter, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::RemoveRaftVoter, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::InitializeShareGroupState, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::ReadShareGroupState, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::WriteShareGroupState, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::DeleteShareGroupState, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::ReadShareGroupStateSummary, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::StreamsGroupHeartbeat, "READ GROUP:g → 30"),
    (ApiKey::StreamsGroupDescribe, "DESCRIBE GROUP:g → 30"),
    (ApiKey::DescribeShareGroupOffsets, "DESCRIBE GROUP:g → 30"),
    (ApiKey::AlterShareGroupOffsets, "READ GROUP:g → 30"),
    (ApiKey::DeleteShareGroupOffsets, "DELETE GROUP:g → 30"),
    (ApiKey::StreamsGroupTopologyDescriptionUpdate, "READ GROUP:g → 30"),
    (ApiKey::UnregisterController, "ALTER CLUSTER:kafka-cluster → 31"),
];

/// The same where a controllers' listener needs something else, or answers alone.
const CONTROLLER: &[(ApiKey, &str)] = &[
    (ApiKey::Fetch, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::DescribeCluster, "ALTER CLUSTER:kafka-cluster → 31"),
    (ApiKey::Vote, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::BeginQuorumEpoch, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::EndQuorumEpoch, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::AlterPartition, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::Envelope, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::FetchSnapshot, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::BrokerRegistration, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::BrokerHeartbeat, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::AllocateProducerIds, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::ControllerRegistration, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::AssignReplicasToDirs, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
    (ApiKey::UpdateRaftVoter, "CLUSTER_ACTION CLUSTER:kafka-cluster → 31"),
];

fn row(key: ApiKey, listener: Listener) -> Option<&'static str> {
    let find = |table: &[(ApiKey, &'static str)]| table.iter().find(|row| row.0 == key).map(|row| row.1);
    let own = if listener == Listener::Controller { find(CONTROLLER) } else { None };
    own.or_else(|| find(BROKER))
}

/// A request with nothing in it, in the newest version that such bytes can be read in.
fn bare(key: ApiKey) -> RequestBody {
    // Compact forms read 1 as empty, others 0; further bytes are not looked at.
    let read = |byte, version| {
        RequestBody::decode(&mut Reader::new(Bytes::from(vec![byte; 4096])), key, version).ok()
    };
    let versions = key.stable_versions();
    let mut newest = (versions.min..=versions.max).rev();
    let body = newest.find_map(|version| read(1, version).or_else(|| read(0, version)));
    body.unwrap_or_else(|| panic!("{key} cannot be read from such bytes"))
}

/// The error codes in an answer that was printed, each once.
fn codes(answer: &str) -> String {
    let found = answer.split("error_code: ").skip(1).map(|rest| {
        rest.split(|letter: char| !letter.is_ascii_digit() && letter != '-').next().unwrap_or_default()
    });
    let mut codes: Vec<&str> = found.filter(|code| *code != "0").collect();
    codes.dedup();
    codes.join(" ")
}

/// What an API with a rule for the whole request answers to a client without ACLs. `None`: it asks for each resource.
fn at_the_gate(key: ApiKey, listener: Listener) -> Option<String> {
    let mut fixture = Fixture::new();
    fixture.allow(&[]);
    let version = key.stable_versions().max;
    let said = match rule(key, listener).unwrap_or_else(|| panic!("{key} has no rule")) {
        Rule::Nothing => "nothing".to_owned(),
        Rule::Each => return None,
        _ => {
            let body = each::filled(key).unwrap_or_else(|| bare(key));
            let gated = gate(&body, version, listener, &fixture.ctx().access);
            let Gate::Refuse(response) = gated else { panic!("{key}: {gated:?}") };
            let denied = &fixture.judged.as_ref().unwrap().denied;
            format!("{} → {}", denied.take(), codes(&format!("{response:?}")))
        }
    };
    Some(said)
}

#[test]
fn every_served_api_is_denied_as_its_row_says() {
    let mut wrong = Vec::new();
    for listener in [Listener::Broker, Listener::Controller] {
        for &key in ApiKey::ALL.iter().filter(|key| is_answered(**key, listener)) {
            let said = at_the_gate(key, listener).unwrap_or_else(|| each::denied(key, Enforces).join("; "));
            match row(key, listener) {
                None => wrong.push(format!("{key}: no row; it says {said}")),
                Some(row) if row != said => wrong.push(format!("{key}: row {row}; it says {said}")),
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each denial that would be answered. Shadow mode goes on after the first, so that it may report more.
#[test]
fn shadow_mode_reports_what_is_denied_otherwise() {
    let names = |said: &str| -> BTreeSet<String> {
        let denied = said.split(" → ").next().unwrap_or_default();
        denied.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let mut silent = Vec::new();
    for &key in ApiKey::ALL.iter().filter(|key| is_answered(**key, Listener::Broker)) {
        if rule(key, Listener::Broker) != Some(Rule::Each) {
            continue;
        }
        let (denied, reported) = (each::denied(key, Enforces), each::denied(key, Reports));
        assert_eq!(denied.len(), reported.len(), "{key}: the same requests");
        for (denied, reported) in denied.iter().zip(&reported) {
            if !names(denied).is_subset(&names(reported)) {
                silent.push(format!("{key}: denied {denied}; reported {reported}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// An API without one would be closed to every client under an authorizer.
#[test]
fn every_api_of_kafka_has_a_rule() {
    let without = |listener| ApiKey::ALL.iter().filter(move |key| rule(**key, listener).is_none());
    assert_eq!(without(Listener::Broker).chain(without(Listener::Controller)).count(), 0);
}

#[test]
fn grants_open_the_gate() {
    let mut fixture = Fixture::new();
    fixture.allow(&[
        (Operation::ClusterAction, ResourceType::Cluster, "kafka-cluster"),
        (Operation::Describe, ResourceType::Cluster, "kafka-cluster"),
    ]);
    let open = |key| gate(&bare(key), 0, Listener::Controller, &fixture.ctx().access) == Gate::Pass;
    assert!(open(ApiKey::Vote) && open(ApiKey::WriteTxnMarkers) && open(ApiKey::DescribeQuorum));
    assert!(!open(ApiKey::UpdateFeatures));
}

#[test]
fn operations_are_those_that_are_allowed() {
    let mut fixture = Fixture::new();
    let all = |fixture: &Fixture| {
        let access = fixture.ctx().access;
        let of = |kind, name| access.operations(kind, name);
        (of(ResourceType::Topic, "orders"), of(ResourceType::Group, "g"), access.cluster_operations())
    };
    // Kafka's `AclEntry.supportedOperations`, as bits.
    assert_eq!(all(&fixture), (0b1101_1111_1000, 0b1101_0100_1000, 0b1_1111_1010_0000));
    fixture.allow(&[(Operation::Read, ResourceType::Topic, "orders")]);
    assert_eq!(all(&fixture), (1 << 3 | 1 << 8, 0, 0));
    fixture.allow(&[(Operation::Alter, ResourceType::Cluster, "kafka-cluster")]);
    assert_eq!(all(&fixture), (0, 0, 1 << 7 | 1 << 8));
}
