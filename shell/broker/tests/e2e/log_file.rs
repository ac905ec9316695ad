//! The node's log in a file: its size is bounded, and a file that was moved away is opened again.

use crate::harness::patience::until;
use crate::harness::{TempDir, TestNode, binary};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Makes the node write a line.
fn say(node: &TestNode) {
    let pid = Pid::from_raw(node.pid().cast_signed()).expect("a pid");
    kill_process(pid, Signal::QUIT).expect("signalled");
}

#[test]
fn log_file_takes_all_lines_and_survives_logrotate() {
    let dir = TempDir::new();
    let (file, moved) = (dir.path().join("node.log"), dir.path().join("node.log-20261129"));
    let mut node = TestNode::start_with(&[&format!("log.file={}", file.display())]);
    until("the first lines", || text(&file).contains("serves").then_some(()));
    std::fs::rename(&file, &moved).expect("moved");
    // The node looks once a second; lines until then go to the moved file.
    until("a new file", || {
        say(&node);
        text(&file).contains("SIGQUIT").then_some(())
    });
    assert!(node.stop().success());
    assert_eq!(node.log(), "", "nothing is left for standard error");
    let (old, new) = (text(&moved), text(&file));
    assert!(old.lines().next().is_some_and(|line| line.contains("barnabas 0.1.0")), "{old}");
    assert!(
        new.lines().last().is_some_and(|line| line.contains("stopped")),
        "the last line is written: {new}"
    );
    assert!(old.ends_with('\n') && !new.contains("WARN") && !new.contains('\u{1b}'), "{new}");
}

#[test]
fn log_file_is_bounded_by_size_and_number() {
    let dir = TempDir::new();
    let file = dir.path().join("node.log");
    let settings = [
        &*format!("log.file={}", file.display()),
        "log.file.bytes.max=4096",
        "log.files.max=3",
        "log.format=json",
    ];
    let mut node = TestNode::start_with(&settings);
    until("three files", || {
        say(&node);
        dir.path().join("node.log.2").exists().then_some(())
    });
    (0..50).for_each(|_| say(&node));
    assert!(node.stop().success());
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["node.log", "node.log.1", "node.log.2"]);
    for name in names {
        let text = text(&dir.path().join(&name));
        assert!(text.len() <= 4096 && !text.is_empty(), "{name}: {}", text.len());
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
    }
}

#[test]
fn log_file_that_cannot_be_is_refused_at_the_start() {
    let dir = TempDir::new();
    let file = dir.path().join("a.log").display().to_string();
    let none = dir.path().join("none/a.log").display().to_string();
    for (settings, problem) in [
        (vec![format!("log.file={none}")], "create it"),
        (vec![format!("log.file={}", dir.path().display())], "is no file"),
        (
            vec![format!("log.file={file}"), format!("audit.log.file={file}")],
            "audit.log.file names the same file",
        ),
        (vec![format!("log.file={file}"), "log.files.max=0".to_owned()], "log.files.max"),
    ] {
        let overrides = settings.iter().flat_map(|setting| ["--override", setting]);
        let told = binary().arg("server").args(overrides).current_dir(dir.path()).output().expect("runs");
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(!told.status.success() && said.contains(problem), "{said}");
    }
}
