//! What the workers of a node share of replication: questions to the controller, throttles, replicas on their way here.

pub mod arrivals;
pub mod isr;
pub mod throttles;

use crate::node::peers::planted::Planted;
use barnabas_metadata::config::BrokerConfig;
use throttles::Throttles;

/// What the workers of a node share of replication.
#[derive(Debug)]
pub struct Replication {
    pub isr: isr::AlterPartitionQueue,
    pub throttles: Throttles,
    pub arrivals: arrivals::Arrivals,
    #[cfg_attr(not(debug_assertions), allow(dead_code, reason = "tests alone plant mistakes"))]
    pub planted: Planted,
}

impl Replication {
    pub fn new(config: &BrokerConfig) -> Self {
        Self {
            isr: isr::AlterPartitionQueue::default(),
            throttles: Throttles::new(config),
            arrivals: arrivals::Arrivals::default(),
            planted: Planted::from_env(),
        }
    }
}
