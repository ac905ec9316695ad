//! One leadership: how far have the in-sync replicas come, and are there enough of them.
//!
//! A lone replica has nothing here but where its epoch began: followers are kept apart ([`followers`]).
//!
//! Source: Kafka `Partition.maybeIncrementLeaderHW`, `effectiveMinIsr`; KIP-966.

use barnabas_base::{Offset, PartitionEpoch};

use crate::Leadership;

mod followers;

pub(crate) use followers::Followers;

/// One leadership of this broker.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    /// Where this epoch began.
    pub epoch_start: Offset,
    min_in_sync: u16,
    /// None for a lone replica.
    followers: Option<Box<Followers>>,
}

impl Leading {
    pub fn new(epoch_start: Offset, leadership: &Leadership<'_>) -> Self {
        let followers = Followers::new(leadership).map(Box::new);
        Self { epoch_start, min_in_sync: leadership.min_in_sync, followers }
    }

    /// Takes over replicas and in-sync set; what is known of replicas that stay is kept. `false`: the word is not newer
    /// than what is known, and only its minimum counts.
    pub fn update(&mut self, leadership: &Leadership<'_>) -> bool {
        self.min_in_sync = leadership.min_in_sync;
        let known = self.followers.as_ref().map_or(PartitionEpoch::NONE, |known| known.partition_epoch());
        let is_newer =
            leadership.partition_epoch == PartitionEpoch::NONE || leadership.partition_epoch > known;
        if !is_newer {
            return false;
        }
        let mut followers = Followers::new(leadership);
        if let (Some(followers), Some(known)) = (&mut followers, &self.followers) {
            followers.remember(known);
        }
        self.followers = followers.map(Box::new);
        true
    }

    pub fn set_min_in_sync(&mut self, min_in_sync: u16) {
        self.min_in_sync = min_in_sync;
    }

    pub fn followers(&self) -> Option<&Followers> {
        self.followers.as_deref()
    }

    pub fn followers_mut(&mut self) -> Option<&mut Followers> {
        self.followers.as_deref_mut()
    }

    /// In-sync replicas as the controller knows them, the leader included.
    pub fn in_sync(&self) -> u16 {
        1 + self.followers.as_ref().map_or(0, |followers| followers.in_sync())
    }

    /// In-sync replicas needed: never more than there are replicas.
    pub fn needed(&self) -> u16 {
        let replicas = 1 + self.followers.as_ref().map_or(0, |followers| followers.len());
        self.min_in_sync.min(replicas)
    }

    /// The offset up to which every replica that counts has everything, this one durable up to `durable_end`. `None`
    /// while they are too few: records that only they have could be lost with them, so consumers must not see them.
    pub fn safe_end(&self, durable_end: Offset) -> Option<Offset> {
        let Some(followers) = &self.followers else { return Some(durable_end) };
        if self.in_sync() < self.needed() {
            return None;
        }
        Some(followers.safe_end(durable_end))
    }
}
