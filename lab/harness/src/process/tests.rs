//! A shell in a node's place.

use super::*;
use crate::TempDir;

const TIMEOUT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> (TempDir, NodeProcess, Command) {
    let place = TempDir::new();
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let process = NodeProcess::new(place.path().join("log"));
    (place, process, command)
}

#[test]
fn process_that_ends_before_it_is_ready_shows_its_last_lines() {
    let (_place, mut process, mut command) = shell("echo no such key >&2; exit 3");
    process.run(&mut command).expect("runs");
    let Trouble(text) = process.await_ready(TIMEOUT, || false).expect_err("not ready");
    assert!(text.contains("exit status: 3") && text.contains("no such key"), "{text}");
}

#[test]
fn stop_returns_the_exit_status_and_each_run_has_a_log_of_its_own() {
    let script = "trap 'echo stopped >&2; exit 7' TERM; echo ready >&2; while :; do sleep 0.01; done";
    let (_place, mut process, mut command) = shell(script);
    for _ in 0..2 {
        process.run(&mut command).expect("runs");
        let log = process.log_path().to_owned();
        let at = process.whole_log().matches("stopped").count();
        let is_ready = || std::fs::read_to_string(&log).is_ok_and(|text| text.matches("ready").count() > at);
        process.await_ready(TIMEOUT, is_ready).expect("ready");
        assert!(process.run(&mut command).is_err(), "one process at a time");
        assert_eq!(process.stop(TIMEOUT).expect("stops").code(), Some(7));
        assert_eq!(process.log(), "ready\nstopped\n");
    }
    assert_eq!(process.whole_log(), "ready\nstopped\nready\nstopped\n");
    assert!(process.stop(TIMEOUT).is_err(), "it does not run");
}

#[test]
fn paused_process_does_not_end_before_it_is_resumed() {
    let script = "trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done";
    let (_place, mut process, mut command) = shell(script);
    process.run(&mut command).expect("runs");
    let log = process.log_path().to_owned();
    process.await_ready(TIMEOUT, || std::fs::metadata(&log).is_ok_and(|file| file.len() > 0)).expect("ready");
    process.pause(false).expect("pauses");
    process.signal(Signal::TERM).expect("is sent");
    assert!(process.has_ended().expect("asked").is_none());
    process.resume().expect("resumes");
    assert!(process.wait().expect("ends").success());
    assert!(process.pid().is_none());
}
