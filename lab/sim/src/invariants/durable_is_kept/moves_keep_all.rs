//! A replica that has moved to another log directory has the log that it had.

use barnabas_base::BrokerId;
use barnabas_partition::ReplicaKey;

use super::{Readable, Violation};

pub(in crate::invariants) fn check(
    id: BrokerId,
    key: ReplicaKey,
    before: &Readable,
    after: &Readable,
) -> Result<(), Violation> {
    // What cannot be read cannot be copied, and its move has failed.
    if !before.is_whole {
        return Err(format!("{id} has moved {key:?}, which is damaged"));
    }
    let is_same = (before.start, before.end) == (after.start, after.end) && before.batches == after.batches;
    if is_same && after.is_whole {
        return Ok(());
    }
    let differs = before.batches.iter().zip(&after.batches).find(|(before, after)| before != after);
    Err(format!(
        "{id} has moved {key:?} from {} to {}, and it reaches from {} to {}; the first that differs: {differs:?}",
        before.start, before.end, after.start, after.end
    ))
}
