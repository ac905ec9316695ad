//! A log directory that Apache Kafka 4.3.1 left behind is opened, read and kept up as it is.
//!
//! `kafka-4.3.1/` was written by a broker of Apache's own: topic `golden`, one partition, `segment.ms=60000`,
//! `index.interval.bytes=200`; 45 records in all five codecs, four transactions (the second and the last aborted), 5
//! more records; records below 4 deleted; clean stop.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{DurationMs, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicPartition};
use barnabas_disk::LinuxDisk;
use barnabas_storage::{Disk, FilePool, Log, LogConfig, LogDir, LogPlace, Opened};
use barnabas_wire::records::batches;

struct Copied(PathBuf);

impl Copied {
    fn new(name: &str) -> Self {
        let to = std::env::temp_dir().join(format!("barnabas-golden-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&to);
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka-4.3.1");
        copy(&from, &to);
        Self(to)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join("golden-0").join(name)).unwrap()
    }

    fn index_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("golden-0")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| name.ends_with(".index") || name.ends_with(".timeindex")).collect();
        names.sort();
        names
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn golden() -> TopicPartition {
    TopicPartition::new("golden", PartitionIndex(0))
}

fn open(root: &Path) -> (LogDir, FilePool, Log, Opened) {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk);
    let mut dir = LogDir::open(disk.clone(), root).unwrap();
    assert!(dir.damaged().is_empty(), "{:?}", dir.damaged());
    let found = dir.partitions().unwrap();
    assert_eq!(found.len(), 1);
    let topic_id = dir.topic_id(&found[0]).unwrap().unwrap();
    assert_eq!(topic_id.to_string(), "l07JCeLTQti_aQBGf8CtLA");
    let from = dir.open_from(&found[0].topic_partition);
    dir.begin().unwrap();
    let mut files = FilePool::new(disk, 16);
    let config = LogConfig {
        index_interval_bytes: 200,
        segment_ms: DurationMs(60_000),
        retention_ms: DurationMs(-1),
        ..LogConfig::default()
    };
    let place = LogPlace { root: dir.path().clone(), topic_partition: golden(), topic_id, future: None };
    let now = TimestampMs(1_800_000_000_000);
    let (log, opened) = Log::open(&mut files, place, Arc::new(config), from, now).unwrap();
    (dir, files, log, opened)
}

/// Everything that is in the directory, read through ours.
fn check(files: &mut FilePool, log: &mut Log) {
    let (at, producers) = log.read_producer_snapshot(files, log.end()).unwrap().unwrap();
    assert_eq!((at, producers.len()), (Offset(62), 17));
    let last = producers.iter().max_by_key(|entry| entry.producer_id).unwrap();
    assert_eq!((last.last_sequence.get(), last.last_offset), (4, Offset(61)));
    check_records(files, log);
}

fn check_records(files: &mut FilePool, log: &mut Log) {
    assert_eq!((log.start(), log.end(), log.segment_count()), (Offset(4), Offset(62), 5));
    assert_eq!(log.epochs().epoch_at(Offset(61)), Some(LeaderEpoch(0)));
    let (mut next, mut values) = (log.start(), Vec::new());
    while next < log.end() {
        let read = log.read(files, next, 150, log.end(), true).unwrap();
        next = read.next_offset;
        for batch in batches(read.records) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            if batch.header().attributes.is_control() {
                continue;
            }
            for record in &batch.records().unwrap() {
                let record = record.unwrap();
                values.push((record.offset, String::from_utf8(record.value.unwrap().to_vec()).unwrap()));
            }
        }
    }
    // The batch that holds offset 4 begins at 3.
    assert_eq!(values[0], (Offset(3), "value 3".to_owned()));
    assert_eq!(values.len(), 42 + 8 + 5);
    assert_eq!(values.last(), Some(&(Offset(61), "last 57".to_owned())));

    let found = log.batch_for_timestamp(files, TimestampMs(1_700_000_140_000), Offset(0)).unwrap().unwrap();
    let found = found.look(usize::MAX).unwrap().unwrap();
    assert_eq!((found.offset, found.timestamp.0), (Offset(20), 1_700_000_140_000));
    let newest = log.batch_of_max_timestamp(files).unwrap().unwrap();
    let newest = newest.look(usize::MAX).unwrap().unwrap();
    assert_eq!((newest.offset, newest.timestamp.0), (Offset(56), 1_795_231_496_040));

    let aborted = log.aborted_transactions(files, Offset(0), Offset(62)).unwrap();
    let ends: Vec<_> =
        aborted.iter().map(|aborted| (aborted.first_offset.get(), aborted.last_offset.get())).collect();
    assert_eq!(ends, [(48, 50), (54, 56)]);
}

#[test]
fn a_clean_directory_of_kafkas_is_read_as_it_is() {
    let copied = Copied::new("clean");
    let (mut dir, mut files, mut log, opened) = open(&copied.0);
    assert!(dir.was_clean());
    assert_eq!(dir.kept_life().map(|life| life.epoch.get()), Some(12));
    assert_eq!(dir.meta().unwrap().cluster_id.as_deref(), Some("AAAAAAAAAAAAAAAAAAAAZw"));
    assert_eq!(dir.high_watermark(&golden()), Some(Offset(62)));
    assert_eq!(opened, Opened::default());
    check(&mut files, &mut log);
    // And left as it was found.
    let before: Vec<_> = copied.index_names().iter().map(|name| copied.bytes(name)).collect();
    log.close(&mut files).unwrap();
    dir.set_recovery_point(golden(), log.end());
    dir.mark_clean(barnabas_base::BrokerEpoch(12)).unwrap();
    let after: Vec<_> = copied.index_names().iter().map(|name| copied.bytes(name)).collect();
    assert_eq!(before, after);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka-4.3.1");
    for name in [".kafka_cleanshutdown", "log-start-offset-checkpoint", "golden-0/partition.metadata"] {
        assert_eq!(std::fs::read(copied.0.join(name)).unwrap(), std::fs::read(fixture.join(name)).unwrap());
    }
}

#[test]
fn indexes_that_are_rebuilt_are_kafkas_byte_for_byte() {
    let copied = Copied::new("rebuilt");
    let names = copied.index_names();
    let before: Vec<_> = names.iter().map(|name| copied.bytes(name)).collect();
    for name in &names {
        std::fs::remove_file(copied.0.join("golden-0").join(name)).unwrap();
    }
    let (_dir, mut files, mut log, opened) = open(&copied.0);
    assert_eq!(opened.rebuilt.len(), 5);
    check(&mut files, &mut log);
    log.close(&mut files).unwrap();
    let after: Vec<_> = names.iter().map(|name| copied.bytes(name)).collect();
    assert_eq!(before, after);
}

/// As `kill -9` leaves it: indexes of the active segment at full size and padded with zeros, checkpoints behind.
#[test]
fn an_unclean_directory_of_kafkas_is_recovered() {
    let copied = Copied::new("unclean");
    std::fs::remove_file(copied.0.join(".kafka_cleanshutdown")).unwrap();
    std::fs::write(copied.0.join("recovery-point-offset-checkpoint"), "0\n1\ngolden 0 17\n").unwrap();
    let names = copied.index_names();
    let before: Vec<_> = names.iter().map(|name| copied.bytes(name)).collect();
    for name in ["00000000000000000047.index", "00000000000000000047.timeindex"] {
        let file = std::fs::File::options().write(true).open(copied.0.join("golden-0").join(name)).unwrap();
        file.set_len(10 << 20).unwrap();
    }
    let aborted = copied.bytes("00000000000000000047.txnindex");
    std::fs::remove_file(copied.0.join("golden-0/00000000000000000047.txnindex")).unwrap();
    let log_file = copied.0.join("golden-0/00000000000000000047.log");
    let mut bytes = std::fs::read(&log_file).unwrap();
    bytes.extend_from_slice(&[0xff; 40]);
    std::fs::write(&log_file, bytes).unwrap();
    let (_dir, mut files, mut log, opened) = open(&copied.0);
    assert_eq!(opened.cut.map(|cut| (cut.position, cut.bytes)), Some((969, 40)));
    check_records(&mut files, &mut log);
    // Those past the recovery point are not believed, as in Kafka; what comes after is read from the batches.
    let (at, producers) = log.read_producer_snapshot(&mut files, log.end()).unwrap().unwrap();
    assert_eq!((at, producers.len()), (Offset(15), 5));
    assert_eq!(log.recovery_point(), Offset(17));
    log.close(&mut files).unwrap();
    let after: Vec<_> = names.iter().map(|name| copied.bytes(name)).collect();
    assert_eq!(before, after);
    assert_eq!(copied.bytes("00000000000000000047.txnindex"), aborted);
}

#[test]
fn damaged_transaction_index_is_rebuilt() {
    let copied = Copied::new("aborted");
    let path = copied.0.join("golden-0/00000000000000000047.txnindex");
    let aborted = std::fs::read(&path).unwrap();
    for at in [0, 1, 35] {
        let mut bytes = aborted.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&path, bytes).unwrap();
        let (_dir, mut files, mut log, _) = open(&copied.0);
        check(&mut files, &mut log);
        assert_eq!(std::fs::read(&path).unwrap(), aborted);
    }
}
