//! An idempotent producer's batches are there once, in their order, without a gap: as long as any of them is there. A
//! replica that began behind deleted records knows nothing of their producers, as in Kafka, and takes what comes.

use std::collections::BTreeMap;

use barnabas_base::{Offset, ProducerId, Sequence};

use super::{Batch, Violation};

/// The sequence that comes next, and where the last batch ended; of a producer that has written nothing, nowhere.
pub(super) type Expected = (Sequence, Offset);

/// In the order of their offsets. What lies below `started` was deleted.
pub(super) fn check(
    batch: &Batch,
    started: Offset,
    expected: &mut BTreeMap<ProducerId, Expected>,
) -> Result<(), Violation> {
    let (next, end) = expected.entry(batch.producer).or_insert((Sequence(0), Offset(i64::MAX)));
    if batch.sequence != *next && *end > started {
        return Err(format!("{batch:?} is shown where sequence {next} comes next"));
    }
    (*next, *end) = (batch.sequence.plus(batch.offsets), batch.end());
    Ok(())
}
