//! The directory that every cell begins with: two log directories, sealed and active segments, deleted records, aborted
//! transactions, what compaction has left, committed offsets, metadata snapshots. Kept after a clean stop and after
//! kill −9, with an older copy of both.

use super::copy_tree;
use super::harm::is_root;
use super::view::{GROUP, View};
use crate::broker::{Broker, Setup};
use crate::kafka::{Connection, Place};
use crate::records::{Identity, Stamp, batch};
use crate::{Trouble, trouble};
use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::{DeleteRecordsRequest, MetadataRequest, OffsetCommitRequest};
use barnabas_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker, control_batch, number_in_place};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A user id without rights, where the rig runs as root: the node must not.
pub const NODE_USER: u32 = 65534;
const SEGMENT: &[(&str, &str)] = &[("internal.segment.bytes", "20000"), ("index.interval.bytes", "1000")];
/// Topics whose segments are planted: no producer writes there.
const PLANTED: [&str; 2] = ["txn", "compact"];
const COMPACT: &[(&str, &str)] = &[
    ("internal.segment.bytes", "20000"),
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
];
/// The node writes its checkpoints each second.
const CHECKPOINTS: Duration = Duration::from_millis(1400);
const STAMP_MS: TimestampMs = TimestampMs(1_700_000_000_000);

/// What cells begin with.
#[derive(Debug)]
pub struct Prepared {
    pub clean: PathBuf,
    pub unclean: PathBuf,
    pub stale: PathBuf,
    pub work: PathBuf,
    pub places: Vec<Place>,
    pub view: View,
    pub identity: Identity,
    pub next: HashMap<Place, u64>,
}

/// The node that works in `work`.
pub fn node(place: &Path, binary: PathBuf, overrides: Vec<(String, String)>) -> Result<Broker, Trouble> {
    let work = place.join("work");
    let log_dirs = vec![work.join("a"), work.join("b")];
    log_dirs.iter().try_for_each(std::fs::create_dir_all)?;
    let own = [
        ("metadata.log.max.record.bytes.between.snapshots", "3000"),
        ("log.retention.check.interval.ms", "60000"),
        ("log.cleaner.backoff.ms", "100"),
    ];
    let mut all: Vec<_> = own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    all.extend(overrides);
    let user = is_root()?.then_some(NODE_USER);
    Broker::new(Setup { binary, place: place.join("node"), log_dirs, overrides: all, user })
}

/// Everything is the node's.
pub fn hand_over(work: &Path) -> Result<(), Trouble> {
    if !is_root()? {
        return Ok(());
    }
    let owner = format!("{NODE_USER}:{NODE_USER}");
    let done = Command::new("chown").args(["-R", &owner]).arg(work).output()?;
    if done.status.success() { Ok(()) } else { trouble(String::from_utf8_lossy(&done.stderr)) }
}

pub fn prepare(broker: &mut Broker, place: &Path) -> Result<Prepared, Trouble> {
    let at = |name: &str| place.join(name);
    let work = at("work");
    broker.format()?;
    hand_over(&work)?;
    broker.start()?;
    let mut load = Load::begin(broker.port)?;
    load.produce(70)?;
    load.commit(10)?;
    let (txn, compact) = (load.topic_id("txn")?, load.topic_id("compact")?);
    // The node makes the transactions' indexes itself, from batches that lie there when it starts.
    broker.stop()?;
    plant_transactions(&work, &txn)?;
    // As they were placed; both directories are to have one.
    plant_to_compact(&work.join("a/compact-0"), &compact)?;
    plant_to_compact(&work.join("b/compact-1"), &compact)?;
    std::fs::remove_file(work.join("a/.kafka_cleanshutdown"))?;
    std::fs::remove_file(work.join("b/.kafka_cleanshutdown"))?;
    hand_over(&work)?;
    broker.start()?;
    load.connection = Connection::open(broker.port)?;
    View::take(broker.port, &load.places)?;
    wait_for_cleaner(&work)?;
    load.delete_records("plain", 1, 15)?;
    load.delete_records("other", 0, 12)?;
    load.delete_records("other", 1, 9)?;
    load.produce(5)?;
    std::thread::sleep(CHECKPOINTS);
    copy_tree(&work, &at("stale"))?;
    load.produce(30)?;
    load.commit(20)?;
    for number in 0..12 {
        load.connection.create_topic(&format!("idle-{number}"), 3, &[])?;
    }
    wait_for_checkpoint(&work, load.next.values().copied().min().unwrap_or(0))?;
    load.produce(3)?;
    let view = View::take(broker.port, &load.places)?;
    broker.process.kill()?;
    copy_tree(&work, &at("unclean"))?;
    broker.start()?;
    if View::take(broker.port, &load.places)? != view {
        return trouble("kill −9 alone changes what clients see");
    }
    std::thread::sleep(CHECKPOINTS);
    broker.stop()?;
    copy_tree(&work, &at("clean"))?;
    Ok(Prepared {
        clean: at("clean"),
        unclean: at("unclean"),
        stale: at("stale"),
        work,
        places: load.places,
        view,
        identity: load.identity,
        next: load.next,
    })
}

/// Until both directories' checkpoints vouch for what was acknowledged, metadata included. Where there is a journal, it
/// does.
fn wait_for_checkpoint(work: &Path, least: u64) -> Result<(), Trouble> {
    let read = || -> Result<Vec<(String, u64)>, Trouble> {
        let mut found = Vec::new();
        for dir in ["a", "b"] {
            let text = std::fs::read_to_string(work.join(dir).join("recovery-point-offset-checkpoint"))?;
            found.extend(text.lines().filter_map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                Some(((*words.first()?).to_owned(), words.get(2)?.parse().ok()?))
            }));
        }
        Ok(found)
    };
    // A busy machine's node leaves up to a minute between two of them.
    for _ in 0..600 {
        std::thread::sleep(CHECKPOINTS / 10);
        if work.join("a/barnabas-journal-00").exists() {
            std::thread::sleep(CHECKPOINTS);
            return Ok(());
        }
        let found = read()?;
        let ours =
            |(topic, point): &&(String, u64)| (topic == "plain" || topic == "other") && *point >= least;
        if found.iter().filter(ours).count() == 4 {
            // What is acknowledged last, to be sure of the rest.
            std::thread::sleep(CHECKPOINTS);
            return Ok(());
        }
    }
    trouble("the checkpoints do not move")
}

/// Until compaction has done in both directories what it can.
fn wait_for_cleaner(work: &Path) -> Result<(), Trouble> {
    for _ in 0..200 {
        let done = |dir: &str| {
            let text = std::fs::read_to_string(work.join(dir).join("cleaner-offset-checkpoint"));
            text.is_ok_and(|text| text.contains("compact "))
        };
        if done("a") && done("b") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    trouble("nothing was compacted")
}

struct Load {
    connection: Connection,
    identity: Identity,
    places: Vec<Place>,
    next: HashMap<Place, u64>,
}

impl Load {
    fn begin(port: u16) -> Result<Self, Trouble> {
        let mut connection = Connection::open(port)?;
        connection.find_coordinator(GROUP)?;
        let mut places = Vec::new();
        for (topic, partitions, configs) in
            [("plain", 2, SEGMENT), ("other", 2, SEGMENT), ("txn", 1, SEGMENT), ("compact", 2, COMPACT)]
        {
            connection.create_topic(topic, partitions, configs)?;
            places.extend((0..partitions).map(|partition| Place { topic: topic.to_owned(), partition }));
        }
        let identity = connection.identity()?;
        Ok(Self { connection, identity, places, next: HashMap::new() })
    }

    fn topic_id(&mut self, name: &str) -> Result<String, Trouble> {
        let answer = self.connection.call(&MetadataRequest { topics: None, ..Default::default() }, 12)?;
        let found = answer.topics.iter().find(|topic| topic.name.as_deref() == Some(name));
        found.map(|topic| topic.topic_id.to_string()).ok_or_else(|| Trouble(format!("{name} is not there")))
    }

    fn produce(&mut self, batches: usize) -> Result<(), Trouble> {
        for place in self.places.iter().filter(|place| !is_planted(place)) {
            for _ in 0..batches {
                produce_next(&mut self.connection, self.identity, &mut self.next, place)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, offset: i64) -> Result<(), Trouble> {
        let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = OffsetCommitRequestTopic {
            name: "plain".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = OffsetCommitRequest {
            group_id: GROUP.into(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        crate::kafka::patiently("committing", || {
            let answer = self.connection.call(&request, 8)?;
            Ok((answer.topics[0].partitions[0].error_code, ()))
        })
    }

    fn delete_records(&mut self, topic: &str, partition: i32, offset: i64) -> Result<(), Trouble> {
        let partition = DeleteRecordsPartition { partition_index: partition, offset, ..Default::default() };
        let topic =
            DeleteRecordsTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let answer = self.connection.call(&request, 2)?;
        match answer.topics[0].partitions[0].error_code {
            0 => Ok(()),
            code => trouble(format!("deleting records: {code}")),
        }
    }
}

pub fn is_planted(place: &Place) -> bool {
    PLANTED.contains(&&*place.topic)
}

/// The next batch of an idempotent producer.
pub fn produce_next(
    connection: &mut Connection,
    identity: Identity,
    next: &mut HashMap<Place, u64>,
    place: &Place,
) -> Result<i64, Trouble> {
    let number = next.entry(place.clone()).or_insert(0);
    let writer = place.partition as u32 + if place.topic == "plain" { 10 } else { 20 };
    let records = batch(Some(identity), Stamp { writer, number: *number }, 5, 180, STAMP_MS)?;
    match connection.produce(place, -1, records)? {
        Ok(base) => {
            *number += 5;
            Ok(base)
        }
        Err(code) => trouble(format!("{place}: producing: {code}")),
    }
}

/// Two segments with transactions that were aborted, and a third that is written to, as Kafka would have left them.
fn plant_transactions(work: &Path, topic_id: &str) -> Result<(), Trouble> {
    let dir = work.join("a/txn-0");
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join("partition.metadata"), format!("version: 0\ntopic_id: {topic_id}"))?;
    let mut offset = 0;
    for segment in 0..3u32 {
        let mut bytes = Vec::new();
        let base = offset;
        for producer in 0..4i64 {
            let options = BatchOptions {
                producer_id: ProducerId(5000 + producer),
                producer_epoch: ProducerEpoch(0),
                base_sequence: Sequence((segment * 3) as i32),
                transactional: true,
                ..BatchOptions::default()
            };
            let mut builder = BatchBuilder::new(options);
            for _ in 0..3 {
                builder.push(STAMP_MS, None, Some(&[segment as u8; 100]), &[]);
            }
            let data = builder.build().map_err(|error| Trouble(error.to_string()))?;
            let marker = EndTxnMarker { commit: producer % 2 == 1, coordinator_epoch: 0.into() };
            let options = BatchOptions { base_sequence: Sequence(-1), ..options };
            let marker = control_batch(options, STAMP_MS, marker.control_type(), &marker.value());
            let marker = marker.map_err(|error| Trouble(error.to_string()))?;
            for (records, count) in [(data, 3), (marker, 1)] {
                let mut records = records.to_vec();
                number_in_place(&mut records, Offset(offset), LeaderEpoch(0), None)
                    .map_err(|error| Trouble(error.to_string()))?;
                bytes.extend_from_slice(&records);
                offset += count;
            }
        }
        std::fs::write(dir.join(format!("{base:020}.log")), bytes)?;
    }
    Ok(())
}

/// Four segments of the same keys, and one that is written to.
fn plant_to_compact(dir: &Path, topic_id: &str) -> Result<(), Trouble> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("partition.metadata"), format!("version: 0\ntopic_id: {topic_id}"))?;
    for base in (0..100).step_by(20) {
        let mut bytes = Vec::new();
        for batch in 0..2 {
            let mut builder = BatchBuilder::new(BatchOptions::default());
            for key in 0..10 {
                let value = [(base + batch) as u8; 100];
                builder.push(STAMP_MS, Some(format!("key-{batch}-{key}").as_bytes()), Some(&value), &[]);
            }
            let mut records = builder.build().map_err(|error| Trouble(error.to_string()))?.to_vec();
            number_in_place(&mut records, Offset(base + batch * 10), LeaderEpoch(0), None)
                .map_err(|error| Trouble(error.to_string()))?;
            bytes.extend_from_slice(&records);
        }
        std::fs::write(dir.join(format!("{base:020}.log")), bytes)?;
    }
    Ok(())
}
