//! `mq.protocol=experimental`: the peer is a queue manager, and is spoken to in MQ's own protocol.

use super::{Given, PeerConfig, invalid, tls};
use crate::error::BridgeError;
use barnabas_amqp::Login;
use barnabas_mq::Password;

/// MQ's default of a queue's `MAXMSGL`, and the most that it can be.
const MESSAGE_BYTES: u64 = 4 << 20;
const MESSAGE_BYTES_MAX: u64 = 100 << 20;
/// MQ's rules: a name of a channel has 20 letters, others 48.
const CHANNEL_MAX: usize = 20;
const NAME_MAX: usize = 48;

/// What a client channel needs beside a peer's address.
#[derive(Debug, Clone)]
pub struct MqConfig {
    pub channel: String,
    /// Blank: any that answers.
    pub queue_manager: String,
    /// User and password.
    pub user: Option<(String, Password)>,
    /// Where messages go that can be neither a record nor a dead letter, in the unit of work that got them.
    pub backout_queue: Option<String>,
}

pub(super) fn is_wanted(given: &Given) -> Result<bool, BridgeError> {
    match given.get("mq.protocol") {
        None | Some("amqp") => Ok(false),
        Some("experimental") => Ok(true),
        Some(other) => {
            Err(invalid("mq.protocol", other, "amqp, or experimental for IBM MQ's client channels"))
        }
    }
}

pub(super) fn peer(given: &Given) -> Result<PeerConfig, BridgeError> {
    let mut addresses = Vec::new();
    for entry in given.must("mq.connection.name.list")?.split(',') {
        addresses.push(address_of(entry.trim(), "a listener of the queue manager")?);
    }
    let has_tls = given.get("mq.ssl.cipher.suite").is_some();
    Ok(PeerConfig {
        addresses,
        hostname: None,
        login: Login::None,
        tls: if has_tls { Some(tls(given)?) } else { None },
        idle_timeout_ms: 0,
        message_bytes_max: given.number("mq.message.bytes.max", MESSAGE_BYTES, 1, MESSAGE_BYTES_MAX)?
            as usize,
        queue: name("mq.queue", given.must("mq.queue")?, NAME_MAX)?,
        capabilities: Vec::new(),
        selector: None,
        reconnect_min: given.millis("mq.reconnect.delay.min.ms", 64)?,
        reconnect_max: given.millis("mq.reconnect.delay.max.ms", 8192)?,
        mq: Some(MqConfig {
            channel: name("mq.channel.name", given.must("mq.channel.name")?, CHANNEL_MAX)?,
            queue_manager: name(
                "mq.queue.manager",
                given.get("mq.queue.manager").unwrap_or_default(),
                NAME_MAX,
            )?,
            user: given.get("mq.user.name").map(|user| {
                (user.to_owned(), Password(given.get("mq.password").unwrap_or_default().to_owned()))
            }),
            backout_queue: match given.get("mq.backout.queue") {
                Some(queue) => Some(name("mq.backout.queue", queue, NAME_MAX)?),
                None => None,
            },
        }),
    })
}

fn name(key: &str, value: &str, most: usize) -> Result<String, BridgeError> {
    if value.len() > most {
        return Err(invalid(key, value, &format!("a name of at most {most} letters")));
    }
    Ok(value.to_owned())
}

/// `host(port)`, as MQ writes it. `whose`: what the port is of, for the error.
pub(super) fn address_of(entry: &str, whose: &str) -> Result<String, BridgeError> {
    let wrong =
        || invalid("mq.connection.name.list", entry, &format!("host(port), with the port of {whose}"));
    let (host, port) = entry.strip_suffix(')').and_then(|entry| entry.split_once('(')).ok_or_else(wrong)?;
    let port: u16 = port.trim().parse().map_err(|_| wrong())?;
    Ok(format!("{}:{port}", host.trim()))
}
