//! Kafka's messages ↔ bytes. Nothing here decides, waits or touches the machine.
//!
//! - every request, response, header, metadata, coordinator and control record of Kafka 4.4, down to the oldest
//!   versions of 3.9: one module each, generated from `schema/` by `cargo run -p xtask -- generate`
//! - [`Reader`] and [`Writer`]: the primitive types, bounded on the way in, without copies of large bytes on the way
//!   out
//! - frames: a request behind its header, a metadata or coordinator record behind its type and version
//!
//! Record batches are in core/wire, which hands these on: the rest of the workspace names them
//! `barnabas_wire::messages`.
//!
//! Does not know: records, topics, connections, what a message is for.

mod api_key;
mod error;
mod frames;
mod generated;
mod message;
mod reader;
mod runtime;
mod sentence;
mod str;
mod structs;
mod tagged;
mod writer;

pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use frames::{
    Decoded, REQUEST_MEMORY_FREE, REQUEST_MEMORY_PER_BYTE, RequestStart, decode_response, encode_request,
    encode_response, frame_request, frame_response, request_memory_max,
};
pub use generated::*;
pub use message::{Message, Struct, VersionRange};
pub use reader::{MEMORY_BYTES_MAX, RESERVE_BYTES, Reader};
pub use sentence::{SENTENCE_BYTES_MAX, sentence};
pub use str::Str;
pub use tagged::{TaggedFields, UnknownTaggedField};
pub use writer::{Frame, REFERENCE_BYTES_MIN, TaggedWriter, Writer};
