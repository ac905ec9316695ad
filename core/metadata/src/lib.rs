//! What every node believes about the cluster: KRaft's records, the immutable [`Image`] that they add up to, and the
//! [`Delta`] from one image to the next.
//!
//! It does not decide anything about the cluster (barnabas_quorum's controller does), and it does not know where
//! records come from: log, snapshot, or a test.
//!
//! Metadata path 3 of 4. Before: core/quorum (commits records). After: shell/broker (workers take over what changed).

pub mod access;
pub mod changes;
pub mod cluster;
pub mod config;
pub mod delta;
pub mod events;
pub mod features;
pub mod image;
pub mod resource;
pub mod snapshot;
pub mod topics;

pub use changes::{Changes, TopicChange};
pub use cluster::{Broker, Cluster, Controller, Endpoint, FeatureRange};
pub use delta::{Delta, ReplayError};
pub use features::{Feature, Features, MetadataVersion};
pub use image::{Image, Provenance};
pub use resource::{Configs, Resource, ResourceType, Values};
pub use topics::{LeaderRecoveryState, Partition, Placement, Topic, Topics};
