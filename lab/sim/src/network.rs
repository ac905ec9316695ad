//! Messages on their way: late, lost, cut off one way. Requests and answers of brokers are Kafka's, and go through the wire.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, MonotonicMs, Offset, Sequence};
use barnabas_partition::{FetchPosition, ReplicaKey};
use barnabas_wire::messages::{AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse};
use barnabas_wire::{Reader, Writer};

use crate::batch::Batch;
use crate::random::Random;

/// Somebody who sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Controller,
    Broker(BrokerId),
    Client(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Message {
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
}

impl Network {
    pub fn send(&mut self, random: &mut Random, now: MonotonicMs, letter: Letter) {
        if !self.is_calm && random.one_in(40) {
            return;
        }
        let late = if !self.is_calm && random.one_in(20) { random.below(200) } else { random.below(6) };
        self.sent += 1;
        let letter = Letter { message: carried(letter.message), ..letter };
        self.on_its_way.insert((MonotonicMs(now.0 + 1 + late as u64), self.sent), letter);
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
