use super::*;

/// Counts values without a thread.
pub(crate) struct Tally {
    scale: Scale,
    buckets: [u64; BUCKETS],
    sum: u64,
    max: u64,
}

impl Counted for Tally {
    fn scale(&self) -> Scale {
        self.scale
    }

    fn bucket(&self, bucket: usize) -> u64 {
        self.buckets[bucket]
    }

    fn sum(&self) -> u64 {
        self.sum
    }

    fn max(&self) -> u64 {
        self.max
    }
}

pub(crate) fn counted(scale: Scale, values: &[u64]) -> Counts {
    let mut tally = Tally { scale, buckets: [0; BUCKETS], sum: 0, max: 0 };
    for &value in values {
        tally.buckets[bucket_of_value(value, scale)] += 1;
        tally.sum = tally.sum.wrapping_add(value);
        tally.max = tally.max.max(value);
    }
    let mut counts = Counts::new(scale);
    counts.add(&tally);
    counts
}

fn quantile(counts: &Counts, share: f64) -> u64 {
    counts.quantile_of(share, counts.count())
}

#[test]
fn buckets_follow_each_other_without_gap_or_overlap() {
    let mut begin = 0;
    for bucket in 0..BUCKETS - 1 {
        let end = end_of(bucket);
        assert!(end > begin, "{bucket}");
        assert_eq!(bucket_of(begin), bucket, "first of {bucket}");
        assert_eq!(bucket_of(end - 1), bucket, "last of {bucket}");
        begin = end;
    }
    assert_eq!(bucket_of(begin), BUCKETS - 1);
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
}

#[test]
fn what_was_not_counted_is_zero() {
    let counts = counted(Scale::Count, &[5; 10]);
    assert_eq!(quantile(&counts, 0.5), 5);
    assert_eq!((counts.quantile_of(0.5, 100), counts.quantile_of(0.9, 100)), (0, 0));
    assert_eq!(counts.quantile_of(0.91, 100), 5);
    assert_eq!(quantile(&Counts::new(Scale::Count), 0.99), 0);
}

/// Numbers of every size, the same in each run.
fn numbers(seed: u64, count: usize, bits_max: u32) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) << 31 | (state.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33)
    };
    (0..count).map(|_| (next() >> 2) >> (62 - next() % u64::from(bits_max))).collect()
}

#[test]
fn quantiles_are_right_within_an_eighth() {
    for seed in 0..200 {
        let mut values = numbers(seed, 1 + seed as usize * 3 % 300, 31);
        let counts = counted(Scale::Count, &values);
        values.sort_unstable();
        for share in [0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
            let (exact, told) = (values[rank - 1], quantile(&counts, share));
            assert!(
                told >= exact && told as f64 <= exact as f64 * 1.125 + 1.0,
                "{told} for {exact}, seed {seed}"
            );
        }
        assert_eq!(counts.count(), values.len() as u64);
        assert_eq!(counts.sum, values.iter().sum::<u64>());
        assert_eq!(counts.max, values[values.len() - 1]);
    }
}

#[test]
fn values_beyond_the_last_bucket_report_the_maximum() {
    let counts = counted(Scale::Nanoseconds, &[u64::MAX / 2]);
    assert_eq!(quantile(&counts, 0.5), u64::MAX / 2);
}

#[test]
fn merging_is_counting_together() {
    for seed in 0..50 {
        let (one, two) = (numbers(seed, 90, 38), numbers(seed + 1000, 70, 38));
        let both: Vec<u64> = one.iter().chain(&two).copied().collect();
        let first = counted(Scale::Nanoseconds, &one);
        let mut merged = first.clone();
        merged.merge(&counted(Scale::Nanoseconds, &two));
        assert_eq!(merged, counted(Scale::Nanoseconds, &both));
        assert_eq!(merged.since(&first).count(), two.len() as u64);
        assert_eq!(merged.since(&first).sum, two.iter().sum::<u64>());
        for bits in 9..38 {
            let exact = both.iter().filter(|value| **value <= 1 << bits).count() as u64;
            assert_eq!(merged.at_most(1 << bits), exact, "powers of two end a bucket");
        }
    }
}
