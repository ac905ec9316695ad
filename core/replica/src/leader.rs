//! Which role a replica has by the image, and what a follower's fetch comes to.
//!
//! A follower is shown what is appended, durable here or not: so leader and followers sync at the same time. Its fetch
//! offset says what is durable there.
//!
//! Neighbours: shell/broker/src/worker/partition_worker/lifecycle/changes.rs, which hears of images;
//! shell/broker/src/worker/partition_worker/replication/followers.rs, which hands fetches in; core/partition's
//! `partition/leader`, which decides.
//!
//! Source: Kafka `Partition.makeLeader`, `Partition.makeFollower`, `Partition.fetchRecords`.

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, MonotonicMs};
use barnabas_metadata::{Image, Partition as Registration};
use barnabas_partition::{
    Bounds, FollowerFetch, FollowerRead, FollowerState, Isolation, Leadership, Refusal,
};

use crate::{Outbox, Replica};

/// What the role of a replica depends on.
#[derive(Debug, Clone, Copy)]
pub struct RoleView<'a> {
    pub me: BrokerId,
    pub image: &'a Image,
    /// The partition, by that image.
    pub row: &'a Registration,
    /// `min.insync.replicas` of its topic.
    pub min_in_sync: u16,
    /// `replica.lag.time.max.ms`.
    pub lag_max: DurationMs,
    pub now: MonotonicMs,
}

/// What came of a look at the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleChange {
    /// It leads as before, or the image is older than what is known.
    Nothing,
    /// Another broker leads: fetches that wait here are answered so.
    Follows,
    /// This replica leads in a new epoch: followers start to fetch again.
    Leads,
}

impl Replica {
    /// Takes the role that the image gives.
    pub fn take_role(&mut self, view: &RoleView<'_>, outbox: &mut Outbox) -> RoleChange {
        let epoch = view.row.leader_epoch;
        if view.row.leader != view.me {
            if self.partition.is_leader() {
                self.history.ceased_at = Some(view.now);
            }
            return match self.partition.become_follower(epoch, &mut outbox.decisions) {
                true => RoleChange::Follows,
                false => RoleChange::Nothing,
            };
        }
        let followers = view.followers();
        let leadership = Leadership {
            epoch,
            partition_epoch: view.row.partition_epoch,
            followers: &followers,
            min_in_sync: view.min_in_sync,
            lag_max: view.lag_max,
            now: view.now,
        };
        let is_new = self.partition.leader_epoch() != epoch;
        // What the round holds already bears the epoch before.
        let end = self.partition.log_end();
        if !self.partition.become_leader(&leadership, &mut outbox.decisions) || !is_new {
            return RoleChange::Nothing;
        }
        self.log.assign_epoch(epoch, end);
        self.history.has_led = true;
        RoleChange::Leads
    }

    /// What a follower is shown, and the bounds that its answer names.
    ///
    /// # Errors
    /// As [`Partition::follower_fetch`](barnabas_partition::Partition::follower_fetch).
    pub fn follower_fetch(
        &mut self,
        fetch: &FollowerFetch,
        outbox: &mut Outbox,
    ) -> (Result<FollowerRead, Refusal>, Option<Bounds>) {
        let read = self.partition.follower_fetch(fetch, self.log.epochs(), &mut outbox.decisions);
        let bounds = match &read {
            Ok(FollowerRead::Records(within)) => Some(*within),
            // It may not lead any more.
            Ok(FollowerRead::Diverging { .. }) => self.partition.bounds(Isolation::LogEnd, None).ok(),
            Err(_) => None,
        };
        (read, bounds)
    }
}

impl RoleView<'_> {
    fn followers(&self) -> Vec<FollowerState> {
        let others = self.row.replicas().iter().filter(|&&broker| broker != self.me);
        let state = |&broker: &BrokerId| FollowerState {
            broker,
            in_sync: self.row.isr().contains(&broker),
            registered: registered(self.image, broker),
        };
        others.map(state).collect()
    }
}

/// The epoch in which a broker is registered, where it may join the in-sync replicas (KIP-841, KIP-903).
pub fn registered(image: &Image, broker: BrokerId) -> Option<BrokerEpoch> {
    image.cluster.broker(broker).filter(|known| known.is_active()).map(|known| known.epoch)
}
