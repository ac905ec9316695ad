//! Nodes that are not whom this one expects, and have been named lately (requests/quorum/identity_mismatch.rs).

use crate::node::log_rate_limit::LogRateLimit;
use barnabas_base::BrokerId;
use std::net::IpAddr;

/// Who has been told of.
#[derive(Debug, Default)]
pub struct IdentityMismatches {
    pub foreign: LogRateLimit<IpAddr>,
    pub doubles: LogRateLimit<BrokerId>,
}
