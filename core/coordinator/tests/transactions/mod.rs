//! A transaction shard with a log under it, in one thread: what the worker is in the broker. Markers are answered by
//! whoever uses it.
//!
//! After every step it checks that no invariant is broken and that no ticket is answered twice.

#![allow(dead_code)]

pub mod hear;
pub mod speech;

use std::collections::BTreeMap;

use barnabas_base::{
    CoordinatorEpoch, DurationMs, ErrorCode, MonotonicMs, Offset, ProducerId, Text, TimestampMs,
    TopicPartition,
};
use barnabas_coordinator::{
    BatchId, MarkerOrder, MarkerOutcome, MarkerTicket, Now, Part, Record, Ticket, TransactionCaller,
    TransactionConfig, TransactionEffect, TransactionRequest, TransactionResponse, TransactionShard,
};
use barnabas_wire::messages::AddPartitionsToTxnResponse;
use barnabas_wire::{EncodeError, Message, Writer};

/// Wall time at the start of every test.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

pub struct Rig {
    pub shard: TransactionShard,
    pub config: TransactionConfig,
    pub coordinator_epoch: i32,
    pub elapsed_ms: u64,
    /// Batches are on disk as soon as they are handed out.
    pub disk_is_quick: bool,
    /// Producer ids are there as soon as they are asked for.
    pub ids_are_quick: bool,
    pub next_id: i64,
    /// Who waits, and in which version.
    pub waiting: BTreeMap<Ticket, i16>,
    pub pending: BTreeMap<BatchId, Vec<Record>>,
    /// What is on disk, in order.
    pub log: Vec<Record>,
    /// Markers that were ordered and not answered.
    pub orders: Vec<MarkerOrder>,
    /// What answers take at most, by the shard's parts.
    bounds: BTreeMap<Ticket, usize>,
    next_ticket: u64,
}

impl Rig {
    pub fn new(config: TransactionConfig) -> Self {
        let mut rig = Self {
            shard: TransactionShard::new(config.clone(), CoordinatorEpoch(0)),
            config,
            coordinator_epoch: 0,
            elapsed_ms: 0,
            disk_is_quick: true,
            ids_are_quick: true,
            next_id: 1000,
            waiting: BTreeMap::new(),
            pending: BTreeMap::new(),
            log: Vec::new(),
            orders: Vec::new(),
            bounds: BTreeMap::new(),
            next_ticket: 1,
        };
        let effects = rig.shard.activate(rig.now());
        assert_eq!(effects, []);
        rig
    }

    pub fn now(&self) -> Now {
        Now {
            wall: TimestampMs(EPOCH_MS + self.elapsed_ms as i64),
            mono: MonotonicMs(1_000_000 + self.elapsed_ms),
        }
    }

    /// One request in this version, of nobody's connection.
    pub fn send(&mut self, version: i16, request: TransactionRequest) -> (Ticket, Vec<TransactionEffect>) {
        self.send_as(TransactionCaller::other(version), request)
    }

    pub fn send_as(
        &mut self,
        caller: TransactionCaller,
        request: TransactionRequest,
    ) -> (Ticket, Vec<TransactionEffect>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        if let Some(parts) = self.parts(caller, &request) {
            self.bounds.insert(ticket, parts.iter().map(|part| part.bytes).sum());
        }
        self.waiting.insert(ticket, caller.version);
        let now = self.now();
        let effects = self.shard.handle(caller, request, ticket, now);
        (ticket, self.carry_out(effects))
    }

    /// The parts of a description or a list, were there no room for it.
    fn parts(
        &mut self,
        caller: TransactionCaller,
        request: &TransactionRequest,
    ) -> Option<Vec<Part<TransactionRequest>>> {
        let (request, room) = match request {
            TransactionRequest::List(list) => (TransactionRequest::ListParts(list.clone()), usize::MAX),
            TransactionRequest::Describe(_) => (request.clone(), 0),
            _ => return None,
        };
        let (now, caller) = (self.now(), TransactionCaller { room: Some(room), ..caller });
        let effects = self.shard.handle(caller, request, Ticket(u64::MAX), now);
        effects.into_iter().find_map(|effect| match effect {
            TransactionEffect::Answer { response: TransactionResponse::Parts(parts), .. } => Some(parts),
            _ => None,
        })
    }

    /// Does what the worker does with effects. Gives all there were, those that followed included.
    pub fn carry_out(&mut self, effects: Vec<TransactionEffect>) -> Vec<TransactionEffect> {
        let (mut all, mut newest, mut wants_id) = (Vec::new(), None, false);
        for effect in effects {
            match &effect {
                TransactionEffect::Append { batch, records } => {
                    assert!(self.pending.keys().next_back().is_none_or(|last| last < batch));
                    self.pending.insert(*batch, records.clone());
                    newest = Some(*batch);
                }
                TransactionEffect::Answer { ticket, response } => {
                    let version = self.waiting.remove(ticket);
                    let version = version.unwrap_or_else(|| panic!("ticket {} answered twice", ticket.0));
                    let length = encode(response, version);
                    if let Some(bytes) = self.bounds.remove(ticket) {
                        let bound = bytes + 5 * of_no_entry(response);
                        assert!(
                            5 * length <= bound,
                            "{length} bytes on the wire, {bytes} in all: {response:?}"
                        );
                    }
                }
                TransactionEffect::WriteMarkers(order) => self.orders.push(order.clone()),
                TransactionEffect::AllocateProducerIds => wants_id = true,
            }
            all.push(effect);
        }
        assert_eq!(self.shard.violations(), Vec::<String>::new());
        if wants_id && self.ids_are_quick {
            all.extend(self.supply());
        }
        if let Some(batch) = newest.filter(|_| self.disk_is_quick) {
            all.extend(self.durable(batch));
        }
        all
    }

    pub fn supply(&mut self) -> Vec<TransactionEffect> {
        let id = ProducerId(self.next_id);
        self.next_id += 1;
        let now = self.now();
        let effects = self.shard.supply(Ok(vec![id]), now);
        self.carry_out(effects)
    }

    pub fn durable(&mut self, through: BatchId) -> Vec<TransactionEffect> {
        let later = self.pending.split_off(&BatchId(through.0 + 1));
        for (_, records) in std::mem::replace(&mut self.pending, later) {
            self.log.extend(records);
        }
        let now = self.now();
        let effects = self.shard.durable(through, now);
        self.carry_out(effects)
    }

    pub fn fail(&mut self, batch: BatchId, error: ErrorCode) -> Vec<TransactionEffect> {
        assert!(self.pending.remove(&batch).is_some(), "batch {} is not on its way", batch.0);
        let now = self.now();
        let effects = self.shard.failed(batch, error, now);
        self.carry_out(effects)
    }

    pub fn answer_markers(
        &mut self,
        ticket: MarkerTicket,
        id: &Text,
        outcomes: &[(TopicPartition, MarkerOutcome)],
    ) -> Vec<TransactionEffect> {
        let now = self.now();
        let effects = self.shard.markers_answered(ticket, id, outcomes, now);
        self.carry_out(effects)
    }

    /// Lets time pass, stopping wherever the shard asks for it.
    pub fn wait(&mut self, time: DurationMs, mut seen: impl FnMut(u64, Vec<TransactionEffect>)) {
        let until = self.elapsed_ms + time.0 as u64;
        loop {
            let next = self.shard.next_deadline().map_or(until, |at| at.0.saturating_sub(1_000_000));
            self.elapsed_ms = self.elapsed_ms.max(next.min(until));
            let now = self.now();
            let effects = self.shard.tick(now);
            let effects = self.carry_out(effects);
            seen(self.elapsed_ms, effects);
            if next >= until {
                return;
            }
        }
    }

    /// A new shard, loaded from what is on disk.
    pub fn reloaded(&self) -> TransactionShard {
        let epoch = CoordinatorEpoch(self.coordinator_epoch);
        let mut shard = TransactionShard::new(self.config.clone(), epoch);
        for (offset, record) in self.log.iter().enumerate() {
            shard.replay(Offset(offset as i64), &record.key, record.value.as_ref()).expect("a good record");
        }
        shard
    }

    /// Another broker takes over: waiting requests are refused, what is not on disk is lost, markers are forgotten.
    pub fn moves(&mut self) -> Vec<TransactionEffect> {
        self.coordinator_epoch += 1;
        self.pending.clear();
        self.orders.clear();
        let fresh = self.reloaded();
        let old = std::mem::replace(&mut self.shard, fresh);
        let mut effects = old.unload();
        let now = self.now();
        effects.extend(self.shard.activate(now));
        let effects = self.carry_out(effects);
        assert_eq!(self.waiting, BTreeMap::new(), "requests were left waiting");
        effects
    }
}

/// Every answer can be written in the version that it was asked for in. Gives its length.
fn encode(response: &TransactionResponse, version: i16) -> usize {
    let mut writer = Writer::new();
    let written: Result<(), EncodeError> = match response {
        TransactionResponse::InitProducerId(response) => response.encode(&mut writer, version),
        TransactionResponse::AddPartitions(result) => {
            let mut response = AddPartitionsToTxnResponse::default();
            if version >= 4 {
                response.results_by_transaction = vec![result.clone()];
            } else {
                response.results_by_topic_v3_and_below = result.topic_results.clone();
            }
            response.encode(&mut writer, version)
        }
        TransactionResponse::AddOffsets(response) => response.encode(&mut writer, version),
        TransactionResponse::EndTxn(response) => response.encode(&mut writer, version),
        TransactionResponse::Describe(response) => response.encode(&mut writer, version),
        TransactionResponse::List(response) => response.encode(&mut writer, version),
        TransactionResponse::Parts(_) | TransactionResponse::Close => Ok(()),
    };
    written.unwrap_or_else(|error| panic!("version {version} of {response:?}: {error}"));
    writer.len()
}

/// What an answer takes on the wire beside its entries.
fn of_no_entry(response: &TransactionResponse) -> usize {
    let filters = match response {
        TransactionResponse::List(list) => list.unknown_state_filters.iter().map(|each| each.len() + 4).sum(),
        _ => 0,
    };
    16 + filters
}
