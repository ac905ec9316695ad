//! Apache Kafka's bytes: read as its classes read them, written as its classes write them.
//!
//! The cases come from `lab/compat/golden/records/RecordVectors.java`, which says how they are written down.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use super::*;

const VECTORS: &str = include_str!("../../../../../lab/compat/golden/records/vectors.txt");

/// One case: its name, Kafka's bytes, and a line for each record that Kafka reads out of them.
struct Case {
    name: &'static str,
    bytes: Bytes,
    records: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in VECTORS.lines() {
        if let Some(case) = line.strip_prefix("case ") {
            let (name, hex) = case.split_once(' ').unwrap();
            cases.push(Case { name, bytes: unhex(hex), records: Vec::new() });
        } else {
            cases.last_mut().unwrap().records.push(line.to_owned());
        }
    }
    assert!(cases.len() > 40, "the vectors are there");
    cases
}

pub(super) fn unhex(hex: &str) -> Bytes {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect::<Vec<u8>>().into()
}

fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

fn field(bytes: Option<&[u8]>) -> String {
    bytes.map_or("-".to_owned(), |bytes| format!("{}/{:08x}", bytes.len(), crc32(bytes)))
}

fn line(
    offset: Offset,
    time: TimestampMs,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &str,
) -> String {
    format!("record {offset} {} {} {} {headers}", time.0, field(key), field(value))
}

pub(super) fn batch_lines(batch: &Batch) -> Vec<String> {
    batch.check_crc().unwrap();
    let Ok(records) = batch.records() else { return vec!["unreadable".to_owned()] };
    let show = |record: Result<RecordRef<'_>, BatchError>| {
        let Ok(record) = record else { return "unreadable".to_owned() };
        let headers: Vec<String> = record
            .headers()
            .map(|(key, value)| format!("{}={}", std::str::from_utf8(key).unwrap(), field(value)))
            .collect();
        line(record.offset, record.timestamp, record.key, record.value, &headers.join(","))
    };
    records.iter().map(show).collect()
}

/// Everything in `bytes`, of any format, as the lines of a case.
fn lines(bytes: &Bytes) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in entries(bytes.clone()) {
        match entry.unwrap() {
            Entry::Batch(batch) => lines.extend(batch_lines(&batch)),
            Entry::Message(bytes) => {
                let outer = Message::parse(bytes).unwrap();
                outer.check_crc().unwrap();
                for message in outer.open().unwrap() {
                    let message = message.unwrap();
                    message.check_crc().unwrap();
                    let (key, value) = (message.key.as_deref(), message.value.as_deref());
                    lines.push(line(message.offset, message.timestamp, key, value, ""));
                }
            }
        }
    }
    lines
}

#[test]
fn every_format_and_codec_reads_as_kafka_reads_it() {
    for case in cases() {
        assert_eq!(lines(&case.bytes), case.records, "{}", case.name);
    }
}

#[test]
fn a_header_is_written_as_it_was_read() {
    for case in cases().iter().filter(|case| case.name.starts_with("v2")) {
        let header = BatchHeader::parse(&case.bytes).unwrap();
        assert_eq!(header.to_raw(), case.bytes[..HEADER_BYTES], "{}", case.name);
        assert_eq!(header.size_bytes(), case.bytes.len());
    }
}

/// The same records through our builder.
fn built_again(case: &Case) -> Bytes {
    let batch = Batch::new(case.bytes.clone()).unwrap();
    let header = *batch.header();
    let append = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    let mut builder = BatchBuilder::new(BatchOptions {
        base_offset: header.base_offset,
        leader_epoch: header.partition_leader_epoch,
        compression: Compression::of(header.attributes.codec().unwrap()),
        append_time: append.then_some(header.max_timestamp),
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        transactional: header.attributes.is_transactional(),
        control: header.attributes.is_control(),
    });
    let records = batch.records().unwrap();
    for record in &records {
        let record = record.unwrap();
        let headers: Vec<HeaderRef<'_>> = record.headers().collect();
        // Under LogAppendTime the records keep the producer's dates as deltas.
        let date = TimestampMs(header.base_timestamp.0 + record.timestamp_delta);
        builder.push_at(record.offset_delta, date, record.key, record.value, &headers);
    }
    builder.build().unwrap()
}

#[test]
fn what_is_not_compressed_is_built_byte_for_byte_as_kafka_builds_it() {
    let plain = |case: &Case| {
        case.name.starts_with("v2") && !CODECS[1..].iter().any(|c| case.name.contains(c.name()))
    };
    let plain: Vec<Case> = cases().into_iter().filter(plain).collect();
    assert_eq!(plain.len(), 7);
    for case in plain {
        assert_eq!(built_again(&case), case.bytes, "{}", case.name);
    }
}

#[test]
fn what_is_compressed_is_built_to_hold_the_same() {
    for case in cases().iter().filter(|case| case.name.starts_with("v2")) {
        assert_eq!(lines(&built_again(case)), case.records, "{}", case.name);
    }
}

#[test]
fn old_consumers_get_what_kafka_gave_them() {
    for codec in ["none", "gzip", "lz4"] {
        let stored = case(&format!("v2-{codec}-create"));
        for magic in 0..=1i8 {
            let kafka = case(&format!("down-v{magic}-{codec}"));
            let ours = down_convert(stored.bytes.clone(), magic, Offset(41)).unwrap();
            assert_eq!(lines(&ours), kafka.records, "{}", kafka.name);
            if codec == "none" {
                assert_eq!(ours, kafka.bytes, "{}", kafka.name);
            }
        }
    }
    for control in ["v2-commit", "v2-abort", "v2-leader-change"] {
        assert!(down_convert(case(control).bytes, 1, Offset(0)).unwrap().is_empty());
    }
    let zstd = down_convert(case("v2-zstd-create").bytes, 1, Offset(0));
    assert_eq!(zstd, Err(DownConvertError::Zstd { magic: 1 }));
}

#[test]
fn old_producers_messages_become_one_batch_of_the_same_records() {
    for case in cases().iter().filter(|case| case.name.starts_with("v0") || case.name.starts_with("v1")) {
        let rules = Rules { produce_version: 2, now: TimestampMs(NOW), ..Rules::default() };
        let judged = validate_produce(case.bytes.clone(), &rules);
        let validated = judged.unwrap().unwrap();
        assert!(validated.rebuilt);
        let bytes = validated.batch.to_bytes();
        check_crc(&bytes).unwrap();
        // Numbered from 0 now, and otherwise the same.
        let renumbered = |line: &String, index: usize| {
            let rest = line.splitn(3, ' ').nth(2).unwrap();
            format!("record {index} {rest}")
        };
        let expected: Vec<String> =
            case.records.iter().enumerate().map(|(index, line)| renumbered(line, index)).collect();
        assert_eq!(lines(&bytes), expected, "{}", case.name);
        let codec = validated.batch.header().attributes.codec().unwrap();
        assert!(case.name.contains(codec.name()), "{} keeps its codec", case.name);
    }
}

#[test]
fn markers_are_read() {
    let marker = |name: &str| EndTxnMarker::of_batch(&Batch::new(case(name).bytes).unwrap()).unwrap();
    let epoch = barnabas_base::CoordinatorEpoch(13);
    assert_eq!(marker("v2-commit"), Some(EndTxnMarker { commit: true, coordinator_epoch: epoch }));
    assert_eq!(marker("v2-abort"), Some(EndTxnMarker { commit: false, coordinator_epoch: epoch }));
    assert_eq!(marker("v2-leader-change"), None);
    let batch = Batch::new(case("v2-abort").bytes).unwrap();
    let header = batch.header();
    let options = BatchOptions {
        base_offset: header.base_offset,
        leader_epoch: header.partition_leader_epoch,
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        transactional: true,
        ..BatchOptions::default()
    };
    let marker = EndTxnMarker { commit: false, coordinator_epoch: epoch };
    let ours = control_batch(options, TimestampMs(NOW), marker.control_type(), &marker.value()).unwrap();
    assert_eq!(ours, case("v2-abort").bytes);
}

/// Prints our batches for `RecordVectors.java read`:
/// `cargo test -p barnabas-wire ours_for_java -- --ignored --nocapture`.
#[test]
#[ignore = "prints; run by hand with the Java program"]
fn ours_for_java() {
    let hex = |bytes: &Bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for case in cases().iter().filter(|case| case.name.starts_with("v2")) {
        println!("case {} {}", case.name, hex(&built_again(case)));
    }
    for codec in ["gzip", "snappy", "lz4"] {
        for magic in 0..=1i8 {
            let large = case(&format!("v2-{codec}-large"));
            let down = down_convert(large.bytes, magic, Offset(0)).unwrap();
            println!("case down-v{magic}-{codec} {}", hex(&down));
        }
    }
}
