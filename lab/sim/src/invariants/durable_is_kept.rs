//! What a broker has called durable is there after whatever stop, as it was, and its log begins no later than it did.

pub(super) mod moves_keep_all;

use barnabas_base::BrokerId;
use barnabas_partition::ReplicaKey;

use super::{Readable, View, Violation};

pub(super) fn check(id: BrokerId, key: ReplicaKey, log: &Readable, view: &View<'_>) -> Result<(), Violation> {
    let Some(durable) = view.broker(id).and_then(|broker| broker.durable.get(&key)) else { return Ok(()) };
    if log.start > durable.start {
        return Err(format!("{id} finds {key:?} from {} on, and it began at {}", log.start, durable.start));
    }
    let mut found = log.batches.iter().peekable();
    for batch in &durable.log {
        while found.next_if(|other| other.base < batch.base).is_some() {}
        if found.peek() != Some(&batch) {
            return Err(format!("{id} called {batch:?} of {key:?} durable, and finds {:?}", found.peek()));
        }
    }
    Ok(())
}
