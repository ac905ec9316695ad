//! The bytes of every kind of record that a streams group writes, as they stand in `tests/golden/streams_records.txt`
//! (key, value, both in hex; `-` for a tombstone). Apache's `GroupCoordinatorRecordSerde` of Kafka 4.4.0 reads each of
//! them and writes the same bytes again: `lab/compat/golden/records/run coordinators`.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod page;
mod rig;
#[allow(dead_code)]
mod speech;

use std::collections::BTreeSet;

use bytes::Bytes;
use rig::Rig;

/// Every type, each with a tombstone; every field that is not always empty has something in it at least once.
const TALK: [&str; 22] = [
    "topic name=t partitions=4",
    "topic name=u id=4 partitions=4",
    "shb member=a instance=i process=p endpoint=h1 tag=zone subs=0:t,>g-r;1:%g-r,#g-c",
    "topic name=g-r id=2 partitions=4",
    "shb member=a instance=i epoch=2",
    "topic name=g-c id=3 partitions=4",
    "shb member=a instance=i epoch=3",
    "shb member=b process=q endpoint=h2 subs=0:t,>g-r;1:%g-r,#g-c",
    "shb member=a instance=i epoch=4",
    "shb member=a instance=i epoch=4 active=0:0+1,1:0+1 standby=-",
    "shb member=b epoch=5",
    "shb member=b epoch=5 active=0:2+3,1:2+3 standby=1:0+1",
    "shb member=a instance=i epoch=-2",
    "shb member=c instance=i process=p subs=0:t,>g-r;1:%g-r,#g-c",
    "shb member=c instance=i epoch=-1",
    "shb member=b epoch=5",
    "shb member=b epoch=-1",
    "delete-groups groups=g",
    "shb group=k member=n subs=0:t,u,>k-r,&0.1;1:%k-r=4,#k-c,&/0",
    "shb group=k member=n epoch=-1",
    "join group=k client=x",
    "stats",
];

#[test]
fn records_are_kafkas_to_the_byte() {
    let mut config = barnabas_coordinator::GroupConfig::default();
    config.streams.settings.standard.standby_replicas = 1;
    config.streams.settings.standard.initial_rebalance_delay = barnabas_base::DurationMs(0);
    config.streams.settings.standard.times.assignment_interval = barnabas_base::DurationMs(0);
    let mut rig = Rig::new(config);
    for command in TALK {
        speech::tell(&mut rig, &speech::Words::of(command));
    }
    let records = || rig.log.iter().filter_map(rig::Logged::record);
    let type_of = |key: &Bytes| key.first_chunk::<2>().map_or(-1, |bytes| i16::from_be_bytes(*bytes));
    let of = |is_tombstone: bool| -> BTreeSet<i16> {
        let some = records().filter(|record| record.value.is_none() == is_tombstone);
        some.map(|record| type_of(&record.key)).filter(|number| *number >= 17).collect()
    };
    let every = BTreeSet::from([17, 19, 20, 21, 22, 23]);
    assert_eq!((of(false), of(true)), (every.clone(), every));
    page::check("streams_records.txt", records());
}
