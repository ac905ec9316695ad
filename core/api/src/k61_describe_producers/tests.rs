use super::*;
use crate::testing::{Fixture, carried};
use barnabas_wire::messages::describe_producers_request::TopicRequest;

fn request(name: &str, partition_indexes: &[i32]) -> DescribeProducersRequest {
    let topic = TopicRequest {
        name: name.into(),
        partition_indexes: partition_indexes.to_vec(),
        ..TopicRequest::default()
    };
    DescribeProducersRequest { topics: vec![topic], ..DescribeProducersRequest::default() }
}

#[test]
fn a_producer_is_shown() {
    let fixture = Fixture::new();
    let Plan::Work(mut work) = plan(request("orders", &[0, 1]), &fixture.ctx()) else { panic!("no work") };
    assert_eq!(work.parts.len(), 1, "the other partition is led elsewhere");
    let producer = Producer {
        id: ProducerId(4),
        epoch: ProducerEpoch(2),
        last_sequence: Sequence(9),
        last_timestamp: TimestampMs(11),
        coordinator_epoch: CoordinatorEpoch(-1),
        transaction_start: None,
    };
    work.pending.set(work.parts[0].slot, Ok(vec![producer]));
    let response = carried(work.pending.respond(), 0);
    let [here, elsewhere] = &response.topics[0].partitions[..] else { panic!("two partitions") };
    let shown = &here.active_producers[0];
    assert_eq!((shown.producer_id, shown.producer_epoch, shown.last_sequence), (4, 2, 9));
    assert_eq!((shown.coordinator_epoch, shown.current_txn_start_offset), (-1, -1));
    assert_eq!(elsewhere.error_code, 6);
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let fixture = Fixture::new();
    let code = |name| match plan(request(name, &[0]), &fixture.ctx()) {
        Plan::Answer(response) => response.topics[0].partitions[0].error_code,
        Plan::Work(_) => 0,
    };
    assert_eq!([code("bad name"), code("nobody"), code("orders")], [17, 3, 0]);
}
