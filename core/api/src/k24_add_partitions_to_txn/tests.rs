use super::*;
use crate::testing::{Fixture, carried, versions};

/// "b" falls on partition 0 of two, which is led here; "a" on 1, which is not.
fn request(version: i16, ids: &[&str], topics: &[(&str, &[i32])]) -> AddPartitionsToTxnRequest {
    let topics: Vec<AddPartitionsToTxnTopic> = topics
        .iter()
        .map(|(name, partitions)| AddPartitionsToTxnTopic {
            name: (*name).into(),
            partitions: partitions.to_vec(),
            ..AddPartitionsToTxnTopic::default()
        })
        .collect();
    if version < 4 {
        return AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: ids[0].into(),
            v3_and_below_producer_id: 7,
            v3_and_below_producer_epoch: 3,
            v3_and_below_topics: topics,
            ..AddPartitionsToTxnRequest::default()
        };
    }
    let transactions = ids.iter().map(|id| AddPartitionsToTxnTransaction {
        transactional_id: (*id).into(),
        producer_id: 7,
        producer_epoch: 3,
        verify_only: true,
        topics: topics.clone(),
        ..AddPartitionsToTxnTransaction::default()
    });
    AddPartitionsToTxnRequest { transactions: transactions.collect(), ..AddPartitionsToTxnRequest::default() }
}

/// A shard that says the same of every partition.
fn said(part: &Part, code: ErrorCode) -> AddPartitionsToTxnResult {
    let topics = part.partitions.iter().map(|partition| AddPartitionsToTxnTopicResult {
        name: Str::from(&partition.topic),
        results_by_partition: vec![AddPartitionsToTxnPartitionResult {
            partition_index: partition.partition.get(),
            partition_error_code: code.code(),
            ..AddPartitionsToTxnPartitionResult::default()
        }],
        ..AddPartitionsToTxnTopicResult::default()
    });
    AddPartitionsToTxnResult {
        transactional_id: part.transactional_id.clone(),
        topic_results: topics.collect(),
        ..AddPartitionsToTxnResult::default()
    }
}

/// The codes, transaction by transaction.
fn ask(version: i16, ids: &[&str], topics: &[(&str, &[i32])], shard: ErrorCode) -> Vec<Vec<i16>> {
    let fixture = Fixture::with_transactions();
    let response = match plan(request(version, ids, topics), version, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(mut work) => {
            for part in &work.parts {
                assert_eq!(part.shard, PartitionIndex(0));
                assert_eq!(
                    (part.request.producer_id, part.request.producer_epoch),
                    (ProducerId(7), ProducerEpoch(3))
                );
                assert_eq!(part.request.verify_only, version >= 4);
                work.pending.add(part.request.place, said(&part.request, shard));
            }
            work.pending.respond()
        }
    };
    let response = carried(response, version);
    let codes = |topics: &[AddPartitionsToTxnTopicResult]| -> Vec<i16> {
        let partitions = topics.iter().flat_map(|topic| &topic.results_by_partition);
        partitions.map(|partition| partition.partition_error_code).collect()
    };
    if version < 4 {
        return vec![codes(&response.results_by_topic_v3_and_below)];
    }
    response.results_by_transaction.iter().map(|result| codes(&result.topic_results)).collect()
}

#[test]
fn every_version_adds() {
    for version in versions::<AddPartitionsToTxnRequest>() {
        assert_eq!(
            ask(version, &["b"], &[("orders", &[0, 1])], ErrorCode::None),
            [[0, 0]],
            "version {version}"
        );
    }
}

#[test]
fn one_partition_in_the_way_is_enough() {
    let topics: &[(&str, &[i32])] = &[("orders", &[0, 9]), ("missing", &[0])];
    assert_eq!(ask(3, &["b"], topics, ErrorCode::None), [[55, 3, 3]], "OPERATION_NOT_ATTEMPTED");
    assert_eq!(ask(5, &["b"], topics, ErrorCode::None), [[55, 3, 3]]);
    let topics: &[(&str, &[i32])] = &[("orders", &[0]), ("__consumer_offsets", &[0])];
    assert_eq!(
        ask(3, &["b"], topics, ErrorCode::None),
        [[55, 29]],
        "no client adds the cluster's own topics"
    );
    assert_eq!(ask(5, &["b"], topics, ErrorCode::None), [[0, 0]], "brokers do");
}

#[test]
fn transactions_are_answered_one_by_one() {
    let topics: &[(&str, &[i32])] = &[("orders", &[0])];
    let aborted = ErrorCode::TransactionAbortable;
    assert_eq!(ask(5, &["b", "a", "", "b"], topics, aborted), [[120], [16], [42], [120]]);
    assert_eq!(ask(3, &["a"], topics, ErrorCode::None), [[16]]);
}

#[test]
fn old_clients_do_not_know_that_they_are_fenced() {
    for version in versions::<AddPartitionsToTxnRequest>() {
        let code = if version < 2 { 47 } else { 90 };
        assert_eq!(ask(version, &["b"], &[("orders", &[0])], ErrorCode::ProducerFenced), [[code]]);
    }
}

#[test]
fn what_a_leader_asks_is_what_a_coordinator_reads() {
    let fixture = Fixture::with_transactions();
    let part = Part {
        place: 0,
        transactional_id: "b".into(),
        producer_id: ProducerId(7),
        producer_epoch: ProducerEpoch(3),
        verify_only: true,
        partitions: vec![
            TopicPartition::new("compacted", PartitionIndex(0)),
            TopicPartition::new("orders", PartitionIndex(0)),
            TopicPartition::new("orders", PartitionIndex(2)),
        ],
    };
    for version in BROKERS_SINCE..=5 {
        let sent = carried(super::request([&part]), version);
        let Plan::Work(work) = plan(sent, version, &fixture.ctx()) else { panic!("it is led here") };
        assert_eq!(work.parts.len(), 1);
        assert_eq!(work.parts[0].request, part);
    }
    let refused = |code: ErrorCode| {
        results(AddPartitionsToTxnResponse { error_code: code.code(), ..Default::default() }).unwrap_err()
    };
    assert_eq!(refused(ErrorCode::ClusterAuthorizationFailed), ErrorCode::InvalidTxnState);
    assert_eq!(refused(ErrorCode::NotCoordinator), ErrorCode::NotCoordinator);
}
