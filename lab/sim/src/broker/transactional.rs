//! What a broker does for transactions beside coordinating them: batches within one, once its coordinator agrees;
//! offsets within one, likewise; markers, both as the leader that writes them and as the coordinator that has them
//! written. What shell/broker's dispatch and markers.rs do.

use barnabas_base::{
    BrokerId, CoordinatorEpoch, DurationMs, ErrorCode, PartitionIndex, ProducerEpoch, ProducerId,
    TopicPartition, name,
};
use barnabas_coordinator::{
    AddPartitions, EndTransaction, MarkerOrder, MarkerOutcome, MarkerTicket, Producer, Request,
    TransactionCaller, TransactionRequest, TransactionResponse, TransactionState, TransactionVersion,
};
use barnabas_partition::{Acks, Origin, ReplicaKey};
use barnabas_replica::{TxnVerification, Verified};
use barnabas_wire::Str;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{AllocateProducerIdsRequest, TransactionLogValue, TxnOffsetCommitRequest};

use super::asked::Asked;
use super::coordinators::{
    Standing, Work, marker_of, marker_version, state_of, transaction_of, verification,
};
use super::{APPEND_PATIENCE, Around, Process};
use crate::batch::{Batch, Contents};
use crate::host::{Handing, Waiter};
use crate::mistake::Mistake;
use crate::network::{Answer, MARK_OVERDUE_MS, Message, Place, Question, Reply};

/// How long the coordinator's word is waited for: longer than a client waits for its answer.
const WORD_PATIENCE: DurationMs = DurationMs(260);
/// TxnOffsetCommit from this version on lets the group's partition join.
pub(crate) const OFFSETS_JOIN_SINCE: i16 = 5;
/// AddPartitionsToTxn as brokers send it.
const ADD_PARTITIONS: i16 = 5;
const OFFSET_FETCH: i16 = 9;
/// EndTxn from this version on bumps the epoch.
const END_BUMPS_SINCE: i16 = 5;

/// Who wants to begin what.
struct Wish<'a> {
    id: &'a str,
    producer: (ProducerId, ProducerEpoch),
    joins: bool,
    partition: TopicPartition,
}

impl Process {
    pub(super) fn was_asked(&mut self, reply: Reply, question: Question, around: &mut Around<'_>) {
        match question {
            Question::Transaction { shard, version, mut request, connection } => {
                if around.is(Mistake::EndsTwice) {
                    self.renew_end(shard, &mut request);
                }
                if around.is(Mistake::AnswersFromMemory) && self.remembers(shard, version, &request) {
                    let done = Answer::Transaction(request.refuse(ErrorCode::None));
                    return self.reply(reply, done, around);
                }
                let work = Work::Transaction(TransactionCaller { version, connection, room: None }, request);
                self.hand(shard, reply, work, Standing::Open, around);
            }
            Question::FetchOffsets { shard, group } => {
                let group = OffsetFetchRequestGroup {
                    group_id: Str::from(&group),
                    topics: None,
                    ..OffsetFetchRequestGroup::default()
                };
                let request = Request::OffsetFetch { group, require_stable: true };
                self.hand(shard, reply, Work::Group(OFFSET_FETCH, request), Standing::Open, around);
            }
            Question::CommitOffsets { shard, version, request } => {
                self.commit_offsets(reply, shard, version, request, around);
            }
            Question::Write { key, id, joins, batch } => self.write(reply, key, &id, joins, batch, around),
            Question::Mark { partition, end } => self.mark(reply, &partition, &end, around),
            Question::ProducerIds(_) => {}
        }
    }

    /// Asks another broker, or this one: all of it goes over the network.
    fn ask(
        &mut self,
        to: Place,
        question: Question,
        asked: Asked,
        patience: DurationMs,
        around: &mut Around<'_>,
    ) {
        let number = self.next_number();
        self.coordinators.asked.insert(number, (around.now.plus(patience), asked));
        self.send(to, Message::Ask { number, question }, around);
    }

    /// An end that was asked for before is made one of what is open now: a mistake.
    fn renew_end(&mut self, shard: ReplicaKey, request: &mut TransactionRequest) {
        let TransactionRequest::EndTxn(end) = request else { return };
        if let Some(value) = self.last_of(shard, &end.transactional_id) {
            end.producer_epoch = value.producer_epoch;
        }
    }

    /// Whether a client of versions 0 or 1 asks for what this coordinator has done already.
    fn remembers(&mut self, shard: ReplicaKey, version: i16, request: &TransactionRequest) -> bool {
        let (id, producer, epoch, added, state) = match request {
            TransactionRequest::AddPartitions(add) if version < ADD_PARTITIONS => {
                let (producer, epoch) = (add.producer_id.get(), add.producer_epoch.get());
                (&add.transactional_id, producer, epoch, &add.partitions[..], TransactionState::Ongoing)
            }
            TransactionRequest::AddOffsets(add) => {
                let (producer, epoch) = (add.producer_id.get(), add.producer_epoch.get());
                let added = std::slice::from_ref(&add.partition);
                (&add.transactional_id, producer, epoch, added, TransactionState::Ongoing)
            }
            TransactionRequest::EndTxn(end) if version < END_BUMPS_SINCE => {
                let states = [TransactionState::CompleteAbort, TransactionState::CompleteCommit];
                let state = states[usize::from(end.committed)];
                (&end.transactional_id, end.producer_id, end.producer_epoch, &[][..], state)
            }
            _ => return false,
        };
        let hosts = self.coordinators.shards.get(&shard).is_some_and(|shard| shard.is_active);
        let known = self.last_of(shard, id).filter(|_| hosts);
        known.is_some_and(|known| {
            let mut added = added.iter();
            (known.producer_id, known.producer_epoch, state_of(&known)) == (producer, epoch, state)
                && added.all(|partition| is_of(&known, partition))
        })
    }

    /// What is written last of a transactional id.
    fn last_of(&mut self, shard: ReplicaKey, id: &str) -> Option<TransactionLogValue> {
        let log = self.host.log(shard).batches;
        let records = log.iter().rev().filter_map(|batch| match &batch.contents {
            Contents::Records { records, .. } => Some(records.iter().rev()),
            _ => None,
        });
        let mut values = records.flatten().filter_map(transaction_of);
        values.find(|(known, _)| **known == *id).map(|(_, value)| value)
    }

    fn write(
        &mut self,
        reply: Reply,
        key: ReplicaKey,
        id: &str,
        joins: bool,
        batch: Batch,
        around: &mut Around<'_>,
    ) {
        let verified = match self.guard(key, &batch, joins) {
            Ok(Some(verified)) if !around.is(Mistake::SkipsVerification) => verified,
            Ok(word) => return self.append_value(reply, key, &batch, unasked(word), around),
            Err(code) => return self.reply(reply, Answer::Written(Err(code)), around),
        };
        let Some(partition) = self.name_of(key) else { return };
        let wish = Wish { id, producer: (batch.producer, batch.producer_epoch), joins, partition };
        let asked = Asked::Word { reply, key, batch: batch.clone(), verified };
        if !self.ask_for_word(&wish, asked, around) {
            self.reply(reply, Answer::Written(Err(ErrorCode::CoordinatorNotAvailable)), around);
        }
    }

    /// What the coordinator's word will rest on, if it has to be asked.
    fn guard(&self, key: ReplicaKey, batch: &Batch, joins: bool) -> Result<Option<Verified>, ErrorCode> {
        let replica = self.host.replica(key).ok_or(ErrorCode::NotLeaderOrFollower)?;
        let guard = replica.partition.guard(batch.producer, batch.producer_epoch, joins);
        let guard = guard.map_err(barnabas_partition::Refusal::code)?;
        Ok(guard.map(|guard| Verified { replica: replica.number, guard }))
    }

    pub(super) fn name_of(&self, key: ReplicaKey) -> Option<TopicPartition> {
        Some(TopicPartition::new(self.image.topics.by_id(key.topic)?.name.clone(), key.partition))
    }

    /// Asks the transaction's coordinator. False: there is none.
    fn ask_for_word(&mut self, wish: &Wish<'_>, asked: Asked, around: &mut Around<'_>) -> bool {
        let Some((shard, leader)) = self.shard_of(name::TRANSACTION_STATE, wish.id) else { return false };
        if leader == BrokerId::NONE {
            return false;
        }
        let request = TransactionRequest::AddPartitions(AddPartitions {
            transactional_id: Str::from(wish.id),
            producer_id: wish.producer.0,
            producer_epoch: wish.producer.1,
            verify_only: !wish.joins,
            partitions: vec![wish.partition.clone()],
        });
        let question = Question::Transaction { shard, version: ADD_PARTITIONS, request, connection: None };
        self.ask(Place::Broker(leader), question, asked, WORD_PATIENCE, around);
        true
    }

    fn append_value(
        &mut self,
        reply: Reply,
        key: ReplicaKey,
        batch: &Batch,
        standing: Standing,
        around: &mut Around<'_>,
    ) {
        let how = Handing {
            origin: Origin::Client,
            acks: if around.is(Mistake::AnswersEarly) { Acks::Leader } else { Acks::All },
            verification: verification(standing, around),
            deadline: around.now.plus(APPEND_PATIENCE),
        };
        self.append_for(reply, key, batch, how, around);
    }

    fn append_for(
        &mut self,
        reply: Reply,
        key: ReplicaKey,
        batch: &Batch,
        how: Handing,
        around: &mut Around<'_>,
    ) {
        let batch = self.bent(key, batch, around);
        let appended = self.host.append(key, &batch, how, Waiter::Asker(reply), around.now);
        if appended.is_err() {
            self.reply(reply, Answer::Written(appended), around);
        }
        self.hear(around);
    }

    fn commit_offsets(
        &mut self,
        reply: Reply,
        shard: ReplicaKey,
        version: i16,
        request: TxnOffsetCommitRequest,
        around: &mut Around<'_>,
    ) {
        let producer = (ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch));
        let joins = version >= OFFSETS_JOIN_SINCE;
        let probe = Batch::new(producer.0, producer.1, Contents::Words);
        let asked = Request::TxnOffsetCommit(request.clone());
        let refuse = |code| Answer::Offsets(Box::new(asked.refuse(code)));
        let verified = match self.guard(shard, &probe, joins) {
            Ok(Some(verified)) if !around.is(Mistake::SkipsVerification) => verified,
            Ok(word) => {
                let work = Work::Group(version, Request::TxnOffsetCommit(request));
                return self.hand(shard, reply, work, unasked(word), around);
            }
            Err(_) => return self.reply(reply, refuse(ErrorCode::NotCoordinator), around),
        };
        let id = request.transactional_id.text();
        let Some(partition) = self.name_of(shard) else { return };
        let refusal = refuse(ErrorCode::CoordinatorNotAvailable);
        let wish = Wish { id: &id, producer, joins, partition };
        let asked = Asked::OffsetsWord { reply, shard, version, request, verified };
        if !self.ask_for_word(&wish, asked, around) {
            self.reply(reply, refusal, around);
        }
    }

    /// As a partition's leader.
    fn mark(
        &mut self,
        reply: Reply,
        partition: &TopicPartition,
        end: &EndTransaction,
        around: &mut Around<'_>,
    ) {
        let Some(topic) = self.image.topics.id_of(&partition.topic) else {
            return self.reply(reply, Answer::Written(Err(ErrorCode::UnknownTopicOrPartition)), around);
        };
        let key = ReplicaKey { topic, partition: partition.partition };
        if *partition.topic == *name::CONSUMER_OFFSETS {
            let work = Work::Group(0, Request::EndTransaction(*end));
            return self.hand(key, reply, work, Standing::Waived, around);
        }
        let how = Handing {
            origin: Origin::Coordinator,
            acks: if around.is(Mistake::MarksUnsafely) { Acks::Leader } else { Acks::All },
            verification: TxnVerification::Marker(marker_version(end.version, around)),
            deadline: around.now.plus(APPEND_PATIENCE),
        };
        self.append_for(reply, key, &marker_of(end), how, around);
    }

    /// As a coordinator.
    pub(super) fn order(&mut self, shard: ReplicaKey, order: MarkerOrder, around: &mut Around<'_>) {
        let end = EndTransaction {
            producer: Producer { id: order.producer_id, epoch: order.producer_epoch },
            commit: order.commit,
            coordinator_epoch: order.ticket.coordinator_epoch,
            version: order.version,
        };
        for partition in order.partitions {
            let id = order.transactional_id.clone();
            let asked = Asked::Marker { shard, ticket: order.ticket, id, partition: partition.clone() };
            self.send_marker(partition, end, asked, around);
        }
    }

    fn send_marker(
        &mut self,
        partition: TopicPartition,
        end: EndTransaction,
        asked: Asked,
        around: &mut Around<'_>,
    ) {
        let topic = self.image.topics.by_name(&partition.topic);
        let leader = topic.and_then(|topic| topic.partition(partition.partition)).map(|state| state.leader);
        // Before version 2 a marker that comes twice may end the next transaction (KIP-1228), so no other is sent while
        // one may be on its way.
        let patience = if around.version.bumps_epoch() { 60 } else { MARK_OVERDUE_MS };
        let to = leader.filter(|leader| *leader != BrokerId::NONE);
        let to = to.map_or(Place::Controller, Place::Broker);
        self.ask(to, Question::Mark { partition, end }, asked, DurationMs(patience), around);
    }

    /// Markers of a decision that is not safe yet: a mistake.
    pub(super) fn mark_early(&mut self, shard: ReplicaKey, batch: &Batch, around: &mut Around<'_>) {
        let Contents::Records { records, .. } = &batch.contents else { return };
        for (id, value) in records.iter().filter_map(transaction_of) {
            let state = state_of(&value);
            if !state.is_prepared() {
                continue;
            }
            let version = TransactionVersion(value.client_transaction_version);
            let Some(epoch) = self.host.replica(shard).map(|replica| replica.partition.leader_epoch()) else {
                return;
            };
            let coordinator_epoch = CoordinatorEpoch(epoch.get());
            let partitions = value.transaction_partitions.iter().flatten().flat_map(|topic| {
                let name = topic.topic.text();
                topic
                    .partition_ids
                    .iter()
                    .map(move |at| TopicPartition::new(name.clone(), PartitionIndex(*at)))
            });
            let order = MarkerOrder {
                ticket: MarkerTicket { coordinator_epoch, number: u64::MAX },
                transactional_id: id,
                producer_id: ProducerId(value.producer_id),
                producer_epoch: ProducerEpoch(value.producer_epoch),
                commit: state == TransactionState::PrepareCommit,
                version,
                partitions: partitions.collect(),
            };
            self.order(shard, order, around);
        }
    }

    pub(super) fn ask_for_ids(&mut self, shard: ReplicaKey, around: &mut Around<'_>) {
        let request = AllocateProducerIdsRequest {
            broker_id: self.id.get(),
            broker_epoch: self.life.get(),
            ..AllocateProducerIdsRequest::default()
        };
        let asked = Asked::ProducerIds { shard };
        self.ask(Place::Controller, Question::ProducerIds(request), asked, WORD_PATIENCE, around);
    }

    /// An answer to what this broker has asked.
    pub(super) fn was_told(&mut self, number: u64, answer: Answer, around: &mut Around<'_>) {
        let Some((_, asked)) = self.coordinators.asked.remove(&number) else { return };
        match (asked, answer) {
            (Asked::Word { reply, key, batch, verified }, Answer::Transaction(word)) => {
                match refusal_of(&word) {
                    ErrorCode::None => self.append_value(reply, key, &batch, Standing::By(verified), around),
                    code => self.reply(reply, Answer::Written(Err(code)), around),
                }
            }
            (Asked::OffsetsWord { reply, shard, version, request, verified }, Answer::Transaction(word)) => {
                let request = Request::TxnOffsetCommit(request);
                match refusal_of(&word) {
                    ErrorCode::None => {
                        let work = Work::Group(version, request);
                        self.hand(shard, reply, work, Standing::By(verified), around);
                    }
                    code => self.reply(reply, Answer::Offsets(Box::new(request.refuse(code))), around),
                }
            }
            (Asked::Marker { shard, ticket, id, partition }, Answer::Written(written)) => {
                let outcome = written.map_or_else(MarkerOutcome::Failed, |()| MarkerOutcome::Written);
                self.tell(shard, around, |shard, now| {
                    shard.markers_answered(ticket, &id, &[(partition, outcome)], now)
                });
            }
            (Asked::ProducerIds { shard }, Answer::ProducerIds(ids)) => {
                self.tell(shard, around, |shard, now| shard.supply(ids.map(|id| vec![id]), now));
            }
            _ => {}
        }
    }

    /// No answer in time.
    pub(super) fn was_not_told(&mut self, number: u64, around: &mut Around<'_>) {
        let Some((_, asked)) = self.coordinators.asked.remove(&number) else { return };
        match asked {
            // The waiting client retries.
            Asked::Word { .. } | Asked::OffsetsWord { .. } => {}
            Asked::Marker { shard, ticket, id, partition } => {
                let outcome = MarkerOutcome::Failed(ErrorCode::NetworkException);
                self.tell(shard, around, |shard, now| {
                    shard.markers_answered(ticket, &id, &[(partition, outcome)], now)
                });
            }
            Asked::ProducerIds { shard } => {
                let error = Err(ErrorCode::CoordinatorLoadInProgress);
                self.tell(shard, around, |shard, now| shard.supply(error, now));
            }
        }
    }
}

/// What a coordinator that was asked about one partition says.
fn refusal_of(word: &TransactionResponse) -> ErrorCode {
    let TransactionResponse::AddPartitions(result) = word else { return ErrorCode::UnknownServerError };
    let mut results = result.topic_results.iter().flat_map(|topic| &topic.results_by_partition);
    results.next().map_or(ErrorCode::UnknownServerError, |one| ErrorCode::from_code(one.partition_error_code))
}

fn is_of(known: &TransactionLogValue, partition: &TopicPartition) -> bool {
    let mut topics = known.transaction_partitions.iter().flatten();
    topics.any(|topic| {
        *topic.topic == *partition.topic && topic.partition_ids.contains(&partition.partition.get())
    })
}

/// No client asks about it.
fn unasked(guard: Option<Verified>) -> Standing {
    // A guard of which nothing comes: a mistake.
    if guard.is_some() { Standing::Waived } else { Standing::Open }
}
