use super::*;
use crate::testing::{ORDERS, carried, versions};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::read_share_group_state_request::{PartitionData, ReadStateData};

fn request(group: &str, partitions: &[i32]) -> ReadShareGroupStateRequest {
    let partitions =
        partitions.iter().map(|partition| PartitionData { partition: *partition, ..Default::default() });
    let topic = ReadStateData { topic_id: ORDERS, partitions: partitions.collect(), ..Default::default() };
    ReadShareGroupStateRequest { group_id: group.into(), topics: vec![topic], ..Default::default() }
}

#[test]
fn each_share_partition_is_answered_in_its_place() {
    for version in versions::<ReadShareGroupStateResponse>() {
        let Plan::Work(mut work) = plan(request("g", &[3, 1])) else { panic!("no work") };
        let asked: Vec<_> = work.parts.iter().map(|part| (part.topic, part.partition.get())).collect();
        assert_eq!((&*work.group, asked), ("g", vec![(ORDERS, 3), (ORDERS, 1)]));
        work.pending.set_state(
            work.parts[0].slot,
            7,
            100,
            vec![StateBatch { first_offset: 100, last_offset: 109, ..Default::default() }],
        );
        work.pending.refuse(work.parts[1].slot, ErrorCode::FencedStateEpoch, Some("no"));
        let response = carried(work.pending.respond(), version);
        let said: Vec<_> =
            response.results[0].partitions.iter().map(|part| (part.partition, part.error_code)).collect();
        assert_eq!(said, [(3, 0), (1, 124)]);
        let first = &response.results[0].partitions[0];
        assert_eq!((first.state_epoch, first.start_offset, first.state_batches.len()), (7, 100, 1));
    }
}

#[test]
fn share_partition_named_again_is_read_once() {
    let Plan::Work(work) = plan(request("g", &[3, 1, 3, 3])) else { panic!("no work") };
    assert_eq!(work.parts.iter().map(|part| part.partition.get()).collect::<Vec<_>>(), [3, 1]);
}
