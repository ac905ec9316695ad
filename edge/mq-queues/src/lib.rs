//! The listener for IBM MQ's client channels: applications put to and get from topics through IBM's own client.
//! Experimental. It reaches brokers through Kafka's protocol alone, each conversation as its own caller, so authorizer
//! and quotas decide as for any Kafka client.
//!
//! | module | answers |
//! |---|---|
//! | `task` | what goes between a connection and the tasks of its conversations |
//! | `connection` | one client: socket, core/mq's machine, and the tasks of its conversations |
//! | `conversation` | what its calls do |
//! | `source` | where an open queue's messages come from |
//! | `browser` | a browse cursor |
//! | `records` | which record is this message, and back |
//! | `names` | which topic is this queue |
//! | `refusal` | which reason code is this error of Kafka |
//! | `dates` | MQ's dates |
//!
//! Always true:
//! 1. a put is answered with success only after the record is acknowledged with acks=all; in a unit of work that is
//!    true of its MQCMIT
//! 2. a message that was got in a unit of work and not committed when its conversation ends goes back to the queue
//! 3. everything is bounded: connections, conversations, handles, calls, bytes that wait in either direction
//! 4. it runs on a thread of its own, never on a worker
//!
//! The protocol: core/mq/src/server.rs. Listening, logins, and the share groups behind queues: edge/queue-access.

mod browser;
mod connection;
mod conversation;
mod dates;
mod names;
mod records;
mod refusal;
mod source;
mod task;

use barnabas_client::{ClientError, ClusterConfig};
pub use barnabas_queue_access::{BindError, Queues, Settings, bind};
use barnabas_queue_access::{Names as Protocol, Slots};
pub use names::Names;
use std::sync::Arc;

/// The keys of the node's settings.
pub const KEY: &str = "mq.listener";
/// `PLAINTEXT` or `SSL`.
pub const PROTOCOL: &str = "mq.security.protocol";
pub const QUEUE_MANAGER: &str = "mq.queue.manager";
pub const QUEUES: &str = "mq.queues";
pub const EXAMPLE: &str = "mq.listener=127.0.0.1:1414";
pub const QUEUES_EXAMPLE: &str = "mq.queues=ORDERS:orders,PAY.IN:payments";

/// What all connections know.
#[derive(Debug)]
pub struct Shared {
    queue_manager: String,
    identifier: String,
    names: Names,
    slots: Slots,
}

impl Shared {
    /// `node` is the node's id: transactional ids begin with `mq-NODE-`.
    pub fn new(queue_manager: &str, names: Names, node: i32) -> Self {
        Self {
            queue_manager: queue_manager.to_owned(),
            identifier: identifier(queue_manager, node),
            names,
            slots: Slots::new(&format!("mq-{node}-")),
        }
    }
}

/// `NAME_1970-01-01_00.00.01`: a queue manager's identifier ends with when it was made. Here that is the node's
/// number, in seconds.
fn identifier(queue_manager: &str, node: i32) -> String {
    let (date, time) = dates::of(i64::from(node) * 1000);
    let part = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
    let (year, month, day) = (part(&date[..4]), part(&date[4..6]), part(&date[6..]));
    let (hour, minute, second) = (part(&time[..2]), part(&time[2..4]), part(&time[4..6]));
    let mut name = queue_manager.to_owned();
    name.truncate(28);
    format!("{name}_{year}-{month}-{day}_{hour}.{minute}.{second}")
}

/// The address that a value of [`KEY`] names; `None`: the node has no such listener.
pub fn address(value: Option<&str>) -> Option<&str> {
    value.filter(|address| !address.is_empty())
}

/// How the listener reaches its node: `protocol` is PLAINTEXT or SASL_PLAINTEXT.
///
/// # Errors
/// Another protocol.
pub fn cluster(bootstrap: &str, protocol: &str) -> Result<ClusterConfig, ClientError> {
    barnabas_queue_access::cluster(bootstrap, protocol, "barnabas-mq")
}

/// Starts the listener's thread.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start(listener: std::net::TcpListener, settings: Settings, shared: Shared) -> std::io::Result<Queues> {
    let protocol = Protocol { short: "mq", protocol: "IBM MQ client channels", security: PROTOCOL };
    let shared = Arc::new(shared);
    barnabas_queue_access::start(listener, settings, protocol, move |stream, logins, producers| {
        connection::Connection::new(stream, logins, producers, shared.clone()).run()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_has_the_form_of_a_queue_managers() {
        assert_eq!(identifier("QM1", 3661), "QM1_1970-01-01_01.01.01");
    }
}
