//! Apache's own `DumpLogSegments` reads what we write, and finds the indexes right.
//!
//! Uses the class path that the compat suite has resolved (`.cache/compat/maven/kafka`), or the file that
//! `BARNABAS_KAFKA_CLASSPATH` names. Without one, or without Java, it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use barnabas_base::{
    CoordinatorEpoch, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs,
    TopicPartition, Uuid,
};
use barnabas_disk::LinuxDisk;
use barnabas_storage::{AbortedTransaction, AppendBytes, FilePool, Log, LogConfig, LogPlace, ProducerEntry};
use barnabas_wire::records::{BatchBuilder, BatchOptions};

fn class_path() -> Option<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("BARNABAS_KAFKA_CLASSPATH").map(PathBuf::from);
    let cached = ["4.4.0", "4.3.1"]
        .map(|version| repository.join(format!(".cache/compat/maven/kafka/{version}.classpath")));
    let mut candidates = named.into_iter().chain(cached);
    candidates.find_map(|path| std::fs::read_to_string(path).ok())
}

fn write_log(root: &Path) -> Log {
    let place = LogPlace {
        root: Arc::from(root),
        topic_partition: TopicPartition::new("talk", PartitionIndex(0)),
        topic_id: Uuid([9; 16]),
        future: None,
    };
    let config = LogConfig { segment_bytes: 8000, index_interval_bytes: 300, ..LogConfig::default() };
    let mut files = FilePool::new(Arc::new(LinuxDisk), 8);
    let mut log = Log::create(place, Arc::new(config), Offset(0));
    let now = TimestampMs(1_800_000_000_000);
    for at in 0..200i64 {
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: log.end(),
            leader_epoch: LeaderEpoch((at / 80) as i32),
            ..BatchOptions::default()
        });
        for record in 0..3 {
            // Times that go back now and then.
            let time = TimestampMs(now.0 + at * 10 - at % 7 * 30 + record);
            builder.push(time, Some(b"key"), Some(&vec![b'v'; 20 + at as usize % 60]), &[]);
        }
        log.append(&mut files, &[AppendBytes::Whole(builder.build().unwrap())], now).unwrap();
    }
    let aborted = AbortedTransaction {
        producer_id: ProducerId(4),
        first_offset: log.end().plus(-3),
        last_offset: log.end().plus(-1),
        last_stable_offset: log.end(),
    };
    log.append_aborted(&mut files, aborted).unwrap();
    let producer = ProducerEntry {
        producer_id: ProducerId(4),
        epoch: ProducerEpoch(1),
        last_sequence: Sequence(77),
        last_offset: log.end().plus(-1),
        offset_delta: 2,
        timestamp: now,
        coordinator_epoch: CoordinatorEpoch(-1),
        current_txn_first_offset: Offset::NONE,
    };
    log.write_producer_snapshot(&mut files, log.end(), &[producer]).unwrap();
    log.close(&mut files).unwrap();
    log
}

#[test]
fn apaches_tool_reads_what_we_write() {
    let Some(class_path) = class_path() else {
        println!("skipped: Apache Kafka's jars are not resolved here (lab/compat/run does that)");
        return;
    };
    let root = std::env::temp_dir().join(format!("barnabas-dump-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let log = write_log(&root);
    let dir = root.join("talk-0");
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("0000")));
    names.sort();
    assert!(names.len() >= log.segment_count() * 3 + 2);
    let list = names.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(",");
    let run = Command::new("java")
        .args(["-Xmx128m", "-cp", class_path.trim(), "org.apache.kafka.tools.DumpLogSegments"])
        .args(["--index-sanity-check", "--deep-iteration", "--files", &list])
        .output();
    let Ok(run) = run else {
        println!("skipped: java is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    let count = |wanted: &str| text.matches(wanted).count();
    assert_eq!(count("passed sanity check"), log.segment_count() * 2, "{text}");
    assert_eq!((count("baseOffset: "), count("isvalid: true"), count("isvalid: false")), (200, 200, 0));
    assert_eq!(count("| offset: "), 600);
    assert_eq!((count("producerId: 4 firstOffset: 597"), count("lastSequence: 77")), (1, 1), "{text}");
    for complaint in
        ["mismatch", "not found", "out of order", "Mismatches", "orrupt", "Non-consecutive", "Unexpected"]
    {
        assert_eq!(count(complaint), 0, "{text}");
    }
    // Without the flag each entry is compared with the batches.
    let run = Command::new("java")
        .args(["-Xmx128m", "-cp", class_path.trim(), "org.apache.kafka.tools.DumpLogSegments"])
        .args(["--verify-index-only", "--files", &list])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success());
    assert!(
        !text.contains("ismatch") && !text.contains("not found") && !text.contains("out of order"),
        "{text}"
    );
    let _ = std::fs::remove_dir_all(&root);
}
