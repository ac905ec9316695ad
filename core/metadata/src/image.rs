//! Everything that a node believes about the cluster, at one offset of the metadata log.
//!
//! Immutable: an [`Image`] is the cluster at one metadata offset, and later records do not change
//! it. A clone costs a few pointers; the next image shares all that did not change.
//!
//! Neighbours: [`crate::Delta`] makes the next image out of records; [`crate::snapshot`] turns an image into records.

use barnabas_base::{LeaderEpoch, Offset, ProducerId, TimestampMs};

use crate::access::{Acls, ClientQuotas, DelegationTokens, Scram};
use crate::cluster::Cluster;
use crate::features::{Features, MetadataVersion};
use crate::resource::Configs;
use crate::topics::Topics;

/// Up to where the log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provenance {
    /// The offset after the last record.
    pub end: Offset,
    pub last_epoch: LeaderEpoch,
    /// When the last batch was appended, by its leader's clock.
    pub last_timestamp: TimestampMs,
}

impl Default for Provenance {
    fn default() -> Self {
        Self { end: Offset::ZERO, last_epoch: LeaderEpoch::NONE, last_timestamp: TimestampMs::NONE }
    }
}

/// The cluster at one offset of the metadata log. Equal where the belief is equal, wherever it was read from:
/// [`Provenance`] does not take part.
#[derive(Debug, Clone)]
pub struct Image {
    pub provenance: Provenance,
    pub features: Features,
    pub cluster: Cluster,
    pub topics: Topics,
    pub configs: Configs,
    pub quotas: ClientQuotas,
    /// The next producer id to allocate; [`ProducerId::NONE`] before the first allocation.
    pub next_producer_id: ProducerId,
    pub acls: Acls,
    pub scram: Scram,
    pub tokens: DelegationTokens,
}

impl Default for Image {
    /// Nothing known: what a node believes before the first record.
    fn default() -> Self {
        Self {
            provenance: Provenance::default(),
            features: Features::default(),
            cluster: Cluster::default(),
            topics: Topics::default(),
            configs: Configs::default(),
            quotas: ClientQuotas::default(),
            next_producer_id: ProducerId::NONE,
            acls: Acls::default(),
            scram: Scram::default(),
            tokens: DelegationTokens::default(),
        }
    }
}

impl Image {
    pub fn metadata_version(&self) -> MetadataVersion {
        self.features.metadata_version_or_min()
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        self.features == other.features
            && self.cluster == other.cluster
            && self.topics == other.topics
            && self.configs == other.configs
            && self.quotas == other.quotas
            && self.next_producer_id == other.next_producer_id
            && self.acls == other.acls
            && self.scram == other.scram
            && self.tokens == other.tokens
    }
}
