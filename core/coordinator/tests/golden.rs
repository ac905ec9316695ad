//! The bytes of every kind of record that this crate writes, as they stand in `tests/golden/records.txt` (key, value,
//! both in hex; `-` for a tombstone). Apache's `GroupCoordinatorRecordSerde` of Kafka 4.4.0 reads each of them and
//! writes the same bytes again.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod page;
mod rig;
#[allow(dead_code)]
mod speech;

use rig::Rig;

const TALK: [&str; 10] = [
    "join client=a v=3 protocols=range:topics=t,sticky:x instance=i1",
    "join client=b v=3 protocols=range:topics=t+u",
    "wait ms=7000",
    "sync member=b~2 assign=b~2:zz,i1~1:yy",
    "sync member=i1~1 instance=i1 assign=b~2:zz,i1~1:yy",
    "commit offsets=t-0:1",
    "commit group=s offsets=t-0:77,u-9:8 metadata=note epoch=3 id=5 v=10",
    "commit group=s v=3 offsets=t-1:77 retention=1000",
    "delete-offsets group=s partitions=u-9",
    "delete-groups groups=s",
];

#[test]
fn records_are_kafkas_to_the_byte() {
    let mut rig = Rig::new(Default::default());
    for command in TALK {
        speech::tell(&mut rig, &speech::Words::of(command));
    }
    page::check("records.txt", rig.log.iter().filter_map(rig::Logged::record));
}
