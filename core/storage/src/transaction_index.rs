//! `%020d.txnindex`: the aborted transactions whose markers lie in a segment.

use barnabas_base::{Offset, ProducerId};

/// One aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// The offset of the abort marker.
    pub last_offset: Offset,
    /// The last stable offset once this transaction was over.
    pub last_stable_offset: Offset,
}
