//! One leader broker, a few partitions, and every way in which a round can go.

use barnabas_base::{PartitionIndex, Uuid};

use super::*;

const SETTINGS: FetcherSettings =
    FetcherSettings { backoff_min: DurationMs(10), backoff_max: DurationMs(1000), patience: DurationMs(20) };
const NO_WAIT: DurationMs = DurationMs(0);

fn key(partition: i32) -> ReplicaKey {
    ReplicaKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
}

fn at(epoch: i32, offset: i64) -> FetchPosition {
    FetchPosition {
        leader_epoch: LeaderEpoch(epoch),
        offset: Offset(offset),
        last_epoch: None,
        log_start: Offset::ZERO,
        high_watermark: Offset::ZERO,
    }
}

fn answer(partition: i32, error: ErrorCode, bytes: usize) -> PartitionAnswer {
    let (high_watermark, log_start) = (Offset(100), Offset::ZERO);
    PartitionAnswer { key: key(partition), error, high_watermark, log_start, diverging: None, bytes }
}

/// A fetcher and what it was asked.
struct Round {
    fetcher: Fetcher,
    now: u64,
}

/// Session id and epoch, partitions with their offsets, partitions that are forgotten.
type Asked = (i32, i32, Vec<(i32, i64)>, Vec<i32>);

impl Round {
    /// Follows partitions 0 to `count` − 1 from 0, in epoch 1.
    fn new(count: i32) -> Self {
        let mut fetcher = Fetcher::new(SETTINGS);
        (0..count).for_each(|partition| fetcher.follow(key(partition), LeaderEpoch(1), Some(at(1, 0))));
        Self { fetcher, now: 1000 }
    }

    fn ask(&mut self) -> Option<Asked> {
        self.ask_under(false)
    }

    fn ask_under(&mut self, quota_is_exceeded: bool) -> Option<Asked> {
        let plan = self.fetcher.plan(MonotonicMs(self.now), quota_is_exceeded)?;
        let named = plan.partitions.iter().map(|(key, at)| (key.partition.get(), at.offset.get()));
        let forgotten = plan.forgotten.iter().map(|key| key.partition.get());
        Some((plan.session.id, plan.session.epoch, named.collect(), forgotten.collect()))
    }

    fn answer(&mut self, session: i32, partitions: &[PartitionAnswer]) -> Vec<(i32, Todo)> {
        let mut todos = Vec::new();
        let now = MonotonicMs(self.now);
        self.fetcher.answered(ErrorCode::None, session, NO_WAIT, partitions, now, |key, _, todo| {
            todos.push((key.partition.get(), todo));
        });
        todos
    }

    fn refuse(&mut self, error: ErrorCode) {
        self.fetcher.answered(error, 0, NO_WAIT, &[], MonotonicMs(self.now), |_, _, _| unreachable!());
    }
}

const NONE: ErrorCode = ErrorCode::None;

#[test]
fn a_session_names_what_has_changed() {
    let mut round = Round::new(2);
    assert_eq!(round.ask(), Some((0, 0, vec![(0, 0), (1, 0)], vec![])));
    // One request at a time.
    assert_eq!(round.ask(), None);
    let todos = round.answer(7, &[answer(0, NONE, 50), answer(1, NONE, 0)]);
    assert_eq!(todos, [(0, Todo::Append), (1, Todo::Marks)]);
    // What is being synced is waited for.
    assert_eq!((round.ask(), round.fetcher.next_wake()), (None, Some(MonotonicMs(1020))));
    round.fetcher.settled(key(0), at(1, 5));
    assert_eq!(round.ask(), Some((7, 1, vec![(0, 5)], vec![])));
    // Nothing new: the answer is empty, and so is the next request.
    assert_eq!(round.answer(7, &[]), []);
    assert_eq!(round.ask(), Some((7, 2, vec![], vec![])));
}

#[test]
fn a_slow_directory_holds_up_its_own_partitions_only() {
    let mut round = Round::new(2);
    round.ask();
    round.answer(7, &[answer(0, NONE, 50), answer(1, NONE, 50)]);
    round.fetcher.settled(key(1), at(1, 3));
    assert_eq!(round.ask(), None);
    round.now += 20;
    assert_eq!(round.ask(), Some((7, 1, vec![(1, 3)], vec![0])));
    round.fetcher.settled(key(0), at(1, 9));
    round.answer(7, &[]);
    assert_eq!(round.ask(), Some((7, 2, vec![(0, 9)], vec![])));
}

#[test]
fn a_request_that_leaves_partitions_out_must_not_be_held_back() {
    let mut round = Round::new(3);
    let wait =
        |round: &mut Round| round.fetcher.plan(MonotonicMs(round.now), false).map(|plan| plan.wait_max);
    assert_eq!(wait(&mut round), Some(None));
    let answers = [answer(0, NONE, 50), answer(1, ErrorCode::NotLeaderOrFollower, 0), answer(2, NONE, 0)];
    round.answer(7, &answers);
    round.fetcher.settled(key(0), at(1, 5));
    round.now += 4;
    // Number 1 is asked for again in 6 ms.
    assert_eq!(wait(&mut round), Some(Some(DurationMs(6))));
    round.answer(7, &[answer(0, NONE, 50)]);
    round.now += 20;
    assert_eq!(wait(&mut round), Some(Some(SETTINGS.patience)));
}

#[test]
fn with_nothing_to_ask_for_nothing_is_asked() {
    let mut round = Round::new(1);
    round.ask();
    round.answer(7, &[answer(0, NONE, 50)]);
    round.now += 100;
    assert_eq!((round.ask(), round.fetcher.next_wake()), (None, None));
    round.fetcher.settled(key(0), at(1, 5));
    assert_eq!(round.ask(), Some((7, 0, vec![(0, 5)], vec![])));
}

#[test]
fn a_leader_that_has_no_room_for_a_session_is_asked_for_all() {
    let mut round = Round::new(2);
    round.ask();
    round.answer(0, &[answer(0, NONE, 0), answer(1, NONE, 0)]);
    assert_eq!(round.ask(), Some((0, 0, vec![(0, 0), (1, 0)], vec![])));
}

#[test]
fn a_lost_session_is_started_over() {
    for (error, id) in [(ErrorCode::FetchSessionIdNotFound, 0), (ErrorCode::InvalidFetchSessionEpoch, 7)] {
        let mut round = Round::new(2);
        round.ask();
        round.answer(7, &[answer(0, NONE, 0), answer(1, NONE, 0)]);
        round.ask();
        round.refuse(error);
        assert_eq!(round.ask(), Some((id, 0, vec![(0, 0), (1, 0)], vec![])));
    }
}

#[test]
fn who_cannot_be_reached_is_asked_again_later_each_time() {
    let mut round = Round::new(1);
    for wait in [10, 20, 40, 80] {
        assert!(round.ask().is_some());
        round.fetcher.unanswered(MonotonicMs(round.now));
        round.now += wait - 1;
        assert_eq!(round.ask(), None);
        round.now += 1;
    }
    // And is forgiven once it answers.
    round.ask();
    round.answer(7, &[answer(0, NONE, 0)]);
    assert!(round.ask().is_some());
    round.fetcher.unanswered(MonotonicMs(round.now));
    round.now += 10;
    // The epoch that the leader's session expects is unknown.
    assert_eq!(round.ask(), Some((7, 0, vec![(0, 0)], vec![])));
}

#[test]
fn an_error_delays_one_partition() {
    let mut round = Round::new(2);
    round.ask();
    let todos = round.answer(7, &[answer(0, ErrorCode::NotLeaderOrFollower, 0), answer(1, NONE, 0)]);
    assert_eq!(todos, [(0, Todo::Later), (1, Todo::Marks)]);
    assert_eq!(round.ask(), Some((7, 1, vec![], vec![0])));
    round.answer(7, &[]);
    assert_eq!(round.fetcher.next_wake(), Some(MonotonicMs(1010)));
    round.now = 1010;
    assert_eq!(round.ask(), Some((7, 2, vec![(0, 0)], vec![])));
}

#[test]
fn a_newer_epoch_elsewhere_waits_for_the_metadata() {
    let mut round = Round::new(1);
    round.ask();
    let todos = round.answer(7, &[answer(0, ErrorCode::FencedLeaderEpoch, 0)]);
    assert_eq!(todos, [(0, Todo::AwaitMetadata)]);
    round.now += 10_000;
    assert_eq!(round.ask(), None);
    round.fetcher.follow(key(0), LeaderEpoch(2), Some(at(2, 0)));
    assert_eq!(round.ask(), Some((7, 0, vec![(0, 0)], vec![])));
}

#[test]
fn an_answer_to_what_is_followed_no_more_is_dropped() {
    let mut round = Round::new(3);
    round.ask();
    // While the request is under way: another epoch, another leader, a log that is not durable.
    round.fetcher.follow(key(0), LeaderEpoch(2), Some(at(2, 0)));
    round.fetcher.unfollow(key(1));
    round.fetcher.follow(key(2), LeaderEpoch(2), None);
    let todos = round.answer(7, &[answer(0, NONE, 50), answer(1, NONE, 50), answer(2, NONE, 50)]);
    assert_eq!(todos, []);
    round.fetcher.settled(key(2), at(1, 5));
    round.now += 20;
    assert_eq!(round.ask(), Some((7, 0, vec![(0, 0)], vec![])));
    round.fetcher.settled(key(2), at(2, 4));
    round.answer(7, &[answer(0, NONE, 0)]);
    assert_eq!(round.ask(), Some((7, 1, vec![(2, 4)], vec![])));
    assert_eq!(round.fetcher.entries.len(), 2);
}

#[test]
fn logs_that_part_and_logs_that_do_not_meet() {
    let mut round = Round::new(2);
    round.ask();
    let diverging = Some((LeaderEpoch(0), Offset(3)));
    let answers =
        [PartitionAnswer { diverging, ..answer(0, NONE, 0) }, answer(1, ErrorCode::OffsetOutOfRange, 0)];
    let todos = round.answer(7, &answers);
    let cut = Todo::Cut { epoch: LeaderEpoch(0), end: Offset(3) };
    assert_eq!(todos, [(0, cut), (1, Todo::FindEnds { leader_epoch: LeaderEpoch(1) })]);
    round.fetcher.settled(key(0), at(1, 3));
    round.fetcher.delayed(key(1), MonotonicMs(round.now));
    assert_eq!(round.ask(), Some((7, 1, vec![(0, 3)], vec![1])));
}

#[test]
fn beyond_the_quota_who_is_throttled_waits_unless_it_has_caught_up() {
    let mut round = Round::new(3);
    round.fetcher.set_throttled(key(0), true);
    round.fetcher.set_throttled(key(1), true);
    round.ask();
    let behind = PartitionAnswer { high_watermark: Offset(0), ..answer(1, NONE, 0) };
    round.answer(7, &[answer(0, NONE, 0), behind, answer(2, NONE, 0)]);
    assert_eq!(round.ask_under(true), Some((7, 1, vec![], vec![0])));
    round.answer(7, &[]);
    assert_eq!(round.ask_under(false), Some((7, 2, vec![(0, 0)], vec![])));
}

#[test]
fn the_leader_asks_for_patience() {
    let mut round = Round::new(1);
    round.ask();
    let now = MonotonicMs(round.now);
    round.fetcher.answered(NONE, 7, DurationMs(500), &[answer(0, NONE, 0)], now, |_, _, _| {});
    round.now += 499;
    assert_eq!(round.ask(), None);
    round.now += 1;
    assert!(round.ask().is_some());
}

#[test]
fn a_changed_log_start_is_sent() {
    let mut round = Round::new(1);
    round.ask();
    round.answer(7, &[answer(0, NONE, 0)]);
    round.fetcher.settled(key(0), FetchPosition { high_watermark: Offset(9), ..at(1, 0) });
    assert_eq!(round.ask(), Some((7, 1, vec![], vec![])));
    round.answer(7, &[]);
    round.fetcher.settled(key(0), FetchPosition { log_start: Offset(9), ..at(1, 0) });
    assert_eq!(round.ask(), Some((7, 2, vec![(0, 0)], vec![])));
}

#[test]
fn a_log_that_was_cut_while_it_waits_is_asked_for_from_its_end() {
    let mut round = Round::new(1);
    round.ask();
    round.answer(7, &[answer(0, ErrorCode::OffsetOutOfRange, 0)]);
    round.fetcher.delayed(key(0), MonotonicMs(round.now));
    round.fetcher.settled(key(0), at(1, 40));
    assert_eq!(round.ask(), None);
    round.now += 10;
    assert_eq!(round.ask(), Some((7, 0, vec![(0, 40)], vec![])));
}

#[test]
fn an_idle_round_does_not_look_at_partitions() {
    let mut round = Round::new(10_000);
    round.ask();
    let answers: Vec<_> = (0..10_000).map(|partition| answer(partition, NONE, 0)).collect();
    round.answer(7, &answers);
    for epoch in 1..50 {
        assert_eq!(round.ask(), Some((7, epoch, vec![], vec![])));
        assert_eq!(round.fetcher.changed.len(), 0);
        round.answer(7, &[]);
    }
}
