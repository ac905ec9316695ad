//! Random numbers from a seed that is handed in: the same seed, the same elections.

/// A sequence of numbers that look random. Not for secrets.
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        barnabas_base::split_mix_64(&mut self.0)
    }

    /// One of `0..bound`; 0 if there is none.
    pub fn below(&mut self, bound: i64) -> i64 {
        u64::try_from(bound).ok().filter(|&bound| bound > 0).map_or(0, |bound| (self.next() % bound) as i64)
    }
}
