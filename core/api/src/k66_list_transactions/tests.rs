use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::list_transactions_response::TransactionState;

fn said(code: ErrorCode, ids: &[&str]) -> ListTransactionsResponse {
    let states = ids.iter().map(|id| TransactionState {
        transactional_id: (*id).into(),
        transaction_state: "Empty".into(),
        ..TransactionState::default()
    });
    ListTransactionsResponse {
        error_code: code.code(),
        unknown_state_filters: vec!["Strange".into()],
        transaction_states: states.collect(),
        ..ListTransactionsResponse::default()
    }
}

fn ask(answers: &[ListTransactionsResponse]) -> ListTransactionsResponse {
    let fixture = Fixture::with_transactions();
    let request = ListTransactionsRequest::default();
    let Plan::Work(mut work) = plan(request, &fixture.ctx()) else { panic!("no work") };
    assert_eq!(work.shards, [PartitionIndex(0)]);
    for answer in answers {
        work.pending.add(answer.clone(), &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
    }
    work.pending.respond()
}

#[test]
fn shards_are_joined() {
    for version in versions::<ListTransactionsResponse>() {
        let response = ask(&[said(ErrorCode::None, &["a"]), said(ErrorCode::None, &["b"])]);
        let response = carried(response, version);
        assert_eq!(response.transaction_states.len(), 2);
        assert_eq!(response.unknown_state_filters.len(), 1);
    }
}

#[test]
fn one_shard_that_loads_is_enough_to_say_so() {
    let loading = said(ErrorCode::CoordinatorLoadInProgress, &[]);
    let response = ask(&[said(ErrorCode::None, &["a"]), loading]);
    assert_eq!((response.error_code, response.transaction_states.len()), (14, 0));
    let gone = said(ErrorCode::NotCoordinator, &[]);
    let response = ask(&[said(ErrorCode::None, &["a"]), gone]);
    assert_eq!((response.error_code, response.transaction_states.len()), (0, 1));
}

#[test]
fn without_shards_there_is_nothing() {
    let fixture = Fixture::new();
    let plan = plan(ListTransactionsRequest::default(), &fixture.ctx());
    assert!(matches!(plan, Plan::Answer(response) if response == ListTransactionsResponse::default()));
}
