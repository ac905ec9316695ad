//! In the end every coordinator is loaded and has nothing left to do.

use super::{View, Violation};
use crate::broker::coordinators::Machine;

pub(super) fn check(view: &View<'_>) -> Result<(), Violation> {
    if let Some(client) = view.writers.iter().find(|client| !client.is_at_rest()) {
        return Err(format!("{client:?} has not come to its end"));
    }
    for broker in view.brokers {
        let shards = broker.process.iter().flat_map(|process| &process.coordinators.shards);
        for (key, shard) in shards {
            let Machine::Transactions(machine) = &shard.machine else { continue };
            let stats = machine.stats();
            if !shard.is_active || stats.ongoing + stats.prepared + stats.parked > 0 {
                return Err(format!("{}'s coordinator {key:?}: {stats:?}", broker.id));
            }
        }
    }
    Ok(())
}
