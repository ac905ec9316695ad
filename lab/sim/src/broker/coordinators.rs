//! The coordinators of one broker: a shard of core/coordinator beside each partition of an internal topic that it
//! leads. What shell/broker's coordinator_worker does.
//!
//! A shard is loaded by replaying its partition's log, once all of that is on every in-sync replica, and is dropped
//! when the broker learns of another leader. Until then it answers: its writes never become safe.

use std::collections::{BTreeMap, VecDeque};

use barnabas_base::{
    BrokerId, CoordinatorEpoch, DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, Text, TimestampMs, name, partition_for,
};
use barnabas_coordinator::{
    BatchId, Caller, Effect, EndTransaction, GroupConfig, GroupShard, MarkerOrder, Now, Producer, Record,
    Request, Response, Ticket, TransactionCaller, TransactionConfig, TransactionEffect, TransactionRequest,
    TransactionShard, TransactionState, TransactionVersion, append_error,
};
use barnabas_partition::{Acks, Origin, ReplicaKey};
use barnabas_replica::{TxnVerification, Verified};
use barnabas_wire::messages::TransactionLogValue;
use barnabas_wire::messages::{TransactionRecordKey, TransactionRecordValue};

use super::asked::Asked;
use super::{APPEND_PATIENCE, Around, Process};
use crate::batch::{Batch, Contents};
use crate::host::{Handing, Waiter};
use crate::mistake::Mistake;
use crate::network::{Answer, Reply};

/// A partition's word on a batch is waited for however long it takes.
const EVER: DurationMs = DurationMs(1 << 40);

#[derive(Debug)]
pub(crate) enum Machine {
    Transactions(Box<TransactionShard>),
    Groups(Box<GroupShard>),
}

#[derive(Debug)]
pub(crate) struct Shard {
    /// In which the broker leads the partition.
    epoch: LeaderEpoch,
    pub machine: Machine,
    pub is_active: bool,
    /// Who asked while it was loaded.
    waiting: Vec<(Reply, Work, Standing)>,
}

/// What a batch's transaction rests on, where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Standing {
    /// It has begun already, or there is none.
    Open,
    /// The coordinator has agreed, when it was asked under this guard.
    By(Verified),
    /// No broker is asked.
    Waived,
}

/// A request to a shard.
#[derive(Debug, Clone)]
pub(super) enum Work {
    Transaction(TransactionCaller, TransactionRequest),
    Group(i16, Request),
}

impl Work {
    fn refuse(&self, error: ErrorCode) -> Answer {
        match self {
            Self::Transaction(_, request) => Answer::Transaction(request.refuse(error)),
            Self::Group(_, request) => of_group(request.refuse(error)),
        }
    }
}

/// A marker's answer is a batch's.
fn of_group(response: Response) -> Answer {
    match response {
        Response::EndTransaction(ErrorCode::None) => Answer::Written(Ok(())),
        Response::EndTransaction(error) => Answer::Written(Err(error)),
        response => Answer::Offsets(Box::new(response)),
    }
}

/// What a shard wants done, of whichever kind it is.
#[derive(Debug)]
enum Step {
    Append(BatchId, Batch, TransactionVersion),
    Answer(Ticket, Answer),
    Mark(MarkerOrder),
    ProducerIds,
}

#[derive(Debug, Default)]
pub(crate) struct Coordinators {
    pub shards: BTreeMap<ReplicaKey, Shard>,
    replies: BTreeMap<Ticket, Reply>,
    tickets: u64,
    /// What this broker asked of others about transactions, until when.
    pub(super) asked: BTreeMap<u64, (MonotonicMs, Asked)>,
}

impl Coordinators {
    /// Offsets are dropped once their transaction waits no more: before version 2 they could get into the next one.
    pub fn forget(&mut self, reply_to: crate::network::Place) {
        self.asked.retain(|_, (_, asked)| asked.reply_to() != Some(reply_to));
        for shard in self.shards.values_mut() {
            shard.waiting.retain(|(reply, ..)| reply.to != reply_to);
        }
    }
}

pub(crate) fn now(at: MonotonicMs) -> Now {
    Now { wall: TimestampMs(at.0 as i64), mono: at }
}

fn transaction_config(version: TransactionVersion) -> TransactionConfig {
    TransactionConfig {
        version,
        append_timeout: APPEND_PATIENCE,
        retry_backoff: DurationMs(10),
        busy_patience: DurationMs(30),
        ..TransactionConfig::default()
    }
}

impl Machine {
    fn of(topic: &str, version: TransactionVersion, epoch: LeaderEpoch) -> Option<Self> {
        match topic {
            name::TRANSACTION_STATE => {
                let epoch = CoordinatorEpoch(epoch.get());
                let shard = TransactionShard::new(transaction_config(version), epoch);
                Some(Self::Transactions(Box::new(shard)))
            }
            name::CONSUMER_OFFSETS => {
                let config = GroupConfig { commit_timeout: APPEND_PATIENCE, ..GroupConfig::default() };
                Some(Self::Groups(Box::new(GroupShard::new(config))))
            }
            _ => None,
        }
    }

    fn handle(&mut self, work: Work, ticket: Ticket, at: Now) -> Vec<Step> {
        match (self, work) {
            (Self::Transactions(shard), Work::Transaction(caller, request)) => {
                of_transactions(shard.handle(caller, request, ticket, at))
            }
            (Self::Groups(shard), Work::Group(version, request)) => {
                let caller =
                    Caller { client_id: "sim", client_host: "/127.0.0.1", version, ..Caller::default() };
                of_groups(shard.handle(&caller, request, ticket, at))
            }
            (_, work) => vec![Step::Answer(ticket, work.refuse(ErrorCode::NotCoordinator))],
        }
    }

    fn decided(&mut self, batch: BatchId, answer: Result<(), ErrorCode>, at: Now) -> Vec<Step> {
        match (self, answer.map_err(append_error)) {
            (Self::Transactions(shard), Ok(())) => of_transactions(shard.durable(batch, at)),
            (Self::Transactions(shard), Err(code)) => of_transactions(shard.failed(batch, code, at)),
            (Self::Groups(shard), Ok(())) => of_groups(shard.durable(batch, at)),
            (Self::Groups(shard), Err(code)) => of_groups(shard.failed(batch, code, at)),
        }
    }

    fn deadline(&self) -> Option<MonotonicMs> {
        match self {
            Self::Transactions(shard) => shard.next_deadline(),
            Self::Groups(shard) => shard.next_deadline(),
        }
    }

    fn tick(&mut self, at: Now) -> Vec<Step> {
        match self {
            Self::Transactions(shard) => of_transactions(shard.tick(at)),
            Self::Groups(shard) => of_groups(shard.tick(at)),
        }
    }

    fn activate(&mut self, at: Now) -> Vec<Step> {
        match self {
            Self::Transactions(shard) => of_transactions(shard.activate(at)),
            Self::Groups(shard) => of_groups(shard.activate(at)),
        }
    }

    fn unload(self) -> Vec<Step> {
        match self {
            Self::Transactions(shard) => of_transactions(shard.unload()),
            Self::Groups(shard) => of_groups(shard.unload()),
        }
    }

    pub fn violations(&self) -> Vec<String> {
        match self {
            Self::Transactions(shard) => shard.violations(),
            Self::Groups(shard) => shard.violations(),
        }
    }

    fn replay(&mut self, batch: &Batch, mistake: Option<Mistake>) {
        match (self, &batch.contents) {
            (Self::Transactions(shard), Contents::Records { records, .. }) => {
                for (at, record) in records.iter().enumerate() {
                    let Some(record) = misread(record, mistake) else { continue };
                    let offset = batch.offset_of(at);
                    shard
                        .replay(offset, &record.key, record.value.as_ref())
                        .expect("invariant: a coordinator reads what it wrote");
                }
            }
            (Self::Groups(shard), Contents::Records { records, in_transaction }) => {
                let forgets = *in_transaction && mistake == Some(Mistake::ForgetsPendingOffsets);
                let producer = if *in_transaction { batch.producer } else { ProducerId::NONE };
                for (at, record) in records.iter().enumerate().filter(|_| !forgets) {
                    let offset: Offset = batch.offset_of(at);
                    shard
                        .replay(offset, producer, &record.key, record.value.as_ref())
                        .expect("invariant: a coordinator reads what it wrote");
                }
            }
            (Self::Groups(shard), Contents::Marker { commit, .. }) => {
                shard.replay_marker(batch.producer, *commit || mistake == Some(Mistake::ShowsAbortedOffsets));
            }
            _ => {}
        }
    }
}

/// A record of `__transaction_state`.
pub(crate) fn transaction_of(record: &Record) -> Option<(Text, TransactionLogValue)> {
    let TransactionRecordKey::TransactionLog(key) =
        TransactionRecordKey::decode_key(record.key.clone()).ok()?;
    let (value, _) = TransactionRecordValue::decode_value(0, record.value.clone()?).ok()?;
    let TransactionRecordValue::TransactionLog(value) = value;
    Some((key.transactional_id.text(), value))
}

pub(crate) fn state_of(value: &TransactionLogValue) -> TransactionState {
    TransactionState::of_record(value.transaction_status).expect("invariant: a state that may be written")
}

/// What a new coordinator takes a record for; `None`: it does not see it.
fn misread(record: &Record, mistake: Option<Mistake>) -> Option<Record> {
    let whole = || Some(record.clone());
    let Some((_, mut value)) = transaction_of(record) else { return whole() };
    match mistake {
        Some(Mistake::ForgetsDecisions) if state_of(&value).is_prepared() => None,
        Some(Mistake::TurnsDecisions) if state_of(&value) == TransactionState::PrepareAbort => {
            value.transaction_status = TransactionState::PrepareCommit.number();
            let value = TransactionRecordValue::TransactionLog(value).encode_value(1);
            Some(Record { value: Some(value.expect("invariant: it was read")), ..record.clone() })
        }
        _ => whole(),
    }
}

fn of_transactions(effects: Vec<TransactionEffect>) -> Vec<Step> {
    let step = |effect| match effect {
        TransactionEffect::Append { batch, records } => {
            Step::Append(batch, batch_of(None, records), TransactionVersion::V0)
        }
        TransactionEffect::Answer { ticket, response } => Step::Answer(ticket, Answer::Transaction(response)),
        TransactionEffect::WriteMarkers(order) => Step::Mark(order),
        TransactionEffect::AllocateProducerIds => Step::ProducerIds,
    };
    effects.into_iter().map(step).collect()
}

fn of_groups(effects: Vec<Effect>) -> Vec<Step> {
    let step = |effect| match effect {
        Effect::Append { batch, records } => {
            Some(Step::Append(batch, batch_of(None, records), TransactionVersion::V0))
        }
        Effect::AppendInTransaction { batch, producer, records } => {
            Some(Step::Append(batch, batch_of(Some(producer), records), TransactionVersion::V0))
        }
        Effect::AppendMarker { batch, end } => Some(Step::Append(batch, marker_of(&end), end.version)),
        Effect::Answer { ticket, response } => Some(Step::Answer(ticket, of_group(response))),
        // There are no members.
        Effect::Compute(_) | Effect::ShareState(_) => None,
    };
    effects.into_iter().filter_map(step).collect()
}

fn batch_of(producer: Option<Producer>, records: Vec<Record>) -> Batch {
    let (id, epoch) =
        producer.map_or((ProducerId::NONE, ProducerEpoch::NONE), |producer| (producer.id, producer.epoch));
    let offsets = records.len() as i32;
    let contents = Contents::Records { records, in_transaction: producer.is_some() };
    Batch { offsets, ..Batch::new(id, epoch, contents) }
}

pub(super) fn marker_of(end: &EndTransaction) -> Batch {
    let EndTransaction { producer, commit, coordinator_epoch, .. } = *end;
    Batch::new(producer.id, producer.epoch, Contents::Marker { commit, coordinator_epoch })
}

impl Process {
    /// The broker leads the partition in this epoch.
    pub(super) fn load_shard(&mut self, key: ReplicaKey, epoch: LeaderEpoch, around: &mut Around<'_>) {
        self.drop_shard(key, around);
        let Some(topic) = self.image.topics.by_id(key.topic) else { return };
        if let Some(machine) = Machine::of(&topic.name, around.version, epoch) {
            let shard = Shard { epoch, machine, is_active: false, waiting: Vec::new() };
            self.coordinators.shards.insert(key, shard);
        }
    }

    /// It leads it no more, or in another epoch.
    pub(super) fn drop_shard(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        let Some(shard) = self.coordinators.shards.remove(&key) else { return };
        for (reply, work, _) in shard.waiting {
            self.reply(reply, work.refuse(ErrorCode::NotCoordinator), around);
        }
        let steps = shard.machine.unload();
        self.take_steps(key, steps, Standing::Open, around);
    }

    /// What time brings to the coordinators, and to what was asked of others.
    pub(super) fn coordinate(&mut self, around: &mut Around<'_>) {
        let asked = self.coordinators.asked.iter();
        let overdue = asked.filter(|(_, (until, _))| *until <= around.now);
        let overdue: Vec<u64> = overdue.map(|(number, _)| *number).collect();
        for number in overdue {
            self.was_not_told(number, around);
        }
        let keys: Vec<ReplicaKey> = self.coordinators.shards.keys().copied().collect();
        for key in keys {
            self.load(key, around);
            let shard = self.coordinators.shards.get_mut(&key).filter(|shard| shard.is_active);
            let Some(shard) = shard else { continue };
            if shard.machine.deadline().is_some_and(|at| at <= around.now) {
                let steps = shard.machine.tick(now(around.now));
                self.take_steps(key, steps, Standing::Open, around);
            }
        }
    }

    fn load(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        let Some(shard) = self.coordinators.shards.get_mut(&key).filter(|shard| !shard.is_active) else {
            return;
        };
        let epoch = shard.epoch;
        let Some(replica) = self.host.replica(key) else { return };
        let partition = &replica.partition;
        let leads = partition.is_leader() && partition.leader_epoch() == epoch;
        let is_safe = partition.high_watermark() == partition.log_end() || around.is(Mistake::LoadsTheUnsafe);
        if !leads || !is_safe || !around.random.one_in(3) {
            return;
        }
        let log = self.host.log(key);
        // A batch that cannot be read is repaired first (shell/broker's coordinator_worker asks again).
        if !log.is_whole {
            return;
        }
        let mut log = log.batches;
        if around.is(Mistake::ForgetsTheLast) {
            log.pop();
        }
        let Some(shard) = self.coordinators.shards.get_mut(&key) else { return };
        log.iter().for_each(|batch| shard.machine.replay(batch, around.mistake));
        shard.is_active = true;
        let waiting = std::mem::take(&mut shard.waiting);
        let steps = shard.machine.activate(now(around.now));
        self.take_steps(key, steps, Standing::Open, around);
        for (reply, work, standing) in waiting {
            self.hand(key, reply, work, standing, around);
        }
    }

    /// Hands a request to the shard. `standing` is that of what it appends within a transaction.
    pub(super) fn hand(
        &mut self,
        key: ReplicaKey,
        reply: Reply,
        work: Work,
        standing: Standing,
        around: &mut Around<'_>,
    ) {
        let Some(shard) = self.coordinators.shards.get_mut(&key) else {
            self.reply(reply, work.refuse(ErrorCode::NotCoordinator), around);
            return;
        };
        if !shard.is_active {
            shard.waiting.push((reply, work, standing));
            return;
        }
        self.coordinators.tickets += 1;
        let ticket = Ticket(self.coordinators.tickets);
        self.coordinators.replies.insert(ticket, reply);
        let steps = shard.machine.handle(work, ticket, now(around.now));
        self.take_steps(key, steps, standing, around);
    }

    /// A batch of the shard's is safe, or never will be.
    pub(super) fn decided(
        &mut self,
        key: ReplicaKey,
        epoch: LeaderEpoch,
        batch: BatchId,
        answer: Result<(), ErrorCode>,
        around: &mut Around<'_>,
    ) {
        let shard = self.coordinators.shards.get_mut(&key);
        let Some(shard) = shard.filter(|shard| shard.is_active && shard.epoch == epoch) else { return };
        let steps = shard.machine.decided(batch, answer, now(around.now));
        self.take_steps(key, steps, Standing::Open, around);
    }

    /// Says something to the shard of transactions, if it is there.
    pub(super) fn tell(
        &mut self,
        key: ReplicaKey,
        around: &mut Around<'_>,
        say: impl FnOnce(&mut TransactionShard, Now) -> Vec<TransactionEffect>,
    ) {
        let shard = self.coordinators.shards.get_mut(&key).filter(|shard| shard.is_active);
        let Some(Shard { machine: Machine::Transactions(shard), .. }) = shard else { return };
        let steps = of_transactions(say(shard, now(around.now)));
        self.take_steps(key, steps, Standing::Open, around);
    }

    fn take_steps(&mut self, key: ReplicaKey, steps: Vec<Step>, standing: Standing, around: &mut Around<'_>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Answer(ticket, answer) => {
                    if let Some(reply) = self.coordinators.replies.remove(&ticket) {
                        self.reply(reply, answer, around);
                    }
                }
                Step::Mark(order) => self.order(key, order, around),
                Step::ProducerIds => self.ask_for_ids(key, around),
                Step::Append(id, batch, version) => {
                    if around.is(Mistake::MarksEarly) {
                        self.mark_early(key, &batch, around);
                    }
                    if let Err(code) = self.place(key, id, &batch, version, standing, around)
                        && let Some(shard) = self.coordinators.shards.get_mut(&key)
                    {
                        steps.extend(shard.machine.decided(id, Err(code), now(around.now)));
                    }
                }
            }
        }
    }

    /// Appends what a shard wrote.
    fn place(
        &mut self,
        key: ReplicaKey,
        id: BatchId,
        batch: &Batch,
        version: TransactionVersion,
        standing: Standing,
        around: &mut Around<'_>,
    ) -> Result<(), ErrorCode> {
        let Some(epoch) = self.coordinators.shards.get(&key).map(|shard| shard.epoch) else {
            return Ok(());
        };
        let is_marker = matches!(batch.contents, Contents::Marker { .. });
        let is_unsafe = around.is(Mistake::AnswersEarly) || is_marker && around.is(Mistake::MarksUnsafely);
        let verification = match is_marker {
            true => TxnVerification::Marker(marker_version(version, around)),
            false => verification(standing, around),
        };
        let how = Handing {
            origin: Origin::Coordinator,
            acks: if is_unsafe { Acks::Leader } else { Acks::All },
            verification,
            deadline: around.now.plus(EVER),
        };
        let batch = self.bent(key, batch, around);
        self.host.append(key, &batch, how, Waiter::Shard(epoch, id), around.now)
    }

    /// A marker as the partition would have it, where a mistake is planted.
    pub(super) fn bent(&self, key: ReplicaKey, batch: &Batch, around: &Around<'_>) -> Batch {
        let mut batch = batch.clone();
        if !matches!(batch.contents, Contents::Marker { .. }) {
            return batch;
        }
        let Some(replica) = self.host.replica(key) else { return batch };
        let known =
            replica.partition.producers().into_iter().find(|known| known.producer_id == batch.producer);
        let known = known.map_or(ProducerEpoch::NONE, |known| known.producer_epoch);
        if around.is(Mistake::MarksAnyEpoch) {
            batch.producer_epoch = batch.producer_epoch.max(known);
        }
        batch
    }

    /// The shard that looks after `id`, and the broker that leads it, as far as this one knows.
    pub(super) fn shard_of(&self, topic: &str, id: &str) -> Option<(ReplicaKey, BrokerId)> {
        shard_of(&self.image, topic, id)
    }
}

pub(crate) fn shard_of(
    image: &barnabas_metadata::Image,
    topic: &str,
    id: &str,
) -> Option<(ReplicaKey, BrokerId)> {
    let topic = image.topics.by_name(topic)?;
    let partition: PartitionIndex = partition_for(id, topic.partitions().count() as i32);
    let leader = topic.partition(partition)?.leader;
    Some((ReplicaKey { topic: topic.id, partition }, leader))
}

/// What a batch's transaction rests on, in the words of its replica.
pub(super) fn verification(standing: Standing, around: &Around<'_>) -> TxnVerification {
    match standing {
        Standing::Open => TxnVerification::Open,
        Standing::By(_) if around.is(Mistake::KeepsOldWords) => TxnVerification::Waived,
        Standing::By(verified) => TxnVerification::Verified(verified),
        Standing::Waived => TxnVerification::Waived,
    }
}

pub(super) fn marker_version(version: TransactionVersion, around: &Around<'_>) -> i16 {
    if around.is(Mistake::MarksAnyEpoch) { 0 } else { version.0 }
}
