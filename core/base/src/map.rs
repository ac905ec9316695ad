//! Hash maps whose order of iteration depends on nothing but one seed.
//!
//! std's default hasher draws a random seed for every map, which would make a simulation's trace differ from run to
//! run. The shell sets one random seed when the process starts (so that strangers cannot choose colliding keys); the
//! simulator and tests leave it at 0.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

static SEED: AtomicU64 = AtomicU64::new(0);

/// Sets the seed of every map made from now on. Called once, by `main`, before any map exists.
pub fn seed_maps(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

/// A hash map that iterates in the same order for the same seed and history.
pub type Map<K, V> = HashMap<K, V, HashState>;
/// A hash set that iterates in the same order for the same seed and history.
pub type Set<K> = HashSet<K, HashState>;

/// Builds the hashers of [`Map`] and [`Set`].
#[derive(Debug, Clone, Copy)]
pub struct HashState {
    seed: u64,
}

impl Default for HashState {
    fn default() -> Self {
        Self { seed: SEED.load(Ordering::Relaxed) }
    }
}

impl BuildHasher for HashState {
    type Hasher = <foldhash::quality::FixedState as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        foldhash::quality::FixedState::with_seed(self.seed).build_hasher()
    }
}
