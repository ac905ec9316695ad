use super::*;
use crate::testing::{Fixture, carried};
use barnabas_wire::MetadataRecord;
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
    assert_eq!(work.parts.len(), 1, "the other partition has no replica here");
    let producer = Producer {
        id: ProducerId(4),
        epoch: ProducerEpoch(2),
        last_sequence: Sequence(9),
        last_timestamp: TimestampMs(11),
        coordinator_epoch: CoordinatorEpoch(-1),
        transaction_start: None,
    };
    work.pending.set(0, &Ok(vec![producer]), &fixture.room);
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
    assert_eq!([code("bad name"), code("unknown"), code("orders")], [17, 3, 0]);
}

fn producer(id: i64) -> Producer {
    Producer {
        id: ProducerId(id),
        epoch: ProducerEpoch(0),
        last_sequence: Sequence(0),
        last_timestamp: TimestampMs(0),
        coordinator_epoch: CoordinatorEpoch(-1),
        transaction_start: None,
    }
}

/// KIP-664: `kafka-transactions describe-producers --broker-id` asks any replica.
#[test]
fn follower_is_asked_like_the_leader() {
    let mut fixture = Fixture::new();
    let mut led_by_2 = crate::testing::partition(crate::testing::ORDERS, 5, 2);
    if let MetadataRecord::Partition(record) = &mut led_by_2 {
        record.replicas = vec![2, 1];
    }
    fixture.add(&[led_by_2]);
    let planned = plan(request("orders", &[5, 1]), &fixture.ctx());
    let Plan::Work(work) = planned else { panic!("no work") };
    assert_eq!(work.parts.iter().map(|part| part.partition.get()).collect::<Vec<_>>(), [5]);
    assert_eq!(work.pending.respond().topics[0].partitions[1].error_code, 6);
}

#[test]
fn partition_named_twice_is_asked_once_and_shown_twice() {
    let fixture = Fixture::new();
    let Plan::Work(mut work) = plan(request("orders", &[0, 0]), &fixture.ctx()) else { panic!("no work") };
    assert_eq!(work.parts.len(), 1);
    work.pending.set(0, &Ok(vec![producer(4)]), &fixture.room);
    let shown = work.pending.respond().topics.remove(0).partitions;
    assert_eq!(shown.iter().map(|each| each.active_producers.len()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn producers_beyond_the_answers_limit_are_refused() {
    let fixture = Fixture::new();
    let Plan::Work(mut work) = plan(request("orders", &[0; 1000]), &fixture.ctx()) else { panic!("no work") };
    let room = AnswerRoom::new(1 << 20, crate::Unlimited);
    work.pending.set(0, &Ok((0..1000).map(producer).collect()), &room);
    let shown = work.pending.respond().topics.remove(0).partitions;
    let full = shown.iter().filter(|each| each.active_producers.len() == 1000).count();
    assert!((5..20).contains(&full), "{full}");
    let refused = shown.iter().filter(|each| each.error_code == ErrorCode::InvalidRequest.code()).count();
    assert_eq!(full + refused, 1000);
}
