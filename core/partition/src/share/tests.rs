//! Cases by hand, in words of Kafka's `SharePartitionTest`; tests/model.rs has the rest.

mod model;

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, ProducerId, Text};

use super::*;
use crate::Ticket;

fn written(start: i64, batches: &[(i64, i64, RecordState, u16)]) -> WrittenState {
    let of = |&(first, last, state, delivery_count): &(i64, i64, RecordState, u16)| StateBatch {
        first: Offset(first),
        last: Offset(last),
        state,
        delivery_count,
    };
    WrittenState {
        state_epoch: StateEpoch(1),
        start: Offset(start),
        batches: batches.iter().map(of).collect(),
    }
}

fn loaded(written: &WrittenState, settings: ShareSettings) -> SharePartition {
    SharePartition::load(written, LeaderEpoch(3), settings, &mut Vec::new()).expect("sound state")
}

fn fresh() -> SharePartition {
    loaded(&written(0, &[]), ShareSettings::default())
}

fn batch(base: i64, last: i64) -> FetchedBatch {
    FetchedBatch {
        base: Offset(base),
        last: Offset(last),
        producer_id: ProducerId(-1),
        is_transactional: false,
        is_abort: false,
    }
}

fn ask<'a>(member: &'a Text, records_max: i64, from: i64) -> Acquire<'a> {
    let mode = AcquireMode::BatchOptimized;
    Acquire { member, mode, records_max, batch_size: records_max, from: Offset(from) }
}

/// What is acquired, as `first..=last×count`.
fn got(acquired: &[Acquired]) -> Vec<String> {
    acquired.iter().map(|of| format!("{}..={}x{}", of.first, of.last, of.delivery_count)).collect()
}

fn ack(first: i64, last: i64, types: &[AckType]) -> AckBatch {
    AckBatch { first: Offset(first), last: Offset(last), types: types.to_vec() }
}

/// Acknowledges, has it written, and tells what was answered.
fn acknowledge(partition: &mut SharePartition, member: &Text, batches: &[AckBatch]) -> Result<(), ErrorCode> {
    let mut effects = Vec::new();
    partition.acknowledge(member, batches, Ticket(1), MonotonicMs(0), &mut effects);
    finish(partition, effects)
}

fn finish(partition: &mut SharePartition, effects: Vec<ShareEffect>) -> Result<(), ErrorCode> {
    let mut effects = std::collections::VecDeque::from(effects);
    let mut answered = Ok(());
    while let Some(effect) = effects.pop_front() {
        let mut more = Vec::new();
        match effect {
            ShareEffect::Write(id, _) => partition.written(id, Ok(()), MonotonicMs(0), &mut more),
            ShareEffect::Answer(_, result) => answered = result.map_err(ShareRefusal::code),
            ShareEffect::DeadLetter { first, last, .. } => partition.dead_lettered(first, last, &mut more),
            ShareEffect::Fetchable => {}
        }
        effects.extend(more);
    }
    answered
}

#[test]
fn whole_batches_beyond_what_was_asked_for_and_entries_of_a_size() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    let fetched = [batch(0, 4), batch(5, 9), batch(10, 19), batch(20, 29)];
    let of = Acquire { batch_size: 6, ..ask(&a, 12, 0) };
    let acquired = partition.acquire(&of, &fetched, &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["0..=9x1", "10..=19x1"]);
    assert_eq!(
        (partition.start(), partition.end(), partition.next_fetch_offset()),
        (Offset(0), Offset(19), Offset(20))
    );
    assert_eq!(partition.in_flight(), 20);
}

#[test]
fn no_more_than_asked_for_in_record_limit() {
    let (mut partition, a, b) = (fresh(), Text::from("a"), Text::from("b"));
    let of = |member, from| Acquire { mode: AcquireMode::RecordLimit, ..ask(member, 3, from) };
    let acquired = partition.acquire(&of(&a, 0), &[batch(0, 9)], &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["0..=2x1"]);
    assert_eq!((partition.end(), partition.next_fetch_offset()), (Offset(9), Offset(3)));
    let acquired = partition.acquire(&of(&b, 3), &[batch(0, 9)], &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["3..=5x1"]);
}

#[test]
fn a_word_for_each_record_and_the_start_follows() {
    use AckType::{Accept, Gap, Reject, Release};
    let (mut partition, a, b) = (fresh(), Text::from("a"), Text::from("b"));
    partition.acquire(&ask(&a, 10, 0), &[batch(0, 9)], &[], MonotonicMs(0));
    assert_eq!(acknowledge(&mut partition, &b, &[ack(0, 9, &[Accept])]), Err(ErrorCode::InvalidRecordState));
    let words = [Accept, Reject, Release, Gap, Accept];
    assert_eq!(acknowledge(&mut partition, &a, &[ack(0, 4, &words)]), Ok(()));
    assert_eq!((partition.start(), partition.delivery_complete()), (Offset(2), 2));
    assert_eq!(partition.next_fetch_offset(), Offset(2));
    let acquired = partition.acquire(&ask(&b, 10, 2), &[batch(0, 9)], &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["2..=2x2"]);
    assert_eq!(acknowledge(&mut partition, &b, &[ack(2, 2, &[Accept])]), Ok(()));
    assert_eq!(partition.start(), Offset(5));
    // Said twice is refused: it is not held any more.
    assert_eq!(acknowledge(&mut partition, &a, &[ack(5, 9, &[Accept])]), Ok(()));
    assert_eq!((partition.start(), partition.end(), partition.in_flight()), (Offset(10), Offset(10), 0));
    assert_eq!(acknowledge(&mut partition, &a, &[ack(5, 9, &[Accept])]), Ok(()), "below the start");
    assert_eq!(
        acknowledge(&mut partition, &a, &[ack(10, 12, &[Accept])]),
        Err(ErrorCode::InvalidRecordState)
    );
}

#[test]
fn offsets_past_what_was_acquired_are_no_request() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    partition.acquire(&ask(&a, 10, 0), &[batch(0, 9)], &[], MonotonicMs(0));
    let of = |first, last| [ack(first, last, &[AckType::Accept])];
    assert_eq!(acknowledge(&mut partition, &a, &of(10, 12)), Err(ErrorCode::InvalidRequest));
    assert_eq!(acknowledge(&mut partition, &a, &of(5, 12)), Err(ErrorCode::InvalidRequest));
    assert_eq!(partition.delivery_complete(), 0);
}

#[test]
fn a_failed_write_takes_everything_back() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    partition.acquire(&ask(&a, 10, 0), &[batch(0, 9)], &[], MonotonicMs(0));
    let mut effects = Vec::new();
    partition.acknowledge(&a, &[ack(0, 9, &[AckType::Accept])], Ticket(7), MonotonicMs(5), &mut effects);
    let [ShareEffect::Write(id, write)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((write.start, write.delivery_complete, write.batches.len()), (Offset(0), 10, 1));
    let id = *id;
    effects.clear();
    // Said again meanwhile.
    partition.acknowledge(&a, &[ack(0, 9, &[AckType::Accept])], Ticket(8), MonotonicMs(6), &mut effects);
    partition.written(id, Err(ErrorCode::CoordinatorNotAvailable), MonotonicMs(7), &mut effects);
    let answers: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            ShareEffect::Answer(ticket, result) => Some((ticket.0, result.map_err(ShareRefusal::code))),
            _ => None,
        })
        .collect();
    let refused = [(8, Err(ErrorCode::InvalidRecordState)), (7, Err(ErrorCode::CoordinatorNotAvailable))];
    assert_eq!(answers, refused);
    assert_eq!((partition.start(), partition.delivery_complete()), (Offset(0), 0));
    assert_eq!(acknowledge(&mut partition, &a, &[ack(0, 9, &[AckType::Accept])]), Ok(()));
}

#[test]
fn locks_end_and_can_be_renewed() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    partition.acquire(&ask(&a, 10, 0), &[batch(0, 9)], &[], MonotonicMs(0));
    let mut effects = Vec::new();
    partition.acknowledge(&a, &[ack(0, 4, &[AckType::Renew])], Ticket(1), MonotonicMs(20_000), &mut effects);
    assert_eq!(effects, [ShareEffect::Answer(Ticket(1), Ok(()))]);
    effects.clear();
    partition.expire(MonotonicMs(30_000), &mut effects);
    let [ShareEffect::Write(_, write), ShareEffect::Fetchable] = &effects[..] else { panic!("{effects:?}") };
    let free =
        StateBatch { first: Offset(5), last: Offset(9), state: RecordState::Available, delivery_count: 1 };
    assert_eq!(write.batches, [free]);
    assert_eq!(partition.next_fetch_offset(), Offset(5));
    assert_eq!(partition.next_deadline(), Some(MonotonicMs(50_000)));
    let strict = ShareSettings { may_renew: false, ..ShareSettings::default() };
    partition.set_settings(strict);
    let renewed = acknowledge(&mut partition, &a, &[ack(0, 4, &[AckType::Renew])]);
    assert_eq!(renewed, Err(ErrorCode::InvalidRecordState));
}

#[test]
fn what_fails_again_and_again_comes_in_smaller_pieces_and_at_last_alone() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    let fetched = [batch(0, 7)];
    let mut sizes = Vec::new();
    for _ in 0..14 {
        let from = partition.next_fetch_offset();
        let acquired = partition.acquire(&ask(&a, 100, from.get()), &fetched, &[], MonotonicMs(0));
        sizes.push((
            acquired.iter().map(Acquired::count).sum::<i64>(),
            acquired.first().map(|of| of.delivery_count),
        ));
        let mut effects = Vec::new();
        partition.release_member(&a, Ticket(1), &mut effects);
        finish(&mut partition, effects).expect("written");
    }
    // Five deliveries: the fourth is of half the batch, the fifth of single records.
    assert_eq!(&sizes[..3], [(8, Some(1)), (8, Some(2)), (8, Some(3))]);
    assert_eq!(sizes[3], (4, Some(4)));
    assert!(sizes[4..8].iter().all(|size| *size == (1, Some(5))), "{sizes:?}");
    // The other half comes at once: half of the batch is four records, though only four are left.
    assert_eq!(sizes[8], (4, Some(4)), "{sizes:?}");
    assert!(sizes[9..13].iter().all(|size| *size == (1, Some(5))), "{sizes:?}");
    assert_eq!((sizes[13], partition.start()), ((0, None), Offset(8)));
}

/// Kafka `SharePartition`: pieces from half of the limit on (`throttleRecordsDeliveryLimit`), a half more at each
/// delivery.
#[test]
fn raised_limit_leaves_more_whole_deliveries_and_smaller_last_pieces() {
    let settings = ShareSettings { deliveries_max: 10, ..ShareSettings::default() };
    let (mut partition, a) = (loaded(&written(0, &[]), settings), Text::from("a"));
    let fetched = [batch(0, 63)];
    let mut firsts: Vec<i64> = Vec::new();
    // Until the first record has been delivered ten times.
    while firsts.len() < 10 {
        let acquired = partition.acquire(&ask(&a, 100, 0), &fetched, &[], MonotonicMs(0));
        let first = acquired.first().expect("the first record is free");
        assert_eq!((first.first, usize::from(first.delivery_count)), (Offset(0), firsts.len() + 1));
        firsts.push(acquired.iter().map(Acquired::count).sum());
        if firsts.len() < 10 {
            let mut effects = Vec::new();
            partition.release_member(&a, Ticket(1), &mut effects);
            finish(&mut partition, effects).expect("written");
        }
    }
    assert_eq!(firsts, [64, 64, 64, 64, 64, 32, 16, 8, 4, 1]);
    // What is acknowledged by name goes on, and the records behind it come.
    assert_eq!(acknowledge(&mut partition, &a, &[ack(0, 0, &[AckType::Accept])]), Ok(()));
    assert_eq!(partition.start(), Offset(1));
    let mut rounds = 0;
    while partition.start() < Offset(64) {
        let from = partition.next_fetch_offset();
        let acquired = partition.acquire(&ask(&a, 100, from.get()), &fetched, &[], MonotonicMs(0));
        let accepts: Vec<_> =
            acquired.iter().map(|of| ack(of.first.get(), of.last.get(), &[AckType::Accept])).collect();
        assert_eq!(acknowledge(&mut partition, &a, &accepts), Ok(()));
        rounds += 1;
        assert!(rounds <= 64, "each round acknowledges something: {}", partition.start());
    }
}

#[test]
fn aborted_records_are_nobodys() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    let of = |base, last, producer, is_abort| FetchedBatch {
        producer_id: ProducerId(producer),
        is_transactional: true,
        is_abort,
        ..batch(base, last)
    };
    let fetched = [of(0, 4, 1, false), of(5, 9, 2, false), of(10, 10, 1, true), of(11, 14, 1, false)];
    let aborted = [(ProducerId(1), Offset(0))];
    let acquired = partition.acquire(&ask(&a, 100, 0), &fetched, &aborted, MonotonicMs(0));
    assert_eq!(got(&acquired), ["5..=14x1"]);
    assert_eq!(partition.start(), Offset(5), "they need no acknowledgement");
}

#[test]
fn what_was_written_is_read_back_with_its_holes() {
    use RecordState::{Acknowledged, Archived, Available};
    let state = written(10, &[(15, 19, Acknowledged, 1), (20, 24, Available, 2), (30, 34, Archived, 5)]);
    let (mut partition, a) = (loaded(&state, ShareSettings::default()), Text::from("a"));
    assert_eq!(
        (partition.start(), partition.end(), partition.next_fetch_offset()),
        (Offset(10), Offset(34), Offset(10))
    );
    let fetched = [batch(10, 19), batch(20, 29), batch(30, 39)];
    let acquired = partition.acquire(&ask(&a, 100, 10), &fetched, &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["10..=14x1", "20..=24x3", "25..=29x1", "35..=39x1"]);
    let all =
        [(10, 14), (20, 24), (25, 29), (35, 39)].map(|(first, last)| ack(first, last, &[AckType::Accept]));
    assert_eq!(acknowledge(&mut partition, &a, &all), Ok(()));
    assert_eq!(partition.start(), Offset(40));
    let bad = SharePartition::load(
        &written(10, &[(9, 12, Available, 1)]),
        LeaderEpoch(0),
        ShareSettings::default(),
        &mut Vec::new(),
    );
    assert!(bad.is_err());
}

#[test]
fn the_log_start_takes_records_along() {
    let (mut partition, a) = (fresh(), Text::from("a"));
    partition.acquire(
        &Acquire { batch_size: 5, ..ask(&a, 100, 0) },
        &[batch(0, 4), batch(5, 9)],
        &[],
        MonotonicMs(0),
    );
    partition.log_start_moved(Offset(7));
    assert_eq!((partition.start(), partition.end(), partition.in_flight()), (Offset(7), Offset(9), 3));
    // Its member does not know that.
    assert_eq!(
        acknowledge(&mut partition, &a, &[ack(0, 4, &[AckType::Accept]), ack(5, 9, &[AckType::Accept])]),
        Ok(())
    );
    assert_eq!(partition.start(), Offset(10));
    partition.log_start_moved(Offset(50));
    assert_eq!((partition.start(), partition.next_fetch_offset()), (Offset(50), Offset(50)));
}

#[test]
fn a_full_share_partition_takes_no_new_member() {
    let settings = ShareSettings { in_flight_max: 10, ..ShareSettings::default() };
    let (mut partition, a) = (loaded(&written(0, &[]), settings), Text::from("a"));
    let acquired = partition.acquire(&ask(&a, 100, 0), &[batch(0, 7), batch(8, 15)], &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["0..=15x1"], "as far as the batch goes");
    assert!(!partition.can_acquire());
    assert_eq!(acknowledge(&mut partition, &a, &[ack(4, 4, &[AckType::Release])]), Ok(()));
    assert!(partition.can_acquire(), "what is in flight and free may be had");
    let acquired =
        partition.acquire(&ask(&a, 100, 4), &[batch(0, 7), batch(8, 15), batch(16, 20)], &[], MonotonicMs(0));
    assert_eq!(got(&acquired), ["4..=4x2"]);
}

#[test]
fn what_is_given_up_goes_to_the_dead_letters_first() {
    let settings = ShareSettings { dead_letters: true, ..ShareSettings::default() };
    let (mut partition, a) = (loaded(&written(0, &[]), settings), Text::from("a"));
    partition.acquire(&ask(&a, 10, 0), &[batch(0, 1)], &[], MonotonicMs(0));
    let mut effects = Vec::new();
    partition.acknowledge(&a, &[ack(0, 1, &[AckType::Reject])], Ticket(1), MonotonicMs(0), &mut effects);
    let Some(ShareEffect::Write(id, write)) = effects.pop() else { panic!() };
    assert_eq!(write.batches[0].state, RecordState::Archiving);
    partition.written(id, Ok(()), MonotonicMs(0), &mut effects);
    let letter = ShareEffect::DeadLetter {
        first: Offset(0),
        last: Offset(1),
        delivery_count: 1,
        cause: DeadLetterCause::Rejected,
    };
    assert_eq!(effects, [ShareEffect::Answer(Ticket(1), Ok(())), letter.clone()]);
    assert_eq!((partition.start(), partition.delivery_complete()), (Offset(0), 0));
    // A leader that comes after sends them again.
    let mut again = Vec::new();
    let state = written(0, &[(0, 1, RecordState::Archiving, 1)]);
    SharePartition::load(&state, LeaderEpoch(4), settings, &mut again).expect("sound state");
    assert_eq!(again, [letter]);
    assert_eq!(finish(&mut partition, effects), Ok(()));
    assert_eq!(partition.start(), Offset(2));
    let _ = DurationMs(0);
}
