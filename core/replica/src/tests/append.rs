//! Which way a round takes to disk, and what a write that failed means for its producers.

use barnabas_base::{Offset, Sequence};
use barnabas_partition::{Acks, Append, Origin, Refusal, Ticket};
use barnabas_storage::{Faults, StorageError, Writer};
use barnabas_wire::records::ReadyBatch;

use super::Bench;
use super::bench::{append_of, batch};
use crate::{Appended, Durability, Effect, LogEvent, RequestError, TxnVerification, Verified};

/// Who is answered: the ticket, and the offset or the error.
fn answers(effects: &[Effect]) -> Vec<(u64, Result<i64, RequestError>)> {
    let answers = effects.iter().filter_map(|effect| match effect {
        Effect::Answer { ticket: Ticket(ticket), answer } => {
            Some((*ticket, answer.map(|acked| acked.base.get())))
        }
        _ => None,
    });
    answers.collect()
}

fn ready() -> ReadyBatch {
    ReadyBatch::from_bytes(batch(0, 1, Some(0))).unwrap()
}

fn written() -> Durability {
    Durability { acks_are_synced: false, journal_append_bytes_max: 500 }
}

#[test]
fn small_round_goes_to_the_journal_and_is_answered_when_durable() {
    let mut bench = Bench::leader();
    assert!(matches!(
        bench.place(1, Acks::All, 1),
        Ok(Appended::InRound { opens_round: true, records: 1, .. })
    ));
    assert!(matches!(
        bench.place(2, Acks::All, 2),
        Ok(Appended::InRound { opens_round: false, records: 2, .. })
    ));
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 0..3"], "one entry for the round");
    assert_eq!(bench.effects(), [Effect::Appended { batches: 2 }]);
    assert_eq!((bench.replica.log.end(), bench.replica.log.segment_end()), (Offset(3), Offset(0)));
    let Bench { replica, outbox, .. } = &mut bench;
    replica.journal_durable(Offset(3), outbox);
    assert_eq!(answers(&bench.effects()), [(1, Ok(0)), (2, Ok(1))]);
}

#[test]
fn large_round_goes_direct_and_nothing_overtakes_it() {
    let mut bench = Bench::leader();
    bench.place(1, Acks::All, 1).unwrap();
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 0..1"]);
    // More than 500 bytes are too large for the journal here, and fit into a segment of 1000.
    bench.place(12, Acks::All, 2).unwrap();
    bench.finish_round();
    bench.place(1, Acks::All, 3).unwrap();
    bench.finish_round();
    let effects = bench.effects();
    assert_eq!(effects.iter().filter(|effect| **effect == Effect::AppendedDirectly).count(), 2);
    assert!(effects.contains(&Effect::Sync));
    assert_eq!(bench.journal(), [] as [&str; 0], "not before it is synced");
    assert_eq!(bench.replica.log.segment_end(), Offset(14));
    bench.sync();
    assert_eq!(bench.journal(), ["range 1..14"]);
    assert_eq!(answers(&bench.effects()), [], "the journal's note comes first");
    let Bench { replica, outbox, .. } = &mut bench;
    replica.journal_durable(Offset(14), outbox);
    assert_eq!(answers(&bench.effects()), [(1, Ok(0)), (2, Ok(1)), (3, Ok(13))]);
    bench.place(1, Acks::All, 4).unwrap();
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 14..15"], "the journal is used again");
}

#[test]
fn written_acks_are_answered_after_the_write_or_its_flush() {
    for (messages_max, answered) in [(i64::MAX, true), (2, false)] {
        let mut bench = Bench::leader();
        bench.durability = written();
        bench.replica.flush.messages_max = messages_max;
        bench.place(2, Acks::All, 1).unwrap();
        bench.finish_round();
        let effects = bench.effects();
        assert_eq!(answers(&effects).len(), usize::from(answered), "flush.messages={messages_max}");
        assert_eq!(effects.contains(&Effect::FlushLater), answered);
        assert_eq!(effects.contains(&Effect::Sync), !answered);
        assert_eq!(bench.journal(), [] as [&str; 0]);
        bench.sync();
        assert_eq!(answers(&bench.effects()).len(), usize::from(!answered));
    }
}

#[test]
fn batch_larger_than_a_segment_is_refused() {
    let mut bench = Bench::leader();
    assert_eq!(bench.place(40, Acks::All, 1), Err(RequestError::Storage));
    let [Effect::Log(event), Effect::Released(_)] = &bench.effects()[..] else { panic!("one log event") };
    assert!(matches!(**event, LogEvent::BatchTooLarge { segment_bytes: 1000, .. }));
    assert!(bench.replica.round.is_empty());
    assert_eq!(bench.replica.partition.log_end(), Offset(0));
}

#[test]
fn retry_is_not_written_again() {
    let mut bench = Bench::leader();
    bench.place_of(batch(0, 2, Some(0)), Acks::All, 1).unwrap();
    assert_eq!(bench.place_of(batch(0, 2, Some(0)), Acks::All, 2), Ok(Appended::Duplicate));
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 0..2"]);
}

#[test]
fn verification_by_a_replica_that_was_opened_again_does_not_count() {
    let mut bench = Bench::leader();
    bench.replica.number = 2;
    let Ok(Some(guard)) =
        bench.replica.partition.guard(barnabas_base::ProducerId(7), barnabas_base::ProducerEpoch(0), false)
    else {
        panic!("no transaction is open")
    };
    let old = TxnVerification::Verified(Verified { replica: 1, guard });
    let append = append_of(Acks::All, 1);
    let refused = bench.step(|replica, around| replica.append(ready(), old, append, |_, _| true, around));
    assert_eq!(refused, Err(RequestError::Refused(Refusal::NotLeader)));
    let new = TxnVerification::Verified(Verified { replica: 2, guard });
    assert!(bench.step(|replica, around| replica.append(ready(), new, append, |_, _| true, around)).is_ok());
}

#[test]
fn every_segment_begins_with_a_producer_snapshot() {
    let mut bench = Bench::leader();
    for sequence in 0..3 {
        bench.place_of(batch(0, 8, Some(sequence * 8)), Acks::All, 1).unwrap();
        bench.finish_round();
        // Where nothing is on disk yet, no segment ends.
        bench.step(|replica, around| replica.write_back_all(around)).unwrap();
    }
    assert_eq!(bench.replica.log.segment_count(), 2, "two batches of 470 bytes fit into one");
    assert!(bench.replica.log.has_snapshot_from(Offset(16)));
}

#[test]
fn full_disk_refuses_the_round_and_reopens_the_replica() {
    let mut bench = Bench::leader();
    bench.durability = written();
    bench.disk.set_capacity(0);
    bench.place_of(batch(0, 2, Some(4)), Acks::All, 1).unwrap();
    let held = bench.replica.round.bytes as u64;
    bench.finish_round();
    let effects = bench.effects();
    assert_eq!(answers(&effects)[0], (1, Err(RequestError::Storage)));
    let released: u64 =
        effects.iter().map(|effect| if let Effect::Released(bytes) = effect { *bytes } else { 0 }).sum();
    assert_eq!(released, held, "its room is given back once");
    let not_written = effects.iter().find_map(|effect| match effect {
        Effect::NotWritten(batch) => Some(batch.base_sequence),
        _ => None,
    });
    assert_eq!(not_written, Some(Sequence(4)), "its producer may be unknown afterwards");
    let no_room = |effect: &Effect| matches!(effect, Effect::NoRoom(error) if error.is_passing());
    assert!(effects.iter().any(no_room));
    assert_eq!(effects.last(), Some(&Effect::Reopen));
    assert!(bench.replica.partition.is_failed());
    assert_eq!(bench.place(1, Acks::All, 2).map_err(RequestError::code), Err(RequestError::Storage.code()));
}

#[test]
fn large_round_on_a_full_disk_waits_in_the_journal() {
    let mut bench = Bench::leader();
    bench.place(1, Acks::All, 1).unwrap();
    bench.finish_round();
    bench.disk.set_capacity(0);
    bench.place(12, Acks::All, 2).unwrap();
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 0..1", "records 1..13"]);
    assert!(!bench.replica.partition.is_failed());
}

#[test]
fn failed_write_takes_the_directory_offline() {
    let mut bench = Bench::leader();
    bench.durability = written();
    bench.place(1, Acks::All, 1).unwrap();
    bench.finish_round();
    bench.effects();
    bench.disk.set_faults(Faults { writes_until_error: Some(0), ..Faults::default() });
    bench.place(2, Acks::All, 2).unwrap();
    bench.finish_round();
    let effects = bench.effects();
    assert_eq!(answers(&effects)[0], (2, Err(RequestError::Storage)));
    let failed = |effect: &Effect| matches!(effect, Effect::DirectoryFailed(error) if matches!(**error, StorageError::Disk(_)));
    assert!(effects.iter().any(failed));
    assert!(!effects.contains(&Effect::Reopen), "there is nothing to open it from");
    assert!(bench.replica.partition.is_failed());
}

#[test]
fn closed_replica_answers_its_round_and_gives_the_room_back() {
    let mut bench = Bench::leader();
    bench.place(1, Acks::All, 1).unwrap();
    bench.finish_round();
    bench.effects();
    bench.place(2, Acks::All, 2).unwrap();
    let held = bench.replica.round.size_bytes();
    bench.step(|replica, around| replica.fail(RequestError::Unknown, around.outbox));
    let effects = bench.effects();
    assert!(effects.contains(&Effect::Released(held)));
    let answers = answers(&effects);
    assert_eq!(answers[0], (2, Err(RequestError::Unknown)));
    assert!(answers.contains(&(1, Err(RequestError::Refused(Refusal::Offline)))));
    bench.step(|replica, around| replica.fail(RequestError::Storage, around.outbox));
    assert_eq!(bench.effects(), [], "once");
}

#[test]
fn batch_without_room_is_refused_and_changes_nothing() {
    let mut bench = Bench::leader();
    let place = |bench: &mut Bench, origin, is_short: bool| {
        let append = Append { origin, ..append_of(Acks::All, 1) };
        let admit = |_, writer| !is_short || writer == Writer::Coordinator;
        bench.step(|replica, around| replica.append(ready(), TxnVerification::Open, append, admit, around))
    };
    assert_eq!(place(&mut bench, Origin::Client, true), Err(RequestError::Full));
    assert_eq!((bench.replica.partition.log_end(), bench.effects()), (Offset(0), Vec::new()));
    assert!(place(&mut bench, Origin::Coordinator, true).is_ok(), "consumers go on");
    assert!(place(&mut bench, Origin::Client, false).is_ok());
}

#[test]
fn room_of_a_batch_that_is_not_written_is_released() {
    let mut bench = Bench::leader();
    bench.replica.partition.fail(&mut bench.outbox.decisions);
    bench.outbox.decisions.clear();
    let bytes = std::cell::Cell::new(0);
    let admit = |of, _| {
        bytes.set(of);
        true
    };
    let append = append_of(Acks::All, 1);
    let placed =
        bench.step(|replica, around| replica.append(ready(), TxnVerification::Open, append, admit, around));
    assert!(placed.is_err());
    assert_eq!(bench.effects(), [Effect::Released(bytes.get() as u64)]);
}
