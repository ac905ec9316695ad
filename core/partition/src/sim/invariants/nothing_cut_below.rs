//! The high watermark never goes back: no election is unclean here, so that no log is cut below it.
//!
//! Forward it goes by [`crate::Partition`]'s own invariants; a new leader's may lie behind the former one's, as Kafka allows, and
//! is then not told to anybody who asks where the log ends (KIP-207).

use barnabas_base::{BrokerId, Offset};

use super::Violation;

pub(super) fn check(id: BrokerId, to: Offset, high_watermark: Offset) -> Result<(), Violation> {
    if to >= high_watermark {
        return Ok(());
    }
    Err(format!("{id} cuts its log to {to}, below its high watermark {high_watermark}"))
}
