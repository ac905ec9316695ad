//! Requests in Kafka's order of checks, lost batches, pruning; and histories at random against a replay of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{
    ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, TimestampMs, TopicId, Uuid,
};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, RemoveTopicRecord, TopicRecord};

use crate::framework::{BatchId, Now, Record, Ticket};
use crate::share_state::{
    SharePartitionKey, ShareState, ShareStateConfig, ShareStateEffect, ShareStateRequest, ShareStateResponse,
    ShareStateShard, StateBatch,
};

const TOPIC: TopicId = Uuid([7; 16]);

fn records() -> Vec<MetadataRecord> {
    let topic = TopicRecord { name: "t".into(), topic_id: TOPIC, ..Default::default() };
    let mut records = vec![MetadataRecord::Topic(topic)];
    records.extend((0..4).map(|partition_id| {
        MetadataRecord::Partition(PartitionRecord { partition_id, topic_id: TOPIC, ..Default::default() })
    }));
    records
}

fn changed(image: &Image, records: &[MetadataRecord]) -> Image {
    let mut delta = Delta::new(image.clone());
    records.iter().for_each(|record| delta.replay(record).expect("a good record"));
    delta.advance(Provenance { end: Offset(9), last_epoch: LeaderEpoch(1), last_timestamp: TimestampMs(0) });
    delta.apply().0
}

/// A shard with a log under it.
struct Rig {
    shard: ShareStateShard,
    config: ShareStateConfig,
    image: Image,
    elapsed_ms: u64,
    pending: BTreeMap<BatchId, Vec<Record>>,
    log: Vec<Record>,
    /// Where the log begins.
    start: usize,
    tickets: u64,
    answers: BTreeMap<u64, ShareStateResponse>,
}

impl Rig {
    fn new(config: ShareStateConfig) -> Self {
        let image = changed(&Image::default(), &records());
        let mut rig = Self {
            shard: ShareStateShard::new(config.clone()),
            config,
            image,
            elapsed_ms: 0,
            pending: BTreeMap::new(),
            log: Vec::new(),
            start: 0,
            tickets: 0,
            answers: BTreeMap::new(),
        };
        rig.shard.image_changed(&rig.image);
        rig.shard.activate(rig.now());
        rig
    }

    fn now(&self) -> Now {
        let elapsed = self.elapsed_ms;
        Now { wall: TimestampMs(1_000_000 + elapsed as i64), mono: MonotonicMs(1_000 + elapsed) }
    }

    fn carry_out(&mut self, effects: Vec<ShareStateEffect>) {
        for effect in effects {
            match effect {
                ShareStateEffect::Append { batch, records } => {
                    assert!(self.pending.keys().next_back().is_none_or(|last| *last < batch));
                    self.pending.insert(batch, records);
                }
                ShareStateEffect::Answer { ticket, response } => {
                    assert!(self.answers.insert(ticket.0, response).is_none(), "answered twice");
                }
                ShareStateEffect::Prune { before } => {
                    let before = usize::try_from(before.0).expect("an offset");
                    assert!((self.start..=self.log.len()).contains(&before));
                    self.start = before;
                }
            }
        }
        assert_eq!(self.shard.violations(), Vec::<String>::new());
    }

    fn send(&mut self, request: ShareStateRequest) -> u64 {
        self.tickets += 1;
        let now = self.now();
        let effects = self.shard.handle(request, Ticket(self.tickets), now);
        self.carry_out(effects);
        self.tickets
    }

    /// The oldest batch gets to disk.
    fn durable_one(&mut self) {
        let Some((batch, records)) = self.pending.pop_first() else { return };
        let base = Offset(self.log.len() as i64);
        self.log.extend(records);
        let now = self.now();
        let effects = self.shard.durable(batch, base, now);
        self.carry_out(effects);
    }

    fn durable(&mut self) {
        while !self.pending.is_empty() {
            self.durable_one();
        }
    }

    fn fail(&mut self, batch: BatchId) {
        self.pending.remove(&batch);
        let now = self.now();
        let effects = self.shard.failed(batch, ErrorCode::NotEnoughReplicas, now);
        self.carry_out(effects);
    }

    fn wait(&mut self, ms: u64) {
        self.elapsed_ms += ms;
        let now = self.now();
        let effects = self.shard.tick(now);
        self.carry_out(effects);
    }

    fn ask(&mut self, request: ShareStateRequest) -> ShareStateResponse {
        let ticket = self.send(request);
        self.durable();
        self.answers.remove(&ticket).expect("an answer")
    }

    fn code(&mut self, request: ShareStateRequest) -> ErrorCode {
        code(&self.ask(request))
    }

    /// What a replay of the log gives.
    fn reloaded(&self) -> ShareStateShard {
        let mut shard = ShareStateShard::new(self.config.clone());
        shard.image_changed(&self.image);
        for (offset, record) in self.log.iter().enumerate().skip(self.start) {
            shard.replay(Offset(offset as i64), &record.key, record.value.as_ref()).expect("a good record");
        }
        shard
    }

    fn check_replay(&self) {
        let reloaded = self.reloaded();
        for partition in 0..4 {
            let key = key(partition);
            let said = |shard: &ShareStateShard| {
                // Not in any record of its own: a log that was pruned has forgotten it.
                shard
                    .committed(&key)
                    .map(|state| ShareState { newest_leader_epoch: LeaderEpoch(0), ..state.clone() })
            };
            assert_eq!(said(&reloaded), said(&self.shard), "partition {partition}");
        }
    }
}

fn code(response: &ShareStateResponse) -> ErrorCode {
    let refusal = match response {
        ShareStateResponse::Done(result) => result.err(),
        ShareStateResponse::Read(result) => result.as_ref().err().copied(),
        ShareStateResponse::Summary(result) => result.err(),
    };
    refusal.map_or(ErrorCode::None, |refusal| refusal.code)
}

fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey { group: "g".into(), topic: TOPIC, partition: PartitionIndex(partition) }
}

fn initialize_of(group: &str, partition: i32) -> ShareStateRequest {
    let key = SharePartitionKey { group: group.into(), ..key(partition) };
    ShareStateRequest::Initialize { key, state_epoch: 1, start_offset: Offset(0) }
}

fn initialize(partition: i32, state_epoch: i32, start: i64) -> ShareStateRequest {
    ShareStateRequest::Initialize { key: key(partition), state_epoch, start_offset: Offset(start) }
}

fn read(partition: i32, epoch: i32) -> ShareStateRequest {
    ShareStateRequest::Read { key: key(partition), leader_epoch: LeaderEpoch(epoch) }
}

fn write(
    partition: i32,
    state: i32,
    leader: i32,
    start: i64,
    batches: &[(i64, i64, i8, i16)],
) -> ShareStateRequest {
    let batches = batches.iter().map(|(first, last, delivery_state, delivery_count)| StateBatch {
        first: Offset(*first),
        last: Offset(*last),
        delivery_state: *delivery_state,
        delivery_count: *delivery_count,
    });
    ShareStateRequest::Write {
        key: key(partition),
        state_epoch: state,
        leader_epoch: LeaderEpoch(leader),
        start_offset: Offset(start),
        delivery_complete_count: 0,
        batches: batches.collect(),
    }
}

fn state(response: ShareStateResponse) -> Arc<ShareState> {
    match response {
        ShareStateResponse::Read(Ok(state)) => state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_is_read_by_the_next_leader() {
    let mut rig = Rig::new(ShareStateConfig::default());
    assert_eq!(rig.code(initialize(0, 3, -1)), ErrorCode::None);
    let begun = state(rig.ask(read(0, 5)));
    assert_eq!((begun.state_epoch, begun.start_offset, begun.batches.len()), (3, Offset(-1), 0));
    assert_eq!(rig.code(write(0, 3, 5, 10, &[(10, 19, 2, 1), (20, 29, 0, 1)])), ErrorCode::None);
    assert_eq!(rig.code(write(0, 3, 5, 20, &[(20, 24, 2, 2)])), ErrorCode::None);
    let now = state(rig.ask(read(0, 6)));
    let batches: Vec<_> =
        now.batches.iter().map(|each| (each.first.0, each.last.0, each.delivery_state)).collect();
    assert_eq!((now.start_offset, batches), (Offset(20), vec![(20, 24, 2), (25, 29, 0)]));
    rig.check_replay();
}

#[test]
fn refusals_come_in_kafkas_order() {
    let mut rig = Rig::new(ShareStateConfig::default());
    assert_eq!(rig.code(read(0, 1)), ErrorCode::InvalidRequest, "not set up");
    assert_eq!(rig.code(write(0, 1, 1, 0, &[])), ErrorCode::InvalidRequest, "not set up");
    assert_eq!(rig.code(initialize(-1, 1, 0)), ErrorCode::InvalidRequest);
    assert_eq!(rig.code(initialize(0, -1, 0)), ErrorCode::InvalidRequest);
    assert_eq!(rig.code(initialize(9, 1, 0)), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(rig.code(initialize(0, 3, 0)), ErrorCode::None);
    assert_eq!(rig.code(initialize(0, 2, 0)), ErrorCode::FencedStateEpoch);
    assert_eq!(rig.code(read(0, -1)), ErrorCode::InvalidRequest);
    assert_eq!(rig.code(read(0, 7)), ErrorCode::None);
    assert_eq!(rig.code(read(0, 6)), ErrorCode::FencedLeaderEpoch);
    assert_eq!(rig.code(write(0, 2, 6, 0, &[])), ErrorCode::FencedLeaderEpoch);
    assert_eq!(rig.code(write(0, 2, 7, 0, &[])), ErrorCode::FencedStateEpoch);
    assert_eq!(rig.code(write(0, 3, -1, 0, &[])), ErrorCode::InvalidRequest);
    // Set up again: the last leader is known still, what it writes of the old state is not taken.
    assert_eq!(rig.code(initialize(0, 4, 50)), ErrorCode::None);
    assert_eq!(rig.code(write(0, 3, 7, 0, &[])), ErrorCode::FencedStateEpoch);
    assert_eq!(rig.code(read(0, 6)), ErrorCode::FencedLeaderEpoch);
    assert_eq!(rig.code(ShareStateRequest::Delete { key: key(0) }), ErrorCode::None);
    assert_eq!(rig.code(ShareStateRequest::Delete { key: key(0) }), ErrorCode::None, "it is gone already");
    assert_eq!(rig.code(ShareStateRequest::Delete { key: key(9) }), ErrorCode::UnknownTopicOrPartition);
    let summary = rig.ask(ShareStateRequest::ReadSummary { key: key(0) });
    let ShareStateResponse::Summary(Ok(summary)) = summary else { panic!("{summary:?}") };
    assert_eq!((summary.start_offset, summary.delivery_complete_count), (Offset(-1), -1));
}

#[test]
fn after_enough_updates_there_is_a_snapshot_and_what_lies_before_is_pruned() {
    let config = ShareStateConfig { updates_per_snapshot: 3, ..ShareStateConfig::default() };
    let mut rig = Rig::new(config);
    rig.ask(initialize(0, 1, 0));
    for step in 0..10 {
        assert_eq!(rig.code(write(0, 1, 1, step, &[(step, step + 1, 2, 1)])), ErrorCode::None);
    }
    let snapshots = rig.log.iter().filter(|record| record.key.starts_with(&[0, 0])).count();
    assert_eq!((snapshots, rig.log.len()), (3, 11), "after three updates each");
    rig.check_replay();
    rig.wait(300_000);
    rig.durable();
    assert_eq!(rig.start, 8, "the last snapshot");
    rig.check_replay();
}

#[test]
fn who_is_not_touched_does_not_hold_the_rest_back() {
    let mut rig = Rig::new(ShareStateConfig { updates_per_snapshot: 2, ..ShareStateConfig::default() });
    rig.ask(initialize(0, 1, 0));
    rig.ask(initialize(1, 1, 0));
    for step in 0..20 {
        rig.ask(write(1, 1, 1, step, &[(step, step, 2, 1)]));
    }
    rig.wait(300_000);
    rig.durable();
    rig.check_replay();
    let before = rig.start;
    rig.wait(300_000);
    rig.durable();
    assert!(rig.start > before, "the cold snapshot lets the rest go");
    // Only snapshots of idle share-partitions are left: they are not rewritten.
    let length = rig.log.len();
    rig.wait(300_000);
    rig.durable();
    assert_eq!(rig.log.len(), length);
    rig.check_replay();
}

#[test]
fn a_lost_batch_takes_back_nothing_else() {
    let mut rig = Rig::new(ShareStateConfig::default());
    rig.ask(initialize(0, 1, 0));
    let lost = rig.send(write(0, 1, 1, 0, &[(0, 9, 2, 1)]));
    let kept = rig.send(write(0, 1, 1, 0, &[(5, 14, 0, 2)]));
    let batch = *rig.pending.keys().next().expect("a batch");
    rig.fail(batch);
    rig.durable();
    assert_eq!(code(&rig.answers[&lost]), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(code(&rig.answers[&kept]), ErrorCode::None);
    let now = rig.shard.committed(&key(0)).expect("a state");
    assert_eq!(now.batches.len(), 1, "{:?}", now.batches);
    rig.check_replay();
}

#[test]
fn deleted_topics_have_no_state() {
    let mut rig = Rig::new(ShareStateConfig::default());
    (0..3).for_each(|partition| {
        rig.ask(initialize(partition, 1, 0));
    });
    let gone = MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: TOPIC, ..Default::default() });
    rig.image = changed(&rig.image, &[gone]);
    rig.shard.image_changed(&rig.image);
    let now = rig.now();
    let effects = rig.shard.topics_deleted(&[TOPIC], now);
    rig.carry_out(effects);
    rig.durable();
    assert_eq!(rig.shard.stats().share_partitions, 0);
    // And then nothing of the log is needed.
    rig.wait(300_000);
    assert_eq!(rig.start, rig.log.len());
}

#[test]
fn idle_log_needs_no_waiting() {
    let mut rig = Rig::new(ShareStateConfig::default());
    let waits = rig.send(initialize(0, 1, 0));
    rig.wait(5_000);
    assert_eq!(code(&rig.answers[&waits]), ErrorCode::CoordinatorNotAvailable);
    let late = rig.send(read(0, 1));
    rig.wait(5_000);
    assert_eq!(code(&rig.answers[&late]), ErrorCode::CoordinatorNotAvailable);
    rig.durable();
    assert_eq!(rig.shard.committed(&key(0)).map(|state| state.state_epoch), Some(1));
    let unloaded = std::mem::replace(&mut rig.shard, ShareStateShard::new(ShareStateConfig::default()));
    assert_eq!(unloaded.unload(), []);
}

#[test]
fn full_node_refuses_new_share_partitions_only() {
    let memory_bytes_max = 20_000;
    let mut rig = Rig::new(ShareStateConfig { memory_bytes_max, ..ShareStateConfig::default() });
    assert_eq!(rig.code(initialize(0, 1, 0)), ErrorCode::None);
    let made = (0..1_000).filter(|number| {
        let code = rig.code(initialize_of(&format!("group-{number}"), number % 4));
        assert!(matches!(code, ErrorCode::None | ErrorCode::GroupMaxSizeReached), "{code:?}");
        code == ErrorCode::None
    });
    assert_eq!(made.count(), 8);
    assert!(rig.shard.room().held() <= memory_bytes_max);
    assert_eq!((rig.shard.room().refused(), rig.log.len()), (992, 9), "a refusal leaves no record");
    assert!(rig.shard.room().why().contains("groups.memory.max.bytes allows 20000"));
    // What is known goes on: another leader, records delivered and done with, and the share-partition set up again.
    assert_eq!(rig.code(read(0, 2)), ErrorCode::None);
    assert_eq!(rig.code(write(0, 1, 2, 0, &[(0, 9, 2, 1), (10, 19, 0, 1), (20, 29, 2, 3)])), ErrorCode::None);
    assert_eq!(rig.code(initialize(0, 2, 50)), ErrorCode::None);
    // A state that takes far more than others waits for room.
    let many: Vec<(i64, i64, i8, i16)> = (0..500).map(|at| (50 + 2 * at, 50 + 2 * at, 2, 1)).collect();
    assert_eq!(rig.code(write(0, 2, 2, 50, &many)), ErrorCode::CoordinatorNotAvailable);
    // Room that others give back, or a share-partition that ends, is there for the next.
    assert_eq!(rig.code(ShareStateRequest::Delete { key: key(0) }), ErrorCode::None);
    assert_eq!(rig.code(initialize(1, 1, 0)), ErrorCode::None);
    rig.shard.others_hold(100_000);
    assert_eq!(rig.code(initialize(2, 1, 0)), ErrorCode::GroupMaxSizeReached);
    rig.check_replay();
    assert_eq!(rig.reloaded().room().held(), rig.shard.room().held(), "a load counts the same");
}

#[test]
fn state_that_fits_no_snapshot_is_refused() {
    let config =
        ShareStateConfig { batch_bytes_max: 4_096, updates_per_snapshot: 3, ..ShareStateConfig::default() };
    let mut rig = Rig::new(config);
    assert_eq!(rig.code(initialize(0, 1, 0)), ErrorCode::None);
    let codes = (0..50).map(|step| {
        let batches: Vec<_> = (0..10).map(|at| (20 * step + 2 * at, 20 * step + 2 * at, 2, 1)).collect();
        rig.code(write(0, 1, 0, 0, &batches))
    });
    let codes: Vec<ErrorCode> = codes.collect();
    let taken = codes.iter().take_while(|code| **code == ErrorCode::None).count();
    assert_eq!(taken, 19);
    assert!(codes[taken..].iter().all(|code| *code == ErrorCode::UnknownServerError), "{codes:?}");
    let largest = rig.log.iter().map(Record::bytes).max();
    assert!(largest.is_some_and(|bytes| bytes <= 4_096), "{largest:?}");
    // The reader that is done with what it has goes on.
    assert_eq!(rig.code(write(0, 1, 0, 2_000, &[(2_000, 2_009, 2, 1)])), ErrorCode::None);
    let many: Vec<_> = (0..1_000).map(|_| (2_000, 2_009, 2, 1)).collect();
    assert_eq!(rig.code(write(0, 1, 0, 2_000, &many)), ErrorCode::UnknownServerError);
    rig.check_replay();
}

/// Requests, lost batches, time, and restarts in any order: memory is what a replay of the log gives, and no answered
/// write is ever forgotten.
#[test]
fn histories_at_random_are_those_of_their_logs() {
    for seed in 0..60u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        // Half of them on a node that is full with two share-partitions.
        let memory_bytes_max = if seed % 2 == 0 { usize::MAX } else { 6_000 };
        let config =
            ShareStateConfig { updates_per_snapshot: 4, memory_bytes_max, ..ShareStateConfig::default() };
        let mut rig = Rig::new(config);
        for _ in 0..400 {
            let partition = next(4) as i32;
            match next(20) {
                0 | 1 => {
                    rig.send(initialize(partition, next(4) as i32, next(30) as i64 - 1));
                }
                2 | 3 => {
                    rig.send(read(partition, next(4) as i32));
                }
                4 => {
                    rig.send(ShareStateRequest::Delete { key: key(partition) });
                }
                5 => {
                    rig.send(ShareStateRequest::ReadSummary { key: key(partition) });
                }
                6 => rig.wait(next(200_000)),
                7 => {
                    let batch = rig.pending.keys().copied().nth(next(4) as usize);
                    batch.into_iter().for_each(|batch| rig.fail(batch));
                }
                8 => {
                    rig.durable();
                    rig.check_replay();
                }
                9 => {
                    rig.durable();
                    let fresh = rig.reloaded();
                    let old = std::mem::replace(&mut rig.shard, fresh);
                    let effects = old.unload();
                    rig.carry_out(effects);
                    let now = rig.now();
                    let effects = rig.shard.activate(now);
                    rig.carry_out(effects);
                }
                10..=13 => rig.durable_one(),
                _ => {
                    let first = next(40) as i64;
                    let batch =
                        (first, first + next(6) as i64, [0, 2, 4][next(3) as usize], 1 + next(3) as i16);
                    rig.send(write(partition, next(4) as i32, next(4) as i32, next(30) as i64, &[batch]));
                }
            }
        }
        rig.durable();
        rig.check_replay();
    }
}
