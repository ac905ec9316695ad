//! Random numbers from a seed that is handed in: the same seed, the same elections (SplitMix64, Steele et al. 2014).

/// A sequence of numbers that look random. Not for secrets.
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..bound`; 0 if there is none.
    pub fn below(&mut self, bound: i64) -> i64 {
        u64::try_from(bound).ok().filter(|&bound| bound > 0).map_or(0, |bound| (self.next() % bound) as i64)
    }
}
