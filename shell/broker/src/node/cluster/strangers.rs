//! Nodes that are not whom this one expects, and have been named lately (requests/quorum/strangers.rs).

use crate::node::seldom::Seldom;
use barnabas_base::BrokerId;
use std::net::IpAddr;

/// Who has been told of.
#[derive(Debug, Default)]
pub struct Strangers {
    pub foreign: Seldom<IpAddr>,
    pub doubles: Seldom<BrokerId>,
}
