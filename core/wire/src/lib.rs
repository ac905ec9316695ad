//! What Kafka puts on the wire: record batches, and by the same name the messages around them.
//!
//! - [`records`]: record batches, their checks, their codecs
//! - [`messages`] and what stands beside it: core/messages, handed on, so that one name reaches all of it
//!
//! Nothing here decides, waits or touches the machine. Records know no message, and messages no record.
//!
//! Produce path: shell/broker/src/requests/connection.rs hands a frame in and gets a request whose record bytes are
//! slices of it.

pub mod records;

pub use barnabas_messages as messages;
pub use barnabas_messages::{
    ApiKey, DecodeError, DecodeErrorKind, Decoded, EncodeError, Frame, MEMORY_BYTES_MAX, Message,
    MetadataRecord, REFERENCE_BYTES_MIN, REQUEST_MEMORY_FREE, REQUEST_MEMORY_PER_BYTE, RESERVE_BYTES, Reader,
    Request, RequestBody, RequestStart, ResponseBody, SENTENCE_BYTES_MAX, Str, Struct, TaggedFields,
    TaggedWriter, UnknownTaggedField, VersionRange, Writer, decode_response, encode_request, encode_response,
    for_each_message, frame_request, frame_response, request_memory_max, sentence,
};
