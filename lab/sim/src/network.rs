//! Messages on their way: late, lost, cut off one way; questions about transactions arrive twice now and then, as they
//! do when somebody asks again on another connection. Requests and answers of brokers are Kafka's, and go through the
//! wire, but for those about transactions.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{
    BrokerId, ConnectionNumber, ErrorCode, LeaderEpoch, MonotonicMs, Offset, ProducerId, Sequence, Text,
    TopicPartition,
};
use barnabas_coordinator::{EndTransaction, Response, TransactionRequest, TransactionResponse};
use barnabas_partition::{FetchPosition, ReplicaKey};
use barnabas_wire::messages::{
    AllocateProducerIdsRequest, AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse,
    TxnOffsetCommitRequest,
};
use barnabas_wire::{Reader, Writer};
use bytes::Bytes;

use crate::batch::Batch;
use crate::counts::{Fault, Faults};
use crate::random::Random;

/// A sender or receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Controller,
    Broker(BrokerId),
    Client(usize),
}

/// To whom an answer goes, and which question it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reply {
    pub to: Place,
    pub number: u64,
}

/// What transactions ask for.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// Of a transaction coordinator.
    Transaction {
        shard: ReplicaKey,
        version: i16,
        request: TransactionRequest,
        /// A client's; `None`: a broker asks.
        connection: Option<ConnectionNumber>,
    },
    /// Of a group coordinator.
    CommitOffsets {
        shard: ReplicaKey,
        version: i16,
        request: TxnOffsetCommitRequest,
    },
    FetchOffsets {
        shard: ReplicaKey,
        group: Text,
    },
    /// A Produce of one batch within a transaction. `joins`: the partition joins with it (version 2).
    Write {
        key: ReplicaKey,
        id: Text,
        joins: bool,
        batch: Batch,
    },
    /// A WriteTxnMarkers of one marker.
    Mark {
        partition: TopicPartition,
        end: EndTransaction,
    },
    /// Of the controller.
    ProducerIds(AllocateProducerIdsRequest),
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Transaction(TransactionResponse),
    Offsets(Box<Response>),
    /// Of a batch or of a marker.
    Written(Result<(), ErrorCode>),
    ProducerIds(Result<ProducerId, ErrorCode>),
}

#[derive(Debug, Clone)]
pub(crate) enum Message {
    Ask {
        number: u64,
        question: Question,
    },
    Told {
        number: u64,
        answer: Answer,
    },
    Fetch {
        number: u64,
        request: FetchRequest,
    },
    Fetched {
        number: u64,
        response: FetchResponse,
    },
    AlterPartition {
        number: u64,
        request: AlterPartitionRequest,
    },
    PartitionAltered {
        number: u64,
        response: AlterPartitionResponse,
    },
    /// Of one damaged place, as a consumer fetches.
    FetchAside {
        key: ReplicaKey,
        asked: FetchPosition,
    },
    FetchedAside {
        key: ReplicaKey,
        asked: FetchPosition,
        answer: Result<Bytes, ErrorCode>,
    },
    /// ListOffsets, both ends at once.
    FindEnds {
        key: ReplicaKey,
        epoch: LeaderEpoch,
        asked: FetchPosition,
    },
    Ends {
        key: ReplicaKey,
        asked: FetchPosition,
        ends: Result<(Offset, Offset), ErrorCode>,
    },
    /// All that is not answered, oldest first.
    Produce {
        key: ReplicaKey,
        batches: Vec<Batch>,
    },
    Produced {
        sequence: Sequence,
        answer: Result<Offset, ErrorCode>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub from: Place,
    pub to: Place,
    pub message: Message,
}

/// What version Fetch has here, and AlterPartition.
pub(crate) const FETCH: i16 = 18;
pub(crate) const ALTER_PARTITION: i16 = 3;

/// As it arrives: encoded and decoded.
fn carried(message: Message) -> Message {
    fn through<M: barnabas_wire::Message>(message: &M, version: i16) -> M {
        let mut writer = Writer::new();
        message.encode(&mut writer, version).expect("invariant: what is sent fits its version");
        M::decode(&mut Reader::new(writer.into_bytes()), version)
            .expect("invariant: what is written reads back")
    }
    match message {
        Message::Fetch { number, request } => Message::Fetch { number, request: through(&request, FETCH) },
        Message::Fetched { number, response } => {
            Message::Fetched { number, response: through(&response, FETCH) }
        }
        Message::AlterPartition { number, request } => {
            Message::AlterPartition { number, request: through(&request, ALTER_PARTITION) }
        }
        Message::PartitionAltered { number, response } => {
            Message::PartitionAltered { number, response: through(&response, ALTER_PARTITION) }
        }
        other => other,
    }
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    on_its_way: BTreeMap<(MonotonicMs, u64), Letter>,
    sent: u64,
    cuts: BTreeSet<(Place, Place)>,
    pub is_calm: bool,
    pub faults: Faults,
    /// Questions arrive twice.
    pub repeats: bool,
    /// Half of the markers are late.
    pub marks_are_late: bool,
}

/// The longest that a message is on its way, and that a marker is, which may outlive its coordinator.
const LATE_MS: u64 = 200;
const MARK_LATE_MS: u64 = 450;
/// An answer to a marker does not come any more.
pub(crate) const MARK_OVERDUE_MS: i64 = (LATE_MS + MARK_LATE_MS + 20) as i64;

impl Network {
    pub fn send(&mut self, random: &mut Random, now: MonotonicMs, letter: Letter) {
        if matches!(letter.message, Message::AlterPartition { .. }) {
            self.reset(letter.from);
        }
        if !self.is_calm && random.one_in(40) {
            self.faults.note(Fault::LostMessage);
            return;
        }
        let letter = Letter { message: carried(letter.message), ..letter };
        if self.repeats && !self.is_calm && matches!(letter.message, Message::Ask { .. }) && random.one_in(12)
        {
            self.faults.note(Fault::DoubledMessage);
            self.post(random, now, letter.clone());
        }
        self.post(random, now, letter);
    }

    fn post(&mut self, random: &mut Random, now: MonotonicMs, letter: Letter) {
        let is_mark = matches!(letter.message, Message::Ask { question: Question::Mark { .. }, .. });
        let (one_in, late_ms) = match is_mark {
            true if self.marks_are_late => (2, MARK_LATE_MS),
            true => (5, MARK_LATE_MS),
            false => (20, LATE_MS),
        };
        let is_late = !self.is_calm && random.one_in(one_in);
        if is_late {
            self.faults.note(Fault::LateMessage);
        }
        let late = if is_late { random.below(late_ms as usize) } else { random.below(6) };
        self.sent += 1;
        self.on_its_way.insert((MonotonicMs(now.0 + 1 + late as u64), self.sent), letter);
    }

    /// What a broker asked the controller about who is in sync does not arrive any more: it gave the connection up, and
    /// reset it.
    fn reset(&mut self, from: Place) {
        let is_given_up =
            |letter: &Letter| letter.from == from && matches!(letter.message, Message::AlterPartition { .. });
        self.on_its_way.retain(|_, letter| !is_given_up(letter));
    }

    /// What arrives by `now`, but for what is cut off.
    pub fn receive(&mut self, now: MonotonicMs) -> Option<Letter> {
        loop {
            let first = self.on_its_way.first_entry().filter(|entry| entry.key().0 <= now)?;
            let letter = first.remove();
            if !self.is_cut(letter.from, letter.to) {
                return Some(letter);
            }
        }
    }

    pub fn is_cut(&self, from: Place, to: Place) -> bool {
        self.cuts.contains(&(from, to))
    }

    pub fn cut(&mut self, from: Place, to: Place) {
        self.cuts.insert((from, to));
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }
}
