use super::*;
use crate::testing::{Fixture, carried};

#[test]
fn shards_are_asked_once_and_answered_in_order() {
    let fixture = Fixture::with_transactions();
    let ids = ["b", "a", "", "d", "b"];
    let request = DescribeTransactionsRequest {
        transactional_ids: ids.map(Str::from).to_vec(),
        ..DescribeTransactionsRequest::default()
    };
    let Plan::Work(Work { parts, mut pending }) = plan(request, &fixture.ctx()) else { panic!("no work") };
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].shard, PartitionIndex(0));
    let states = parts[0].request.transactional_ids.iter().map(|id| TransactionState {
        transactional_id: id.clone(),
        transaction_state: "Ongoing".into(),
        ..TransactionState::default()
    });
    assert_eq!(states.len(), 2);
    let response = DescribeTransactionsResponse {
        transaction_states: states.collect(),
        ..DescribeTransactionsResponse::default()
    };
    pending.add(response, &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
    let said = carried(pending.respond(), 0).transaction_states;
    let said: Vec<(&str, i16, &str)> = said
        .iter()
        .map(|state| (&*state.transactional_id, state.error_code, &*state.transaction_state))
        .collect();
    let ongoing = |id| (id, 0, "Ongoing");
    assert_eq!(said, [ongoing("b"), ("a", 16, ""), ("", 42, ""), ongoing("d"), ongoing("b")]);
}

#[test]
fn without_a_coordinator_everything_is_refused() {
    let fixture = Fixture::new();
    let request = DescribeTransactionsRequest {
        transactional_ids: vec!["b".into()],
        ..DescribeTransactionsRequest::default()
    };
    let Plan::Answer(response) = plan(request, &fixture.ctx()) else { panic!("work") };
    assert_eq!(response.transaction_states[0].error_code, 16, "as Kafka: NOT_COORDINATOR");
}
