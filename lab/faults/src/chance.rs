//! Random numbers that the same seed gives again.

/// Steele, Lea and Flood's SplitMix64.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence for each `number`.
    pub fn branch(&self, number: u64) -> Self {
        Self(self.0 ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17))
    }

    pub fn word(&mut self) -> u64 {
        barnabas_base::split_mix_64(&mut self.0)
    }

    /// One of `low..high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.word() % (high - low).max(1)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.word().is_multiple_of(count)
    }
}
