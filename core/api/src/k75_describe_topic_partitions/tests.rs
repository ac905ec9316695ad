use super::*;
use crate::testing::{Fixture, broker_config, carried};
use barnabas_wire::messages::describe_topic_partitions_request::{Cursor as From, TopicRequest};

fn request(names: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> DescribeTopicPartitionsRequest {
    let topic = |name: &&str| TopicRequest { name: (*name).into(), ..TopicRequest::default() };
    let cursor = cursor.map(|(name, partition_index)| From {
        topic_name: name.into(),
        partition_index,
        ..From::default()
    });
    DescribeTopicPartitionsRequest {
        topics: names.iter().map(topic).collect(),
        response_partition_limit: limit,
        cursor,
        ..DescribeTopicPartitionsRequest::default()
    }
}

/// "topic:code[partitions]" for each topic, then where to go on.
fn check(request: &DescribeTopicPartitionsRequest, expect: &str) {
    check_on(&Fixture::new(), request, expect);
}

fn check_on(fixture: &Fixture, request: &DescribeTopicPartitionsRequest, expect: &str) {
    let response = carried(answer(request, &fixture.ctx()), 0);
    let mut said = String::new();
    for topic in &response.topics {
        let partitions: Vec<_> =
            topic.partitions.iter().map(|part| part.partition_index.to_string()).collect();
        let name = topic.name.as_deref().unwrap_or("-");
        said.push_str(&format!("{name}:{}[{}] ", topic.error_code, partitions.join(",")));
    }
    if let Some(cursor) = &response.next_cursor {
        said.push_str(&format!("then {}-{}", cursor.topic_name, cursor.partition_index));
    }
    assert_eq!(said.trim(), expect);
}

#[test]
fn no_names_mean_all_topics() {
    check(&request(&[], 2000, None), "compacted:0[0] orders:0[0,1,2]");
}

#[test]
fn a_page_ends_in_the_middle_of_a_topic() {
    check(&request(&[], 2, None), "compacted:0[0] orders:0[0] then orders-1");
    check(&request(&[], 2, Some(("orders", 1))), "orders:0[1,2]");
    check(&request(&[], 1, None), "compacted:0[0] then orders-0");
    check(&request(&[], 0, None), "compacted:0[0] then orders-0");
}

#[test]
fn the_brokers_bound_holds() {
    let fixture =
        Fixture { config: broker_config(&[("max.request.partition.size.limit", "1")]), ..Fixture::new() };
    check_on(&fixture, &request(&["orders"], 2000, None), "orders:0[0] then orders-1");
}

#[test]
fn named_topics_come_in_order_with_their_errors() {
    check(&request(&["zero", "orders", "bad name"], 2000, None), "bad name:17[] orders:0[0,1,2] zero:3[]");
    check(&request(&["zero", "orders"], 2000, Some(("orders", 2))), "orders:0[2] zero:3[]");
}

#[test]
fn a_cursor_that_cannot_be_is_refused() {
    check(&request(&["orders"], 10, Some(("other", 0))), "orders:42[]");
    check(&request(&["orders"], 10, Some(("orders", -1))), "orders:42[]");
    check(&request(&["orders"], 10, Some(("orders", 9))), "orders:0[]");
}

#[test]
fn a_partition_shows_its_replicas() {
    let fixture = Fixture::new();
    let response = answer(&request(&["orders"], 10, None), &fixture.ctx());
    let part = &response.topics[0].partitions[0];
    assert_eq!((part.leader_id, part.leader_epoch), (1, 5));
    assert_eq!(
        (&part.replica_nodes[..], &part.isr_nodes[..], &part.offline_replicas[..]),
        (&[1, 3][..], &[1][..], &[3][..])
    );
    assert_eq!(part.eligible_leader_replicas.as_deref(), Some(&[][..]));
    assert_eq!(response.topics[0].topic_authorized_operations, 3576);
}
