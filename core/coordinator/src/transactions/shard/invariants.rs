//! What must hold of a shard after every call, one function for each. Tests and the simulator ask after every step;
//! each function has a planted bug in the tests that makes it speak.

use barnabas_base::{ProducerId, Set, Text};

use super::{Entry, TimerKey, TransactionShard};
use crate::framework::Ticket;
use crate::transactions::{TransactionState, transaction::Transaction};

#[cfg(test)]
mod tests;

pub(crate) fn violations(shard: &TransactionShard) -> Vec<String> {
    let mut found = Vec::new();
    for (id, entry) in &shard.entries {
        let checks = [
            holds_something(entry),
            values_fit(entry),
            step_is_one(entry),
            changes_are_few(entry),
            epoch_rises(entry),
            markers_fit(entry),
            open_is_watched(shard, id, entry),
            decision_goes_on(shard, id, entry),
        ];
        found.extend(checks.into_iter().flatten().map(|what| format!("transactional id {id}: {what}")));
    }
    found.extend(held_is_the_sum(shard));
    found.extend(timers_have_an_object(shard));
    found.extend(tickets_wait_once(shard));
    found.extend(parked_are_watched(shard));
    found
}

fn holds_something(entry: &Entry) -> Option<String> {
    entry.transaction.is_gone().then(|| "nothing is known of it".to_owned())
}

fn values_fit(entry: &Entry) -> Option<String> {
    let both = [entry.transaction.committed(), entry.transaction.latest()];
    both.into_iter().flatten().find_map(value_fits)
}

fn value_fits(value: &Transaction) -> Option<String> {
    let state = value.state.name();
    if value.producer_id.get() < 0 || value.producer_epoch.get() < 0 {
        return Some(format!("is {state} under {} and {}", value.producer_id, value.producer_epoch));
    }
    if value.state.is_idle() && !value.partitions.is_empty() {
        return Some(format!("is {state} and has partitions"));
    }
    if !value.state.is_prepared() && value.next_producer_id != ProducerId::NONE {
        return Some(format!("is {state} and has a next producer id"));
    }
    None
}

/// Each step by itself: behind a transaction's end the next one may be on its way.
fn steps(entry: &Entry) -> impl Iterator<Item = (&Transaction, &Transaction)> {
    let values = || entry.transaction.steps();
    values().zip(values().skip(1)).filter_map(|(from, to)| Some((from?, to?)))
}

fn step_is_one(entry: &Entry) -> Option<String> {
    // Where the record of an end was lost, the beginning behind it stands for both.
    let is_written = entry.markers.as_ref().is_some_and(|markers| markers.awaited.is_empty());
    let begins =
        |from: TransactionState, to| is_written && from.is_prepared() && to == TransactionState::Ongoing;
    let mut steps = steps(entry).map(|(from, to)| (from.state, to.state));
    let wrong = steps.find(|&(from, to)| !to.may_follow(from) && !begins(from, to));
    wrong.map(|(from, to)| format!("goes from {} to {}", from.name(), to.name()))
}

/// The end of a transaction and the beginning of the next one are the most that is under way.
fn changes_are_few(entry: &Entry) -> Option<String> {
    let count = entry.transaction.steps().skip(1).count();
    (count > 2).then(|| format!("has {count} changes under way"))
}

fn epoch_rises(entry: &Entry) -> Option<String> {
    let falls = |(from, to): &(&Transaction, &Transaction)| {
        from.producer_id == to.producer_id && to.producer_epoch < from.producer_epoch
    };
    let (from, to) = steps(entry).find(falls)?;
    Some(format!("goes back from epoch {} to {}", from.producer_epoch, to.producer_epoch))
}

fn markers_fit(entry: &Entry) -> Option<String> {
    let markers = entry.markers.as_ref()?;
    let known = entry.transaction.committed().filter(|known| known.state.is_prepared());
    let Some(known) = known else { return Some("has markers to write and no decision".to_owned()) };
    if !markers.awaited.is_subset(&known.partitions) || !markers.failed.is_subset(&markers.awaited) {
        return Some("waits for markers that are not its own".to_owned());
    }
    None
}

/// No transaction is open for ever.
fn open_is_watched(shard: &TransactionShard, id: &Text, entry: &Entry) -> Option<String> {
    let known = entry.transaction.committed()?;
    let is_open = known.state == TransactionState::Ongoing && !known.is_two_phase();
    let decides = entry.transaction.latest().is_some_and(|latest| latest.state.is_prepared());
    let is_watched = shard.timers.is_set(&TimerKey::Timeout(id.clone()));
    (shard.is_active() && is_open && !decides && !is_watched).then(|| "is open without a timer".to_owned())
}

/// A decision that is on disk comes to its end.
fn decision_goes_on(shard: &TransactionShard, id: &Text, entry: &Entry) -> Option<String> {
    let known = entry.transaction.committed()?;
    if !known.state.is_prepared() || !shard.is_active() {
        return None;
    }
    let Some(markers) = &entry.markers else { return Some("is decided and has no markers".to_owned()) };
    let retries = shard.timers.is_set(&TimerKey::Retry(id.clone()));
    if !markers.failed.is_empty() && !markers.is_fenced && !retries {
        return Some("has markers that failed and are not tried again".to_owned());
    }
    let is_stuck = markers.awaited.is_empty() && !entry.transaction.is_changing() && !retries;
    is_stuck.then(|| "has all its markers and does not end".to_owned())
}

fn held_is_the_sum(shard: &TransactionShard) -> Option<String> {
    let entries = shard.entries.iter();
    let weights = entries.map(|(id, entry)| super::weigh(id, entry.transaction.steps().flatten()));
    let (sum, held) = (weights.sum::<usize>(), shard.room().held());
    (sum != held).then(|| format!("transactional ids take {sum} bytes, and {held} are counted"))
}

fn timers_have_an_object(shard: &TransactionShard) -> Option<String> {
    let (timers, max) = (shard.timers.len(), shard.entries.len() * 2 + shard.parked_ids() + 1);
    (timers > max).then(|| format!("{timers} timers where at most {max} can mean something"))
}

/// Requests wait only for an id that is busy, and something ends that wait.
fn parked_are_watched(shard: &TransactionShard) -> Option<String> {
    let is_lost = |id: &&Text| !shard.timers.is_set(&TimerKey::Parked((*id).clone())) || !shard.is_busy(id);
    shard.parked().find(is_lost).map(|id| format!("requests wait for {id} without a wake-up"))
}

fn tickets_wait_once(shard: &TransactionShard) -> Option<String> {
    let mut seen: Set<Ticket> = Set::default();
    let twice = shard.tickets().find(|ticket| !seen.insert(*ticket));
    twice.map(|ticket| format!("ticket {} waits twice", ticket.0))
}
