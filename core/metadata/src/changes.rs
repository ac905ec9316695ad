//! What differs between two images, so that a node with millions of partitions need not look for it.
//!
//! Always true: applying nothing changes nothing; everything that is not named here is unchanged.

use std::collections::BTreeSet;

use barnabas_base::{BrokerId, Map, PartitionIndex, Set, Text, TopicId};

use crate::access::QuotaEntity;
use crate::resource::Resource;

/// What became of one topic between two images.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicChange {
    pub name: Text,
    /// Not there before.
    pub created: bool,
    /// Not there any more. A topic that was created and deleted between the images is both.
    pub deleted: bool,
    /// Partitions that are new or whose state changed. Look them up in the new image.
    pub partitions: BTreeSet<PartitionIndex>,
}

/// What changed, by what a reader must do about it.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Anything may be different: the image was just loaded. The lists below are then empty; look at the whole image.
    pub everything: bool,
    /// With `everything`: topics that the records since the snapshot deleted.
    pub removed: Vec<TopicId>,
    pub features: bool,
    /// Brokers whose registration is new, changed or gone.
    pub brokers: BTreeSet<BrokerId>,
    pub controllers: BTreeSet<BrokerId>,
    pub topics: Map<TopicId, TopicChange>,
    pub configs: Set<Resource>,
    pub quotas: BTreeSet<QuotaEntity>,
    pub producer_ids: bool,
    pub acls: bool,
    pub scram: bool,
    pub tokens: bool,
}

impl Changes {
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// As [`Changes::everything`], and still knows what was removed.
    pub fn become_everything(&mut self) {
        *self = Self { removed: std::mem::take(&mut self.removed), ..Self::everything() };
    }

    pub fn is_empty(&self) -> bool {
        !self.everything
            && !self.features
            && self.brokers.is_empty()
            && self.controllers.is_empty()
            && self.topics.is_empty()
            && self.configs.is_empty()
            && self.quotas.is_empty()
            && !self.producer_ids
            && !self.acls
            && !self.scram
            && !self.tokens
    }

    /// Whether what `Metadata` answers may be different now.
    pub fn metadata_visible(&self) -> bool {
        self.everything || !self.topics.is_empty() || !self.brokers.is_empty()
    }

    /// Adds what changed after this.
    pub fn merge(&mut self, later: Self) {
        let removed = std::mem::take(&mut self.removed);
        if later.everything {
            *self = Self::everything();
        }
        self.removed = removed;
        self.removed.extend(later.removed);
        if self.everything {
            return;
        }
        self.features |= later.features;
        self.brokers.extend(later.brokers);
        self.controllers.extend(later.controllers);
        for (id, change) in later.topics {
            match self.topics.entry(id) {
                std::collections::hash_map::Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.created |= change.created;
                    known.deleted |= change.deleted;
                    known.partitions.extend(change.partitions);
                }
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(change);
                }
            }
        }
        self.configs.extend(later.configs);
        self.quotas.extend(later.quotas);
        self.producer_ids |= later.producer_ids;
        self.acls |= later.acls;
        self.scram |= later.scram;
        self.tokens |= later.tokens;
    }
}
