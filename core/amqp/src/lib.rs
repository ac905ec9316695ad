//! AMQP 1.0: values, frames and messages ↔ bytes, and a connection's two ends as state machines.
//!
//! Pure. [`Client`] and [`Server`] take bytes that came and the time, and answer with bytes to send and events. They
//! hold no socket, clock or thread; edge/bridge drives the client, edge/queues the server.
//!
//! Why it is written here and not taken: the one Rust crate that is kept up to date (fe2o3-amqp) loses wake-ups
//! between its test of credit and its wait for it, and stalled in 7 of 13 runs of 20,000 pipelined sends. Its links,
//! sessions and connection are tasks that share locks and notifiers, so a fix means another design of its core, kept
//! by us. A bridge needs a tenth of that crate: one connection, one session, links that send or receive. One owner
//! decides here, so there is no wake-up to lose.
//!
//! Bounded: frames by the maximum that was announced, values by their bytes (nesting and elements too), messages by
//! [`ClientConfig::message_bytes_max`], deliveries by the credit that was granted and, in bytes, by
//! [`ClientConfig::held_bytes_max`].
//!
//! Not here: SASL SCRAM and several sessions as a client, what a transaction does as a server,
//! what a login's bytes mean as a server, link
//! resumption (a link that is attached again starts with an empty unsettled map: what was not settled is delivered
//! again).
//!
//! # Source
//! OASIS AMQP 1.0, parts 1 (types), 2 (transport), 3 (messaging), 4 (transactions), 5 (SASL).

mod client;
mod condition;
mod error;
mod frame;
mod liveness;
mod message;
mod performative;
mod selector;
mod server;
mod transaction;
mod value;

pub use client::{
    Client, ClientConfig, Delivery, DeliveryId, Event, Filter, LinkId, Login, NotSent, Peer, ReceiverConfig,
    SenderConfig,
};
pub use condition::Condition;
pub use error::AmqpError;
pub use frame::{Frame, FrameDecoder, HEADER_AMQP, HEADER_SASL, encode_frame};
pub use message::{Body, Header, Message, Properties, decode_message, encode_message};
pub use performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Outcome, Performative, Sasl, Terminus,
    Transfer,
};
pub use selector::{SELECTOR_BYTES_MAX, Selector, SelectorError};
pub use server::{Arrived, DeliveryKey, LoginStep, PeerLink, Server, ServerConfig, ServerEvent};
pub use transaction::{
    Control, TRANSACTION_CAPABILITIES, TRANSACTION_ROLLBACK, TRANSACTION_TIMEOUT, UNKNOWN_TRANSACTION,
};
pub use value::{Reader, Value, write_value};
