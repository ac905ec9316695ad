//! When the faults are over, everyone is in sync, all logs are what was shown, every producer has its answers, and nothing is moved any
//! more.

use std::collections::BTreeMap;

use barnabas_partition::ReplicaKey;

use super::{History, View, Violation};

pub(super) fn check(histories: &BTreeMap<ReplicaKey, History>, view: &View<'_>) -> Result<(), Violation> {
    if let Some(client) = view.clients.iter().find(|client| !client.is_answered()) {
        return Err(format!("{client:?} has no answer"));
    }
    for (key, state) in view.keys() {
        if state.isr().len() < state.replicas().len() || state.is_reassigning() {
            return Err(format!("{key:?} is {state:?}"));
        }
        let Some(history) = histories.get(&key) else { continue };
        for &id in state.replicas() {
            let process = view.broker(id).and_then(|broker| broker.process.as_ref());
            let Some(replica) = process.and_then(|process| process.replicas.get(&key)) else {
                return Err(format!("{id} has no replica of {key:?}"));
            };
            let partition = &replica.partition;
            let ends = [partition.log_end(), partition.high_watermark()];
            if ends != [history.shown_end; 2] || !history.shown.values().eq(&replica.log) {
                return Err(format!("{id}'s log of {key:?} ends at {ends:?} of {}", history.shown_end));
            }
        }
    }
    Ok(())
}
