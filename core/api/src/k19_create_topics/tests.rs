use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_base::{TopicId, Uuid};
use barnabas_wire::messages::create_topics_request::CreatableTopicConfig;

fn request(names: &[&str]) -> CreateTopicsRequest {
    let config =
        CreatableTopicConfig { name: "retention.ms".into(), value: Some("5".into()), ..Default::default() };
    let topic = |name: &&str| CreatableTopic {
        name: (*name).into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: vec![config.clone()],
        ..CreatableTopic::default()
    };
    CreateTopicsRequest { topics: names.iter().map(topic).collect(), ..CreateTopicsRequest::default() }
}

fn made(name: &str) -> CreatableTopicResult {
    CreatableTopicResult {
        name: name.into(),
        topic_id: Uuid([1; 16]),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopicResult::default()
    }
}

fn work(names: &[&str], version: i16) -> Work {
    match plan(request(names), version, &Fixture::new().ctx()) {
        Plan::Work(work) => work,
        Plan::Answer(response) => panic!("no work: {response:?}"),
    }
}

#[test]
fn every_version_carries_a_created_topic() {
    let fixture = Fixture::new();
    for version in versions::<CreateTopicsResponse>() {
        let of_controller = CreateTopicsResponse { topics: vec![made("new")], ..Default::default() };
        let response = work(&["new"], version).pending.respond(Ok(of_controller), &fixture.ctx());
        let response = carried(response, version);
        let topic = &response.topics[0];
        assert_eq!((topic.error_code, topic.topic_id.is_zero()), (0, version < 7));
        assert_eq!(topic.num_partitions, if version >= 5 { 1 } else { -1 });
        assert_eq!(topic.configs.as_deref().unwrap_or_default().is_empty(), version < 5);
    }
}

#[test]
fn the_controller_is_asked_in_a_version_that_carries_the_request() {
    for version in versions::<CreateTopicsResponse>() {
        let work = work(&["new"], version);
        assert_eq!(work.version, version.max(2));
        carried(work.request, work.version);
    }
}

#[test]
fn the_answer_shows_what_the_topic_will_be_configured_with() {
    let fixture = Fixture::new();
    let of_controller = CreateTopicsResponse { topics: vec![made("new")], ..Default::default() };
    let response = work(&["new"], 5).pending.respond(Ok(of_controller), &fixture.ctx());
    let configs = response.topics[0].configs.clone().unwrap();
    let config = |name: &str| configs.iter().find(|config| config.name == *name).unwrap();
    assert_eq!(
        (config("retention.ms").value.as_deref(), config("retention.ms").config_source),
        (Some("5"), 1)
    );
    assert_eq!(
        (config("segment.bytes").value.as_deref(), config("segment.bytes").config_source),
        (Some("1073741824"), 5)
    );
}

#[test]
fn duplicates_and_the_metadata_topic_do_not_reach_the_controller() {
    let work = work(&["a", "b", "a", "__cluster_metadata"], 5);
    let asked: Vec<_> = work.request.topics.iter().map(|topic| &*topic.name).collect();
    assert_eq!(asked, ["b"]);
    let fixture = Fixture::new();
    let response = work.pending.respond(Ok(CreateTopicsResponse::default()), &fixture.ctx());
    let said: Vec<_> = response.topics.iter().map(|topic| (&*topic.name, topic.error_code)).collect();
    assert_eq!(said, [("a", 42), ("__cluster_metadata", 42)]);
    let message = response.topics[1].error_message.as_deref();
    assert_eq!(message, Some("Creation of internal topic __cluster_metadata is prohibited."));
}

#[test]
fn nothing_left_is_answered_at_once() {
    assert!(
        matches!(plan(request(&["a", "a"]), 5, &Fixture::new().ctx()), Plan::Answer(response) if response.topics.len() == 1)
    );
    assert!(matches!(plan(request(&[]), 5, &Fixture::new().ctx()), Plan::Answer(_)));
}

#[test]
fn without_a_controller_every_topic_is_refused() {
    let fixture = Fixture::new();
    for version in versions::<CreateTopicsResponse>() {
        let refusal = Refusal::new(ErrorCode::RequestTimedOut, "no controller");
        let response =
            carried(work(&["a", "b"], version).pending.respond(Err(refusal), &fixture.ctx()), version);
        assert_eq!(response.topics.iter().map(|topic| topic.error_code).collect::<Vec<_>>(), [7, 7]);
        assert_eq!(response.topics[0].error_message.as_deref() == Some("no controller"), version >= 1);
        assert_eq!(response.topics[0].topic_id, TopicId::ZERO);
    }
}

#[test]
fn configurations_beyond_the_answers_limit_are_left_out() {
    let mut fixture = Fixture::new();
    fixture.room = Box::new(crate::AnswerRoom::new(20_000, crate::Unlimited));
    let names: Vec<String> = (0..20).map(|number| format!("new-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of_controller =
        CreateTopicsResponse { topics: names.iter().map(|name| made(name)).collect(), ..Default::default() };
    let response = work(&names, 7).pending.respond(Ok(of_controller), &fixture.ctx());
    let shown = response.topics.iter().filter(|topic| topic.configs.is_some()).count();
    assert!((1..10).contains(&shown), "{shown}");
    let invalid = ErrorCode::InvalidRequest.code();
    assert!(response.topics.iter().all(|topic| topic.error_code == 0));
    assert!(response.topics[19].configs.as_ref().is_none_or(Vec::is_empty));
    assert_eq!(response.topics[19].topic_config_error_code, invalid);
}

#[test]
fn creation_without_describe_configs_is_no_denial() {
    let mut fixture = Fixture::new();
    fixture.allow(&[(Operation::Create, barnabas_security::ResourceType::Topic, "new")]);
    let Plan::Work(work) = plan(request(&["new"]), 7, &fixture.ctx()) else { panic!("no work") };
    assert_eq!(fixture.judged.as_ref().unwrap().denied.take(), "");
    let of_controller = CreateTopicsResponse { topics: vec![made("new")], ..Default::default() };
    let response = work.pending.respond(Ok(of_controller), &fixture.ctx());
    assert_eq!(response.topics[0].topic_config_error_code, 29);
}
