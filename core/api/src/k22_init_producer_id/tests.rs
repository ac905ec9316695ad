use super::*;
use crate::testing::{Fixture, carried, versions};

fn request(transactional_id: Option<&str>, producer_id: i64, producer_epoch: i16) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: transactional_id.map(Into::into),
        producer_id,
        producer_epoch,
        ..InitProducerIdRequest::default()
    }
}

/// The code of the refusal; 0 where an id is needed.
fn refused(request: &InitProducerIdRequest) -> i16 {
    match plan(request.clone(), &Fixture::new().ctx()) {
        Plan::Work(Work::Fresh) => 0,
        Plan::Work(other) => panic!("{other:?}"),
        Plan::Answer(response) => {
            assert_eq!((response.producer_id, response.producer_epoch), (-1, -1));
            response.error_code
        }
    }
}

#[test]
fn a_producer_always_gets_a_new_id() {
    assert_eq!(refused(&request(None, -1, -1)), 0);
    assert_eq!(refused(&request(None, 7, 3)), 0);
}

#[test]
fn half_an_old_identity_is_refused() {
    assert_eq!(refused(&request(None, 7, -1)), 42);
    assert_eq!(refused(&request(None, -1, 3)), 42);
    assert_eq!(refused(&request(Some(""), -1, -1)), 42, "an id that is none");
}

#[test]
fn every_version_carries_both_outcomes() {
    for version in versions::<InitProducerIdResponse>() {
        let given = carried(respond(Ok(ProducerId(1000))), version);
        assert_eq!((given.error_code, given.producer_id, given.producer_epoch), (0, 1000, 0));
        let refused = carried(respond(Err(ErrorCode::CoordinatorLoadInProgress)), version);
        assert_eq!((refused.error_code, refused.producer_id), (14, -1));
    }
}

#[test]
fn a_transactional_id_has_its_shard() {
    let fixture = Fixture::with_transactions();
    let ask = |request| match plan(request, &fixture.ctx()) {
        Plan::Work(Work::Transactional(work)) => Ok(work.shard.get()),
        Plan::Work(Work::Fresh) => panic!("not for a transactional id"),
        Plan::Answer(response) => Err(response.error_code),
    };
    // "b" falls on partition 0 of two, which is led here; "a" on 1, which is not.
    assert_eq!(ask(request(Some("b"), -1, -1)), Ok(0));
    assert_eq!(ask(request(Some("b"), 7, 3)), Ok(0));
    assert_eq!(ask(request(Some("a"), -1, -1)), Err(16), "NOT_COORDINATOR");
    assert_eq!(ask(request(Some("b"), 7, -1)), Err(42));
    assert_eq!(ask(request(Some(""), -1, -1)), Err(42));
    for version in versions::<InitProducerIdResponse>() {
        let fenced = carried(respond_transactional(refuse(ErrorCode::ProducerFenced), version), version);
        assert_eq!(fenced.error_code, if version < 4 { 47 } else { 90 }, "version {version}");
    }
}
