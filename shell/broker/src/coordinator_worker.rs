//! The group coordinators of one worker: one shard for each partition of `__consumer_offsets` that this worker owns.
//!
//! A shard lives beside its partition, on the same thread: its records take the way of every other append, and "durable" is
//! the partition's own word. A shard is loaded when somebody first asks for one of its groups, a piece at a time, so that a
//! long history does not hold up the worker; what is asked meanwhile waits.
//!
//! Always true:
//! 1. a shard's batches are appended in the order in which it handed them out
//! 2. a request is answered once: by its shard, or with NOT_COORDINATOR when the shard goes
//!
//! Group path 3 of 5. Before: dispatch/groups.rs. After: core/coordinator's `GroupShard`, partition_worker.rs.

mod load;

use crate::mailbox::{AppendItem, AppendOutcome, GroupCommand, PartitionKey};
use crate::node::Node;
use crate::partition_worker::PartitionWorker;
use crate::publisher::ImageChange;
use crate::tickets::Opened;
use barnabas_base::{DurationMs, ErrorCode, Map, MonotonicMs, Text, TopicId};
use barnabas_coordinator::{BatchId, Caller, Effect, GroupConfig, GroupShard, Now, Record, Response, Ticket};
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::{Acks, Append, Origin};
use barnabas_wire::records::{BatchBuilder, BatchOptions, ReadyBatch};
use load::Loading;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Requests that wait for one shard to be loaded; more are told to come back.
const WAITING_MAX: usize = 10_000;

/// How long the partition may take to say what became of a batch. The shard itself answers its clients in time
/// (`offsets.commit.timeout.ms`); to call a batch lost that is in the log would set the shard apart from its log.
const UNTIL_DECIDED: DurationMs = DurationMs(365 * 24 * 3_600_000);

/// The coordinators of one worker. See the file's header.
#[derive(Debug)]
pub struct CoordinatorWorker {
    node: Arc<Node>,
    shards: Map<PartitionKey, Shard>,
    /// Who waits for which answer.
    replies: Map<Ticket, oneshot::Sender<Response>>,
    tickets: u64,
    loading: bool,
}

#[derive(Debug)]
enum Shard {
    Loading(Loading),
    Active(Active),
}

#[derive(Debug)]
struct Active {
    shard: GroupShard,
    /// Batches that were handed to the partition, oldest first, and its word on each.
    pending: VecDeque<(BatchId, oneshot::Receiver<Vec<AppendOutcome>>)>,
}

impl CoordinatorWorker {
    pub fn new(node: Arc<Node>) -> Self {
        Self { node, shards: Map::default(), replies: Map::default(), tickets: 0, loading: false }
    }

    /// Takes one request; whatever it appends is placed by [`CoordinatorWorker::work`].
    pub fn take(&mut self, command: GroupCommand, partitions: &mut PartitionWorker) {
        let key = command.shard;
        let config = &self.node;
        let shard = self
            .shards
            .entry(key)
            .or_insert_with(|| Shard::Loading(Loading::new(group_config(&config.config.load()))));
        match shard {
            Shard::Loading(loading) if loading.waiting.len() < WAITING_MAX => {
                loading.waiting.push(command);
                self.loading = true;
            }
            Shard::Loading(_) => {
                let refusal = command.request.refuse_while_loading();
                // A connection that is gone does not hear its answer.
                let _ = command.reply.send(refusal);
            }
            Shard::Active(active) => {
                self.tickets += 1;
                let ticket = Ticket(self.tickets);
                self.replies.insert(ticket, command.reply);
                let caller = Caller {
                    client_id: &command.client_id,
                    client_host: &command.client_host,
                    version: command.version,
                    random: crate::directories::random_uuid().0,
                };
                let effects = active.shard.handle(&caller, command.request, ticket, now(&self.node));
                self.carry_out(key, effects, partitions);
            }
        }
    }

    /// Loads what is to be loaded and passes on what has become durable.
    pub fn work(&mut self, partitions: &mut PartitionWorker) {
        if self.loading {
            self.load_some(partitions);
        }
        let keys: Vec<PartitionKey> = self
            .shards
            .iter()
            .filter(|(_, shard)| matches!(shard, Shard::Active(active) if !active.pending.is_empty()))
            .map(|(&key, _)| key)
            .collect();
        for key in keys {
            while let Some((batch, error)) = self.next_decided(key) {
                let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { break };
                let now = now(&self.node);
                let effects = match error {
                    None => active.shard.durable(batch, now),
                    Some(error) => active.shard.failed(batch, error, now),
                };
                self.carry_out(key, effects, partitions);
            }
        }
    }

    /// The oldest batch of a shard, if its partition has decided it; with the error if it is not in the log.
    fn next_decided(&mut self, key: PartitionKey) -> Option<(BatchId, Option<ErrorCode>)> {
        let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { return None };
        let (batch, answer) = active.pending.front_mut()?;
        let decided = match answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => return None,
            Err(oneshot::error::TryRecvError::Closed) => (*batch, Some(ErrorCode::NotCoordinator)),
            Ok(outcomes) => {
                let error = outcomes.into_iter().find_map(|outcome| outcome.result.err());
                (*batch, error.map(|declined| append_error(declined.code())))
            }
        };
        active.pending.pop_front();
        Some(decided)
    }

    fn carry_out(&mut self, key: PartitionKey, effects: Vec<Effect>, partitions: &mut PartitionWorker) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Answer { ticket, response } => {
                    if let Some(reply) = self.replies.remove(&ticket) {
                        // A connection that is gone does not hear its answer.
                        let _ = reply.send(response);
                    }
                }
                // No request that comes to these is routed here yet (transactions).
                Effect::AppendInTransaction { batch, .. } | Effect::AppendMarker { batch, .. } => {
                    let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { continue };
                    effects.extend(active.shard.failed(
                        batch,
                        ErrorCode::UnsupportedVersion,
                        now(&self.node),
                    ));
                }
                Effect::Append { batch, records } => {
                    let error = match self.append(key, batch, &records, partitions) {
                        Ok(()) => continue,
                        Err(error) => error,
                    };
                    let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { continue };
                    effects.extend(active.shard.failed(batch, error, now(&self.node)));
                }
            }
        }
    }

    /// Hands a batch to the shard's partition.
    fn append(
        &mut self,
        key: PartitionKey,
        batch: BatchId,
        records: &[Record],
        partitions: &mut PartitionWorker,
    ) -> Result<(), ErrorCode> {
        let now = self.node.clock.wall();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for record in records {
            builder.push(now, Some(&record.key), record.value.as_deref(), &[]);
        }
        let ready = builder.build().and_then(ReadyBatch::from_bytes).map_err(|error| {
            tracing::error!(%error, "records of a group could not be put into a batch, and its request is refused: please report this");
            ErrorCode::UnknownServerError
        })?;
        let (reply, answer) = oneshot::channel();
        let opened: Opened = partitions.open_ticket(reply);
        let item = AppendItem { slot: 0, partition: key, origin: Origin::Coordinator, batch: ready };
        let append = Append {
            origin: Origin::Coordinator,
            acks: Acks::All,
            ticket: partitions.ticket(opened),
            deadline: self.node.clock.monotonic().plus(UNTIL_DECIDED),
            leader_epoch: None,
            verified: true,
        };
        partitions.place(item, append).map_err(|declined| append_error(declined.code()))?;
        if let Some(Shard::Active(active)) = self.shards.get_mut(&key) {
            active.pending.push_back((batch, answer));
        }
        Ok(())
    }

    /// When [`CoordinatorWorker::tick`] is due.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        if self.loading {
            return Some(MonotonicMs(0));
        }
        let deadlines = self.shards.values().filter_map(|shard| match shard {
            Shard::Active(active) => active.shard.next_deadline(),
            Shard::Loading(_) => None,
        });
        deadlines.min()
    }

    /// Does what is due.
    pub fn tick(&mut self, partitions: &mut PartitionWorker) {
        let now = now(&self.node);
        let due: Vec<PartitionKey> = self
            .shards
            .iter()
            .filter(|(_, shard)| match shard {
                Shard::Active(active) => active.shard.next_deadline().is_some_and(|at| at <= now.mono),
                Shard::Loading(_) => false,
            })
            .map(|(&key, _)| key)
            .collect();
        for key in due {
            if let Some(Shard::Active(active)) = self.shards.get_mut(&key) {
                let effects = active.shard.tick(now);
                self.carry_out(key, effects, partitions);
            }
        }
    }

    pub fn image_changed(&mut self, change: &ImageChange, partitions: &mut PartitionWorker) {
        let deleted: Vec<(Text, TopicId)> = change
            .changes
            .topics
            .iter()
            .filter(|(_, topic)| topic.deleted)
            .map(|(&id, topic)| (topic.name.clone(), id))
            .collect();
        let config = (!change.changes.configs.is_empty()).then(|| group_config(&self.node.config.load()));
        let keys: Vec<PartitionKey> = self.shards.keys().copied().collect();
        for key in keys {
            if !leads(&self.node, key) {
                self.unload(key, partitions);
                continue;
            }
            let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { continue };
            if let Some(config) = &config {
                active.shard.set_config(config.clone());
            }
            if !deleted.is_empty() {
                let effects = active.shard.topics_deleted(&deleted, now(&self.node));
                self.carry_out(key, effects, partitions);
            }
        }
    }

    fn unload(&mut self, key: PartitionKey, partitions: &mut PartitionWorker) {
        match self.shards.remove(&key) {
            None => {}
            Some(Shard::Active(active)) => {
                let effects = active.shard.unload();
                self.carry_out(key, effects, partitions);
            }
            Some(Shard::Loading(loading)) => loading.refuse(ErrorCode::NotCoordinator),
        }
    }
}

/// Whether this broker leads the partition now.
fn leads(node: &Node, key: PartitionKey) -> bool {
    let image = node.image.load();
    let partition = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
    partition.is_some_and(|partition| partition.leader == node.broker_id)
}

fn now(node: &Node) -> Now {
    Now { wall: node.clock.wall(), mono: node.clock.monotonic() }
}

/// What a coordinator's clients are told when its records could not be appended.
///
/// # Source
/// Kafka `CoordinatorOperationExceptionHelper.handleOperationException`, `CoordinatorPartitionWriter`.
fn append_error(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}

fn group_config(config: &BrokerConfig) -> GroupConfig {
    let count = |key| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
    let minutes = |key| DurationMs(config.long(key).saturating_mul(60_000));
    let millis = |key| DurationMs(config.long(key));
    GroupConfig {
        group_size_max: count("group.max.size"),
        initial_rebalance_delay: millis("group.initial.rebalance.delay.ms"),
        session_timeout_min: millis("group.min.session.timeout.ms"),
        session_timeout_max: millis("group.max.session.timeout.ms"),
        offset_metadata_max: count("offset.metadata.max.bytes"),
        offsets_retention: minutes("offsets.retention.minutes"),
        offsets_retention_check_interval: millis("offsets.retention.check.interval.ms"),
        commit_timeout: millis("offsets.commit.timeout.ms"),
        batch_bytes_max: count("message.max.bytes").saturating_sub(4096).max(4096),
        ..GroupConfig::default()
    }
}
