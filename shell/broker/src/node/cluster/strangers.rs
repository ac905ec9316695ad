//! Nodes that are not whom this one expects, and have been named lately (requests/quorum/strangers.rs).

use crate::node::log_rate_limit::LogRateLimit;
use barnabas_base::BrokerId;
use std::net::IpAddr;

/// Who has been told of.
#[derive(Debug, Default)]
pub struct Strangers {
    pub foreign: LogRateLimit<IpAddr>,
    pub doubles: LogRateLimit<BrokerId>,
}
