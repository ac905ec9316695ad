//! The node's log in a file (`log.file`): a thread of its own writes it, so that no worker waits for a disk.
//!
//! Always true:
//! 1. handing in a line never waits. What the queue does not take is counted, and a line says how many are missing
//! 2. the queue is bounded: [`QUEUE_LINES_MAX`] lines and [`QUEUE_BYTES_MAX`]
//! 3. lines that the file does not take (its disk is full) go to standard error
//! 4. the file is bounded: by `log.file.bytes.max` and `log.files.max`
//!
//! A kill loses the lines that wait, as a rule those of some milliseconds. A node that stops writes them first.
//!
//! Neighbours: config/logging.rs starts it, config/logging/log_lines.rs hands lines in, config/logging/rotated_file.rs
//! takes them.

use super::rotated_file::Files;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

const QUEUE_LINES_MAX: usize = 16_384;
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Lines that are written in one go.
const LINES_MAX: usize = 1024;
/// How often it is looked whether the file was moved away.
const TICK: Duration = Duration::from_secs(1);
/// How long a node that stops waits for its last lines.
const FLUSH: Duration = Duration::from_secs(2);
/// Others of the file's group may read it: collectors of logs.
const MODE: u32 = 0o640;

/// What the operator asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    pub file: PathBuf,
    pub bytes_max: u64,
    pub files_max: u64,
}

/// What became of lines.
#[derive(Debug, Default)]
pub struct Counts {
    /// Not taken by the queue.
    pub dropped: AtomicU64,
    /// Written to standard error, since the file took nothing.
    pub failed: AtomicU64,
    waiting_bytes: AtomicUsize,
}

enum Queued {
    Line(String),
    /// Answered once all before it are written.
    Flush(SyncSender<()>),
}

/// Hands lines to the thread.
#[derive(Debug, Clone)]
pub struct LogFile {
    queue: SyncSender<Queued>,
    counts: Arc<Counts>,
}

impl LogFile {
    /// Opens the file and starts its thread.
    ///
    /// # Errors
    /// The file cannot be written, or the system gives no thread.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let files = Files::open(settings.file, MODE, settings.bytes_max, settings.files_max)?;
        let (queue, lines) = sync_channel(QUEUE_LINES_MAX);
        let counts = Arc::new(Counts::default());
        let writer = Writer { files, counts: counts.clone(), dropped_said: 0, is_failing: false };
        std::thread::Builder::new().name("log-file".to_owned()).spawn(move || writer.run(&lines))?;
        Ok(Self { queue, counts })
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits until what was handed in is written, [`FLUSH`] at most.
    pub fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.queue.try_send(Queued::Flush(done)).is_ok() {
            // A disk that hangs does not keep the process.
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

impl Write for LogFile {
    /// Takes a whole line, or counts it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        let bytes = text.len();
        let waiting = self.counts.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room = waiting + bytes <= QUEUE_BYTES_MAX;
        if !has_room || self.queue.try_send(Queued::Line(text)).is_err() {
            self.counts.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Writer {
    files: Files,
    counts: Arc<Counts>,
    /// How many lines were dropped when that was last written.
    dropped_said: u64,
    is_failing: bool,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Queued>) {
        let mut looked = barnabas_clock::now();
        loop {
            let (mut lines, mut flushed) = (Vec::new(), Vec::<SyncSender<()>>::new());
            match queue.recv_timeout(TICK) {
                Ok(first) => self.take(first, &mut lines, &mut flushed),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while lines.len() < LINES_MAX && flushed.is_empty() {
                let Ok(next) = queue.try_recv() else { break };
                self.take(next, &mut lines, &mut flushed);
            }
            if barnabas_clock::since(looked) >= TICK {
                looked = barnabas_clock::now();
                self.files.look_again();
            }
            self.write(&lines);
            // Its asker may have waited long enough.
            for done in flushed {
                let _ = done.try_send(());
            }
        }
    }

    fn take(&self, queued: Queued, lines: &mut Vec<String>, flushed: &mut Vec<SyncSender<()>>) {
        match queued {
            Queued::Line(line) => {
                self.counts.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                lines.push(line);
            }
            Queued::Flush(done) => flushed.push(done),
        }
    }

    fn write(&mut self, lines: &[String]) {
        let written = if lines.is_empty() { Ok(()) } else { self.files.write(lines) };
        if let Err((lost, error)) = &written {
            self.counts.failed.fetch_add(*lost as u64, Ordering::Relaxed);
            let mut stderr = io::stderr().lock();
            // Where standard error takes nothing either, the counts are all that is left.
            if !self.is_failing {
                let _ = writeln!(stderr, "log.file cannot be written: {error}. Its lines follow here");
            }
            lines[lines.len() - lost..].iter().for_each(|line| drop(stderr.write_all(line.as_bytes())));
        }
        self.is_failing = written.is_err();
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        if dropped > self.dropped_said {
            // It takes its place in the queue, as every line.
            let lines = dropped - self.dropped_said;
            tracing::warn!(lines, "lines of the log are missing: the queue of log.file was full");
            self.dropped_said = dropped;
        }
    }
}

#[cfg(test)]
mod tests;
