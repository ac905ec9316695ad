//! One partition of `__transaction_state`: its transactional ids.
//!
//! Always true (checked by [`TransactionShard::violations`]):
//! 1. every ticket is answered exactly once
//! 2. what a client, or a marker, says rests on records that are on disk
//! 3. a transactional id has at most one change under way, and what follows it is a state that may follow; but for the
//!    record of a transaction's end, behind which the next transaction may begin ([`TransactionShard::is_ending`])
//! 4. a decision that is on disk is never turned back, and its markers are ordered until each partition has one
//! 5. a transaction that is open has a timer, and so has everything that waits to be tried again
//! 6. what the room says is held is what the transactional ids weigh
//!
//! Before: shell/broker/src/coordinators/coordinator_worker.rs. After: the partition, by way of
//! [`TransactionEffect::Append`]; the transactions' partitions, by way of [`TransactionEffect::WriteMarkers`].

mod add;
mod admin;
mod end;
mod init;
mod invariants;
mod late;
mod load;
mod markers;
mod outcome;
mod parked;
mod parts;
mod weight;

use std::collections::{BTreeSet, VecDeque};

use parked::Parked;
pub(crate) use weight::weigh;

use barnabas_base::{
    ConnectionNumber, CoordinatorEpoch, DurationMs, ErrorCode, Map, MonotonicMs, ProducerId, Text,
    TopicPartition,
};

use super::transaction::Transaction;
use super::{
    MarkerTicket, TransactionCaller, TransactionConfig, TransactionEffect, TransactionRequest,
    TransactionResponse, TransactionState,
};
use crate::framework::Room;
use crate::framework::append_refusal;
use crate::framework::{BatchId, Committed, Held, Now, Pending, Record, Refusable, Ticket, Timers};

/// How much a shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionStats {
    pub ids: usize,
    pub ongoing: usize,
    /// Decided, and not every marker written.
    pub prepared: usize,
    pub partitions: usize,
    pub pending_batches: usize,
    pub waiting_for_ids: usize,
    /// Requests that wait for their transactional id to be free.
    pub parked: usize,
    pub timers: usize,
}

/// What a shard waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TimerKey {
    /// The transaction has been open for too long.
    Timeout(Text),
    /// Markers, or the record of the end, are tried again.
    Retry(Text),
    /// Requests have waited long enough for the id to be free.
    Parked(Text),
    /// Search for transactional ids that have expired.
    Expiry,
}

/// One transactional id.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub transaction: Committed<Transaction>,
    /// From the decision on disk to the last marker.
    pub markers: Option<Markers>,
    /// The newest connection over which its producer was heard. Not in the log.
    pub heard: Option<ConnectionNumber>,
    /// What it takes of the node's memory.
    pub weight: usize,
}

/// Markers of a decision that are not known to be written.
#[derive(Debug)]
pub(crate) struct Markers {
    pub ticket: MarkerTicket,
    pub awaited: BTreeSet<TopicPartition>,
    /// Those of `awaited` that failed and are to be ordered again.
    pub failed: BTreeSet<TopicPartition>,
    /// Another coordinator has taken over: nothing more can be done here.
    pub is_fenced: bool,
}

/// Why a request is not worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum No {
    /// The answer is this and nothing else.
    Refused(ErrorCode),
    /// It needs a producer id, and there is none.
    NeedsId,
}

impl From<ErrorCode> for No {
    fn from(error: ErrorCode) -> Self {
        Self::Refused(error)
    }
}

/// A request that waits for a producer id.
#[derive(Debug)]
struct Waiting {
    caller: TransactionCaller,
    request: TransactionRequest,
    ticket: Ticket,
    /// When it came.
    since: MonotonicMs,
}

/// The coordinator of the transactional ids of one partition.
///
/// Life: [`TransactionShard::new`], [`TransactionShard::replay_batches`] for all that the partition holds, from its
/// start, [`TransactionShard::activate`]; then requests and reports; in the end [`TransactionShard::unload`]. Until
/// `activate`, every request gets COORDINATOR_LOAD_IN_PROGRESS.
#[derive(Debug)]
pub struct TransactionShard {
    pub(crate) entries: Map<Text, Entry>,
    pub(crate) config: TransactionConfig,
    pub(crate) timers: Timers<TimerKey>,
    /// With each batch the transactional ids that it changes.
    pub(crate) pending: Pending<Vec<Text>, TransactionResponse>,
    coordinator_epoch: CoordinatorEpoch,
    orders: u64,
    /// Producer ids at hand.
    ids: VecDeque<ProducerId>,
    ids_asked: bool,
    waiting: VecDeque<Waiting>,
    parked: Parked,
    room: Room,
    now: Now,
    is_active: bool,
    effects: Vec<TransactionEffect>,
}

impl TransactionShard {
    /// `coordinator_epoch`: the leader epoch under which this broker leads the partition.
    pub fn new(config: TransactionConfig, coordinator_epoch: CoordinatorEpoch) -> Self {
        Self {
            entries: Map::default(),
            config,
            timers: Timers::default(),
            pending: Pending::default(),
            coordinator_epoch,
            orders: 0,
            ids: VecDeque::new(),
            ids_asked: false,
            waiting: VecDeque::new(),
            parked: Parked::default(),
            room: Room::default(),
            now: Now { wall: barnabas_base::TimestampMs(0), mono: MonotonicMs(0) },
            is_active: false,
            effects: Vec::new(),
        }
    }

    /// Works on one request. Its answer is among the effects of this or of a later call, exactly once.
    pub fn handle(
        &mut self,
        caller: TransactionCaller,
        request: TransactionRequest,
        ticket: Ticket,
        now: Now,
    ) -> Vec<TransactionEffect> {
        self.now = now;
        let since = now.mono;
        self.take(Waiting { caller, request, ticket, since });
        self.take_effects()
    }

    fn take(&mut self, waiting: Waiting) {
        let Waiting { caller, request, ticket, since } = waiting;
        if self.is_late(caller, &request) {
            return self.answer(ticket, TransactionResponse::Close);
        }
        let refusal = if !self.is_active {
            Err(ErrorCode::CoordinatorLoadInProgress.into())
        } else if !request.is_writable() {
            Err(ErrorCode::InvalidRequest.into())
        } else if request.writes() && self.is_full() {
            Err(ErrorCode::CoordinatorNotAvailable.into())
        } else if let Some(parts) = self.parts(caller, &request) {
            self.answer(ticket, TransactionResponse::Parts(parts));
            Ok(())
        } else {
            self.dispatch(caller.version, &request, ticket)
        };
        match refusal {
            Ok(()) => self.hear(caller, &request),
            Err(No::Refused(ErrorCode::ConcurrentTransactions)) if self.may_park(&request, since) => {
                self.park(Waiting { caller, request, ticket, since });
            }
            Err(No::Refused(error)) => self.answer(ticket, request.refuse(error)),
            Err(No::NeedsId) if self.waiting.len() >= self.config.waiting_for_ids_max => {
                self.answer(ticket, request.refuse(ErrorCode::CoordinatorLoadInProgress));
            }
            Err(No::NeedsId) => {
                self.waiting.push_back(Waiting { caller, request, ticket, since });
                self.ask_for_ids();
            }
        }
    }

    fn dispatch(&mut self, version: i16, request: &TransactionRequest, ticket: Ticket) -> Result<(), No> {
        match request {
            TransactionRequest::InitProducerId(init) => self.init_producer_id(init, ticket),
            TransactionRequest::AddPartitions(add) if add.verify_only => self.verify(add, ticket),
            TransactionRequest::AddPartitions(add) => self.add_partitions(version, add, ticket),
            TransactionRequest::AddOffsets(add) => self.add_offsets(add, ticket),
            TransactionRequest::EndTxn(end) => self.end_txn(version, end, ticket),
            TransactionRequest::Describe(describe) => {
                self.describe(describe, ticket);
                Ok(())
            }
            TransactionRequest::List(list) | TransactionRequest::ListParts(list) => {
                Ok(self.list(list, None, ticket)?)
            }
            TransactionRequest::ListSome { list, ids } => Ok(self.list(list, Some(ids), ticket)?),
        }
    }

    /// New producer ids, or the reason why there are none: requests that wait for one continue.
    pub fn supply(&mut self, ids: Result<Vec<ProducerId>, ErrorCode>, now: Now) -> Vec<TransactionEffect> {
        self.now = now;
        self.ids_asked = false;
        let waiting = std::mem::take(&mut self.waiting);
        match ids {
            Ok(ids) => {
                self.ids.extend(ids);
                waiting.into_iter().for_each(|each| self.take(each));
            }
            Err(error) => {
                for Waiting { request, ticket, .. } in waiting {
                    self.answer(ticket, request.refuse(error));
                }
            }
        }
        self.take_effects()
    }

    fn next_id(&mut self) -> Result<ProducerId, No> {
        self.ids.pop_front().ok_or(No::NeedsId)
    }

    fn ask_for_ids(&mut self) {
        if !self.ids_asked {
            self.ids_asked = true;
            self.effects.push(TransactionEffect::AllocateProducerIds);
        }
    }

    /// When to call [`TransactionShard::tick`] at the latest.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        [self.timers.next(), self.pending.deadline()].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) -> Vec<TransactionEffect> {
        self.now = now;
        while let Some((_, answers)) = self.pending.take_overdue(now.mono) {
            self.refuse_all(answers, append_refusal(ErrorCode::RequestTimedOut));
        }
        while let Some(key) = self.timers.take_due(now.mono) {
            match &key {
                TimerKey::Timeout(id) => self.time_out(id),
                TimerKey::Retry(id) => self.retry(id),
                TimerKey::Parked(id) => self.unpark(id),
                TimerKey::Expiry => self.expire(),
            }
        }
        self.take_effects()
    }

    /// Settings that changed hold from now on.
    pub fn set_config(&mut self, config: TransactionConfig) {
        self.config = config;
    }

    /// Another broker leads the partition, or its log is gone: everybody who waits is sent away. Markers that were
    /// ordered need not be written any more; the next coordinator orders them again.
    pub fn unload(mut self) -> Vec<TransactionEffect> {
        while let Some(closed) = self.pending.pop_durable(BatchId(u64::MAX)) {
            self.refuse_all(closed.answers, ErrorCode::NotCoordinator);
        }
        let parked = std::mem::take(&mut self.parked).into_all();
        for Waiting { request, ticket, .. } in std::mem::take(&mut self.waiting).into_iter().chain(parked) {
            self.answer(ticket, request.refuse(ErrorCode::NotCoordinator));
        }
        self.take_effects()
    }

    pub fn stats(&self) -> TransactionStats {
        let mut stats = TransactionStats {
            ids: self.entries.len(),
            pending_batches: self.pending.len(),
            waiting_for_ids: self.waiting.len(),
            parked: self.parked.len(),
            timers: self.timers.len(),
            ..Default::default()
        };
        for transaction in self.entries.values().filter_map(|entry| entry.transaction.committed()) {
            stats.ongoing += usize::from(transaction.state == TransactionState::Ongoing);
            stats.prepared += usize::from(transaction.state.is_prepared());
            stats.partitions += transaction.partitions.len();
        }
        stats
    }

    /// What is not as it must always be, in words; empty as long as there is no bug. Costs a look at everything: for
    /// tests and the simulator.
    pub fn violations(&self) -> Vec<String> {
        invariants::violations(self)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    pub(crate) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        let waiting = self.waiting.iter().chain(self.parked.all());
        self.pending.tickets().chain(waiting.map(|each| each.ticket))
    }

    /// Transactional ids that requests wait for.
    pub(crate) fn parked(&self) -> impl Iterator<Item = &Text> {
        self.parked.ids()
    }

    pub(crate) fn parked_ids(&self) -> usize {
        self.parked.ids().count()
    }

    fn answer(&mut self, ticket: Ticket, response: TransactionResponse) {
        self.effects.push(TransactionEffect::Answer { ticket, response });
    }

    fn refuse_all(&mut self, answers: Vec<(Ticket, TransactionResponse)>, error: ErrorCode) {
        for (ticket, response) in answers {
            self.answer(ticket, response.refused(error));
        }
    }

    /// What is on disk about a transactional id.
    fn known(&self, id: &str) -> Option<&Transaction> {
        self.entries.get(id)?.transaction.committed()
    }

    /// Whether the transactional id takes no step now: a change of it is on its way to disk, or its markers are.
    pub(crate) fn is_busy(&self, id: &str) -> bool {
        let Some(entry) = self.entries.get(id) else { return false };
        let is_prepared = entry.transaction.committed().is_some_and(|known| known.state.is_prepared());
        entry.transaction.is_changing() || is_prepared
    }

    /// What is on its way of the end of the transactional id's last transaction, if nothing else is. All its markers
    /// are on disk, so that nothing hangs on this record: the next transaction may begin at once, behind it in the log.
    /// Should it be lost, what comes next says the same and more.
    ///
    /// Only where the decision bumped the epoch: before version 2 a late request of the last transaction looks like one
    /// of the next, and every moment in which it is refused counts (transaction_model tears such a transaction in two).
    pub(crate) fn is_ending(&self, id: &str) -> Option<&Transaction> {
        let entry = self.entries.get(id)?;
        let is_prepared = entry.transaction.committed().is_some_and(|known| known.state.is_prepared());
        let latest = entry.transaction.latest()?;
        (is_prepared && latest.state.is_idle() && latest.client_version.bumps_epoch()).then_some(latest)
    }

    /// Sends the next step to the log. The answer, if there is one, waits for it.
    fn change(&mut self, id: &Text, next: Transaction, answer: Option<(Ticket, TransactionResponse)>) {
        let record = super::record::record(id, &next, self.config.version);
        let batch = self.append(vec![record], vec![id.clone()]);
        self.entries.entry(id.clone()).or_default();
        self.transaction_changes(id, |transaction| transaction.change(batch, Some(next)));
        if let Some((ticket, response)) = answer {
            self.answer_after(batch, ticket, response);
        }
    }

    /// As `change`, for steps that make the record larger at a client's wish.
    fn change_if_small(
        &mut self,
        id: &Text,
        next: Transaction,
        ticket: Ticket,
        response: TransactionResponse,
    ) -> Result<(), No> {
        if super::record::record(id, &next, self.config.version).bytes() > self.config.batch_bytes_max {
            return Err(append_refusal(ErrorCode::RecordListTooLarge).into());
        }
        self.find_room(id, Some(&next))?;
        self.change(id, next, Some((ticket, response)));
        Ok(())
    }

    fn append(&mut self, records: Vec<Record>, ids: Vec<Text>) -> BatchId {
        let deadline = self.now.mono.plus(self.config.append_timeout);
        let batch = self.pending.open(deadline, ids);
        self.effects.push(TransactionEffect::Append { batch, records });
        batch
    }

    fn answer_after(&mut self, batch: BatchId, ticket: Ticket, response: TransactionResponse) {
        match self.pending.hold(batch, ticket, response) {
            Held::Waits => {}
            Held::Decided(response) => self.answer(ticket, response),
            Held::Overdue(response) => {
                self.answer(ticket, response.refused(append_refusal(ErrorCode::RequestTimedOut)));
            }
        }
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= self.config.pending_batches_max
    }

    fn set_timer(&mut self, key: TimerKey, after: DurationMs) {
        self.timers.set(key, self.now.mono.plus(after));
    }

    fn take_effects(&mut self) -> Vec<TransactionEffect> {
        std::mem::take(&mut self.effects)
    }
}
