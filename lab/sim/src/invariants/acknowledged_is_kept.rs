//! Whoever is elected has every record that was acknowledged.

use barnabas_partition::ReplicaKey;

use super::{Batch, Broker, History, View, Violation};

pub(super) fn check(
    broker: &Broker,
    key: ReplicaKey,
    history: &History,
    view: &View<'_>,
) -> Result<(), Violation> {
    let replica = broker.process.as_ref().and_then(|process| process.replicas.get(&key));
    let (Some(replica), Some(state)) = (replica, view.state(key)) else { return Ok(()) };
    if replica.partition.leader_epoch() != state.leader_epoch {
        // Somebody else has been elected since.
        return Ok(());
    }
    let has = |acked: &Batch| {
        let at = replica.log.partition_point(|batch| batch.base < acked.base);
        replica.log.get(at) == Some(acked)
    };
    match history.acked.iter().find(|acked| !has(acked)) {
        Some(acked) => {
            Err(format!("{} leads {key:?} in {} without {acked:?}", broker.id, state.leader_epoch))
        }
        None => Ok(()),
    }
}
