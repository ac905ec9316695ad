//! What the owner of a partition is asked on behalf of share groups, and what it answers. Data only.

mod waiters;

pub use barnabas_replica::{ShareAckItem, ShareAckOutcome, ShareDeclined, ShareKey, ShareRead};
pub use waiters::ShareWaiters;

use super::{PartitionKey, Waiter};
use barnabas_api::dead_letters::NoDestination;
use barnabas_base::{ErrorCode, Offset, Text};
use barnabas_coordinator::ShareState;
use barnabas_partition::{AcquireMode, Isolation, WriteId};
use std::sync::Arc;
use tokio::sync::oneshot;

#[derive(Debug)]
pub enum ShareCommand {
    Fetch(ShareFetchCommand),
    Acknowledge(ShareAckCommand),
    /// A member's session has ended.
    Release {
        group: Text,
        member: Text,
        partitions: Vec<PartitionKey>,
        is_last: bool,
    },
    /// Who was woken for these does not come: the next one is to be.
    Pass {
        group: Text,
        partitions: Vec<PartitionKey>,
    },
    /// The state that was asked for when this was the `number`th share partition.
    Loaded {
        key: ShareKey,
        number: u64,
        state: Result<Arc<ShareState>, ErrorCode>,
    },
    Written {
        key: ShareKey,
        number: u64,
        ids: Vec<WriteId>,
        result: Result<(), ErrorCode>,
    },
    /// Dead letters of these records are written, or cannot be.
    Delivered {
        key: ShareKey,
        number: u64,
        /// First and last.
        ranges: Vec<(Offset, Offset)>,
        result: Result<(), Undelivered>,
    },
}

/// One member's fetch from partitions of one worker.
#[derive(Debug)]
pub struct ShareFetchCommand {
    pub group: Text,
    pub member: Text,
    pub isolation: Isolation,
    pub mode: AcquireMode,
    pub batch_size: i64,
    /// For all of this command's items together, as are the bytes.
    pub records_max: i64,
    pub max_bytes: usize,
    /// With less to read nothing is acquired.
    pub bytes_min: usize,
    pub items: Vec<ShareItem>,
    /// Noted with every item where nothing was acquired from any.
    pub waiter: Option<Arc<Waiter>>,
    pub reply: oneshot::Sender<Vec<ShareOutcome>>,
}

#[derive(Debug, Clone, Copy)]
pub struct ShareItem {
    pub slot: u32,
    pub partition: PartitionKey,
    pub max_bytes: usize,
}

#[derive(Debug)]
pub struct ShareOutcome {
    pub slot: u32,
    pub result: Result<ShareRead, ShareDeclined>,
}

/// One member's acknowledgements for partitions of one worker.
#[derive(Debug)]
pub struct ShareAckCommand {
    pub group: Text,
    pub member: Text,
    pub items: Vec<ShareAckItem>,
    pub reply: oneshot::Sender<Vec<ShareAckOutcome>>,
}

/// Why letters were not written. For the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    #[error(transparent)]
    NoDestination(#[from] NoDestination),
    #[error("topic {topic} cannot be created: {code}")]
    NotCreated { topic: Text, code: ErrorCode },
    #[error("topic {topic} did not take them: {code}")]
    Refused { topic: Text, code: ErrorCode },
    #[error("topic {topic} could not be written, however often that was tried")]
    TriedInVain { topic: Text },
    #[error("they cannot be put into a batch")]
    NoBatch,
}
