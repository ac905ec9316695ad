//! The node's listeners: bound before anything is written, accepting once it serves; controllers' listeners accept
//! earlier.
//!
//! Next: connection.rs, on the worker that a connection is dealt to.

pub mod handshakes;
pub mod insecure;
pub mod peer_addresses;

use super::Failure;
use crate::mailbox::Command;
use crate::mailbox::NewConnection;
use crate::node::Node;
use crate::requests::session::MOVE_PATIENCE;
use barnabas_base::Text;
use barnabas_config::{Listener, NodeConfig};
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::{Acceptor, ConnectionLimits, ConnectionSlot, Detached, Gate, SocketOptions};
use handshakes::{Handshakes, Opening};
use std::net::SocketAddr;
use std::sync::Arc;

const PER_IP: &str = "max.connections.per.ip";
/// Connections for brokers and controllers alone: a part of all, and no more than a large cluster needs.
const RESERVED_SHARE: usize = 8;
const RESERVED_MAX: usize = 128;
/// Connections over the quota of their address, until they are closed: a part of all as well.
const HELD_SHARE: usize = 16;
const HELD_MAX: usize = 256;

type Bound = (Vec<Acceptor>, Vec<(Listener, SocketAddr)>);

pub fn bind(config: &NodeConfig, broker_config: &BrokerConfig, descriptors: usize) -> Result<Bound, Failure> {
    let count = |key| usize::try_from(broker_config.long(key)).unwrap_or(usize::MAX);
    let has_reserved = config.listeners.all.iter().any(|listener| listener.is_reserved);
    let reserved_max = if has_reserved { (descriptors / RESERVED_SHARE).min(RESERVED_MAX) } else { 0 };
    let held_max = (descriptors / HELD_SHARE).min(HELD_MAX);
    let gate = Gate::new(ConnectionLimits {
        connections_max: count("max.connections").min(descriptors - reserved_max - held_max),
        reserved_max,
        connections_per_ip_max: is_given(broker_config, PER_IP).then(|| count(PER_IP)),
        connections_per_ip_overrides: per_ip_overrides(broker_config)?,
        per_ip_second_max: u32::try_from(broker_config.long("connections.per.ip.second.max"))
            .unwrap_or(u32::MAX),
    });
    let buffer = |key| usize::try_from(broker_config.long(key)).ok();
    let options = SocketOptions {
        backlog: backlog(broker_config),
        send_buffer_bytes: buffer("socket.send.buffer.bytes")
            .filter(|_| is_given(broker_config, "socket.send.buffer.bytes")),
        receive_buffer_bytes: buffer("socket.receive.buffer.bytes")
            .filter(|_| is_given(broker_config, "socket.receive.buffer.bytes")),
    };
    let mut acceptors = Vec::new();
    let mut listeners = Vec::new();
    for listener in &config.listeners.all {
        let acceptor =
            Acceptor::bind(&listener.endpoint.host, listener.endpoint.port, gate.clone(), options)?
                .reserved(listener.is_reserved)
                .holding(held_max / config.listeners.all.len().max(1));
        listeners.push((listener.clone(), acceptor.local_addr()));
        acceptors.push(acceptor);
    }
    Ok((acceptors, listeners))
}

/// Kafka's default of 50 makes thousands of clients that come at once wait seconds for their retransmitted SYN.
fn backlog(broker_config: &BrokerConfig) -> i32 {
    const KEY: &str = "socket.listen.backlog.size";
    if is_given(broker_config, KEY) { broker_config.int(KEY).max(1) } else { 1024 }
}

/// Kafka's default of 100 KiB would switch the kernel's own tuning off: it counts only where the operator set it.
fn is_given(broker_config: &BrokerConfig, key: &str) -> bool {
    broker_config.given().get(key).is_some()
}

fn per_ip_overrides(broker_config: &BrokerConfig) -> Result<Vec<(std::net::IpAddr, usize)>, Failure> {
    const KEY: &str = "max.connections.per.ip.overrides";
    let mut overrides = Vec::new();
    for entry in broker_config.list(KEY).into_iter().filter(|entry| !entry.is_empty()) {
        // An IPv6 address holds colons itself: the number stands after the last one.
        let parsed = entry
            .rsplit_once(':')
            .and_then(|(address, count)| Some((address.trim().parse().ok()?, count.trim().parse().ok()?)));
        overrides.push(parsed.ok_or_else(|| {
            format!("{KEY}: '{entry}' is no address and number. Example: {KEY}=10.0.0.7:100")
        })?);
    }
    Ok(overrides)
}

type Accepting = (Vec<tokio::task::JoinHandle<()>>, Vec<(usize, Acceptor)>);

/// Controllers' listeners listen before anything else, unless `early.start.listeners` leaves them out: without them no
/// quorum of several comes about. Returns the others.
pub fn accept_early(
    node: &Arc<Node>,
    acceptors: Vec<Acceptor>,
    handshakes: Option<&Handshakes>,
) -> Accepting {
    let acceptors = acceptors.into_iter().enumerate();
    let (early, late): (Vec<_>, Vec<_>) =
        acceptors.partition(|(listener, _)| node.identity.listeners[*listener].0.is_early);
    let open = |(listener, acceptor)| {
        node.peers.links.handle().spawn(accept(node.clone(), listener, acceptor, handshakes.cloned()))
    };
    (early.into_iter().map(open).collect(), late)
}

/// Accepts connections and deals them out to the workers in turn; with TLS, after their handshake.
pub async fn accept(node: Arc<Node>, listener: usize, acceptor: Acceptor, handshakes: Option<Handshakes>) {
    let tls = node.peers.tls.listeners.get(listener).cloned().flatten();
    let tls = tls.map(|tls| (tls, handshakes.expect("invariant: a node with TLS has threads for it")));
    let mut next = listener;
    let take = |stream, peer, slot| {
        next = (next + 1) % node.workers.count;
        let worker = next;
        node.workers.meter.connections_accepted.one();
        let Some((tls, handshakes)) = &tls else {
            deal(&node, worker, (Detached::plain(stream), None), peer, listener, slot);
            return;
        };
        let opening = Opening { stream, peer, slot };
        let to = node.clone();
        let take =
            move |stream, certified, slot| deal(&to, worker, (stream, certified), peer, listener, slot);
        handshakes.shake(node.clone(), tls.clone(), opening, take);
    };
    let refuse = |peer, refused| {
        node.workers.meter.connections_refused.one();
        node.workers.complaints.refused(peer, refused);
    };
    let quotas = node.workers.connection_quotas.of_listener(listener, node.clock);
    if let Err(error) = acceptor.run(quotas, take, refuse).await {
        let at =
            node.identity.listeners.get(listener).map(|(_, address)| address.to_string()).unwrap_or_default();
        tracing::error!(%error, "the listener on {at} failed; the node stops");
        node.shutdown.failed("a listener has stopped");
    }
}

/// Hands a connection to a worker, which must have room for it: a connection is not waited with.
fn deal(
    node: &Node,
    worker: usize,
    (stream, certified): (Detached, Option<Text>),
    peer: SocketAddr,
    listener: usize,
    slot: ConnectionSlot,
) {
    let (reader, login, patience) = (None, None, MOVE_PATIENCE);
    let new = NewConnection { stream, certified, peer, listener, slot, reader, patience, login };
    if !node.workers.mailboxes[worker].try_send(Command::Connection(new)) {
        node.workers.meter.connections_refused.one();
        if !node.shutdown.is_wanted() {
            node.workers.complaints.refused(peer, "the worker has too much to do");
        }
    }
}
