//! A worker's share partitions, with the share coordinator's and the dead letters' part played by hand.

use barnabas_base::{DurationMs, PartitionIndex, TopicId};
use barnabas_partition::{AckType, AcquireMode, Acquired, Isolation, StateEpoch, WrittenState};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;

use super::*;

const NOW: MonotonicMs = MonotonicMs(0);
const EPOCH: LeaderEpoch = LeaderEpoch(3);

fn key(group: &str) -> ShareKey {
    let partition = PartitionKey { topic: TopicId::default(), partition: PartitionIndex(0) };
    ShareKey { group: group.into(), partition }
}

/// A batch of so many records from `base` on.
fn batch(base: i64, records: usize) -> Bytes {
    let mut builder =
        BatchBuilder::new(BatchOptions { base_offset: Offset(base), ..BatchOptions::default() });
    for _ in 0..records {
        builder.push(barnabas_base::TimestampMs(1), None, Some(b"value"), &[]);
    }
    builder.build().unwrap()
}

fn fetched(batches: &[Bytes], from: i64) -> Fetched {
    Fetched::of(batches.concat().into(), Vec::new(), Offset(from), Isolation::ReadUncommitted).unwrap()
}

/// What a step asks for, in short.
fn told(effects: &[SharesEffect]) -> Vec<String> {
    let each = effects.iter().map(|effect| match effect {
        SharesEffect::Load { number, leader_epoch, .. } => format!("load #{number} epoch={leader_epoch}"),
        SharesEffect::Write { ids, write, .. } => {
            let runs = write.batches.iter().map(|run| format!("{}..={}", run.first, run.last));
            let ids: Vec<u64> = ids.iter().map(|id| id.0).collect();
            format!("write {ids:?} start={} {}", write.start, runs.collect::<Vec<_>>().join(" "))
        }
        SharesEffect::DeadLetters { given_up, .. } => {
            let runs = given_up.iter().map(|run| format!("{}..={}", run.first, run.last));
            format!("letters {}", runs.collect::<Vec<_>>().join(" "))
        }
        SharesEffect::Acknowledged { command, outcomes } => {
            let codes = outcomes.iter().map(|outcome| match outcome.result {
                Ok(()) => format!("{}:ok", outcome.slot),
                Err(declined) => format!("{}:{:?}", outcome.slot, declined.code()),
            });
            format!("answer #{command} {}", codes.collect::<Vec<_>>().join(" "))
        }
        SharesEffect::WakeNext(key) => format!("wake {}", key.group),
    });
    each.collect()
}

#[derive(Default)]
struct World {
    shares: SharePartitions,
    settings: ShareSettings,
}

impl World {
    fn step(&mut self, step: impl FnOnce(&mut SharePartitions, &mut Vec<SharesEffect>)) -> Vec<SharesEffect> {
        let mut effects = Vec::new();
        step(&mut self.shares, &mut effects);
        effects
    }

    fn is_loaded(&mut self) -> (Result<bool, ErrorCode>, Vec<String>) {
        let mut effects = Vec::new();
        let is_loaded = self.shares.is_loaded(&key("g"), EPOCH, &mut effects);
        (is_loaded.map_err(ShareDeclined::code), told(&effects))
    }

    fn begin(&mut self, number: u64) -> Vec<String> {
        let mut decisions = Vec::new();
        let written = WrittenState { state_epoch: StateEpoch(1), start: Offset(0), batches: Vec::new() };
        let machine = SharePartition::load(&written, EPOCH, self.settings, &mut decisions).unwrap();
        told(&self.step(|shares, effects| {
            shares.loaded(&key("g"), number, Ok((machine, decisions)), effects);
        }))
    }

    /// Loaded, with so many batches of one record each acquired by `m`.
    fn with_acquired(batches: i64) -> Self {
        let mut world = Self::default();
        world.acquire_all(batches);
        world
    }

    fn acquire_all(&mut self, batches: i64) {
        assert_eq!(self.is_loaded(), (Ok(false), vec!["load #1 epoch=3".to_owned()]));
        self.begin(1);
        let batches: Vec<Bytes> = (0..batches).map(|base| batch(base, 1)).collect();
        let fetched = fetched(&batches, 0);
        let ask = Acquire {
            member: &"m".into(),
            mode: AcquireMode::BatchOptimized,
            records_max: 500,
            batch_size: 500,
            from: Offset(0),
        };
        let read = self.shares.acquire(&key("g"), &ask, &fetched, NOW);
        assert_eq!(read.records.len(), fetched.size_bytes());
    }

    fn acknowledge(&mut self, first: i64, last: i64, kind: AckType) -> Vec<String> {
        let batches = vec![AckBatch { first: Offset(first), last: Offset(last), types: vec![kind] }];
        let item = ShareAckItem { slot: 7, partition: key("g").partition, batches };
        told(&self.step(|shares, effects| {
            shares.acknowledge((&"g".into(), &"m".into()), &[item], NOW, effects);
        }))
    }

    fn written(&mut self, number: u64, ids: &[u64], result: Result<(), ErrorCode>) -> Vec<String> {
        let ids: Vec<WriteId> = ids.iter().map(|id| WriteId(*id)).collect();
        told(&self.step(|shares, effects| {
            shares.written((&key("g"), number), &ids, result, NOW, effects);
        }))
    }

    fn leave(&mut self) -> Vec<String> {
        let (group, member) = ("g".into(), "m".into());
        told(&self.step(|shares, effects| {
            shares.release((&group, &member), &[key("g").partition], true, effects);
        }))
    }
}

/// The ids of the one write in it.
fn ids(told: &[String]) -> Vec<u64> {
    let write = told.iter().find(|line| line.starts_with("write")).unwrap();
    let inside = write.split(['[', ']']).nth(1).unwrap();
    inside.split(", ").map(|id| id.parse().unwrap()).collect()
}

#[test]
fn writes_go_one_after_another_and_those_between_together() {
    let mut world = World::with_acquired(4);
    let first = world.acknowledge(0, 0, AckType::Accept);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(world.acknowledge(1, 1, AckType::Accept), [""; 0]);
    assert_eq!(world.acknowledge(2, 2, AckType::Accept), [""; 0]);
    let answered = world.written(1, &ids(&first), Ok(()));
    assert!(answered.iter().any(|line| line.ends_with("7:ok")), "{answered:?}");
    let second = ids(&answered);
    assert_eq!(second.len(), 2, "{answered:?}");
    let last = world.written(1, &second, Ok(()));
    assert_eq!(last.iter().filter(|line| line.ends_with("7:ok")).count(), 2, "{last:?}");
    assert!(last.iter().all(|line| !line.starts_with("write")), "{last:?}");
}

#[test]
fn answer_for_an_earlier_instance_is_ignored() {
    let mut world = World::with_acquired(2);
    let write = ids(&world.acknowledge(0, 0, AckType::Accept));
    let lost = world.step(|shares, effects| shares.keep_led(|_| Some(LeaderEpoch(4)), effects));
    assert_eq!(told(&lost), ["answer #1 7:NotLeaderOrFollower", "wake g"]);
    assert_eq!(world.is_loaded().1, ["load #2 epoch=3"]);
    world.begin(2);
    assert_eq!(world.written(1, &write, Ok(())), [""; 0]);
    assert_eq!(world.begin(1), [""; 0], "the state that the first instance had asked for");
    assert_eq!(world.is_loaded(), (Ok(true), Vec::new()));
}

#[test]
fn failed_load_is_reported_once_and_tried_again() {
    let mut world = World::default();
    assert_eq!(world.is_loaded(), (Ok(false), vec!["load #1 epoch=3".to_owned()]));
    assert_eq!(world.is_loaded(), (Ok(false), Vec::new()), "under way");
    let no = Err(ShareDeclined::NotLoaded(ErrorCode::NotCoordinator));
    world.step(|shares, effects| shares.loaded(&key("g"), 1, no, effects));
    assert_eq!(world.is_loaded(), (Err(ErrorCode::CoordinatorNotAvailable), Vec::new()));
    assert_eq!(world.is_loaded(), (Ok(false), vec!["load #2 epoch=3".to_owned()]));
}

#[test]
fn fenced_state_drops_the_share_partition_and_refuses_what_waits() {
    let mut world = World::with_acquired(3);
    let write = ids(&world.acknowledge(0, 0, AckType::Accept));
    world.acknowledge(1, 1, AckType::Accept);
    let dropped = world.written(1, &write, Err(ErrorCode::FencedLeaderEpoch));
    let refused = dropped.iter().filter(|line| line.ends_with("7:NotLeaderOrFollower"));
    assert_eq!(refused.count(), 2, "{dropped:?}");
    assert!(world.shares.is_empty());
    assert_eq!(world.acknowledge(2, 2, AckType::Accept).len(), 1);
}

#[test]
fn acknowledgement_without_a_share_partition_is_refused_at_once() {
    let mut world = World::default();
    assert_eq!(world.acknowledge(0, 0, AckType::Accept), ["answer #1 7:UnknownTopicOrPartition"]);
    assert_eq!(world.is_loaded().0, Ok(false));
    assert_eq!(world.acknowledge(0, 0, AckType::Accept), ["answer #3 7:InvalidRecordState"]);
}

#[test]
fn group_without_members_is_dropped_once_all_is_written() {
    let mut world = World::with_acquired(2);
    let write = ids(&world.acknowledge(0, 0, AckType::Accept));
    world.leave();
    assert!(!world.shares.is_empty(), "an answer is outstanding");
    let mut told = world.written(1, &write, Ok(()));
    while told.iter().any(|line| line.starts_with("write")) {
        told = world.written(1, &ids(&told), Ok(()));
    }
    assert!(world.shares.is_empty(), "{told:?}");
    let mut world = World::with_acquired(1);
    let write = ids(&world.acknowledge(0, 0, AckType::Accept));
    world.leave();
    let bounds = Bounds {
        log_start: Offset(0),
        end: Offset(9),
        high_watermark: Offset(9),
        last_stable: Offset(9),
        log_end: Offset(9),
    };
    assert!(world.shares.next_read(&key("g"), &bounds, 10).is_some(), "a member is back");
    world.written(1, &write, Ok(()));
    assert!(!world.shares.is_empty());
}

#[test]
fn rejected_records_are_archived_after_their_dead_letters() {
    let mut world = World {
        settings: ShareSettings { dead_letters: true, ..ShareSettings::default() },
        ..World::default()
    };
    world.acquire_all(2);
    let mut told_now = world.acknowledge(0, 0, AckType::Reject);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.extend(told_now.iter().map(|line| line.split(' ').next().unwrap().to_owned()));
        if told_now.iter().any(|line| line.starts_with("letters")) {
            break;
        }
        let write = ids(&told_now);
        told_now = world.written(1, &write, Ok(()));
    }
    assert!(seen.contains(&"letters".to_owned()), "{seen:?}");
    assert_eq!(world.shares.in_flight().0, 2, "not archived yet");
    let ranges = [(Offset(0), Offset(0))];
    let archived =
        told(&world.step(|shares, effects| shares.dead_lettered((&key("g"), 1), &ranges, effects)));
    assert!(archived.iter().any(|line| line.starts_with("write")), "{archived:?}");
}

#[test]
fn locks_that_end_make_their_records_available_again() {
    let mut world = World::with_acquired(3);
    let lock = world.settings.lock;
    assert_eq!(world.shares.deadline(), Some(NOW.plus(lock)));
    let mut effects = Vec::new();
    assert_eq!(world.shares.expire(NOW.plus(DurationMs(lock.0 - 1)), &mut effects), 0);
    assert_eq!(world.shares.expire(NOW.plus(lock), &mut effects), 3);
    assert_eq!(world.shares.deadline(), None);
}

#[test]
fn member_gets_the_batches_that_hold_what_it_acquired() {
    let batches = [batch(0, 2), batch(2, 3), batch(5, 1)];
    let fetched = fetched(&batches, 0);
    assert_eq!((fetched.end(), fetched.headers().len()), (Offset(6), 3));
    let acquired = |first, last| Acquired { first: Offset(first), last: Offset(last), delivery_count: 1 };
    assert_eq!(fetched.around(&[acquired(3, 3)]), batches[1]);
    assert_eq!(fetched.around(&[acquired(1, 1), acquired(4, 4)]), batches[..2].concat());
    assert_eq!(fetched.around(&[]), Bytes::new());
    assert!(Fetched::of(Bytes::new(), Vec::new(), Offset(0), Isolation::ReadUncommitted).is_none());
}
