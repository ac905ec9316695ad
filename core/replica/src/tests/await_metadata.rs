//! Which requests are held for metadata, and for how long.

use barnabas_base::{DurationMs, LeaderEpoch, MonotonicMs};
use barnabas_partition::Acks;

use super::Bench;
use super::bench::append_of;
use crate::{APPEND_TIMEOUT, AwaitMetadata};

const NOW: MonotonicMs = MonotonicMs(1_000);
const FORWARDS_FOR: DurationMs = DurationMs(500);

/// A follower, of which this process may have been the leader.
fn follower(has_led: bool, ceased_at: Option<u64>) -> Bench {
    let mut bench = Bench::leader();
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    bench.replica.history.has_led = has_led;
    bench.replica.history.ceased_at = ceased_at.map(MonotonicMs);
    bench
}

#[test]
fn batch_waits_where_the_broker_may_be_the_next_leader() {
    // Has it led, when it ceased, does the metadata log hold more; whether the batch waits.
    let table = [
        (false, None, false, true),
        (true, Some(100), false, false),
        (true, Some(100), true, true),
        // The producer's metadata is old: the batch is forwarded, or refused.
        (true, Some(900), true, false),
        (true, Some(500), true, true),
    ];
    for (has_led, ceased_at, knows_more, waits) in table {
        let bench = follower(has_led, ceased_at);
        let found =
            bench.replica.append_awaits_metadata(&append_of(Acks::All, 1), NOW, FORWARDS_FOR, || knows_more);
        assert_eq!(found, waits, "has_led={has_led} ceased_at={ceased_at:?} knows_more={knows_more}");
    }
    assert!(!Bench::leader().replica.append_awaits_metadata(
        &append_of(Acks::All, 1),
        NOW,
        FORWARDS_FOR,
        || true
    ));
}

#[test]
fn failed_replica_holds_nothing() {
    let mut bench = follower(false, None);
    bench.replica.partition.fail(&mut bench.outbox.decisions);
    assert!(!bench.replica.append_awaits_metadata(&append_of(Acks::All, 1), NOW, FORWARDS_FOR, || true));
    assert_eq!(bench.replica.serving_epoch(), None);
}

#[test]
fn requests_go_on_in_order_by_epoch_or_timeout() {
    let bench = follower(false, None);
    let mut waiting = AwaitMetadata::new(APPEND_TIMEOUT);
    waiting.hold(&bench.replica, NOW, "first");
    waiting.hold(&bench.replica, NOW.plus(DurationMs(50)), "second");
    assert_eq!(waiting.due(), Some(MonotonicMs(1_100)));
    let same = |_| Some(LeaderEpoch(2));
    assert!(waiting.take_due(MonotonicMs(1_099), same).is_empty());
    assert_eq!(waiting.take_due(MonotonicMs(1_100), same), ["first"]);
    waiting.hold(&bench.replica, NOW, "third");
    assert_eq!(waiting.take_due(MonotonicMs(1_001), |_| Some(LeaderEpoch(3))), ["second", "third"]);
    waiting.hold(&bench.replica, NOW, "fourth");
    assert_eq!(waiting.take_due(NOW, |_| None), ["fourth"]);
    assert!(waiting.is_empty() && waiting.due().is_none());
}
