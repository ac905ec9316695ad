//! A histogram of microseconds in bounded memory: 64 steps to each power of two, so that a value is known to 1.6 %.
//!
//! A percentile is the upper edge of its step, and never above the largest value: no figure is better than the value
//! was. histogram.py reads what [`Histogram::sparse`] prints. Its tests: `rustc --test histogram.rs` (test_tail.py).
#![allow(dead_code)]

const STEPS: usize = 64;
const BUCKETS: usize = STEPS * 40;

#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u32>,
    pub total: u64,
    pub max_us: u64,
}

/// The step of a value. Up to 2 × 64 each has its own.
pub fn bucket(us: u64) -> usize {
    let power = 63 - (us | STEPS as u64).leading_zeros() as usize - 6;
    (power * STEPS + (us >> power) as usize).min(BUCKETS - 1)
}

/// The largest value of a step.
pub fn upper_edge(bucket: usize) -> u64 {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let power = bucket / STEPS - 1;
    (((bucket - power * STEPS) as u64 + 1) << power) - 1
}

impl Histogram {
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max_us: 0 }
    }

    pub fn record(&mut self, us: u64) {
        self.record_many(us, 1);
    }

    pub fn record_many(&mut self, us: u64, times: u32) {
        let count = &mut self.counts[bucket(us)];
        *count = count.saturating_add(times);
        self.total += u64::from(times);
        self.max_us = self.max_us.max(us);
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total += other.total;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Milliseconds that this share of all values does not exceed; 0 where there is none.
    pub fn percentile_ms(&self, share: f64) -> f64 {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        });
        found.map_or(0.0, |at| upper_edge(at).min(self.max_us) as f64 / 1e3)
    }

    /// `[[step, count], …]`, the steps that have any.
    pub fn sparse(&self) -> String {
        let some = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let pairs: Vec<String> = some.map(|(at, count)| format!("[{at}, {count}]")).collect();
        format!("[{}]", pairs.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_its_values_to_a_sixtieth() {
        for us in (0..4096).chain((12..39).map(|power| (1u64 << power) + 12_345 % (1 << power))) {
            let edge = upper_edge(bucket(us));
            assert!(edge >= us, "{us} above its edge {edge}");
            assert!(edge - us <= us / STEPS as u64, "{us} is not {edge}");
            assert_eq!(bucket(edge), bucket(us));
            assert_eq!(bucket(edge + 1), bucket(us) + 1, "no step is left out behind {us}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_count_from_below() {
        let mut found = Histogram::new();
        assert_eq!(found.percentile_ms(0.99), 0.0);
        (1..=100).for_each(|us| found.record(us));
        assert_eq!([0.5, 0.99, 0.9999, 1.0].map(|share| found.percentile_ms(share)), [0.05, 0.099, 0.1, 0.1]);
        found.record(1_000_003);
        assert_eq!(found.percentile_ms(1.0), 1000.003, "the largest is exact");
    }

    #[test]
    fn merged_is_as_if_recorded_in_one() {
        let (mut one, mut other, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for us in 0..5000 {
            if us % 3 == 0 { &mut one } else { &mut other }.record(us * 7);
            both.record(us * 7);
        }
        one.merge(&other);
        assert_eq!((one.sparse(), one.total, one.max_us), (both.sparse(), both.total, both.max_us));
    }
}
