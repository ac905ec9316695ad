//! Measures the metadata quorum for the metrics page (controller/figures.rs).
//!
//! Always true: what waits to be committed is bounded; where there is more, the oldest is not measured.

use super::Quorum;
use crate::node::peers::controller::Figures;
use barnabas_base::{LeaderEpoch, Offset};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Appends whose commitment is awaited.
const UNCOMMITTED_MAX: usize = 1024;

/// What the quorum's thread remembers for them.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// Ends of what this leader appended, and when.
    uncommitted: VecDeque<(Offset, Instant)>,
    /// In which epoch it did.
    epoch: LeaderEpoch,
    leaderless: Option<Instant>,
}

impl Watching {
    /// Looks at the quorum as it is now.
    pub fn look(&mut self, quorum: &Quorum, figures: &Figures) {
        let now = barnabas_clock::now();
        let leads = quorum.is_active().then(|| (quorum.epoch(), quorum.log_end()));
        self.commits(leads, quorum.high_watermark(), now, figures);
        self.elections(quorum.leader().leader.is_some(), now, figures);
        figures.stands(quorum.role(), quorum.voted());
        figures.voters.store(quorum.voters().iter().count() as u64, Ordering::Relaxed);
    }

    /// `leads`: the epoch and the log's end, where this node leads.
    fn commits(
        &mut self,
        leads: Option<(LeaderEpoch, Offset)>,
        committed: Offset,
        now: Instant,
        figures: &Figures,
    ) {
        figures.high_watermark.store(committed.get(), Ordering::Relaxed);
        let Some((epoch, end)) = leads else {
            self.uncommitted.clear();
            return;
        };
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.uncommitted.clear();
        }
        while let Some((_, at)) = self.uncommitted.pop_front_if(|(end, _)| *end <= committed) {
            figures.commits.record(now.saturating_duration_since(at).as_nanos() as u64);
        }
        let is_new = self.uncommitted.back().is_none_or(|(last, _)| *last < end);
        if end > committed && is_new {
            if self.uncommitted.len() == UNCOMMITTED_MAX {
                self.uncommitted.pop_front();
            }
            self.uncommitted.push_back((end, now));
        }
    }

    fn elections(&mut self, is_led: bool, now: Instant, figures: &Figures) {
        if !is_led {
            self.leaderless.get_or_insert(now);
        } else if let Some(since) = self.leaderless.take() {
            figures.elections.record(now.saturating_duration_since(since).as_nanos() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_append_is_measured_until_it_is_committed() {
        let (mut watching, figures, start) = (Watching::default(), Figures::default(), barnabas_clock::now());
        let mut look = |epoch: Option<i32>, end: i64, committed: i64, at_ms: u64| {
            let leads = epoch.map(|epoch| (LeaderEpoch(epoch), Offset(end)));
            watching.commits(leads, Offset(committed), start + Duration::from_millis(at_ms), &figures);
        };
        look(Some(1), 3, 0, 0);
        look(Some(1), 3, 0, 1);
        look(Some(1), 5, 3, 4);
        look(Some(1), 5, 5, 10);
        // A former leader does not learn when the record was committed.
        look(Some(1), 9, 5, 20);
        look(None, 9, 5, 30);
        look(Some(3), 10, 5, 40);
        look(Some(3), 10, 10, 42);
        let counts = figures.commits.counts();
        assert_eq!((counts.count(), counts.sum), (3, 12_000_000));
        assert_eq!(figures.standing().high_watermark, Offset(10));
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut watching, figures, now) = (Watching::default(), Figures::default(), barnabas_clock::now());
        for end in 1..=5_000 {
            watching.commits(Some((LeaderEpoch(1), Offset(end))), Offset(0), now, &figures);
        }
        assert_eq!(watching.uncommitted.len(), UNCOMMITTED_MAX);
    }

    #[test]
    fn a_time_without_a_leader_is_measured_once() {
        let (mut watching, figures, start) = (Watching::default(), Figures::default(), barnabas_clock::now());
        for (at_ms, is_led) in [(0, false), (30, false), (50, true), (60, true), (70, false), (80, true)] {
            watching.elections(is_led, start + Duration::from_millis(at_ms), &figures);
        }
        let counts = figures.elections.counts();
        assert_eq!((counts.count(), counts.sum), (2, 60_000_000));
    }
}
