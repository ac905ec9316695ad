//! The codec: whatever is understood must come out the same when it is written and read again.

use barnabas_wire::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupRecordKey, GroupRecordValue,
    MetadataRecord, RequestBody, ResponseBody, ShareRecordKey, ShareRecordValue, TransactionRecordKey,
    TransactionRecordValue,
};
use barnabas_wire::{
    ApiKey, DecodeError, EncodeError, Frame, MEMORY_BYTES_MAX, Message, Reader, Writer, encode_request,
};
use bytes::Bytes;

/// A frame as a connection hands it over: header and body.
pub fn frame(data: &[u8]) {
    let Ok((header, body)) = RequestBody::decode_frame(Bytes::copy_from_slice(data), MEMORY_BYTES_MAX) else {
        return;
    };
    // A header may hold what an older version cannot carry; then there is nothing to compare.
    let Ok(frame) = encode_request(&header, &body) else { return };
    let written = frame.into_bytes();
    let again = RequestBody::decode_frame(written.clone(), MEMORY_BYTES_MAX);
    let (header, body) = again.expect("what was written can be read");
    assert_eq!(encode_request(&header, &body).map(Frame::into_bytes), Ok(written));
}

/// The API and version that the first two bytes choose, and the rest.
fn chosen(data: &[u8]) -> Option<(ApiKey, i16, Bytes)> {
    let (choice, rest) = data.split_first_chunk::<2>()?;
    let key = ApiKey::from_number(i16::from(choice[0]))?;
    let versions = key.versions();
    let count = versions.max.checked_sub(versions.min)?.checked_add(1).filter(|count| *count > 0)?;
    Some((key, versions.min + i16::from(choice[1]) % count, Bytes::copy_from_slice(rest)))
}

/// Reads, writes, reads and writes: the bytes that were written must be the same twice. (Values are not compared: a
/// float may be NaN.)
fn round_trip<T>(
    bytes: Bytes,
    read: impl Fn(Bytes) -> Result<T, DecodeError>,
    write: impl Fn(&T) -> Result<Bytes, EncodeError>,
) {
    let Ok(message) = read(bytes) else { return };
    let written = match write(&message) {
        Ok(written) => written,
        // Tagged fields out of order: Kafka too reads and does not write them.
        Err(EncodeError::TagOrder { .. }) => return,
        Err(error) => panic!("read, but not to be written: {error}"),
    };
    let again = read(written.clone()).expect("what was written can be read");
    assert_eq!(write(&again), Ok(written));
}

pub fn request(data: &[u8]) {
    let Some((key, version, bytes)) = chosen(data) else { return };
    let write = |body: &RequestBody| {
        let mut writer = Writer::new();
        body.encode(&mut writer, version).map(|()| writer.into_bytes())
    };
    round_trip(bytes, |bytes| RequestBody::decode(&mut Reader::new(bytes), key, version), write);
}

pub fn response(data: &[u8]) {
    let Some((key, version, bytes)) = chosen(data) else { return };
    let write = |body: &ResponseBody| {
        let mut writer = Writer::new();
        body.encode(&mut writer, version).map(|()| writer.into_bytes())
    };
    round_trip(bytes, |bytes| ResponseBody::decode(&mut Reader::new(bytes), key, version), write);
}

pub fn metadata_record(data: &[u8]) {
    let write = |(record, version): &(MetadataRecord, i16)| record.encode_value(*version);
    round_trip(Bytes::copy_from_slice(data), MetadataRecord::decode_value, write);
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
