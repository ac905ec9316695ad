//! Damaged places that have been named, so that each is named once until it is repaired.
//!
//! Neighbours: scrub.rs, which names them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Places that are remembered as named; past that they are named again.
const PLACES_MAX: usize = 10_000;

/// Damaged places that have been named.
#[derive(Debug, Default)]
pub struct Damages {
    named: Mutex<BTreeSet<(PathBuf, u64)>>,
}

impl Damages {
    /// Whether this place is new.
    pub fn note(&self, file: &Path, position: u64) -> bool {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= PLACES_MAX {
            named.clear();
        }
        named.insert((file.to_path_buf(), position))
    }

    /// The partition in this directory is whole again: damage that comes back is named again.
    pub fn repaired(&self, partition_dir: &Path) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|(file, _)| file.parent() != Some(partition_dir));
    }
}
