//! Notices a metadata quorum that makes no progress: no leader is elected, or the leader has lost its majority.
//!
//! The active controller appends a no-op record each `metadata.max.idle.interval.ms`, so the high watermark moves on
//! every node while the quorum is sound. An election takes milliseconds to a second. A stall that lasts is an ERROR,
//! again each minute, and a line when it is over. Silent until the high watermark has moved once: before that,
//! membership.rs says what the start waits for. Silent where idle records are off, and for an only voter, whose disk
//! has its own lines.
//!
//! A node that was itself stopped (SIGSTOP, a paused virtual machine) knows nothing of the time in between: where it
//! did not look for [`STOPPED_MS`], the period begins with the next look.
//!
//! The quorum worker writes the lines.

use barnabas_base::{DurationMs, MonotonicMs, Offset};

use super::Node;

/// How long the quorum may stand still, at the least.
const STALL_PATIENCE_MS: u64 = 5_000;
/// The quorum worker looks at least this often.
pub const STALL_LOOK: DurationMs = DurationMs(1_000);
/// A longer time between two looks is one in which this node did not run.
const STOPPED_MS: u64 = 3_000;
/// How many idle records may fail to appear.
const IDLE_RECORDS: u64 = 10;
const AGAIN_MS: u64 = 60_000;

/// Where the high watermark was seen to move last.
#[derive(Debug, Default)]
pub struct Stall {
    moved: Option<(Offset, MonotonicMs)>,
    has_moved: bool,
    written: Option<MonotonicMs>,
    looked: Option<MonotonicMs>,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StallLine {
    Error(String),
    Info(String),
}

/// What is to be written.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Nothing,
    Stalls { for_ms: u64 },
    Over { after_ms: u64 },
}

impl Stall {
    /// `idle_ms`: `metadata.max.idle.interval.ms`, 0 where no idle records are written.
    pub fn look(&mut self, quorum: &Node, idle_ms: u64, now: MonotonicMs) -> Option<StallLine> {
        if idle_ms == 0 || quorum.is_alone() {
            *self = Self::default();
            return None;
        }
        let patience_ms = STALL_PATIENCE_MS.max(IDLE_RECORDS * idle_ms);
        match self.turn(quorum.high_watermark(), patience_ms, now) {
            Turn::Nothing => None,
            Turn::Stalls { for_ms } => {
                let voters: Vec<String> = quorum.voters().iter().map(|voter| voter.id.to_string()).collect();
                Some(StallLine::Error(format!(
                    "the metadata quorum has had no leader with a majority for {} s: more than half of its voters \
                     ({}) must run and reach each other. Until then topics cannot change and no partition can elect \
                     a leader",
                    for_ms / 1000,
                    voters.join(", ")
                )))
            }
            Turn::Over { after_ms } => Some(StallLine::Info(format!(
                "the metadata quorum makes progress again, after {} s",
                after_ms / 1000
            ))),
        }
    }

    fn turn(&mut self, high_watermark: Offset, patience_ms: u64, now: MonotonicMs) -> Turn {
        let looked = self.looked.replace(now).unwrap_or(now);
        let was_stopped = now.0.saturating_sub(looked.0) >= STOPPED_MS;
        if was_stopped && self.written.is_none() {
            self.moved = self.moved.map(|(last, _)| (last, now));
        }
        let (last, at) = *self.moved.get_or_insert((high_watermark, now));
        let for_ms = now.0.saturating_sub(at.0);
        if high_watermark != last {
            (self.moved, self.has_moved) = (Some((high_watermark, now)), true);
            return match self.written.take() {
                Some(_) => Turn::Over { after_ms: for_ms },
                None => Turn::Nothing,
            };
        }
        let is_due = match self.written {
            None => for_ms >= patience_ms,
            Some(written) => now.0.saturating_sub(written.0) >= AGAIN_MS,
        };
        if !is_due || !self.has_moved {
            return Turn::Nothing;
        }
        self.written = Some(now);
        Turn::Stalls { for_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is to be written at these times, with a look each second in between.
    fn turns(looks: &[(i64, u64)]) -> Vec<(u64, Turn)> {
        let mut stall = Stall::default();
        let mut written = Vec::new();
        let mut before = None;
        for &(end, second) in looks {
            for between in before.map_or(second, |(_, last)| last + 1)..=second {
                let end = if between == second { end } else { before.map_or(end, |(end, _)| end) };
                let turn = stall.turn(Offset(end), 5_000, MonotonicMs(between * 1_000));
                written.extend((turn != Turn::Nothing).then_some((between, turn)));
            }
            before = Some((end, second));
        }
        written
    }

    #[test]
    fn stalled_quorum_is_an_error_once_it_lasts_and_then_once_a_minute() {
        assert_eq!(turns(&[(0, 1), (0, 9)]), [], "a start");
        assert_eq!(turns(&[(0, 1), (7, 10), (7, 14), (8, 15), (9, 16)]), [], "an election");
        assert_eq!(
            turns(&[(0, 1), (7, 10), (8, 80), (8, 81), (9, 82)]),
            [
                (15, Turn::Stalls { for_ms: 5_000 }),
                (75, Turn::Stalls { for_ms: 65_000 }),
                (80, Turn::Over { after_ms: 70_000 })
            ]
        );
    }

    #[test]
    fn stopped_node_does_not_blame_the_quorum() {
        let mut stall = Stall::default();
        let mut at = |end, ms| stall.turn(Offset(end), 5_000, MonotonicMs(ms));
        assert_eq!(at(7, 1_000), Turn::Nothing);
        assert_eq!(at(8, 2_000), Turn::Nothing);
        // It stood still for 14 s, and what it missed comes a little later.
        assert_eq!(at(8, 16_000), Turn::Nothing);
        assert_eq!(at(8, 18_900), Turn::Nothing);
        assert_eq!(at(60, 19_000), Turn::Nothing);
        // A quorum that has no leader after a stop is named, with the time that this node has seen.
        assert_eq!(at(60, 40_000), Turn::Nothing);
        assert_eq!(at(60, 42_000), Turn::Nothing);
        assert_eq!(at(60, 44_000), Turn::Nothing);
        assert_eq!(at(60, 45_000), Turn::Stalls { for_ms: 5_000 });
        assert_eq!(at(61, 60_000), Turn::Over { after_ms: 20_000 });
    }
}
