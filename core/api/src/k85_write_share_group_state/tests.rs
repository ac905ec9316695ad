use super::*;
use crate::testing::{ORDERS, carried, versions};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::write_share_group_state_request::{PartitionData, WriteStateData};

fn request(group: &str, partitions: &[i32]) -> WriteShareGroupStateRequest {
    let partitions =
        partitions.iter().map(|partition| PartitionData { partition: *partition, ..Default::default() });
    let topic = WriteStateData { topic_id: ORDERS, partitions: partitions.collect(), ..Default::default() };
    WriteShareGroupStateRequest { group_id: group.into(), topics: vec![topic], ..Default::default() }
}

#[test]
fn each_share_partition_is_answered_in_its_place() {
    for version in versions::<WriteShareGroupStateResponse>() {
        let Plan::Work(mut work) = plan(request("g", &[3, 1])) else { panic!("no work") };
        let asked: Vec<_> = work.parts.iter().map(|part| (part.topic, part.partition.get())).collect();
        assert_eq!((&*work.group, asked), ("g", vec![(ORDERS, 3), (ORDERS, 1)]));
        work.pending.refuse(work.parts[1].slot, ErrorCode::FencedStateEpoch, Some("no"));
        let response = carried(work.pending.respond(), version);
        let said: Vec<_> =
            response.results[0].partitions.iter().map(|part| (part.partition, part.error_code)).collect();
        assert_eq!(said, [(3, 0), (1, 124)]);
    }
}
