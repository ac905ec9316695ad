//! A leader and its followers: their fetches, who is in sync, what the controller says to it.
//!
//! A follower's fetch is answered from what is appended, durable here or not: so leader and followers sync at the same
//! time. Its place in the log says what is durable there; the high watermark moves with it, and producers who wait for
//! it are answered in the same turn. A fetch that finds nothing waits, and is woken by the next append, without a
//! timer.
//!
//! Neighbours: requests/fetch.rs, which hands in; core/partition's `partition/leader`, which decides; replica/isr.rs,
//! which asks.
//!
//! Source: Kafka `Partition.fetchRecords`, `ReplicaManager.maybeShrinkIsr`.

use crate::mailbox::{Declined, FollowerLife, PartitionKey, Read, ReadItem, ReadOutcome};
use crate::node::Node;
use crate::node::peers::replication::throttles::Quota;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::partition_worker::appends::rounds::carry_out;
use crate::worker::partition_worker::reading::reads::request_of;
use crate::worker::partition_worker::replication::in_sync::InSync;
use crate::worker::replica::registered;
use barnabas_api::replication::alter_partition::Altered;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs};
use barnabas_metadata::Image;
use barnabas_partition::{Bounds, Effect, FollowerFetch, FollowerRead, Isolation, IsrAnswer, IsrNext};
use barnabas_replica::Committed;
use std::collections::BTreeSet;

/// What a worker knows of the partitions that it leads and others follow.
#[derive(Debug, Default)]
pub struct Leading {
    /// When followers that have fallen behind are looked for. `None`: there are no followers.
    pub check_at: Option<MonotonicMs>,
    /// Partitions for whose records followers wait, and that were appended to in this turn.
    pub to_wake: Vec<PartitionKey>,
    pub in_sync: InSync,
}

impl Leading {
    /// From now on followers are looked at.
    pub fn watch(&mut self, node: &Node) {
        self.check_at.get_or_insert_with(|| node.clock.monotonic().plus(check_interval(node)));
    }
}

/// Twice within the time after which a follower counts as fallen behind, as Kafka.
fn check_interval(node: &Node) -> DurationMs {
    DurationMs((node.cluster.config.load().long("replica.lag.time.max.ms") / 2).max(1))
}

impl PartitionWorker {
    /// What a follower is shown of one partition.
    pub fn read_for_follower(
        &mut self,
        item: &ReadItem,
        follower: FollowerLife,
        (left, is_first): (usize, bool),
        now: MonotonicMs,
    ) -> ReadOutcome {
        let mut bounds = None;
        let result = self.follower_read(item, follower, now, &mut bounds).and_then(|read| match read {
            FollowerRead::Records(within) => self.records_for(item, follower, within, (left, is_first), now),
            FollowerRead::Diverging { epoch, end } => {
                Ok(Read { diverging: Some((epoch, end)), ..Read::default() })
            }
        });
        ReadOutcome { slot: item.slot, result, bounds, nearer: None, taken: self.tickets.turn }
    }

    /// Records, unless the replica is throttled and the quota spent.
    fn records_for(
        &mut self,
        item: &ReadItem,
        follower: FollowerLife,
        within: Bounds,
        (left, is_first): (usize, bool),
        now: MonotonicMs,
    ) -> Result<Read, Declined> {
        let Self { replicas, files, node, effects, .. } = self;
        let replica = replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let quota = replica.throttled.as_leader.then_some(&node.peers.replication.throttles.leader);
        let is_held =
            |quota: &&Quota| !replica.partition.waits_for(follower.broker) && quota.is_exceeded(now);
        if quota.as_ref().is_some_and(is_held) {
            return Ok(Read::default());
        }
        let request = request_of(item, (Isolation::LogEnd, false), left, is_first);
        let files = &mut files[replica.directory];
        let read = replica.read_records(&request, within, files, effects);
        if let (Ok(read), Some(quota)) = (&read, quota) {
            quota.record(read.records.len(), now);
        }
        self.apply_effects(item.partition);
        if let Err(Declined::Damaged) = read {
            self.refused_follower(item.partition, follower.broker, item.from);
        }
        read
    }

    fn follower_read(
        &mut self,
        item: &ReadItem,
        follower: FollowerLife,
        now: MonotonicMs,
        bounds: &mut Option<Bounds>,
    ) -> Result<FollowerRead, Declined> {
        let key = item.partition;
        self.open(key)?;
        let Self { replicas, effects, tickets, node, following, .. } = self;
        let replica = replicas.get_mut(&key).ok_or(Declined::Unknown)?;
        let fetch = FollowerFetch {
            broker: follower.broker,
            broker_epoch: follower.epoch,
            registered: follower.registered,
            leader_epoch: item.leader_epoch,
            offset: item.from,
            last_epoch: item.last_fetched_epoch,
            log_start: item.log_start,
            now,
        };
        let (read, known) = replica.follower_fetch(&fetch, effects);
        *bounds = known;
        let asks = effects.decisions.contains(&Effect::AlterIsr);
        carry_out(effects, tickets, node, following, Some(replica));
        if asks {
            self.ask_who_is_in_sync(key);
        }
        Ok(read?)
    }

    /// Followers that wait for what was appended in this turn are told.
    pub fn wake_followers(&mut self) {
        if self.leading.to_wake.is_empty() {
            return;
        }
        let Self { leading, replicas, .. } = self;
        for key in leading.to_wake.drain(..) {
            if let Some(replica) = replicas.get_mut(&key) {
                // How many bytes it was does not matter: a follower asks for any (`replica.fetch.min.bytes` counts when
                // it reads).
                replica.follower_waiters.arrived(i64::from(i32::MAX), Committed::Nothing);
            }
        }
    }

    /// Looks for followers that have fallen behind, if it is time.
    pub fn check_replicas(&mut self) {
        let now = self.node.clock.monotonic();
        if self.leading.check_at.is_none_or(|at| at > now) {
            return;
        }
        self.leading.check_at = Some(now.plus(check_interval(&self.node)));
        let keys: Vec<PartitionKey> = self.replicas.keys().copied().collect();
        for key in keys {
            let Self { replicas, effects, tickets, node, following, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.partition.check_lag(now, &mut effects.decisions);
            let asks = effects.decisions.contains(&Effect::AlterIsr);
            carry_out(effects, tickets, node, following, Some(replica));
            if asks {
                self.ask_who_is_in_sync(key);
            }
        }
    }

    fn ask_who_is_in_sync(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let Some(change) = replica.partition.isr_change() else { return };
        let members: Vec<BrokerId> = change.in_sync.iter().map(|(broker, _)| *broker).collect();
        tracing::debug!(partition = %replica.name.topic_partition, ?members, "the in-sync replicas should be these, and this one");
        self.node.peers.replication.isr.ask(key, change.clone());
    }

    /// What the controller said to a question.
    pub fn altered(&mut self, key: PartitionKey, number: u32, answer: Result<Altered, ErrorCode>) {
        let now = self.node.clock.monotonic();
        let Self { replicas, effects, tickets, node, leading, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let word = match &answer {
            Ok(altered) => {
                leading.in_sync.changed(&replica.name.topic_partition, &altered.in_sync);
                IsrAnswer::Changed {
                    leader_epoch: altered.leader_epoch,
                    partition_epoch: altered.partition_epoch,
                    in_sync: &altered.in_sync,
                }
            }
            Err(code) => {
                node.workers.meter.isr_updates_failed.one();
                IsrAnswer::Refused(*code)
            }
        };
        let next = replica.partition.isr_answered(number, &word, now, &mut effects.decisions);
        carry_out(effects, tickets, node, following, Some(replica));
        if next == IsrNext::Ask
            && let Some(change) = replica.partition.isr_change()
        {
            node.peers.replication.isr.ask_later(key, change.clone(), now);
        }
    }

    /// Brokers were registered again, fenced or unfenced: the high watermark does not wait for brokers that cannot
    /// join the ISR.
    pub fn brokers_changed(&mut self, image: &Image, brokers: &BTreeSet<BrokerId>) {
        if self.leading.check_at.is_none() {
            return;
        }
        let keys: Vec<PartitionKey> = self.replicas.keys().copied().collect();
        for key in keys {
            let Self { replicas, effects, tickets, node, following, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            for &broker in brokers {
                replica.partition.set_registered(broker, registered(image, broker), &mut effects.decisions);
            }
            carry_out(effects, tickets, node, following, Some(replica));
        }
    }
}
