//! What this broker asks of others for its coordinators: markers to the leaders of partitions, questions of those
//! leaders about transactions, the state of share groups, the ends of logs; for their dead letters; for the audit log's
//! lines; and for batches whose partition has just got another leader.
//!
//! What can be asked of many at once is gathered by a [`Courier`](crate::node::peers::broker_links::Courier)
//! (broker_requests/courier.rs). All of it
//! lives on the links' thread.
//!
//! Always true:
//! 1. no request waits for a broker that the cluster has fenced ([`while_there`]): others are responsible by then
//! 2. what waits is bounded by the couriers' and the links' queues, and counted
//!    ([`Awaited`](barnabas_net::links::Awaited))
//!
//! Neighbours: markers/remote.rs, requests/transactions/verification.rs, share_persister/remote.rs and ends.rs,
//! own_records/remote.rs, requests/produce/forwarding.rs, which ask; node/peers/broker_links.rs, which holds the
//! links.

mod courier;

pub use courier::Parcel;

use crate::node::Node;
use crate::node::peers::broker_links::{BrokerLinks, Purpose};
use crate::routing::addresses::{address_of, listener};
use barnabas_base::BrokerId;
use barnabas_net::links::{Link, LinkSettings};
use std::sync::PoisonError;
use std::time::Duration;

/// Requests of one link that are under way.
const IN_FLIGHT_MAX: usize = 64;

/// For a connection and its handshake: what Kafka gives one (`socket.connection.setup.timeout.ms`).
const CONNECT: Duration = Duration::from_secs(10);

/// How often it is looked whether a broker that is asked something is still there.
const LOOK: Duration = Duration::from_millis(100);

impl BrokerLinks {
    /// The link to a broker, where it listens now. `None`: it is not registered, or has no listener for brokers.
    pub fn to(&self, node: &Node, broker: BrokerId, purpose: Purpose) -> Option<Link> {
        let (image, config) = (node.cluster.image.load(), node.cluster.config.load());
        let address = address_of(&image, broker, listener(&config))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = known.get(&(broker, purpose)).filter(|link| *link.address() == address) {
            return Some(link.clone());
        }
        // Brokers that the cluster has forgotten have no links.
        known.retain(|(id, _), _| image.cluster.broker(*id).is_some());
        let settings = LinkSettings {
            in_flight_max: IN_FLIGHT_MAX,
            timeout: CONNECT,
            // A marker that is still on its way when it is given up may be sent to the partition's next leader, and its
            // transaction's successor be open when the first one arrives.
            is_cut_off: purpose == Purpose::Markers,
            login: node.logins.to_brokers.clone(),
            tls: node.peers.tls.brokers.clone(),
            ..LinkSettings::new(purpose.client_id())
        };
        let link = Link::start(node.peers.links.handle(), address, settings);
        known.insert((broker, purpose), link.clone());
        Some(link)
    }

    /// The link ends, with its requests in flight, once all holders have dropped it.
    fn forget(&self, broker: BrokerId, purpose: Purpose) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&(broker, purpose));
    }
}

/// Whether what is asked of a broker may be answered by it: the cluster has not fenced it.
pub fn is_there(node: &Node, broker: BrokerId) -> bool {
    node.cluster.image.load().cluster.broker(broker).is_some_and(|known| !known.fenced)
}

/// Waits for what is asked of a broker, as long as it is there. `None`: it is not, and who is asked has changed: the
/// patience for a broker that is alive and waits for its replicas is far longer than it takes to fence one that is
/// silent.
pub async fn while_there<T>(
    node: &Node,
    (broker, purpose): (BrokerId, Purpose),
    asked: impl Future<Output = T>,
) -> Option<T> {
    let leaves = async {
        while is_there(node, broker) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        answer = asked => Some(answer),
        () = leaves => {
            node.peers.broker_links.forget(broker, purpose);
            None
        }
    }
}

/// How long another broker may take for what waits for replicas: as long as it says itself, and a while for the way.
pub fn patience(node: &Node) -> Duration {
    const WAY: Duration = Duration::from_secs(5);
    Duration::from_millis(
        u64::try_from(node.cluster.config.load().long("request.timeout.ms")).unwrap_or(30_000),
    ) + WAY
}
