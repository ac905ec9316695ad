//! Lines on standard error: time, level, connector, sentence. Of lines that repeat, one a second.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub enum Level {
    Info,
    Warn,
}

/// One line.
pub fn line(level: Level, connector: &str, text: &str) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let word = match level {
        Level::Info => "INFO",
        Level::Warn => "WARN",
    };
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    // Where standard error is closed, there is no place left to say so.
    let _ = writeln!(std::io::stderr(), "{seconds}.{millis:03} {word} {connector}: {text}");
}

/// Lets one line a second through.
#[derive(Debug, Default)]
pub struct Seldom {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    pub fn warn(&mut self, connector: &str, text: &str) {
        if self.last.is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            self.left_out += 1;
            return;
        }
        self.last = Some(Instant::now());
        match std::mem::take(&mut self.left_out) {
            0 => line(Level::Warn, connector, text),
            more => line(Level::Warn, connector, &format!("{text} (and {more} lines before it)")),
        }
    }
}
