//! Random lives of a partition in Apache Kafka's `UnifiedLog`, and the same lives here: every outcome, and after every
//! step every mark, producer and aborted transaction must be Kafka's.
//!
//! The lives come from `lab/compat/golden/records/LogLives.java`, which says how they are written down.

#![allow(clippy::unwrap_used, reason = "a test")]

use barnabas_base::{
    BrokerEpoch, CoordinatorEpoch, DurationMs, LeaderEpochs, MonotonicMs, Offset, ProducerEpoch, ProducerId,
    Sequence, TimestampMs,
};
use barnabas_partition::*;

const LIVES: &str = include_str!("../../../lab/compat/golden/records/lives.txt");

/// A partition, and the log that it would have written.
struct Life {
    partition: Partition,
    effects: Vec<Effect>,
    log: Vec<(Offset, BatchInfo)>,
    aborted: Vec<AbortedTxn>,
}

impl Life {
    fn new() -> Self {
        let mut life =
            Self { partition: Partition::new(), effects: Vec::new(), log: Vec::new(), aborted: Vec::new() };
        life.lead();
        life
    }

    /// With a follower that is never told to have come further than the high watermark of Kafka's log.
    fn lead(&mut self) {
        let followers = [FollowerState { broker: FOLLOWER, in_sync: true, registered: None }];
        let leadership = Leadership { followers: &followers, ..Leadership::default() };
        assert!(self.partition.become_leader(&leadership, &mut self.effects));
    }

    fn step(&mut self, said: &str) -> String {
        let verb = said.split(' ').next().unwrap();
        let outcome = match verb {
            "produce" | "commit" | "abort" => self.append(said),
            "hw" => {
                let to = Offset(number(said, "to"));
                let fetch = fetch(to);
                self.partition.follower_fetch(&fetch, &LeaderEpochs::default(), &mut self.effects).unwrap();
                "ok".to_owned()
            }
            "delete" => {
                match self.partition.delete_records(Some(Offset(number(said, "to"))), &mut self.effects) {
                    Ok(_) => "ok".to_owned(),
                    Err(refusal) => format!("refused {}", refusal.code()),
                }
            }
            "expire" => {
                self.expire(said);
                "ok".to_owned()
            }
            _ => {
                self.restart(said);
                "ok".to_owned()
            }
        };
        for effect in self.effects.drain(..) {
            if let Effect::Aborted(txn) = effect {
                self.aborted.push(txn);
            }
        }
        outcome
    }

    fn expire(&mut self, said: &str) {
        let (now, silent) = (number(said, "now"), number(said, "silent"));
        self.partition.expire_producers(TimestampMs(now), DurationMs(silent));
    }

    fn append(&mut self, said: &str) -> String {
        let batch = batch(said);
        let is_client = batch.kind == BatchKind::Data && !said.contains(" coordinator");
        let how = Append {
            origin: if is_client { Origin::Client } else { Origin::Coordinator },
            acks: Acks::None,
            ticket: Ticket(0),
            deadline: MonotonicMs(0),
            leader_epoch: None,
            verified: true,
            follows_refused: false,
        };
        match self.partition.append(&batch, &how, &mut self.effects) {
            Ok(Placed::Write { base, .. }) => {
                self.log.push((base, batch));
                let end = self.partition.log_end();
                self.partition.written(end, &mut self.effects);
                self.partition.durable(end, &mut self.effects);
                format!("write {base}")
            }
            Ok(Placed::Duplicate { base }) => format!("again {base}"),
            Err(refusal) => format!("refused {}", refusal.code()),
        }
    }

    /// Clean: from a snapshot of the producers. Unclean: from the log itself, the transaction index too; but then Kafka
    /// takes a snapshot and starts from that, so of each producer only the last batch is remembered either way.
    fn restart(&mut self, said: &str) {
        let old = std::mem::take(&mut self.partition);
        let mut snapshot = old.producers();
        if said.contains(" unclean") {
            let mut recovered = Partition::new();
            let replayed = self.log.iter().filter_map(|(base, batch)| recovered.replay(*base, batch));
            self.aborted = replayed.collect();
            snapshot = recovered.producers();
        }
        self.partition.restore(snapshot);
        self.expire(said);
        self.partition.open(LogEnds {
            log_start: old.log_start(),
            log_end: old.log_end(),
            high_watermark: old.high_watermark(),
        });
        self.lead();
    }

    fn state(&self) -> String {
        let p = &self.partition;
        let mut words: Vec<String> = [p.log_start(), p.last_stable(), p.high_watermark(), p.log_end()]
            .iter()
            .map(Offset::to_string)
            .collect();
        words.extend(p.producers().iter().map(|state| {
            let last = state.last_batch.map_or(Sequence::NONE, |batch| batch.last_sequence);
            let (id, epoch, coordinator) = (state.producer_id, state.producer_epoch, state.coordinator_epoch);
            let first = state.txn_first.unwrap_or(Offset::NONE);
            format!("{id}:{epoch}:{last}:{coordinator}:{first}:{}", state.last_timestamp.0)
        }));
        words.extend(
            self.aborted
                .iter()
                .map(|txn| format!("{}[{},{}]{}", txn.producer_id, txn.first, txn.last, txn.last_stable)),
        );
        words.join(" ")
    }
}

const FOLLOWER: barnabas_base::BrokerId = barnabas_base::BrokerId(2);

fn fetch(offset: Offset) -> FollowerFetch {
    FollowerFetch {
        broker: FOLLOWER,
        broker_epoch: BrokerEpoch::NONE,
        registered: None,
        leader_epoch: None,
        offset,
        last_epoch: None,
        log_start: Offset::ZERO,
        now: MonotonicMs(0),
    }
}

fn number(said: &str, key: &str) -> i64 {
    let word = said.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {key} in {said}")).parse().unwrap()
}

fn batch(said: &str) -> BatchInfo {
    let marker = |outcome| {
        BatchKind::Marker(Marker {
            outcome,
            coordinator_epoch: CoordinatorEpoch(number(said, "coordinator") as i32),
            transaction_version: number(said, "tv") as i16,
        })
    };
    let kind = match said.split(' ').next() {
        Some("commit") => marker(Outcome::Commit),
        Some("abort") => marker(Outcome::Abort),
        _ => BatchKind::Data,
    };
    let is_data = kind == BatchKind::Data;
    BatchInfo {
        offsets: if is_data { number(said, "records") as i32 } else { 1 },
        max_timestamp: TimestampMs(number(said, "time")),
        producer_id: ProducerId(number(said, "p")),
        producer_epoch: ProducerEpoch(number(said, "e") as i16),
        base_sequence: Sequence(if is_data { number(said, "seq") as i32 } else { -1 }),
        is_transactional: !is_data || said.contains(" txn"),
        kind,
    }
}

/// Kafka leaves the last stable offset where it was when records before an open transaction's are deleted, until it
/// next looks; here it never lies below the log's start.
fn raised(kafka: &str) -> String {
    let (outcome, state) = kafka.split_once(" | ").unwrap();
    let mut words: Vec<&str> = state.split(' ').collect();
    let (start, stable) = (words[0], words[1]);
    if stable.parse::<i64>().unwrap() < start.parse().unwrap() {
        words[1] = start;
    }
    format!("{outcome} | {}", words.join(" "))
}

#[test]
fn every_life_goes_as_it_went_in_kafka() {
    let mut life = Life::new();
    let mut steps = 0;
    for (at, line) in LIVES.lines().enumerate() {
        let Some((said, kafka)) = line.split_once(" -> ") else {
            life = Life::new();
            continue;
        };
        let outcome = life.step(said);
        let ours = format!("{outcome} | {}", life.state());
        assert_eq!(ours, raised(kafka), "line {}: {said}", at + 1);
        steps += 1;
    }
    assert!(steps > 2000, "{steps}");
}
