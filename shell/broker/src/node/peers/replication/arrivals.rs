//! Replicas that a reassignment brings to this broker: how many, how many records they lack, and about how long that
//! will take.
//!
//! Each worker keeps a sum of what its fetchers still have to bring ([`Arriving`]); once a second housekeeping adds the
//! workers up, sees how fast it goes, and says so in the log every ten seconds ([`Arrivals`]). The same is on the
//! metrics page. Records, not bytes: a follower knows where its leader's log ends, not how large that is.
//!
//! Neighbours: partition_worker/replica_fetcher.rs and apply_fetched.rs, which tell; exporter/collect/cluster.rs, which
//! shows it.

use crate::mailbox::PartitionKey;
use barnabas_metrics::{Arriving as Standing, WorkerCells};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of the log.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// A second's pace counts for so much of the average.
const NEW_WEIGHT: f64 = 0.2;

/// One worker's.
#[derive(Debug, Default)]
pub struct Arriving {
    /// What each lacks; `None` until its leader has said where its log ends.
    lacks: HashMap<PartitionKey, Option<u64>>,
    left: u64,
    came: u64,
    has_changed: std::cell::Cell<bool>,
}

impl Arriving {
    /// A replica is on its way here, or is not any more.
    pub fn set(&mut self, key: PartitionKey, is_arriving: bool) {
        if is_arriving {
            self.lacks.entry(key).or_default();
        } else if let Some(lacks) = self.lacks.remove(&key) {
            self.left -= lacks.unwrap_or(0);
        } else {
            return;
        }
        self.has_changed.set(true);
    }

    /// Records were taken, and so many are left.
    pub fn took(&mut self, key: PartitionKey, records: i64, left: i64) {
        let Some(lacks) = self.lacks.get_mut(&key) else { return };
        let left = u64::try_from(left).unwrap_or(0);
        self.left = self.left - lacks.replace(left).unwrap_or(0) + left;
        self.came += u64::try_from(records).unwrap_or(0);
        self.has_changed.set(true);
    }

    /// Adds it to the worker's metrics.
    pub fn count(&self, cells: &WorkerCells) {
        if self.has_changed.replace(false) {
            cells.arriving.set(self.lacks.len() as u64);
            cells.arriving_left.set(self.left);
            cells.arrived.set(self.came);
        }
    }
}

/// The node's, as of the last second.
#[derive(Debug, Default)]
pub struct Arrivals {
    pace: Mutex<Pace>,
}

#[derive(Debug, Default)]
struct Pace {
    last: Option<(Standing, Instant)>,
    /// Records a second.
    average: Option<f64>,
    said: Option<Instant>,
}

impl Arrivals {
    /// About how long it takes until all replicas are in sync. `None`: none is catching up, or no bytes have arrived
    /// yet.
    pub fn seconds_left(&self) -> Option<u64> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).seconds_left()
    }
}

impl Pace {
    /// What there is to say.
    fn follow(&mut self, now: Standing, at: Instant) -> Option<String> {
        let before = self.last.replace((now, at));
        let before_replicas = before.map_or(0, |(before, _)| before.replicas);
        if now.replicas == 0 {
            (self.average, self.said) = (None, None);
            return (before_replicas > 0).then(|| {
                "every replica that was on its way to this broker is in sync, or called off".to_owned()
            });
        }
        if let Some((before, then)) = before.filter(|(before, _)| before.replicas > 0) {
            let seconds = at.duration_since(then).as_secs_f64().max(0.001);
            let pace = now.came.saturating_sub(before.came) as f64 / seconds;
            self.average = Some(match self.average {
                Some(average) => average + (pace - average) * NEW_WEIGHT,
                None => pace,
            });
        }
        if self.said.is_some_and(|said| at.duration_since(said) < SAY_EVERY) {
            return None;
        }
        self.said = Some(at);
        let Standing { replicas, records_left, .. } = now;
        let about = match self.seconds_left() {
            Some(seconds) => format!("about {seconds} s"),
            None => "how long that takes is not known yet".to_owned(),
        };
        Some(format!(
            "{replicas} replicas are on their way to this broker and lack {records_left} records: {about}"
        ))
    }

    fn seconds_left(&self) -> Option<u64> {
        let (now, _) = self.last?;
        let average = self.average.filter(|average| *average >= 1.0)?;
        (now.replicas > 0).then(|| (now.records_left as f64 / average).ceil() as u64)
    }
}

/// Once a second.
pub fn watch(arrivals: &Arrivals, now: Standing) {
    let mut pace = arrivals.pace.lock().unwrap_or_else(PoisonError::into_inner);
    let said = pace.follow(now, barnabas_clock::now());
    drop(pace);
    if let Some(said) = said {
        tracing::info!("{said}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key(partition: i32) -> PartitionKey {
        PartitionKey { topic: Uuid([7; 16]), partition: PartitionIndex(partition) }
    }

    #[test]
    fn a_worker_keeps_the_sum_of_what_is_left() {
        let (mut arriving, cells) = (Arriving::default(), WorkerCells::default());
        let shown = |arriving: &Arriving| {
            arriving.count(&cells);
            (cells.arriving.get(), cells.arriving_left.get(), cells.arrived.get())
        };
        arriving.set(key(0), true);
        arriving.set(key(1), true);
        arriving.took(key(2), 5, 5);
        assert_eq!(shown(&arriving), (2, 0, 0));
        arriving.took(key(0), 10, 90);
        arriving.took(key(1), 0, 50);
        assert_eq!(shown(&arriving), (2, 140, 10));
        arriving.set(key(0), true);
        arriving.took(key(0), 80, 20);
        assert_eq!(shown(&arriving), (2, 70, 90));
        arriving.set(key(0), false);
        arriving.set(key(0), false);
        assert_eq!(shown(&arriving), (1, 50, 90));
    }

    #[test]
    fn an_estimate_is_made_of_the_pace_and_said_now_and_then() {
        let mut pace = Pace::default();
        let begun = barnabas_clock::now();
        let mut at = |second: u64, replicas, records_left, came| {
            let said =
                pace.follow(Standing { replicas, records_left, came }, begun + Duration::from_secs(second));
            (said, pace.seconds_left())
        };
        assert_eq!(at(0, 0, 0, 3), (None, None));
        let (said, about) = at(1, 2, 1000, 3);
        assert!(
            said.is_some_and(|said| said.contains("2 replicas") && said.ends_with("not known yet"))
                && about.is_none()
        );
        assert_eq!(at(2, 2, 900, 103), (None, Some(9)));
        assert_eq!(at(3, 2, 800, 203), (None, Some(8)));
        let (said, about) = at(11, 2, 100, 1003);
        assert!(said.is_some_and(|said| said.ends_with("about 1 s")) && about == Some(1));
        let (said, about) = at(12, 0, 0, 1103);
        assert!(said.is_some_and(|said| said.contains("in sync")) && about.is_none());
        assert_eq!(at(13, 0, 0, 1103), (None, None));
    }
}
