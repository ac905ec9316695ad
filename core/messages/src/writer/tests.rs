use super::*;
use crate::fetch_response::{FetchableTopicResponse, PartitionData};
use crate::{
    BrokerRegistrationRequest, CreateTopicsRequest, FetchResponse, FetchSnapshotRequest, MetadataRequest,
};
use crate::{Message, Reader};

fn encoded<M: Message>(message: &M, version: i16) -> Result<Bytes> {
    let mut w = Writer::new();
    message.encode(&mut w, version)?;
    Ok(w.into_bytes())
}

#[test]
fn numbers_of_variable_length_read_back() {
    for value in [0, 1, -1, 63, 64, -64, -65, 127, 128, 16_383, 16_384, i32::MAX, i32::MIN] {
        let mut w = Writer::new();
        w.varint(value);
        w.uvarint(value as u32);
        w.varlong(i64::from(value));
        w.varlong(i64::from(value) << 31);
        let mut r = Reader::new(w.into_bytes());
        assert_eq!(r.varint("x"), Ok(value));
        assert_eq!(r.uvarint("x"), Ok(value as u32));
        assert_eq!(r.varlong("x"), Ok(i64::from(value)));
        assert_eq!(r.varlong("x"), Ok(i64::from(value) << 31));
        assert!(r.finish().is_ok());
    }
}

#[test]
fn large_bytes_go_in_by_reference() {
    let records = Bytes::from(vec![7; REFERENCE_BYTES_MIN]);
    let partition = PartitionData { records: Some(records.clone()), ..Default::default() };
    let topic =
        FetchableTopicResponse { partitions: vec![partition.clone(), partition], ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    let mut w = Writer::framed();
    response.encode(&mut w, 12).unwrap();
    let frame = w.finish_framed().unwrap();
    let by_reference = frame.segments.iter().filter(|segment| segment.as_ptr() == records.as_ptr()).count();
    assert_eq!(by_reference, 2);
    assert_eq!(frame.len, frame.segments.iter().map(Bytes::len).sum::<usize>());
    let mut all = frame.into_bytes();
    assert_eq!(all.get_i32() as usize, all.len());
    assert_eq!(FetchResponse::decode(&mut Reader::new(all), 12), Ok(response));
}

#[test]
fn a_small_frame_is_one_segment_with_its_length_in_front() {
    let mut w = Writer::framed();
    w.int16(5);
    let frame = w.finish_framed().unwrap();
    assert_eq!(frame.segments, [Bytes::from_static(&[0, 0, 0, 2, 0, 5])]);
    assert_eq!(frame.len, 6);
}

/// The length of a tagged field precedes it, whatever the writer holds already.
#[test]
fn a_tagged_length_is_put_before_small_and_large_parts() {
    let large = Bytes::from(vec![1; REFERENCE_BYTES_MIN + 1]);
    let small = Bytes::from(vec![2; 200]);
    for parts in [vec![], vec![&small], vec![&large], vec![&small, &large], vec![&large, &small, &large]] {
        for before in [vec![], vec![&small], vec![&large], vec![&large, &small]] {
            let mut w = Writer::new();
            before.iter().for_each(|part| w.raw(part));
            w.tagged_fields(1, &TaggedFields::default(), |w| {
                w.field(3, |w| {
                    parts.iter().for_each(|part| w.raw(part));
                    Ok(())
                })
            })
            .unwrap();
            let frame = w.finish();
            assert_eq!(frame.len, frame.segments.iter().map(Bytes::len).sum::<usize>());
            let mut r = Reader::new(frame.into_bytes());
            r.take("before", before.iter().map(|part| part.len()).sum()).unwrap();
            let mut read = r.unknown_tagged_fields().unwrap();
            assert!(r.finish().is_ok());
            let expected: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
            assert_eq!(read.as_slice()[0].data, expected);
            read.push(1, Bytes::new());
            assert_eq!(Writer::new().unknown_tagged_fields(&read), Err(EncodeError::TagOrder { tag: 1 }));
        }
    }
}

#[test]
fn an_unknown_tag_cannot_stand_where_a_known_one_does() {
    let mut request = FetchSnapshotRequest { cluster_id: Some("c".into()), ..Default::default() };
    request.unknown_tagged_fields.push(0, Bytes::new());
    assert_eq!(encoded(&request, 0), Err(EncodeError::TagOrder { tag: 0 }));
}

#[test]
fn what_a_version_cannot_carry_is_refused_unless_it_may_be_dropped() {
    let mut request = CreateTopicsRequest { validate_only: true, ..Default::default() };
    let refused = EncodeError::CannotCarry { field: "validateOnly", version: 0 };
    assert_eq!(encoded(&request, 0), Err(refused));
    assert!(encoded(&request, 1).is_ok());
    request = CreateTopicsRequest::default();
    request.unknown_tagged_fields.push(9, Bytes::new());
    assert_eq!(encoded(&request, 4), Err(EncodeError::CannotCarry { field: "_tagged_fields", version: 4 }));
    assert!(encoded(&request, 5).is_ok());
    // Every topic is null from version 1 on, and an empty list in version 0.
    let all = MetadataRequest { topics: None, ..Default::default() };
    assert_eq!(encoded(&all, 0), Err(EncodeError::Null { field: "Topics" }));
    assert!(encoded(&all, 1).is_ok());
    // Which broker epoch came before may be dropped.
    let epoch = BrokerRegistrationRequest { previous_broker_epoch: 5, ..Default::default() };
    assert!(encoded(&epoch, 0).is_ok());
}

#[test]
fn a_string_longer_than_kafka_takes_is_refused() {
    let long = MetadataRequest {
        topics: Some(vec![crate::metadata_request::MetadataRequestTopic {
            name: Some("x".repeat(32_768).into()),
            ..Default::default()
        }]),
        ..Default::default()
    };
    let refused = EncodeError::TooLong { field: "Name", length: 32_768 };
    assert_eq!(encoded(&long, 1), Err(refused.clone()));
    assert_eq!(encoded(&long, 12), Err(refused));
}
