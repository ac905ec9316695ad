//! Lines on standard error: time (RFC 3339, as the node's log), level, connector, sentence. Of lines that repeat, one
//! a second.

use barnabas_base::Date;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// One line.
pub fn line(level: Level, connector: &str, text: &str) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let word = match level {
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    };
    // Where standard error is closed, there is no place left to say so.
    let _ = writeln!(std::io::stderr(), "{} {word} {connector}: {text}", time(since));
}

/// `2026-11-24T13:20:00.123Z` (RFC 3339).
fn time(since_1970: Duration) -> String {
    let (seconds, ms) = (since_1970.as_secs(), since_1970.subsec_millis());
    let Date { year, month, day } = Date::of_days_since_1970((seconds / 86_400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_as_in_the_log_of_a_node() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (1_795_526_400_123, "2026-11-24T13:20:00.123Z"),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), expected);
        }
    }
}
