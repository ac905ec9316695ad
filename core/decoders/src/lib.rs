//! Which JSON is this record: those of Kafka's internal topics and of the metadata log, and those whose schema another
//! has written down, as Confluent's clients frame them.
//!
//! Pure: bytes and schemas in, JSON text out. Where schemas come from is for edge/console to know. `barnabas dump-log`
//! uses [`Internal`] as well.
//!
//! | file | answers |
//! |---|---|
//! | `internal` | records of `__consumer_offsets`, `__transaction_state`, `__share_group_state`, the metadata log |
//! | `framed` | which schema a value names, and what follows |
//! | `avro` | a value of Avro, by its schema |
//!
//! Always true:
//! 1. A number is written as it is stored; none passes a float that it was not.
//! 2. What is written is no longer than the caller allows, and nested no deeper than [`DEPTH_MAX`].
//! 3. What cannot be decoded is an error with the reason, never a part of the value.

mod avro;
mod framed;
mod internal;

pub use framed::{Schema, framed};
pub use internal::{Internal, Unreadable, control};

/// Of the text that a key or a value becomes.
pub const DECODED_BYTES_MAX: usize = 1024 * 1024;
/// Of lists, maps and records within one another.
pub const DEPTH_MAX: usize = 64;
const TOO_LONG: &str = "it is longer as JSON than is allowed";

/// A string of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
