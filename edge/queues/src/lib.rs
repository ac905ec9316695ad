//! The AMQP 1.0 listener: applications of message queues put to and get from topics. It reaches brokers through Kafka's
//! protocol alone, each connection as its own caller, so authorizer and quotas decide as for any Kafka client.
//!
//! | module | answers |
//! |---|---|
//! | `link` | what goes between a connection and the tasks of its links |
//! | `connection` | one peer: socket, core/amqp's machine, and the tasks of its links |
//! | `login` | what a peer says in SASL's frames |
//! | `open` | may this link be, and which task serves it |
//! | `put` | a link that the peer sends on: a transfer is a record, and settled when Produce is answered |
//! | `get` | a link that the peer receives on: a member of the queue's share group (KIP-932) |
//! | `browse` | a link that looks at a queue (`distribution-mode` copy) |
//! | `discharge` | a link to the coordinator of transactions: commits and rolls back |
//! | `temporary` | dynamic nodes: made for a link, gone with it |
//! | `refusal` | which AMQP condition is this error of Kafka |
//!
//! Always true:
//! 1. `accepted` is sent only after the record is acknowledged with acks=all
//! 2. a message that its receiver did not settle when its link, session or connection ends goes back to the queue
//! 3. what was done in a transaction is done when it is committed, and undone by a rollback, a timeout, or the end of
//!    the connection or of the link that declared it
//! 4. everything is bounded: connections, sessions, links, credit, bytes that wait in either direction,
//!    transactions
//! 5. it runs on a thread of its own, never on a worker
//!
//! Which message is which record: edge/amqp-records. The protocol: core/amqp/src/server.rs. Listening, logins, and the
//! share groups behind queues: edge/queue-access.

mod browse;
mod connection;
mod discharge;
mod get;
mod link;
mod login;
mod open;
mod put;
mod refusal;
mod temporary;

use barnabas_client::{ClientError, ClusterConfig};
pub use barnabas_queue_access::{BindError, CONNECTIONS_MAX, Queues, Settings, bind};
use barnabas_queue_access::{Names, Slots};

/// The keys of the node's settings.
pub const KEY: &str = "amqp.listener";
/// `PLAINTEXT` or `SSL`.
pub const PROTOCOL: &str = "amqp.security.protocol";
pub const EXAMPLE: &str = "amqp.listener=127.0.0.1:5672";

/// The address that a value of [`KEY`] names; `None`: the node has no such listener.
pub fn address(value: Option<&str>) -> Option<&str> {
    value.filter(|address| !address.is_empty())
}

/// How the listener reaches its node: `protocol` is PLAINTEXT or SASL_PLAINTEXT.
///
/// # Errors
/// Another protocol.
pub fn cluster(bootstrap: &str, protocol: &str) -> Result<ClusterConfig, ClientError> {
    barnabas_queue_access::cluster(bootstrap, protocol, "barnabas-amqp")
}

/// Starts the listener's thread. `node` is the node's id: transactional ids begin with `amqp-NODE-`.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start(listener: std::net::TcpListener, settings: Settings, node: i32) -> std::io::Result<Queues> {
    let names = Names { short: "amqp", protocol: "AMQP 1.0", security: PROTOCOL };
    let slots = Slots::new(&format!("amqp-{node}-"));
    barnabas_queue_access::start(listener, settings, names, move |stream, logins, producers| {
        connection::Connection::new(stream, logins, producers, slots.clone()).run()
    })
}
