//! How much room a log directory's file system has, and who may still write there.
//!
//! A disk must not fill to the last byte: consumers must go on, offsets must be committed, topics deleted,
//! the metadata log written, and a node killed in that moment must come up again. So producers are refused while there
//! is still room for all of that, and let in again by themselves when there is clearly more.
//!
//! Pure: the shell asks the file system and counts what it let in (shell/broker/src/log_dirs/full.rs). The bytes
//! that were let in and are not in the file system's own count yet (a journal's, not yet written back to segments)
//! count as used.
//!
//! Always true: `refuse_below < resume_at`, so that a level never flips on the same figures.

use crate::disk::DiskSpace;

const MIB: u64 = 1 << 20;

/// Who wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A client's records.
    Producer,
    /// A coordinator's own records: few, small, and what lets consumers go on.
    Coordinator,
}

/// Who may write, from all writers to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Open,
    /// Producers are refused.
    Low,
    /// A write has found the disk full: coordinators are refused as well.
    Full,
}

impl Level {
    pub fn admits(self, writer: Writer) -> bool {
        match self {
            Self::Open => true,
            Self::Low => writer == Writer::Coordinator,
            Self::Full => false,
        }
    }
}

/// Where the levels of one file system lie, in free bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    pub refuse_below: u64,
    pub resume_at: u64,
}

impl Watermarks {
    /// `wanted`: the operator's bytes; `None`: a hundredth of the file system, between 32 MiB and 1 GiB, but not more
    /// than an eighth of it, which would make small ones useless.
    pub fn of(total: u64, wanted: Option<u64>) -> Self {
        let own_choice = || (total / 100).clamp(32 * MIB, 1024 * MIB).min(total / 8);
        let refuse_below = wanted.unwrap_or_else(own_choice);
        let gap = (refuse_below / 4).max(MIB);
        Self { refuse_below, resume_at: refuse_below.saturating_add(gap) }
    }

    /// The level, from what the file system says and what it does not count yet. `now` is the level so far: what was
    /// refused is let in again only when there is room for more than a few batches.
    ///
    /// Coordinators may use all that is left, since the metadata log has a reserve of its own and a start needs nothing
    /// else. Figures alone never refuse them: XFS counts what it sets aside behind the ends of files as used, and gives
    /// it back when a write would fail otherwise.
    pub fn level(&self, space: DiskSpace, uncounted: u64, now: Level) -> Level {
        let free = space.free.saturating_sub(uncounted);
        if free < self.refuse_below || (now > Level::Open && free < self.resume_at) {
            Level::Low
        } else {
            Level::Open
        }
    }

    /// Whether `bytes` of a copy, which can wait, still fit: it ends where refused producers would be let in again, so
    /// that it never is what shuts them out.
    pub fn admits_copy(&self, space: DiskSpace, uncounted: u64, bytes: u64) -> bool {
        space.free.saturating_sub(uncounted) >= self.resume_at.saturating_add(bytes)
    }

    /// How many bytes may be let in before the file system is asked again.
    pub fn allowance(&self, space: DiskSpace, uncounted: u64) -> u64 {
        space.free.saturating_sub(uncounted).saturating_sub(self.refuse_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(mib: u64) -> DiskSpace {
        DiskSpace { total: 100 * 1024 * MIB, free: mib * MIB, device: 0 }
    }

    #[test]
    fn the_default_is_a_hundredth_within_bounds() {
        let refuse_below = |total_mib: u64| Watermarks::of(total_mib * MIB, None).refuse_below / MIB;
        assert_eq!(refuse_below(64), 8, "an eighth of a tiny one");
        assert_eq!(refuse_below(512), 32);
        assert_eq!(refuse_below(50_000), 500);
        assert_eq!(refuse_below(10_000_000), 1024);
        assert_eq!(Watermarks::of(u64::MAX, Some(0)).refuse_below, 0, "the operator may switch it off");
        assert_eq!(Watermarks::of(800 * MIB, Some(500 * MIB)).refuse_below, 500 * MIB, "or ask for more");
    }

    #[test]
    fn producers_go_first_and_come_back_last() {
        let marks = Watermarks::of(free(0).total, Some(400 * MIB));
        let mut level = Level::Open;
        let mut at = |mib| {
            level = marks.level(free(mib), 0, level);
            level
        };
        assert_eq!(at(401), Level::Open);
        assert_eq!(at(399), Level::Low);
        assert_eq!(at(450), Level::Low, "not before there is clearly more");
        assert_eq!(at(0), Level::Low);
        assert_eq!(at(499), Level::Low);
        assert_eq!(at(500), Level::Open);
        assert_eq!(at(401), Level::Open);
        assert!(Level::Low.admits(Writer::Coordinator) && !Level::Low.admits(Writer::Producer));
        assert!(!Level::Full.admits(Writer::Coordinator));
    }

    #[test]
    fn what_is_not_written_back_yet_counts_as_used() {
        let marks = Watermarks::of(free(0).total, Some(100 * MIB));
        assert_eq!(marks.level(free(150), 60 * MIB, Level::Open), Level::Low);
        assert_eq!(marks.allowance(free(150), 20 * MIB), 30 * MIB);
        assert_eq!(marks.allowance(free(150), 200 * MIB), 0);
    }

    #[test]
    fn a_copy_stops_before_producers_do() {
        let marks = Watermarks::of(free(0).total, Some(400 * MIB));
        assert!(marks.admits_copy(free(510), 0, 10 * MIB));
        assert!(!marks.admits_copy(free(509), 0, 10 * MIB));
        assert!(!marks.admits_copy(free(510), MIB, 10 * MIB), "what is not written back counts as used");
        assert_eq!(marks.level(free(509), 0, Level::Open), Level::Open);
        assert!(!marks.admits_copy(free(510), 0, u64::MAX));
    }
}
