//! A broker's connection to the active controller has closed: is its process gone?
//!
//! A process that dies closes its connections at once, long before its session runs out; but so does a mere reset. So the
//! controller knocks at the broker's own listener: where connections are refused, nobody is left there, and the broker is fenced
//! without more ado. Where one comes about, or nothing is heard at all, its heartbeats decide.

use crate::node::Node;
use barnabas_base::{BrokerEpoch, BrokerId};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// A process that is dying may still be connected to for a moment: the listener goes with the last of its files.
const KNOCKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(200)];
const PATIENCE: Duration = Duration::from_secs(1);

/// This node has just begun to lead: it has heard of no broker yet, and the one beside the last leader may have died with it.
pub fn knock_at_all(node: &Arc<Node>) {
    let image = node.image.load();
    for broker in image.cluster.alive().filter(|broker| broker.id != node.broker_id) {
        knock(node, broker.id, broker.epoch);
    }
}

/// The connection on which this broker's life was heard of is closed.
pub fn connection_closed(node: &Arc<Node>, id: BrokerId, epoch: BrokerEpoch) {
    if !node.shutdown.is_wanted() && node.controller.is_active() {
        node.lost_touch.lost(&node.image.load(), id, node.clock.monotonic());
        knock(node, id, epoch);
    }
}

fn knock(node: &Arc<Node>, id: BrokerId, epoch: BrokerEpoch) {
    let knocking = node.clone();
    node.links.handle().spawn(async move {
        if is_gone(&knocking, id, epoch).await {
            tracing::info!(
                "broker {id} (epoch {epoch}) is unreachable: it closed its connection and its \
                port refuses connections"
            );
            knocking.controller.broker_is_gone(id, epoch);
        }
    });
}

/// Whether nobody listens where this life of the broker did.
async fn is_gone(node: &Node, id: BrokerId, epoch: BrokerEpoch) -> bool {
    for pause in KNOCKS {
        sleep(pause).await;
        let image = node.image.load_full();
        let Some(broker) = image.cluster.broker(id).filter(|broker| broker.epoch == epoch) else {
            return false;
        };
        if broker.fenced {
            return false;
        }
        let Some(endpoint) = broker.endpoints.first() else { return false };
        let connecting = TcpStream::connect((&*endpoint.host, endpoint.port));
        if let Ok(Err(error)) = timeout(PATIENCE, connecting).await
            && error.kind() == ErrorKind::ConnectionRefused
        {
            return true;
        }
    }
    false
}
