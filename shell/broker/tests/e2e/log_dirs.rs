//! A node with three log directories: one of them fails, at the start or while it serves; one is cordoned; what it says
//! of them.

use crate::harness::quorum::{format, prepared, random_uuid};
use crate::harness::three_dirs::{
    Codes, Rig, STORAGE_ERROR, broker_config, eventually, produce, produce_batch, values,
};
use crate::harness::{Client, TempDir, TestNode, batch, binary, free_port};
use barnabas_wire::messages::{CreateTopicsRequest, ResponseBody, create_topics_request::CreatableTopic};
use std::path::PathBuf;

const PARTITIONS: i32 = 6;

fn create(client: &mut Client, name: &str, partitions: i32) -> i16 {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = client.call(request, 7) else { panic!("another response") };
    response.topics[0].error_code
}

fn cordon(client: &mut Client, value: Option<&str>) -> i16 {
    broker_config(client, "cordoned.log.dirs", value)
}

#[test]
fn new_partitions_are_spread_and_known_to_the_metadata_log_at_once() {
    let mut rig = Rig::start(&[]);
    rig.node.client().create_topic("spread", PARTITIONS, &[]);
    eventually("two partitions in each", || rig.places("spread").iter().all(|found| found.len() == 2));
    // Nothing was written: a restart places none of them again.
    let before = rig.places("spread");
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_eq!(rig.places("spread"), before);
    assert!(rig.node.stop().success());
}

/// `b` is made unusable by `spoil` while the node is down; the others serve, and nothing of `b` begins from zero.
fn one_is_lost_at_the_start(spoil: impl Fn(&PathBuf), mend: impl Fn(&PathBuf)) {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    client.create_topic("idle", PARTITIONS, &[]);
    let topic = client.topic_id("t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "t", partition, "before"), 0);
    }
    eventually("two partitions in each", || rig.places("t").iter().all(|found| found.len() == 2));
    let (places, idle) = (rig.places("t"), rig.places("idle"));
    assert!(rig.node.stop().success());
    spoil(&rig.dirs[1]);
    rig.node.launch();
    let mut client = rig.node.client();
    let described = rig.describe();
    assert_eq!(described.each_codes(), [0, STORAGE_ERROR, 0]);
    for partition in 0..PARTITIONS {
        let is_lost = places[1].contains(&partition);
        let expected = if is_lost { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
        assert_eq!(rig.leaders("t")[partition as usize], if is_lost { -1 } else { 1 });
        let of_idle = if idle[1].contains(&partition) { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "idle", partition, "while"), of_idle, "idle {partition}");
    }
    client.create_topic("new", 4, &[]);
    for partition in 0..4 {
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    assert!(rig.node.log().contains(&format!("log directory {} is offline", rig.dirs[1].display())));
    assert!(rig.node.stop_expecting_trouble().success(), "the others were closed");
    mend(&rig.dirs[1]);
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(rig.describe().each_codes(), [0, 0, 0]);
    for partition in 0..PARTITIONS {
        assert_eq!(rig.leaders("t")[partition as usize], 1);
        assert_eq!(produce(&mut client, "t", partition, "after"), 0);
        let expected: &[&str] = match places[1].contains(&partition) {
            true => &["before", "after"],
            false => &["before", "while", "after"],
        };
        assert_eq!(values(&mut client, topic, partition).expect("records"), expected);
        assert_eq!(produce(&mut client, "idle", partition, "after"), 0);
    }
    assert!(rig.node.stop_expecting_trouble().success());
}

#[test]
fn a_directory_that_is_a_file_at_the_start_leaves_the_others_serving() {
    let aside = |dir: &PathBuf| dir.with_extension("aside");
    one_is_lost_at_the_start(
        |dir| {
            std::fs::rename(dir, aside(dir)).expect("moved");
            std::fs::write(dir, "no directory").expect("a file");
        },
        |dir| {
            std::fs::remove_file(dir).expect("removed");
            std::fs::rename(aside(dir), dir).expect("moved back");
        },
    );
}

#[test]
fn a_directory_whose_identity_is_damaged_leaves_the_others_serving() {
    let copy = |dir: &PathBuf| dir.with_extension("meta");
    one_is_lost_at_the_start(
        |dir| {
            std::fs::copy(dir.join("meta.properties"), copy(dir)).expect("copied");
            std::fs::write(dir.join("meta.properties"), "version=seven\n").expect("damaged");
        },
        |dir| {
            std::fs::copy(copy(dir), dir.join("meta.properties")).expect("mended");
        },
    );
}

#[test]
fn a_disk_that_was_replaced_is_formatted_for_the_cluster_of_the_others() {
    let (root, id, controller) = (TempDir::new(), random_uuid(), free_port());
    let dirs = ["a", "b"].map(|name| root.path().join(name));
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{controller}");
    let more = format!("{voters}\nlog.dirs={},{}", dirs[0].display(), dirs[1].display());
    let mut node = prepared(None, 1, "broker,controller", (free_port(), controller), &id, &more, &[]);
    std::fs::remove_dir_all(&dirs[1]).expect("it was formatted");
    node.launch();
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    let told = log.lines().find(|line| line.contains(" ERROR ")).expect("an ERROR");
    assert!(
        told.contains(&format!("storage format -g -t {id} -c")) && !told.contains("random-uuid"),
        "{told}"
    );
    assert_eq!(told.matches(&*dirs[1].display().to_string()).count(), 1, "{told}");
    // What the line says helps.
    let (ok, said) = format(&node.dir.path().join("server.properties"), &id, &["-g"]);
    assert!(ok && dirs[1].join("meta.properties").exists(), "{said}");
    node.launch();
    assert!(node.stop_expecting_trouble().success());
    assert_eq!(node.log().lines().filter(|line| line.contains(" ERROR ")).count(), 1, "{}", node.log());
}

#[test]
fn a_directory_that_fails_while_the_node_serves_takes_only_its_own_partitions_with_it() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "t", partition, "before"), 0);
    }
    let places = rig.places("t");
    // A device that is gone answers EIO; here its names are gone.
    let aside = rig.dirs[2].with_extension("aside");
    std::fs::rename(&rig.dirs[2], &aside).expect("moved");
    std::fs::write(&rig.dirs[2], "no directory").expect("a file");
    let said = format!("log directory {} is offline", rig.dirs[2].display());
    eventually("it is noticed without a write", || rig.node.log().contains(&said));
    assert_eq!(rig.describe().each_codes(), [0, 0, STORAGE_ERROR]);
    for partition in 0..PARTITIONS {
        let is_lost = places[2].contains(&partition);
        let expected = if is_lost { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
        eventually("the controller knows", || {
            rig.leaders("t")[partition as usize] == if is_lost { -1 } else { 1 }
        });
    }
    client.create_topic("new", 4, &[]);
    for partition in 0..4 {
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    rig.node.stop_expecting_trouble();
    std::fs::remove_file(&rig.dirs[2]).expect("removed");
    std::fs::rename(&aside, &rig.dirs[2]).expect("moved back");
    rig.node.launch();
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let found = values(&mut client, topic, partition).expect("records");
        assert_eq!(found[0], "before");
        assert_eq!(produce(&mut client, "t", partition, "after"), 0);
    }
    assert!(rig.node.stop_expecting_trouble().success());
}

/// `barnabas leader-election … --election-type UNCLEAN` for one partition.
fn start_over(port: u16, topic: &str, partition: i32) -> String {
    let server = format!("127.0.0.1:{port}");
    let words = ["leader-election", "--bootstrap-server", &server, "--election-type", "unclean"];
    let of = ["--topic", topic, "--partition", &partition.to_string()];
    let output = binary().args(words).args(of).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn what_write_back_on_a_disk_that_was_replaced_begins_from_zero_only_when_the_operator_says_so() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    let topic = client.topic_id("t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "t", partition, "before"), 0);
    }
    eventually("two partitions in each", || rig.places("t").iter().all(|found| found.len() == 2));
    let lost = rig.places("t")[1].clone();
    assert!(rig.node.stop().success());
    let old = rig.dirs[1].with_extension("old");
    std::fs::rename(&rig.dirs[1], &old).expect("moved");
    std::fs::create_dir(&rig.dirs[1]).expect("an empty one");
    // A node without a file formats what is empty; with one, `storage format -g` does.
    rig.node.launch();
    let log = rig.node.log();
    let said = log.lines().find(|line| line.contains("2 partitions (such as t-")).expect("said");
    assert!(
        said.contains("--election-type UNCLEAN") && said.contains("restart the partition empty"),
        "{said}"
    );
    let mut client = rig.node.client();
    for &partition in &lost {
        assert_eq!(rig.leaders("t")[partition as usize], -1);
        assert_eq!(produce(&mut client, "t", partition, "while"), STORAGE_ERROR, "nothing begins by itself");
    }
    // Nor after another start.
    assert!(rig.node.stop_expecting_trouble().success());
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(produce(&mut client, "t", lost[0], "while"), STORAGE_ERROR);
    let said = start_over(rig.node.port, "t", lost[0]);
    assert_eq!(
        said.trim(),
        format!("Successfully completed leader election (UNCLEAN) for partitions t-{}", lost[0])
    );
    eventually("it is led again", || rig.leaders("t")[lost[0] as usize] == 1);
    eventually("it takes records", || produce(&mut client, "t", lost[0], "after") == 0);
    assert_eq!(values(&mut client, topic, lost[0]).expect("records"), ["after"]);
    assert_eq!(produce(&mut client, "t", lost[1], "while"), STORAGE_ERROR, "the other one was not meant");
    rig.node.kill();
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(values(&mut client, topic, lost[0]).expect("records"), ["after"]);
    assert!(rig.node.stop_expecting_trouble().success());
    // The old disk comes back after all: what began from zero stays, the rest is served again.
    let has_new = rig.dirs[1].join(format!("t-{}", lost[0])).exists();
    if !has_new {
        std::fs::rename(&rig.dirs[1], rig.dirs[1].with_extension("gone")).expect("moved");
        std::fs::rename(&old, &rig.dirs[1]).expect("moved back");
        rig.node.launch();
        let mut client = rig.node.client();
        assert_eq!(values(&mut client, topic, lost[0]).expect("records"), ["after"]);
        assert_eq!(values(&mut client, topic, lost[1]).expect("records"), ["before"]);
        assert!(rig.node.stop_expecting_trouble().success());
    }
}

/// As an operator with a file does it: the message of each step names the next one.
#[test]
fn a_replaced_disk_of_a_node_with_a_file_is_formatted_and_its_partitions_given_up() {
    let root = TempDir::new();
    let port = crate::harness::free_port();
    let file = root.path().join("server.properties");
    let of = |name: &str| root.path().join(name).display().to_string();
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://127.0.0.1:{port},C://127.0.0.1:{}\nlog.dirs={}\nmetadata.log.dir={}\n",
        crate::harness::free_port(),
        of("data"),
        of("meta"),
    );
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let format = |more: &[&str]| {
        let words = ["storage", "format", "-t", "AAAAAAAAAAAAAAAAAAAAZg", "-c", &file, "--standalone"];
        binary().args(words).args(more).output().expect("runs")
    };
    assert!(format(&[]).status.success());
    let mut node = TestNode::of_file(&file, port);
    node.launch();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let topic = client.topic_id("t");
    assert_eq!(produce(&mut client, "t", 0, "before"), 0);
    assert!(node.stop().success());
    std::fs::remove_dir_all(of("data")).expect("replaced");
    std::fs::create_dir(of("data")).expect("an empty one");
    node.launch_unawaited();
    assert!(!node.wait().success(), "no directory is left");
    assert!(node.log().contains("storage format -g -t AAAAAAAAAAAAAAAAAAAAZg"), "{}", node.log());
    assert!(format(&["-g"]).status.success());
    node.launch();
    let mut client = node.client();
    assert_eq!(produce(&mut client, "t", 0, "while"), STORAGE_ERROR);
    assert!(node.log().contains("1 partitions (such as t-0) stay offline"), "{}", node.log());
    start_over(port, "t", 0);
    eventually("it takes records", || produce(&mut client, "t", 0, "after") == 0);
    assert_eq!(values(&mut client, topic, 0).expect("records"), ["after"]);
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn what_may_be_changed_while_the_node_runs_is_judged_as_at_the_start() {
    const INVALID_REQUEST: i16 = 42;
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    for (key, value, expected) in [
        ("log.dir.min.free.bytes", "-2", INVALID_REQUEST),
        ("log.scrub.bytes.per.second", "12", INVALID_REQUEST),
        ("log.scrub.interval.ms", "0", INVALID_REQUEST),
        ("log.scrub.interval.ms", "5000", 0),
        ("log.dir.min.free.bytes", "0", 0),
    ] {
        assert_eq!(broker_config(&mut client, key, Some(value)), expected, "{key}={value}");
    }
    assert_ne!(broker_config(&mut client, "log.journal.bytes", Some("12582912")), 0, "only in the file");
    assert_eq!(produce(&mut client, "t", 0, "x"), 0);
    let all = crate::harness::no_room(&node.data());
    let (key, value) = all.split_once('=').expect("a pair");
    assert_eq!(broker_config(&mut client, key, Some(value)), 0);
    eventually("it holds at once", || produce(&mut client, "t", 0, "y") == STORAGE_ERROR);
    assert_eq!(broker_config(&mut client, key, None), 0);
    eventually("and is taken back", || produce(&mut client, "t", 0, "z") == 0);
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn one_directory_under_two_names_is_refused() {
    let root = TempDir::new();
    let (real, link) = (root.path().join("real"), root.path().join("link"));
    std::fs::create_dir(&real).expect("a directory");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let log_dirs = format!("log.dirs={},{}", real.display(), link.display());
    let mut node = TestNode::new(None, &[&log_dirs]);
    node.launch_unawaited();
    assert!(!node.wait().success());
    let log = node.log();
    let names = [real.display().to_string(), link.display().to_string()];
    assert!(names.iter().all(|name| log.contains(name)) && log.contains("the same directory"), "{log}");
    assert!(std::fs::read_dir(&real).expect("readable").next().is_none(), "nothing was written");
}

#[test]
fn a_node_stops_when_no_directory_is_left() {
    let root = TempDir::new();
    let file = root.path().join("file");
    std::fs::write(&file, "no directory").expect("a file");
    let output = crate::harness::binary()
        .args(["server", "--override", &format!("log.dirs={}", file.display())])
        .output()
        .expect("runs");
    assert!(!output.status.success());
}

#[test]
fn cordoned_directories_take_nothing_new_and_serve_what_they_have() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("old", PARTITIONS, &[]);
    let name = |at: usize| rig.dirs[at].display().to_string();
    assert_eq!(cordon(&mut client, Some("/elsewhere")), 42, "INVALID_REQUEST");
    assert_eq!(cordon(&mut client, Some(&format!("*,{}", name(0)))), 42);
    assert_eq!(cordon(&mut client, Some(&format!("{},{}", name(0), name(1)))), 0);
    let cordoned = |rig: &Rig| rig.describe().iter().map(|dir| dir.is_cordoned).collect::<Vec<_>>();
    assert_eq!(cordoned(&rig), [true, true, false]);
    client.create_topic("new", PARTITIONS, &[]);
    eventually("all in the third", || rig.places("new")[2].len() == 6);
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "old", partition, "still"), 0);
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    assert_eq!(cordon(&mut client, Some("*")), 0);
    eventually("INVALID_REPLICATION_FACTOR", || create(&mut rig.node.client(), "none", 1) == 38);
    // It holds over a restart, and is taken back.
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_eq!(cordoned(&rig), [true; 3]);
    let mut client = rig.node.client();
    assert_eq!(create(&mut client, "none", 1), 38);
    assert_eq!(cordon(&mut client, None), 0);
    eventually("uncordoned", || create(&mut rig.node.client(), "again", 1) == 0);
    assert_eq!(cordoned(&rig), [false; 3]);
    assert!(rig.node.stop().success());
}

#[test]
fn cordons_of_the_file_hold_from_the_start() {
    let mut rig = Rig::start(&["cordoned.log.dirs=*"]);
    let mut client = rig.node.client();
    assert_eq!(create(&mut client, "none", 1), 38);
    assert_eq!(cordon(&mut client, Some("")), 0);
    eventually("uncordoned", || create(&mut rig.node.client(), "some", 1) == 0);
    assert!(rig.node.stop().success());
}

#[test]
fn a_directory_whose_journal_is_damaged_leaves_the_others_serving() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    let topic = client.topic_id("t");
    for number in 0..20 {
        for partition in 0..PARTITIONS {
            assert_eq!(produce(&mut client, "t", partition, &number.to_string()), 0);
        }
    }
    let places = rig.places("t");
    // Not the metadata log's own, which is the first.
    let damaged = 1;
    rig.node.kill();
    let journals: Vec<PathBuf> = std::fs::read_dir(&rig.dirs[damaged])
        .expect("listed")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("journal"))
        .collect();
    assert!(!journals.is_empty());
    let kept: Vec<(PathBuf, Vec<u8>)> =
        journals.iter().map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect();
    for (path, bytes) in &kept {
        // Every round is a block of its own: a round in the middle is unreadable, those behind it are not.
        let written = bytes.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count();
        let mut bytes = bytes.clone();
        let middle = (written / 2) * 4096;
        bytes[middle..middle + 4096].fill(0x5a);
        std::fs::write(path, bytes).expect("written");
    }
    rig.node.launch();
    assert_eq!(rig.describe().each_codes(), [0, STORAGE_ERROR, 0], "{}", rig.node.log());
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let expected = if places[damaged].contains(&partition) { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
    }
    rig.node.stop_expecting_trouble();
    for (path, bytes) in &kept {
        std::fs::write(path, bytes).expect("mended");
    }
    rig.node.launch();
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let found = values(&mut client, topic, partition).expect("records");
        assert_eq!(found[..20], (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }
    assert!(rig.node.stop_expecting_trouble().success());
}

/// The sum of `topic`'s sizes in the directory, as it says.
fn size_of(rig: &Rig, at: usize, topic: &str, partition: i32) -> Option<i64> {
    let described = rig.describe();
    let topic = described[at].topics.iter().find(|found| *found.name == *topic)?;
    let row = topic.partitions.iter().find(|row| row.partition_index == partition)?;
    assert!(!row.is_future_key && row.offset_lag == 0, "{row:?}");
    Some(row.partition_size)
}

#[test]
fn sizes_count_what_is_in_memory_and_an_offline_directory_says_so_and_no_more() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    client.create_topic("idle", PARTITIONS, &[]);
    eventually("two partitions in each", || rig.places("t").iter().all(|found| found.len() == 2));
    eventually("two idle ones too", || rig.places("idle").iter().all(|found| found.len() == 2));
    let (places, idle) = (rig.places("t"), rig.places("idle"));
    let mut written = [0; PARTITIONS as usize];
    for number in 0..3 {
        for partition in 0..PARTITIONS {
            let records = batch(&[&"v".repeat(10 + 100 * partition as usize), &number.to_string()]);
            written[partition as usize] += records.len() as i64;
            assert_eq!(produce_batch(&mut client, "t", partition, records), 0);
        }
    }
    let segment = |at: usize, partition: i32| {
        let path = rig.dirs[at].join(format!("t-{partition}/00000000000000000000.log"));
        std::fs::metadata(path).map_or(0, |data| data.len() as i64)
    };
    let mut in_memory = 0;
    for at in 0..3 {
        for &partition in &places[at] {
            in_memory += written[partition as usize] - segment(at, partition);
            assert_eq!(size_of(&rig, at, "t", partition), Some(written[partition as usize]));
        }
        assert!(idle[at].iter().all(|&partition| size_of(&rig, at, "idle", partition) == Some(0)));
    }
    assert!(in_memory > 0, "nothing was left in memory: this test says nothing");
    // One goes offline: it says so and names nothing; the others are as they were.
    let aside = rig.dirs[1].with_extension("aside");
    std::fs::rename(&rig.dirs[1], &aside).expect("moved");
    std::fs::write(&rig.dirs[1], "no directory").expect("a file");
    eventually("it is noticed", || rig.describe().each_codes() == [0, STORAGE_ERROR, 0]);
    let described = rig.describe();
    let offline = &described[1];
    assert!(offline.log_dir.ends_with("/b") && offline.topics.is_empty(), "{offline:?}");
    assert_eq!((offline.total_bytes, offline.usable_bytes), (-1, -1));
    for at in [0, 2] {
        assert!(described[at].total_bytes > described[at].usable_bytes && described[at].usable_bytes > 0);
        assert_eq!(
            (rig.places("t")[at].clone(), rig.places("idle")[at].clone()),
            (places[at].clone(), idle[at].clone())
        );
        for &partition in &places[at] {
            assert_eq!(size_of(&rig, at, "t", partition), Some(written[partition as usize]));
        }
    }
    rig.node.stop_expecting_trouble();
    // After a start they are not opened yet: the same, by what the file system says.
    std::fs::remove_file(&rig.dirs[1]).expect("removed");
    std::fs::rename(&aside, &rig.dirs[1]).expect("moved back");
    rig.node.launch();
    assert_eq!(rig.describe().each_codes(), [0, 0, 0]);
    for at in [0, 2] {
        for &partition in &places[at] {
            assert_eq!(size_of(&rig, at, "t", partition), Some(written[partition as usize]));
        }
    }
    assert!(rig.node.stop_expecting_trouble().success());
}
