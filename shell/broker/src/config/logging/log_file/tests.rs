//! The queue of the log's file. Its rotation: config/logging/rotated_file.rs.

use super::*;
use std::path::PathBuf;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("barnabas-log-file-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Self(path)
    }

    fn settings(&self) -> Settings {
        Settings { file: self.0.join("node.log"), bytes_max: 1 << 20, files_max: 2 }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file whose thread does not run.
fn stalled() -> (LogFile, Receiver<Queued>) {
    let (queue, lines) = sync_channel(QUEUE_LINES_MAX);
    (LogFile { queue, counts: Arc::default() }, lines)
}

#[test]
fn lines_are_in_the_file_after_a_flush() {
    let dir = Dir::new("flush");
    let mut log = LogFile::start(dir.settings()).expect("started");
    for at in 0..3_000 {
        log.write_all(format!("line {at}\n").as_bytes()).expect("taken");
    }
    LogFile::flush(&log);
    let text = std::fs::read_to_string(dir.0.join("node.log")).expect("text");
    assert_eq!(text.lines().count(), 3_000);
    assert!(text.ends_with("line 2999\n"));
    assert_eq!(log.counts().dropped.load(Ordering::Relaxed), 0);
}

#[test]
fn full_queue_takes_nothing_and_counts() {
    let (mut log, lines) = stalled();
    let line = [b'x'; 1024];
    for _ in 0..QUEUE_BYTES_MAX / line.len() + 5 {
        log.write_all(&line).expect("never refused");
    }
    assert_eq!(log.counts().dropped.load(Ordering::Relaxed), 5);
    drop(lines);
    let (mut log, _lines) = stalled();
    for _ in 0..QUEUE_LINES_MAX + 7 {
        log.write_all(b"x\n").expect("never refused");
    }
    assert_eq!(log.counts().dropped.load(Ordering::Relaxed), 7);
}

#[test]
fn file_that_cannot_be_opened_is_an_error() {
    let dir = Dir::new("missing");
    let settings = Settings { file: dir.0.join("none/node.log"), ..dir.settings() };
    assert!(LogFile::start(settings).is_err());
}
