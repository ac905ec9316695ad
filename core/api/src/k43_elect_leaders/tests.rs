use super::*;
use crate::testing::{carried, versions};
use barnabas_base::ErrorCode;

fn request() -> ElectLeadersRequest {
    let topic = TopicPartitions { topic: "t".into(), partitions: vec![0, 1], ..TopicPartitions::default() };
    ElectLeadersRequest {
        election_type: 1,
        topic_partitions: Some(vec![topic]),
        ..ElectLeadersRequest::default()
    }
}

#[test]
fn version_0_knows_the_preferred_replica_only() {
    assert_eq!(plan(request(), 0).request.election_type, 0);
    assert_eq!(plan(request(), 1).request.election_type, 1);
}

#[test]
fn without_a_controller_every_partition_is_refused() {
    for version in versions::<ElectLeadersResponse>() {
        let response = plan(request(), version).pending.respond(Err(ErrorCode::NotController.into()));
        let response = carried(response, version);
        assert_eq!(response.error_code, if version >= 1 { 41 } else { 0 });
        let partitions = &response.replica_election_results[0].partition_result;
        assert_eq!(
            partitions.iter().map(|part| (part.partition_id, part.error_code)).collect::<Vec<_>>(),
            [(0, 41), (1, 41)]
        );
    }
}
