use super::*;
use crate::{
    ApiVersionsRequest, ApiVersionsResponse, NoOpRecord, OffsetCommitKey, OffsetCommitValue, TopicRecord,
};
use crate::{MEMORY_BYTES_MAX, ResponseBody};

#[test]
fn a_request_reads_back_from_its_frame() {
    for version in [0, 2, 3, 4] {
        let header = RequestHeader {
            request_api_key: 18,
            request_api_version: version,
            correlation_id: 77,
            client_id: Some("me".into()),
            ..Default::default()
        };
        let body = RequestBody::from(ApiVersionsRequest::default());
        let frame = encode_request(&header, &body).unwrap().into_bytes();
        let start = RequestStart::peek(&frame).unwrap();
        assert_eq!((start.api_key, start.api_version, start.correlation_id), (18, version, 77));
        assert_eq!(RequestBody::decode_frame(frame, MEMORY_BYTES_MAX), Ok((header, body)));
    }
}

#[test]
fn unknown_api_or_version_differs_from_malformed_bytes() {
    let frame = |key: i16, version: i16| {
        let mut w = Writer::new();
        w.int16(key);
        w.int16(version);
        w.raw_slice(&[0; 16]);
        RequestBody::decode_frame(w.into_bytes(), MEMORY_BYTES_MAX).unwrap_err().kind
    };
    for key in [-1, 4, 7, 95] {
        let kind = DecodeErrorKind::Type { enumeration: "ApiKey", value: i64::from(key) };
        assert_eq!(frame(key, 0), kind);
    }
    assert_eq!(frame(18, 99), DecodeErrorKind::Version { message: "ApiVersions", version: 99 });
    assert_eq!(frame(76, 0), DecodeErrorKind::Version { message: "ShareGroupHeartbeat", version: 0 });
}

#[test]
fn the_answer_to_api_versions_is_readable_by_who_asked_too_high() {
    let refusal = ResponseBody::from(ApiVersionsResponse { error_code: 35, ..Default::default() });
    let frame = encode_response(5, &refusal, 0).unwrap().into_bytes();
    // No tagged fields in the header even in a flexible version, and the body falls back to version 0.
    let (header, body) = decode_response(frame, ApiKey::ApiVersions, 5).unwrap();
    assert_eq!((header.correlation_id, body), (5, refusal));
    assert_eq!(ApiKey::ApiVersions.response_header_version(3), 0);
    assert_eq!(ApiKey::Metadata.response_header_version(9), 1);
    assert_eq!(ApiKey::Metadata.response_header_version(8), 0);
    assert_eq!(ApiKey::ApiVersions.request_header_version(3), 2);
}

#[test]
fn metadata_records_stand_behind_frame_version_type_and_version() {
    let record = MetadataRecord::from(NoOpRecord::default());
    let value = record.encode_value(0).unwrap();
    assert_eq!(value, Bytes::from_static(&[1, 20, 0, 0]));
    assert_eq!(MetadataRecord::decode_value(value), Ok((record, 0)));
    let topic = MetadataRecord::from(TopicRecord { name: "t".into(), ..Default::default() });
    assert_eq!(MetadataRecord::decode_value(topic.encode_value(0).unwrap()), Ok((topic, 0)));
    let refused =
        |bytes: &'static [u8]| MetadataRecord::decode_value(Bytes::from_static(bytes)).unwrap_err().kind;
    assert_eq!(refused(&[2, 20, 0, 0]), DecodeErrorKind::Version { message: "metadata frame", version: 2 });
    assert_eq!(refused(&[1, 13, 0, 0]), DecodeErrorKind::Type { enumeration: "MetadataRecord", value: 13 });
    assert_eq!(refused(&[1, 20, 1, 0]), DecodeErrorKind::Version { message: "NoOpRecord", version: 1 });
    assert_eq!(refused(&[1, 20, 0, 0, 0]), DecodeErrorKind::Trailing(1));
}

#[test]
fn coordinator_records_stand_behind_type_and_version() {
    let key = GroupRecordKey::from(OffsetCommitKey {
        group: "g".into(),
        topic: "t".into(),
        partition: 3,
        ..Default::default()
    });
    let bytes = key.encode_key().unwrap();
    assert_eq!(bytes, Bytes::from_static(&[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 3]));
    assert_eq!(GroupRecordKey::decode_key(bytes), Ok(key));
    let value = GroupRecordValue::from(OffsetCommitValue { offset: 9, ..Default::default() });
    for version in 0..=4 {
        let bytes = value.encode_value(version).unwrap();
        assert_eq!(GroupRecordValue::decode_value(1, bytes), Ok((value.clone(), version)));
    }
    let error = GroupRecordKey::decode_key(Bytes::from_static(&[0, 99])).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Type { enumeration: "GroupRecordKey", value: 99 });
}
