//! A replica that its broker's heartbeats call damaged does not come into the ISR, unless it was eligible to lead: then
//! it counts already, and is not repaired while it does.

use barnabas_metadata::Image;
use barnabas_partition::ReplicaKey;

use super::Violation;
use crate::controller::Host;

/// `before`: what the controller answered AlterPartition on.
pub(super) fn check(before: &Image, host: &Host) -> Result<(), Violation> {
    let image = host.image();
    for topic in image.topics.by_ids() {
        let former = before.topics.by_id(topic.id);
        for (partition, state) in topic.partitions() {
            let Some(was) = former.and_then(|topic| topic.partition(partition)) else { continue };
            let key = ReplicaKey { topic: topic.id, partition };
            let counted = |id| was.isr().contains(id) || was.elr().contains(id);
            let mut joined = state.isr().iter().filter(|id| !counted(id));
            if let Some(id) = joined.find(|id| host.is_damaged(**id, key)) {
                return Err(format!("{id} is damaged, and came into the ISR of {key:?}: {was:?}, {state:?}"));
            }
        }
    }
    Ok(())
}
