//! IBM MQ's client channels (SVRCONN): segments, structures and calls ↔ bytes, and both ends of a connection as state
//! machines. Experimental: the server has met IBM's Java client and Wireshark's dissector, the client that server
//! alone; neither has met a queue manager.
//!
//! Pure. [`Server`] and [`Client`] take bytes that came and the time, and answer with bytes to send and events. They
//! hold no socket, clock or thread; edge/mq-queues drives the first, edge/bridge the second.
//!
//! Bounded, at a server: segments by [`ServerConfig::message_bytes_max`], before the connect by 4 KiB; conversations
//! of a connection by [`ServerConfig::conversations_max`]; bytes of calls that were not released by
//! [`ServerConfig::held_bytes_max`]. At a client: answers by [`ClientConfig::message_bytes_max`].
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
mod initial;
pub mod reason;
mod reply;
mod rfh2;
mod segment;
mod server;
mod structures;
mod text;

pub use bytes::Order;
pub use call::{Call, Get, Open, Put, Request, Selection};
pub use client::{Advice, Answer, Answered, Application, Client, ClientConfig, ClientEvent, Got, Refusal};
pub use error::MqError;
pub use reply::{Notice, Reply, Streamed};
pub use rfh2::jms;
pub use rfh2::{Property, Rfh2, read_rfh2, write_rfh2};
pub use segment::{Header, Kind, Segments, write_segment};
pub use server::{Connect, ConversationId, Password, Server, ServerConfig, ServerEvent, Ticket};
pub use structures::dates;
pub use structures::descriptor::{Descriptor, FORMAT_NONE, FORMAT_RFH2, FORMAT_STRING};
pub use structures::object::Object;
pub use structures::options::{GetOptions, PutOptions, gmo, oo, pmo};
pub use text::{convert, fixed, trimmed};
