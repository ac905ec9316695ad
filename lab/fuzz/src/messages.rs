//! The codec: whatever is understood must come out the same when it is written and read again.

use barnabas_wire::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupRecordKey, GroupRecordValue,
    MetadataRecord, RequestBody, ResponseBody, ShareRecordKey, ShareRecordValue, TransactionRecordKey,
    TransactionRecordValue,
};
use barnabas_wire::{ApiKey, EncodeError, MEMORY_BYTES_MAX, Message, Reader, Writer, encode_request};
use bytes::Bytes;

/// A frame as a connection hands it over: header and body.
pub fn frame(data: &[u8]) {
    let Ok((header, body)) = RequestBody::decode_frame(Bytes::copy_from_slice(data), MEMORY_BYTES_MAX) else {
        return;
    };
    // A header may hold what an older version cannot carry; then there is nothing to compare.
    let Ok(frame) = encode_request(&header, &body) else { return };
    let again = RequestBody::decode_frame(frame.into_bytes(), MEMORY_BYTES_MAX);
    assert_eq!(again.map(|decoded| decoded.1), Ok(body));
}

/// The API and version that the first two bytes choose, and the rest.
fn chosen(data: &[u8]) -> Option<(ApiKey, i16, Bytes)> {
    let (choice, rest) = data.split_first_chunk::<2>()?;
    let key = ApiKey::from_number(i16::from(choice[0]))?;
    let versions = key.versions();
    let count = versions.max.checked_sub(versions.min)?.checked_add(1).filter(|count| *count > 0)?;
    Some((key, versions.min + i16::from(choice[1]) % count, Bytes::copy_from_slice(rest)))
}

/// What was read in a version can be written in it; but for tagged fields out of order, which Kafka reads and does not
/// write either.
fn is_writable(written: Result<(), EncodeError>) -> bool {
    match written {
        Ok(()) => true,
        Err(EncodeError::TagOrder { .. }) => false,
        Err(error) => panic!("read, but not to be written: {error}"),
    }
}

pub fn request(data: &[u8]) {
    let Some((key, version, bytes)) = chosen(data) else { return };
    let Ok(body) = RequestBody::decode(&mut Reader::new(bytes), key, version) else { return };
    let mut writer = Writer::new();
    if !is_writable(body.encode(&mut writer, version)) {
        return;
    }
    let again = RequestBody::decode(&mut Reader::new(writer.into_bytes()), key, version);
    assert_eq!(again, Ok(body));
}

pub fn response(data: &[u8]) {
    let Some((key, version, bytes)) = chosen(data) else { return };
    let Ok(body) = ResponseBody::decode(&mut Reader::new(bytes), key, version) else { return };
    let mut writer = Writer::new();
    if !is_writable(body.encode(&mut writer, version)) {
        return;
    }
    let again = ResponseBody::decode(&mut Reader::new(writer.into_bytes()), key, version);
    assert_eq!(
        format!("{again:?}"),
        format!("{:?}", Ok::<_, ()>(body)),
        "compared as text: a float may be NaN"
    );
}

pub fn metadata_record(data: &[u8]) {
    let Ok((record, version)) = MetadataRecord::decode_value(Bytes::copy_from_slice(data)) else { return };
    let written = record.encode_value(version);
    if !is_writable(written.as_ref().map(drop).map_err(Clone::clone)) {
        return;
    }
    let again = MetadataRecord::decode_value(written.unwrap_or_default());
    assert_eq!(
        format!("{again:?}"),
        format!("{:?}", Ok::<_, ()>((record, version))),
        "as text: a quota may be NaN"
    );
}

pub fn coordinator_record(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(rest);
    let value_type = i16::from(*kind >> 2);
    match kind & 3 {
        0 => {
            drop(GroupRecordKey::decode_key(bytes.clone()));
            drop(GroupRecordValue::decode_value(value_type, bytes));
        }
        1 => {
            drop(TransactionRecordKey::decode_key(bytes.clone()));
            drop(TransactionRecordValue::decode_value(value_type, bytes));
        }
        _ => {
            drop(ShareRecordKey::decode_key(bytes.clone()));
            drop(ShareRecordValue::decode_value(value_type, bytes));
        }
    }
}

/// What members of a consumer group put into JoinGroup and SyncGroup.
pub fn embedded_protocol(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(rest);
    let version = i16::from(choice >> 1) % 4;
    if choice & 1 == 0 {
        drop(ConsumerProtocolSubscription::decode(&mut Reader::new(bytes), version));
    } else {
        drop(ConsumerProtocolAssignment::decode(&mut Reader::new(bytes), version));
    }
}
