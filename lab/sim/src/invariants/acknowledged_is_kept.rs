//! Every elected leader has every acknowledged record that was not deleted.

pub(crate) mod compaction_keeps;

use barnabas_base::BrokerId;
use barnabas_partition::ReplicaKey;

use super::{Batch, History, Readable, Violation};

pub(super) fn check(
    leader: BrokerId,
    key: ReplicaKey,
    log: &Readable,
    history: &History,
) -> Result<(), Violation> {
    let has = |acked: &Batch| {
        let at = log.batches.partition_point(|batch| batch.base < acked.base);
        log.batches.get(at) == Some(acked) || acked.end() <= log.start.min(history.started)
    };
    match history.acked.iter().find(|acked| !has(acked)) {
        Some(acked) => Err(format!("{leader} leads {key:?} without {acked:?}")),
        None => Ok(()),
    }
}
