//! Every elected leader has every acknowledged record.

use barnabas_base::BrokerId;
use barnabas_partition::ReplicaKey;

use super::{Batch, History, Violation};

pub(super) fn check(
    leader: BrokerId,
    key: ReplicaKey,
    log: &[Batch],
    history: &History,
) -> Result<(), Violation> {
    let has = |acked: &Batch| {
        let at = log.partition_point(|batch| batch.base < acked.base);
        log.get(at) == Some(acked)
    };
    match history.acked.iter().find(|acked| !has(acked)) {
        Some(acked) => Err(format!("{leader} leads {key:?} without {acked:?}")),
        None => Ok(()),
    }
}
