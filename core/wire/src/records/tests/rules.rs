//! Rule by rule: what a producer may send, and with which code the rest is refused.

use barnabas_base::{DurationMs, ErrorCode, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use bytes::Bytes;

use super::*;

fn rules() -> Rules {
    Rules { now: TimestampMs(NOW), produce_version: 9, ..Rules::default() }
}

fn refusal(records: &Bytes, rules: &Rules) -> Refusal {
    match validate_produce(records.clone(), rules) {
        Err(refusal) => refusal,
        Ok(_) => panic!("taken, but should be refused"),
    }
}

fn taken(records: &Bytes, rules: &Rules) -> Validated {
    validate_produce(records.clone(), rules).unwrap().unwrap()
}

fn code(records: &Bytes, rules: &Rules) -> ErrorCode {
    refusal(records, rules).code
}

fn plain() -> Bytes {
    batch_of(Codec::None, &[b"one", b"two", b"three"])
}

/// Places in the header, for lies.
const BASE_OFFSET: usize = 0;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;
const BASE_SEQUENCE: usize = 53;
const COUNT: usize = 57;

#[test]
fn a_good_batch_is_taken_whole_and_untouched() {
    for codec in CODECS {
        let batch = batch_of(codec, &[b"one", b"two"]);
        let validated = taken(&batch, &rules());
        assert!(!validated.rebuilt);
        assert_eq!(validated.batch.to_bytes(), batch);
    }
}

#[test]
fn from_version_3_on_there_is_exactly_one_batch_of_format_2() {
    let two = Bytes::from([plain(), plain()].concat());
    let old = down_convert(plain(), 1, barnabas_base::Offset(0)).unwrap();
    for bad in [&Bytes::new(), &two, &old, &plain().slice(..70)] {
        assert_eq!(code(bad, &rules()), ErrorCode::InvalidRecord);
    }
    let old_version = Rules { produce_version: 2, ..rules() };
    assert!(validate_produce(Bytes::new(), &old_version).unwrap().is_none());
    assert_eq!(code(&two, &old_version), ErrorCode::InvalidRecord);
    assert_eq!(taken(&old, &old_version).batch.header().record_count, 3);
    // Bytes after the batch that cannot be one yet are left out, as Kafka does.
    let tail = Bytes::from([&plain()[..], &[0; 16]].concat());
    assert_eq!(taken(&tail, &rules()).batch.to_bytes(), plain());
}

#[test]
fn zstd_needs_version_7() {
    let batch = batch_of(Codec::Zstd, &[b"z"]);
    assert_eq!(code(&batch, &Rules { produce_version: 6, ..rules() }), ErrorCode::UnsupportedCompressionType);
    taken(&batch, &Rules { produce_version: 7, ..rules() });
    // The topic may still want zstd of what an old client sends.
    let zstd = Some(Compression::of(Codec::Zstd));
    let made = taken(&plain(), &Rules { produce_version: 3, compression: zstd, ..rules() });
    assert_eq!(made.batch.header().attributes.codec(), Ok(Codec::Zstd));
}

#[test]
fn damage_is_corrupt_message() {
    let mut flipped = plain().to_vec();
    flipped[70] ^= 1;
    assert_eq!(code(&flipped.into(), &rules()), ErrorCode::CorruptMessage);
    assert_eq!(code(&patched(&plain(), 16, &[3]), &rules()), ErrorCode::CorruptMessage);
    assert_eq!(code(&patched(&plain(), 8, &10i32.to_be_bytes()), &rules()), ErrorCode::CorruptMessage);
    let old = Rules { produce_version: 2, ..rules() };
    let mut message = down_convert(plain(), 1, barnabas_base::Offset(0)).unwrap().to_vec();
    message[30] ^= 1;
    assert_eq!(code(&message.into(), &old), ErrorCode::CorruptMessage);
}

#[test]
fn the_header_must_agree_with_itself() {
    let lie = |at: usize, bytes: &[u8]| code(&patched(&plain(), at, bytes), &rules());
    assert_eq!(lie(BASE_OFFSET, &5i64.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(LAST_OFFSET_DELTA, &(-1i32).to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(LAST_OFFSET_DELTA, &3i32.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(LAST_OFFSET_DELTA, &i32::MAX.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(COUNT, &0i32.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(COUNT, &i32::MAX.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(ATTRIBUTES, &0x20i16.to_be_bytes()), ErrorCode::InvalidRecord);
    assert_eq!(lie(ATTRIBUTES, &0x06i16.to_be_bytes()), ErrorCode::InvalidRecord);
}

#[test]
fn a_producer_needs_a_sequence() {
    let options = BatchOptions {
        producer_id: ProducerId(9),
        producer_epoch: ProducerEpoch(0),
        ..BatchOptions::default()
    };
    let batch = batch_with(BatchOptions { base_sequence: Sequence(0), ..options }, &[b"one"]);
    taken(&batch, &rules());
    let batch = patched(&batch, BASE_SEQUENCE, &(-1i32).to_be_bytes());
    assert_eq!(code(&batch, &rules()), ErrorCode::InvalidRecord);
}

#[test]
fn sizes_are_limited_before_and_after() {
    let batch = plain();
    let at = |message_bytes_max| Rules { message_bytes_max, ..rules() };
    taken(&batch, &at(batch.len()));
    assert_eq!(code(&batch, &at(batch.len() - 1)), ErrorCode::MessageTooLarge);
    // Inflated for a topic that wants no codec, it no longer fits.
    let deflated = batch_of(Codec::Gzip, &[&[b'x'; 10_000]]);
    let rules = Rules { compression: Some(Compression::NONE), ..at(1000) };
    assert_eq!(code(&deflated, &rules), ErrorCode::MessageTooLarge);
    let rules = Rules { segment_bytes: batch.len() - 1, ..at(1000) };
    assert_eq!(code(&batch, &rules), ErrorCode::RecordListTooLarge);
    // Size comes before the CRC, the CRC before what the header says.
    let mut damaged = batch.to_vec();
    damaged[70] ^= 1;
    assert_eq!(code(&damaged.clone().into(), &at(10)), ErrorCode::MessageTooLarge);
    damaged[COUNT] = 1;
    assert_eq!(code(&damaged.into(), &at(1000)), ErrorCode::CorruptMessage);
}

#[test]
fn the_topics_codec_is_applied() {
    for source in CODECS {
        for target in CODECS {
            let values: [&[u8]; 3] = [b"one", b"", &[b'x'; 1000]];
            let batch = batch_of(source, &values);
            let rules = Rules { compression: Some(Compression::of(target)), ..rules() };
            let validated = taken(&batch, &rules);
            assert_eq!(validated.rebuilt, source != target);
            assert_eq!(validated.batch.header().attributes.codec(), Ok(target));
            let bytes = validated.batch.to_bytes();
            check_crc(&bytes).unwrap();
            assert_eq!(values_of(&bytes), values);
        }
    }
}

#[test]
fn recompression_keeps_the_producers_words() {
    let options = BatchOptions {
        producer_id: ProducerId(9),
        producer_epoch: ProducerEpoch(3),
        base_sequence: Sequence(17),
        transactional: true,
        ..BatchOptions::default()
    };
    let batch = batch_with(options, &[b"one", b"two"]);
    let validated = taken(&batch, &Rules { compression: Some(Compression::of(Codec::Snappy)), ..rules() });
    let header = validated.batch.header();
    assert_eq!((header.producer_id, header.producer_epoch), (ProducerId(9), ProducerEpoch(3)));
    assert_eq!((header.base_sequence, header.last_sequence()), (Sequence(17), Sequence(18)));
    assert!(header.attributes.is_transactional());
}

#[test]
fn a_compacted_topic_names_the_records_without_keys() {
    for codec in CODECS {
        let options = BatchOptions { compression: Compression::of(codec), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for key in [Some(&b"k"[..]), None, Some(b""), None] {
            builder.push(TimestampMs(NOW), key, Some(b"value"), &[]);
        }
        let batch = builder.build().unwrap();
        taken(&batch, &rules());
        let refusal = refusal(&batch, &Rules { is_compacted: true, ..rules() });
        assert_eq!(refusal.code, ErrorCode::InvalidRecord);
        let named: Vec<i32> = refusal.record_errors.iter().map(|error| error.index).collect();
        assert_eq!(named, [1, 3]);
    }
}

#[test]
fn timestamps_have_limits_on_both_sides() {
    let dated = |dates: &[i64]| {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for &date in dates {
            builder.push(TimestampMs(date), Some(b"k"), None, &[]);
        }
        builder.build().unwrap()
    };
    let limits =
        Rules { timestamp_before_max: DurationMs(100), timestamp_after_max: DurationMs(50), ..rules() };
    taken(&dated(&[NOW - 100, NOW + 50, -1]), &limits);
    let late = refusal(&dated(&[NOW, NOW + 51, NOW - 101]), &limits);
    assert_eq!(late.code, ErrorCode::InvalidTimestamp);
    assert_eq!(late.message, "One or more records have been rejected due to invalid timestamp");
    assert_eq!(late.record_errors.iter().map(|error| error.index).collect::<Vec<_>>(), [1, 2]);
    // By default only the future is limited, by an hour.
    taken(&dated(&[0, NOW + 3_600_000]), &rules());
    assert_eq!(code(&dated(&[NOW + 3_600_001]), &rules()), ErrorCode::InvalidTimestamp);
    // A header that claims more than its records hold is put right.
    let lying = patched(&dated(&[NOW, NOW + 7]), MAX_TIMESTAMP, &i64::MAX.to_be_bytes());
    let validated = taken(&lying, &rules());
    assert_eq!(validated.batch.header().max_timestamp, TimestampMs(NOW + 7));
    check_crc(&validated.batch.to_bytes()).unwrap();
}

#[test]
fn log_append_time_is_the_brokers_alone() {
    let append = Rules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    let validated = taken(&plain(), &append);
    let header = *validated.batch.header();
    assert_eq!(header.max_timestamp, TimestampMs(NOW));
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    check_crc(&validated.batch.to_bytes()).unwrap();
    // Claimed by a producer: refused for every record under LogAppendTime, and for undated ones under CreateTime.
    let claimed = patched(&plain(), ATTRIBUTES, &0x08i16.to_be_bytes());
    let refused = refusal(&claimed, &append);
    assert_eq!((refused.code, refused.record_errors.len()), (ErrorCode::InvalidTimestamp, 3));
    let undated = patched(&claimed, MAX_TIMESTAMP, &(-1i64).to_be_bytes());
    assert_eq!(code(&undated, &rules()), ErrorCode::InvalidTimestamp);
    let validated = taken(&claimed, &rules());
    assert_eq!(validated.batch.header().attributes.timestamp_type(), TimestampType::CreateTime);
}

#[test]
fn full_validation_sees_what_the_header_hides() {
    let full = Rules { validation: RecordValidation::Full, ..rules() };
    taken(&plain(), &full);
    // Three compressed records, said to be two by count and last offset alike.
    let three = batch_of(Codec::Lz4, &[b"one", b"two", b"three"]);
    let lying = patched(&three, COUNT, &2i32.to_be_bytes());
    let lying = patched(&lying, LAST_OFFSET_DELTA, &1i32.to_be_bytes());
    taken(&lying, &rules());
    assert_eq!(code(&lying, &full), ErrorCode::InvalidRecord);
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::of(Codec::Lz4),
        ..BatchOptions::default()
    });
    builder.push_at(3, TimestampMs(NOW), None, Some(b"a"), &[]);
    builder.push_at(9, TimestampMs(NOW), None, Some(b"b"), &[]);
    let gaps = patched(&builder.build().unwrap(), LAST_OFFSET_DELTA, &1i32.to_be_bytes());
    let mended = taken(&gaps, &full);
    assert!(mended.rebuilt);
    let records = Batch::new(mended.batch.to_bytes()).unwrap().records().unwrap();
    let deltas: Vec<i32> = records.iter().map(|record| record.unwrap().offset_delta).collect();
    assert_eq!(deltas, [0, 1]);
    // A stream that its codec refuses.
    let noise = patched(&batch_of(Codec::Zstd, &[b"one"]), HEADER_BYTES, &[0; 4]);
    taken(&noise, &rules());
    assert_eq!(code(&noise, &full), ErrorCode::InvalidRecord);
}

#[test]
fn coordinators_may_write_what_clients_may_not() {
    let ours = Rules {
        origin: BatchOrigin::Coordinator,
        is_compacted: true,
        compression: Some(Compression::of(Codec::Gzip)),
        ..rules()
    };
    let marker =
        control_batch(BatchOptions::default(), TimestampMs(NOW), ControlType::Commit, &[0; 6]).unwrap();
    let validated = taken(&marker, &ours);
    assert!(!validated.rebuilt, "control records are not compressed");
    assert_eq!(code(&marker, &rules()), ErrorCode::InvalidRecord);
    // A tombstone without a value is as good as any record.
    assert!(taken(&plain(), &ours).rebuilt);
}

#[test]
fn old_formats_are_judged_like_new_ones() {
    let old = Rules { produce_version: 2, ..rules() };
    for codec in &CODECS[..4] {
        for magic in 0..=1 {
            let set =
                down_convert(batch_of(*codec, &[b"one", b"two"]), magic, barnabas_base::Offset(0)).unwrap();
            let validated = taken(&set, &old);
            assert_eq!(values_of(&validated.batch.to_bytes()), [b"one", b"two"]);
            let dated = if magic == 0 { -1 } else { NOW + 1 };
            assert_eq!(validated.batch.header().max_timestamp, TimestampMs(dated));
            let late = Rules { now: TimestampMs(0), ..old };
            if magic == 0 {
                taken(&set, &late);
            } else {
                assert_eq!(code(&set, &late), ErrorCode::InvalidTimestamp);
            }
        }
    }
    // Two compressed sets, or a set and a message of another magic.
    let set = down_convert(batch_of(Codec::Gzip, &[b"one"]), 1, barnabas_base::Offset(0)).unwrap();
    assert_eq!(code(&[set.clone(), set].concat().into(), &old), ErrorCode::InvalidRecord);
    let zero = down_convert(plain(), 0, barnabas_base::Offset(0)).unwrap();
    let one = down_convert(plain(), 1, barnabas_base::Offset(0)).unwrap();
    assert_eq!(code(&[zero, one.clone()].concat().into(), &old), ErrorCode::InvalidRecord);
    assert_eq!(code(&[one, plain()].concat().into(), &old), ErrorCode::InvalidRecord);
}

#[test]
fn a_refusal_names_a_bounded_number_of_records() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..5000 {
        builder.push(TimestampMs(NOW), None, None, &[]);
    }
    let refusal = refusal(&builder.build().unwrap(), &Rules { is_compacted: true, ..rules() });
    assert_eq!(refusal.record_errors.len(), RECORD_ERRORS_MAX);
    assert!(refusal.message.starts_with("5000 "), "{}", refusal.message);
}

/// A batch whose header and checksum say `count` records over these bytes.
fn lying(codec: Codec, count: i32, body: &[u8]) -> Bytes {
    let mut batch = batch_of(codec, &[b"one"]).slice(..61).to_vec();
    batch.extend_from_slice(body);
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[LAST_OFFSET_DELTA..LAST_OFFSET_DELTA + 4].copy_from_slice(&(count - 1).to_be_bytes());
    batch[COUNT..COUNT + 4].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(batch)
}

#[test]
fn records_that_are_not_what_the_header_counts_are_refused() {
    let one = batch_of(Codec::None, &[b"one"]).slice(61..).to_vec();
    assert!(validate_produce(lying(Codec::None, 1, &one), &rules()).is_ok());
    let two = [one.clone(), one.clone()].concat();
    let past_the_end = [&[one[0] + 2], &one[1..]].concat();
    let lies = [(2, &one), (1, &two), (1, &past_the_end), (1, &vec![2, 0]), (1, &vec![1]), (i32::MAX, &one)];
    for (count, body) in lies {
        assert_eq!(code(&lying(Codec::None, count, body), &rules()), ErrorCode::InvalidRecord, "{count}");
    }
}

#[test]
fn compressed_bytes_do_not_hold_more_records_than_could_come_out() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        assert_eq!(code(&lying(codec, i32::MAX, &[7; 50]), &rules()), ErrorCode::InvalidRecord);
    }
}

#[test]
fn structure_refuses_what_no_consumer_could_read() {
    let structure = Rules { validation: RecordValidation::Structure, ..rules() };
    let one = batch_of(Codec::None, &[b"one"]).slice(61..).to_vec();
    for codec in CODECS {
        let values: [&[u8]; 3] = [b"one", b"two", b"three"];
        let validated = taken(&batch_of(codec, &values), &structure);
        assert!(!validated.rebuilt, "{codec}: a batch in order stays as it came");
        // Rubbish as records, under a right checksum: as compressed bytes, and inside of a stream that is whole.
        let rubbish = lying(codec, 1, &[0xa5; 40]);
        assert_eq!(code(&rubbish, &structure), ErrorCode::InvalidRecord, "{codec}");
        let deflated = |body: &[u8]| {
            let mut out = Vec::new();
            Compression::of(codec).deflate(body, &mut out).unwrap();
            out
        };
        // The length is right and the content is not: the header count is missing, or a key is longer than
        // its record.
        for body in [&[12, 0, 0, 0, 1, 1, 2], &[12, 0, 0, 0, 40, 1, 0]] {
            let batch = lying(codec, 1, &deflated(body));
            taken(&batch, &rules());
            assert_eq!(code(&batch, &structure), ErrorCode::InvalidRecord, "{codec} {body:?}");
        }
        let two = lying(codec, 2, &deflated(&one));
        assert_eq!(code(&two, &structure), ErrorCode::InvalidRecord, "{codec}");
    }
}

#[test]
fn structure_mends_offsets_and_believes_timestamps() {
    let structure = Rules { validation: RecordValidation::Structure, ..rules() };
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::of(Codec::Zstd),
        ..BatchOptions::default()
    });
    builder.push_at(3, TimestampMs(NOW), None, Some(b"a"), &[]);
    builder.push_at(9, TimestampMs(NOW), None, Some(b"b"), &[]);
    let gaps = patched(&builder.build().unwrap(), LAST_OFFSET_DELTA, &1i32.to_be_bytes());
    assert!(taken(&gaps, &structure).rebuilt);
    let dated = patched(&batch_of(Codec::Lz4, &[b"one"]), MAX_TIMESTAMP, &(NOW + 5).to_be_bytes());
    assert_eq!(taken(&dated, &structure).batch.header().max_timestamp, TimestampMs(NOW + 5));
    let full = Rules { validation: RecordValidation::Full, ..rules() };
    assert_eq!(taken(&dated, &full).batch.header().max_timestamp, TimestampMs(NOW));
}
