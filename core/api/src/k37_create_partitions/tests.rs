use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;

fn request(names: &[&str]) -> CreatePartitionsRequest {
    let topic = |name: &&str| CreatePartitionsTopic {
        name: (*name).into(),
        count: 3,
        ..CreatePartitionsTopic::default()
    };
    CreatePartitionsRequest {
        topics: names.iter().map(topic).collect(),
        ..CreatePartitionsRequest::default()
    }
}

fn said(response: &CreatePartitionsResponse) -> Vec<(&str, i16)> {
    response.results.iter().map(|result| (&*result.name, result.error_code)).collect()
}

#[test]
fn duplicates_do_not_reach_the_controller() {
    for version in versions::<CreatePartitionsResponse>() {
        let Plan::Work(work) = plan(request(&["a", "b", "a"]), &Fixture::new().ctx()) else {
            panic!("no work")
        };
        assert_eq!(work.request.topics.len(), 1);
        let done = CreatePartitionsTopicResult { name: "b".into(), ..CreatePartitionsTopicResult::default() };
        let of_controller =
            CreatePartitionsResponse { results: vec![done], ..CreatePartitionsResponse::default() };
        let response = carried(work.pending.respond(Ok(of_controller)), version);
        assert_eq!(said(&response), [("b", 0), ("a", 42)]);
    }
    assert!(
        matches!(plan(request(&["a", "a"]), &Fixture::new().ctx()), Plan::Answer(response) if said(&response) == [("a", 42)])
    );
}

#[test]
fn without_a_controller_every_topic_is_refused() {
    let Plan::Work(work) = plan(request(&["a", "b"]), &Fixture::new().ctx()) else { panic!("no work") };
    let response = work.pending.respond(Err(ErrorCode::NotController.into()));
    assert_eq!(said(&response), [("a", 41), ("b", 41)]);
}
