//! Which writes a sync request covers.

use barnabas_base::Offset;
use barnabas_partition::Acks;

use super::Bench;
use crate::Effect;

#[test]
fn write_into_the_same_segment_extends_the_request() {
    let mut bench = Bench::leader();
    bench.append(1, None, Acks::All, 1);
    bench.write_back().unwrap();
    assert_eq!(bench.effects(), []);
    assert!(bench.replica.take_sync().is_some());
    bench.append(1, None, Acks::All, 2);
    bench.write_back().unwrap();
    assert_eq!(bench.effects(), [Effect::SyncCovers(Offset(2))]);
    assert!(bench.replica.take_sync().is_none(), "one request at a time");
    bench.replica.sync.is_in_flight = false;
    assert!(bench.replica.take_sync().is_some());
}

#[test]
fn new_file_ends_what_the_request_covers() {
    let mut bench = Bench::leader();
    bench.append(8, None, Acks::All, 1);
    bench.write_back().unwrap();
    assert!(bench.replica.take_sync().is_some());
    // The second batch does not fit into the segment of 1000 bytes.
    bench.append(12, None, Acks::All, 2);
    bench.write_back().unwrap();
    assert_eq!(bench.effects(), [Effect::SyncEnds]);
    bench.append(1, None, Acks::All, 3);
    bench.write_back().unwrap();
    assert_eq!(bench.effects(), [], "what ended does not go on");
}

#[test]
fn producer_snapshot_is_not_covered() {
    let mut bench = Bench::leader();
    bench.append(1, Some(0), Acks::All, 1);
    bench.write_back().unwrap();
    assert!(bench.replica.take_sync().is_some());
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.snapshot_producers(files, &mut outbox.effects).unwrap();
    assert_eq!(bench.effects(), [Effect::SyncEnds]);
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.snapshot_producers(files, &mut outbox.effects).unwrap();
    assert_eq!(bench.effects(), [], "it stands there already");
}
