use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, broker_config, carried, versions};

fn state(name: Option<&str>, topic_id: TopicId) -> DeleteTopicState {
    DeleteTopicState { name: name.map(Str::from), topic_id, ..DeleteTopicState::default() }
}

fn by_name(names: &[&str]) -> DeleteTopicsRequest {
    let topic_names = names.iter().map(|name| Str::from(*name)).collect();
    DeleteTopicsRequest { topic_names, ..DeleteTopicsRequest::default() }
}

fn by_state(topics: Vec<DeleteTopicState>) -> DeleteTopicsRequest {
    DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() }
}

fn code(result: &DeletableTopicResult) -> (Option<&str>, TopicId, i16) {
    (result.name.as_deref(), result.topic_id, result.error_code)
}

/// What reaches the controller, and what is refused before.
fn check(
    request: DeleteTopicsRequest,
    asked: &[(Option<&str>, TopicId)],
    refused: &[(Option<&str>, TopicId, i16)],
) {
    let fixture = Fixture::new();
    let (reached, response) = match plan(request, 6, &fixture.ctx()) {
        Plan::Work(work) => (work.request.topics, work.pending.respond(Ok(DeleteTopicsResponse::default()))),
        Plan::Answer(response) => (Vec::new(), response),
    };
    let reached: Vec<_> = reached.iter().map(|topic| (topic.name.as_deref(), topic.topic_id)).collect();
    assert_eq!(reached, asked);
    let said: Vec<_> = response.responses.iter().map(code).collect();
    assert_eq!(said, refused);
}

#[test]
fn names_and_ids_reach_the_controller() {
    let zero = TopicId::ZERO;
    check(by_name(&["orders", "unknown"]), &[(Some("orders"), zero), (Some("unknown"), zero)], &[]);
    check(by_state(vec![state(None, ORDERS)]), &[(None, ORDERS)], &[]);
}

#[test]
fn a_topic_is_named_once_and_in_one_way() {
    let zero = TopicId::ZERO;
    check(by_state(vec![state(None, zero)]), &[], &[(None, zero, 42)]);
    check(by_state(vec![state(Some("a"), ORDERS)]), &[], &[(Some("a"), ORDERS, 42)]);
    check(by_name(&["a", "b", "a", "a"]), &[(Some("b"), zero)], &[(Some("a"), zero, 42)]);
    check(by_state(vec![state(None, UNKNOWN), state(None, UNKNOWN)]), &[], &[(None, UNKNOWN, 42)]);
    let twice = vec![state(None, ORDERS), state(Some("orders"), zero)];
    check(by_state(twice), &[], &[(Some("orders"), ORDERS, 42)]);
}

#[test]
fn deletion_can_be_switched_off() {
    let config = broker_config(&[("delete.topic.enable", "false")]);
    let fixture = Fixture { config, ..Fixture::new() };
    for version in versions::<DeleteTopicsResponse>() {
        let Plan::Answer(response) = plan(by_name(&["orders"]), version, &fixture.ctx()) else {
            panic!("work")
        };
        let response = carried(response, version);
        assert_eq!(response.responses[0].error_code, if version >= 3 { 73 } else { 42 });
        assert_eq!(response.responses[0].error_message.is_some(), version >= 5);
    }
}

#[test]
fn every_version_carries_a_deleted_topic() {
    let fixture = Fixture::new();
    for version in versions::<DeleteTopicsResponse>() {
        let Plan::Work(work) = plan(by_name(&["orders"]), version, &fixture.ctx()) else { panic!("no work") };
        let deleted = DeletableTopicResult {
            name: Some("orders".into()),
            topic_id: ORDERS,
            ..DeletableTopicResult::default()
        };
        let of_controller =
            DeleteTopicsResponse { responses: vec![deleted], ..DeleteTopicsResponse::default() };
        let response = carried(work.pending.respond(Ok(of_controller)), version);
        assert_eq!(response.responses[0].topic_id, if version >= 6 { ORDERS } else { TopicId::ZERO });
    }
}

#[test]
fn the_controller_is_asked_in_a_version_that_carries_the_request() {
    let fixture = Fixture::new();
    for version in versions::<DeleteTopicsResponse>() {
        let Plan::Work(work) = plan(by_name(&["orders"]), version, &fixture.ctx()) else { panic!("no work") };
        assert_eq!(work.version, version.max(1), "a quota refuses by the client's version");
        carried(work.request, work.version);
        let answered = DeletableTopicResult {
            name: Some("orders".into()),
            topic_id: if work.version >= 6 { ORDERS } else { TopicId::ZERO },
            error_code: ErrorCode::TopicDeletionDisabled.code(),
            error_message: (work.version >= 5).then(|| "as the controller is configured".into()),
            ..DeletableTopicResult::default()
        };
        let answer = DeleteTopicsResponse { responses: vec![answered], ..DeleteTopicsResponse::default() };
        let answer = carried(answer, work.version);
        let response = carried(work.pending.respond(Ok(answer)), version);
        assert_eq!(response.responses[0].error_code, if version >= 3 { 73 } else { 42 });
    }
}

#[test]
fn without_a_controller_every_topic_is_refused() {
    let fixture = Fixture::new();
    let Plan::Work(work) = plan(by_name(&["orders"]), 6, &fixture.ctx()) else { panic!("no work") };
    let response = carried(work.pending.respond(Err(ErrorCode::NotController.into())), 6);
    assert_eq!(code(&response.responses[0]), (Some("orders"), TopicId::ZERO, 41));
}

/// Source: Kafka `ControllerApis.deleteTopics`.
#[test]
fn denied_name_is_unknown_only_to_clients_that_may_describe_it() {
    let (describe, delete) = (Operation::Describe, Operation::Delete);
    let topic = barnabas_security::ResourceType::Topic;
    let mut fixture = Fixture::new();
    fixture.allow(&[(describe, topic, "orders"), (describe, topic, "missing"), (delete, topic, "other")]);
    let Plan::Work(work) = plan(by_name(&["missing", "hidden", "orders", "other"]), 6, &fixture.ctx()) else {
        panic!("no work")
    };
    let reached: Vec<_> = work.request.topics.iter().map(|topic| topic.name.as_deref()).collect();
    assert_eq!(reached, [Some("missing"), Some("other")], "the controller says that they are unknown");
    let response = work.pending.respond(Ok(DeleteTopicsResponse::default()));
    let zero = TopicId::ZERO;
    let refused: Vec<_> = response.responses.iter().map(code).collect();
    assert_eq!(refused, [(Some("hidden"), zero, 29), (Some("orders"), zero, 29)]);
}
