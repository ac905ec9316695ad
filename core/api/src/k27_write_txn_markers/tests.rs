use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};

fn marker(producer_id: i64, topics: &[(&str, &[i32])]) -> WritableTxnMarker {
    let topics = topics.iter().map(|(name, partitions)| WritableTxnMarkerTopic {
        name: (*name).into(),
        partition_indexes: partitions.to_vec(),
        ..WritableTxnMarkerTopic::default()
    });
    WritableTxnMarker {
        producer_id,
        producer_epoch: 3,
        transaction_result: true,
        topics: topics.collect(),
        coordinator_epoch: 9,
        transaction_version: 2,
        ..WritableTxnMarker::default()
    }
}

/// Producer, topic, partition, code.
fn ask(
    markers: Vec<WritableTxnMarker>,
    version: i16,
    of: impl Fn(&Part) -> ErrorCode,
) -> Vec<(i64, String, i32, i16)> {
    let fixture = Fixture::with_transactions();
    let request = WriteTxnMarkersRequest { markers, ..WriteTxnMarkersRequest::default() };
    let response = match plan(&request, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(Work { parts, mut pending }) => {
            for part in &parts {
                assert!(part.commit);
                assert_eq!(
                    (part.producer_epoch, part.coordinator_epoch),
                    (ProducerEpoch(3), CoordinatorEpoch(9))
                );
                assert_eq!(part.transaction_version, 2);
                pending.add(part, of(part));
            }
            pending.respond()
        }
    };
    let mut said = Vec::new();
    for marker in carried(response, version).markers {
        for topic in marker.topics {
            let partitions = topic.partitions.iter();
            said.extend(partitions.map(|part| {
                (marker.producer_id, topic.name.to_string(), part.partition_index, part.error_code)
            }));
        }
    }
    said
}

#[test]
fn markers_go_to_the_partitions_that_are_led_here() {
    for version in versions::<WriteTxnMarkersResponse>() {
        let markers =
            vec![marker(7, &[("orders", &[0, 1, 9]), ("missing", &[0])]), marker(8, &[("orders", &[0])])];
        let said = ask(markers, version, |_| ErrorCode::None);
        let expected = [
            (7, "missing", 0, 3),
            (7, "orders", 0, 0),
            (7, "orders", 1, 6),
            (7, "orders", 9, 3),
            (8, "orders", 0, 0),
        ];
        assert_eq!(
            said,
            expected.map(|(producer, topic, index, code)| (producer, topic.to_owned(), index, code))
        );
    }
}

#[test]
fn a_group_coordinator_that_is_not_ready_is_no_leader() {
    let of = |part: &Part| {
        assert!(part.is_of_groups());
        ErrorCode::CoordinatorLoadInProgress
    };
    let said = ask(vec![marker(7, &[("__consumer_offsets", &[0])])], 2, of);
    assert_eq!(said, [(7, "__consumer_offsets".to_owned(), 0, 6)]);
    let said = ask(vec![marker(7, &[("orders", &[0])])], 2, |part| {
        assert!(!part.is_of_groups());
        ErrorCode::TransactionCoordinatorFenced
    });
    assert_eq!(said, [(7, "orders".to_owned(), 0, 52)]);
}

#[test]
fn nothing_to_do_is_answered() {
    assert_eq!(ask(Vec::new(), 2, |_| ErrorCode::None), []);
    assert_eq!(
        ask(vec![marker(7, &[("missing", &[0])])], 2, |_| ErrorCode::None),
        [(7, "missing".to_owned(), 0, 3)]
    );
}

#[test]
fn what_a_coordinator_asks_is_what_a_broker_reads() {
    let partitions = |list: &[(&str, i32)]| -> Vec<TopicPartition> {
        list.iter().map(|&(topic, index)| TopicPartition::new(topic, PartitionIndex(index))).collect()
    };
    let ask = |producer: i64, list: &[(&str, i32)]| Ask {
        producer_id: ProducerId(producer),
        producer_epoch: ProducerEpoch(3),
        commit: true,
        coordinator_epoch: CoordinatorEpoch(9),
        transaction_version: 2,
        partitions: partitions(list),
    };
    let asks = [ask(7, &[("a", 0), ("a", 4), ("b", 1)]), ask(8, &[("b", 1)])];
    let sent = request(&asks, 2);
    assert_eq!(sent.markers, [marker(7, &[("a", &[0, 4]), ("b", &[1])]), marker(8, &[("b", &[1])])]);
    for version in versions::<WriteTxnMarkersRequest>() {
        let carried = carried(request(&asks, version), version);
        assert_eq!(carried.markers[0].transaction_version, if version >= 2 { 2 } else { 0 });
    }
    let mut pending = Pending::default();
    pending.set(7, Text::from("a"), 4, ErrorCode::None);
    pending.set(8, Text::from("b"), 1, ErrorCode::NotLeaderOrFollower);
    let said = outcomes(pending.respond());
    let of = |producer, topic, index| {
        said.get(&(ProducerId(producer), TopicPartition::new(topic, PartitionIndex(index)))).copied()
    };
    assert_eq!(of(7, "a", 4), Some(ErrorCode::None));
    assert_eq!(of(8, "b", 1), Some(ErrorCode::NotLeaderOrFollower));
    assert_eq!(of(7, "b", 1), None, "nothing was said of it");
}

#[test]
fn nobodys_markers_are_not_written() {
    let no_epoch = WritableTxnMarker { producer_epoch: -1, ..marker(5, &[("orders", &[0])]) };
    let markers = vec![marker(-1, &[("orders", &[0, 9])]), no_epoch, marker(-7, &[("orders", &[0])])];
    let said = ask(markers, 1, |_| ErrorCode::None);
    let failed = ErrorCode::UnknownServerError.code();
    let expected = [(-7, 0, failed), (-1, 0, failed), (-1, 9, 3), (5, 0, failed)];
    assert_eq!(said, expected.map(|(id, partition, code)| (id, "orders".to_owned(), partition, code)));
}
