//! Every schema is read; records are shown as Kafka's tool shows them; indexes are checked against their segment.

use super::decoder::{Decoder, control};
use super::schema::{Kind, Schema, Type};
use super::{Shown, indexes, schemas, segment};
use barnabas_base::{Offset, TimestampMs};
use barnabas_wire::messages::{BrokerRegistrationChangeRecord, MetadataRecord, PartitionRecord};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
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

const SHOWN: Shown = Shown {
    records: true,
    without_metadata: false,
    contents: None,
    bytes_max: u64::MAX,
    index_entries: true,
    sanity_only: false,
};

/// A batch of two records.
fn batch(base_offset: i64, timestamp: i64) -> Vec<u8> {
    let options = BatchOptions { base_offset: Offset(base_offset), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for _ in 0..2 {
        builder.push(TimestampMs(timestamp), None, Some(b"v"), &[]);
    }
    builder.build().expect("a batch").to_vec()
}

#[test]
fn length_that_no_batch_has_is_an_error_and_a_torn_end_is_not() {
    let directory = std::env::temp_dir().join(format!("barnabas-dump-damage-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("00000000000000000010.log");
    let dump = |length: i32| {
        let mut bytes = [batch(10, 100), batch(12, 200)].concat();
        let at = batch(10, 100).len() + 8;
        bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        std::fs::write(&path, &bytes).expect("a file");
        segment::dump(&path, &SHOWN)
    };
    for damaged in [i32::MIN, -1, 0, 5, 13] {
        let error = dump(damaged).expect_err("damage").to_string();
        let place = format!(
            "found record size {damaged} smaller than minimum record overhead (14) at position {}",
            batch(10, 100).len()
        );
        assert!(error.contains(&place), "{error}");
    }
    // As in Kafka's tool: the bytes are counted in the output.
    assert_eq!(dump(1_000).expect("read").len(), 2, "the gap before offset 10 alone");
    std::fs::remove_dir_all(&directory).expect("removed");
}

#[test]
fn index_entries_are_checked_against_the_segment() {
    let directory = std::env::temp_dir().join(format!("barnabas-dump-log-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let batches = [batch(10, 100), batch(12, 200), batch(15, 300)];
    let position = batches[0].len() as i32;
    let log = file("00000000000000000010.log", &batches.concat());
    let entry = |offset: i32, position: i32| [offset.to_be_bytes(), position.to_be_bytes()].concat();
    let time = |timestamp: i64, offset: i32| [&timestamp.to_be_bytes()[..], &offset.to_be_bytes()].concat();
    let name = log.display().to_string();
    assert_eq!(
        segment::dump(&log, &SHOWN).expect("read"),
        [
            format!("Non-consecutive offsets in {name}"),
            "  -1 is followed by 10".into(),
            "  13 is followed by 15".into()
        ]
    );
    let index = file("00000000000000000010.index", &[entry(3, position), entry(6, 2 * position)].concat());
    assert!(indexes::offsets(&index, &SHOWN).expect("read").is_empty());
    let index =
        file("00000000000000000010.index", &[entry(3, position + 1), entry(5, 2 * position)].concat());
    assert_eq!(
        indexes::offsets(&index, &SHOWN).expect("read")[1..],
        ["  Index offset: 13, log offset: none", "  Index offset: 15, log offset: 16"]
    );
    let index = file("00000000000000000010.timeindex", &[time(100, 1), time(200, 3)].concat());
    assert!(indexes::times(&index, &SHOWN).expect("read").is_empty());
    let index = file("00000000000000000010.timeindex", &[time(101, 1), time(200, 2), time(200, 6)].concat());
    assert_eq!(
        indexes::times(&index, &SHOWN)
            .expect("read")
            .into_iter()
            .filter(|line| !line.contains(" in :"))
            .collect::<Vec<_>>(),
        [
            "  Index timestamp: 101, log timestamp: 100",
            "  Index timestamp: 200, log timestamp: 300",
            "  Index timestamp: 200, Previously indexed timestamp: 200",
            "The following indexed offsets are not found in the log.",
            "Indexed offset: 12, found log offset: 13",
        ]
    );
    std::fs::remove_dir_all(&directory).expect("a directory of its own");
}

#[test]
fn missing_file_is_named_whatever_its_name_is() {
    let refused = [
        segment::dump(Path::new("/nowhere/x.log"), &SHOWN),
        segment::dump(Path::new("/nowhere/x.checkpoint"), &SHOWN),
        indexes::offsets(Path::new("/nowhere/x.index"), &SHOWN),
        indexes::times(Path::new("/nowhere/x.timeindex"), &SHOWN),
        indexes::transactions(Path::new("/nowhere/x.txnindex")),
        indexes::producers(Path::new("/nowhere/x.snapshot")),
    ];
    for refused in refused {
        let why = refused.expect_err("no file").to_string();
        assert!(why.starts_with("/nowhere/x.") && why.contains(": No such file or directory"), "{why}");
    }
}
