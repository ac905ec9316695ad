//! Paths of `log.dirs` that cannot hold a log: the refusal names the path and says plainly what it is.

use crate::harness::quorum::{format, properties, random_uuid};
use crate::harness::{TempDir, TestNode, binary, free_port, trouble};
use std::path::Path;

/// What a node without a file says, which is refused with this value of `log.dirs`.
fn refused(log_dirs: &str, more: &[&str]) -> String {
    let ports = (free_port(), free_port());
    let listeners = format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}", ports.0, ports.1);
    let log_dirs = format!("log.dirs={log_dirs}");
    let mut command = binary();
    command.arg("server");
    for text in [&*listeners, &log_dirs].into_iter().chain(more.iter().copied()) {
        command.args(["--override", text]);
    }
    let output = command.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{log_dirs}: {said}");
    said
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn paths_that_hold_no_log_are_named_plainly() {
    let root = TempDir::new();
    let (good, file) = (root.path().join("good"), root.path().join("file"));
    std::fs::write(&file, "no directory").expect("written");
    let below = file.join("data");
    let orphan = root.path().join("mounted").join("data");
    let parent = orphan.parent().expect("one").display();
    let file_problem = format!("log.dirs: {}: it is a file, not a directory", file.display());
    let wanted = [
        (shown(&file), file_problem.clone()),
        (
            shown(&below),
            format!("log.dirs: {}: {} is a file, not a directory", below.display(), file.display()),
        ),
        (
            shown(&orphan),
            format!("log.dirs: {}: its parent directory {parent} does not exist", orphan.display()),
        ),
        (format!("{0}/x/../a,{0}/a", root.path().display()), "are the same directory".to_owned()),
        (format!("{},,{}", good.display(), orphan.display()), "log.dirs: an entry is empty".to_owned()),
        (format!("{},", good.display()), "log.dirs: an entry is empty".to_owned()),
        (String::new(), "log.dirs: names no directory".to_owned()),
    ];
    std::fs::create_dir(root.path().join("x")).expect("made");
    for (log_dirs, wanted) in wanted {
        let said = refused(&log_dirs, &[]);
        assert!(said.contains(&wanted), "{log_dirs}: {said}");
        assert!(!good.exists(), "{log_dirs}");
    }
    let of_metadata = format!("metadata.log.dir={}", file.display());
    let said = refused(&shown(&good), &[&of_metadata]);
    assert!(said.contains(&format!("metadata.{file_problem}").replace("log.dirs", "log.dir")), "{said}");
    // None is left beside the metadata log's.
    let of_metadata = format!("metadata.log.dir={}", good.display());
    let said = refused(&shown(&file), &[&of_metadata]);
    let wanted = format!("none of the directories can be used. {}: it is a file", file.display());
    assert!(said.contains(&wanted) && !good.exists(), "{said}");
}

#[test]
fn file_beside_a_directory_is_named_in_one_line() {
    let root = TempDir::new();
    let (good, file) = (root.path().join("good"), root.path().join("file"));
    std::fs::write(&file, "no directory").expect("written");
    let mut node = TestNode::new(None, &[&format!("log.dirs={},{}", good.display(), file.display())]);
    node.launch();
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    let lines: Vec<&str> = trouble(&log).filter(|line| line.contains(&shown(&file))).collect();
    assert!(lines.len() == 1 && lines[0].contains("it is a file, not a directory"), "{lines:#?}");
}

#[test]
fn bare_name_is_a_directory_below_the_working_one() {
    let root = TempDir::new();
    let mut node = TestNode::new(None, &["log.dirs=data,data"]);
    node.set_working_directory(root.path());
    node.launch();
    assert!(node.stop_expecting_trouble().success());
    assert!(node.log().contains("log.dirs: data stands there twice and counts once"), "{}", node.log());
    assert!(root.path().join("data").join("meta.properties").is_file());
}

#[test]
fn refused_format_makes_no_directory() {
    let root = TempDir::new();
    let (first, file) = (root.path().join("first"), root.path().join("file"));
    std::fs::write(&file, "no directory").expect("written");
    let ports = (free_port(), free_port());
    let both = |second: &Path, more: &str| {
        let log_dirs = format!("log.dirs={},{}\n{more}", first.display(), second.display());
        properties(root.path(), 1, "broker,controller", ports, &log_dirs)
    };
    let (ok, said) = format(&both(&file, ""), &random_uuid(), &["--standalone"]);
    assert!(!ok && said.contains(&format!("{}: it is a file, not a directory", file.display())), "{said}");
    let (ok, said) = format(&both(&file.join("x"), ""), &random_uuid(), &["--standalone"]);
    assert!(!ok && said.contains(&format!("{} is a file, not a directory", file.display())), "{said}");
    let second = root.path().join("second");
    let (ok, said) = format(&both(&second, "log.retention.hours=many"), &random_uuid(), &["--standalone"]);
    assert!(!ok && said.contains("log.retention.hours"), "{said}");
    let (ok, said) = format(&both(&second, "replica.lag.time.max.ms=100"), &random_uuid(), &["--standalone"]);
    assert!(!ok && said.contains("replica.lag.time.max.ms=100"), "{said}");
    assert!(!first.exists() && !second.exists());
    // One of two is another node's.
    let theirs =
        properties(root.path(), 2, "broker,controller", ports, &format!("log.dirs={}", second.display()));
    let id = random_uuid();
    let (ok, said) = format(&theirs, &id, &["--standalone"]);
    assert!(ok, "{said}");
    let (ok, said) = format(&both(&second, ""), &id, &["--standalone"]);
    assert!(!ok && said.contains("belongs to node 2, not to 1"), "{said}");
    assert!(!first.exists());
}
