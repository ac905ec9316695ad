use super::*;
use crate::testing::{Fixture, carried};
use barnabas_wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;

#[test]
fn where_nothing_is_reassigned_nothing_is_listed() {
    let fixture = Fixture::new();
    let named = ListPartitionReassignmentsTopics {
        name: "orders".into(),
        partition_indexes: vec![0, 99],
        ..Default::default()
    };
    for topics in [None, Some(vec![named])] {
        let request = ListPartitionReassignmentsRequest { topics, ..Default::default() };
        let response = carried(answer(&request, &fixture.ctx()), 0);
        assert_eq!((response.error_code, response.topics.len()), (0, 0));
    }
}
