//! What ends a bridge's try, and what its operator does about it.

use barnabas_amqp::AmqpError;
use barnabas_client::ClientError;
use barnabas_mq::{Advice, MqError, Refusal};

#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The file is wrong: nothing was started.
    #[error("{0}")]
    Config(String),
    #[error("no peer answers at {address}: {why}. Does it listen for {protocol} there?")]
    Unreachable { address: String, why: String, protocol: &'static str },
    #[error("no TLS with {address}: {why}")]
    Tls { address: String, why: String },
    #[error("the connection to {address} ended: {why}")]
    Lost { address: String, why: String },
    #[error("{address}: {source}")]
    Amqp { address: String, source: AmqpError },
    #[error("{address}: {source}")]
    Mq { address: String, source: MqError },
    #[error("the queue manager refuses {call} of {object}: {why}")]
    Call { call: &'static str, object: String, why: Refusal },
    #[error("message {id} of {queue} {why}. It stays in the queue, and those behind it wait")]
    Held { queue: String, id: String, why: String, advice: &'static str },
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

/// Conditions with which a peer refuses a link until its operator or ours changes something, and what that is.
///
/// # Source
/// AMQP 1.0, part 2, 2.8.15 (amqp-error).
const REFUSALS: [(&str, &str); 5] = [
    ("amqp:invalid-field", "Change mq.queue: the peer takes no queue of this name"),
    ("amqp:not-found", "Create the queue at the peer, or change mq.queue"),
    ("amqp:unauthorized-access", "Give the user of mq.user.name the right to it at the peer"),
    ("amqp:not-allowed", "Change mq.queue, amqp.capabilities or amqp.selector, or the peer's rules"),
    (
        "amqp:not-implemented",
        "Change amqp.capabilities or amqp.selector: the peer does not have what they ask for",
    ),
];

impl BridgeError {
    /// What the operator changes, where another try alone does not cure it.
    pub fn cure(&self) -> Option<&'static str> {
        let why = match self {
            Self::Link { why, .. } => why,
            Self::Call { why, .. } => {
                return if let Advice::Operator(cure) = why.advice() { Some(cure) } else { None };
            }
            Self::Held { advice, .. } => return Some(advice),
            _ => return None,
        };
        let is_of = |condition: &str| why.split([':', ' ']).take(2).eq(condition.split(':'));
        REFUSALS.iter().find(|(condition, _)| is_of(condition)).map(|(_, cure)| *cure)
    }
}
