//! Links to other brokers for what coordinators say: markers to the leaders of partitions, questions of those leaders about
//! transactions, the state of share groups, the ends of logs.
//!
//! One link for each broker and each [`Purpose`]: answers on a connection come in the order of the requests, and a marker that waits for
//! its replicas is not to hold up a producer who waits for a coordinator's word. What can be said of many at once is gathered by a
//! [`Courier`]. All of it lives on the links' thread.
//!
//! Neighbours: markers/away.rs, dispatch/verification.rs, share_persister/away.rs, which ask; links.rs, the connections.

mod courier;

pub use courier::{Courier, Parcel};

use crate::dispatch::Verification;
use crate::links::{Link, LinkSettings};
use crate::markers::MarkerParcel;
use crate::node::Node;
use crate::replica::line::address_of;
use barnabas_base::BrokerId;
use barnabas_partition::FetcherId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests of one link that are under way.
const IN_FLIGHT_MAX: usize = 64;

/// For a connection and its handshake: what Kafka gives one (`socket.connection.setup.timeout.ms`).
const CONNECT: Duration = Duration::from_secs(10);

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Markers,
    Verification,
    ShareState,
    LogEnds,
}

impl Purpose {
    /// What the other broker sees as the client id.
    fn client_id(self) -> &'static str {
        match self {
            Self::Markers => "transaction-markers",
            Self::Verification => "transaction-verification",
            Self::ShareState => "share-state",
            Self::LogEnds => "log-ends",
        }
    }
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct BrokerLinks {
    known: Mutex<BTreeMap<(BrokerId, Purpose), Link>>,
    pub markers: Courier<MarkerParcel>,
    pub verification: Courier<Verification>,
}

impl BrokerLinks {
    /// The link to a broker, where it listens now. `None`: it is not registered, or has no listener for brokers.
    pub fn to(&self, node: &Node, broker: BrokerId, purpose: Purpose) -> Option<Link> {
        let (image, config) = (node.image.load(), node.config.load());
        let address = address_of(&image, FetcherId { leader: broker, number: 0 }, &config)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = known.get(&(broker, purpose)).filter(|link| *link.address() == address) {
            return Some(link.clone());
        }
        // Brokers that the cluster has forgotten have no links.
        known.retain(|(id, _), _| image.cluster.broker(*id).is_some());
        let settings = LinkSettings {
            in_flight_max: IN_FLIGHT_MAX,
            timeout: CONNECT,
            ..LinkSettings::new(purpose.client_id())
        };
        let link = Link::start(node.links.handle(), address, settings);
        known.insert((broker, purpose), link.clone());
        Some(link)
    }
}

/// How long another broker may take for what waits for replicas: as long as it says itself, and a while for the way.
pub fn patience(node: &Node) -> Duration {
    const WAY: Duration = Duration::from_secs(5);
    Duration::from_millis(u64::try_from(node.config.load().long("request.timeout.ms")).unwrap_or(30_000))
        + WAY
}
