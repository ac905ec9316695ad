use std::collections::BTreeSet;

use barnabas_base::ErrorCode;
use barnabas_wire::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use barnabas_wire::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;
use barnabas_wire::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsMatchingAcl};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::delete_topics_response::DeletableTopicResult;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use barnabas_wire::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, CreateDelegationTokenResponse,
    DeleteAclsRequest, DeleteAclsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, RequestBody, ResponseBody,
};
use barnabas_wire::{ApiKey, Reader};
use bytes::Bytes;

use super::*;
use crate::k18_api_versions::{Listener, is_answered};
use crate::testing::{COMPACTED, Fixture, ORDERS};

/// Each settled subject in one line.
fn settled(request: impl Into<RequestBody>, answer: impl Into<ResponseBody>) -> Vec<String> {
    let fixture = Fixture::new();
    let asked = Asked::of(&request.into(), &fixture.image).expect("it changes something");
    let line = |(subject, code): (Subject, ErrorCode)| {
        let edits = subject.edits.iter().map(|edit| {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            format!(" {}: {} → {}", edit.name, shown(&edit.from), shown(&edit.to))
        });
        let edits: String = edits.collect();
        format!("{} {} {}{edits} = {}", subject.operation, subject.resource_type, subject.name, code.name())
    };
    asked.settle(Some(&answer.into())).into_iter().map(line).collect()
}

fn config(name: &str, operation: i8, value: Option<&str>) -> AlterableConfig {
    let value = value.map(|value| value.into());
    AlterableConfig { name: name.into(), config_operation: operation, value, ..Default::default() }
}

#[test]
fn configs_show_before_and_after_but_no_secret() {
    let of = |resource_type, name: &str, configs| AlterConfigsResource {
        resource_type,
        resource_name: name.into(),
        configs,
        ..Default::default()
    };
    let topic = vec![config("cleanup.policy", 0, Some("delete")), config("retention.ms", 1, None)];
    let broker = vec![
        config("listener.name.external.plain.sasl.jaas.config", 0, Some("password=s3cret")),
        config("ssl.keystore.password", 0, Some("s3cret")),
        config("no.such.key", 0, Some("s3cret")),
        config("leader.replication.throttled.rate", 0, Some("100")),
        config("log.retention.ms", 0, Some("1000")),
    ];
    let resources = vec![of(2, "compacted", topic), of(4, "1", broker)];
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let answer = |resource_type, name: &str, error_code| AlterConfigsResourceResponse {
        resource_type,
        resource_name: name.into(),
        error_code,
        ..Default::default()
    };
    // In another order than the request's.
    let responses = vec![answer(4, "1", 40), answer(2, "compacted", 0)];
    let answer = IncrementalAlterConfigsResponse { responses, ..Default::default() };
    let lines = settled(request, answer);
    assert_eq!(
        lines[0],
        "ALTER_CONFIGS TOPIC compacted cleanup.policy: compact → delete retention.ms: - → - = NONE"
    );
    assert!(lines[1].ends_with("= INVALID_CONFIG") && lines[1].matches("[hidden]").count() == 3, "{lines:?}");
    assert!(lines[1].contains("log.retention.ms: - → 1000") && !lines[1].contains("s3cret"), "{lines:?}");
    assert!(lines[1].contains("leader.replication.throttled.rate: - → 100"), "{lines:?}");
}

#[test]
fn scram_credentials_show_iterations_alone() {
    let secret = || Bytes::from_static(b"s3cret");
    let set = ScramCredentialUpsertion {
        name: "alice".into(),
        mechanism: 2,
        iterations: 8192,
        salt: secret(),
        salted_password: secret(),
        ..Default::default()
    };
    let deleted = ScramCredentialDeletion { name: "bob".into(), mechanism: 1, ..Default::default() };
    let request = AlterUserScramCredentialsRequest {
        deletions: vec![deleted],
        upsertions: vec![set],
        ..Default::default()
    };
    let result = |user: &str, error_code| AlterUserScramCredentialsResult {
        user: user.into(),
        error_code,
        ..Default::default()
    };
    let results = vec![result("bob", 91), result("alice", 0)];
    let answer = AlterUserScramCredentialsResponse { results, ..Default::default() };
    assert_eq!(
        settled(request, answer),
        [
            "ALTER SCRAM_CREDENTIAL alice SCRAM-SHA-512: - → iterations=8192 = NONE",
            "ALTER SCRAM_CREDENTIAL bob SCRAM-SHA-256: - → - = RESOURCE_NOT_FOUND",
        ]
    );
}

#[test]
fn topic_deleted_by_id_has_its_name_and_its_own_outcome() {
    let state = |topic_id| DeleteTopicState { name: None, topic_id, ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![state(ORDERS), state(COMPACTED)], ..Default::default() };
    // The first is denied, and its name hidden.
    let result = |name: Option<&str>, topic_id, error_code| DeletableTopicResult {
        name: name.map(|name| name.into()),
        topic_id,
        error_code,
        ..Default::default()
    };
    let responses = vec![result(Some("compacted"), COMPACTED, 0), result(None, ORDERS, 29)];
    let lines = settled(request, DeleteTopicsResponse { responses, ..Default::default() });
    assert!(lines[0].contains("orders") && lines[0].ends_with("TOPIC_AUTHORIZATION_FAILED"), "{lines:?}");
    assert!(lines[1].contains("compacted") && lines[1].ends_with("NONE"), "{lines:?}");
}

#[test]
fn deleted_acls_are_those_of_the_answer() {
    let filter = DeleteAclsFilter { principal_filter: Some("User:alice".into()), ..Default::default() };
    let request = DeleteAclsRequest { filters: vec![filter], ..Default::default() };
    let matched = |name: &str| DeleteAclsMatchingAcl {
        resource_type: 2,
        resource_name: name.into(),
        pattern_type: 3,
        principal: "User:alice".into(),
        host: "*".into(),
        operation: 4,
        permission_type: 3,
        ..Default::default()
    };
    let result =
        DeleteAclsFilterResult { matching_acls: vec![matched("a"), matched("b")], ..Default::default() };
    let answer = DeleteAclsResponse { filter_results: vec![result], ..Default::default() };
    let line =
        |name: &str| format!("DELETE ACL ALLOW User:alice WRITE on TOPIC {name} (LITERAL) from * = NONE");
    assert_eq!(settled(request, answer), [line("a"), line("b")]);
}

#[test]
fn created_token_is_named_without_its_hmac() {
    let answer = CreateDelegationTokenResponse {
        token_id: "the-id".into(),
        principal_type: "User".into(),
        principal_name: "alice".into(),
        hmac: Bytes::from_static(b"s3cret"),
        ..Default::default()
    };
    let lines = settled(barnabas_wire::messages::CreateDelegationTokenRequest::default(), answer);
    assert!(lines[0].starts_with("CREATE DELEGATION_TOKEN the-id owner: - → User:alice"), "{lines:?}");
    assert!(!lines[0].contains("s3cret"));
}

#[test]
fn request_that_only_validates_changes_nothing() {
    let image = Fixture::new().image;
    for validate_only in [true, false] {
        let request = IncrementalAlterConfigsRequest { validate_only, ..Default::default() };
        assert_eq!(Asked::of(&request.into(), &image).is_none(), validate_only);
    }
}

#[test]
fn long_requests_and_names_are_cut() {
    let long = "ä".repeat(4000);
    let names = (0..SUBJECTS_MAX + 5).map(|at| if at == 0 { long.as_str().into() } else { "t".into() });
    let request = DeleteTopicsRequest { topic_names: names.collect(), ..Default::default() };
    let asked = Asked::of(&request.into(), &Fixture::new().image).expect("it changes something");
    let all = asked.settle(None);
    assert_eq!(all.len(), SUBJECTS_MAX + 1);
    assert!(all[0].0.name.len() <= TEXT_BYTES_MAX + 3);
    assert!(all[SUBJECTS_MAX].0.name.starts_with("5 more resources"), "{:?}", all[SUBJECTS_MAX]);
    assert!(all.iter().all(|(_, code)| *code == ErrorCode::NetworkException));
}

/// Those that change nothing that an operator decides: data, coordination, what nodes say of themselves, questions.
const NOT_AUDITED: &[ApiKey] = &[
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
    ApiKey::SaslHandshake,
    ApiKey::ApiVersions,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::SaslAuthenticate,
    ApiKey::Vote,
    ApiKey::BeginQuorumEpoch,
    ApiKey::EndQuorumEpoch,
    ApiKey::AlterPartition,
    // What is in it is audited.
    ApiKey::Envelope,
    ApiKey::FetchSnapshot,
    ApiKey::BrokerRegistration,
    ApiKey::BrokerHeartbeat,
    ApiKey::AllocateProducerIds,
    ApiKey::ControllerRegistration,
    ApiKey::AssignReplicasToDirs,
    ApiKey::UpdateRaftVoter,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::StreamsGroupHeartbeat,
    ApiKey::StreamsGroupTopologyDescriptionUpdate,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
];

/// Requests with nothing in them, in each version that such bytes can be read in. Compact forms read 1 as empty, others
/// 0.
fn empty(api: ApiKey) -> Vec<RequestBody> {
    let versions = api.stable_versions();
    let read = |byte: u8, version| {
        RequestBody::decode(&mut Reader::new(Bytes::from(vec![byte; 4096])), api, version).ok()
    };
    (versions.min..=versions.max).flat_map(|version| [read(0, version), read(1, version)]).flatten().collect()
}

#[test]
fn every_served_api_is_audited_or_named_here() {
    let image = Fixture::new().image;
    let is_question = |api: ApiKey| api.name().starts_with("Describe") || api.name().starts_with("List");
    let mut undecided = BTreeSet::new();
    for api in ApiKey::ALL {
        let is_served =
            [Listener::Broker, Listener::Controller].iter().any(|listener| is_answered(api, *listener));
        let is_audited = empty(api).iter().any(|request| Asked::of(request, &image).is_some());
        let is_named = is_question(api) || api.name().ends_with("Describe") || NOT_AUDITED.contains(&api);
        if is_served && is_audited == is_named {
            undecided.insert(api.name());
        }
    }
    assert_eq!(undecided, BTreeSet::new());
}
