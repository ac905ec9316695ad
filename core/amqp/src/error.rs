//! What ends a connection: bytes that are not AMQP 1.0, a peer that breaks a rule, or its own words.

use crate::condition::Condition;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmqpError {
    /// The bytes are no value, frame or message.
    #[error("these bytes are not AMQP 1.0: {0}")]
    Decode(&'static str),
    /// A frame is longer than what was announced.
    #[error("the peer sent a frame of {length} bytes; {max} were announced as the maximum")]
    FrameTooLarge { length: usize, max: usize },
    /// The frames are understood and out of order, or out of bounds.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    #[error("the peer does not speak AMQP 1.0 here: it answered {0:02x?}")]
    Header([u8; 8]),
    #[error("the peer offers the SASL mechanisms {offered}; {wanted} was asked for")]
    Mechanism { offered: String, wanted: &'static str },
    #[error("the peer refused the login (SASL code {0}). Check user and password")]
    Login(u8),
    #[error("the peer closed the connection: {0}")]
    Closed(Condition),
    #[error("nothing came from the peer for {0} ms")]
    Silent(u64),
}
