//! `barnabas metadata-quorum`, asked of brokers and of controllers.

use crate::harness::quorum::prepared;
use crate::harness::{TestNode, binary, free_port};

fn run(words: &str) -> (String, String, bool) {
    let output = binary().arg("metadata-quorum").args(words.split_whitespace()).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

fn refused(words: &str) -> String {
    let (out, err, is_success) = run(words);
    assert!(!is_success, "{words}: {out}");
    err
}

#[test]
fn quorum_is_described_by_controllers_as_by_brokers() {
    let mut node = TestNode::start();
    let broker = format!("--bootstrap-server 127.0.0.1:{}", node.port);
    let controller = format!("--bootstrap-controller 127.0.0.1:{}", node.controller_port);
    let described = |way: &str| {
        let (out, err, is_success) = run(&format!("{way} describe --status"));
        assert!(is_success, "{way}: {err}");
        // The metadata log grows between two questions.
        out.lines().filter(|line| !line.starts_with("HighWatermark:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let by_broker = described(&broker);
    assert_eq!(by_broker[1], "LeaderId:               1");
    assert_eq!(described(&controller), by_broker);
    let (out, err, _) = run(&format!("{controller} describe --replication"));
    assert!(out.starts_with("NodeId") && out.contains("Leader"), "{out} {err}");

    let swapped = format!("--bootstrap-controller 127.0.0.1:{} describe --status", node.port);
    assert!(refused(&swapped).contains("MISMATCHED_ENDPOINT_TYPE"), "{}", refused(&swapped));
    let swapped = format!("--bootstrap-server 127.0.0.1:{} describe --status", node.controller_port);
    assert!(refused(&swapped).contains("MISMATCHED_ENDPOINT_TYPE"), "{}", refused(&swapped));
    assert!(node.stop().success());
}

#[test]
fn controller_to_add_is_read_from_its_files() {
    let mut node = TestNode::start();
    let file = node.dir.path().join("controller.properties");
    let data = node.data();
    let text = format!(
        "node.id=7\nprocess.roles=controller\nlog.dirs={}\nlisteners=CONTROLLER://h:{}\ncontroller.listener.names=CONTROLLER\n",
        data.display(),
        node.controller_port
    );
    std::fs::write(&file, &text).expect("written");
    let add = format!(
        "--bootstrap-controller 127.0.0.1:{} --command-config {} add-controller --dry-run",
        node.controller_port,
        file.display()
    );
    let meta = std::fs::read_to_string(data.join("meta.properties")).expect("formatted");
    let id = meta.lines().find_map(|line| line.strip_prefix("directory.id=")).expect("an id");
    let port = node.controller_port;
    let expected = format!(
        "DRY RUN of adding controller 7 with directory id {id} and endpoints: CONTROLLER://h:{port}\n"
    );
    assert_eq!(run(&add), (expected, String::new(), true));

    std::fs::write(&file, text.replace("process.roles=controller", "process.roles=broker")).expect("written");
    let said = refused(&add);
    assert!(
        said.contains("process.roles has no controller. Is it a controller's server.properties?"),
        "{said}"
    );
    assert!(node.stop().success());
}

#[test]
fn flags_of_another_action_are_refused() {
    for (words, refusal) in [
        (
            "describe --status",
            "--bootstrap-server or --bootstrap-controller is missing. Example: --bootstrap-server 127.0.0.1:9092",
        ),
        (
            "--bootstrap-server h:1 --bootstrap-controller h:2 describe --status",
            "--bootstrap-server cannot be used together with --bootstrap-controller",
        ),
        ("--bootstrap-server h:1 describe", "describe takes exactly one of --status and --replication"),
        (
            "--bootstrap-server h:1 describe --status --replication",
            "--status cannot be used together with --replication",
        ),
        (
            "--bootstrap-server h:1 describe --status --human-readable",
            "--status cannot be used together with --human-readable",
        ),
        (
            "--bootstrap-server h:1 describe --status --dry-run",
            "--dry-run goes with add-controller, remove-controller, not with describe",
        ),
        (
            "--bootstrap-server h:1 remove-controller --status -i 1 -d x",
            "--status goes with describe, not with remove-controller",
        ),
        ("--bootstrap-server h:1 remove-controller -i -1 -d x", "--controller-id takes a node's id, not -1"),
        (
            "--bootstrap-server h:1 add-controller",
            "add-controller needs --command-config: the server.properties of that controller",
        ),
        ("--bootstrap-server h:1 elect", "'elect' is none of describe, add-controller, remove-controller"),
    ] {
        assert_eq!(refused(words), format!("metadata-quorum: {refusal}\n"), "{words}");
    }
}

#[test]
fn voter_of_the_file_has_no_directory_in_descriptions() {
    // A cluster id that many examples have: its last letter says more than the id holds.
    let id = "MkU3OEVBNTcwNTJENDM2Qk";
    let ports = (free_port(), free_port());
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{}", ports.1);
    let mut node = prepared(None, 1, "broker,controller", ports, id, &voters, &[]);
    node.launch();
    let way = format!("--bootstrap-server 127.0.0.1:{}", ports.0);
    let (out, err, is_success) = run(&format!("{way} describe --replication"));
    assert!(is_success, "{err}");
    let row: Vec<&str> = out.lines().last().expect("a row").split_whitespace().collect();
    assert_eq!(row[..2], ["1", "AAAAAAAAAAAAAAAAAAAAAA"], "{out}");
    let (out, err, is_success) = run(&format!("{way} describe --status"));
    assert!(is_success && out.contains(id) && !out.contains("directoryId"), "{out}{err}");
    assert!(node.stop().success());
}
