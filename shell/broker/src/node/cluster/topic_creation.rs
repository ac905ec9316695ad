//! Topics that Metadata requests create: how many of them this broker asks the controller for.
//!
//! Decided by `barnabas_api::AutoCreation`; here are its lock and its log line. A Metadata answer has no place for a
//! reason.

use crate::node::log_rate_limit::LogRateLimit;
use barnabas_api::AutoCreation;
use std::sync::Mutex;

/// One lock, held for a look at each name of a request that names topics which do not exist.
#[derive(Debug, Default)]
pub struct TopicCreation {
    pub admission: Mutex<AutoCreation>,
    pub limited: LogRateLimit<&'static str>,
}
