//! What a consumer is shown.

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::{Acks, Isolation, Refusal};
use barnabas_storage::StorageError;

use super::Bench;
use crate::{Effect, Read, ReadRequest, RequestError};

/// A leader of epoch 1 with two durable batches in a segment and one in memory, not durable: 0..2, 2..4, 4..6.
fn leader() -> Bench {
    let mut bench = Bench::leader();
    for _ in 0..2 {
        bench.place(2, Acks::All, 1).unwrap();
        bench.finish_round();
    }
    bench.step(|replica, around| replica.write_back_all(around)).unwrap();
    bench.step(|replica, around| replica.journal_durable(Offset(4), around.outbox));
    bench.place(2, Acks::All, 2).unwrap();
    bench.finish_round();
    bench.effects();
    bench
}

fn request(from: i64) -> ReadRequest {
    ReadRequest {
        from: Offset(from),
        max_bytes: 10_000,
        at_least_one: true,
        isolation: Isolation::ReadUncommitted,
        from_any: false,
        leader_epoch: None,
        last_fetched_epoch: None,
    }
}

fn read(bench: &mut Bench, request: &ReadRequest) -> Result<Read, RequestError> {
    let bounds = bench.replica.bounds_for(request)?;
    let Bench { replica, files, outbox, .. } = bench;
    replica.read(request, bounds, files, outbox)
}

#[test]
fn consumer_sees_what_is_durable_and_no_more() {
    let mut bench = leader();
    let found = read(&mut bench, &request(0)).unwrap();
    assert_eq!(found.next, Offset(4));
    assert!(read(&mut bench, &request(4)).unwrap().records.is_empty(), "it waits there");
    bench.step(|replica, around| replica.journal_durable(Offset(6), around.outbox));
    assert_eq!(read(&mut bench, &request(0)).unwrap().next, Offset(6), "segment and memory in one answer");
    assert_eq!(
        read(&mut bench, &request(7)).map(|_| ()),
        Err(RequestError::Refused(Refusal::OutOfRange {
            asked: Offset(7),
            start: Offset(0),
            end: Offset(6)
        }))
    );
}

#[test]
fn bytes_bound_the_answer_but_for_one_batch() {
    let mut bench = leader();
    let small = ReadRequest { max_bytes: 1, ..request(0) };
    assert_eq!(read(&mut bench, &small).unwrap().next, Offset(2));
    let nothing = ReadRequest { max_bytes: 0, at_least_one: false, ..request(0) };
    assert!(read(&mut bench, &nothing).unwrap().records.is_empty());
}

#[test]
fn follower_answers_only_those_who_allow_it() {
    let mut bench = leader();
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    assert_eq!(read(&mut bench, &request(0)).map(|_| ()), Err(RequestError::Refused(Refusal::NotLeader)));
    let any = ReadRequest { from_any: true, ..request(0) };
    assert_eq!(read(&mut bench, &any).unwrap().next, Offset(4));
}

#[test]
fn diverging_reader_gets_the_divergence_point() {
    let mut bench = leader();
    let same = ReadRequest { last_fetched_epoch: Some(LeaderEpoch(1)), ..request(2) };
    assert!(read(&mut bench, &same).unwrap().diverging.is_none());
    let beyond = ReadRequest { last_fetched_epoch: Some(LeaderEpoch(1)), ..request(9) };
    assert_eq!(read(&mut bench, &beyond).unwrap().diverging, Some((LeaderEpoch(1), Offset(6))));
}

#[test]
fn damage_is_named_with_its_offset() {
    let mut bench = leader();
    let segment = bench.replica.log.place().dir().join("00000000000000000000.log");
    bench.disk.corrupt(&segment, |bytes| *bytes.last_mut().unwrap() ^= 1);
    bench.replica.log.forget_below(Offset(4));
    bench.replica.log.forget_sound();
    assert_eq!(read(&mut bench, &request(2)).map(|_| ()), Err(RequestError::Damaged));
    let effects = bench.effects();
    let [Effect::ReadFailed(error)] = &effects[..] else { panic!("{effects:?}") };
    assert!(matches!(**error, StorageError::Damaged { offset: Offset(2), .. }), "{error}");
}
