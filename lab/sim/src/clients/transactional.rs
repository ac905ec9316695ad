//! Transactional producers, as an application runs them: one transaction after the other, of values in partitions and
//! an offset of a group, each question repeated until it is answered. Some have the same transactional id and fence
//! each other.
//!
//! Before `transaction.version` 2 a client adds partitions itself, and keeps its epoch unless it has to give up
//! something. What comes late could get into its next transaction then (KIP-890): the world keeps that from happening,
//! see `World::deliver`.

use std::collections::BTreeMap;

use barnabas_base::{
    ConnectionNumber, ErrorCode, MonotonicMs, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Text,
    TopicId, TopicPartition, name,
};
use barnabas_coordinator::{
    AddOffsets, AddPartitions, Response, TransactionRequest, TransactionResponse, TransactionVersion,
};
use barnabas_metadata::Image;
use barnabas_partition::ReplicaKey;
use barnabas_wire::Str;
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::{EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest};

use crate::batch::keyed::VALUE_BIT;
use crate::batch::{Batch, Contents, Value};
use crate::broker::coordinators::shard_of;
use crate::network::{Answer, Question};
use crate::random::Random;

const PARTS_MAX: usize = 4;
/// How long an answer is waited for.
const PATIENCE_MS: i64 = 120;
/// A transaction may be open for so long.
const TIMEOUT_MS: i32 = 600;
/// The topic whose offsets are committed.
const SOURCE: &str = "source";

/// Where a part of a transaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Partition(PartitionIndex),
    Offsets,
}

/// One part of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub target: Target,
    pub value: Value,
    sequence: Sequence,
    sent: Option<MonotonicMs>,
    pub is_acked: bool,
}

/// One transaction, as its client knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempt {
    pub parts: Vec<Part>,
    pub wish: Option<bool>,
    pub told: Option<bool>,
    /// Something cannot be done any more.
    is_broken: bool,
    /// Targets that were added, before version 2.
    added: Vec<Target>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Wants a producer id; says who it was if it goes on.
    Starts {
        says: bool,
    },
    Writes,
    Ends,
}

/// What a question was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Start,
    Add(Target),
    Part(Value),
    End,
    Offsets,
}

/// A question for the leader of a partition.
#[derive(Debug)]
pub(crate) struct Asks {
    pub number: u64,
    pub question: Question,
    pub key: ReplicaKey,
}

#[derive(Debug)]
pub(crate) struct TxnClient {
    number: usize,
    /// Its transactional id, and its group's.
    pub id: Text,
    topic: TopicId,
    topic_name: Text,
    partitions: i32,
    version: TransactionVersion,
    state: State,
    pub producer: (ProducerId, ProducerEpoch),
    sequences: BTreeMap<PartitionIndex, Sequence>,
    pub attempts: Vec<Attempt>,
    /// A connection to its coordinator for each of its attempts, or a new one where that was closed: numbered by its
    /// time, among all clients.
    connection: ConnectionNumber,
    connected_for: Option<usize>,
    asked: BTreeMap<u64, About>,
    questions: u32,
    /// When the last question of a kind that is asked alone was sent.
    sent: Option<MonotonicMs>,
    quiet_until: MonotonicMs,
    pub is_done: bool,
    /// Its records have keys.
    pub writes_keys: bool,
    /// The group's offset, as it was told last; a value.
    pub offset: Option<Option<Value>>,
}

/// The value of a part: its client, attempt and place.
pub(crate) fn value(client: usize, attempt: usize, part: usize) -> Value {
    (client as u64) << 40 | (attempt as u64) << 8 | part as u64
}

/// Which client's which attempt a value belongs to.
pub(crate) fn attempt_of(value: Value) -> (usize, usize) {
    (((value & !VALUE_BIT) >> 40) as usize, (value >> 8) as u32 as usize)
}

/// Of which attempt a client asks.
pub(crate) fn attempt_asking(number: u64) -> usize {
    (number >> 32) as usize
}

impl TxnClient {
    pub fn new(number: usize, id: Text, topic: (TopicId, Text, i32), version: TransactionVersion) -> Self {
        let (topic, topic_name, partitions) = topic;
        Self {
            number,
            id,
            topic,
            topic_name,
            partitions,
            version,
            state: State::Starts { says: false },
            producer: (ProducerId::NONE, ProducerEpoch::NONE),
            sequences: BTreeMap::new(),
            attempts: Vec::new(),
            connection: ConnectionNumber(0),
            connected_for: None,
            asked: BTreeMap::new(),
            questions: 0,
            sent: None,
            quiet_until: MonotonicMs(0),
            is_done: false,
            writes_keys: false,
            offset: None,
        }
    }

    /// Nothing more to do, and everything answered.
    pub fn is_at_rest(&self) -> bool {
        self.is_done && self.offset.is_some() && !matches!(self.state, State::Writes | State::Ends)
    }

    /// What it asks now.
    pub fn act(&mut self, now: MonotonicMs, image: &Image, random: &mut Random) -> Vec<Asks> {
        if now < self.quiet_until {
            return Vec::new();
        }
        if self.connected_for != Some(self.attempts.len()) {
            self.connected_for = Some(self.attempts.len());
            self.connection = ConnectionNumber(now.0);
        }
        let is_due = self.sent.is_none_or(|sent| now.since(sent).0 > PATIENCE_MS);
        match self.state {
            State::Starts { .. } if self.is_done => self.look(now, image, random),
            State::Starts { says } if is_due => {
                self.sent = Some(now);
                self.start(says, image).into_iter().collect()
            }
            State::Writes => self.write(now, image, random),
            State::Ends if is_due => {
                self.sent = Some(now);
                self.end(image).into_iter().collect()
            }
            State::Starts { .. } | State::Ends => Vec::new(),
        }
    }

    fn number(&mut self, about: About) -> u64 {
        self.questions += 1;
        let number = (self.attempts.len() as u64) << 32 | u64::from(self.questions);
        self.asked.insert(number, about);
        number
    }

    fn coordinator(
        &mut self,
        about: About,
        version: i16,
        request: TransactionRequest,
        image: &Image,
    ) -> Option<Asks> {
        let (shard, _) = shard_of(image, name::TRANSACTION_STATE, &self.id)?;
        let question = Question::Transaction { shard, version, request, connection: Some(self.connection) };
        Some(Asks { number: self.number(about), question, key: shard })
    }

    fn start(&mut self, says: bool, image: &Image) -> Option<Asks> {
        let (id, epoch) = if says { self.producer } else { (ProducerId::NONE, ProducerEpoch::NONE) };
        let request = InitProducerIdRequest {
            transactional_id: Some(Str::from(&self.id)),
            transaction_timeout_ms: TIMEOUT_MS,
            producer_id: id.get(),
            producer_epoch: epoch.get(),
            ..InitProducerIdRequest::default()
        };
        self.coordinator(About::Start, 5, TransactionRequest::InitProducerId(request), image)
    }

    fn end(&mut self, image: &Image) -> Option<Asks> {
        let request = EndTxnRequest {
            transactional_id: Str::from(&self.id),
            producer_id: self.producer.0.get(),
            producer_epoch: self.producer.1.get(),
            committed: self.attempts.last().and_then(|attempt| attempt.wish).unwrap_or(false),
            ..EndTxnRequest::default()
        };
        let version = if self.version.bumps_epoch() { 5 } else { 4 };
        self.coordinator(About::End, version, TransactionRequest::EndTxn(request), image)
    }

    fn begin(&mut self) {
        self.state = State::Writes;
        self.sent = None;
        self.asked.clear();
        self.attempts.push(Attempt::default());
    }

    fn write(&mut self, now: MonotonicMs, image: &Image, random: &mut Random) -> Vec<Asks> {
        let Some(attempt) = self.attempts.last() else { return Vec::new() };
        let is_whole = attempt.parts.iter().all(|part| part.is_acked);
        let impatient = attempt.is_broken || random.one_in(if self.is_done { 20 } else { 250 });
        let has_something = !attempt.parts.is_empty();
        if is_whole && has_something && random.one_in(6)
            || impatient && has_something
            || self.is_done && is_whole
        {
            let commits = is_whole && has_something && !attempt.is_broken && !random.one_in(4);
            return self.close(commits, now);
        }
        if !self.is_done && attempt.parts.len() < PARTS_MAX && random.one_in(5) {
            self.add_part(random);
        }
        self.send_parts(now, image)
    }

    fn close(&mut self, commits: bool, now: MonotonicMs) -> Vec<Asks> {
        let Some(attempt) = self.attempts.last_mut() else { return Vec::new() };
        let is_begun = !attempt.parts.is_empty();
        attempt.wish = Some(commits);
        self.sent = None;
        self.quiet_until = now;
        // Who has begun nothing has nothing to end.
        self.state = if is_begun { State::Ends } else { State::Starts { says: false } };
        Vec::new()
    }

    fn add_part(&mut self, random: &mut Random) {
        let mut target = Target::Partition(PartitionIndex(random.below(self.partitions as usize) as i32));
        if random.one_in(3) {
            target = Target::Offsets;
        }
        let at = self.attempts.len() - 1;
        let parts = &self.attempts[at].parts;
        // One at a time for each partition, as one connection keeps them in order; offsets once, as they have no
        // sequence.
        let is_busy =
            parts.iter().any(|part| part.target == target && (!part.is_acked || target == Target::Offsets));
        if is_busy {
            return;
        }
        let value = value(self.number, at, parts.len()) | if self.writes_keys { VALUE_BIT } else { 0 };
        let sequence = match target {
            Target::Offsets => Sequence::NONE,
            Target::Partition(partition) => {
                let next = self.sequences.entry(partition).or_insert(Sequence(0));
                let sequence = *next;
                *next = next.plus(1);
                sequence
            }
        };
        self.attempts[at].parts.push(Part { target, value, sequence, sent: None, is_acked: false });
    }

    fn send_parts(&mut self, now: MonotonicMs, image: &Image) -> Vec<Asks> {
        let Some(attempt) = self.attempts.last_mut() else { return Vec::new() };
        let is_due =
            |part: &&mut Part| !part.is_acked && part.sent.is_none_or(|sent| now.since(sent).0 > PATIENCE_MS);
        let mut due = Vec::new();
        for part in attempt.parts.iter_mut().filter(is_due) {
            part.sent = Some(now);
            due.push((part.target, part.value, part.sequence));
        }
        let adds = !self.version.bumps_epoch();
        let mut asked = Vec::new();
        for (target, value, sequence) in due {
            let is_added = self.attempts.last().is_some_and(|attempt| attempt.added.contains(&target));
            let question = if adds && !is_added {
                self.add(target, image)
            } else {
                self.send_part(target, value, sequence, image)
            };
            asked.extend(question);
        }
        asked
    }

    fn add(&mut self, target: Target, image: &Image) -> Option<Asks> {
        let ((producer_id, producer_epoch), transactional_id) = (self.producer, Str::from(&self.id));
        let (version, request) = match target {
            Target::Partition(partition) => {
                let partitions = vec![TopicPartition::new(self.topic_name.clone(), partition)];
                let verify_only = false;
                let add =
                    AddPartitions { transactional_id, producer_id, producer_epoch, verify_only, partitions };
                (3, TransactionRequest::AddPartitions(add))
            }
            Target::Offsets => {
                let (shard, _) = shard_of(image, name::CONSUMER_OFFSETS, &self.id)?;
                let partition = TopicPartition::new(name::CONSUMER_OFFSETS, shard.partition);
                let add = AddOffsets { transactional_id, producer_id, producer_epoch, partition };
                (3, TransactionRequest::AddOffsets(add))
            }
        };
        self.coordinator(About::Add(target), version, request, image)
    }

    fn send_part(&mut self, target: Target, value: Value, sequence: Sequence, image: &Image) -> Option<Asks> {
        let (producer, epoch) = self.producer;
        let joins = self.version.bumps_epoch();
        let (question, key) = match target {
            Target::Partition(partition) => {
                let key = ReplicaKey { topic: self.topic, partition };
                let batch = Batch { sequence, ..Batch::new(producer, epoch, Contents::Value(value)) };
                (Question::Write { key, id: self.id.clone(), joins, batch }, key)
            }
            Target::Offsets => {
                let (shard, _) = shard_of(image, name::CONSUMER_OFFSETS, &self.id)?;
                let partition = TxnOffsetCommitRequestPartition {
                    committed_offset: value as i64,
                    ..TxnOffsetCommitRequestPartition::default()
                };
                let topic = TxnOffsetCommitRequestTopic {
                    name: Str::from(SOURCE),
                    partitions: vec![partition],
                    ..TxnOffsetCommitRequestTopic::default()
                };
                let request = TxnOffsetCommitRequest {
                    transactional_id: Str::from(&self.id),
                    group_id: Str::from(&self.id),
                    producer_id: producer.get(),
                    producer_epoch: epoch.get(),
                    topics: vec![topic],
                    ..TxnOffsetCommitRequest::default()
                };
                let version = if joins { 5 } else { 4 };
                (Question::CommitOffsets { shard, version, request }, shard)
            }
        };
        Some(Asks { number: self.number(About::Part(value)), question, key })
    }

    /// Asks how far its group has come.
    fn look(&mut self, now: MonotonicMs, image: &Image, random: &mut Random) -> Vec<Asks> {
        if !random.one_in(20) {
            return Vec::new();
        }
        self.sent = Some(now);
        let Some((shard, _)) = shard_of(image, name::CONSUMER_OFFSETS, &self.id) else { return Vec::new() };
        let question = Question::FetchOffsets { shard, group: self.id.clone() };
        vec![Asks { number: self.number(About::Offsets), question, key: shard }]
    }

    /// Takes in an answer. Gives what its group's offset is, if that is what it was told.
    pub fn told(&mut self, number: u64, answer: &Answer, now: MonotonicMs) -> Option<Value> {
        let about = self.asked.remove(&number)?;
        if attempt_asking(number) != self.attempts.len() {
            return None;
        }
        match (about, answer) {
            (about, Answer::Transaction(TransactionResponse::Close)) => {
                self.connected_for = None;
                match about {
                    About::Add(target) => self.added(target, ErrorCode::CoordinatorNotAvailable),
                    _ => self.again(now),
                }
            }
            (About::Start, Answer::Transaction(TransactionResponse::InitProducerId(response))) => {
                self.started(
                    ErrorCode::from_code(response.error_code),
                    response.producer_id,
                    response.producer_epoch,
                    now,
                );
            }
            (About::Add(target), Answer::Transaction(response)) => self.added(target, code_of(response)),
            (About::Part(value), Answer::Written(written)) => {
                self.written(value, written.map_or_else(|code| code, |()| ErrorCode::None));
            }
            (About::Part(value), Answer::Offsets(response)) => self.written(value, offsets_code(response)),
            (About::End, Answer::Transaction(TransactionResponse::EndTxn(response))) => {
                let next = (ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch));
                self.ended(ErrorCode::from_code(response.error_code), next, now);
            }
            (About::Offsets, Answer::Offsets(response)) => return self.looked(response),
            _ => {}
        }
        None
    }

    fn started(&mut self, code: ErrorCode, id: i64, epoch: i16, now: MonotonicMs) {
        if !matches!(self.state, State::Starts { .. }) || self.is_done {
            return;
        }
        match code {
            ErrorCode::None => {
                self.producer = (ProducerId(id), ProducerEpoch(epoch));
                self.sequences.clear();
                self.begin();
            }
            code if code.is_retriable() => self.again(now),
            _ => self.restart(false, now),
        }
    }

    /// Asks once more, soon.
    fn again(&mut self, now: MonotonicMs) {
        self.sent = None;
        self.quiet_until = MonotonicMs(now.0 + 8);
    }

    fn restart(&mut self, says: bool, now: MonotonicMs) {
        self.state = State::Starts { says };
        self.sent = None;
        // Who was fenced keeps quiet for a while, so that others get somewhere.
        let quiet = if says { 0 } else { 60 + 40 * self.number as u64 };
        self.quiet_until = MonotonicMs(now.0 + quiet);
    }

    fn added(&mut self, target: Target, code: ErrorCode) {
        let Some(attempt) = self.attempts.last_mut() else { return };
        for part in attempt.parts.iter_mut().filter(|part| part.target == target) {
            part.sent = None;
        }
        match code {
            ErrorCode::None => attempt.added.push(target),
            code if code.is_retriable() => {}
            _ => attempt.is_broken = true,
        }
    }

    fn written(&mut self, value: Value, code: ErrorCode) {
        let Some(attempt) = self.attempts.last_mut() else { return };
        let Some(part) = attempt.parts.iter_mut().find(|part| part.value == value) else { return };
        match code {
            ErrorCode::None => part.is_acked = true,
            code if code.is_retriable() => part.sent = None,
            _ => attempt.is_broken = true,
        }
    }

    fn ended(&mut self, code: ErrorCode, next: (ProducerId, ProducerEpoch), now: MonotonicMs) {
        if self.state != State::Ends {
            return;
        }
        let Some(attempt) = self.attempts.last_mut() else { return };
        let is_whole = attempt.parts.iter().all(|part| part.is_acked);
        match code {
            ErrorCode::None => {
                attempt.told = attempt.wish;
                if self.version.bumps_epoch() {
                    self.producer = next;
                    self.sequences.clear();
                }
                if self.is_done {
                    self.restart(false, now);
                } else if !self.version.bumps_epoch() && !is_whole {
                    // What was given up has used up sequences.
                    self.restart(true, now);
                } else {
                    self.begin();
                }
            }
            code if code.is_retriable() => self.again(now),
            _ => self.restart(false, now),
        }
    }

    fn looked(&mut self, response: &Response) -> Option<Value> {
        let Response::OffsetFetch(group) = response else { return None };
        let mut partitions = group.topics.iter().flat_map(|topic| &topic.partitions);
        let first = partitions.next();
        if group.error_code != 0 || first.is_some_and(|partition| partition.error_code != 0) {
            return None;
        }
        let told = first.map(|partition| partition.committed_offset).filter(|offset| *offset >= 0);
        let told = told.map(|offset| offset as Value);
        self.offset = Some(told);
        told
    }
}

fn code_of(response: &TransactionResponse) -> ErrorCode {
    match response {
        TransactionResponse::AddOffsets(response) => ErrorCode::from_code(response.error_code),
        TransactionResponse::AddPartitions(result) => {
            let mut results = result.topic_results.iter().flat_map(|topic| &topic.results_by_partition);
            let code = results.next().map_or(-1, |one| one.partition_error_code);
            ErrorCode::from_code(code)
        }
        _ => ErrorCode::UnknownServerError,
    }
}

fn offsets_code(response: &Response) -> ErrorCode {
    let Response::TxnOffsetCommit(response) = response else { return ErrorCode::UnknownServerError };
    let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.next().map_or(ErrorCode::UnknownServerError, |one| ErrorCode::from_code(one.error_code))
}
