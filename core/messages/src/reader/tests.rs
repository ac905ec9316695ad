use super::*;
use crate::{ApiKey, Message, RequestBody};
use crate::{MetadataRequest, ProduceRequest};

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Bytes::copy_from_slice(bytes))
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> DecodeErrorKind {
    result.unwrap_err().kind
}

#[test]
fn numbers_of_variable_length() {
    assert_eq!(reader(&[0x00]).uvarint("x"), Ok(0));
    assert_eq!(reader(&[0xac, 0x02]).uvarint("x"), Ok(300));
    assert_eq!(reader(&[0xff, 0xff, 0xff, 0xff, 0x0f]).uvarint("x"), Ok(u32::MAX));
    assert_eq!(kind(reader(&[0x80; 6]).uvarint("x")), DecodeErrorKind::Varint);
    assert_eq!(kind(reader(&[0x80]).uvarint("x")), DecodeErrorKind::Short { needed: 1, remaining: 0 });
    assert_eq!(reader(&[0x01]).varint("x"), Ok(-1));
    assert_eq!(reader(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint("x"), Ok(i32::MIN));
    let lowest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(reader(&lowest).varlong("x"), Ok(i64::MIN));
    assert_eq!(kind(reader(&[0xff; 11]).varlong("x")), DecodeErrorKind::Varint);
}

#[test]
fn an_error_names_the_field_and_the_byte() {
    let error = Reader::new(Bytes::from_static(&[0, 1, 0, 0, 7])).clone();
    let mut r = error;
    r.int16("Acks").unwrap();
    let error = r.int64("TimeoutMs").unwrap_err();
    assert_eq!((error.field, error.position), ("TimeoutMs", 2));
    assert_eq!(error.to_string(), "8 bytes are needed and 3 are left (field TimeoutMs, byte 2)");
}

#[test]
fn no_length_is_believed_beyond_what_is_there() {
    let huge = [0x7f, 0xff, 0xff, 0xff];
    let huge_compact = [0xff, 0xff, 0xff, 0xff, 0x07];
    let short = |needed| DecodeErrorKind::Short { needed, remaining: 0 };
    assert_eq!(kind(reader(&huge).bytes("x", false)), short(0x7fff_ffff));
    assert_eq!(kind(reader(&huge_compact).bytes("x", true)), short(0x7fff_fffe));
    let longs = |r: &mut Reader, flexible| r.array("x", flexible, 8, |r| r.int64("x"));
    assert_eq!(kind(longs(&mut reader(&huge), false)), short(0x7fff_ffff * 8));
    assert_eq!(kind(longs(&mut reader(&huge_compact), true)), short(0x7fff_fffe * 8));
    assert_eq!(kind(reader(&huge_compact).unknown_tagged_fields()), short(0x7fff_ffff * 2));
    assert_eq!(kind(reader(&[0x7f, 0xff]).string("x", false)), short(0x7fff));
    assert_eq!(kind(reader(&huge_compact).string("x", true)), DecodeErrorKind::Length(0x7fff_fffe));
}

#[test]
fn negative_lengths_are_null_or_nothing() {
    assert_eq!(reader(&[0xff, 0xff]).nullable_string("x", false, true), Ok(None));
    assert_eq!(kind(reader(&[0xff, 0xff]).string("x", false)), DecodeErrorKind::Null);
    assert_eq!(kind(reader(&[0xff, 0xfe]).string("x", false)), DecodeErrorKind::Length(-2));
    assert_eq!(
        kind(reader(&[0x80, 0, 0, 0]).bytes("x", false)),
        DecodeErrorKind::Length(i64::from(i32::MIN))
    );
    assert_eq!(reader(&[0]).nullable_bytes("x", true, true), Ok(None));
    assert_eq!(kind(reader(&[0]).bytes("x", true)), DecodeErrorKind::Null);
}

#[test]
fn memory_is_charged_before_it_is_taken() {
    // 100 empty strings: a byte each on the wire, a `Str` each in memory.
    let mut frame = vec![101];
    frame.extend([1; 100]);
    let read = |memory_max| {
        let mut r = Reader::with_memory_max(Bytes::from(frame.clone()), memory_max);
        r.array("x", true, 1, |r| r.string("x", true))
    };
    let needed = 100 * size_of::<Str>();
    assert_eq!(read(needed).unwrap().len(), 100);
    assert_eq!(kind(read(needed - 1)), DecodeErrorKind::Memory(needed - 1));
}

#[test]
fn what_grows_never_grows_past_its_count() {
    let count = 5000;
    let mut frame = (count as i32).to_be_bytes().to_vec();
    frame.extend(vec![7; count]);
    let read = reader(&frame).array("x", false, 1, |r| r.int8("x").map(|byte| [byte; 16])).unwrap();
    assert_eq!((read.len(), read.capacity()), (count, count));
}

#[test]
fn text_that_is_no_utf8_reads_as_java_reads_it() {
    assert_eq!(reader(&[3, b'a', 0xff]).string("x", true).unwrap(), "a\u{fffd}");
}

/// A name that is answered as it was sent must have room in the answer.
#[test]
fn text_that_replacement_makes_too_long_is_refused() {
    let read = |length: usize| {
        let frame = [&(length as i16).to_be_bytes()[..], &vec![0xff; length]].concat();
        reader(&frame).string("x", false).map(|text| text.len())
    };
    let most = i16::MAX as usize / 3;
    assert_eq!(read(most), Ok(3 * most));
    for length in [most + 1, i16::MAX as usize] {
        assert_eq!(read(length).unwrap_err().kind, DecodeErrorKind::Length(3 * length as i64));
    }
}

#[test]
fn a_tagged_field_takes_what_it_says() {
    // One tagged field, tag 0, said to be 3 bytes long, of which an int16 is read.
    let mut r = reader(&[1, 0, 3, 0, 7, 9]);
    let error = r.tagged_fields(&mut TaggedFields::default(), |r, _| r.int16("x").map(|_| true)).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TagLength { tag: 0, said: 3, taken: 2 });
}

#[test]
fn strings_and_records_are_slices_of_the_frame() {
    let mut request = ProduceRequest::default();
    let mut topic = crate::produce_request::TopicProduceData { name: "t".into(), ..Default::default() };
    topic.partition_data.push(crate::produce_request::PartitionProduceData {
        records: Some(Bytes::from(vec![9; 4000])),
        ..Default::default()
    });
    request.topic_data.push(topic);
    let mut w = crate::Writer::new();
    request.encode(&mut w, 9).unwrap();
    let frame = w.into_bytes();
    let read = ProduceRequest::decode(&mut Reader::new(frame.clone()), 9).unwrap();
    let within = |bytes: &Bytes| frame.as_ptr_range().contains(&bytes.as_ptr());
    assert!(within(read.topic_data[0].name.as_bytes()));
    assert!(within(read.topic_data[0].partition_data[0].records.as_ref().unwrap()));
}

#[test]
fn a_version_that_is_none_is_refused() {
    let versions = MetadataRequest::VERSIONS;
    for version in [versions.min - 1, versions.max + 1, i16::MIN, i16::MAX] {
        let error = RequestBody::decode(&mut reader(&[0; 64]), ApiKey::Metadata, version).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Version { message: "MetadataRequest", version });
    }
}

#[test]
fn what_is_left_over_is_an_error() {
    let mut r = reader(&[0, 0, 9]);
    r.int16("x").unwrap();
    assert_eq!(kind(r.finish()), DecodeErrorKind::Trailing(1));
}
