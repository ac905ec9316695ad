//! Conversations with a partition: `tests/talks/*.txt`. What stands after `> ` is the question, the rest is the answer,
//! `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-partition --test talks` rewrites the answers; the diff is the review.
//!
//! This broker is number 1; the followers are 2, 3 and so on, the in-sync ones first. Marks that move are told only
//! after `> show marks`, so that most talks read as producer and leader would tell them.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;

use barnabas_base::{
    BrokerEpoch, BrokerId, CoordinatorEpoch, DurationMs, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset,
    ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_partition::*;

mod said;

use said::Said;

/// What talks of a partition say beside.
trait Batches {
    fn leader_epoch(&self) -> Option<LeaderEpoch>;
    fn isolation(&self) -> Isolation;
    fn batch(&self) -> BatchInfo;
    fn append(&self) -> Append;
}

impl Batches for Said<'_> {
    fn leader_epoch(&self) -> Option<LeaderEpoch> {
        self.number("leader-epoch").map(|epoch| LeaderEpoch(epoch as i32))
    }

    fn isolation(&self) -> Isolation {
        match self.word("isolation") {
            Some("committed") => Isolation::ReadCommitted,
            Some("log-end") => Isolation::LogEnd,
            _ => Isolation::ReadUncommitted,
        }
    }

    fn batch(&self) -> BatchInfo {
        let producer = self.or("p", -1);
        let with_producer = |number: i64| if producer < 0 { -1 } else { number };
        let marker = |outcome| {
            BatchKind::Marker(Marker {
                outcome,
                coordinator_epoch: CoordinatorEpoch(self.or("coordinator", 0) as i32),
                transaction_version: self.or("tv", 0) as i16,
            })
        };
        let kind = match self.verb {
            "commit" => marker(Outcome::Commit),
            "abort" => marker(Outcome::Abort),
            _ => BatchKind::Data,
        };
        let is_data = kind == BatchKind::Data;
        BatchInfo {
            offsets: self.or("records", 1) as i32,
            max_timestamp: TimestampMs(self.or("time", 0)),
            producer_id: ProducerId(producer),
            producer_epoch: ProducerEpoch(with_producer(self.or("e", 0)) as i16),
            base_sequence: Sequence(if is_data { with_producer(self.or("seq", 0)) as i32 } else { -1 }),
            is_transactional: self.has("txn") || !is_data,
            kind,
        }
    }

    fn append(&self) -> Append {
        let is_marker = self.batch().kind != BatchKind::Data;
        Append {
            origin: if is_marker || self.has("coordinator") { Origin::Coordinator } else { Origin::Client },
            acks: match self.word("acks") {
                Some("0") => Acks::None,
                Some("1") => Acks::Leader,
                _ => Acks::All,
            },
            ticket: Ticket(self.or("ticket", 0) as u64),
            deadline: MonotonicMs(self.or("until", 30_000) as u64),
            leader_epoch: self.leader_epoch(),
            verified: self.has("verified"),
            follows_refused: false,
        }
    }
}

/// The partition and what it answered last.
struct Talk {
    partition: Partition,
    show_marks: bool,
    effects: Vec<Effect>,
    answer: String,
    /// What the coordinator was asked under, from 1.
    guards: Vec<Guard>,
}

impl Talk {
    fn say(&mut self, line: &str) -> String {
        let said = Said::new(line);
        self.answer.clear();
        match said.verb {
            "produce" | "commit" | "abort" => self.append(&said),
            "verify" => self.verify(&said),
            "leader" | "follower" | "fail" | "min" => self.change_role(&said),
            "open" | "restart" | "follow" | "truncate" | "leaders-high-watermark" => self.log(&said),
            "fetch" | "list" | "marks" | "producers" | "size" | "deadline" => self.ask(&said),
            "show" => self.show_marks = true,
            _ => self.tell(&said),
        }
        self.tell_effects();
        if self.answer.is_empty() {
            self.answer.push_str("nothing\n");
        }
        std::mem::take(&mut self.answer)
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.answer, "{line}").unwrap();
    }

    fn refused(&mut self, refusal: Refusal) {
        self.line(format_args!("refused {}: {refusal}", refusal.code()));
    }

    /// Before the coordinator is asked. `from-zero`: the producer counts from 0 in each transaction.
    fn verify(&mut self, said: &Said<'_>) {
        let (producer, epoch) = (ProducerId(said.or("p", -1)), ProducerEpoch(said.or("e", 0) as i16));
        match self.partition.guard(producer, epoch, said.has("from-zero")) {
            Ok(None) => self.line("it is open"),
            Ok(Some(guard)) => {
                self.guards.push(guard);
                self.line(format_args!("guard {}", self.guards.len()));
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    fn append(&mut self, said: &Said<'_>) {
        let batch = said.batch();
        let mut append = said.append();
        if let Some(number) = said.number("guard") {
            match self.partition.is_verified(&batch, &self.guards[number as usize - 1]) {
                Ok(is_verified) => append.verified = is_verified,
                Err(refusal) => return self.refused(refusal),
            }
        }
        match self.partition.append(&batch, &append, &mut self.effects) {
            Ok(Placed::Write { base, .. }) => {
                let end = base.plus(i64::from(batch.offsets));
                self.line(format_args!("write [{base}, {end})"));
            }
            Ok(Placed::Duplicate { .. }) => {}
            Err(refusal) => self.refused(refusal),
        }
    }

    fn change_role(&mut self, said: &Said<'_>) {
        let epoch = LeaderEpoch(said.or("epoch", 0) as i32);
        let changed = match said.verb {
            "leader" => {
                let in_sync = said.or("in-sync", 1);
                let replicas = said.or("replicas", in_sync);
                let followers: Vec<FollowerState> = (2..=replicas)
                    .map(|id| FollowerState {
                        broker: BrokerId(id as i32),
                        in_sync: id <= in_sync,
                        registered: None,
                    })
                    .collect();
                let min_in_sync = said.or("min", 1) as u16;
                let leadership =
                    Leadership { epoch, followers: &followers, min_in_sync, ..Leadership::default() };
                self.partition.become_leader(&leadership, &mut self.effects)
            }
            "min" => {
                self.partition.set_min_in_sync(said.or("in-sync", 1) as u16, &mut self.effects);
                true
            }
            "follower" => self.partition.become_follower(epoch, &mut self.effects),
            _ => {
                self.partition.fail(&mut self.effects);
                true
            }
        };
        self.line(if changed { "ok" } else { "ignored" });
    }

    fn log(&mut self, said: &Said<'_>) {
        match said.verb {
            "restart" => {
                let old = std::mem::take(&mut self.partition);
                self.partition.restore(old.producer_snapshot());
                self.partition.open(LogEnds {
                    log_start: old.log_start(),
                    log_end: old.log_end(),
                    high_watermark: said.number("hw").map_or(old.high_watermark(), Offset),
                });
            }
            "open" => {
                let high_watermark = said.offset("hw");
                let (log_start, log_end) = (said.offset("start"), said.offset("end"));
                self.partition.open(LogEnds { log_start, log_end, high_watermark });
            }
            "follow" => self.partition.follow(said.offset("base"), &said.batch(), &mut self.effects),
            "truncate" => self.partition.truncate(said.offset("end")),
            _ => self.partition.follow_high_watermark(said.offset("at"), &mut self.effects),
        }
        self.line("ok");
    }

    fn ask(&mut self, said: &Said<'_>) {
        match said.verb {
            "fetch" | "list" => {
                let (isolation, epoch) = (said.isolation(), said.leader_epoch());
                let bounds = match said.verb {
                    "fetch" => self.partition.bounds(isolation, epoch),
                    _ => self.partition.list_bounds(isolation, epoch),
                };
                let at = said.number("at").map(Offset);
                match bounds.and_then(|bounds| at.map_or(Ok(()), |at| bounds.check(at)).map(|()| bounds)) {
                    Ok(bounds) => self.line(format_args!("[{}, {})", bounds.log_start, bounds.end)),
                    Err(refusal) => self.refused(refusal),
                }
            }
            "marks" => {
                let p = &self.partition;
                let marks = format!(
                    "start={} stable={} high-watermark={} durable={} end={} epoch={}",
                    p.log_start(),
                    p.last_stable(),
                    p.high_watermark(),
                    p.durable_end(),
                    p.log_end(),
                    p.leader_epoch()
                );
                self.line(marks);
            }
            "producers" => {
                for state in self.partition.producers() {
                    let last = state.last_batch.map_or("none".to_owned(), |batch| {
                        format!("seq={} at={}", batch.last_sequence, batch.last_offset)
                    });
                    let txn = state.txn_first.map_or("none".to_owned(), |first| first.to_string());
                    self.line(format_args!(
                        "p={} e={} coordinator={} time={} last: {last} txn: {txn}",
                        state.producer_id,
                        state.producer_epoch,
                        state.coordinator_epoch,
                        state.last_timestamp.0
                    ));
                }
            }
            "deadline" => match self.partition.next_deadline() {
                Some(deadline) => self.line(deadline.0),
                None => self.line("none"),
            },
            _ => {
                let (producers, waiting) = (self.partition.producer_count(), self.partition.waiting());
                self.line(format_args!("{producers} producers, {waiting} waiting"));
            }
        }
    }

    fn tell(&mut self, said: &Said<'_>) {
        let effects = &mut self.effects;
        let told = match said.verb {
            "written" => {
                self.partition.written(said.offset("end"), effects);
                Ok(())
            }
            "durable" => {
                self.partition.written(said.offset("end"), effects);
                self.partition.durable(said.offset("end"), effects);
                Ok(())
            }
            // Every follower, if none is named; what is no replica is no matter then.
            "replicated" => match said.number("by") {
                Some(broker) => replicated(&mut self.partition, broker as i32, said.offset("to"), effects),
                None => (2..10).try_for_each(|broker| {
                    match replicated(&mut self.partition, broker, said.offset("to"), effects) {
                        Err(Refusal::UnknownReplica(_)) => Ok(()),
                        told => told,
                    }
                }),
            },
            "expire" => {
                self.partition.expire(MonotonicMs(said.or("now", 0) as u64), effects);
                Ok(())
            }
            "expire-producers" => {
                let silent = DurationMs(said.or("silent", 0));
                self.partition.expire_producers(TimestampMs(said.or("now", 0)), silent);
                Ok(())
            }
            "delete" => match self.partition.delete_records(said.number("to").map(Offset), effects) {
                Ok(low) => {
                    writeln!(self.answer, "low watermark {low}").unwrap();
                    Ok(())
                }
                Err(refusal) => Err(refusal),
            },
            "retention" => {
                self.partition.advance_log_start(said.offset("to"), effects);
                Ok(())
            }
            verb => panic!("unknown verb {verb:?}"),
        };
        if let Err(refusal) = told {
            self.refused(refusal);
        }
    }

    fn tell_effects(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Answer { ticket, answer: Ok(acked) } => {
                    self.line(format_args!("ack #{} base={}", ticket.0, acked.base));
                }
                Effect::Answer { ticket, answer: Err(refusal) } => {
                    self.line(format_args!("refused #{} {}", ticket.0, refusal.code()));
                }
                Effect::Aborted(txn) => self.line(format_args!(
                    "index: p={} aborted [{}, {}] stable={}",
                    txn.producer_id, txn.first, txn.last, txn.last_stable
                )),
                Effect::HighWatermark(to) if self.show_marks => {
                    self.line(format_args!("high watermark {to}"))
                }
                Effect::LastStable(to) if self.show_marks => self.line(format_args!("last stable {to}")),
                Effect::LogStart(to) => self.line(format_args!("log start {to}")),
                Effect::HighWatermark(_) | Effect::LastStable(_) | Effect::AlterIsr => {}
            }
        }
    }
}

/// `broker` asks from `to`, and so has everything below.
fn replicated(
    partition: &mut Partition,
    broker: i32,
    to: Offset,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
    let fetch = FollowerFetch {
        broker: BrokerId(broker),
        broker_epoch: BrokerEpoch::NONE,
        registered: None,
        leader_epoch: Some(partition.leader_epoch()),
        offset: to,
        last_epoch: None,
        log_start: Offset::ZERO,
        now: MonotonicMs(0),
    };
    partition.follower_fetch(&fetch, &LeaderEpochs::default(), effects).map(|_| ())
}

#[test]
fn talks() {
    let talks = said::compare("tests/talks", || {
        let mut talk = Talk {
            partition: Partition::new(),
            show_marks: false,
            effects: Vec::new(),
            answer: String::new(),
            guards: Vec::new(),
        };
        move |line: &str| talk.say(line)
    });
    assert!(talks > 10, "the talks are there");
}
