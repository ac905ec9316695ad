//! The bytes of every kind of record that a consumer group writes, as they stand in `tests/golden/consumer_records.txt`
//! (key, value, both in hex; `-` for a tombstone). Apache's `GroupCoordinatorRecordSerde` of Kafka 4.4.0 reads each of
//! them and writes the same bytes again; read in order, `GroupMetadataManager` has nothing to say against them.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod page;
mod rig;
#[allow(dead_code)]
mod speech;

use rig::Rig;

const TALK: [&str; 24] = [
    "topic name=t partitions=4",
    "topic name=logs-a id=2 partitions=2",
    "hb member=a names=t instance=i rack=r assignor=range",
    "hb member=b regex=logs-.*|x",
    "hb member=b epoch=2",
    "hb member=a epoch=2 instance=i",
    "hb member=a epoch=2 owned=1:0+1+2+3 instance=i",
    "hb member=c names=t",
    "hb member=a epoch=4 owned=1:0+1 instance=i",
    "hb member=a epoch=-2 instance=i",
    "hb member=a2 names=t instance=i",
    "hb member=b epoch=-1",
    "hb member=c epoch=-1",
    "join group=u client=k v=3 protocols=range:v3=t,sticky:x",
    "wait ms=10",
    "sync group=u member=k~14 assign=k~14:v3=t.0.1.2.3",
    "hb group=u member=n names=t",
    "heartbeat group=u member=k~14",
    "join group=u client=k member=k~14 protocols=range:v3=t/t.0.1.2.3,sticky:x",
    "hb group=u member=n epoch=-1",
    "hb group=e member=n names=t",
    "hb group=e member=n epoch=-1",
    "delete-groups groups=e",
    "stats",
];

#[test]
fn records_are_kafkas_to_the_byte() {
    let mut config = barnabas_coordinator::GroupConfig::default();
    config.consumer.times.standard.assignment_interval = barnabas_base::DurationMs(0);
    config.initial_rebalance_delay = barnabas_base::DurationMs(0);
    let mut rig = Rig::new(config);
    for command in TALK {
        speech::tell(&mut rig, &speech::Words::of(command));
    }
    page::check("consumer_records.txt", rig.log.iter().filter_map(rig::Logged::record));
}
