//! That every schema is read, and that records are shown as Kafka's tool shows them.

use super::decoder::{Decoder, control};
use super::schema::{Kind, Schema, Type};
use super::{Shown, indexes, schemas, segment};
use barnabas_wire::messages::{BrokerRegistrationChangeRecord, MetadataRecord, PartitionRecord};
use std::path::Path;

#[test]
fn every_schema_of_a_record_is_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/messages/schema");
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
    Decoder::Metadata.decode(7, None, Some(&bytes)).1.expect("a payload")
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
fn records_that_cannot_be_read_are_named_and_skipped() {
    let (_, told) = Decoder::Metadata.decode(7, None, Some(&[1, 99, 0]));
    assert_eq!(told.expect("a payload"), "Error at 7, skipping. Unknown metadata id 99");
    let (told, none) = Decoder::Groups.decode(7, Some(&[0, 99]), None);
    assert_eq!((told.as_deref(), none), (Some("Unknown record type 99 at offset 7, skipping."), None));
    let (told, _) = Decoder::Groups.decode(7, Some(&[0, 1, 0, 9]), None);
    assert!(told.expect("a key").starts_with("Error at offset 7, skipping. 9 bytes are expected"));
}

#[test]
fn coordinator_records_are_shown_by_their_key() {
    let key = [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 5];
    let (told, value) = Decoder::Groups.decode(0, Some(&key), None);
    assert_eq!(told.as_deref(), Some(r#"{"type":"1","data":{"group":"g","topic":"t","partition":5}}"#));
    assert_eq!(value.as_deref(), Some("<DELETE>"));
}

#[test]
fn control_records_are_shown_by_their_type() {
    assert_eq!(control(&[0, 0, 0, 1], &[0, 0, 0, 0, 0, 9]), " endTxnMarker: COMMIT coordinatorEpoch: 9");
    assert_eq!(control(&[0, 0, 0, 5], &[0, 0, 0, 1, 0]), r#" KRaftVersion {"version":0,"kRaftVersion":1}"#);
    assert_eq!(control(&[0, 0, 0, 77], &[]), " controlType: UNKNOWN(77)");
}

#[test]
fn missing_file_is_named_whatever_its_name_is() {
    let shown = Shown {
        records: false,
        without_metadata: false,
        contents: None,
        bytes_max: u64::MAX,
        index_entries: true,
        sanity_only: false,
    };
    let refused = [
        segment::dump(Path::new("/nowhere/x.log"), &shown),
        segment::dump(Path::new("/nowhere/x.checkpoint"), &shown),
        indexes::offsets(Path::new("/nowhere/x.index"), &shown),
        indexes::times(Path::new("/nowhere/x.timeindex"), &shown),
        indexes::transactions(Path::new("/nowhere/x.txnindex")),
        indexes::producers(Path::new("/nowhere/x.snapshot")),
    ];
    for refused in refused {
        let why = refused.expect_err("no file").to_string();
        assert!(why.starts_with("/nowhere/x.") && why.contains(": No such file or directory"), "{why}");
    }
}
