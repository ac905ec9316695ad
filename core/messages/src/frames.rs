//! Messages in what surrounds them: a request behind its header, a metadata record behind its frame, a coordinator's
//! record behind its type and version.

use bytes::Bytes;

use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::generated::{
    ApiKey, GroupRecordKey, GroupRecordValue, MetadataRecord, RequestBody, RequestHeader, ResponseBody,
    ResponseHeader, ShareRecordKey, ShareRecordValue, TransactionRecordKey, TransactionRecordValue,
};
use crate::message::Message;
use crate::reader::{MEMORY_BYTES_MAX, Reader};
use crate::writer::{Frame, Writer};

/// What a request's first bytes say, in every version of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestStart {
    /// May be no key that we know.
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
}

impl RequestStart {
    /// Looks at the first eight bytes and leaves them where they are.
    pub fn peek(frame: &Bytes) -> Result<Self, DecodeError> {
        let mut r = Reader::new(frame.clone());
        Ok(Self {
            api_key: r.int16("RequestApiKey")?,
            api_version: r.int16("RequestApiVersion")?,
            correlation_id: r.int32("CorrelationId")?,
        })
    }
}

impl RequestHeader {
    /// Reads the header in the version that belongs to the request's key and version, which the caller has peeked and
    /// found to be known.
    pub fn decode_for(r: &mut Reader, key: ApiKey, version: i16) -> Result<Self, DecodeError> {
        Self::decode(r, key.request_header_version(version))
    }
}

/// The memory that decoding a request may take for each byte of its frame, beyond the frame itself. By the
/// sizes of the structs, a topic's name of ten letters is 12 bytes in Metadata and about 80 decoded.
pub const REQUEST_MEMORY_PER_BYTE: usize = 16;
/// Memory that a short request may take regardless of its length: names of one letter reach a multiple of 30.
pub const REQUEST_MEMORY_FREE: usize = 256 * 1024;

/// The memory that decoding a request's frame may take beyond the frame, `memory_max` at most.
pub fn request_memory_max(frame_bytes: usize, memory_max: usize) -> usize {
    memory_max.min(REQUEST_MEMORY_FREE + frame_bytes.saturating_mul(REQUEST_MEMORY_PER_BYTE))
}

/// A request, and what it takes.
#[derive(Debug)]
pub struct Decoded {
    pub header: RequestHeader,
    pub body: RequestBody,
    /// Memory of vectors, copied strings and unknown tags, beyond the frame.
    pub memory_bytes: usize,
}

impl RequestBody {
    /// A request's frame: header and body. What stands after the body is not looked at, as with Kafka: librdkafka 2.16
    /// sends Metadata for all topics with three bytes too many.
    ///
    /// # Errors
    /// An unknown key or version is [`DecodeErrorKind::Type`] or [`DecodeErrorKind::Version`]; for ApiVersions the
    /// caller looks for that with [`RequestStart::peek`] before and answers in version 0.
    pub fn decode_frame(frame: Bytes, memory_max: usize) -> Result<(RequestHeader, Self), DecodeError> {
        let Decoded { header, body, .. } = Self::decode_counted(frame, memory_max)?;
        Ok((header, body))
    }

    /// The same, and the memory that it takes: at most [`request_memory_max`], at its peak at most twice that.
    ///
    /// # Errors
    /// As for [`Self::decode_frame`].
    pub fn decode_counted(frame: Bytes, memory_max: usize) -> Result<Decoded, DecodeError> {
        let start = RequestStart::peek(&frame)?;
        let memory_max = request_memory_max(frame.len(), memory_max);
        let mut r = Reader::with_memory_max(frame, memory_max);
        let Some(key) = ApiKey::from_number(start.api_key) else {
            let kind = DecodeErrorKind::Type { enumeration: "ApiKey", value: i64::from(start.api_key) };
            return Err(r.error("RequestApiKey", kind));
        };
        if !key.versions().contains(start.api_version) {
            let kind = DecodeErrorKind::Version { message: key.name(), version: start.api_version };
            return Err(r.error("RequestApiVersion", kind));
        }
        let header = RequestHeader::decode_for(&mut r, key, start.api_version)?;
        let body = Self::decode(&mut r, key, start.api_version)?;
        Ok(Decoded { header, body, memory_bytes: r.memory_taken() })
    }
}

/// Writes a request: header and body, without the length in front.
pub fn encode_request(header: &RequestHeader, body: &RequestBody) -> Result<Frame, EncodeError> {
    let mut w = Writer::new();
    write_request(&mut w, header, body)?;
    Ok(w.finish())
}

/// A request as it goes over a socket: length, header, body.
pub fn frame_request(header: &RequestHeader, body: &RequestBody) -> Result<Frame, EncodeError> {
    let mut w = Writer::framed();
    write_request(&mut w, header, body)?;
    w.finish_framed()
}

fn write_request(w: &mut Writer, header: &RequestHeader, body: &RequestBody) -> Result<(), EncodeError> {
    let version = header.request_api_version;
    header.encode(w, body.key().request_header_version(version))?;
    body.encode(w, version)
}

/// Writes a response: header and body, without the length in front.
pub fn encode_response(correlation_id: i32, body: &ResponseBody, version: i16) -> Result<Frame, EncodeError> {
    let mut w = Writer::new();
    write_response(&mut w, correlation_id, body, version)?;
    Ok(w.finish())
}

/// A response as it goes over a socket: length, header, body.
pub fn frame_response(correlation_id: i32, body: &ResponseBody, version: i16) -> Result<Frame, EncodeError> {
    let mut w = Writer::framed();
    write_response(&mut w, correlation_id, body, version)?;
    w.finish_framed()
}

fn write_response(
    w: &mut Writer,
    correlation_id: i32,
    body: &ResponseBody,
    version: i16,
) -> Result<(), EncodeError> {
    let header = ResponseHeader { correlation_id, ..ResponseHeader::default() };
    header.encode(w, body.key().response_header_version(version))?;
    body.encode(w, version)
}

/// Reads a response's header and body, nothing after it.
///
/// `version` is what was asked in. A broker that does not know that version of ApiVersions answers in version 0, which
/// is tried when the answer cannot be read as it should (KIP-511).
pub fn decode_response(
    frame: Bytes,
    key: ApiKey,
    version: i16,
) -> Result<(ResponseHeader, ResponseBody), DecodeError> {
    // The client that sent the request has bounded the answer's length. The memory limit is proportional to
    // it: a million partitions are a valid answer to Metadata.
    let memory_max = MEMORY_BYTES_MAX.max(frame.len().saturating_mul(64));
    let decode = |frame: Bytes, version: i16| {
        let mut r = Reader::with_memory_max(frame, memory_max);
        let header = ResponseHeader::decode(&mut r, key.response_header_version(version))?;
        let body = ResponseBody::decode(&mut r, key, version)?;
        r.finish()?;
        Ok((header, body))
    };
    match decode(frame.clone(), version) {
        Err(error) if key == ApiKey::ApiVersions && version > 0 => decode(frame, 0).map_err(|_| error),
        result => result,
    }
}

/// The version of the frame around a metadata record (Kafka `AbstractApiMessageSerde`).
const METADATA_FRAME_VERSION: u32 = 1;

impl MetadataRecord {
    /// Reads a metadata record's value: frame version, type and version as unsigned varints, then the message. Returns
    /// the version with it.
    ///
    /// # Errors
    /// An unknown type or version too: a node that does not understand a record must not go past it.
    pub fn decode_value(value: Bytes) -> Result<(Self, i16), DecodeError> {
        let mut r = Reader::new(value);
        let frame = r.uvarint("FrameVersion")?;
        if frame != METADATA_FRAME_VERSION {
            let version = i16::try_from(frame).unwrap_or(i16::MAX);
            let kind = DecodeErrorKind::Version { message: "metadata frame", version };
            return Err(r.error("FrameVersion", kind));
        }
        let type_number = r.uvarint("ApiKey")?;
        let version = r.uvarint("Version")?;
        let version = i16::try_from(version).unwrap_or(i16::MAX);
        let record = Self::read_body(&mut r, type_number, version)?;
        r.finish()?;
        Ok((record, version))
    }

    /// Writes a metadata record's value in `version` of its message.
    pub fn encode_value(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::with_capacity(64);
        w.uvarint(METADATA_FRAME_VERSION);
        w.uvarint(self.type_number());
        w.uvarint(version as u16 as u32);
        self.write_body(&mut w, version)?;
        Ok(w.into_bytes())
    }
}

/// A key is its type and its fields, always in the first version of its schema: a new shape would be a new type.
const KEY_VERSION: i16 = 0;

macro_rules! coordinator_record {
    ($key:ident, $value:ident) => {
        impl $key {
            /// Reads a record's key: its type, then the fields.
            ///
            /// # Errors
            /// [`DecodeErrorKind::Type`] for a type that Kafka 4.4 does not have; Kafka's coordinators skip such
            /// records.
            pub fn decode_key(key: Bytes) -> Result<Self, DecodeError> {
                let mut r = Reader::new(key);
                let type_number = r.int16("RecordType")?;
                let key = Self::read_body(&mut r, type_number, KEY_VERSION)?;
                r.finish()?;
                Ok(key)
            }

            pub fn encode_key(&self) -> Result<Bytes, EncodeError> {
                let mut w = Writer::with_capacity(64);
                w.int16(self.type_number());
                self.write_body(&mut w, KEY_VERSION)?;
                Ok(w.into_bytes())
            }
        }

        impl $value {
            /// Reads the value of a record whose key had `type_number`: its version, then the fields. Returns the
            /// version with it.
            pub fn decode_value(type_number: i16, value: Bytes) -> Result<(Self, i16), DecodeError> {
                let mut r = Reader::new(value);
                let version = r.int16("ValueVersion")?;
                let value = Self::read_body(&mut r, type_number, version)?;
                r.finish()?;
                Ok((value, version))
            }

            pub fn encode_value(&self, version: i16) -> Result<Bytes, EncodeError> {
                let mut w = Writer::with_capacity(64);
                w.int16(version);
                self.write_body(&mut w, version)?;
                Ok(w.into_bytes())
            }
        }
    };
}

coordinator_record!(GroupRecordKey, GroupRecordValue);
coordinator_record!(TransactionRecordKey, TransactionRecordValue);
coordinator_record!(ShareRecordKey, ShareRecordValue);

#[cfg(test)]
mod tests;
