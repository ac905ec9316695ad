//! The coordinators of one worker: one shard for each partition of `__consumer_offsets`, `__transaction_state` and
//! `__share_group_state` that this worker owns.
//!
//! A shard runs on the worker that owns its partition: its records are appended like any others, and the partition
//! reports when they are durable. Four rules say when a shard is loaded. All workers load all shards of groups with
//! the first request for any group, since every client from before the start will return. Shards of groups and of
//! share state are loaded when leadership moves here, since their members follow; a shard of share state also with
//! the first request for it. A shard of transactions is loaded at once, as it has timeouts and markers that need no
//! request. Loading goes piece by piece, so that a long history does not hold up the worker; requests wait for it,
//! and their shards are loaded first. A shard is dropped when leadership moves, or gets a new epoch.
//!
//! Always true:
//! 1. a shard's batches are appended in the order in which it handed them out
//! 2. a request is answered once: by its shard, or with NOT_COORDINATOR when the shard goes
//! 3. no partition is opened before the journals are read
//!
//! Group path 3 of 5. Before: requests/groups.rs. After: core/coordinator/src/shard.rs, partition_worker.rs.
//! Transaction path 3 of 5. Before: requests/transactions.rs. After: core/coordinator/src/transactions/shard.rs,
//! markers.rs.
//! Share state: Before: routing/share_persister.rs. After: core/coordinator/src/share_state/shard.rs.

mod append;
mod groups;
mod host;
mod jobs;
mod look;
mod memory;
mod random;
mod share_state;
mod transactions;

use crate::mailbox::ImageChange;
use crate::mailbox::{
    Command, GroupCommand, PartitionKey, ShareStateCommand, Standing, ToTransactionShard, TransactionCommand,
};
use crate::node::Node;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::{MonotonicMs, Text, TopicId, name};
use barnabas_coordinator::{
    Done, GroupShard, Now, ShareStateDone, ShareStateRequest, ShareStateShard, TransactionShard,
    changed_topics,
};
use barnabas_metadata::Image;
use groups::GroupOrder;
use host::Host;
use jobs::Jobs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The coordinators of one worker. See the file's header.
#[derive(Debug)]
pub struct CoordinatorWorker {
    node: Arc<Node>,
    id: usize,
    groups: Host<GroupShard>,
    transactions: Host<TransactionShard>,
    share_state: Host<ShareStateShard>,
    jobs: Jobs,
    /// Partitions may be opened.
    has_begun: bool,
}

impl CoordinatorWorker {
    pub fn new(id: usize, node: Arc<Node>) -> Self {
        Self {
            groups: Host::new(node.clone()),
            transactions: Host::new(node.clone()),
            share_state: Host::new(node.clone()),
            jobs: Jobs::default(),
            has_begun: false,
            id,
            node,
        }
    }

    /// Takes one request; whatever it appends is placed by the end of the round.
    pub fn take(&mut self, command: GroupCommand, partitions: &mut PartitionWorker) {
        self.want_groups();
        self.groups.take(command.shard, command, partitions);
        self.run_jobs(partitions);
    }

    /// The first request for any group makes all workers load their shards of groups.
    fn want_groups(&self) {
        let wanted = &self.node.workers.groups_are_wanted;
        if wanted.load(Ordering::Relaxed) || wanted.swap(true, Ordering::Relaxed) {
            return;
        }
        for mailbox in &self.node.workers.mailboxes {
            let mailbox = mailbox.clone();
            tokio::task::spawn_local(async move { mailbox.send(Command::HostGroups).await });
        }
    }

    /// Begins to load the shards of groups that are led here.
    pub fn host_groups(&mut self) {
        if self.node.workers.groups_are_wanted.load(Ordering::Relaxed) {
            for key in self.led_here(name::CONSUMER_OFFSETS) {
                self.groups.host(key);
            }
        }
    }

    /// A job of a shard of groups is done. If the shard was loaded again meanwhile, the result is dropped.
    pub fn job_done(&mut self, key: PartitionKey, done: Done, partitions: &mut PartitionWorker) {
        let now = now(&self.node);
        let Some(shard) = self.groups.active(key) else { return };
        let effects = shard.computed(done, now);
        self.groups.carry_out(key, effects, Standing::Waived, partitions);
        self.run_jobs(partitions);
    }

    /// What a share group asked of the share coordinator is done, as far as that went.
    pub fn share_state_done(
        &mut self,
        key: PartitionKey,
        done: ShareStateDone,
        partitions: &mut PartitionWorker,
    ) {
        let now = now(&self.node);
        let Some(shard) = self.groups.active(key) else { return };
        let effects = shard.share_state_done(done, now);
        self.groups.carry_out(key, effects, Standing::Waived, partitions);
        self.run_jobs(partitions);
    }

    /// Has run what shards of groups hand out.
    fn run_jobs(&mut self, partitions: &mut PartitionWorker) {
        for (key, order) in self.groups.take_orders() {
            let job = match order {
                GroupOrder::Compute(job) => *job,
                GroupOrder::ShareState(order) => {
                    groups::carry_out(&self.node, key, order);
                    continue;
                }
            };
            let Err(job) = self.jobs.run(key, job, self.node.workers.owner(key)) else { continue };
            let now = now(&self.node);
            let Some(shard) = self.groups.active(key) else { continue };
            let effects = shard.computed(job.give_up(), now);
            self.groups.carry_out(key, effects, Standing::Waived, partitions);
        }
    }

    /// As [`CoordinatorWorker::take`]; or what came of something that a shard had asked for.
    pub fn take_transaction(&mut self, command: TransactionCommand, partitions: &mut PartitionWorker) {
        let TransactionCommand { shard: key, what } = command;
        let now = now(&self.node);
        let host = &mut self.transactions;
        let effects = match what {
            ToTransactionShard::Request(ask) => {
                host.take(key, ask, partitions);
                Vec::new()
            }
            // The shard is gone or was loaded again since: the new one orders the markers again.
            ToTransactionShard::Markers { ticket, transactional_id, outcomes } => host
                .active(key)
                .map(|shard| shard.markers_answered(ticket, &transactional_id, &outcomes, now))
                .unwrap_or_default(),
            ToTransactionShard::ProducerIds(ids) => {
                host.active(key).map(|shard| shard.supply(ids, now)).unwrap_or_default()
            }
        };
        host.carry_out(key, effects, Standing::Waived, partitions);
        self.pass_on();
    }

    /// As [`CoordinatorWorker::take`].
    pub fn take_share_state(&mut self, command: ShareStateCommand, partitions: &mut PartitionWorker) {
        if matches!(command.ask.request, ShareStateRequest::Write { .. }) {
            self.node.workers.meter.share_state_writes.one();
        }
        self.share_state.take(command.shard, command.ask, partitions);
        self.pass_on();
    }

    /// Groups and committed offsets of the shards that are loaded.
    pub fn counts(&self) -> (u64, u64) {
        let stats = self.groups.loaded().map(|shard| shard.stats());
        stats.fold((0, 0), |(groups, offsets), stats| {
            (groups + stats.groups as u64, offsets + stats.offsets as u64)
        })
    }

    /// Loads what is to be loaded and passes on what has become durable.
    pub fn work(&mut self, partitions: &mut PartitionWorker) {
        self.groups.work(partitions);
        self.transactions.work(partitions);
        self.share_state.work(partitions);
        self.run_jobs(partitions);
        self.pass_on();
    }

    /// What shards ask of others.
    fn pass_on(&mut self) {
        for (key, order) in self.transactions.take_orders() {
            transactions::carry_out(&self.node, key, order);
        }
        for (key, order) in self.share_state.take_orders() {
            share_state::carry_out(&self.node, key, order);
        }
    }

    /// Whether [`CoordinatorWorker::work`] has more to load.
    pub fn is_loading(&self) -> bool {
        self.groups.is_loading() || self.transactions.is_loading() || self.share_state.is_loading()
    }

    /// When [`CoordinatorWorker::tick`] is due.
    pub fn next_deadline(&mut self) -> Option<MonotonicMs> {
        let Self { groups, transactions, share_state, .. } = self;
        let all = [groups.next_deadline(), transactions.next_deadline(), share_state.next_deadline()];
        all.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, partitions: &mut PartitionWorker) {
        self.groups.tick(partitions);
        self.transactions.tick(partitions);
        self.share_state.tick(partitions);
        self.run_jobs(partitions);
        self.pass_on();
    }

    pub fn image_changed(&mut self, change: &ImageChange, partitions: &mut PartitionWorker) {
        let changes = &change.changes;
        self.groups.unload_lost(partitions);
        self.transactions.unload_lost(partitions);
        self.share_state.unload_lost(partitions);
        if changes.everything || changes.features || !changes.configs.is_empty() {
            self.groups.set_config();
            self.transactions.set_config();
            self.share_state.set_config();
        }
        let topics = changed_topics(&change.before, &change.image, &change.changes);
        let names = topics.names.as_deref();
        self.groups.every(|shard| shard.image_changed(&change.image, names, topics.has_new));
        self.share_state.every(|shard| shard.image_changed(&change.image));
        let deleted: Vec<(Text, TopicId)> = changes
            .topics
            .iter()
            .filter(|(_, topic)| topic.deleted)
            .map(|(&id, topic)| (topic.name.clone(), id))
            .collect();
        if !deleted.is_empty() {
            let now = now(&self.node);
            self.groups.each(partitions, |shard| shard.topics_deleted(&deleted, now));
            let ids: Vec<TopicId> = deleted.iter().map(|(_, id)| *id).collect();
            self.share_state.each(partitions, |shard| shard.topics_deleted(&ids, now));
        }
        let topic = change.image.topics.id_of(name::TRANSACTION_STATE);
        if changes.everything || topic.is_some_and(|topic| changes.topics.contains_key(&topic)) {
            self.host_transactions();
        }
        self.host_arrived(change);
        self.pass_on();
    }

    /// Begins to load the shards of groups and of share state whose partitions another broker led before.
    fn host_arrived(&mut self, change: &ImageChange) {
        if !self.has_begun || change.changes.everything {
            return;
        }
        for (topic, is_of_groups) in [(name::CONSUMER_OFFSETS, true), (name::SHARE_GROUP_STATE, false)] {
            let Some(topic) = change.image.topics.by_name(topic) else { continue };
            let Some(changed) = change.changes.topics.get(&topic.id) else { continue };
            let me = self.node.identity.broker_id;
            let leader =
                |image: &Image, partition| Some(image.topics.by_id(topic.id)?.partition(partition)?.leader);
            let arrived = changed.partitions.iter().filter(|&&partition| {
                leader(&change.image, partition) == Some(me)
                    && leader(&change.before, partition).is_some_and(|before| before != me)
            });
            for &partition in arrived {
                let key = PartitionKey { topic: topic.id, partition };
                match key.owner(self.node.workers.count) == self.id {
                    true if is_of_groups => self.groups.host(key),
                    true => self.share_state.host(key),
                    false => {}
                }
            }
        }
    }

    /// From now on partitions may be opened: what the journals held of them is known.
    pub fn begin(&mut self) {
        self.has_begun = true;
        self.host_transactions();
        self.host_groups();
    }

    /// Begins to load the shards of transactions that are led here.
    fn host_transactions(&mut self) {
        for key in self.led_here(name::TRANSACTION_STATE) {
            self.transactions.host(key);
        }
    }

    /// The partitions of a topic that this broker leads and this worker owns; none before they may be opened.
    fn led_here(&self, topic: &str) -> Vec<PartitionKey> {
        let image = self.node.cluster.image.load();
        let Some(topic) = image.topics.by_name(topic).filter(|_| self.has_begun) else { return Vec::new() };
        let led = topic.partitions().filter(|(_, state)| state.leader == self.node.identity.broker_id);
        let keys = led.map(|(partition, _)| PartitionKey { topic: topic.id, partition });
        keys.filter(|key| key.owner(self.node.workers.count) == self.id).collect()
    }
}

fn now(node: &Node) -> Now {
    Now { wall: node.clock.wall(), mono: node.clock.monotonic() }
}
