use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};

fn request(name: &str, partition_index: i32, offset: i64) -> DeleteRecordsRequest {
    let partition = DeleteRecordsPartition { partition_index, offset, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: name.into(),
        partitions: vec![partition],
        ..DeleteRecordsTopic::default()
    };
    DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1000, ..DeleteRecordsRequest::default() }
}

/// The code with which the partition is refused before its owner is asked; 0 if it is not.
fn refused(name: &str, partition: i32, offset: i64) -> i16 {
    let fixture = Fixture::with_groups();
    match plan(request(name, partition, offset), &fixture.ctx()) {
        Plan::Answer(response) => response.topics[0].partitions[0].error_code,
        Plan::Work(_) => 0,
    }
}

#[test]
fn every_version_carries_both_outcomes() {
    let fixture = Fixture::new();
    for version in versions::<DeleteRecordsResponse>() {
        for (outcome, expect) in [(Ok(Offset(7)), (7, 0)), (Err(ErrorCode::RequestTimedOut), (-1, 7))] {
            let Plan::Work(mut work) = plan(request("orders", 0, 7), &fixture.ctx()) else {
                panic!("no work")
            };
            assert_eq!((work.parts[0].below, work.timeout), (Some(Offset(7)), DurationMs(1000)));
            work.pending.set(work.parts[0].slot, outcome);
            let response = carried(work.pending.respond(), version);
            let said = &response.topics[0].partitions[0];
            assert_eq!((said.low_watermark, said.error_code), expect);
        }
    }
}

#[test]
fn the_high_watermark_is_asked_for_by_minus_one() {
    let fixture = Fixture::new();
    let Plan::Work(work) = plan(request("orders", 0, -1), &fixture.ctx()) else { panic!("no work") };
    assert_eq!(work.parts[0].below, None);
}

#[test]
fn what_cannot_be_deleted_is_refused_in_kafkas_order() {
    assert_eq!(refused("unknown", 0, 1), 3);
    assert_eq!(refused("orders", 3, 1), 3);
    assert_eq!(refused("orders", 1, 1), 6);
    assert_eq!(refused("orders", 0, -2), 1);
    assert_eq!(refused("compacted", 0, 1), 44);
    assert_eq!(refused("__consumer_offsets", 0, 1), 17);
    assert_eq!(refused("orders", 0, 0), 0);
}
