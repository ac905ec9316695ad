//! What compaction's threads share with the rest of the node: what may have something to compact, and how much was
//! done.
//!
//! Neighbours: cleaner.rs, the threads.

pub mod candidates;
pub mod figures;

use candidates::Candidates;
use figures::Figures;

/// What compaction's threads and everybody else share.
#[derive(Debug, Default)]
pub struct Compaction {
    pub candidates: Candidates,
    pub figures: Figures,
}
