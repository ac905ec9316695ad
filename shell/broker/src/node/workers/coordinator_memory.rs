//! Bytes that the coordinators of a node hold, over all workers: one number, which each worker's hosts keep up
//! (coordinator_worker/memory.rs).

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the coordinators of a node hold.
#[derive(Debug, Default)]
pub struct CoordinatorMemory(AtomicUsize);

impl CoordinatorMemory {
    /// What held `before` bytes holds `now`.
    pub fn change(&self, before: usize, now: usize) {
        // A difference below zero wraps, and the sum wraps back.
        self.0.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// What all hold but for one that holds `own`.
    pub fn besides(&self, own: usize) -> usize {
        self.0.load(Ordering::Relaxed).saturating_sub(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_the_sum_of_the_shards() {
        let memory = CoordinatorMemory::default();
        memory.change(0, 500);
        memory.change(0, 100);
        memory.change(500, 200);
        assert_eq!((memory.besides(0), memory.besides(100)), (300, 200));
        memory.change(200, 0);
        memory.change(100, 0);
        assert_eq!(memory.besides(0), 0);
    }
}
