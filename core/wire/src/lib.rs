//! Kafka's messages and records ↔ bytes. Nothing here decides, waits or touches the machine.
//!
//! - [`messages`]: every request, response, header, metadata, coordinator and control record of Kafka 4.4, down to the
//!   oldest versions of 3.9; generated from `schema/` by `cargo run -p xtask -- generate`
//! - [`Reader`] and [`Writer`]: the primitive types, bounded on the way in, without copies of large bytes on the way out
//! - frames: a request behind its header, a metadata or coordinator record behind its type and version
//! - [`records`]: record batches
//!
//! Produce path: shell/broker/src/connection.rs hands a frame in and gets a request whose record bytes are slices of it.

mod api_key;
mod error;
mod frames;
mod message;
pub mod messages;
mod reader;
pub mod records;
mod runtime;
mod sentence;
mod str;
mod tagged;
mod writer;

pub(crate) use api_key::Api;
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use frames::{
    Decoded, REQUEST_MEMORY_FREE, REQUEST_MEMORY_PER_BYTE, RequestStart, decode_response, encode_request,
    encode_response, frame_request, frame_response, request_memory_max,
};
pub use message::{Message, Request, Struct, VersionRange};
pub use messages::{ApiKey, MetadataRecord, RequestBody, ResponseBody};
pub use reader::{MEMORY_BYTES_MAX, RESERVE_BYTES, Reader};
pub use sentence::{SENTENCE_BYTES_MAX, sentence};
pub use str::Str;
pub use tagged::{TaggedFields, UnknownTaggedField};
pub use writer::{Frame, REFERENCE_BYTES_MIN, TaggedWriter, Writer};
