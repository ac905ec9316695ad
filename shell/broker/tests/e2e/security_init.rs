//! `barnabas security init`: what it prints, run word for word; and what it does not write over.

use crate::harness::patience::eventually;
use crate::harness::{TempDir, binary, free_port};
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// As many ports in a row as asked for; the first of them.
fn ports_in_a_row(count: u16) -> u16 {
    let mut last = VecDeque::new();
    loop {
        let port = free_port();
        if last.back().is_some_and(|before| before + 1 != port) {
            last.clear();
        }
        last.push_back(port);
        if last.len() == usize::from(count) {
            return last[0];
        }
    }
}

fn init(dir: &Path, nodes: &str, port: u16) -> Output {
    let words =
        ["security", "init", "--nodes", nodes, "--host", "localhost", "--port", &port.to_string(), "--dir"];
    binary().args(words).arg(dir).output().expect("runs")
}

/// A printed command, by a shell that finds the program under test.
fn shell(line: &str) -> Command {
    let program = binary();
    let folder = Path::new(program.get_program()).parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", format!("{folder}:{path}")).stdin(Stdio::null());
    command
}

fn run(line: &str) -> String {
    let Output { status, stdout, stderr } = shell(line).output().expect("runs");
    let err = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{line}: {err}");
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Started nodes, which end with the test.
struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.0 {
            // It may have ended by itself.
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

fn follows_the_printed_commands(count: &str, port: u16) {
    let folder = TempDir::new();
    let dir = folder.path().join("made here");
    let made = init(&dir, count, port);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let printed = String::from_utf8_lossy(&made.stdout).into_owned();
    let lines: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let (starts, others): (Vec<&str>, Vec<&str>) = lines
        .iter()
        .filter(|line| line.contains("barnabas "))
        .partition(|line| line.starts_with("barnabas server"));
    let (formats, uses): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|line| line.starts_with("barnabas storage format"));
    assert_eq!(
        (formats.len().to_string().as_str(), starts.len(), uses.len()),
        (count, formats.len(), 3),
        "{printed}"
    );
    formats.iter().for_each(|line| drop(run(line)));
    let log = std::fs::File::create(folder.path().join("log")).expect("a log");
    let start = |line: &&str| {
        let log = log.try_clone().expect("a log");
        shell(&format!("exec {line}"))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("starts")
    };
    let mut nodes = Nodes(starts.iter().map(start).collect());
    // The nodes have been started, and the person types.
    eventually("the first command is taken", || shell(uses[0]).output().expect("runs").status.success());
    assert_eq!(run(uses[1]), "");
    assert_eq!(run(uses[2]), "hello\n");
    if count == "1" {
        renew(&dir);
        eventually("the renewed certificate is in use", || {
            let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
            log.contains("listener SASL_SSL: new key or trust store in use")
        });
        assert_eq!(run(uses[2]), "hello\n");
    }
    for node in &mut nodes.0 {
        let pid = rustix::process::Pid::from_child(node);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        assert!(node.wait().expect("ends").success());
    }
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    assert!(!log.contains(" ERROR "), "{log}");
    drop(nodes);
    check_secrets(&dir, &(printed + &log));

    let again = init(&dir, count, port);
    assert!(!again.status.success());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("is not empty, and nothing is written over"), "{said}");
}

/// As docs/SECURITY.md does it.
fn renew(dir: &Path) {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SECURITY.md"))
        .expect("a page");
    let is_one = |line: &&str| line.starts_with("openssl ") || line.starts_with("(umask 077 && cat node.key");
    let lines: Vec<&str> = page.lines().filter(is_one).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        run(&format!("cd '{}' && {}", dir.display(), line.replace("broker1.example.com", "localhost")));
    }
}

/// Files with secrets are their owner's alone, and no secret is in `said`.
fn check_secrets(dir: &Path, said: &str) {
    let mode = |name: &str| std::fs::metadata(dir.join(name)).expect("made").permissions().mode() & 0o777;
    for name in [
        "ca/ca.key",
        "node-1/node.pem",
        "node-1/server.properties",
        "node-1/admin.scram",
        "node-1/broker.scram",
        "client/client.properties",
    ] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    for name in ["node-1/server.properties", "client/client.properties"] {
        let text = std::fs::read_to_string(dir.join(name)).expect("made");
        let password = text.split("password=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("one");
        assert!(password.len() >= 20 && !said.contains(password), "{name}");
    }
}

#[test]
fn one_node_follows_the_printed_commands() {
    follows_the_printed_commands("1", ports_in_a_row(2));
}

#[test]
fn three_nodes_follow_the_printed_commands() {
    follows_the_printed_commands("3", ports_in_a_row(6));
}

#[test]
fn hosts_that_do_not_fit_are_refused() {
    let folder = TempDir::new();
    let dir = folder.path().join("x");
    let refused = binary()
        .args(["security", "init", "--nodes", "3", "--host", "a,b", "--dir"])
        .arg(&dir)
        .output()
        .expect("runs");
    assert!(!refused.status.success() && !dir.exists());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("--host names 2 hosts for 3 nodes"), "{said}");
}
