//! No log is cut below its high watermark: no election is unclean here.

use barnabas_base::{BrokerId, Offset};
use barnabas_partition::ReplicaKey;

use super::Violation;

pub(super) fn check(
    id: BrokerId,
    key: ReplicaKey,
    to: Offset,
    high_watermark: Offset,
) -> Result<(), Violation> {
    if to >= high_watermark {
        return Ok(());
    }
    Err(format!("{id} cuts {key:?} to {to}, below its high watermark {high_watermark}"))
}
