//! The words that every crate shares: offsets, epochs, ids, error codes, units.
//!
//! Values only: nothing here decides, waits or allocates beyond itself. Everything else may depend on this crate;
//! it depends on nothing of ours.

mod calendar;
mod epochs;
mod error_code;
mod ids;
mod map;
mod partition_for;
mod random;
mod text;
mod time;
mod topic;
mod uuid;

pub use calendar::Date;
pub use epochs::{EpochEntry, LeaderEpochs};
pub use error_code::ErrorCode;
pub use ids::{
    BrokerEpoch, BrokerId, ConnectionNumber, CoordinatorEpoch, LeaderEpoch, Offset, PartitionEpoch,
    PartitionIndex, ProducerEpoch, ProducerId, Sequence,
};
pub use map::{HashState, Map, Set, seed_maps};
pub use partition_for::{java_hash, partition_for};
pub use random::split_mix_64;
pub use text::Text;
pub use time::{DurationMs, MonotonicMs, TimestampMs};
pub use topic::{
    TOPIC_NAME_BYTES_MAX, TopicNameError, TopicPartition, check_topic_name, is_internal_topic, name,
};
pub use uuid::{DirectoryId, TopicId, Uuid};
