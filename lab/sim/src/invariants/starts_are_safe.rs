//! Retention and DeleteRecords delete nothing that no high watermark has shown. A replica that is new on a broker
//! begins no later than some replica of it did before, and none begins below what DeleteRecords has answered. Where a
//! broker had the replica before, `durable_is_kept` knows where its log began.

use barnabas_base::{BrokerId, Offset};
use barnabas_partition::ReplicaKey;

use super::{History, View, Violation};

/// What lies below `start` was deleted.
pub(super) fn check(
    id: BrokerId,
    key: ReplicaKey,
    start: Offset,
    history: &mut History,
) -> Result<(), Violation> {
    if start > history.shown_end {
        let shown = history.shown_end;
        return Err(format!(
            "{id} deletes {key:?} up to {start}, and only what lies below {shown} was shown"
        ));
    }
    history.started = history.started.max(start);
    Ok(())
}

pub(super) fn check_opened(
    id: BrokerId,
    key: ReplicaKey,
    start: Offset,
    history: &History,
    view: &View<'_>,
) -> Result<(), Violation> {
    if start > history.started {
        let started = history.started;
        return Err(format!(
            "{id} finds {key:?} from {start} on, and only what lies below {started} was deleted"
        ));
    }
    let answered = view.broker(id).and_then(|broker| broker.deleted.get(&key));
    match answered.filter(|answered| start < **answered) {
        Some(answered) => Err(format!("{id} finds {key:?} from {start} on, and had answered {answered}")),
        None => Ok(()),
    }
}
