//! How far retention may go, and what a checkpoint vouches for.

use barnabas_base::{Offset, TimestampMs};
use barnabas_partition::Acks;

use super::Bench;
use super::bench::{NOW, batch};
use crate::{Effect, Moment};

/// A leader whose segments 0, 10 and 20 are durable and synced; of a producer, where `sequence` says so.
fn leader(with_producer: bool) -> Bench {
    let mut bench = Bench::leader();
    for number in 0..3 {
        let sequence = with_producer.then_some(number * 10);
        bench.place_of(batch(0, 10, sequence), Acks::Leader, 1).unwrap();
        bench.finish_round();
        bench.step(|replica, around| replica.write_back_all(around)).unwrap();
    }
    bench.sync();
    bench.step(|replica, around| replica.journal_durable(Offset(30), around.outbox));
    bench.effects();
    bench
}

fn retain(bench: &mut Bench) -> bool {
    bench.step(|replica, around| replica.retain(false, around)).unwrap().is_some()
}

#[test]
fn old_segments_go_and_the_start_moves() {
    let mut bench = leader(false);
    assert!(!retain(&mut bench), "nothing is old");
    let later = TimestampMs(NOW.0 + bench.replica.log.config().retention_ms.0 + 1_000_000);
    bench.now = Moment { wall: later, ..bench.now };
    assert!(retain(&mut bench));
    bench.effects();
    assert_eq!(bench.replica.partition.log_start(), bench.replica.log.start());
    assert!(bench.replica.log.start() > Offset(0) && bench.replica.upkeep.is_changed);
}

#[test]
fn segments_wait_until_the_state_of_producers_is_safe() {
    let mut bench = leader(true);
    bench.now.wall = TimestampMs(NOW.0 + bench.replica.log.config().retention_ms.0 + 1_000_000);
    retain(&mut bench);
    assert_eq!(bench.replica.log.start(), Offset(0), "a start would need them");
    assert!(bench.replica.upkeep.retention_waits && bench.effects().contains(&Effect::Sync));
    // The snapshot is safe once it is synced and the checkpoint has passed it, twice.
    for _ in 0..3 {
        if bench.replica.log.start() > Offset(0) {
            break;
        }
        if let Some((dirty, _)) = bench.replica.take_sync() {
            dirty.sync(&**bench.files.disk(), None).unwrap();
            bench.step(|replica, around| replica.synced(dirty.ticket, dirty.ticket.end(), around));
        }
        let Bench { replica, files, .. } = &mut bench;
        replica.checkpoint(files).unwrap();
        retain(&mut bench);
        bench.effects();
    }
    assert!(bench.replica.log.start() > Offset(0));
    assert!(!bench.replica.upkeep.retention_waits);
}

#[test]
fn checkpoint_is_not_ahead_of_what_is_synced() {
    let mut bench = Bench::leader();
    bench.place(3, Acks::Leader, 1).unwrap();
    bench.finish_round();
    bench.step(|replica, around| replica.write_back_all(around)).unwrap();
    bench.step(|replica, around| replica.journal_durable(Offset(3), around.outbox));
    let Bench { replica, files, .. } = &mut bench;
    let mut epochs_left = 0;
    assert_eq!(replica.checkpoint_ahead(files, &mut epochs_left).unwrap(), None, "no turn for its epochs");
    let mut epochs_left = 5;
    assert_eq!(
        replica.checkpoint_ahead(files, &mut epochs_left).unwrap(),
        None,
        "they are to be synced first"
    );
    assert_eq!(epochs_left, 4);
    bench.sync();
    let Bench { replica, files, .. } = &mut bench;
    let checkpoint = replica.checkpoint_ahead(files, &mut epochs_left).unwrap().unwrap();
    assert_eq!((checkpoint.recovery_point, checkpoint.high_watermark), (Offset(3), Offset(3)));
    assert_eq!((checkpoint.log_start, epochs_left), (None, 4));
}
