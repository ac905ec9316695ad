//! What comes back to a worker from other brokers: a leader's answers to its followers, the controller's to its
//! leaders.
//!
//! Neighbours: replica/fetch_connection.rs and replica/isr.rs, which ask; partition_worker/replica_fetcher.rs and
//! partition_worker/replication/followers.rs, which hear.

use super::PartitionKey;
use barnabas_api::replication::alter_partition::Altered;
use barnabas_api::replication::fetch;
use barnabas_base::{ErrorCode, Offset};
use barnabas_net::links::LinkError;
use barnabas_partition::{FetchPosition, FetcherId};
use barnabas_wire::messages::FetchResponse;

/// One answer, or that there is none.
#[derive(Debug)]
pub enum ReplicationEvent {
    /// To the request that this fetcher had under way.
    Fetched { at: FetcherId, answer: Result<Box<FetchResponse>, LinkError> },
    /// Where the leader's log starts and ends, for a follower that asked from `asked` and found nothing there.
    Ends { key: PartitionKey, asked: FetchPosition, ends: Result<(Offset, Offset), ErrorCode> },
    /// What the leader has where a damaged replica asked beside its fetches.
    Aside { key: PartitionKey, asked: FetchPosition, answer: Result<fetch::Answer, ErrorCode> },
    /// To the partition's question of that number.
    Altered { key: PartitionKey, number: u32, answer: Result<Altered, ErrorCode> },
}
