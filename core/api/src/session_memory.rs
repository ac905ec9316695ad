//! What sessions of fetches and share fetches take in memory, and what it is taken from.
//!
//! A session stays after its request, so a request's share of the memory budget does not cover it. Each session holds a
//! share of its own ([`SessionShare`]), which is asked for before anything is kept.

use crate::Lender;

/// A session's share of the node's memory for sessions. The session calls `lend` with its new size,
/// which may be smaller than before.
pub type SessionShare = Box<dyn Lender + Send>;

/// What a map's entry takes: as much again is room to grow, or on the way to its double.
pub(crate) const fn entry_bytes(bytes: usize) -> u64 {
    2 * bytes as u64
}

/// What one partition takes while a request is answered that does not name it: its entries in the plan, the questions
/// to the owners and the answer. An estimate.
pub(crate) const WORK_BYTES: u64 = 1024;
