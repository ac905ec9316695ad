//! Partitions move between three log directories: with all that they have, at the pace that is set, while there is
//! room, and to the end wherever a crash has cut them off. moves_and_kills.rs has the random part.

use crate::harness::dump::{Dump, assert_same};
use crate::harness::three_dirs::{
    Rig, STORAGE_ERROR, all_values, alter, broker_config, eventually, produce, produce_batch,
};
use crate::harness::transactions::write_transactions;
use crate::harness::{Client, batch, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::{DeleteRecordsRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::path::Path;
use std::time::Duration;

/// What a checkpoint file says of partition 0 of a topic.
fn checkpoint(dir: &Path, file: &str, topic: &str) -> Option<i64> {
    let text = std::fs::read_to_string(dir.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{topic} 0 ")));
    line.and_then(|offset| offset.parse().ok())
}

const CHECKPOINTS: [&str; 4] = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
];

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(done.expect("cp").success());
}

#[test]
fn a_partition_moves_with_all_that_it_has() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("moved", 1, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("moved");
    let large = "x".repeat(100_000);
    for number in 0..40 {
        assert_eq!(produce(&mut client, "moved", 0, &format!("{number} {large}")), 0);
    }
    let (from, _) = rig.place("moved");
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, "/nowhere", "moved", 0), 57);
    assert_eq!(alter(&mut client, &rig.path(to), "moved", 9), 3, "an unknown partition");
    assert_eq!(alter(&mut client, &rig.path(from[0]), "moved", 0), 0, "it is there");
    assert_eq!(alter(&mut client, &rig.path(to), "moved", 0), 0);
    eventually("it has moved", || rig.place("moved") == (vec![to], vec![]));
    assert_eq!(produce(&mut client, "moved", 0, "40 after"), 0);
    for again in 0..2 {
        let mut client = rig.node.client();
        let found = all_values(&mut client, topic, 0);
        let numbers: Vec<&str> = found.iter().filter_map(|value| value.split(' ').next()).collect();
        assert_eq!(numbers, (0..41).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(rig.place("moved"), (vec![to], vec![]));
        if again == 0 {
            rig.node.kill();
            rig.node.launch();
        }
    }
    assert!(rig.node.stop().success());
}

/// A producer that had several batches under way, and lost the answers, sends all of them again after the move and a
/// kill.
#[test]
fn batches_that_may_be_sent_again_are_known_after_a_move() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("again", 1, &[]);
    let topic = client.topic_id("again");
    let sent: Vec<_> = (0..5)
        .map(|sequence| {
            let mut builder = BatchBuilder::new(BatchOptions {
                producer_id: ProducerId(4_000),
                producer_epoch: ProducerEpoch(0),
                base_sequence: Sequence(sequence),
                ..BatchOptions::default()
            });
            builder.push(TimestampMs(now_ms()), None, Some(sequence.to_string().as_bytes()), &[]);
            builder.build().expect("a batch")
        })
        .collect();
    for bytes in &sent {
        assert_eq!(produce_batch(&mut client, "again", 0, bytes.clone()), 0);
    }
    let (from, _) = rig.place("again");
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, &rig.path(to), "again", 0), 0);
    eventually("it has moved", || rig.place("again") == (vec![to], vec![]));
    rig.node.kill();
    rig.node.launch();
    let mut client = rig.node.client();
    for bytes in &sent {
        assert_eq!(produce_batch(&mut client, "again", 0, bytes.clone()), 0, "answered as the first time");
    }
    assert_eq!(all_values(&mut client, topic, 0), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_partition_that_was_never_written_to_moves_at_once() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("empty", 1, &[]);
    let (from, _) = rig.place("empty");
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, &rig.path(to), "empty", 0), 0);
    eventually("it begins there", || rig.place("empty") == (vec![to], vec![]));
    assert_eq!(produce(&mut client, "empty", 0, "first"), 0);
    // One that is to be made yet.
    assert_eq!(alter(&mut client, &rig.path(2), "later", 0), 3);
    client.create_topic("later", 1, &[]);
    eventually("it begins where it was wished for", || rig.place("later") == (vec![2], vec![]));
    assert_eq!(produce(&mut client, "later", 0, "first"), 0);
    assert!(rig.node.stop().success());
    // Until then what is written may be in the directory's journal alone.
    assert!(rig.dirs[to].join("empty-0").exists());
    assert!(rig.dirs[2].join("later-0").exists());
}

#[test]
fn a_move_keeps_its_pace_and_can_be_taken_back() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("slow", 1, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("slow");
    let large = "x".repeat(100_000);
    for number in 0..40 {
        assert_eq!(produce(&mut client, "slow", 0, &format!("{number} {large}")), 0);
    }
    let set = |client: &mut Client, value: &str| {
        broker_config(client, "replica.alter.log.dirs.io.max.bytes.per.second", Some(value))
    };
    assert_eq!(set(&mut client, "400000"), 0);
    let (from, _) = rig.place("slow");
    let (to, third) = ((from[0] + 1) % 3, (from[0] + 2) % 3);
    assert_eq!(alter(&mut client, &rig.path(to), "slow", 0), 0);
    eventually("it is on its way", || rig.place("slow") == (from.clone(), vec![to]));
    // Elsewhere instead, then not at all.
    assert_eq!(alter(&mut client, &rig.path(third), "slow", 0), 0);
    eventually("it is on its way elsewhere", || rig.place("slow") == (from.clone(), vec![third]));
    assert_eq!(alter(&mut client, &rig.path(from[0]), "slow", 0), 0);
    eventually("it stays", || rig.place("slow") == (from.clone(), vec![]));
    // It is remembered over a clean stop and over a kill.
    assert_eq!(alter(&mut client, &rig.path(to), "slow", 0), 0);
    eventually("it is on its way", || rig.place("slow") == (from.clone(), vec![to]));
    assert!(rig.node.stop().success());
    rig.node.launch();
    eventually("it goes on", || rig.place("slow") == (from.clone(), vec![to]));
    rig.node.kill();
    rig.node.launch();
    eventually("it goes on", || rig.place("slow") == (from.clone(), vec![to]));
    let mut client = rig.node.client();
    assert_eq!(produce(&mut client, "slow", 0, "40 after"), 0);
    assert_eq!(set(&mut client, "1000000000"), 0);
    eventually("it has moved", || rig.place("slow") == (vec![to], vec![]));
    assert_eq!(all_values(&mut client, topic, 0).len(), 41);
    assert!(rig.node.stop().success());
}

/// A move that was cut off between its two renames leaves the partition twice: the user sees nothing of it.
#[test]
fn a_move_that_is_cut_off_between_its_renames_is_begun_again() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("cut", 1, &[]);
    let topic = client.topic_id("cut");
    for number in 0..10 {
        assert_eq!(produce(&mut client, "cut", 0, &number.to_string()), 0);
    }
    let (from, _) = rig.place("cut");
    let to = (from[0] + 1) % 3;
    assert!(rig.node.stop().success());
    // What the disk looks like then: the copy has its name and stands in the checkpoint, and the old one is still
    // there.
    copy(&rig.dirs[from[0]].join("cut-0"), &rig.dirs[to]);
    for file in ["replication-offset-checkpoint", "recovery-point-offset-checkpoint"] {
        std::fs::write(rig.dirs[to].join(file), "0\n1\ncut 0 10\n").expect("written");
    }
    for dir in &rig.dirs {
        std::fs::remove_file(dir.join(".kafka_cleanshutdown")).expect("removed");
    }
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(produce(&mut client, "cut", 0, "10"), 0);
    eventually("it is done", || rig.place("cut") == (vec![to], vec![]));
    assert_eq!(all_values(&mut client, topic, 0).len(), 11);
    assert!(rig.node.stop().success());
}

/// A node whose partition `cut-0` has ten records and was stopped; where it lies, and where it is to be moved to.
fn stopped_with_ten_records() -> (Rig, usize, usize) {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("cut", 1, &[]);
    for number in 0..10 {
        assert_eq!(produce(&mut client, "cut", 0, &number.to_string()), 0);
    }
    let (from, _) = rig.place("cut");
    assert!(rig.node.stop().success());
    (rig, from[0], (from[0] + 1) % 3)
}

/// The copy is complete and noted in the checkpoints, and has not its name yet.
#[test]
fn a_move_that_is_cut_off_before_its_renames_is_begun_again_or_leaves_nothing() {
    for is_taken_back in [false, true] {
        let (mut rig, from, to) = stopped_with_ten_records();
        let future = rig.dirs[to].join("cut-0.0123456789abcdef0123456789abcdef-future");
        copy(&rig.dirs[from].join("cut-0"), &future);
        for file in &CHECKPOINTS[..2] {
            std::fs::write(rig.dirs[to].join(file), "0\n1\ncut 0 10\n").expect("written");
        }
        for dir in &rig.dirs {
            std::fs::remove_file(dir.join(".kafka_cleanshutdown")).expect("removed");
        }
        // In the second case it waits for room until it is taken back.
        let log_dirs =
            format!("log.dirs={}", rig.dirs.each_ref().map(|dir| dir.display().to_string()).join(","));
        if is_taken_back {
            rig.node.set_overrides(&[&log_dirs, &crate::harness::no_room(&rig.dirs[0])]);
        }
        rig.node.launch();
        let mut client = rig.node.client();
        let topic = client.topic_id("cut");
        if is_taken_back {
            eventually("it waits", || rig.node.log().contains("is paused, "));
            assert_eq!(rig.place("cut"), (vec![from], vec![to]));
            assert_eq!(alter(&mut client, &rig.path(from), "cut", 0), 0);
            eventually("it stays", || rig.place("cut") == (vec![from], vec![]));
        } else {
            assert_eq!(produce(&mut client, "cut", 0, "10"), 0);
            eventually("it is done", || rig.place("cut") == (vec![to], vec![]));
        }
        assert_eq!(all_values(&mut client, topic, 0).len(), if is_taken_back { 10 } else { 11 });
        assert!(rig.node.stop_expecting_trouble().success());
        let (has, has_not, end) = if is_taken_back { (from, to, 10) } else { (to, from, 11) };
        for file in &CHECKPOINTS[..2] {
            assert_eq!(checkpoint(&rig.dirs[has], file, "cut"), Some(end));
            assert_eq!(checkpoint(&rig.dirs[has_not], file, "cut"), None, "{file}");
        }
        assert!(!future.exists());
    }
}

/// Both renames are done, and the metadata log was not told.
#[test]
fn a_move_that_is_cut_off_after_its_renames_is_over() {
    let (mut rig, from, to) = stopped_with_ten_records();
    let old = rig.dirs[from].join("cut-0.0123456789abcdef0123456789abcdef-delete");
    copy(&rig.dirs[from].join("cut-0"), &rig.dirs[to]);
    std::fs::rename(rig.dirs[from].join("cut-0"), &old).expect("renamed");
    for file in &CHECKPOINTS[..2] {
        std::fs::write(rig.dirs[to].join(file), "0\n1\ncut 0 10\n").expect("written");
        std::fs::write(rig.dirs[from].join(file), "0\n0\n").expect("written");
    }
    for dir in &rig.dirs {
        std::fs::remove_file(dir.join(".kafka_cleanshutdown")).expect("removed");
    }
    for number in 10..12 {
        rig.node.launch();
        let mut client = rig.node.client();
        let topic = client.topic_id("cut");
        assert_eq!(produce(&mut client, "cut", 0, &number.to_string()), 0);
        let expected: Vec<String> = (0..=number).map(|number| number.to_string()).collect();
        assert_eq!(all_values(&mut client, topic, 0), expected);
        assert_eq!(rig.place("cut"), (vec![to], vec![]));
        eventually("the old one goes", || !old.exists());
        rig.node.kill();
    }
}

/// Several segments, several codecs, transactions committed and aborted, two producers, compacted: all is the same
/// afterwards, and what was compacted counts as compacted.
#[test]
fn everything_that_a_partition_has_goes_with_it() {
    let mut rig = Rig::start(&["log.cleaner.backoff.ms=50", "log.cleaner.dedupe.buffer.size=1048577"]);
    let mut client = rig.node.client();
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.bytes", "1048576"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("compression.type", "lz4"),
        ("file.delete.delay.ms", "100"),
    ];
    client.create_topic("t", 1, &configs);
    let id = client.topic_id("t");
    let (from, _) = rig.place("t");
    let (from, to) = (from[0], (from[0] + 1) % 3);
    assert!(rig.node.stop().success());
    let dir = rig.dirs[from].join("t-0");
    std::fs::create_dir_all(&dir).expect("made");
    std::fs::write(dir.join("partition.metadata"), format!("version: 0\ntopic_id: {id}")).expect("written");
    write_transactions(&dir);
    std::fs::remove_file(rig.dirs[from].join(".kafka_cleanshutdown")).expect("removed");
    rig.node.launch();
    let mut client = rig.node.client();
    let cleanings = |rig: &Rig| rig.node.log().matches("compacted up to offset").count();
    let clean_point = |rig: &Rig, at: usize| checkpoint(&rig.dirs[at], CHECKPOINTS[3], "t");
    eventually("it is compacted", || clean_point(&rig, from).is_some());
    let mut keyed = barnabas_wire::records::BatchBuilder::new(Default::default());
    keyed.push(barnabas_base::TimestampMs(crate::harness::now_ms()), Some(b"k"), Some(b"recompressed"), &[]);
    assert_eq!(produce_batch(&mut client, "t", 0, keyed.build().expect("a batch")), 0);
    std::thread::sleep(Duration::from_millis(300));
    let (point, cleaned, before) = (clean_point(&rig, from), cleanings(&rig), Dump::take(&mut client, "t"));
    assert!(!before.aborted.is_empty() && before.producers.len() == 2 && before.batches.len() > 20);
    assert_eq!(before.batches.last().map(|batch| &*batch.2), Some("Lz4"));
    assert_eq!(alter(&mut client, &rig.path(to), "t", 0), 0);
    eventually("it has moved", || rig.place("t") == (vec![to], vec![]));
    assert_same(&Dump::take(&mut client, "t"), &before, "after the move");
    assert_eq!((clean_point(&rig, to), clean_point(&rig, from)), (point, None));
    // It is looked at because of this one, and there is nothing to compact.
    let mut keyed = barnabas_wire::records::BatchBuilder::new(Default::default());
    keyed.push(barnabas_base::TimestampMs(crate::harness::now_ms()), Some(b"k"), Some(b"after"), &[]);
    assert_eq!(produce_batch(&mut client, "t", 0, keyed.build().expect("a batch")), 0);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(cleanings(&rig), cleaned, "{}", rig.node.log());
    let after = Dump::take(&mut client, "t");
    rig.node.kill();
    rig.node.launch();
    assert_same(&Dump::take(&mut rig.node.client(), "t"), &after, "after a kill");
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_same(&Dump::take(&mut rig.node.client(), "t"), &after, "after a stop");
    assert!(rig.node.stop().success());
}

/// The log start is in no segment; the guard of the new directory knows it.
#[test]
fn deleted_records_stay_deleted_where_a_partition_was_moved_to() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", 1, &[]);
    for number in 0..4 {
        let values: Vec<String> = (0..10).map(|at| (number * 10 + at).to_string()).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        assert_eq!(produce_batch(&mut client, "t", 0, batch(&values)), 0);
    }
    let (from, _) = rig.place("t");
    let (from, to) = (from[0], (from[0] + 1) % 3);
    // In the middle of a batch.
    let partition = DeleteRecordsPartition { offset: 15, ..Default::default() };
    let topic = DeleteRecordsTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteRecords(response) = client.call(request, 2) else { panic!("another response") };
    assert_eq!(response.topics[0].partitions[0].error_code, 0);
    let before = Dump::take(&mut client, "t");
    assert_eq!((before.start, before.end), (15, 40));
    assert_eq!(alter(&mut client, &rig.path(to), "t", 0), 0);
    eventually("it has moved", || rig.place("t") == (vec![to], vec![]));
    assert_same(&Dump::take(&mut client, "t"), &before, "after the move");
    assert_eq!(checkpoint(&rig.dirs[to], CHECKPOINTS[2], "t"), Some(15));
    for is_harmed in [false, true] {
        rig.node.kill();
        if is_harmed {
            std::fs::write(rig.dirs[to].join(CHECKPOINTS[2]), "0\n1\nt 0 11\n").expect("written");
        }
        rig.node.launch();
        assert_same(
            &Dump::take(&mut rig.node.client(), "t"),
            &before,
            if is_harmed { "harmed" } else { "killed" },
        );
    }
    assert!(rig.node.log().contains("log-start-offset-checkpoint"));
    assert!(checkpoint(&rig.dirs[from], CHECKPOINTS[2], "t").is_none());
    assert!(rig.node.stop_expecting_trouble().success());
}

/// Files of a partition's copies, in bytes.
fn copied(dir: &Path) -> u64 {
    let future = std::fs::read_dir(dir).expect("listed").flatten();
    let future = future.filter(|entry| entry.file_name().to_string_lossy().ends_with("-future"));
    let files = future.flat_map(|entry| std::fs::read_dir(entry.path()).expect("listed").flatten());
    files.map(|file| file.metadata().map_or(0, |data| data.len())).sum()
}

#[test]
fn a_move_asks_for_room_before_it_begins_and_while_it_copies() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("large", 1, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("large");
    let value = "x".repeat(100_000);
    for number in 0..40 {
        assert_eq!(produce(&mut client, "large", 0, &format!("{number} {value}")), 0);
    }
    broker_config(&mut client, "replica.alter.log.dirs.io.max.bytes.per.second", Some("400000"));
    let (from, _) = rig.place("large");
    let (from, to) = (from[0], (from[0] + 1) % 3);
    assert_eq!(alter(&mut client, &rig.path(to), "large", 0), 0);
    eventually("it is on its way", || copied(&rig.dirs[to]) > 0);
    assert!(rig.node.stop().success());
    // There is less room than producers must have left, everywhere.
    let log_dirs = format!("log.dirs={}", rig.dirs.each_ref().map(|dir| dir.display().to_string()).join(","));
    rig.node.set_overrides(&[&log_dirs, &crate::harness::no_room(&rig.dirs[0])]);
    let so_far = copied(&rig.dirs[to]);
    rig.node.launch();
    let mut client = rig.node.client();
    eventually("it waits and says so", || rig.node.log().contains("is paused, "));
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(copied(&rig.dirs[to]) <= so_far, "nothing more is copied");
    assert_eq!(rig.place("large"), (vec![from], vec![to]));
    assert_eq!(rig.node.log().matches("is paused, ").count(), 1, "said once");
    assert_eq!(all_values(&mut client, topic, 0).len(), 40, "it is read as ever");
    // Another place for it does not even begin.
    let third = (from + 2) % 3;
    assert_eq!(alter(&mut client, &rig.path(third), "large", 0), STORAGE_ERROR);
    assert!(rig.node.log().contains("would leave less free space there"));
    eventually("the first one was taken back", || rig.place("large") == (vec![from], vec![]));
    assert!(rig.node.stop_expecting_trouble().success());
    rig.node.set_overrides(&[&log_dirs]);
    rig.node.launch();
    let mut client = rig.node.client();
    broker_config(&mut client, "replica.alter.log.dirs.io.max.bytes.per.second", Some("1000000000"));
    assert_eq!(alter(&mut client, &rig.path(to), "large", 0), 0);
    eventually("it has moved", || rig.place("large") == (vec![to], vec![]));
    assert_eq!(all_values(&mut client, topic, 0).len(), 40);
    assert!(rig.node.stop_expecting_trouble().success());
}
