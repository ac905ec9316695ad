//! What this node asks of other nodes: the controller, brokers, leaders.

pub mod broker_links;
pub mod controller;
pub mod planted;
pub mod producer_ids;
pub mod replication;

use crate::config::tls::NodeTls;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::links::LinkThread;
use broker_links::BrokerLinks;
use controller::ControllerHandle;
use producer_ids::ProducerIds;
use replication::Replication;

/// See the file's header.
#[derive(Debug)]
pub struct Peers {
    /// TLS for connections to other nodes.
    pub tls: NodeTls,
    pub controller: ControllerHandle,
    /// Where connections to other nodes live.
    pub links: LinkThread,
    /// To other brokers, for coordinators.
    pub broker_links: BrokerLinks,
    pub producer_ids: ProducerIds,
    pub replication: Replication,
}

impl Peers {
    pub fn new(config: &BrokerConfig, controller: ControllerHandle, links: LinkThread, tls: NodeTls) -> Self {
        Self {
            tls,
            controller,
            links,
            broker_links: BrokerLinks::default(),
            producer_ids: ProducerIds::default(),
            replication: Replication::new(config),
        }
    }
}
