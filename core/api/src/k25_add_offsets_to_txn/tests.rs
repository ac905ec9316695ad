use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_base::PartitionIndex;

fn ask(fixture: &Fixture, id: &str, group: &str) -> Result<TopicPartition, i16> {
    let request = AddOffsetsToTxnRequest {
        transactional_id: id.into(),
        producer_id: 7,
        producer_epoch: 3,
        group_id: group.into(),
        ..AddOffsetsToTxnRequest::default()
    };
    match plan(&request, &fixture.ctx()) {
        Plan::Work(work) => {
            assert_eq!(work.shard, PartitionIndex(0));
            assert_eq!(
                (work.request.producer_id, work.request.producer_epoch),
                (ProducerId(7), ProducerEpoch(3))
            );
            Ok(work.request.partition)
        }
        Plan::Answer(response) => Err(response.error_code),
    }
}

#[test]
fn the_groups_partition_is_added_wherever_it_is_led() {
    let fixture = Fixture::with_transactions();
    let of = |index| TopicPartition::new("__consumer_offsets", PartitionIndex(index));
    assert_eq!(ask(&fixture, "b", "b"), Ok(of(0)));
    assert_eq!(ask(&fixture, "b", "a"), Ok(of(1)));
    assert_eq!(ask(&fixture, "a", "b"), Err(16), "NOT_COORDINATOR");
    assert_eq!(ask(&fixture, "", "b"), Err(42), "INVALID_REQUEST");
    assert_eq!(ask(&Fixture::new(), "b", "b"), Err(15), "COORDINATOR_NOT_AVAILABLE");
}

#[test]
fn every_version_carries_the_answer() {
    for version in versions::<AddOffsetsToTxnResponse>() {
        let answer = carried(respond(refuse(ErrorCode::ProducerFenced), version), version);
        assert_eq!(answer.error_code, if version < 2 { 47 } else { 90 });
    }
}
