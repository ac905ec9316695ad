//! Replicas whose files were in a log directory which this node does not have any more, until it is settled what
//! becomes of them (upkeep/placement/lost.rs).

use crate::mailbox::PartitionKey;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// What was found at the registration and is not settled yet.
#[derive(Debug, Default)]
pub struct Lost {
    pub has_looked: AtomicBool,
    pub has_any: AtomicBool,
    pub keys: Mutex<Vec<PartitionKey>>,
}
