use super::*;
use crate::testing::{Fixture, carried, versions};

#[test]
fn the_transactions_shard_is_asked() {
    let fixture = Fixture::with_transactions();
    let ask = |id: &str| {
        let request = EndTxnRequest { transactional_id: id.into(), ..EndTxnRequest::default() };
        match plan(request, &fixture.ctx()) {
            Plan::Work(work) => Ok((work.shard.get(), work.request.transactional_id.to_string())),
            Plan::Answer(response) => Err(response.error_code),
        }
    };
    assert_eq!(ask("b"), Ok((0, "b".to_owned())));
    assert_eq!(ask("a"), Err(16), "NOT_COORDINATOR");
    assert_eq!(ask(""), Err(42), "INVALID_REQUEST");
}

#[test]
fn every_version_carries_the_answer() {
    for version in versions::<EndTxnResponse>() {
        let answer = carried(respond(refuse(ErrorCode::ProducerFenced), version), version);
        assert_eq!(answer.error_code, if version < 2 { 47 } else { 90 });
        if version >= 5 {
            let next = EndTxnResponse { producer_id: 7, producer_epoch: 4, ..EndTxnResponse::default() };
            let answer = carried(respond(next, version), version);
            assert_eq!((answer.producer_id, answer.producer_epoch), (7, 4));
        }
    }
}
