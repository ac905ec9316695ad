//! The world: one step at a time, whatever chance says.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, ErrorCode, PartitionIndex, ProducerEpoch, ProducerId, Text, TopicPartition};
use barnabas_coordinator::{
    AddOffsets, AddPartitions, BatchId, MarkerOrder, MarkerOutcome, Record, Ticket, TransactionConfig,
    TransactionEffect, TransactionRequest, TransactionResponse, TransactionState, TransactionVersion,
};
use barnabas_wire::messages::{
    TransactionLogKey, TransactionLogValue, TransactionRecordKey, TransactionRecordValue,
};

use super::client::{Client, State};
use super::offsets::Offsets;
use super::partition::{Partition, Take, Value};
use super::{Bug, Random};
use crate::transactions::Rig;

/// Of the topic.
const PARTITIONS: usize = 3;
/// Behind them the one of `__consumer_offsets`.
const OFFSETS: usize = PARTITIONS;
const IDS: usize = 2;
const CLIENTS: usize = 5;

/// What is under way between machines.
#[derive(Debug, Clone)]
pub(super) enum Message {
    /// From a client to the coordinator.
    Ask {
        from: From,
        version: i16,
        request: TransactionRequest,
    },
    /// And back.
    Told {
        from: From,
        request: TransactionRequest,
        response: TransactionResponse,
    },
    /// From a client to a partition's leader.
    Write {
        client: usize,
        id: usize,
        partition: usize,
        value: Value,
        producer: i64,
        epoch: i16,
        bumps: bool,
    },
    /// From the leader to the coordinator.
    Verify {
        write: Box<Message>,
        guard: u64,
    },
    /// And back.
    Verified {
        write: Box<Message>,
        guard: u64,
    },
    /// From the coordinator to a leader.
    Mark {
        order: MarkerOrder,
        partition: usize,
    },
    Marked {
        order: MarkerOrder,
        partition: usize,
        outcome: MarkerOutcome,
    },
}

/// A client, and which of its transactions it was in: as correlation ids do, it tells late answers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct From {
    pub client: usize,
    pub attempt: usize,
}

#[derive(Debug)]
pub(super) enum Asked {
    Client(From, TransactionRequest),
    Leader(Box<Message>, u64),
}

pub struct World {
    pub rig: Rig,
    pub random: Random,
    pub bug: Bug,
    pub clients: Vec<Client>,
    pub partitions: Vec<Partition>,
    offsets: Offsets,
    pub(super) network: Vec<Message>,
    asked: BTreeMap<Ticket, Asked>,
    next_value: Value,
    pub(super) bumps: bool,
    /// What is below this has been fenced, or has ended on every partition: no producer writes under it any more.
    pub(super) fenced: Vec<(i64, i16)>,
    /// What was answered to an end: the same for ever.
    pub(super) ended: BTreeMap<(i64, i16), (bool, i64, i16)>,
    /// Of each transactional id, producer id and marker's epoch: whether it was committed.
    pub(super) decided: BTreeMap<(String, i64, i16), bool>,
    pub(super) read: usize,
    pub(super) last: BTreeMap<String, (i64, i16)>,
    is_healed: bool,
    pub found: Vec<String>,
}

fn partition_of(index: usize) -> TopicPartition {
    if index == OFFSETS {
        return TopicPartition::new("__consumer_offsets", PartitionIndex(0));
    }
    TopicPartition::new("t", PartitionIndex(index as i32))
}

fn index_of(partition: &TopicPartition) -> usize {
    if *partition.topic == *"t" { partition.partition.get() as usize } else { OFFSETS }
}

pub fn value_of(record: &Record) -> (String, Option<TransactionLogValue>) {
    let TransactionRecordKey::TransactionLog(key) =
        TransactionRecordKey::decode_key(record.key.clone()).expect("a key");
    let value = record.value.clone().map(|value| {
        let (value, _) = TransactionRecordValue::decode_value(0, value).expect("a value");
        let TransactionRecordValue::TransactionLog(value) = value;
        value
    });
    (key.transactional_id.to_string(), value)
}

/// The record of a transactional id at this epoch.
fn far(epoch: i16, version: TransactionVersion) -> Record {
    let key = TransactionLogKey { transactional_id: "id-0".into(), ..Default::default() };
    let value = TransactionLogValue {
        producer_id: 900,
        producer_epoch: epoch,
        transaction_timeout_ms: 10_000,
        transaction_partitions: None,
        transaction_start_timestamp_ms: -1,
        ..Default::default()
    };
    let value = TransactionRecordValue::TransactionLog(value).encode_value(version.record_version());
    Record {
        key: TransactionRecordKey::TransactionLog(key).encode_key().expect("a key"),
        value: Some(value.expect("a value")),
    }
}

pub(super) fn state_of(value: &TransactionLogValue) -> TransactionState {
    TransactionState::of_record(value.transaction_status).expect("a state")
}

impl World {
    pub fn new(seed: u64, version: i16, bug: Bug) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let version = TransactionVersion(version);
        let busy_patience = DurationMs([0, 100, 5_000][random.below(3) as usize]);
        let append_timeout = DurationMs(2_000);
        let config = TransactionConfig { version, append_timeout, busy_patience, ..Default::default() };
        let mut rig = Rig::new(config);
        rig.disk_is_quick = false;
        if random.chance(30) {
            // A producer that has come far: its epochs are used up soon.
            let epoch = i16::MAX - 1 - random.below(5) as i16;
            rig.log.push(far(epoch, version));
            rig.shard = rig.reloaded();
            let effects = rig.shard.activate(rig.now());
            assert_eq!(effects, []);
        }
        let bumps = version.bumps_epoch();
        let starts = State::Starts { says: false };
        let client = |id| Client { id, state: starts, producer: -1, epoch: -1, attempts: Vec::new(), bumps };
        let clients = (0..CLIENTS).map(|_| client(random.below(IDS as u64) as usize)).collect();
        Self {
            rig,
            random,
            bug,
            clients,
            partitions: (0..=OFFSETS).map(|_| Partition::default()).collect(),
            offsets: Offsets::new(),
            network: Vec::new(),
            asked: BTreeMap::new(),
            next_value: 1,
            bumps,
            fenced: vec![(-1, -1); IDS],
            ended: BTreeMap::new(),
            decided: BTreeMap::new(),
            read: 0,
            last: BTreeMap::new(),
            is_healed: false,
            found: Vec::new(),
        }
    }

    pub fn step(&mut self) {
        match self.random.below(100) {
            0..60 => self.deliver(),
            60..78 => self.settle(),
            78..95 => self.act(),
            95..98 => {
                let time = [10, 200, 3_000][self.random.below(3) as usize];
                self.pass(time);
            }
            98 if self.random.chance(40) => self.moves(),
            _ if self.random.chance(15) => self.pass(11_000),
            _ => self.deliver(),
        }
        self.read_log();
    }

    /// No more faults: everything comes to its end.
    pub fn heal(&mut self) {
        self.is_healed = true;
        for _ in 0..40 {
            for _ in 0..200 {
                self.deliver();
                self.settle();
            }
            self.pass(11_000);
            self.read_log();
        }
    }

    fn pass(&mut self, time: i64) {
        let mut seen = Vec::new();
        self.rig.wait(DurationMs(time), |_, effects| seen.extend(effects));
        self.follow(seen);
    }

    /// A client does something.
    fn act(&mut self) {
        let who = self.random.below(CLIENTS as u64) as usize;
        // Who was fenced keeps quiet for a while, so that others get somewhere.
        if self.clients[who].state == (State::Starts { says: false }) && !self.random.chance(8) {
            return;
        }
        if let Some((version, request)) = self.clients[who].asks() {
            self.network.push(Message::Ask { from: self.from(who), version, request });
            // It may lose patience, and start again under what it had.
            if self.random.chance(2) {
                let says = self.random.chance(50) && self.clients[who].producer >= 0;
                self.clients[who].state = State::Starts { says };
            }
            return;
        }
        let Some(attempt) = self.clients[who].attempts.last() else { return };
        let missing: Vec<(usize, Value)> =
            attempt.values.iter().filter(|(_, value)| !attempt.acked.contains(value)).copied().collect();
        let is_new = attempt.values.len() < 4 && (attempt.values.is_empty() || self.random.chance(30));
        if is_new {
            let write = (self.random.below(OFFSETS as u64 + 1) as usize, self.next_value);
            self.next_value += 1;
            self.clients[who].attempts.last_mut().into_iter().for_each(|attempt| attempt.values.push(write));
            self.send(who, write);
        } else if self.random.chance(if missing.is_empty() { 60 } else { 8 }) {
            self.end(who);
        } else {
            missing.into_iter().for_each(|write| self.send(who, write));
        }
    }

    fn from(&self, client: usize) -> From {
        From { client, attempt: self.clients[client].attempts.len() }
    }

    fn send(&mut self, who: usize, (partition, value): (usize, Value)) {
        let client = &self.clients[who];
        let (id, producer, epoch, bumps) = (client.id, client.producer, client.epoch, self.bumps);
        if !bumps {
            let (producer_id, producer_epoch) = (ProducerId(producer), ProducerEpoch(epoch));
            let (transactional_id, at) = (client.name().into(), partition_of(partition));
            let request = if partition == OFFSETS {
                let add = AddOffsets { transactional_id, producer_id, producer_epoch, partition: at };
                TransactionRequest::AddOffsets(add)
            } else {
                TransactionRequest::AddPartitions(AddPartitions {
                    transactional_id,
                    producer_id,
                    producer_epoch,
                    verify_only: false,
                    partitions: vec![at],
                })
            };
            self.network.push(Message::Ask { from: self.from(who), version: 3, request });
            return;
        }
        self.network.push(Message::Write { client: who, id, partition, value, producer, epoch, bumps });
    }

    /// Before version 2 a client writes to a partition once it is known to be in the transaction.
    fn added(&mut self, who: usize, response: &TransactionResponse) {
        let (added, code) = match response {
            TransactionResponse::AddPartitions(result) => {
                let added = &result.topic_results[0].results_by_partition[0];
                (added.partition_index as usize, added.partition_error_code)
            }
            TransactionResponse::AddOffsets(response) => (OFFSETS, response.error_code),
            _ => return,
        };
        let client = &self.clients[who];
        if code != 0 || client.state != State::Writes {
            return;
        }
        let (id, producer, epoch, bumps) = (client.id, client.producer, client.epoch, self.bumps);
        let Some(attempt) = client.attempts.last() else { return };
        for (partition, value) in attempt.values.clone() {
            if partition == added {
                self.network.push(Message::Write {
                    client: who,
                    id,
                    partition,
                    value,
                    producer,
                    epoch,
                    bumps,
                });
            }
        }
    }

    /// A client commits only what was acknowledged throughout.
    fn end(&mut self, who: usize) {
        let commits = self.random.chance(70);
        let is_patient = self.random.chance(90);
        let Some(attempt) = self.clients[who].attempts.last_mut() else { return };
        let is_whole = attempt.acked.len() == attempt.values.len();
        if commits && !is_whole && is_patient {
            return;
        }
        attempt.wish = Some(commits && is_whole);
        let values: Vec<Value> = attempt.values.iter().map(|(_, value)| *value).collect();
        self.clients[who].state = State::Ends;
        if !self.bumps {
            // Before version 2 a late batch may get into the next transaction, whose epoch is the same. That is known
            // (KIP-890), and not looked for here.
            self.network.retain(|message| match message {
                Message::Write { value, .. } => !values.contains(value),
                Message::Verify { write, .. } | Message::Verified { write, .. } => {
                    !matches!(**write, Message::Write { value, .. } if values.contains(&value))
                }
                Message::Ask {
                    from,
                    request: TransactionRequest::AddPartitions(_) | TransactionRequest::AddOffsets(_),
                    ..
                } => from.client != who,
                _ => true,
            });
            self.asked.retain(|_, asked| {
                !matches!(asked, Asked::Leader(write, _)
                if matches!(**write, Message::Write { value, .. } if values.contains(&value)))
            });
        }
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.random.below(self.network.len() as u64) as usize;
        // Before version 2 a marker that comes again may end the next transaction, whose epoch is the same (KIP-1228).
        let may_repeat = self.bumps || !matches!(self.network[at], Message::Mark { .. });
        let repeats = !self.is_healed && may_repeat && self.random.chance(10);
        let message = if repeats { self.network[at].clone() } else { self.network.swap_remove(at) };
        let is_lost = !self.is_healed && self.random.chance(4);
        // A worker always answers for the markers that it was to write.
        if is_lost && !matches!(message, Message::Mark { .. } | Message::Marked { .. }) {
            return;
        }
        match message {
            // Before version 2 a late end may hit the next transaction, too.
            Message::Ask { from, .. } if !self.bumps && self.from(from.client) != from => {}
            Message::Ask { from, version, request } => {
                let (ticket, effects) = self.rig.send(version, request.clone());
                self.asked.insert(ticket, Asked::Client(from, request));
                self.follow(effects);
            }
            Message::Told { from, .. } if self.from(from.client) != from => {}
            Message::Told { from, request, response } => {
                self.added(from.client, &response);
                self.clients[from.client].hears(&request, &response);
            }
            Message::Write { .. } => self.write(&message, None),
            Message::Verify { write, guard } => self.verify(write, guard),
            Message::Verified { write, guard } => self.write(&write, Some(guard)),
            Message::Mark { order, partition } => self.mark(order, partition, is_lost),
            Message::Marked { order, partition, outcome } => {
                let outcomes = [(partition_of(partition), outcome)];
                let effects = self.rig.answer_markers(order.ticket, &order.transactional_id, &outcomes);
                self.follow(effects);
            }
        }
    }

    fn write(&mut self, message: &Message, guard: Option<u64>) {
        let Message::Write { client, id, partition, value, producer, epoch, .. } = message else { return };
        let before = self.partitions[*partition].log.len();
        let taken = self.partitions[*partition].write(*value, *producer, *epoch, guard, self.bug);
        let is_new = self.partitions[*partition].log.len() > before;
        if is_new && *partition == OFFSETS {
            self.offsets.commit(*id, *value, *producer, *epoch);
            self.check_offsets();
        }
        if is_new && (*producer, *epoch) < self.fenced[*id] {
            self.found.push(format!("a zombie wrote {value} as p{producer}:{epoch}"));
        }
        match taken {
            Take::Done => {
                let attempts = &mut self.clients[*client].attempts;
                let own = attempts.iter_mut().find(|attempt| attempt.values.contains(&(*partition, *value)));
                if let Some(attempt) = own {
                    attempt.acked.insert(*value);
                }
            }
            Take::Ask { guard } => {
                self.network.push(Message::Verify { write: Box::new(message.clone()), guard });
            }
            Take::Refused => {}
        }
    }

    /// The leader asks: version 2 adds the partition, older ones only ask whether it is there.
    fn verify(&mut self, write: Box<Message>, guard: u64) {
        let Message::Write { id, partition, producer, epoch, bumps, .. } = &*write else { return };
        let request = TransactionRequest::AddPartitions(AddPartitions {
            transactional_id: format!("id-{id}").into(),
            producer_id: ProducerId(*producer),
            producer_epoch: ProducerEpoch(*epoch),
            verify_only: !*bumps,
            partitions: vec![partition_of(*partition)],
        });
        let (ticket, effects) = self.rig.send(5, request);
        self.asked.insert(ticket, Asked::Leader(write, guard));
        self.follow(effects);
    }

    fn mark(&mut self, mut order: MarkerOrder, partition: usize, is_lost: bool) {
        if self.bug == Bug::MarkerFlipped && partition == 0 {
            order.commit = !order.commit;
        }
        let outcome = if self.bug == Bug::MarkerForgotten && partition == 0 {
            MarkerOutcome::Written
        } else if is_lost {
            MarkerOutcome::Failed(ErrorCode::NetworkException)
        } else {
            self.check_marker(&order);
            let outcome = self.partitions[partition].mark(&order);
            if partition == OFFSETS && outcome == MarkerOutcome::Written {
                self.offsets.end(&order, self.bug);
                self.check_offsets();
            }
            outcome
        };
        self.network.push(Message::Marked { order, partition, outcome });
    }

    fn check_offsets(&mut self) {
        let violation = self.offsets.violation(&self.partitions[OFFSETS].log);
        self.found.extend(violation);
    }

    /// A marker says what is on disk.
    fn check_marker(&mut self, order: &MarkerOrder) {
        let key = (order.transactional_id.to_string(), order.producer_id.get(), order.producer_epoch.get());
        match self.decided.get(&key) {
            // Before version 2 transactions of the same epoch end in different ways.
            Some(decided) if *decided == order.commit || !self.bumps => {}
            decided => self.found.push(format!("a marker {order:?} where {decided:?} was decided")),
        }
    }

    /// Some batch gets to disk, or does not.
    fn settle(&mut self) {
        let Some(oldest) = self.rig.pending.keys().next().copied() else { return };
        let effects = match self.random.below(12) {
            0 if !self.is_healed => self.rig.fail(oldest, ErrorCode::NotEnoughReplicas),
            1..5 => self.rig.durable(oldest),
            _ => self.rig.durable(BatchId(u64::MAX - 1)),
        };
        self.read_log();
        self.follow(effects);
    }

    /// Another coordinator takes over. What the old one was writing may be in the log or not.
    fn moves(&mut self) {
        if self.random.chance(50) {
            self.offsets.moves(self.bug);
            self.check_offsets();
        }
        for records in std::mem::take(&mut self.rig.pending).into_values() {
            if !self.random.chance(50) {
                break;
            }
            self.rig.log.extend(records);
        }
        self.read_log();
        match self.bug {
            Bug::RecordLost => {
                self.rig.log.pop();
            }
            Bug::EpochBack => self.rewrite(|value| value.producer_epoch = (value.producer_epoch - 1).max(0)),
            Bug::DecisionTurned => self.rewrite(|value| {
                if value.transaction_status == TransactionState::PrepareCommit.number() {
                    value.transaction_status = TransactionState::PrepareAbort.number();
                }
            }),
            _ => {}
        }
        let effects = self.rig.moves();
        self.follow(effects);
    }

    fn rewrite(&mut self, bug: impl FnOnce(&mut TransactionLogValue)) {
        let Some(record) = self.rig.log.last_mut() else { return };
        let (_, Some(mut value)) = value_of(record) else { return };
        bug(&mut value);
        let version = self.rig.config.version.record_version();
        let value = TransactionRecordValue::TransactionLog(value).encode_value(version);
        record.value = Some(value.expect("a value"));
    }

    /// Carries effects out.
    fn follow(&mut self, effects: Vec<TransactionEffect>) {
        for effect in effects {
            match effect {
                TransactionEffect::Append { records, .. } => self.plant_early(&records),
                TransactionEffect::Answer { ticket, response } => self.answer(ticket, response),
                TransactionEffect::WriteMarkers(order) => self.send_markers(order),
                TransactionEffect::AllocateProducerIds => {}
            }
        }
        self.rig.orders.clear();
    }

    fn send_markers(&mut self, order: MarkerOrder) {
        for partition in &order.partitions {
            let partition = index_of(partition);
            self.network.push(Message::Mark { order: order.clone(), partition });
        }
    }

    /// Bugs that do not wait for the disk.
    fn plant_early(&mut self, records: &[Record]) {
        for record in records {
            let (id, Some(value)) = value_of(record) else { continue };
            if !state_of(&value).is_prepared() {
                continue;
            }
            let commit = state_of(&value) == TransactionState::PrepareCommit;
            if self.bug == Bug::MarkerEarly {
                self.send_markers(MarkerOrder {
                    ticket: barnabas_coordinator::MarkerTicket {
                        coordinator_epoch: barnabas_base::CoordinatorEpoch(self.rig.coordinator_epoch),
                        number: u64::MAX,
                    },
                    transactional_id: Text::from(id),
                    producer_id: ProducerId(value.producer_id),
                    producer_epoch: ProducerEpoch(value.producer_epoch),
                    commit,
                    version: TransactionVersion(value.client_transaction_version),
                    partitions: (0..=OFFSETS).map(partition_of).collect(),
                });
            } else if self.bug == Bug::AnswerEarly {
                let early = self.asked.values().find_map(|asked| match asked {
                    Asked::Client(from, request @ TransactionRequest::EndTxn(_)) => {
                        let is_its = format!("id-{}", self.clients[from.client].id) == id;
                        is_its.then(|| (*from, request.clone()))
                    }
                    _ => None,
                });
                let Some((from, request)) = early else { continue };
                let response = TransactionResponse::EndTxn(barnabas_wire::messages::EndTxnResponse {
                    producer_id: value.producer_id,
                    producer_epoch: value.producer_epoch,
                    ..Default::default()
                });
                self.told(from, request, response);
            }
        }
    }

    fn answer(&mut self, ticket: Ticket, mut response: TransactionResponse) {
        match self.asked.remove(&ticket) {
            Some(Asked::Client(from, request)) => {
                match (&mut response, &request, self.bug) {
                    (
                        TransactionResponse::EndTxn(response),
                        TransactionRequest::EndTxn(end),
                        Bug::RefusalSwallowed,
                    ) if response.error_code == ErrorCode::ProducerFenced.code() => {
                        response.error_code = 0;
                        response.producer_id = end.producer_id;
                        response.producer_epoch = end.producer_epoch + 1;
                    }
                    (TransactionResponse::InitProducerId(response), _, Bug::EpochNotBumped)
                        if response.producer_epoch > 0 =>
                    {
                        response.producer_epoch -= 1;
                    }
                    _ => {}
                }
                self.told(from, request, response);
            }
            Some(Asked::Leader(write, guard)) => {
                let TransactionResponse::AddPartitions(result) = response else { return };
                if result.topic_results[0].results_by_partition[0].partition_error_code == 0 {
                    self.network.push(Message::Verified { write, guard });
                }
            }
            None => {}
        }
    }
}
