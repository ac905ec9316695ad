//! Probes the listener of a broker whose connection to the active controller has closed. core/quorum's `broker_probe`
//! decides what follows.

use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use barnabas_base::{BrokerEpoch, BrokerId};
use barnabas_quorum::broker_probe::{PATIENCE, Probe, TIMEOUT, Verdict, concerns, pause, verdict};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
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
    let started = barnabas_clock::now();
    for number in 0.. {
        sleep(pause(number)).await;
        let image = node.cluster.image.load_full();
        let Some(broker) = image.cluster.broker(id).filter(|broker| concerns(Some(broker), epoch)) else {
            return false;
        };
        let Some(endpoint) = broker.endpoints.first() else { return false };
        let probe = probe_listener(&endpoint.host, endpoint.port, PATIENCE).await;
        match verdict(probe, barnabas_clock::since(started)) {
            Verdict::Gone => return true,
            Verdict::Again => {}
            Verdict::Unknown => return false,
        }
    }
    false
}

/// Connects, and holds the connection for so long.
async fn probe_listener(host: &str, port: u16, hold: Duration) -> Probe {
    let connecting = TcpStream::connect((host, port));
    match timeout(TIMEOUT, connecting).await {
        Ok(Ok(mut connection)) => {
            // A broker says nothing before it is asked: whatever ends this read is the connection's end.
            match timeout(hold, connection.read(&mut [0])).await {
                Ok(_) => Probe::Closed,
                Err(_) => Probe::Open,
            }
        }
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Probe::Refused,
        Ok(Err(_)) | Err(_) => Probe::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn listener_that_still_accepts_and_then_goes_is_found_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("bound").port();
        // Connections that wait for their accept, as those at a process that exits do.
        let probing = tokio::spawn(probe_listener("127.0.0.1", port, LONG));
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(!probing.is_finished(), "the connection is held");
        drop(listener);
        assert_eq!(probing.await.expect("no panic"), Probe::Closed);
        assert_eq!(probe_listener("127.0.0.1", port, LONG).await, Probe::Refused);
    }

    #[tokio::test]
    async fn listener_that_stays_is_open() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(probe_listener("127.0.0.1", port, Duration::from_millis(50)).await, Probe::Open);
    }
}
