//! When the faults are over, everyone is in sync, all logs are what was shown, every producer has its answers, and
//! nothing is moved any more.

use std::collections::BTreeMap;

use barnabas_base::BrokerId;
use barnabas_partition::ReplicaKey;

use super::{Batch, Broker, Client, History, Readable, View, Violation};

/// What can be seen without reading a log.
pub(super) fn check(
    histories: &BTreeMap<ReplicaKey, History>,
    view: &View<'_>,
    is_compacted: bool,
) -> Result<(), Violation> {
    // What a producer repeats may have been deleted since it was written. A leader that does not know it any more
    // refuses it again and again, as in Kafka, where the producer gives up.
    let may_wait = |client: &Client| {
        histories
            .get(&client.key)
            .is_some_and(|history| history.may_refuse(client.oldest_unanswered(), is_compacted))
    };
    let mut clients = view.clients.iter();
    if let Some(client) = clients.find(|client| !client.is_answered() && !may_wait(client)) {
        return Err(format!("{client:?} has no answer"));
    }
    let is_damaged = |broker: &&Broker| !broker.damaged.is_empty();
    if let Some(broker) = view.brokers.iter().find(is_damaged) {
        return Err(format!("{} has damage in {:?}", broker.id, broker.damaged));
    }
    for (key, state) in view.keys() {
        if state.isr().len() < state.replicas().len() || state.is_reassigning() {
            return Err(format!("{key:?} is {state:?}"));
        }
        let Some(history) = histories.get(&key) else { continue };
        for &id in state.replicas() {
            let Some(replica) = view.broker(id).and_then(|broker| broker.replica(key)) else {
                return Err(format!("{id} has no replica of {key:?}"));
            };
            let partition = &replica.partition;
            let ends = [partition.log_end(), partition.high_watermark()];
            if ends != [history.shown_end; 2] {
                return Err(format!("{id}'s log of {key:?} ends at {ends:?} of {}", history.shown_end));
            }
            let leader = view.broker(state.leader).and_then(|broker| broker.replica(key));
            let leaders = leader.map(|leader| leader.partition.log_start());
            if leaders.is_some_and(|start| partition.log_start() < start) {
                let start = partition.log_start();
                return Err(format!("{id}'s log of {key:?} begins at {start}, its leader's at {leaders:?}"));
            }
            if replica.repair.is_under_way() {
                return Err(format!("{id}'s log of {key:?} is damaged"));
            }
        }
    }
    Ok(())
}

/// Every log, read whole.
pub(super) fn check_log(
    id: BrokerId,
    key: ReplicaKey,
    log: &Readable,
    histories: &BTreeMap<ReplicaKey, History>,
) -> Result<(), Violation> {
    let Some(history) = histories.get(&key) else { return Ok(()) };
    let shown: Vec<&Batch> = history.shown.values().filter(|batch| batch.end() > log.start).collect();
    let log = &log.batches;
    if shown.iter().copied().eq(log) {
        return Ok(());
    }
    let at = shown.iter().zip(log).take_while(|(shown, found)| **shown == *found).count();
    Err(format!(
        "{id}'s log of {key:?} is not what was shown: {:?} where {:?} was shown",
        log.get(at),
        shown.get(at)
    ))
}
