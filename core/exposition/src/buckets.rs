//! Counts in buckets that grow with the value.
//!
//! Log-linear, as HdrHistogram's: each doubling is cut into [`STEPS`] equal buckets, so that a quantile is at most an
//! eighth too large, whatever its size.
//!
//! Neighbour: shell/metrics/src/histogram.rs, which counts, without a lock.

/// Buckets for each doubling, as a power of two.
const STEP_BITS: u32 = 3;
const STEPS: usize = 1 << STEP_BITS;
/// Values are counted in units of so many bits: 256 (nanoseconds, mostly).
const UNIT_BITS: u32 = 8;
/// Doublings behind the first [`STEPS`] units: the last bucket begins at 2^(8 + 3 + 29) / 2, about nine minutes.
const DOUBLINGS: usize = 29;
/// Of one histogram.
pub const BUCKETS: usize = STEPS * (DOUBLINGS + 1);

/// The bucket of a value that lies after so many whole units: a bucket holds its end and not its beginning, so that
/// what is at most a power of two is counted exactly.
fn bucket_of(units: u64) -> usize {
    if units < STEPS as u64 {
        return units as usize;
    }
    let shift = units.ilog2() - STEP_BITS;
    let bucket = ((shift as usize + 1) << STEP_BITS) + ((units >> shift) as usize & (STEPS - 1));
    bucket.min(BUCKETS - 1)
}

/// The last value of a bucket, in units; of the last bucket, which has no end, the largest number.
fn end_of(bucket: usize) -> u64 {
    match bucket {
        _ if bucket >= BUCKETS - 1 => u64::MAX,
        _ if bucket < STEPS => bucket as u64 + 1,
        _ => {
            let shift = (bucket >> STEP_BITS) - 1;
            ((STEPS + (bucket & (STEPS - 1)) + 1) as u64) << shift
        }
    }
}

/// The bucket of a value.
pub fn bucket_of_value(value: u64, scale: Scale) -> usize {
    bucket_of(value.saturating_sub(1) >> scale.bits())
}

/// What the values are, for their smallest difference: durations in nanoseconds, or counts and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// 256 ns apart.
    Nanoseconds,
    /// 1 apart: records, bytes, requests.
    Count,
}

impl Scale {
    const fn bits(self) -> u32 {
        match self {
            Self::Nanoseconds => UNIT_BITS,
            Self::Count => 0,
        }
    }
}

/// What one thread has counted, as it stands now.
pub trait Counted {
    fn scale(&self) -> Scale;
    /// How many values fell into a bucket, of [`BUCKETS`].
    fn bucket(&self, bucket: usize) -> u64;
    fn sum(&self) -> u64;
    fn max(&self) -> u64;
}

/// Counts of one or several threads at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    scale: Scale,
    buckets: Vec<u64>,
    pub sum: u64,
    pub max: u64,
}

impl Counts {
    pub fn new(scale: Scale) -> Self {
        Self { scale, buckets: Vec::new(), sum: 0, max: 0 }
    }

    /// Adds what one thread has counted.
    pub fn add(&mut self, of: &impl Counted) {
        debug_assert_eq!(self.scale, of.scale());
        self.buckets.resize(BUCKETS, 0);
        for (bucket, mine) in self.buckets.iter_mut().enumerate() {
            *mine += of.bucket(bucket);
        }
        self.sum = self.sum.wrapping_add(of.sum());
        self.max = self.max.max(of.max());
    }

    pub fn merge(&mut self, other: &Self) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// What came since `earlier`. Its largest value is not known any more: that of all times stands in.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut left = self.clone();
        for (mine, theirs) in left.buckets.iter_mut().zip(&earlier.buckets) {
            *mine = mine.saturating_sub(*theirs);
        }
        left.sum = self.sum.saturating_sub(earlier.sum);
        left
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How many values were at most `bound`, where a bucket ends there; else fewer.
    pub fn at_most(&self, bound: u64) -> u64 {
        let units = bound >> self.scale.bits();
        self.buckets
            .iter()
            .enumerate()
            .take_while(|(bucket, _)| end_of(*bucket) <= units)
            .map(|(_, n)| n)
            .sum()
    }

    /// Ends of the buckets that hold something, each with how many values are not above it. The last bucket has no end.
    pub fn filled(&self) -> Vec<(u64, u64)> {
        let mut below = 0;
        let buckets =
            self.buckets.iter().enumerate().filter(|(bucket, number)| **number > 0 && *bucket < BUCKETS - 1);
        let told = buckets.map(|(bucket, number)| {
            below += number;
            (end_of(bucket) << self.scale.bits(), below)
        });
        told.collect()
    }

    /// A value that `share` of `of` values do not exceed; those that were not counted here are taken for 0. Never more
    /// than the largest that was counted, at most an eighth too large.
    pub fn quantile_of(&self, share: f64, of: u64) -> u64 {
        let count = self.count();
        let of = of.max(count);
        let rank = ((of as f64 * share).ceil() as u64).clamp(1, of.max(1));
        let Some(mut left) = rank.checked_sub(of - count).filter(|left| *left > 0) else { return 0 };
        for (bucket, &number) in self.buckets.iter().enumerate() {
            if number >= left {
                let end = end_of(bucket);
                return if end == u64::MAX { self.max } else { (end << self.scale.bits()).min(self.max) };
            }
            left -= number;
        }
        0
    }
}

#[cfg(test)]
pub(crate) mod tests;
