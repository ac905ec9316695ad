//! Every invariant can fire: each is broken by hand once. And an idle partition is small.

use barnabas_base::{CoordinatorEpoch, ErrorCode, ProducerEpoch, ProducerId, Sequence};

use super::*;
use crate::{BatchKind, Marker, Ticket};

fn batch(producer: i64, sequence: i32, is_transactional: bool) -> BatchInfo {
    BatchInfo {
        offsets: 2,
        max_timestamp: TimestampMs(0),
        producer_id: ProducerId(producer),
        producer_epoch: ProducerEpoch(0),
        base_sequence: Sequence(sequence),
        is_transactional,
        kind: BatchKind::Data,
    }
}

fn how(acks: Acks) -> Append {
    Append {
        origin: Origin::Client,
        acks,
        ticket: Ticket(1),
        deadline: MonotonicMs(1),
        leader_epoch: None,
        verified: true,
        follows_refused: false,
    }
}

/// A leader with four records of producer 9, two of them durable; one append waits.
fn leader() -> Partition {
    let mut partition = Partition::new();
    let effects = &mut Vec::new();
    partition.become_leader(&Leadership::default(), effects);
    partition.append(&batch(9, 0, false), &how(Acks::All), effects).unwrap();
    partition.append(&batch(9, 2, false), &how(Acks::All), effects).unwrap();
    partition.written(Offset(4), effects);
    partition.durable(Offset(2), effects);
    partition
}

#[test]
fn unbroken_nothing_fires() {
    leader().assert_invariants();
}

#[test]
#[should_panic = "invariant 1"]
fn a_high_watermark_beyond_what_is_durable_is_caught() {
    let mut partition = leader();
    partition.high_watermark = Offset(3);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 1"]
fn a_durable_end_beyond_what_is_written_is_caught() {
    let mut partition = leader();
    partition.written_end = Offset(1);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 2"]
fn a_wait_for_an_offset_not_given_out_is_caught() {
    let mut partition = leader();
    partition.log_end = Offset(4);
    let end = Offset(9);
    partition.wait(&how(Acks::All), Offset(8), end, None, &mut Vec::new());
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 3"]
fn an_answer_held_back_is_caught() {
    let mut partition = leader();
    partition.durable_end = Offset(4);
    partition.high_watermark = Offset(4);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 4"]
fn a_stable_offset_beyond_the_high_watermark_is_caught() {
    let mut partition = leader();
    partition.last_stable = Offset(3);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 4: undecided"]
fn a_stable_offset_past_an_open_transaction_is_caught() {
    let mut partition = leader();
    let effects = &mut Vec::new();
    partition.append(&batch(8, 0, true), &how(Acks::Leader), effects).unwrap();
    partition.written(Offset(6), effects);
    partition.durable(Offset(6), effects);
    assert_eq!(partition.last_stable, Offset(4));
    partition.last_stable = Offset(5);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 5"]
fn a_follower_that_lets_someone_wait_is_caught() {
    let mut partition = leader();
    partition.role = Role::Follower(Offset::ZERO);
    partition.assert_invariants();
}

#[test]
#[should_panic = "invariant 1 of producers"]
fn batches_out_of_order_are_caught() {
    let mut partition = leader();
    let producers = partition.producers_mut();
    producers.break_invariant(ProducerId(9), 1);
    producers.note(Offset(4), &batch(9, 4, false));
    producers.assert_invariants(ProducerId(9));
}

#[test]
fn producers_beyond_the_bound_are_forgotten_oldest_first() {
    let mut partition = Partition::remembering(20);
    let mut end = 0;
    let mut write = |partition: &mut Partition, producer: i64, is_transactional: bool| {
        partition.note(Offset(end), &batch(producer, 0, is_transactional));
        end += 2;
    };
    write(&mut partition, 0, true);
    for producer in 1..20 {
        write(&mut partition, producer, false);
    }
    assert_eq!(partition.producer_count(), 20);
    write(&mut partition, 1, false);
    write(&mut partition, 20, false);
    let known: Vec<i64> = partition.producers().iter().map(|state| state.producer_id.get()).collect();
    // One had to go, and a tenth of the bound beside it. 0 has an open transaction, 1 has written since.
    assert_eq!(known[..3], [0, 1, 5]);
    assert_eq!(known.len(), 18);
    for producer in 100..10_000 {
        write(&mut partition, producer, false);
        assert!(partition.producer_count() <= 20);
    }
    assert_eq!(partition.producers()[0].producer_id, ProducerId(0));
    let mut again = Partition::remembering(20);
    let many = (0..100).map(|id| ProducerState { producer_id: ProducerId(id), ..partition.producers()[1] });
    again.restore(many);
    assert!(again.producer_count() <= 20);
}

#[test]
#[should_panic = "invariant 2 of producers"]
fn a_transaction_in_one_place_only_is_caught() {
    let mut partition = leader();
    let producers = partition.producers_mut();
    producers.break_invariant(ProducerId(9), 2);
    producers.assert_invariants(ProducerId(9));
}

#[test]
#[should_panic = "given offsets before"]
fn what_was_never_appended_cannot_be_written() {
    leader().written(Offset(5), &mut Vec::new());
}

#[test]
#[should_panic = "written before"]
fn what_was_never_written_cannot_be_durable() {
    let mut partition = leader();
    partition.append(&batch(9, 4, false), &how(Acks::All), &mut Vec::new()).unwrap();
    partition.durable(Offset(6), &mut Vec::new());
}

#[test]
#[should_panic = "only what is safe may be deleted"]
fn retention_stops_at_the_high_watermark() {
    leader().advance_log_start(Offset(3), &mut Vec::new());
}

#[test]
#[should_panic = "an offset is taken once"]
fn a_follower_does_not_take_an_offset_twice() {
    let mut partition = leader();
    partition.become_follower(LeaderEpoch(1), &mut Vec::new());
    partition.follow(Offset(3), &batch(9, 4, false), &mut Vec::new());
}

#[test]
#[should_panic = "a leader takes no batches"]
fn a_leader_has_no_leader_to_follow() {
    leader().follow(Offset(4), &batch(9, 4, false), &mut Vec::new());
}

#[test]
fn a_refused_append_changes_nothing() {
    let mut partition = leader();
    let before = format!("{partition:?}");
    let effects = &mut Vec::new();
    let gap = partition.append(&batch(9, 7, false), &how(Acks::All), effects);
    assert!(matches!(gap, Err(Refusal::SequenceGap { .. })));
    let marker =
        Marker { outcome: Outcome::Commit, coordinator_epoch: CoordinatorEpoch(0), transaction_version: 0 };
    let old = BatchInfo {
        kind: BatchKind::Marker(marker),
        producer_epoch: ProducerEpoch(-1),
        ..batch(9, -1, true)
    };
    let old = partition.append(&old, &how(Acks::All), effects);
    assert!(matches!(old, Err(Refusal::OldProducerEpoch { .. })));
    assert_eq!((format!("{partition:?}"), effects.len()), (before, 0));
}

/// The leader changed while the batch was on its way: its answer is late, and successors were taken meanwhile.
#[test]
fn batch_that_was_appended_long_since_is_called_a_duplicate_once_it_is_safe() {
    let effects = &mut Vec::new();
    let mut partition = Partition::new();
    partition.become_leader(&Leadership::default(), effects);
    let first = i32::MAX - 5;
    let sequence = |number: i32| first.wrapping_add(2 * number) & i32::MAX;
    for number in 0..9 {
        partition.append(&batch(9, sequence(number), false), &how(Acks::All), effects).unwrap();
    }
    let again = |partition: &mut Partition, batch: &BatchInfo| {
        let end = partition.log_end();
        let said = partition.append(batch, &how(Acks::All), &mut Vec::new());
        assert_eq!(partition.log_end(), end);
        said
    };
    let old = batch(9, sequence(2), false);
    assert!(matches!(again(&mut partition, &old), Err(Refusal::SequenceGap { .. })), "it is not safe");
    partition.written(Offset(18), effects);
    partition.durable(Offset(18), effects);
    assert_eq!(partition.high_watermark(), Offset(18));
    for number in 0..4 {
        let said = again(&mut partition, &batch(9, sequence(number), false)).unwrap_err();
        assert_eq!(said.code(), ErrorCode::DuplicateSequenceNumber, "{number}");
    }
    // Remembered ones get their offsets, and nothing else is called a duplicate.
    assert!(matches!(again(&mut partition, &batch(9, sequence(4), false)), Ok(Placed::Duplicate { .. })));
    // One record of a remembered batch is another batch.
    let unknown = [sequence(6) + 1, sequence(-1), sequence(-1) + 1, sequence(10), sequence(9) + 1];
    for base in unknown {
        let said = again(&mut partition, &batch(9, base, false));
        assert!(matches!(said, Err(Refusal::SequenceGap { .. })), "{base}: {said:?}");
    }
    let transactional = partition.append(&batch(9, sequence(2), true), &how(Acks::All), effects);
    assert!(!matches!(transactional, Err(Refusal::LongSince { .. })), "{transactional:?}");
    // What a snapshot has lost is not vouched for.
    let mut restored = Partition::new();
    restored.restore(partition.producer_snapshot());
    restored.open(LogEnds { log_start: Offset(0), log_end: Offset(18), high_watermark: Offset(18) });
    restored.become_leader(&Leadership { epoch: LeaderEpoch(1), ..Leadership::default() }, effects);
    let said = again(&mut restored, &batch(9, sequence(3), false));
    assert!(matches!(said, Err(Refusal::SequenceGap { .. })), "{said:?}");
    assert!(matches!(again(&mut restored, &batch(9, sequence(4), false)), Ok(Placed::Duplicate { .. })));
}

/// A producer that is not remembered may begin with any sequence, but not behind a batch of its own that was refused.
#[test]
fn what_follows_a_refused_batch_waits_for_it() {
    let effects = &mut Vec::new();
    let mut partition = leader();
    let behind = Append { follows_refused: true, ..how(Acks::All) };
    let said = partition.append(&batch(8, 6, false), &behind, effects);
    assert!(matches!(said, Err(Refusal::SequenceGap { .. })), "{said:?}");
    assert!(partition.append(&batch(8, 4, false), &how(Acks::All), effects).is_ok());
    // Once it is remembered, its own state decides.
    assert!(partition.append(&batch(8, 6, false), &behind, effects).is_ok());
    assert!(partition.append(&batch(7, 6, false), &how(Acks::All), effects).is_ok(), "another one");
}

/// A coordinator that has been replaced may still send the marker of a transaction that its successor ended.
#[test]
fn marker_of_a_replaced_coordinator_is_refused() {
    let mut partition = leader();
    let effects = &mut Vec::new();
    let marker = |epoch: i32| {
        let coordinator_epoch = CoordinatorEpoch(epoch);
        let marker = Marker { outcome: Outcome::Abort, coordinator_epoch, transaction_version: 0 };
        BatchInfo { kind: BatchKind::Marker(marker), ..batch(9, -1, true) }
    };
    partition.append(&marker(4), &how(Acks::All), effects).expect("the first marker");
    let end = partition.log_end();
    let late = partition.append(&marker(3), &how(Acks::All), effects);
    assert!(matches!(late, Err(Refusal::OldCoordinator { .. })), "{late:?}");
    assert_eq!(partition.log_end(), end);
    partition.append(&marker(4), &how(Acks::All), effects).expect("the same coordinator again");
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_producers_are_noticed() {
    let test = || {
        barnabas_base::planted::with("MarksForOldCoordinators", marker_of_a_replaced_coordinator_is_refused);
    };
    assert!(std::panic::catch_unwind(test).is_err(), "MarksForOldCoordinators is not noticed");
    let test =
        || barnabas_base::planted::with("BeginsBehindTheRefused", what_follows_a_refused_batch_waits_for_it);
    assert!(std::panic::catch_unwind(test).is_err(), "BeginsBehindTheRefused is not noticed");
}

/// KAFKA-14034, Redpanda 5355: on this error a producer drops its batch, or sends it again under another epoch.
#[test]
fn no_refusal_is_an_unknown_error() {
    let (producer_id, epoch, coordinator) = (ProducerId(9), ProducerEpoch(1), CoordinatorEpoch(1));
    let (asked, offset) = (LeaderEpoch(1), Offset(1));
    let refusals = [
        Refusal::NotLeader,
        Refusal::Offline,
        Refusal::FencedEpoch { asked, current: asked },
        Refusal::UnknownEpoch { asked, current: asked },
        Refusal::TooFewReplicas { in_sync: 1, needed: 2 },
        Refusal::TimedOut,
        Refusal::SequenceGap { producer_id, sequence: Sequence(2), last: Sequence(0) },
        Refusal::LongSince { producer_id, sequence: Sequence(2) },
        Refusal::OldProducerEpoch { producer_id, epoch, current: epoch },
        Refusal::OldCoordinator { producer_id, epoch: coordinator, current: coordinator },
        Refusal::TxnState { producer_id },
        Refusal::OutOfRange { asked: offset, start: offset, end: offset },
        Refusal::OffsetNotAvailable,
    ];
    for refusal in refusals {
        assert_ne!(refusal.code(), barnabas_base::ErrorCode::UnknownServerError, "{refusal}");
    }
}

#[test]
fn an_idle_partition_costs_bytes() {
    let led = size_of::<Partition>() + size_of::<Leading>();
    assert!(size_of::<Partition>() <= 88, "{}", size_of::<Partition>());
    assert!(led <= 120, "{led}");
    // What was needed once is given back.
    let mut partition = leader();
    let effects = &mut Vec::new();
    partition.durable(Offset(4), effects);
    assert!(partition.waits.is_none());
    partition.expire_producers(TimestampMs(10), DurationMs(10));
    assert!(partition.producers.is_none());
}
