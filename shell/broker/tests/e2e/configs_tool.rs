//! `barnabas configs` for every kind of entity: altered, described, removed, refused.

use crate::harness::quorum::{eventually, prepared, random_uuid};
use crate::harness::{TestNode, binary, free_port};

struct Told {
    out: Vec<String>,
    err: String,
    is_success: bool,
}

fn ask(way: &str, words: &str) -> Told {
    let output = binary().arg("configs").args(way.split_whitespace()).args(words.split_whitespace()).output();
    let output = output.expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Told {
        out: text(&output.stdout).lines().map(str::to_owned).collect(),
        err: text(&output.stderr),
        is_success: output.status.success(),
    }
}

fn brokers(node: &TestNode) -> String {
    format!("--bootstrap-server 127.0.0.1:{}", node.port)
}

fn run(node: &TestNode, words: &str) -> Vec<String> {
    let told = ask(&brokers(node), words);
    assert!(told.is_success, "{words}: {}", told.err);
    assert_eq!(told.err, "", "{words}");
    told.out
}

fn refused(node: &TestNode, words: &str) -> String {
    let told = ask(&brokers(node), words);
    assert!(!told.is_success, "{words}: {:?}", told.out);
    assert_eq!(told.out, Vec::<String>::new(), "{words}");
    told.err
}

/// The row of `key`.
fn row<'a>(lines: &'a [String], key: &str) -> Option<&'a str> {
    let begin = format!("  {key}=");
    lines.iter().find(|line| line.starts_with(&begin)).map(String::as_str)
}

/// One kind of entity, from nothing set to nothing set.
struct Life {
    /// The flags that name the entity, and others that mean the same.
    flags: [&'static str; 2],
    /// As it is printed: "topic t".
    entity: &'static str,
    key: &'static str,
    value: &'static str,
    other: &'static str,
    /// What the cluster refuses, and in which words.
    wrong: (&'static str, &'static str),
}

fn live(node: &TestNode, life: &Life) {
    let Life { flags, entity, key, value, other, wrong } = *life;
    let [flag, same] = flags;
    let (completed, head) = match entity {
        "" => (
            "default config for brokers in the cluster".to_owned(),
            "Default configs for brokers in the cluster are:".to_owned(),
        ),
        entity => (format!("config for {entity}"), format!("Dynamic configs for {entity} are:")),
    };
    let completed = [format!("Completed updating {completed}.")];
    assert_eq!(run(node, &format!("--alter {flag} --add-config {key}={value}")), completed);
    let described = run(node, &format!("--describe {flag}"));
    assert_eq!(described[0], head);
    let set = row(&described, key).expect("it is set");
    assert!(set.starts_with(&format!("  {key}={value} sensitive=false synonyms={{")), "{set}");
    assert_eq!(run(node, &format!("--describe {same}")), described, "{same}");
    let all = run(node, &format!("--describe --all {flag}"));
    assert!(all.len() >= described.len() && row(&all, key) == Some(set), "{all:?}");

    // Another value, by a file.
    let file = node.dir.path().join("add-config");
    // A colon ends a key in Java's format.
    let escaped = key.replace(':', "\\:");
    std::fs::write(&file, format!("# {key}\n{escaped} = {other}\n")).expect("written");
    assert_eq!(run(node, &format!("--alter {same} --add-config-file {}", file.display())), completed);
    let changed = run(node, &format!("--describe {flag}"));
    let set = row(&changed, key).expect("it is set");
    assert!(set.starts_with(&format!("  {key}={other} sensitive=")), "{set}");

    let why = refused(node, &format!("--alter {flag} --add-config {}", wrong.0));
    assert!(why.contains(wrong.1), "{why}");
    assert_eq!(run(node, &format!("--describe {flag}")), changed, "what is refused changes nothing");

    assert_eq!(run(node, &format!("--alter {flag} --delete-config {key}")), completed);
    let removed = run(node, &format!("--describe {flag}"));
    assert!(row(&removed, key).is_none_or(|line| !line.contains(&format!("={other} "))), "{removed:?}");
}

#[test]
fn topic_is_configured() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    live(
        &node,
        &Life {
            flags: ["--topic t", "--entity-type topics --entity-name t"],
            entity: "topic t",
            key: "retention.ms",
            value: "1000",
            other: "2000",
            wrong: ("retention.ms=-7", "topic t: INVALID_CONFIG"),
        },
    );
    assert_eq!(
        run(&node, "--alter --topic t --add-config cleanup.policy=[compact,delete],retention.ms=5").len(),
        1
    );
    let described = run(&node, "--describe --entity-type topics");
    assert!(
        row(&described, "cleanup.policy").is_some_and(|line| line.contains("=compact,delete ")),
        "{described:?}"
    );
    let missing = ["The topic 'none' doesn't exist and doesn't have dynamic config."];
    assert_eq!(run(&node, "--describe --topic none"), missing);
    let why = refused(&node, "--describe --all --topic none");
    assert_eq!(why, "configs: topic none: UNKNOWN_TOPIC_OR_PARTITION\n");
    let why = refused(&node, "--alter --topic none --add-config retention.ms=1");
    assert!(why.starts_with("configs: topic none: UNKNOWN_TOPIC_OR_PARTITION"), "{why}");
    assert!(node.stop().success());
}

#[test]
fn broker_and_the_default_of_all_are_configured() {
    let mut node = TestNode::start();
    live(
        &node,
        &Life {
            flags: ["--broker 1", "--entity-type brokers --entity-name 1"],
            entity: "broker 1",
            key: "message.max.bytes",
            value: "2000000",
            other: "3000000",
            wrong: ("message.max.bytes=many", "broker 1: INVALID_REQUEST: Invalid value many"),
        },
    );
    live(
        &node,
        &Life {
            flags: ["--broker-defaults", "--entity-type brokers --entity-default"],
            entity: "",
            key: "message.max.bytes",
            value: "2000000",
            other: "3000000",
            wrong: ("message.max.bytes=-1", "broker: INVALID_REQUEST: Invalid value -1"),
        },
    );
    let mut every = run(&node, "--describe --entity-type brokers");
    every.retain(|line| !line.starts_with("  "));
    let heads = ["Dynamic configs for broker 1 are:", "Default configs for brokers in the cluster are:"];
    assert_eq!(every, heads);
    let missing = ["The broker '7' doesn't exist and doesn't have dynamic config."];
    assert_eq!(run(&node, "--describe --broker 7"), missing);
    assert_eq!(
        refused(&node, "--alter --broker 7 --add-config message.max.bytes=1"),
        "configs: there is no broker 7\n"
    );

    // What would have no effect is refused with the place to set it.
    for (flags, key, place) in [
        ("--broker-defaults", "super.users=User:x", "server.properties of every broker and controller"),
        ("--broker 1", "allow.everyone.if.no.acl.found=true", "restart them one by one"),
        (
            "--broker 1",
            "listener.name.typo.ssl.keystore.location=/k",
            "Its listeners are controller, plaintext",
        ),
    ] {
        let why = refused(&node, &format!("--alter {flags} --add-config {key}"));
        assert!(why.contains("INVALID_REQUEST") && why.contains(place), "{why}");
    }

    // A controller is asked instead of a broker.
    let controller = format!("--bootstrap-controller 127.0.0.1:{}", node.controller_port);
    let told = ask(&controller, "--alter --broker-defaults --add-config message.max.bytes=1500000");
    assert_eq!(told.out, ["Completed updating default config for brokers in the cluster."], "{}", told.err);
    let described = run(&node, "--describe --broker-defaults");
    assert!(
        row(&described, "message.max.bytes").is_some_and(|line| line.contains("=1500000 ")),
        "{described:?}"
    );
    let told = ask(&controller, "--describe --broker-defaults");
    assert_eq!(told.out, described, "{}", told.err);
    assert!(node.stop().success());
}

#[test]
fn loggers_of_a_broker_are_configured() {
    let mut node = TestNode::start();
    live(
        &node,
        &Life {
            flags: ["--broker-logger 1", "--entity-type broker-loggers --entity-name 1"],
            entity: "broker-logger 1",
            key: "barnabas::requests::connection",
            value: "WARN",
            other: "ERROR",
            wrong: ("root=LOUD", "broker-logger 1: INVALID_CONFIG"),
        },
    );
    let levels = run(&node, "--describe --broker-logger 1");
    assert!(
        levels.len() > 5 && row(&levels, "root").is_some_and(|line| line.contains("=INFO ")),
        "{levels:?}"
    );
    let why = refused(&node, "--alter --broker-logger 1 --add-config rooot=DEBUG");
    assert_eq!(why, "configs: broker 1 has no such loggers: rooot\n");
    let why = refused(&node, "--alter --broker-logger 1 --delete-config root");
    assert!(why.contains("INVALID_REQUEST"), "{why}");
    assert!(node.stop().success());
}

#[test]
fn group_is_configured() {
    let mut node = TestNode::start();
    live(
        &node,
        &Life {
            flags: ["--group g", "--entity-type groups --entity-name g"],
            entity: "group g",
            key: "consumer.session.timeout.ms",
            value: "50000",
            other: "51000",
            wrong: ("consumer.session.timeout.ms=1", "group g: INVALID_CONFIG"),
        },
    );
    assert_eq!(run(&node, "--alter --group later --add-config consumer.heartbeat.interval.ms=6000").len(), 1);
    let described = run(&node, "--describe --entity-type groups");
    assert!(described.contains(&"Dynamic configs for group later are:".to_owned()), "{described:?}");
    let missing = ["The group 'none' doesn't exist and doesn't have dynamic config."];
    assert_eq!(run(&node, "--describe --group none"), missing);
    assert!(node.stop().success());
}

#[test]
fn client_metrics_are_configured() {
    let mut node = TestNode::start();
    live(
        &node,
        &Life {
            flags: ["--client-metrics m", "--entity-type client-metrics --entity-name m"],
            entity: "client-metric m",
            key: "interval.ms",
            value: "1000",
            other: "2000",
            wrong: ("interval.ms=1", "client-metric m: INVALID_CONFIG"),
        },
    );
    assert!(node.stop().success());
}

#[test]
fn actions_and_flags_that_do_not_go_together_are_refused() {
    let one = "give exactly one of --describe and --alter";
    for (words, refusal) in [
        ("--topic t", one),
        ("--describe --alter --topic t", one),
        ("--describe --topic t --add-config a=1", "--describe cannot be used together with --add-config"),
        (
            "--describe --topic t --add-config-file f",
            "--describe cannot be used together with --add-config-file",
        ),
        ("--describe --topic t --delete-config a", "--describe cannot be used together with --delete-config"),
        ("--alter --all --topic t --add-config a=1", "--alter cannot be used together with --all"),
        (
            "--describe --topic t --bootstrap-controller h:1",
            "--bootstrap-server cannot be used together with --bootstrap-controller",
        ),
    ] {
        let told = ask("--bootstrap-server 127.0.0.1:1", words);
        assert_eq!((told.err, told.is_success), (format!("configs: {refusal}\n"), false), "{words}");
    }
}

#[test]
fn configs_of_a_controller_alone_are_altered_and_described() {
    let id = random_uuid();
    let port = free_port();
    let voters = format!("controller.quorum.voters=3@127.0.0.1:{port}");
    let mut controller = prepared(None, 3, "controller", (0, port), &id, &voters, &[]);
    controller.launch_unawaited();
    let mut broker = prepared(None, 1, "broker", (free_port(), 0), &id, &voters, &[]);
    broker.launch();
    let way = format!("--bootstrap-controller 127.0.0.1:{port}");
    let alter = |node: i32, change: &str| ask(&way, &format!("--alter --broker {node} {change}"));
    // It registers with itself once it leads.
    eventually("the controller is listed and takes it", || {
        let told = alter(3, "--add-config message.max.bytes=54321");
        assert!(told.is_success || told.err.contains("there is no controller 3"), "{}", told.err);
        told.is_success
    });
    let shown = || {
        let told = ask(&way, "--describe --broker 3");
        assert!(told.is_success, "{}", told.err);
        row(&told.out, "message.max.bytes").map(str::to_owned)
    };
    eventually("it is in force", || {
        shown().is_some_and(|row| row.contains("DYNAMIC_BROKER_CONFIG:message.max.bytes=54321"))
    });
    let told = alter(4, "--add-config message.max.bytes=54321");
    assert!(!told.is_success && told.err.contains("there is no controller 4"), "{}", told.err);
    let told = alter(3, "--delete-config message.max.bytes");
    assert!(told.is_success, "{}", told.err);
    eventually("it is gone", || shown().is_none());
    assert!(broker.stop().success(), "{}", broker.log());
    assert!(controller.stop().success(), "{}", controller.log());
}
