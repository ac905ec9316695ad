//! Loading `__transaction_state` as Apache's brokers wrote it, and records that no broker should have written.

mod transactions;

use barnabas_base::{CoordinatorEpoch, Offset, TimestampMs};
use barnabas_coordinator::{
    LoadError, Ticket, TransactionCaller, TransactionConfig, TransactionEffect, TransactionRequest,
    TransactionResponse, TransactionShard,
};
use barnabas_wire::messages::transaction_log_value::{PartitionsSchema, TransactionLogValue};
use barnabas_wire::messages::{
    EndTxnRequest, ListTransactionsRequest, TransactionLogKey, TransactionRecordKey, TransactionRecordValue,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;
use transactions::Rig;

fn key(id: &str) -> Bytes {
    let key = TransactionLogKey { transactional_id: id.into(), ..Default::default() };
    TransactionRecordKey::TransactionLog(key).encode_key().expect("a key")
}

fn value(version: i16, status: i8, bug: impl FnOnce(&mut TransactionLogValue)) -> Option<Bytes> {
    let mut value = TransactionLogValue {
        producer_id: 7,
        producer_epoch: 3,
        transaction_timeout_ms: 1_000,
        transaction_status: status,
        transaction_start_timestamp_ms: 5,
        transaction_last_update_timestamp_ms: 6,
        ..Default::default()
    };
    bug(&mut value);
    Some(TransactionRecordValue::TransactionLog(value).encode_value(version).expect("a value"))
}

fn with_partitions(value: &mut TransactionLogValue) {
    let topic = PartitionsSchema { topic: "t".into(), partition_ids: vec![2, 0], ..Default::default() };
    value.transaction_partitions = Some(vec![topic]);
}

fn batch(base: i64, records: &[(Bytes, Option<Bytes>)]) -> Bytes {
    let options = BatchOptions { base_offset: Offset(base), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for (key, value) in records {
        builder.push(TimestampMs(0), Some(key), value.as_deref(), &[]);
    }
    builder.build().expect("a batch")
}

fn shard() -> TransactionShard {
    TransactionShard::new(TransactionConfig::default(), CoordinatorEpoch(4))
}

fn listed(rig: &mut Rig) -> Vec<(String, String)> {
    let (_, effects) = rig.send(2, TransactionRequest::List(ListTransactionsRequest::default()));
    let Some(TransactionEffect::Answer { response: TransactionResponse::List(response), .. }) =
        effects.first()
    else {
        panic!("{effects:?}")
    };
    let states = response.transaction_states.iter();
    states.map(|state| (state.transactional_id.to_string(), state.transaction_state.to_string())).collect()
}

#[test]
fn the_last_record_of_each_id_counts() {
    let mut rig = Rig::new(TransactionConfig::default());
    let mut shard = shard();
    // An unknown type of record is passed over.
    let other = Bytes::from_static(&[0, 9, 1, 2, 3]);
    let first = batch(
        0,
        &[
            (key("a"), value(0, 0, |value| value.transaction_partitions = None)),
            (key("b"), value(1, 1, with_partitions)),
            (key("gone"), value(1, 4, |_| {})),
            (other, Some(Bytes::from_static(b"?"))),
        ],
    );
    let second = batch(
        4,
        &[(key("a"), value(1, 2, with_partitions)), (key("gone"), None), (key("done"), value(0, 5, |_| {}))],
    );
    let next = shard.replay_batches(Offset(0), first).expect("a piece");
    assert_eq!(next, Offset(4));
    assert_eq!(shard.replay_batches(next, second).expect("a piece"), Offset(7));
    assert_eq!(shard.violations(), Vec::<String>::new());
    rig.shard = shard;
    let effects = rig.shard.activate(rig.now());
    let effects = rig.carry_out(effects);
    // What was decided goes on: with this coordinator's epoch.
    let [TransactionEffect::WriteMarkers(order)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((&*order.transactional_id, order.commit, order.partitions.len()), ("a", true, 2));
    assert_eq!(order.ticket.coordinator_epoch, CoordinatorEpoch(4));
    let said: Vec<(String, String)> = [("a", "PrepareCommit"), ("b", "Ongoing"), ("done", "CompleteAbort")]
        .map(|(id, state)| (id.to_owned(), state.to_owned()))
        .to_vec();
    assert_eq!(listed(&mut rig), said);
}

#[test]
fn until_it_is_loaded_everything_is_told_to_wait() {
    let mut shard = shard();
    let rig = Rig::new(TransactionConfig::default());
    let end =
        TransactionRequest::EndTxn(EndTxnRequest { transactional_id: "a".into(), ..Default::default() });
    let effects = shard.handle(TransactionCaller::other(5), end, Ticket(1), rig.now());
    let [TransactionEffect::Answer { response: TransactionResponse::EndTxn(response), .. }] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(response.error_code, 14, "COORDINATOR_LOAD_IN_PROGRESS");
}

#[test]
fn what_cannot_be_read_stops_the_load() {
    let load =
        |key: Bytes, value: Option<Bytes>| shard().replay_batches(Offset(0), batch(40, &[(key, value)]));
    for status in [6, 7, 8, -1] {
        let loaded = load(key("a"), value(1, status, |_| {}));
        assert_eq!(loaded, Err(LoadError::State { offset: 40, number: status }));
    }
    let unknown_version = load(key("a"), Some(Bytes::from_static(&[0, 2, 0, 0])));
    assert!(matches!(unknown_version, Err(LoadError::Value { offset: 40, .. })), "{unknown_version:?}");
    let cut = load(key("a"), Some(value(1, 0, |_| {}).expect("a value").slice(..9)));
    assert!(matches!(cut, Err(LoadError::Value { offset: 40, .. })), "{cut:?}");
    let cut = load(key("a").slice(..3), None);
    assert!(matches!(cut, Err(LoadError::Key { offset: 40, .. })), "{cut:?}");
    let mut damaged = batch(0, &[(key("a"), value(1, 0, |_| {}))]).to_vec();
    *damaged.last_mut().expect("bytes") ^= 1;
    let damaged = shard().replay_batches(Offset(0), damaged.into());
    assert!(matches!(damaged, Err(LoadError::Batch { .. })), "{damaged:?}");
}

/// A state that an older Kafka left behind (KAFKA-20090): the epoch is at its end, and the transaction open.
#[test]
fn an_epoch_at_its_very_end_is_recovered_from() {
    let mut rig = Rig::new(TransactionConfig::default());
    let at_end = |value: &mut TransactionLogValue| {
        with_partitions(value);
        value.producer_epoch = i16::MAX;
    };
    let mut loading = shard();
    loading.replay_batches(Offset(0), batch(0, &[(key("a"), value(1, 1, at_end))])).expect("a piece");
    rig.shard = loading;
    let effects = rig.shard.activate(rig.now());
    rig.carry_out(effects);
    rig.wait(barnabas_base::DurationMs(2_000), |_, _| {});
    let [order] = &rig.orders[..] else { panic!("{:?}", rig.orders) };
    assert_eq!((order.producer_id.get(), order.producer_epoch.get(), order.commit), (7, i16::MAX, false));
    let outcomes: Vec<_> = order
        .partitions
        .iter()
        .map(|each| (each.clone(), barnabas_coordinator::MarkerOutcome::Written))
        .collect();
    let (ticket, id) = (order.ticket, order.transactional_id.clone());
    rig.answer_markers(ticket, &id, &outcomes);
    assert_eq!(listed(&mut rig), [("a".to_owned(), "CompleteAbort".to_owned())]);
    let stats = rig.shard.stats();
    assert_eq!((stats.ongoing, stats.prepared), (0, 0));
}
