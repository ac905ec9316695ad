//! What a high watermark shows is durable on every replica that the controller counts as in sync.

use barnabas_partition::ReplicaKey;

use super::{Batch, Broker, View, Violation};

pub(super) fn check(key: ReplicaKey, batch: &Batch, view: &View<'_>) -> Result<(), Violation> {
    let Some(state) = view.state(key) else { return Ok(()) };
    for broker in view.brokers.iter().filter(|broker| state.isr().contains(&broker.id) && !broker.is_hollow) {
        if !broker.has(key, batch) {
            return Err(format!("{batch:?} of {key:?} is shown, and {} in sync does not have it", broker.id));
        }
    }
    // A cancelled reassignment may remove a replica that was counted: a leader learns of both in its own time.
    let may_have_had = |broker: &Broker| broker.has_lost_disk || broker.given_up.contains(&key);
    let copies = view.brokers.iter().filter(|broker| may_have_had(broker) || broker.has(key, batch)).count();
    if copies < 2.min(state.replicas().len()) {
        return Err(format!("{batch:?} of {key:?} is shown with {copies} copies"));
    }
    Ok(())
}
