//! What must hold, looked at as it happens and in the end.

use std::collections::BTreeMap;

use barnabas_coordinator::{TransactionRequest, TransactionResponse, TransactionState};

use super::partition::{Partition, Value};
use super::world::{From, Message, World, state_of, value_of};

impl World {
    /// What clients are told is looked at, and goes its way.
    pub(super) fn told(&mut self, from: From, request: TransactionRequest, response: TransactionResponse) {
        let id = self.clients[from.client].id;
        let held = self.last.get(&format!("id-{id}")).copied().unwrap_or((-1, -1));
        match (&request, &response) {
            (_, TransactionResponse::InitProducerId(init)) if init.error_code == 0 => {
                let given = (init.producer_id, init.producer_epoch);
                if given != held {
                    self.found.push(format!("{given:?} is given and {held:?} on disk"));
                }
                self.fenced[id] = self.fenced[id].max(given);
            }
            (TransactionRequest::EndTxn(end), TransactionResponse::EndTxn(ended))
                if ended.error_code == 0 && self.bumps =>
            {
                let given = (ended.producer_id, ended.producer_epoch);
                if given != held {
                    self.found.push(format!("{given:?} is told and {held:?} on disk"));
                }
                let what = (end.committed, given.0, given.1);
                let key = (end.producer_id, end.producer_epoch);
                let before = *self.ended.entry(key).or_insert(what);
                if before != what {
                    self.found.push(format!("the end of {key:?} was {before:?} and is {what:?}"));
                }
            }
            _ => {}
        }
        self.network.push(Message::Told { from, request, response });
    }

    /// What is on disk: epochs never go back, decisions are never turned.
    pub(super) fn read_log(&mut self) {
        self.read = self.read.min(self.rig.log.len());
        for at in self.read..self.rig.log.len() {
            let (id, Some(value)) = value_of(&self.rig.log[at]) else { continue };
            let now = (value.producer_id, value.producer_epoch);
            // What the client goes on with.
            let next = if value.next_producer_id >= 0 { (value.next_producer_id, 0) } else { now };
            let before = self.last.insert(id.clone(), next).unwrap_or((-1, -1));
            if next < before {
                self.found.push(format!("{id} goes back from {before:?} to {now:?}"));
            }
            let state = state_of(&value);
            let number: usize = id.trim_start_matches("id-").parse().expect("a number");
            if state.is_idle() {
                self.fenced[number] = self.fenced[number].max(now);
            }
            if state.is_prepared() {
                let commit = state == TransactionState::PrepareCommit;
                let before = self.decided.insert((id.clone(), now.0, now.1), commit).unwrap_or(commit);
                if before != commit && self.bumps {
                    self.found.push(format!("{id} under {now:?} is committed and aborted"));
                }
            }
        }
        self.read = self.rig.log.len();
    }

    /// What was written, against what clients were told.
    pub fn check(&mut self) {
        let mut fate: BTreeMap<Value, Option<bool>> = BTreeMap::new();
        for written in self.partitions.iter().flat_map(|partition| &partition.log) {
            if fate.insert(written.value, written.committed).is_some() {
                self.found.push(format!("{} is there twice", written.value));
            }
        }
        for attempt in self.clients.iter().flat_map(|client| &client.attempts) {
            let fates: Vec<Option<bool>> =
                attempt.values.iter().filter_map(|(_, value)| fate.get(value).copied()).collect();
            let is_torn = fates.contains(&Some(true)) && fates.contains(&Some(false));
            if is_torn {
                self.found.push(format!("{attempt:?} is torn: {fates:?}"));
            }
            let acked = |value: &Value| fate.get(value).copied();
            match attempt.told {
                Some(true) if attempt.acked.iter().any(|value| acked(value) == Some(Some(false))) => {
                    self.found.push(format!("{attempt:?} was told committed: {fates:?}"));
                }
                Some(true) if attempt.acked.iter().any(|value| acked(value).is_none()) => {
                    self.found.push(format!("{attempt:?} lost what was acknowledged"));
                }
                Some(false) if fates.contains(&Some(true)) => {
                    self.found.push(format!("{attempt:?} was told aborted: {fates:?}"));
                }
                _ => {}
            }
        }
    }

    /// After the faults: nothing stays open or undecided.
    pub fn check_end(&mut self) {
        let stats = self.rig.shard.stats();
        if stats.ongoing + stats.prepared > 0 {
            self.found.push(format!("something is not ended: {stats:?}"));
        }
        if self.partitions.iter().any(Partition::is_open) {
            self.found.push("a partition waits for a marker for ever".to_owned());
        }
    }

    /// How many transactions came to which end, as clients know.
    pub fn told_ends(&self) -> (usize, usize) {
        let attempts = || self.clients.iter().flat_map(|client| &client.attempts);
        let told =
            |what| attempts().filter(move |attempt| attempt.told == Some(what) && !attempt.acked.is_empty());
        (told(true).count(), told(false).count())
    }
}
