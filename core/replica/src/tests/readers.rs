//! How much is announced to waiting fetches, and what readers were promised.

use barnabas_base::Offset;
use barnabas_partition::Acks;

use super::Bench;
use crate::{Committed, Effect};

fn readable(effects: &[Effect]) -> Vec<(i64, Committed)> {
    let readable = effects.iter().filter_map(|effect| match effect {
        Effect::Readable { bytes, committed } => Some((*bytes, *committed)),
        _ => None,
    });
    readable.collect()
}

#[test]
fn durable_records_are_announced_by_their_share_of_the_bytes() {
    let mut bench = Bench::leader();
    bench.append(1, None, Acks::All, 1);
    bench.append(1, None, Acks::All, 2);
    let all = bench.replica.readers.unannounced_bytes;
    assert_eq!(readable(&bench.effects()), []);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.synced(Offset(1), &mut outbox.decisions);
    let first = readable(&bench.effects());
    assert_eq!(first[0], (all / 2, Committed::Bytes(all / 2)));
    bench.durable();
    let rest = readable(&bench.effects());
    assert_eq!(rest[0], (all - all / 2, Committed::Bytes(all - all / 2)));
}

#[test]
fn reader_is_owed_what_producers_count_as_written() {
    let mut bench = Bench::leader();
    assert_eq!(bench.replica.owed_to_readers(), None);
    bench.append(2, None, Acks::All, 1);
    assert_eq!(bench.replica.owed_to_readers(), None);
    bench.append(2, None, Acks::None, 2);
    assert_eq!(bench.replica.owed_to_readers(), Some(Offset(4)));
    assert!(!bench.replica.has_kept(Offset(4)));
    bench.durable();
    assert_eq!(bench.replica.owed_to_readers(), None);
    assert!(bench.replica.has_kept(Offset(4)));
}

#[test]
fn failed_replica_owes_nothing_and_answers_its_producers() {
    let mut bench = Bench::leader();
    bench.append(2, None, Acks::All, 1);
    bench.append(2, None, Acks::None, 2);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.fail(&mut outbox.decisions);
    let answered = bench.effects().iter().filter(|effect| matches!(effect, Effect::Answer { .. })).count();
    assert_eq!((answered, bench.replica.owed_to_readers()), (1, None));
    assert!(bench.replica.has_kept(Offset(4)));
}
