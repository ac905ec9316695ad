//! The cluster as this node sees it: the image, the configuration, and which brokers are in doubt.

pub mod authority;
pub mod callers;
pub mod identity_mismatch;
pub mod known_by;
pub mod suspected_brokers;
pub mod topic_creation;
pub mod unknown_topics;

use arc_swap::ArcSwap;
use authority::Authority;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use identity_mismatch::IdentityMismatches;
use known_by::KnownBy;
use suspected_brokers::SuspectedBrokers;
use topic_creation::TopicCreation;
use unknown_topics::UnknownTopics;

/// See the file's header. A reader of the image sees one moment of the cluster.
#[derive(Debug)]
pub struct ClusterView {
    pub image: ArcSwap<Image>,
    pub authority: Authority,
    pub known_by: KnownBy,
    pub config: ArcSwap<BrokerConfig>,
    pub suspected_brokers: SuspectedBrokers,
    pub identity_mismatches: IdentityMismatches,
    pub topic_creation: TopicCreation,
    pub unknown_topics: UnknownTopics,
}

impl ClusterView {
    pub fn new(config: BrokerConfig) -> Self {
        Self {
            image: ArcSwap::default(),
            authority: Authority::new(&config),
            known_by: KnownBy::default(),
            config: ArcSwap::from_pointee(config),
            suspected_brokers: SuspectedBrokers::default(),
            identity_mismatches: IdentityMismatches::default(),
            topic_creation: TopicCreation::default(),
            unknown_topics: UnknownTopics::default(),
        }
    }
}
