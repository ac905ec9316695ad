//! IBM MQ's client channels (SVRCONN): segments, structures and calls ↔ bytes, and a server's connection as a state
//! machine. Experimental: it has met IBM's Java client and Wireshark's dissector, and no queue manager.
//!
//! Pure. [`Server`] takes bytes that came and the time, and answers with bytes to send and events. It holds no socket,
//! clock or thread; edge/mq-queues drives it.
//!
//! Bounded: segments by [`ServerConfig::message_bytes_max`], before the connect by 4 KiB; conversations of a
//! connection by [`ServerConfig::conversations_max`]; bytes of calls that were not released by
//! [`ServerConfig::held_bytes_max`].
//!
//! Not here: EBCDIC (a segment that begins so ends the connection with an error that says so), header and message
//! compression, channels between queue managers, password protection of MQCSP (FAP level 12 is announced, at which
//! clients send passwords as they are: TLS protects them), XA, publish and subscribe.
//!
//! # Source
//! IBM's documentation of the MQI (structures, options, reason codes); the names and order of fields in Wireshark's
//! `mq` dissector (`tshark -G fields`); what IBM's Java client 9.4 sends to a server of our own.

mod bytes;
mod call;
mod client;
mod error;
pub mod reason;
mod reply;
mod rfh2;
mod segment;
mod server;
mod structures;
mod text;

pub use bytes::Order;
pub use call::{Call, Get, Open, Put, Request, Selection};
pub use client::{Answer, Application};
pub use error::MqError;
pub use reply::{Notice, Reply, Streamed};
pub use rfh2::{Property, Rfh2, read_rfh2, write_rfh2};
pub use segment::{Header, Kind, Segments, write_segment};
pub use server::{Connect, ConversationId, Password, Server, ServerConfig, ServerEvent, Ticket};
pub use structures::descriptor::{Descriptor, FORMAT_NONE, FORMAT_RFH2, FORMAT_STRING};
pub use structures::object::Object;
pub use structures::options::{GetOptions, PutOptions, gmo, oo, pmo};
pub use text::{convert, fixed, trimmed};
