//! The node's listeners: bound before anything is written, accepting once it serves; controllers' listeners accept
//! earlier.
//!
//! Next: connection.rs, on the worker that a connection is dealt to.

pub mod amqp;
pub mod console;
pub mod handshakes;
pub mod mq;
mod own_logs;
pub mod peer_addresses;

use super::Failure;
use crate::mailbox::Command;
use crate::mailbox::NewConnection;
use crate::node::Node;
use crate::node::workers::connection_places::ConnectionPlaces;
use crate::requests::session::MOVE_PATIENCE;
use amqp::OwnQueues;
use barnabas_base::Text;
use barnabas_config::{Listener, NodeConfig};
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::{Acceptor, ConnectionSlot, Detached, Entrance, SocketOptions};
use barnabas_security::quotas::places::Room;
use console::OwnConsole;
use handshakes::{Handshakes, Opening};
use mq::OwnQueueManager;
use std::net::SocketAddr;
use std::sync::Arc;

/// The listeners that do not speak Kafka's protocol, where they are set.
#[derive(Debug)]
pub struct Beside {
    pub metrics: Option<std::net::TcpListener>,
    pub console: Option<OwnConsole>,
    pub amqp: Option<OwnQueues>,
    pub mq: Option<OwnQueueManager>,
}

type Bound = (Vec<Acceptor>, Vec<(Listener, SocketAddr)>, ConnectionPlaces);

pub fn bind(config: &NodeConfig, broker_config: &BrokerConfig, descriptors: usize) -> Result<Bound, Failure> {
    let all = &config.listeners.all;
    let room = Room::of(descriptors, all.iter().any(|listener| listener.is_reserved));
    let names = all.iter().map(|listener| listener.endpoint.listener.as_str().to_owned());
    let places = ConnectionPlaces::open(broker_config, names.collect(), room)?;
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
    for (number, listener) in all.iter().enumerate() {
        let (host, port) = (&listener.endpoint.host, listener.endpoint.port);
        let acceptor = Acceptor::bind(host, port, places.gate().clone(), options)?
            .entrance(Entrance { listener: number, is_reserved: listener.is_reserved })
            .holding(room.held / all.len().max(1));
        listeners.push((listener.clone(), acceptor.local_addr()));
        acceptors.push(acceptor);
    }
    Ok((acceptors, listeners, places))
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
    (open(node, early, handshakes), late)
}

/// All of these listen when the first of them answers.
pub fn open(
    node: &Arc<Node>,
    mut acceptors: Vec<(usize, Acceptor)>,
    handshakes: Option<&Handshakes>,
) -> Vec<tokio::task::JoinHandle<()>> {
    acceptors.retain(|(listener, acceptor)| {
        acceptor.listen().inspect_err(|error| has_failed(node, *listener, error)).is_ok()
    });
    let accept = |(listener, acceptor)| {
        let accepting = accept(node.clone(), listener, acceptor, handshakes.cloned());
        node.peers.links.handle().spawn(accepting)
    };
    acceptors.into_iter().map(accept).collect()
}

fn has_failed(node: &Node, listener: usize, error: &std::io::Error) {
    let at =
        node.identity.listeners.get(listener).map(|(_, address)| address.to_string()).unwrap_or_default();
    tracing::error!(%error, "the listener on {at} failed; the node stops");
    node.shutdown.failed("a listener has stopped");
}

/// Accepts connections and deals them out to the workers in turn; with TLS, after their handshake.
async fn accept(node: Arc<Node>, listener: usize, acceptor: Acceptor, handshakes: Option<Handshakes>) {
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
        has_failed(&node, listener, &error);
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
    let (reader, login, software, patience) = (None, None, None, MOVE_PATIENCE);
    let new = NewConnection { stream, certified, peer, listener, slot, reader, patience, login, software };
    if !node.workers.mailboxes[worker].try_send(Command::Connection(new)) {
        node.workers.meter.connections_refused.one();
        if !node.shutdown.is_wanted() {
            node.workers.complaints.refused(peer, "the worker has too much to do");
        }
    }
}
