//! Producers are known again after a start and after a truncation.

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::Acks;

use super::Bench;
use super::bench::NOW;

fn sequences(bench: &Bench) -> Vec<(i64, i32)> {
    let producers = bench.replica.partition.producers();
    let last = |batch: barnabas_partition::LastBatch| batch.last_sequence.0;
    producers.iter().map(|producer| (producer.producer_id.0, producer.last_batch.map_or(-1, last))).collect()
}

#[test]
fn reopened_replica_knows_its_producers_with_and_without_a_snapshot() {
    for with_snapshot in [false, true] {
        let mut bench = Bench::leader();
        bench.append(3, Some(0), Acks::All, 1);
        bench.append(2, Some(3), Acks::All, 2);
        bench.write_back().unwrap();
        if with_snapshot {
            let Bench { replica, files, outbox, .. } = &mut bench;
            replica.snapshot_producers(files, &mut outbox.effects).unwrap();
            assert_eq!(replica.upkeep.snapshot_at, Offset(5));
        }
        let bench = bench.reopen();
        assert_eq!(sequences(&bench), [(7, 4)]);
        assert_eq!((bench.replica.partition.log_end(), bench.replica.log.end()), (Offset(5), Offset(5)));
    }
}

#[test]
fn truncated_replica_forgets_what_went_and_follows_on() {
    let mut bench = Bench::leader();
    bench.append(3, Some(0), Acks::Leader, 1);
    bench.append(2, Some(3), Acks::Leader, 2);
    bench.write_back().unwrap();
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.partition.become_follower(LeaderEpoch(2), &mut outbox.decisions);
    replica.log.truncate_to(files, Offset(3), NOW).unwrap();
    replica.reload(files).unwrap();
    assert!(!replica.partition.is_leader());
    assert_eq!(replica.partition.leader_epoch(), LeaderEpoch(2));
    assert_eq!(replica.partition.log_end(), Offset(3));
    assert_eq!(replica.readers.promised_end, Offset(3));
    assert_eq!(sequences(&bench), [(7, 2)]);
}
