//! A log directory on a disk in memory, and the small files in it.

use barnabas_base::{BrokerId, PartitionIndex, Text, TimestampMs};

use super::*;
use crate::disk::OpenMode;
use crate::disk::memory_disk::MemoryDisk;
use crate::journal::{JournalPartition, PartitionReplay};
use crate::partition_files::epoch_file;

const ROOT: &str = "/data";

fn open(disk: &MemoryDisk) -> Result<LogDir, StorageError> {
    LogDir::open(Arc::new(disk.clone()), Path::new(ROOT))
}

fn write(disk: &MemoryDisk, name: &str, contents: &[u8]) {
    let file = disk.open(&Path::new(ROOT).join(name), OpenMode::Truncate).unwrap();
    file.write_at(0, &[contents]).unwrap();
}

fn text(disk: &MemoryDisk, name: &str) -> String {
    String::from_utf8(disk.contents(&Path::new(ROOT).join(name)).unwrap()).unwrap()
}

fn partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, PartitionIndex(partition))
}

/// Of the life that stopped cleanly.
fn clean_epoch(dir: &LogDir) -> Option<BrokerEpoch> {
    dir.kept_life().filter(|life| life.seen.is_none()).map(|life| life.epoch)
}

#[test]
fn one_process_at_a_time() {
    let disk = MemoryDisk::new();
    let dir = open(&disk).unwrap();
    let error = open(&disk).unwrap_err();
    assert_eq!(error, StorageError::Locked(PathBuf::from(ROOT)));
    assert!(error.to_string().contains("/data is in use"), "{error}");
    drop(dir);
    open(&disk).unwrap();
}

/// A crash before its first checkpoints: a hole in a compacted log is a loss (found by lab/sim, climate compaction).
#[test]
fn new_directory_is_this_programs_from_its_first_life_on() {
    let holds = |kafkas: bool| {
        let disk = MemoryDisk::new();
        let mut dir = open(&disk).unwrap();
        if kafkas {
            disk.create_dir(&Path::new(ROOT).join("a-0")).unwrap();
        }
        dir.begin().unwrap();
        drop(dir);
        disk.crash(1);
        open(&disk).unwrap().open_from(&partition("a", 0)).recovery_point_holds
    };
    assert!(holds(false));
    assert!(!holds(true));
}

#[test]
fn checkpoints_are_kafkas_text_and_come_back() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    dir.set_recovery_point(partition("b", 2), Offset(7));
    dir.set_recovery_point(partition("a-1", 0), Offset(900));
    dir.set_log_start(partition("b", 2), Some(Offset(3)));
    dir.set_high_watermark(partition("b", 2), Offset(6));
    dir.write_checkpoints().unwrap();
    assert_eq!(text(&disk, "recovery-point-offset-checkpoint"), "0\n2\na-1 0 900\nb 2 7\n");
    assert_eq!(text(&disk, "log-start-offset-checkpoint"), "0\n1\nb 2 3\n");
    assert_eq!(text(&disk, "replication-offset-checkpoint"), "0\n1\nb 2 6\n");
    let syncs = disk.syncs();
    dir.set_recovery_point(partition("b", 2), Offset(7));
    dir.write_checkpoints().unwrap();
    assert_eq!(disk.syncs(), syncs, "nothing changed, nothing written");
    // What is written is durable.
    disk.crash(1);
    let mut dir = open(&disk).unwrap();
    let from = dir.open_from(&partition("b", 2));
    assert_eq!((from.recovery_point, from.log_start, from.clean), (Offset(7), Offset(3), false));
    assert_eq!(dir.high_watermark(&partition("b", 2)), Some(Offset(6)));
    assert_eq!(dir.open_from(&partition("c", 0)).recovery_point, Offset(0));
    dir.forget(&partition("b", 2));
    dir.write_checkpoints().unwrap();
    assert_eq!(text(&disk, "recovery-point-offset-checkpoint"), "0\n1\na-1 0 900\n");
}

#[test]
fn a_checkpoint_is_the_old_or_the_new_one_whenever_the_power_goes() {
    for seed in 0..300 {
        let disk = MemoryDisk::new();
        let mut dir = open(&disk).unwrap();
        dir.set_recovery_point(partition("a", 0), Offset(1));
        dir.write_checkpoints().unwrap();
        dir.set_recovery_point(partition("a", 0), Offset(2));
        let fault = crate::Faults { syncs_until_error: Some(seed % 3), ..Default::default() };
        disk.set_faults(fault);
        let written = dir.write_checkpoints().is_ok();
        assert_eq!(dir.is_online(), written);
        disk.crash(seed);
        let mut dir = open(&disk).unwrap();
        assert!(dir.damaged().is_empty(), "seed {seed}: {:?}", dir.damaged());
        let found = dir.open_from(&partition("a", 0)).recovery_point;
        assert!(found == Offset(2) || (found == Offset(1) && !written), "seed {seed}: {found}");
    }
}

#[test]
fn damaged_checkpoints_count_as_empty_and_are_named() {
    let bad =
        ["0\n2\na 0 1\n", "0\n1\na 0\n", "1\n0\n", "0\nx\n", "0\n1\na 0 -4\n", "0\n1\na 0 4 9\n", "\0\0\0\0"];
    for bad in bad {
        let disk = MemoryDisk::new();
        disk.create_dir(Path::new(ROOT)).unwrap();
        write(&disk, "recovery-point-offset-checkpoint", bad.as_bytes());
        let mut dir = open(&disk).unwrap();
        assert_eq!(dir.damaged().len(), 1, "{bad:?}");
        assert!(dir.damaged()[0].to_string().contains("recovery-point-offset-checkpoint"), "{bad:?}");
        assert_eq!(dir.open_from(&partition("a", 0)).recovery_point, Offset(0));
    }
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    // Kafka makes them empty at first.
    write(&disk, "cleaner-offset-checkpoint", b"");
    assert!(open(&disk).unwrap().damaged().is_empty());
}

#[test]
fn high_watermarks_stand_in_for_damaged_recovery_points() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    dir.set_recovery_point(partition("a", 0), Offset(9));
    dir.set_high_watermark(partition("a", 0), Offset(7));
    dir.write_checkpoints().unwrap();
    write(&disk, "recovery-point-offset-checkpoint", b"\0\0\0\0");
    disk.kill();
    let mut dir = open(&disk).unwrap();
    assert_eq!(dir.damaged().len(), 1);
    assert_eq!(dir.open_from(&partition("a", 0)).recovery_point, Offset(7));
    // Kept for the start after the next one too, whether the partition is opened before or not.
    dir.write_checkpoints().unwrap();
    disk.kill();
    let mut dir = open(&disk).unwrap();
    assert!(dir.damaged().is_empty());
    assert_eq!(dir.open_from(&partition("a", 0)).recovery_point, Offset(7));
}

#[test]
fn nothing_stands_in_for_damaged_high_watermarks() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    dir.set_recovery_point(partition("a", 0), Offset(9));
    dir.set_high_watermark(partition("a", 0), Offset(7));
    dir.write_checkpoints().unwrap();
    write(&disk, "replication-offset-checkpoint", b"\0\0\0\0");
    disk.kill();
    let mut dir = open(&disk).unwrap();
    assert_eq!(dir.damaged().len(), 1);
    assert_eq!(dir.high_watermark(&partition("a", 0)), None, "what is synced need not be committed");
    assert_eq!(dir.open_from(&partition("a", 0)).recovery_point, Offset(9));
}

#[test]
fn a_clean_stop_vouches_once() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    assert!(!dir.was_clean());
    dir.set_recovery_point(partition("a", 0), Offset(5));
    dir.mark_clean(BrokerEpoch(42)).unwrap();
    assert_eq!(text(&disk, ".kafka_cleanshutdown"), "{\"version\":0,\"brokerEpoch\":42}");
    disk.crash(3);
    let mut dir = open(&disk).unwrap();
    assert!(dir.was_clean());
    assert_eq!(clean_epoch(&dir), Some(BrokerEpoch(42)));
    dir.begin().unwrap();
    assert!(dir.open_from(&partition("a", 0)).clean);
    assert!(!dir.open_from(&partition("a", 0)).clean);
    disk.crash(4);
    assert!(!open(&disk).unwrap().was_clean());
    // Written by Kafka before KIP-966: empty.
    write(&disk, ".kafka_cleanshutdown", b"");
    disk.kill();
    let dir = open(&disk).unwrap();
    assert_eq!((dir.was_clean(), clean_epoch(&dir)), (true, None));
}

#[test]
fn a_kill_right_after_the_start_leaves_the_directory_ours() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    dir.set_synced(true);
    dir.set_recovery_point(partition("a", 0), Offset(9));
    dir.set_high_watermark(partition("a", 0), Offset(9));
    dir.mark_clean(BrokerEpoch(42)).unwrap();
    for _ in 0..2 {
        disk.kill();
        let mut dir = open(&disk).unwrap();
        dir.set_synced(true);
        assert!(dir.open_from(&partition("a", 0)).is_ours);
        assert_eq!(dir.held_end(&partition("a", 0)), Some(Offset(9)));
        dir.begin().unwrap();
    }
}

/// Kafka may leave all checkpoints but one as they were: records were deleted, and nothing was written.
#[test]
fn what_another_broker_wrote_since_is_believed() {
    let deleted = b"0\n1\na 0 8\n";
    let kafkas_stop = b"{\"version\":0,\"brokerEpoch\":43}".as_slice();
    #[derive(Debug, PartialEq)]
    enum Our {
        Stop,
        StopWithLogsLeft,
        Kill,
    }
    for (ours, clean_shutdown) in [
        (Our::Stop, Some(kafkas_stop)),
        (Our::Stop, None),
        (Our::StopWithLogsLeft, Some(kafkas_stop)),
        (Our::StopWithLogsLeft, None),
        (Our::Kill, Some(kafkas_stop)),
    ] {
        let disk = MemoryDisk::new();
        let mut dir = open(&disk).unwrap();
        dir.set_synced(true);
        dir.set_recovery_point(partition("a", 0), Offset(9));
        dir.set_high_watermark(partition("a", 0), Offset(9));
        dir.set_log_start(partition("a", 0), Some(Offset(5)));
        dir.mark_clean(BrokerEpoch(42)).unwrap();
        disk.kill();
        if ours != Our::Stop {
            let mut dir = open(&disk).unwrap();
            dir.set_synced(true);
            dir.begin().unwrap();
            dir.write_checkpoints().unwrap();
            if ours == Our::StopWithLogsLeft {
                dir.mark_left().unwrap();
            }
            disk.kill();
            assert_eq!(open(&disk).unwrap().held_end(&partition("a", 0)), Some(Offset(9)), "{ours:?}");
            disk.kill();
        }
        write(&disk, "log-start-offset-checkpoint", deleted);
        match clean_shutdown {
            Some(text) => write(&disk, ".kafka_cleanshutdown", text),
            None if ours == Our::Stop => {
                disk.remove_file(&Path::new(ROOT).join(".kafka_cleanshutdown")).unwrap();
            }
            None => {}
        }
        let dir = open(&disk).unwrap();
        assert_eq!(dir.log_start(&partition("a", 0)), Some(Offset(8)), "{ours:?} {clean_shutdown:?}");
        assert!(dir.damaged().is_empty(), "{:?}", dir.damaged());
    }
}

/// The same bytes where no other program was: a digit has changed, and the deleted records stay deleted all the same.
#[test]
fn a_checkpoint_that_rotted_is_not_believed() {
    for is_open in [false, true] {
        let disk = MemoryDisk::new();
        let mut dir = open(&disk).unwrap();
        dir.set_recovery_point(partition("a", 0), Offset(9));
        dir.set_log_start(partition("a", 0), Some(Offset(5)));
        dir.mark_clean(BrokerEpoch(42)).unwrap();
        disk.kill();
        if is_open {
            let mut dir = open(&disk).unwrap();
            dir.begin().unwrap();
            dir.write_checkpoints().unwrap();
            disk.kill();
        }
        write(&disk, "log-start-offset-checkpoint", b"0\n1\na 0 1\n");
        let dir = open(&disk).unwrap();
        assert_eq!(dir.log_start(&partition("a", 0)), Some(Offset(5)), "open: {is_open}");
        assert_eq!(dir.damaged().len(), 1);
    }
}

#[test]
fn partitions_are_known_by_their_names() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    let unique = "0123456789abcdef0123456789abcdef";
    let names = [
        "a-0".to_owned(),
        "a-b.c-12".to_owned(),
        "x-delete-3".to_owned(),
        format!("gone-1.{unique}-delete"),
        format!("moving-2.{unique}-future"),
        format!("lost-3.{unique}-stray"),
        "no-number-x".to_owned(),
        "nothing".to_owned(),
        "-5".to_owned(),
        "x-delete".to_owned(),
    ];
    for name in &names {
        disk.create_dir(&Path::new(ROOT).join(name)).unwrap();
    }
    let found = dir.partitions().unwrap();
    let found: Vec<_> = found.iter().map(|dir| (dir.topic_partition.to_string(), dir.kind)).collect();
    let expected = [
        ("a-0", DirKind::Current),
        ("a-b.c-12", DirKind::Current),
        ("gone-1", DirKind::Delete),
        ("lost-3", DirKind::Stray),
        ("moving-2", DirKind::Future),
        ("x-delete-3", DirKind::Current),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    // Deleted: renamed at once, gone later.
    write(&disk, "a-0/00000000000000000000.log", b"");
    dir.set_recovery_point(partition("a", 0), Offset(9));
    let never = (partition("never", 0), Uuid([1; 16]));
    let renamed = dir.rename_to_delete(&[(partition("a", 0), Uuid([0xab; 16])), never.clone()]).unwrap();
    let [aside] = &renamed[..] else { panic!("{renamed:?}") };
    assert!(aside.ends_with(format!("a-0.{}-delete", "ab".repeat(16))), "{aside:?}");
    disk.crash(5);
    let mut dir = open(&disk).unwrap();
    assert_eq!(dir.open_from(&partition("a", 0)).recovery_point, Offset(0));
    dir.remove(aside).unwrap();
    assert_eq!(disk.stat(aside).unwrap(), None);
    assert!(dir.rename_to_delete(&[never]).unwrap().is_empty());
    // The longest topic's name is cut short.
    let long = partition(&"t".repeat(249), 7);
    disk.create_dir(&Path::new(ROOT).join(long.to_string())).unwrap();
    let aside = dir.rename_to_stray(&long, Uuid([1; 16])).unwrap().unwrap();
    let name = aside.file_name().unwrap().to_str().unwrap();
    assert_eq!(name.len(), 255);
    assert_eq!(PartitionDir::parse(name).unwrap().kind, DirKind::Stray);
}

#[test]
fn meta_properties_of_both_versions_are_read() {
    let parse = |text: &str| MetaProperties::parse(text.as_bytes());
    let directory_id = Uuid::parse("3O6UbcWACabjYU9DoyuftA");
    let current = MetaProperties {
        version: 1,
        cluster_id: Some(Text::from("AAAAAAAAAAAAAAAAAAAAZw")),
        node_id: Some(BrokerId(1)),
        directory_id,
    };
    let kafkas = "#\n#Sat Nov 21 03:24:43 UTC 2026\nnode.id=1\ndirectory.id=3O6UbcWACabjYU9DoyuftA\nversion=1\n\
                  cluster.id=AAAAAAAAAAAAAAAAAAAAZw\n";
    assert_eq!(parse(kafkas), Ok(current.clone()));
    assert_eq!(parse(&current.render()), Ok(current));
    let old = parse("version=0\nbroker.id = 3\ncluster.id: we\\=us\n").unwrap();
    assert_eq!((old.version, old.node_id, old.cluster_id.as_deref()), (0, Some(BrokerId(3)), Some("we=us")));
    assert_eq!(parse(&old.render()), Ok(old));
    for (bad, word) in [
        ("", "version"),
        ("version=2\n", "version"),
        ("version=x\n", "number"),
        ("version=1\nnode.id=1\n", "cluster.id"),
        ("version=1\nnode.id=1\ncluster.id=a\ndirectory.id=b\n", "directory.id"),
        ("version=1\nnode.id=-1\ncluster.id=a\n", "negative"),
    ] {
        let error = parse(bad).unwrap_err();
        assert!(error.contains(word), "{bad:?}: {error}");
    }
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    write(&disk, "meta.properties", b"version=1\nnode.id=1\n");
    let error = open(&disk).unwrap_err();
    assert!(error.to_string().starts_with("/data/meta.properties is not readable"), "{error}");
}

#[test]
fn topic_ids_are_read_from_partitions() {
    let disk = MemoryDisk::new();
    let dir = open(&disk).unwrap();
    disk.create_dir(Path::new("/data/a-0")).unwrap();
    let found = dir.partitions().unwrap();
    assert_eq!(dir.topic_id(&found[0]).unwrap(), None);
    for torn in [
        "",
        "version: 0\n",
        "version: 0\ntopic_id: l07J",
        "\0\0\0",
        "version: 1\ntopic_id: l07JCeLTQti_aQBGf8CtLA",
    ] {
        write(&disk, "a-0/partition.metadata", torn.as_bytes());
        assert_eq!(dir.topic_id(&found[0]).unwrap(), None, "{torn:?}");
    }
    let id = Uuid::parse("l07JCeLTQti_aQBGf8CtLA").unwrap();
    write(&disk, "a-0/partition.metadata", partition_metadata::render(id).as_bytes());
    assert_eq!(dir.topic_id(&found[0]).unwrap(), Some(id));
}

#[test]
fn epoch_files_that_do_not_rise_are_refused() {
    assert!(epoch_file::parse(b"0\n2\n0 0\n3 15\n").is_ok());
    for bad in ["0\n2\n3 0\n0 15\n", "0\n2\n0 9\n1 9\n", "0\n1\n-1 0\n", "", "0\n1\n5\n"] {
        assert!(epoch_file::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
}

#[test]
fn a_stop_speaks_only_for_what_was_recovered() {
    let disk = MemoryDisk::new();
    let mut dir = open(&disk).unwrap();
    for name in ["a-0", "b-0", "c-0"] {
        disk.create_dir(&Path::new(ROOT).join(name)).unwrap();
    }
    let closed: Set<TopicPartition> = [partition("a", 0)].into_iter().collect();
    assert_eq!(dir.unrecovered(&closed).unwrap(), 2, "b and c were not opened since the crash");
    dir.vouch_for(partition("b", 0), Offset(3));
    assert_eq!(dir.unrecovered(&closed).unwrap(), 1);
    dir.mark_clean(BrokerEpoch(1)).unwrap();
    assert_eq!(dir.unrecovered(&closed).unwrap(), 0, "a clean stop has spoken for all of them");
}

fn metadata() -> TopicPartition {
    partition("__cluster_metadata", 0)
}

#[test]
fn mark_of_a_clean_stop_outlives_starts_that_end_early() {
    for ends_by_power in [false, true] {
        let disk = MemoryDisk::new();
        let mut dir = open(&disk).unwrap();
        dir.set_recovery_point(partition("a", 0), Offset(9));
        dir.set_recovery_point(metadata(), Offset(30));
        dir.mark_clean(BrokerEpoch(42)).unwrap();
        disk.kill();
        for start in 0..3 {
            let mut dir = open(&disk).unwrap();
            let ahead = dir.open_ahead(&metadata()).unwrap();
            assert_eq!((ahead.clean, ahead.recovery_point), (start == 0, Offset(30)), "start {start}");
            // The metadata log is cut meanwhile, as a follower's may be.
            dir.set_recovery_point(metadata(), Offset(29 - start));
            dir.write_checkpoints().unwrap();
            dir.set_recovery_point(metadata(), Offset(30));
            dir.write_checkpoints().unwrap();
            if ends_by_power { disk.crash(start as u64) } else { disk.kill() }
        }
        let mut dir = open(&disk).unwrap();
        assert_eq!(clean_epoch(&dir), Some(BrokerEpoch(42)));
        let a = dir.open_from(&partition("a", 0));
        assert!(a.clean && a.is_ours, "{a:?}");
        // One that comes further uses the mark up.
        dir.begin().unwrap();
        disk.kill();
        let mut dir = open(&disk).unwrap();
        assert!(!dir.was_clean() && dir.open_from(&partition("a", 0)).is_ours);
        dir.mark_clean(BrokerEpoch(43)).unwrap();
        disk.kill();
        assert!(open(&disk).unwrap().open_ahead(&metadata()).unwrap().clean, "no early end is remembered");
    }
}

/// Kafka's mark, in a directory where this program never stopped.
#[test]
fn start_that_ends_early_does_not_call_a_directory_ours() {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    write(&disk, ".kafka_cleanshutdown", b"{\"version\":0,\"brokerEpoch\":7}");
    let mut dir = open(&disk).unwrap();
    assert!(dir.open_ahead(&metadata()).unwrap().clean);
    disk.kill();
    let mut dir = open(&disk).unwrap();
    assert_eq!((clean_epoch(&dir), dir.was_clean()), (Some(BrokerEpoch(7)), true));
    assert!(!dir.open_from(&partition("a", 0)).is_ours);
}

/// A life that says so, and what the next one finds after a power cut.
fn after_life(disk: &MemoryDisk, epoch: i64) -> Option<LastLife> {
    let mut dir = open(disk).unwrap();
    dir.begin().unwrap();
    dir.set_high_watermark(partition("a", 0), Offset(epoch));
    dir.write_checkpoints().unwrap();
    dir.note_life(BrokerEpoch(epoch), TimestampMs(1000 + epoch)).unwrap();
    drop(dir);
    disk.crash(epoch as u64);
    open(disk).unwrap().kept_life()
}

fn life(epoch: i64) -> Option<LastLife> {
    Some(LastLife { epoch: BrokerEpoch(epoch), seen: Some(TimestampMs(1000 + epoch)) })
}

#[test]
fn killed_life_is_kept_until_the_next_one_says_so() {
    let disk = MemoryDisk::new();
    assert_eq!(open(&disk).unwrap().kept_life(), None);
    assert_eq!(after_life(&disk, 12), life(12));
    // A start that ends before it is registered has acknowledged nothing.
    open(&disk).unwrap().begin().unwrap();
    disk.crash(1);
    assert_eq!(open(&disk).unwrap().kept_life(), life(12));
    assert_eq!(after_life(&disk, 15), life(15));
    // Some logs were left as the kill before left them: no mark of a clean stop, and all is there.
    open(&disk).unwrap().mark_left().unwrap();
    disk.crash(2);
    assert_eq!(open(&disk).unwrap().kept_life(), life(15));
    // A clean stop says more.
    open(&disk).unwrap().mark_clean(BrokerEpoch(15)).unwrap();
    disk.crash(3);
    assert_eq!(clean_epoch(&open(&disk).unwrap()), Some(BrokerEpoch(15)));
}

#[test]
fn life_is_noted_on_a_full_disk() {
    let disk = MemoryDisk::new();
    assert_eq!(after_life(&disk, 12), life(12));
    let mut dir = open(&disk).unwrap();
    disk.set_capacity(0);
    dir.note_life(BrokerEpoch(1_000_015), TimestampMs(1_001_015)).unwrap();
    drop(dir);
    disk.crash(1);
    disk.set_capacity(1 << 30);
    assert_eq!(open(&disk).unwrap().kept_life(), life(1_000_015));
    // A first one, or one of an earlier version, has other lengths.
    write(&disk, "barnabas-last-life", b"barnabas-last-life 0\n");
    let mut dir = open(&disk).unwrap();
    disk.set_capacity(0);
    dir.note_life(BrokerEpoch(16), TimestampMs(1016)).unwrap_err();
}

#[test]
fn life_is_not_kept_where_the_directory_is_doubtful() {
    let disk = MemoryDisk::new();
    assert_eq!(after_life(&disk, 12), life(12));
    // A checkpoint is not what was written: a log that is too short might not be noticed.
    write(&disk, "replication-offset-checkpoint", b"0\n1\na 0 1\n");
    assert_eq!(open(&disk).unwrap().kept_life(), None);
    // Apache Kafka has stopped here, which may have acknowledged more than it wrote to the disk before.
    assert_eq!(after_life(&disk, 13), life(13));
    write(&disk, ".kafka_cleanshutdown", b"{\"version\":0,\"brokerEpoch\":-1}");
    assert_eq!(clean_epoch(&open(&disk).unwrap()), Some(BrokerEpoch::NONE));
    // Another directory of the node has failed.
    assert_eq!(after_life(&disk, 14), life(14));
    for _ in 0..2 {
        open(&disk).unwrap().forget_life().unwrap();
        disk.crash(4);
        assert_eq!(open(&disk).unwrap().kept_life(), None);
    }
    write(&disk, "barnabas-last-life", b"barnabas-last-life 0\n00000000\n14 1014\n");
    assert_eq!(open(&disk).unwrap().kept_life(), None, "damaged");
}

/// A start could not carry out a truncation, as the log is damaged below it: the next one knows that the log was synced
/// up to there, and takes the damage for no torn tail (lab/sim, seed 3241).
#[test]
fn truncation_that_is_kept_aside_says_how_far_the_log_was_synced() {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    let partition =
        JournalPartition { topic_id: TopicId::from_random([1; 16]), topic_partition: partition("a", 0) };
    let aside = quarantine::path(Path::new(ROOT), &partition.topic_partition, partition.topic_id);
    let mut replay = PartitionReplay::new(Arc::new(partition));
    replay.cut = Some(Offset(11));
    quarantine::keep(&disk, Path::new(ROOT), &replay).unwrap();
    assert_eq!(quarantine::goes_on_at(&disk, &aside).unwrap(), Some(Offset(11)));
}

#[cfg(planted)]
#[test]
fn planted_truncation_that_is_kept_aside_unsaid_is_noticed() {
    let test = truncation_that_is_kept_aside_says_how_far_the_log_was_synced;
    let passed = std::panic::catch_unwind(|| barnabas_base::planted::with("KeepsTruncationsUnsaid", test));
    assert!(passed.is_err(), "it is not noticed");
}
