//! Which followers a damaged leader could not serve: where all of them ask for the same batch, no replica has it.
//!
//! A follower asks for a batch because its own is damaged, or because it was not copied yet.
//!
//! Always true: what is kept has a bound, and is of one leader epoch.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{BrokerId, LeaderEpoch, Offset};
use barnabas_metadata::Partition as Registration;

use crate::Replica;

/// Offsets that are kept.
const KEPT_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Refused {
    epoch: LeaderEpoch,
    by_offset: BTreeMap<Offset, BTreeSet<BrokerId>>,
}

impl Replica {
    /// `follower` has asked for `offset`, which is damaged here. Returns whether no other replica has it, once. `row`:
    /// the partition, by the newest image.
    pub fn refused_follower(
        &mut self,
        offset: Offset,
        follower: BrokerId,
        me: BrokerId,
        row: &Registration,
    ) -> bool {
        let epoch = self.partition.leader_epoch();
        let refused = self.repair.refused.get_or_insert_default();
        if refused.epoch != epoch {
            **refused = Refused { epoch, by_offset: BTreeMap::new() };
        }
        if refused.by_offset.len() >= KEPT_MAX && !refused.by_offset.contains_key(&offset) {
            return false;
        }
        let asked = refused.by_offset.entry(offset).or_default();
        let is_news = asked.insert(follower);
        is_news && row.replicas().iter().all(|broker| *broker == me || asked.contains(broker))
    }
}
