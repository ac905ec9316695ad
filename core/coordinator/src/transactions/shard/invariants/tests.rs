//! One planted bug for each invariant, and nothing to say about a shard that is well.

use barnabas_base::{
    CoordinatorEpoch, MonotonicMs, PartitionIndex, ProducerEpoch, ProducerId, Text, TimestampMs,
    TopicPartition,
};
use barnabas_wire::messages::{EndTxnRequest, InitProducerIdRequest};

use crate::framework::{BatchId, Committed, Now, Ticket};
use crate::transactions::shard::{Entry, TimerKey};
use crate::transactions::transaction::Transaction;
use crate::transactions::{
    AddPartitions, TransactionCaller, TransactionConfig, TransactionRequest, TransactionShard,
    TransactionState,
};

const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };

fn send(shard: &mut TransactionShard, ticket: u64, request: TransactionRequest) {
    shard.handle(TransactionCaller::other(5), request, Ticket(ticket), NOW);
    shard.durable(BatchId(ticket), NOW);
}

fn partition(index: i32) -> TopicPartition {
    TopicPartition::new("t", PartitionIndex(index))
}

/// `a` is open, `b` is decided and waits for markers, `c` was never begun.
fn shard() -> TransactionShard {
    let mut shard = TransactionShard::new(TransactionConfig::default(), CoordinatorEpoch(3));
    shard.activate(NOW);
    shard.supply(Ok([7, 8, 9].map(ProducerId).to_vec()), NOW);
    for (number, id) in ["a", "b", "c"].into_iter().enumerate() {
        let init = InitProducerIdRequest {
            transactional_id: Some(id.into()),
            transaction_timeout_ms: 1_000,
            ..Default::default()
        };
        send(&mut shard, number as u64 + 1, TransactionRequest::InitProducerId(init));
    }
    for (ticket, id, producer) in [(4, "a", 7), (5, "b", 8)] {
        let add = AddPartitions {
            transactional_id: id.into(),
            producer_id: ProducerId(producer),
            producer_epoch: ProducerEpoch(0),
            verify_only: false,
            partitions: vec![partition(0), partition(1)],
        };
        send(&mut shard, ticket, TransactionRequest::AddPartitions(add));
    }
    let end =
        EndTxnRequest { transactional_id: "b".into(), producer_id: 8, committed: true, ..Default::default() };
    send(&mut shard, 6, TransactionRequest::EndTxn(end));
    assert_eq!((shard.stats().ongoing, shard.stats().prepared), (1, 1));
    shard
}

fn entry<'a>(shard: &'a mut TransactionShard, id: &str) -> &'a mut Entry {
    shard.entries.get_mut(id).expect("an entry")
}

/// Rewrites what is on disk.
fn rewrite(shard: &mut TransactionShard, id: &str, bug: impl FnOnce(&mut Transaction)) {
    let entry = entry(shard, id);
    let mut value = entry.transaction.committed().expect("a value").clone();
    bug(&mut value);
    entry.transaction = Committed::loaded(value);
}

/// Puts a step on its way.
fn step(shard: &mut TransactionShard, id: &str, bug: impl FnOnce(&mut Transaction)) {
    let entry = entry(shard, id);
    let mut value = entry.transaction.committed().expect("a value").clone();
    bug(&mut value);
    entry.transaction.change(BatchId(99), Some(value));
}

/// `bug` breaks what `sentence` is about.
fn check(sentence: &str, bug: impl FnOnce(&mut TransactionShard)) {
    let mut shard = shard();
    assert_eq!(shard.violations(), Vec::<String>::new());
    bug(&mut shard);
    let said = shard.violations();
    assert!(said.iter().any(|violation| violation.contains(sentence)), "{sentence:?} not among {said:?}");
}

#[test]
fn an_entry_is_one() {
    check("nothing is known of it", |shard| entry(shard, "c").transaction = Committed::default());
}

#[test]
fn values_fit_the_state() {
    check("is Ongoing under", |shard| rewrite(shard, "a", |value| value.producer_epoch = ProducerEpoch(-1)));
    check("is Empty and has partitions", |shard| {
        rewrite(shard, "c", |value| {
            value.partitions.insert(partition(0));
        });
    });
    check("has a next producer id", |shard| {
        rewrite(shard, "a", |value| value.next_producer_id = ProducerId(70));
    });
}

#[test]
fn a_step_is_one_that_may_follow() {
    check("goes from PrepareCommit to CompleteAbort", |shard| {
        step(shard, "b", |value| value.state = TransactionState::CompleteAbort);
    });
    check("goes from Empty to PrepareCommit", |shard| {
        step(shard, "c", |value| value.state = TransactionState::PrepareCommit);
    });
}

#[test]
fn little_is_under_way() {
    check("has 3 changes under way", |shard| {
        for batch in 97..100 {
            let transaction = &mut entry(shard, "a").transaction;
            let value = transaction.committed().cloned();
            transaction.change(BatchId(batch), value);
        }
    });
}

#[test]
fn an_epoch_never_goes_back() {
    check("goes back from epoch 1 to 0", |shard| {
        step(shard, "b", |value| {
            value.state = TransactionState::CompleteCommit;
            value.producer_epoch = ProducerEpoch(0);
        });
    });
}

#[test]
fn markers_belong_to_a_decision() {
    check("has markers to write and no decision", |shard| {
        let markers = entry(shard, "b").markers.take();
        entry(shard, "a").markers = markers;
    });
    check("waits for markers that are not its own", |shard| {
        let markers = entry(shard, "b").markers.as_mut().expect("markers");
        markers.awaited.insert(partition(9));
    });
}

#[test]
fn what_is_open_is_watched() {
    check("is open without a timer", |shard| shard.timers.cancel(&TimerKey::Timeout("a".into())));
}

#[test]
fn a_decision_goes_on() {
    check("is decided and has no markers", |shard| entry(shard, "b").markers = None);
    check("are not tried again", |shard| {
        let markers = entry(shard, "b").markers.as_mut().expect("markers");
        markers.failed.insert(partition(0));
    });
    check("does not end", |shard| {
        entry(shard, "b").markers.as_mut().expect("markers").awaited.clear();
    });
}

#[test]
fn what_is_held_is_counted() {
    check("bytes, and 3075 are counted", |shard| {
        rewrite(shard, "a", |value| value.partitions.extend((0..100).map(partition)));
    });
}

#[test]
fn timers_have_an_object() {
    check("timers where at most", |shard| {
        for number in 0..10 {
            shard.timers.set(TimerKey::Retry(Text::from(format!("gone {number}"))), MonotonicMs(9));
        }
    });
}

#[test]
fn a_ticket_waits_once() {
    check("waits twice", |shard| {
        for _ in 0..2 {
            let batch = shard.pending.open(MonotonicMs(9_000), Vec::new());
            let answer = TransactionRequest::Describe(Default::default());
            let answer = answer.refuse(barnabas_base::ErrorCode::None);
            shard.pending.hold(batch, Ticket(77), answer);
        }
    });
}

#[test]
fn requests_that_wait_for_an_id_are_woken() {
    let mut shard = shard();
    let config = TransactionConfig { busy_patience: barnabas_base::DurationMs(100), ..Default::default() };
    shard.set_config(config);
    let end =
        EndTxnRequest { transactional_id: "b".into(), producer_id: 8, committed: true, ..Default::default() };
    assert_eq!(
        shard.handle(TransactionCaller::other(5), TransactionRequest::EndTxn(end), Ticket(7), NOW),
        []
    );
    assert_eq!(shard.stats().parked, 1);
    assert_eq!(shard.violations(), Vec::<String>::new());
    shard.timers.cancel(&TimerKey::Parked(Text::from("b")));
    let found = shard.violations();
    assert!(found.iter().any(|what| what.contains("without a wake-up")), "{found:?}");
}
