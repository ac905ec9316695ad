//! How many bytes of which partition go into one answer.
//!
//! Partitions are read in the order of the request (or of the session, which lets them take turns). Each may give up to
//! its own bound, all together up to the answer's; the first that has anything gives at least one whole batch, however
//! large, so that a consumer with small bounds is never stuck (KIP-74).
//!
//! Source: Kafka 4.4 `ReplicaManager.readFromLog`.

/// What is left of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left_bytes: usize,
    /// Nothing was taken yet, and the version allows a first batch beyond the bounds.
    one_batch_free: bool,
}

/// What one partition may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    pub bytes: usize,
    /// The first batch may be taken even if it is larger.
    pub at_least_one: bool,
}

impl Budget {
    /// `one_batch_free` is false for versions that hold their bounds hard (0 to 2).
    pub fn new(bytes_max: usize, one_batch_free: bool) -> Self {
        Self { left_bytes: bytes_max, one_batch_free }
    }

    /// What the next partition may give.
    pub fn allow(&self, partition_bytes_max: usize) -> Allowance {
        Allowance { bytes: partition_bytes_max.min(self.left_bytes), at_least_one: self.one_batch_free }
    }

    /// Takes what a partition gave.
    pub fn take(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.one_batch_free &= bytes == 0;
    }

    /// Nothing more may be taken: the partitions that remain need not be read, but their state is still answered.
    pub fn is_spent(&self) -> bool {
        self.left_bytes == 0 && !self.one_batch_free
    }
}
