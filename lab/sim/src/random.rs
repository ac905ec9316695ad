//! splitmix64: what is drawn is the same for the same seed.

#[derive(Debug, Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        barnabas_base::split_mix_64(&mut self.0)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.draw().to_be_bytes());
        bytes[8..].copy_from_slice(&self.draw().to_be_bytes());
        bytes
    }
}
