//! How a node begins and ends: refusals at the start, one process per directory, formatting, signals.

use crate::harness::{PATIENCE, TempDir, TestNode, binary};
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::time::Duration;

fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_second_instance_on_the_same_directory_is_refused() {
    let mut node = TestNode::start();
    let second = binary()
        .args(["server", "--override", "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"])
        .args(["--override", &format!("log.dirs={}", node.data().display())])
        .output()
        .expect("runs");
    assert!(!second.status.success());
    let said = text(&second.stderr);
    assert!(said.contains("in use by another process") && said.contains("log.dirs"), "{said}");
    assert!(node.stop().success());
}

/// As a supervisor has it that does not wait for the end of the one before.
#[test]
fn a_start_waits_for_a_directory_whose_process_is_ending() {
    let mut node = TestNode::start();
    let mut second = binary()
        .args(["server", "--override", "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"])
        .args(["--override", &format!("log.dirs={}", node.data().display())])
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    std::thread::sleep(Duration::from_millis(300));
    node.kill();
    let mut said = String::new();
    for line in BufReader::new(second.stderr.take().expect("piped")).lines() {
        said = said + &line.expect("text") + "\n";
        if said.contains("serves on") {
            break;
        }
    }
    let ended = second.try_wait().expect("asked");
    second.kill().expect("killed");
    second.wait().expect("ends");
    assert!(said.contains("serves on") && ended.is_none(), "{said}");
}

#[test]
fn a_port_in_use_is_refused_by_name() {
    let mut node = TestNode::start();
    let other = TempDir::new();
    let second = binary()
        .args(["server", "--override"])
        .arg(format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:0", node.port))
        .args(["--override", &format!("log.dirs={}", other.path().join("data").display())])
        .output()
        .expect("runs");
    assert!(!second.status.success());
    assert!(text(&second.stderr).contains("listeners"), "{}", text(&second.stderr));
    assert!(node.stop().success());
}

#[test]
fn settings_that_cannot_be_stop_the_start_with_key_and_example() {
    for (setting, expected) in [
        ("node.id=x", "node.id: 'x'"),
        ("process.roles=broker", "controller.quorum.bootstrap.servers: "),
        ("process.roles=zookeeper", "process.roles: "),
        (
            "listeners=SSL://:1,CONTROLLER://:2",
            "listener.security.protocol.map: holds no protocol for the listener CONTROLLER. Example: ",
        ),
        ("num.partitions=0", "num.partitions"),
        ("log.ack.durability=maybe", "log.ack.durability"),
        (
            "replica.lag.time.max.ms=100",
            "replica.fetch.wait.max.ms: 500 contradicts replica.lag.time.max.ms=100, which must be at least as much. Example: ",
        ),
    ] {
        let directory = TempDir::new();
        let data = format!("log.dirs={}", directory.path().join("data").display());
        let output = run(&["server", "--override", &data, "--override", setting]);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{setting}: {said}");
        assert!(!directory.path().join("data").exists(), "nothing was touched");
    }
}

#[test]
fn an_unknown_key_is_warned_of_with_the_nearest_known_one() {
    let mut node = TestNode::start_with(&["log.retention.hour=1"]);
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    assert!(log.contains("WARN") && log.contains("log.retention.hours"), "{log}");
}

#[test]
fn settings_that_kafka_bears_together_are_warned_of() {
    let mut node = TestNode::start_with(&["message.max.bytes=200000000"]);
    assert!(node.stop_expecting_trouble().success());
    let expected = "message.max.bytes: 200000000 contradicts socket.request.max.bytes=104857600";
    assert!(
        node.log().lines().any(|line| line.contains("WARN") && line.contains(expected)),
        "{}",
        node.log()
    );
}

#[test]
fn a_formatted_directory_is_served_and_an_unformatted_one_is_not() {
    let directory = TempDir::new();
    let file = directory.path().join("server.properties");
    let data = directory.path().join("data");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("bound").port();
    let properties = format!(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0\nlog.dirs={}\n",
        data.display()
    );
    std::fs::write(&file, properties).expect("writes");
    let file = file.to_str().expect("text");
    let refused = run(&["server", file]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("storage format"), "{}", text(&refused.stderr));

    let id = text(&run(&["storage", "random-uuid"]).stdout);
    let id = id.trim();
    assert_eq!(id.len(), 22);
    let none = run(&["storage", "format", "-t", id, "-c", file]);
    assert!(!none.status.success(), "the quorum's voters must be said");
    let formatted = run(&["storage", "format", "-t", id, "-c", file, "--standalone"]);
    assert!(formatted.status.success(), "{}", text(&formatted.stderr));
    assert!(text(&formatted.stdout).contains("metadata.version 4.4-IV2"), "{}", text(&formatted.stdout));
    let again = run(&["storage", "format", "-t", id, "-c", file, "--standalone"]);
    assert!(!again.status.success());
    let ignored = run(&["storage", "format", "-t", id, "-c", file, "--standalone", "--ignore-formatted"]);
    assert!(ignored.status.success(), "{}", text(&ignored.stderr));
    let info = text(&run(&["storage", "info", "-c", file]).stdout);
    assert!(info.contains(&format!("cluster.id={id}")) && info.contains("node.id=7"), "{info}");

    let mut child =
        binary().args(["server", file]).stderr(std::process::Stdio::null()).spawn().expect("starts");
    let started = std::time::Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(started.elapsed() < std::time::Duration::from_secs(10));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

#[test]
fn format_creates_missing_parents_of_log_directories() {
    let directory = TempDir::new();
    let file = directory.path().join("server.properties");
    let id = "Y29tcGF0LWNvbXBhdC1jbw";
    for dirs in ["var/lib/a,var/lib/b", "here", "./there/c"] {
        let properties = format!(
            "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs={dirs}\n"
        );
        std::fs::write(&file, properties).expect("writes");
        let words = ["storage", "format", "-t", id, "-c", file.to_str().expect("text"), "--standalone"];
        let formatted = binary().args(words).current_dir(directory.path()).output().expect("runs");
        assert!(formatted.status.success(), "{dirs}: {}", text(&formatted.stderr));
        for dir in dirs.split(',') {
            assert!(directory.path().join(dir).join("meta.properties").exists(), "{dir}");
        }
    }
}

/// Kafka up to 4.3 looks for the levels in `bootstrap.checkpoint`, and would begin with its own if it found none: the
/// tool's user said others, and its followers would never learn what stands in a snapshot at offset 0.
#[test]
fn a_directory_of_an_older_release_begins_as_that_kafka_finds_it() {
    let id = "Y29tcGF0LWNvbXBhdC1jbw";
    let holds = |file: &std::path::Path, word: &[u8]| {
        std::fs::read(file).is_ok_and(|bytes| bytes.windows(word.len()).any(|found| found == word))
    };
    for (release, voters, levels_in) in [
        ("4.4", "--standalone", "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"),
        ("4.3", "--standalone", "bootstrap.checkpoint"),
        ("4.0", "--no-initial-controllers", "bootstrap.checkpoint"),
    ] {
        let directory = TempDir::new();
        let (file, data) = (directory.path().join("server.properties"), directory.path().join("data"));
        let properties = format!(
            "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs={}\n",
            data.display()
        );
        std::fs::write(&file, properties).expect("writes");
        let file = file.to_str().expect("text");
        let words = ["storage", "format", "-t", id, "-c", file, "--release-version", release, voters];
        let formatted = run(&words);
        assert!(formatted.status.success(), "{}", text(&formatted.stderr));
        let one_file = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";
        for name in ["bootstrap.checkpoint", one_file] {
            let found = holds(&data.join(name), b"metadata.version");
            assert_eq!(found, name == levels_in, "{release}: {name}");
        }
        assert_eq!(data.join(one_file).exists(), voters == "--standalone" || levels_in == one_file);
    }
}

#[test]
fn data_without_its_meta_properties_is_not_taken_for_a_new_node() {
    let mut node = TestNode::start();
    assert!(node.stop().success());
    let meta = node.data().join("meta.properties");
    std::fs::remove_file(&meta).expect("it was there");
    let again = binary()
        .args(["server", "--override", "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"])
        .args(["--override", &format!("log.dirs={}", node.data().display())])
        .output()
        .expect("runs");
    assert!(!again.status.success());
    let said = text(&again.stderr);
    assert!(said.contains("__cluster_metadata-0") && said.contains("meta.properties"), "{said}");
    assert!(!meta.exists(), "nothing was formatted");
}

#[test]
fn a_node_with_a_blocked_standard_output_goes_on() {
    let dir = TempDir::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let listeners = "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0";
    let mut child = binary()
        .args(["server", "--override", listeners, "--override"])
        .arg(format!("log.dirs={}", dir.path().join("data").display()))
        .stderr(full)
        .spawn()
        .expect("runs");
    let formatted = dir.path().join("data/.lock");
    let begun = std::time::Instant::now();
    while !formatted.exists() && begun.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(child.try_wait().expect("a child of ours"), None, "it still runs");
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
}

#[test]
fn flags_that_cannot_be_are_refused_by_name() {
    let directory = TempDir::new();
    let file = directory.path().join("server.properties");
    std::fs::write(&file, "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://:1,C://:2\n")
        .expect("writes");
    let file = file.to_str().expect("text");
    let id = "AAAAAAAAAAAAAAAAAAAAZg";
    let output = run(&["storage", "format", "-t", id, "-c", file, "--standalone", "--add-scram", "x"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("--add-scram"), "{}", text(&output.stderr));
    for (voters, expected) in [
        ("x", "expected ID@HOST:PORT:DIRECTORY"),
        ("1@h:1:AAAAAAAAAAAAAAAAAAAAZg,2@i:1:AAAAAAAAAAAAAAAAAAAAZg", "stands there twice"),
    ] {
        let output = run(&["storage", "format", "-t", id, "-c", file, "--initial-controllers", voters]);
        assert!(
            !output.status.success() && text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    }
}

/// Roles, whether the voters are in the file, flags, and what kafka-storage says to them.
type FormatCase<'a> = (&'a str, bool, &'a [&'a str], Result<&'a str, &'a str>);

const FORMAT_ID: &str = "Y29tcGF0LWNvbXBhdC1jbw";

fn check_format(&(roles, is_static, flags, expected): &FormatCase<'_>) {
    let directory = TempDir::new();
    let (file, data) = (directory.path().join("server.properties"), directory.path().join("data"));
    let listener = if roles == "broker" { "PLAINTEXT://127.0.0.1:0" } else { "CONTROLLER://127.0.0.1:0" };
    let quorum = match (is_static, roles) {
        (false, _) => "bootstrap.servers=127.0.0.1:9093",
        (true, "broker") => "voters=5@127.0.0.1:9093",
        (true, _) => "voters=1@127.0.0.1:9093",
    };
    let properties = format!(
        "process.roles={roles}\nnode.id=1\ncontroller.listener.names=CONTROLLER\nlisteners={listener}\n\
         controller.quorum.{quorum}\nlog.dirs={}\n",
        data.display()
    );
    std::fs::write(&file, properties).expect("writes");
    let mut words = vec!["storage", "format", "-t", FORMAT_ID, "-c", file.to_str().expect("text")];
    words.extend_from_slice(flags);
    let output = run(&words);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let case = format!("{roles} static={is_static} {flags:?}: {out}{err}");
    match expected {
        Ok(kind) => {
            assert!(
                output.status.success() && out.starts_with(&format!("Formatting {kind} directory ")),
                "{case}"
            );
        }
        Err(why) => {
            assert!(!output.status.success() && err.contains(why), "{case}");
            assert!(!data.join("meta.properties").exists(), "{case}");
        }
    }
}

/// As Apache Kafka 4.4's kafka-storage answers each of these: `Ok` is the kind of directory that it says it formats.
#[test]
fn format_takes_and_refuses_what_kafkas_does() {
    const ME: &str = "1@127.0.0.1:9093:JEXY6aqzQY-32P5TStzaFg";
    const OTHER: &str = "2@127.0.0.1:9093:MvDxzVmcRsaTz33bUuRU6A";
    let (voters, none_said) =
        ("You cannot specify controller.quorum.voters", "you must specify one of the following");
    let (needs_0, needs_1) = ("Cannot set kraft.version to 1 unless", "Cannot set kraft.version to 0 if");
    let cases: &[FormatCase<'_>] = &[
        ("controller", true, &[], Ok("metadata")),
        ("controller", true, &["-f", "kraft.version=0"], Ok("metadata")),
        ("controller", true, &["-f", "kraft.version=1"], Err(needs_0)),
        ("controller", true, &["-N", "-f", "kraft.version=1"], Err(needs_0)),
        ("controller", true, &["-N"], Ok("metadata")),
        ("controller", true, &["-s"], Err(voters)),
        ("controller", true, &["-I", ME], Err(voters)),
        ("controller", false, &[], Err(none_said)),
        ("controller", false, &["-f", "kraft.version=1"], Err(none_said)),
        ("controller", false, &["-N"], Ok("metadata")),
        ("controller", false, &["-N", "-f", "kraft.version=1"], Ok("metadata")),
        ("controller", false, &["-s"], Ok("dynamic metadata voter")),
        ("controller", false, &["-s", "-f", "kraft.version=1"], Ok("dynamic metadata voter")),
        ("controller", false, &["-s", "-f", "kraft.version=0"], Err(needs_1)),
        (
            "controller",
            false,
            &["-s", "-f", "kraft.version=2"],
            Err("No feature:kraft.version with feature level 2"),
        ),
        ("controller", false, &["-I", ME], Ok("dynamic metadata voter")),
        ("controller", false, &["-I", OTHER], Ok("dynamic metadata")),
        ("controller", false, &["-s", "-f", "metadata.version=30"], Ok("dynamic metadata voter")),
        (
            "controller",
            false,
            &["-s", "-f", "metadata.version=3"],
            Err("No MetadataVersion with feature level 3"),
        ),
        (
            "controller",
            false,
            &["-s", "-r", "3.9", "-f", "metadata.version=30"],
            Err("Use --release-version instead"),
        ),
        ("broker", true, &[], Ok("metadata")),
        ("broker", true, &["-f", "kraft.version=1"], Err(needs_0)),
        ("broker", true, &["-I", ME], Err(voters)),
        ("broker", false, &[], Ok("metadata")),
        ("broker", false, &["-f", "kraft.version=0"], Err(needs_1)),
        ("broker", false, &["-f", "kraft.version=1"], Ok("metadata")),
        ("broker", false, &["-s"], Err("You can only use --standalone on a controller")),
        ("broker", false, &["-I", ME], Ok("dynamic metadata voter")),
        ("broker", false, &["-I", OTHER], Ok("dynamic metadata")),
    ];
    cases.iter().for_each(check_format);
}

#[test]
fn every_key_is_explained() {
    let output = run(&["config", "explain", "--all"]);
    assert!(output.status.success());
    let table = text(&output.stdout);
    assert!(table.lines().count() > 300, "{}", table.lines().count());
    for word in ["applied", "emulated", "ignored", "not available"] {
        assert!(table.contains(word), "{word}");
    }
}

#[test]
fn a_key_is_explained_by_name() {
    let output = run(&["config", "explain", "log.journal.bytes", "retention.ms", "num.io.threads"]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    for words in [
        "12582912 to 8589934592",
        "in bytes",
        "allocates it with the directory's first record",
        "retention.ms",
        "num.io.threads",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    let output = run(&["config", "explain", "log.journal.byte"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("did you mean log.journal.bytes"), "{}", text(&output.stderr));
    let keys = run(&["config", "explain", "--all"]);
    let keys: Vec<String> = text(&keys.stdout)
        .lines()
        .skip(1)
        .filter_map(|line| {
            line.trim_start_matches("topic: ").trim_start_matches("group: ").split_whitespace().next()
        })
        .map(|key| key.trim_start_matches("client-metrics:").to_owned())
        .filter(|key| !key.is_empty())
        .collect();
    let words: Vec<&str> = ["config", "explain"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let output = run(&words);
    assert!(output.status.success(), "every key: {}", text(&output.stderr));
}

#[test]
fn values_that_cannot_be_are_refused_with_key_value_range_and_unit() {
    for (given, words) in [
        (
            "log.journal.bytes=1",
            "1 for configuration log.journal.bytes: expected a whole number of bytes, 12582912 to 8589934592",
        ),
        ("log.journal.bytes=9000000000000", "12582912 to 8589934592"),
        ("log.journal.linger.us=1000000", "a whole number of microseconds, 0 to 100000"),
        ("log.journal.append.bytes.max=-1", "a whole number of bytes, 0 to 2097152"),
        ("log.cache.bytes=-5", "a whole number of bytes, 0 to 1099511627776"),
        ("log.cache.bytes=1000000000000", "half of this machine's memory"),
        ("log.dir.min.free.bytes=-2", "a whole number of bytes, 0 to 1125899906842624, or -1"),
        ("log.dir.min.free.bytes=1125899906842624", "more than the file system of"),
        ("log.open.files.max=3", "a whole number of files, 64 to 1048576, or -1"),
        ("log.scrub.bytes.per.second=5", "a whole number of bytes a second, 65536 to 1099511627776, or 0"),
        ("log.scrub.interval.ms=1", "a whole number of milliseconds, 1000 to 315360000000"),
        ("log.ack.durability=maybe", "one of synced, written"),
    ] {
        let mut node = TestNode::new(None, &[given]);
        node.launch_unawaited();
        assert!(!node.wait().success(), "{given}");
        let log = node.log();
        let key = given.split('=').next().expect("a key");
        assert!(log.contains(words) && log.contains(key), "{given}: {log}");
    }
}

#[test]
fn effective_settings_are_logged_at_the_start() {
    let mut node = TestNode::start_with(&["log.open.files.max=100", "log.cache.bytes=1048576"]);
    let log = node.log();
    for words in [
        "limits: 100 log files open at a time (log.open.files.max)",
        "1 MiB of recent batches in memory (log.cache.bytes)",
        "MiB is set aside with the first record (log.journal.bytes)",
        "(log.dir.min.free.bytes)",
    ] {
        assert!(log.contains(words), "{words} in {log}");
    }
    assert!(log.contains(&format!("log directory {}: ", node.data().display())), "{log}");
    assert!(node.stop().success());
}

#[test]
fn segments_end_where_the_process_may_write_no_further() {
    use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
    // 16 MiB, in the shell's blocks of 512 bytes.
    let small = ["log.journal.bytes=12582912"];
    let mut node = TestNode::start_limited(Some("ulimit -f 32768"), &small);
    assert!(node.log().contains("(ulimit -f). Segments are limited to that size"), "{}", node.log());
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let value = "x".repeat(900_000);
    for _ in 0..40 {
        let data =
            PartitionProduceData { records: Some(crate::harness::batch(&[&value])), ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request = barnabas_wire::messages::ProduceRequest {
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
            ..Default::default()
        };
        let barnabas_wire::messages::ResponseBody::Produce(response) = client.call(request, 9) else {
            panic!("another response")
        };
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    }
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    let segments = std::fs::read_dir(node.data().join("t-0")).expect("a folder");
    let sizes: Vec<u64> = segments
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "log"))
        .map(|entry| entry.metadata().expect("a file").len())
        .collect();
    assert!(sizes.len() >= 3 && sizes.iter().all(|size| *size <= 16 << 20), "{sizes:?}");
}

#[test]
fn an_idle_node_is_small_and_a_signal_ends_it() {
    let mut node = TestNode::start();
    let bytes = node.rss_bytes();
    assert!(bytes < 60 << 20, "{bytes} bytes in a debug build");
    assert!(node.stop().success());
    assert!(node.data().join(".kafka_cleanshutdown").exists());
}

/// A node that made topics and was killed; with the metadata log's file.
fn killed_with_topics() -> (TestNode, std::path::PathBuf) {
    let mut node = TestNode::start();
    for topic in ["one", "two", "three", "four"] {
        node.client().create_topic(topic, 3, &[]);
    }
    // A checkpoint is a second old at most.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    node.kill();
    let log = node.data().join("__cluster_metadata-0/00000000000000000000.log");
    (node, log)
}

/// Flips a bit, `back` bytes before the file's end or in its middle. Returns its length.
fn flip(file: &std::path::Path, back: Option<usize>) -> usize {
    let mut bytes = std::fs::read(file).expect("reads");
    let at = bytes.len() - back.unwrap_or(bytes.len() / 2);
    bytes[at] ^= 1;
    std::fs::write(file, &bytes).expect("writes");
    bytes.len()
}

#[test]
fn damage_in_the_metadata_log_stops_the_start_and_cuts_nothing() {
    for has_checkpoint in [true, false] {
        let (node, file) = killed_with_topics();
        let len = flip(&file, if has_checkpoint { Some(5) } else { None });
        if !has_checkpoint {
            std::fs::remove_file(node.data().join("recovery-point-offset-checkpoint")).expect("removed");
        }
        let output = node.command().output().expect("runs");
        assert!(!output.status.success());
        let said = text(&output.stderr);
        for word in ["00000000000000000000.log", "damage", "at byte", "(offset "] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(std::fs::metadata(&file).expect("there").len(), len as u64);
    }
}

#[test]
fn after_a_cut_of_the_metadata_log_nothing_is_put_aside() {
    let (mut node, file) = killed_with_topics();
    std::fs::remove_file(node.data().join("recovery-point-offset-checkpoint")).expect("removed");
    flip(&file, Some(5));
    std::fs::create_dir(node.data().join("lost-0")).expect("made");
    node.launch();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    assert!(log.contains("from the metadata log"), "{log}");
    assert!(
        log.contains("lost-0 belongs to no known topic") && log.contains("the directory was not changed"),
        "{log}"
    );
    assert!(node.data().join("lost-0").exists());
}

/// systemd's `Type=notify`: a unit that waits for the node starts once the node serves, not before.
#[test]
fn supervisor_is_notified_of_serving_and_of_the_stop() {
    let directory = TempDir::new();
    let path = directory.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let received = || {
        let mut bytes = [0; 512];
        let length = socket.recv(&mut bytes).expect("a datagram");
        text(&bytes[..length])
    };
    let mut node = TestNode::new(Some(&format!("export NOTIFY_SOCKET={}", path.display())), &[]);
    node.launch_unawaited();
    let state = received();
    assert!(state.starts_with("READY=1\nSTATUS=node 1 of cluster "), "{state}");
    assert!(state.contains(&format!(" serves on PLAINTEXT://127.0.0.1:{}", node.port)), "{state}");
    // Ready means that a client's first connection is accepted.
    drop(node.client());
    assert!(node.stop().success());
    assert!(received().starts_with("STOPPING=1"));
}
