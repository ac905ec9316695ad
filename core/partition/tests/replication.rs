//! Conversations with a replica among others: `tests/replication/*.txt`. What stands after `> ` is the question, the
//! rest is the answer, `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-partition --test replication` rewrites the answers; the diff is the review.
//!
//! This broker is number 1. Broker n is registered at epoch 10 + n, unless a line names another. The clock stands
//! still but for `ms=`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset,
    PartitionEpoch, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_partition::*;

mod said;

use said::Said;

const ME: BrokerId = BrokerId(1);

struct Talk {
    partition: Partition,
    epochs: LeaderEpochs,
    /// Brokers that are not registered as usual.
    lives: Vec<(BrokerId, Option<BrokerEpoch>)>,
    now: MonotonicMs,
    effects: Vec<Effect>,
    answer: String,
}

fn brokers(list: &str) -> Vec<BrokerId> {
    list.split(',').filter(|id| !id.is_empty()).map(|id| BrokerId(id.parse().unwrap())).collect()
}

fn batch(records: i64) -> BatchInfo {
    BatchInfo {
        offsets: records as i32,
        max_timestamp: TimestampMs(0),
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: Sequence::NONE,
        is_transactional: false,
        kind: BatchKind::Data,
    }
}

impl Talk {
    fn new() -> Self {
        Self {
            partition: Partition::new(),
            epochs: LeaderEpochs::default(),
            lives: Vec::new(),
            now: MonotonicMs(100_000),
            effects: Vec::new(),
            answer: String::new(),
        }
    }

    fn say(&mut self, line: &str) -> String {
        let said = Said::new(line);
        self.now.0 += said.or("ms", 0) as u64;
        match said.verb {
            "leader" | "follower" | "broker" | "min" => self.metadata(&said),
            "append" | "durable" | "fetches" | "wait" | "delete" | "waits-for?" => self.lead(&said),
            "answers" => self.answered(&said),
            "sent" | "marks" | "diverging" | "ends" | "answered" | "open" | "damaged" | "needed" | "seen"
            | "heal" => self.follow(&said),
            _ => self.ask(&said),
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

    fn registered(&self, broker: BrokerId) -> Option<BrokerEpoch> {
        let known = self.lives.iter().rev().find(|(id, _)| *id == broker);
        known.map_or(Some(BrokerEpoch(10 + i64::from(broker.0))), |(_, life)| *life)
    }

    fn metadata(&mut self, said: &Said<'_>) {
        let epoch = LeaderEpoch(said.or("epoch", 1) as i32);
        match said.verb {
            "leader" => {
                let in_sync = brokers(said.word("isr").unwrap_or("1"));
                let replicas = brokers(said.word("replicas").unwrap_or("1,2,3"));
                let follower = |&broker: &BrokerId| FollowerState {
                    broker,
                    in_sync: in_sync.contains(&broker),
                    registered: self.registered(broker),
                };
                let followers: Vec<_> = replicas.iter().filter(|&&id| id != ME).map(follower).collect();
                let leadership = Leadership {
                    epoch,
                    partition_epoch: PartitionEpoch(said.or("version", 1) as i32),
                    followers: &followers,
                    min_in_sync: said.or("min", 1) as u16,
                    lag_max: DurationMs(30_000),
                    now: self.now,
                };
                let is_new = self.partition.leader_epoch() != epoch;
                let end = self.partition.log_end();
                if !self.partition.become_leader(&leadership, &mut self.effects) {
                    self.line("ignored");
                } else if is_new {
                    self.epochs.assign(epoch, end);
                }
            }
            "follower" => {
                if !self.partition.become_follower(epoch, &mut self.effects) {
                    self.line("ignored");
                }
            }
            "broker" => {
                let broker = BrokerId(said.words[0].parse().unwrap());
                let life = said.number("life").map(BrokerEpoch);
                self.lives.push((broker, life));
                self.partition.set_registered(broker, life, &mut self.effects);
            }
            _ => self.partition.set_min_in_sync(said.or("is", 1) as u16, &mut self.effects),
        }
    }

    fn lead(&mut self, said: &Said<'_>) {
        match said.verb {
            "append" => {
                let how = Append {
                    acks: if said.word("acks") == Some("1") { Acks::Leader } else { Acks::All },
                    ..append(said.or("ticket", 0) as u64)
                };
                let batch = batch(said.or("records", 1));
                match self.partition.append(&batch, &how, &mut self.effects) {
                    Ok(_) if !said.has("undurable") => {
                        self.partition.synced(self.partition.log_end(), &mut self.effects);
                    }
                    Ok(_) => {}
                    Err(refusal) => self.refused(refusal),
                }
            }
            "durable" => self.partition.synced(self.partition.log_end(), &mut self.effects),
            "waits-for?" => {
                let waits = self.partition.waits_for(BrokerId(said.words[0].parse().unwrap()));
                self.line(waits);
            }
            "wait" => self.partition.check_lag(self.now, &mut self.effects),
            "delete" => {
                let to = Some(said.offset("to"));
                if let Err(refusal) = self.partition.delete_records(to, &mut self.effects) {
                    self.refused(refusal);
                }
            }
            _ => self.fetched(said),
        }
    }

    fn fetched(&mut self, said: &Said<'_>) {
        let broker = BrokerId(said.or("by", 2) as i32);
        let registered = self.registered(broker);
        let own = registered.map_or(-1, |epoch| epoch.0);
        let epoch = said.or("epoch", i64::from(self.partition.leader_epoch().0));
        let fetch = FollowerFetch {
            broker,
            broker_epoch: BrokerEpoch(said.or("life", own)),
            registered,
            leader_epoch: (epoch >= 0).then_some(LeaderEpoch(epoch as i32)),
            offset: said.offset("at"),
            last_epoch: said.number("last").map(|last| LeaderEpoch(last as i32)),
            log_start: Offset(said.or("start", 0)),
            now: self.now,
        };
        match self.partition.follower_fetch(&fetch, &self.epochs, &mut self.effects) {
            Ok(FollowerRead::Records(bounds)) => self.line(format_args!(
                "records [{}, {}) high-watermark={} start={}",
                fetch.offset, bounds.end, bounds.high_watermark, bounds.log_start
            )),
            Ok(FollowerRead::Diverging { epoch, end }) => {
                self.line(format_args!("diverging epoch={epoch} end={end}"));
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// `answers 1 isr=1,2 version=2`, `answers 1 INELIGIBLE_REPLICA`
    fn answered(&mut self, said: &Said<'_>) {
        let number = said.words[0].parse().unwrap();
        let in_sync = brokers(said.word("isr").unwrap_or_default());
        let code = (0..200).map(ErrorCode::from_code).find(|code| said.has(code.name()));
        let leader_epoch = LeaderEpoch(said.or("epoch", i64::from(self.partition.leader_epoch().0)) as i32);
        let answer = match code {
            Some(code) => IsrAnswer::Refused(code),
            None => IsrAnswer::Changed {
                leader_epoch,
                partition_epoch: PartitionEpoch(said.or("version", 1) as i32),
                in_sync: &in_sync,
            },
        };
        let next = self.partition.isr_answered(number, &answer, self.now, &mut self.effects);
        self.line(match next {
            IsrNext::Settled => "settled",
            IsrNext::Ask => "ask again",
            IsrNext::AwaitMetadata => "await metadata",
        });
    }

    fn follow(&mut self, said: &Said<'_>) {
        match said.verb {
            "open" => {
                let (log_start, log_end) = (Offset(said.or("start", 0)), said.offset("end"));
                let high_watermark = Offset(said.or("hw", 0));
                self.partition.open(LogEnds { log_start, log_end, high_watermark });
                for word in said.word("epochs").unwrap_or_default().split(',') {
                    let (epoch, start) = word.split_once('@').unwrap();
                    self.epochs.assign(LeaderEpoch(epoch.parse().unwrap()), Offset(start.parse().unwrap()));
                }
            }
            "sent" => {
                let (base, records) = (said.offset("base"), said.or("records", 1));
                let epoch = LeaderEpoch(said.or("epoch", 1) as i32);
                let judged = self.partition.judge(base, records as i32, epoch);
                match judged {
                    Ok(follow) => self.line(format_args!("{follow:?}")),
                    Err(refusal) => self.refused(refusal),
                }
                if let Ok(Follow::Append | Follow::AppendFromBelow) = judged {
                    self.partition.follow(base, &batch(records), &mut self.effects);
                    self.epochs.assign(epoch, base);
                }
            }
            "marks" => {
                self.partition.follow_marks(
                    said.offset("hw"),
                    Offset(said.or("start", 0)),
                    &mut self.effects,
                );
            }
            "diverging" => {
                let epoch = LeaderEpoch(said.or("epoch", -1) as i32);
                let cut = self.partition.diverged(epoch, said.offset("end"), &self.epochs);
                self.cut(cut);
            }
            "damaged" => self.partition.ask_again(said.offset("at")),
            "needed" => self.partition.stop_asking_again(),
            "seen" => self.partition.seen_behind(),
            "heal" => {
                let cut = self.partition.heal(said.has("counts"));
                self.cut(cut);
            }
            "ends" => {
                let cut = self.partition.out_of_range(said.offset("start"), said.offset("end"));
                self.cut(cut);
            }
            "answered" => {
                let cut = self.partition.uncompared(said.offset("start"));
                self.cut(cut);
            }
            _ => unreachable!(),
        }
    }

    fn cut(&mut self, cut: Cut) {
        self.line(format_args!("cut {cut:?}"));
        let (start, end) = match cut {
            Cut::Nothing => return,
            Cut::To(end) => (self.partition.log_start(), end),
            Cut::StartAt(start) => (start, start),
        };
        if let Cut::To(end) = cut {
            self.partition.truncate(end);
        }
        self.epochs.truncate_from_end(end);
        let high_watermark = self.partition.high_watermark();
        self.partition.open(LogEnds { log_start: start, log_end: end, high_watermark });
    }

    fn ask(&mut self, said: &Said<'_>) {
        match said.verb {
            "position" => match self.partition.fetch_position(&self.epochs) {
                None => self.line("none"),
                Some(at) => {
                    let last = at.last_epoch.map_or("none".to_owned(), |last| last.to_string());
                    self.line(format_args!(
                        "epoch={} at={} last={last} start={} high-watermark={}",
                        at.leader_epoch, at.offset, at.log_start, at.high_watermark
                    ));
                }
            },
            "near" => {
                let racks = said.word("racks").unwrap_or_default();
                let rack_of = |broker: BrokerId| {
                    let known = racks.split(',').filter_map(|rack| rack.split_once(':'));
                    known.into_iter().find(|(id, _)| id.parse() == Ok(broker.0)).map(|(_, rack)| rack)
                };
                let rack = said.word("rack").unwrap_or_default();
                match self.partition.preferred_read_replica(ME, rack, said.offset("at"), rack_of) {
                    Some(broker) => self.line(format_args!("read from {broker}")),
                    None => self.line("read here"),
                }
            }
            "low" => match self.partition.low_watermark() {
                Ok(low) => self.line(format_args!("low watermark {low}")),
                Err(refusal) => self.refused(refusal),
            },
            "epoch-end" => {
                let asked = LeaderEpoch(said.words[0].parse().unwrap());
                let current = said.number("current").map(|epoch| LeaderEpoch(epoch as i32));
                match self.partition.epoch_end(asked, current, &self.epochs) {
                    Ok((epoch, end)) => self.line(format_args!("epoch={epoch} end={end}")),
                    Err(refusal) => self.refused(refusal),
                }
            }
            "reads" => {
                let epoch = said.number("epoch").map(|epoch| LeaderEpoch(epoch as i32));
                match self.partition.replica_bounds(Isolation::ReadUncommitted, epoch) {
                    Ok(bounds) => self.line(format_args!("[{}, {})", bounds.log_start, bounds.end)),
                    Err(refusal) => self.refused(refusal),
                }
            }
            other => panic!("unknown verb {other:?}"),
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
                Effect::HighWatermark(to) => self.line(format_args!("high watermark {to}")),
                Effect::LogStart(to) => self.line(format_args!("log start {to}")),
                Effect::AlterIsr => {
                    let change = self.partition.isr_change().unwrap().clone();
                    let in_sync = change.in_sync.iter().map(|(id, life)| format!(" {id}@{life}"));
                    let in_sync: String = in_sync.collect();
                    let (epoch, version) = (change.leader_epoch, change.partition_epoch);
                    self.line(format_args!(
                        "question {}, epoch {epoch}/{version}: in sync{in_sync}",
                        change.number
                    ));
                }
                Effect::LastStable(_) | Effect::Aborted(_) => {}
            }
        }
    }
}

fn append(ticket: u64) -> Append {
    Append {
        origin: Origin::Client,
        acks: Acks::All,
        ticket: Ticket(ticket),
        deadline: MonotonicMs(u64::MAX),
        leader_epoch: None,
        verified: false,
        follows_refused: false,
    }
}

#[test]
fn talks() {
    let talks = said::compare("tests/replication", || {
        let mut talk = Talk::new();
        move |line: &str| talk.say(line)
    });
    assert!(talks > 8, "the talks are there");
}
