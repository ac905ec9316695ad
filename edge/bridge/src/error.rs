//! What ends a bridge's try, and what its operator does about it.

use barnabas_amqp::AmqpError;
use barnabas_client::ClientError;

#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The file is wrong: nothing was started.
    #[error("{0}")]
    Config(String),
    #[error("no peer answers at {address}: {why}. Does it listen for AMQP 1.0 there?")]
    Unreachable { address: String, why: String },
    #[error("no TLS with {address}: {why}")]
    Tls { address: String, why: String },
    #[error("the connection to {address} ended: {why}")]
    Lost { address: String, why: String },
    #[error("{address}: {source}")]
    Amqp { address: String, source: AmqpError },
    #[error("the peer ended the link to {queue}: {why}")]
    Link { queue: String, why: String },
    #[error("Kafka: {0}")]
    Kafka(#[from] ClientError),
    #[error("the topic {topic} holds a state that this version does not understand: {why}")]
    State { topic: String, why: &'static str },
    #[error(
        "the dead-letter topic {topic} refuses the letter of {what} even without its body: its max.message.bytes is too \
         small. Expected: 2048 or more"
    )]
    DeadLetter { topic: String, what: String },
    #[error("{what}: {why}")]
    Io { what: String, why: String },
}
