use super::*;
use barnabas_api::dead_letters::Cause;
use barnabas_base::TimestampMs;
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, ControlType, control_batch};

fn letters(offsets: &[i64]) -> Vec<Letter> {
    let letter = |&offset| Letter { offset: Offset(offset), delivery_count: 1, cause: Cause::Rejected };
    offsets.iter().map(letter).collect()
}

fn log(base: i64, values: &[&str], codec: Codec) -> Bytes {
    let compression = Compression { codec, level: None };
    let options = BatchOptions { base_offset: Offset(base), compression, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    values.iter().for_each(|value| builder.push(TimestampMs(0), None, Some(value.as_bytes()), &[]));
    builder.build().expect("a batch")
}

fn taken(records: Bytes, wanted: &[i64], most: usize) -> (Vec<i64>, i64) {
    let (end, copies) = take(records, &letters(wanted), most);
    (copies.keys().map(|offset| offset.get()).collect(), end.get())
}

#[test]
fn what_letters_are_about_is_copied_and_nothing_else() {
    let two = [log(10, &["a", "b", "c"], Codec::None), log(13, &["d", "e"], Codec::Gzip)].concat();
    assert_eq!(taken(two.clone().into(), &[11, 14], 100), (vec![11, 14], 15));
    assert_eq!(taken(two.clone().into(), &[12], 100), (vec![12], 15));
    // Past what was read: to be read next.
    assert_eq!(taken(two.into(), &[11, 20], 100), (vec![11], 15));
    assert_eq!(taken(Bytes::new(), &[11], 100), (vec![], 11));
}

#[test]
fn copies_end_where_they_are_as_many_as_a_batch_holds() {
    let log = log(10, &["aaaa", "bbbb", "cccc"], Codec::Lz4);
    assert_eq!(taken(log.clone(), &[10, 11, 12], 8), (vec![10, 11], 12));
    assert_eq!(taken(log, &[10, 11, 12], 0), (vec![10], 11), "one at least");
}

#[test]
fn markers_and_what_cannot_be_read_have_no_copies() {
    let options = BatchOptions { base_offset: Offset(10), transactional: true, ..BatchOptions::default() };
    let marker = control_batch(options, TimestampMs(0), ControlType::Abort, &[0; 6]).expect("a marker");
    assert_eq!(taken(marker, &[10], 100), (vec![], 11));
    let mut bad = log(10, &["aaaa"], Codec::Gzip).to_vec();
    let end = bad.len();
    bad[end - 12..].fill(0);
    assert_eq!(taken(bad.into(), &[10], 100), (vec![], 11));
}
