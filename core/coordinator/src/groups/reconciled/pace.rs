//! When a member of a consumer, share or streams group is to send its next heartbeat: each answer to a heartbeat says
//! it again (KIP-848, KIP-932, KIP-1071).
//!
//! Kafka always answers `heartbeat.interval.ms`, and so does a broker with default settings. A member learns each step
//! of a rebalance (give up, wait, get) with a heartbeat, so a step costs up to that interval.
//! `group.settling.heartbeat.interval.ms` makes it shorter while the group settles: for a member that is on its way to
//! the target, and for three intervals for every member of a group that has changed. Members come and go together (a
//! deployment, a crash). A heartbeat cannot be held back instead: answers of a connection keep their order, so a commit
//! behind it would wait too.
//!
//! Bounded: a group is not asked for more than [`BEATS_PER_SECOND`] heartbeats, each of which costs the shard some
//! microseconds.
//!
//! Measured by tests/pace.rs in virtual time, and by lab/bench/coordinators (a thousand members join and leave).

use barnabas_base::DurationMs;

/// A group counts as just changed for so many of the operator's intervals.
const LIVELY_INTERVALS: i64 = 3;
const BEATS_PER_SECOND: i64 = 4_000;

/// What the pace depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// `group.settling.heartbeat.interval.ms`; 0: as when nothing happens.
    pub settling_interval: DurationMs,
    /// The member has what the group's newest target has for it.
    pub is_settled: bool,
    /// Since the group's epoch was raised; `None`: not since it was loaded.
    pub unchanged_for: Option<DurationMs>,
    pub members: usize,
}

/// When the member is to beat next. `interval`: the operator's.
pub(crate) fn pace(interval: DurationMs, standing: Standing) -> DurationMs {
    let lively = DurationMs(interval.0.saturating_mul(LIVELY_INTERVALS));
    if standing.settling_interval.0 == 0 {
        return interval;
    }
    if standing.is_settled && standing.unchanged_for.is_none_or(|time| time >= lively) {
        return interval;
    }
    let members = i64::try_from(standing.members).unwrap_or(i64::MAX);
    let least = members.saturating_mul(1_000) / BEATS_PER_SECOND;
    DurationMs(standing.settling_interval.0.max(least).max(1).min(interval.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: DurationMs = DurationMs(5_000);

    fn beats(is_settled: bool, unchanged_for: Option<i64>, members: usize) -> i64 {
        beats_with(250, is_settled, unchanged_for, members)
    }

    fn beats_with(settling: i64, is_settled: bool, unchanged_for: Option<i64>, members: usize) -> i64 {
        let settling_interval = DurationMs(settling);
        let unchanged_for = unchanged_for.map(DurationMs);
        pace(INTERVAL, Standing { settling_interval, is_settled, unchanged_for, members }).0
    }

    #[test]
    fn the_default_is_always_the_setting() {
        assert_eq!(beats_with(0, false, Some(0), 1), 5_000);
    }

    #[test]
    fn a_quiet_group_beats_as_the_operator_says() {
        assert_eq!(beats(true, Some(15_000), 10), 5_000);
        assert_eq!(beats(true, None, 10), 5_000);
    }

    #[test]
    fn a_member_on_its_way_and_a_group_just_changed_beat_sooner() {
        assert_eq!(beats(false, Some(60_000), 10), 250);
        assert_eq!(beats(false, None, 10), 250);
        assert_eq!(beats(true, Some(14_999), 10), 250);
    }

    #[test]
    fn large_groups_beat_less_often_and_no_group_less_than_it_should() {
        assert_eq!(beats(false, Some(0), 1_000), 250);
        assert_eq!(beats(false, Some(0), 10_000), 2_500);
        assert_eq!(beats(false, Some(0), 100_000), 5_000);
        assert_eq!(beats(false, Some(0), usize::MAX), 5_000);
        assert_eq!(beats_with(60_000, false, None, 1), 5_000);
    }
}
