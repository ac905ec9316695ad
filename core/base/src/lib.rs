//! The words that every crate shares: offsets, epochs, ids, error codes, units.
//!
//! Values only: nothing here decides, waits or allocates beyond itself. Everything else may depend on this crate;
//! it depends on nothing of ours.

mod calendar;
mod error_code;
mod ids;
mod map;
pub mod properties;
mod random;
mod rate_limit;
mod secret;
mod text;
mod time;

pub use calendar::Date;
pub use error_code::ErrorCode;
pub use ids::epochs::{EpochEntry, LeaderEpochs};
pub use ids::partition_for::{java_hash, partition_for};
pub use ids::topic::{
    TOPIC_NAME_BYTES_MAX, TopicNameError, TopicPartition, check_topic_name, is_internal_topic, name,
};
pub use ids::uuid::{DirectoryId, TopicId, Uuid};
pub use ids::{
    BrokerEpoch, BrokerId, ConnectionNumber, CoordinatorEpoch, LeaderEpoch, Offset, PartitionEpoch,
    PartitionIndex, ProducerEpoch, ProducerId, Sequence,
};
pub use map::{HashState, Map, Set, seed_maps};
pub use random::split_mix_64;
pub use rate_limit::{Burst, GroupedRateLimit, RateLimit, Unsaid};
pub use secret::Secret;
pub use text::Text;
pub use time::{DurationMs, MonotonicMs, TimestampMs};
