//! Every schema is read; records are shown in Kafka's form, and no longer than is allowed.

use super::schema::{Kind, Schema, Type};
use super::{Internal, Unreadable, control, schemas};
use barnabas_wire::messages::{BrokerRegistrationChangeRecord, MetadataRecord, PartitionRecord};
use std::path::Path;

#[test]
fn every_schema_of_a_record_is_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../messages/schema");
    for (folder, list) in [
        ("coordinator/group", schemas::GROUPS),
        ("coordinator/transaction", schemas::TRANSACTIONS),
        ("coordinator/share", schemas::SHARES),
        ("metadata", schemas::METADATA),
        ("consumer", schemas::CONSUMER),
    ] {
        let files = std::fs::read_dir(root.join(folder)).expect(folder);
        assert_eq!(files.count(), list.len(), "{folder}");
    }
}

#[test]
fn every_struct_of_a_schema_is_known() {
    let all = [
        schemas::GROUPS,
        schemas::TRANSACTIONS,
        schemas::SHARES,
        schemas::METADATA,
        schemas::CONSUMER,
        schemas::CONTROL,
    ];
    let schemas: Vec<Schema> = all.into_iter().flat_map(Schema::parse_all).collect();
    assert!(schemas.len() > 70, "{}", schemas.len());
    for schema in &schemas {
        for field in schema.structs.values().flatten() {
            let mut kind = &field.kind;
            while let Type::Array(of) = kind {
                kind = of;
            }
            if let Type::Struct(name) = kind {
                let is_known = schema.structs.get(name).is_some_and(|fields| !fields.is_empty());
                assert!(is_known, "{}: {name}", schema.name);
            }
        }
    }
    let partition = schemas.iter().find(|schema| schema.kind == Kind::Record(3)).expect("PartitionRecord");
    assert_eq!(partition.structs["PartitionRecord"].len(), 13);
}

fn shown(record: MetadataRecord, version: i16) -> String {
    let bytes = record.encode_value(version).expect("it can be written");
    Internal::Metadata.decode(None, Some(&bytes), 4096).1.expect("readable").expect("a value")
}

#[test]
fn metadata_records_are_shown_with_the_fields_of_their_version() {
    let partition = PartitionRecord {
        partition_id: 3,
        replicas: vec![1, 2],
        isr: vec![1],
        leader: 1,
        leader_epoch: 4,
        eligible_leader_replicas: Some(vec![2]),
        ..Default::default()
    };
    assert_eq!(
        shown(partition.into(), 2),
        r#"{"type":"PARTITION_RECORD","version":2,"data":{"partitionId":3,"topicId":"AAAAAAAAAAAAAAAAAAAAAA","replicas":[1,2],"isr":[1],"removingReplicas":[],"addingReplicas":[],"leader":1,"leaderEpoch":4,"partitionEpoch":-1,"directories":[],"eligibleLeaderReplicas":[2]}}"#
    );
    let change =
        BrokerRegistrationChangeRecord { broker_id: 3, broker_epoch: 11, fenced: -1, ..Default::default() };
    assert_eq!(
        shown(change.into(), 1),
        r#"{"type":"BROKER_REGISTRATION_CHANGE_RECORD","version":1,"data":{"brokerId":3,"brokerEpoch":11,"fenced":-1}}"#
    );
}

#[test]
fn control_records_are_shown_by_their_type() {
    assert_eq!(control(&[0, 0, 0, 1], &[0, 0, 0, 0, 0, 9]), " endTxnMarker: COMMIT coordinatorEpoch: 9");
    assert_eq!(control(&[0, 0, 0, 5], &[0, 0, 0, 1, 0]), r#" KRaftVersion {"version":0,"kRaftVersion":1}"#);
    assert_eq!(control(&[0, 0, 0, 77], &[]), " controlType: UNKNOWN(77)");
}

/// A key of an offset commit, and its value in version 3.
fn commit() -> (Vec<u8>, Vec<u8>) {
    let key = [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 5].to_vec();
    let mut value = vec![0, 3];
    value.extend((i64::MAX - 1).to_be_bytes());
    value.extend(7_i32.to_be_bytes());
    value.extend([0, 2, b'm', b'"']);
    value.extend(1_700_000_000_000_i64.to_be_bytes());
    (key, value)
}

#[test]
fn offset_commit_is_shown_with_its_numbers_whole() {
    let (key, value) = commit();
    let (key, value) = Internal::Groups.decode(Some(&key), Some(&value), 4096);
    assert_eq!(
        key.expect("read").as_deref(),
        Some(r#"{"type":"1","data":{"group":"g","topic":"t","partition":5}}"#)
    );
    assert_eq!(
        value.expect("read").as_deref(),
        Some(
            r#"{"version":"3","data":{"offset":9223372036854775806,"leaderEpoch":7,"metadata":"m\"","commitTimestamp":1700000000000}}"#
        )
    );
}

#[test]
fn key_is_shown_where_the_value_is_not() {
    let (key, mut value) = commit();
    value.truncate(9);
    let (key, value) = Internal::Groups.decode(Some(&key), Some(&value), 4096);
    assert!(key.expect("read").is_some());
    assert_eq!(value, Err(Unreadable::Bytes("8 bytes are expected, and 7 are left".to_owned())));
}

#[test]
fn text_that_is_too_long_is_refused() {
    let (key, value) = commit();
    let (key, value) = Internal::Groups.decode(Some(&key), Some(&value), 40);
    assert!(key.is_ok());
    assert_eq!(value, Err(Unreadable::Bytes(crate::TOO_LONG.to_owned())));
}

/// An array that says it has two billion elements, of a type whose elements take bytes: it ends with the bytes.
#[test]
fn hostile_counts_end_with_the_bytes() {
    let generic = |kind: Internal, number: i16| {
        let key = [number.to_be_bytes().to_vec(), vec![0; 64]].concat();
        for version in 0..12_i16 {
            for byte in [0_u8, 1, 0x7f, 0xff] {
                let value = [version.to_be_bytes().to_vec(), vec![byte; 400]].concat();
                let (_, value) = kind.decode(Some(&key), Some(&value), 100_000);
                assert!(
                    value.is_err() || value.is_ok_and(|text| text.is_some_and(|text| text.len() < 200_000))
                );
            }
        }
    };
    (0..24).for_each(|number| generic(Internal::Groups, number));
    generic(Internal::Transactions, 0);
    (0..2).for_each(|number| generic(Internal::Shares, number));
}

#[test]
fn topics_are_known_by_name() {
    assert_eq!(Internal::of_topic("__share_group_state"), Some(Internal::Shares));
    assert_eq!(Internal::of_topic("orders"), None);
}
