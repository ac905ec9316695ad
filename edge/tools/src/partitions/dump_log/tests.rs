//! Records are shown as Kafka's tool shows them; indexes are checked against their segment.

use super::decoder::Decoder;
use super::{Shown, indexes, segment};
use barnabas_base::{Offset, TimestampMs};
use barnabas_decoders::Internal;
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::path::Path;

#[test]
fn records_that_cannot_be_read_are_named_and_skipped() {
    let (_, told) = Decoder::Of(Internal::Metadata).decode(7, None, Some(&[1, 99, 0]));
    assert_eq!(told.expect("a payload"), "Error at 7, skipping. Unknown metadata id 99");
    let (told, none) = Decoder::Of(Internal::Groups).decode(7, Some(&[0, 99]), None);
    assert_eq!((told.as_deref(), none), (Some("Unknown record type 99 at offset 7, skipping."), None));
    let (told, _) = Decoder::Of(Internal::Groups).decode(7, Some(&[0, 1, 0, 9]), None);
    assert!(told.expect("a key").starts_with("Error at offset 7, skipping. 9 bytes are expected"));
}

#[test]
fn coordinator_records_are_shown_by_their_key() {
    let key = [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 5];
    let (told, value) = Decoder::Of(Internal::Groups).decode(0, Some(&key), None);
    assert_eq!(told.as_deref(), Some(r#"{"type":"1","data":{"group":"g","topic":"t","partition":5}}"#));
    assert_eq!(value.as_deref(), Some("<DELETE>"));
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
