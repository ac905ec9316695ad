//! What happens again and again is one line at once, and from then on one a minute with a count: what clients can cause
//! at will must not push everything else out of the files. Changes that were made have a line each.
//!
//! Bounded: so many different lines of a kind in a minute; further ones are counted, and a line says how many.

use super::Kind;
use super::line::{line, notice};
use barnabas_base::{BrokerId, Map, TimestampMs};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);

impl Kind {
    /// All clients of a large cluster may log in within a minute.
    const fn different_max(self) -> usize {
        match self {
            Self::Login => 16_384,
            Self::FailedLogin | Self::Denied | Self::WouldDeny | Self::Change => 4096,
        }
    }
}

/// See the file's header.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    of: Map<(Kind, String), Again>,
    different: Map<Kind, usize>,
    left_out: Map<Kind, u64>,
    left_out_since: Option<Instant>,
}

#[derive(Debug)]
struct Again {
    since: Instant,
    last: TimestampMs,
    unsaid: u64,
}

impl Gathered {
    /// Whether this is to be written now.
    pub(super) fn happened(&mut self, kind: Kind, body: &str, at: TimestampMs, now: Instant) -> bool {
        let key = (kind, body.to_owned());
        if let Some(again) = self.of.get_mut(&key) {
            (again.last, again.unsaid) = (at, again.unsaid + 1);
            return false;
        }
        let different = self.different.entry(kind).or_default();
        if *different >= kind.different_max() {
            *self.left_out.entry(kind).or_default() += 1;
            self.left_out_since.get_or_insert(now);
            return false;
        }
        *different += 1;
        self.of.insert(key, Again { since: now, last: at, unsaid: 0 });
        true
    }

    /// The lines of what happened again, once a minute is over, or `all` of them.
    pub(super) fn due(&mut self, node: BrokerId, wall: TimestampMs, now: Instant, all: bool) -> Vec<String> {
        let is_over = |since: Instant| all || now.saturating_duration_since(since) >= WINDOW;
        let mut lines = Vec::new();
        let different = &mut self.different;
        self.of.retain(|(kind, body), again| {
            if !is_over(again.since) {
                return true;
            }
            if again.unsaid == 0 {
                *different.entry(*kind).or_insert(1) -= 1;
                return false;
            }
            lines.push(line(again.last, node, body, again.unsaid));
            (again.since, again.unsaid) = (now, 0);
            true
        });
        if self.left_out_since.is_some_and(is_over) {
            self.left_out_since = None;
            for (kind, count) in std::mem::take(&mut self.left_out) {
                let reason = format!("more different {} events in a minute than lines for them", kind.name());
                lines.push(notice(wall, node, "left_out", &reason, count));
            }
        }
        lines
    }
}
