//! Probes the listener of a broker whose connection to the active controller has closed. core/quorum's `broker_probe`
//! decides what follows.

use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use barnabas_base::{BrokerEpoch, BrokerId};
use barnabas_quorum::broker_probe::{PAUSES_MS, Probe, TIMEOUT_MS, Verdict, concerns, verdict};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// This node has just begun to lead: it has heard of no broker yet, and the one beside the last leader may have died
/// with it.
pub fn probe_all(node: &Arc<Node>) {
    let image = node.cluster.image.load();
    for broker in image.cluster.alive().filter(|broker| broker.id != node.identity.broker_id) {
        probe(node, broker.id, broker.epoch);
    }
}

/// The connection on which this broker's life was heard of is closed.
pub fn connection_closed(node: &Arc<Node>, id: BrokerId, epoch: BrokerEpoch) {
    if !node.shutdown.is_wanted() && node.peers.controller.is_active() {
        node.cluster.suspected_brokers.lost(&node.cluster.image.load(), id, node.clock.monotonic());
        probe(node, id, epoch);
    }
}

fn probe(node: &Arc<Node>, id: BrokerId, epoch: BrokerEpoch) {
    let probing = node.clone();
    node.peers.links.handle().spawn(async move {
        if is_unreachable(&probing, id, epoch).await {
            if let Some(unsaid) = probing.workers.repeated.happened_to(Repeated::BrokerGone, id.to_string()) {
                tracing::info!(
                    "broker {id} (epoch {epoch}) is unreachable: it closed its connection and its \
                     port refuses connections{unsaid}"
                );
            }
            probing.peers.controller.broker_is_gone(id, epoch);
        }
    });
}

/// Whether no process listens where this registration of the broker did.
async fn is_unreachable(node: &Node, id: BrokerId, epoch: BrokerEpoch) -> bool {
    for (at, pause) in PAUSES_MS.into_iter().enumerate() {
        sleep(Duration::from_millis(pause)).await;
        let image = node.cluster.image.load_full();
        let Some(broker) = image.cluster.broker(id).filter(|broker| concerns(Some(broker), epoch)) else {
            return false;
        };
        let Some(endpoint) = broker.endpoints.first() else { return false };
        let connecting = TcpStream::connect((&*endpoint.host, endpoint.port));
        let probe = match timeout(Duration::from_millis(TIMEOUT_MS), connecting).await {
            Ok(Ok(_)) => Probe::Connected,
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Probe::Refused,
            Ok(Err(_)) | Err(_) => Probe::Failed,
        };
        match verdict(probe, at + 1 == PAUSES_MS.len()) {
            Verdict::Gone => return true,
            Verdict::Again => {}
            Verdict::Unknown => return false,
        }
    }
    false
}
