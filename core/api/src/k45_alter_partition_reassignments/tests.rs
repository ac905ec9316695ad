use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::alter_partition_reassignments_request::ReassignableTopic;

fn code(topic: &str, index: i32, replicas: Option<&[i32]>) -> i16 {
    let partition = ReassignablePartition {
        partition_index: index,
        replicas: replicas.map(<[i32]>::to_vec),
        ..ReassignablePartition::default()
    };
    let topic = ReassignableTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
    let fixture = Fixture::new();
    let mut codes = Vec::new();
    for version in versions::<AlterPartitionReassignmentsResponse>() {
        let mut response = answer(request.clone(), &fixture.ctx());
        response.allow_replication_factor_change = true;
        codes.push(carried(response, version).responses[0].partitions[0].error_code);
    }
    codes.dedup();
    assert_eq!(codes.len(), 1);
    codes[0]
}

#[test]
fn the_replicas_that_it_has_change_nothing() {
    assert_eq!(code("orders", 0, Some(&[1, 3])), 0);
    assert_eq!(code("orders", 0, Some(&[1])), 39, "others than it has");
}

#[test]
fn what_cannot_be_is_refused() {
    assert_eq!(code("nothing", 0, Some(&[1])), 3);
    assert_eq!(code("orders", 99, Some(&[1])), 3);
    assert_eq!(code("orders", 0, None), 85, "NO_REASSIGNMENT_IN_PROGRESS");
    assert_eq!(code("orders", 0, Some(&[])), 39);
    assert_eq!(code("orders", 0, Some(&[77])), 39);
    assert_eq!(code("orders", 0, Some(&[1, 1])), 39);
}
