//! Message sets that Kafka's builder does not make, but old clients sent.

use barnabas_base::{ErrorCode, Offset, TimestampMs};
use bytes::Bytes;

use super::*;
use crate::records::old_formats::message_set::write_message;

const LOG_APPEND_TIME: i8 = 0x08;

/// Messages of format 1 with these offsets, dated [`NOW`] and on.
fn run(offsets: &[i64]) -> Vec<u8> {
    let mut run = Vec::new();
    for (index, offset) in offsets.iter().enumerate() {
        let date = TimestampMs(NOW + index as i64);
        write_message(&mut run, 1, Offset(*offset), 0, date, Some(b"k"), Some(b"value"));
    }
    run
}

/// `inner` as one gzip set that bears `offset`, dated `NOW + 500`.
fn wrapped(inner: &[u8], offset: i64, attributes: i8) -> Bytes {
    let mut value = Vec::new();
    Compression::of(Codec::Gzip).deflate_for_magic(inner, 1, &mut value).unwrap();
    let mut set = Vec::new();
    let attributes = attributes | Codec::Gzip.id() as i8;
    write_message(&mut set, 1, Offset(offset), attributes, TimestampMs(NOW + 500), None, Some(&value));
    Bytes::from(set)
}

fn opened(set: &Bytes) -> Result<Vec<(i64, i64)>, BatchError> {
    let messages = Message::parse(set.clone()).and_then(|message| message.open())?;
    messages.map(|message| message.map(|message| (message.offset.get(), message.timestamp.0))).collect()
}

fn rules() -> Rules {
    Rules { produce_version: 2, now: TimestampMs(NOW), ..Rules::default() }
}

fn code(set: &Bytes) -> ErrorCode {
    validate_produce(set.clone(), &rules()).map(drop).unwrap_err().code
}

#[test]
fn inner_offsets_count_from_the_wrappers() {
    let dates = |first: i64| vec![(first, NOW), (first + 1, NOW + 1)];
    assert_eq!(opened(&wrapped(&run(&[0, 1]), 41, 0)), Ok(dates(40)));
    // Some librdkafka versions leave the wrapper's at 0.
    assert_eq!(opened(&wrapped(&run(&[0, 1]), 0, 0)), Ok(dates(0)));
    assert_eq!(opened(&wrapped(&run(&[7, 8]), 0, 0)), Ok(dates(7)));
    assert!(opened(&wrapped(&run(&[7, 8]), 3, 0)).is_err());
    assert_eq!(code(&wrapped(&run(&[7, 8]), 3, 0)), ErrorCode::InvalidRecord);
}

#[test]
fn a_wrapper_with_the_brokers_clock_dates_its_messages() {
    let set = wrapped(&run(&[0, 1]), 1, LOG_APPEND_TIME);
    assert_eq!(opened(&set), Ok(vec![(0, NOW + 500), (1, NOW + 500)]));
}

#[test]
fn damage_inside_a_set_is_damage() {
    let mut inner = run(&[0, 1]);
    *inner.last_mut().unwrap() ^= 1;
    assert_eq!(code(&wrapped(&inner, 1, 0)), ErrorCode::CorruptMessage);
    // A size below the smallest message.
    let mut inner = run(&[0]);
    inner[8..12].copy_from_slice(&13i32.to_be_bytes());
    assert_eq!(code(&wrapped(&inner, 0, 0)), ErrorCode::CorruptMessage);
}

#[test]
fn sets_in_sets_and_sets_of_nothing_are_refused() {
    let set = wrapped(&run(&[0]), 0, 0);
    assert_eq!(code(&wrapped(&set, 0, 0)), ErrorCode::InvalidRecord);
    assert_eq!(code(&wrapped(&[], 0, 0)), ErrorCode::InvalidRecord);
    let mut without_value = Vec::new();
    let gzip = Codec::Gzip.id() as i8;
    write_message(&mut without_value, 1, Offset(0), gzip, TimestampMs(NOW), None, None);
    assert_eq!(code(&without_value.into()), ErrorCode::InvalidRecord);
    // The old formats do not know zstd.
    let mut zstd = Vec::new();
    write_message(&mut zstd, 1, Offset(0), 4, TimestampMs(NOW), None, Some(b"x"));
    assert_eq!(code(&zstd.into()), ErrorCode::InvalidRecord);
    // Each record whose inner magic differs from the outer one is reported.
    let mut inner = run(&[0]);
    write_message(&mut inner, 0, Offset(1), 0, TimestampMs::NONE, None, Some(b"older"));
    let refusal = validate_produce(wrapped(&inner, 1, 0), &rules()).map(drop).unwrap_err();
    assert_eq!((refusal.code, refusal.record_errors[0].index), (ErrorCode::InvalidRecord, 1));
}
