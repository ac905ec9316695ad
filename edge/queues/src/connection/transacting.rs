//! What a connection does for transactions: control messages, transfers and outcomes that belong to one.
//!
//! All of it happens in the order in which the peer said it, before its next word is looked at: a discharge takes what
//! was said before it. Only a transaction's end is the work of a task.
//!
//! Before: edge/queues/src/connection.rs. Beside: transactions.rs. After: edge/queues/src/discharge.rs.

use super::Connection;
use super::transactions::{Retired, Transaction};
use crate::link::{Discharge, Ended, LinkPart, ToLink};
use crate::refusal::NOT_IMPLEMENTED;
use barnabas_amqp::{
    Arrived, Condition, Control, DeliveryKey, Outcome, PeerLink, UNKNOWN_TRANSACTION, decode_message,
};
use barnabas_amqp_records::whole;
use bytes::Bytes;
use std::collections::BTreeMap;

const DECODE_ERROR: &str = "amqp:decode-error";

impl Connection {
    /// A message to the coordinator.
    pub(super) fn take_control(&mut self, arrived: Arrived) {
        let now = self.now();
        let Arrived { link, id, is_settled, payload, .. } = arrived;
        let bytes = payload.len();
        let outcome = match Control::decode(payload) {
            Ok(Control::Declare { is_global: false }) => match self.transactions.declare(link, now) {
                Ok(txn_id) => Outcome::Declared { txn_id },
                Err(why) => Outcome::Rejected(why),
            },
            Ok(Control::Declare { is_global: true }) => {
                let words = "transactions over several coordinators are not there";
                Outcome::Rejected(Condition::new(NOT_IMPLEMENTED, words))
            }
            Ok(Control::Discharge { txn_id, fail }) => match self.transactions.take(&txn_id) {
                Ok(transaction) => {
                    let ends = (link, (!is_settled).then_some(id), bytes);
                    return self.discharge(ends, transaction, fail);
                }
                Err(why) => Outcome::Rejected(why),
            },
            Err(error) => Outcome::Rejected(Condition::new(DECODE_ERROR, error.to_string())),
        };
        self.settle(link, id, (!is_settled).then_some(outcome), bytes);
    }

    /// The coordinator's task ends it.
    fn discharge(
        &mut self,
        (link, id, bytes): (PeerLink, Option<DeliveryKey>, usize),
        transaction: Transaction<PeerLink, DeliveryKey>,
        fail: bool,
    ) {
        let Transaction { puts, put_bytes, retired, failed, .. } = transaction;
        let commits = !fail && failed.is_none();
        let mut parts: BTreeMap<PeerLink, LinkPart> = BTreeMap::new();
        for (id, retired) in retired {
            let to = self.links.get(&retired.link).map(|held| &held.to);
            let Some(to) = to.or_else(|| self.lingering.get(&retired.link)) else { continue };
            let part = parts.entry(retired.link).or_insert_with(|| LinkPart::new(to.clone()));
            part.retired.push((id, retired.place, retired.outcome, retired.is_settled));
        }
        let refusal = failed.filter(|_| !fail);
        let puts = if commits { puts } else { Vec::new() };
        let parts = parts.into_values().collect();
        let discharge = Discharge { id, bytes, commits, refusal, puts, put_bytes, parts };
        if let Some(held) = self.links.get(&link) {
            held.tell(ToLink::Discharge(Box::new(discharge)));
        }
        self.end_lingering();
    }

    /// A transaction has ended.
    pub(super) fn discharged(&mut self, link: PeerLink, ended: Ended) {
        for (id, outcome) in ended.retired {
            match outcome {
                Some(outcome) => {
                    for held in self.links.values_mut() {
                        held.places.remove(&id);
                    }
                    self.server.conclude(id, outcome);
                }
                None => self.server.reopen(id),
            }
        }
        self.transactions.written(ended.put_bytes);
        match ended.id {
            Some(id) => self.settle(link, id, Some(ended.outcome), ended.bytes),
            None => self.settled(link, ended.bytes),
        }
    }

    /// A message that belongs to a transaction.
    pub(super) fn take_put(&mut self, arrived: Arrived, txn_id: Bytes) {
        let now = self.now();
        let Arrived { link, id, is_settled, payload, .. } = arrived;
        let bytes = payload.len();
        let topic = self.links.get(&link).and_then(|held| held.topic.clone()).unwrap_or_default();
        let made = decode_message(payload).map_err(|error| error.to_string());
        let put = match made.and_then(|message| whole::record(&message)) {
            Ok(record) => self.transactions.put(&txn_id, &topic, record, now),
            Err(words) => {
                self.transactions.fail(&txn_id, &words);
                Err(Condition::new(DECODE_ERROR, words))
            }
        };
        if let Err(why) = &put
            && is_settled
            && why.condition == UNKNOWN_TRANSACTION
        {
            self.server.release(bytes);
            return self.end_link(link, why.clone());
        }
        let outcome = put.map_or_else(Outcome::Rejected, |()| Outcome::Accepted);
        let outcome = Outcome::Transactional { txn_id, outcome: Some(Box::new(outcome)) };
        self.settle(link, id, (!is_settled).then_some(outcome), bytes);
    }

    /// What became of a delivery, in a transaction or not.
    pub(super) fn take_outcome(
        &mut self,
        link: PeerLink,
        id: DeliveryKey,
        outcome: Outcome,
        is_settled: bool,
    ) {
        let Some(held) = self.links.get_mut(&link) else { return };
        if let Outcome::Transactional { txn_id, outcome } = outcome {
            let place = if is_settled { held.places.remove(&id) } else { held.places.get(&id).copied() };
            let Some(place) = place else { return };
            let outcome = outcome.map_or(Outcome::Released, |outcome| *outcome);
            return self.retire(&txn_id, id, Retired { link, place, outcome, is_settled });
        }
        if let Some(place) = held.places.remove(&id) {
            held.tell(ToLink::Outcome { id, place, outcome, is_settled });
            self.transactions.forget(&id);
        }
    }

    fn retire(&mut self, txn_id: &Bytes, id: DeliveryKey, retired: Retired<PeerLink>) {
        let now = self.now();
        let Err(why) = self.transactions.retire(txn_id, id, retired.clone(), now) else { return };
        let link = retired.link;
        self.give_back(id, retired);
        if why.condition == UNKNOWN_TRANSACTION {
            self.end_link(link, why);
        }
    }

    /// A transaction that is rolled back without its controller's word held this delivery.
    fn give_back(&mut self, id: DeliveryKey, retired: Retired<PeerLink>) {
        let Retired { link, place, is_settled, .. } = retired;
        if !is_settled {
            return self.server.reopen(id);
        }
        if let Some(held) = self.links.get(&link) {
            held.tell(ToLink::Outcome { id, place, outcome: Outcome::Released, is_settled });
        }
        // The task of a link that is gone gives back everything when its last transaction ends.
    }

    /// A link is gone: its transactions are rolled back, and its task ends, unless what it delivered is in one.
    pub(super) fn forget_link(&mut self, link: PeerLink) {
        let held = self.links.remove(&link);
        for transaction in self.transactions.end_link(link) {
            for (id, retired) in transaction.retired {
                self.give_back(id, retired);
            }
        }
        if let Some(held) = held.filter(|_| self.transactions.holds(link)) {
            self.lingering.insert(link, held.to);
        }
        self.end_lingering();
    }

    /// Ends a link from this side.
    pub(super) fn end_link(&mut self, link: PeerLink, why: Condition) {
        self.forget_link(link);
        self.server.refuse(link, why);
    }

    pub(super) fn expire_transactions(&mut self) {
        for (id, retired) in self.transactions.expire(self.now()) {
            self.give_back(id, retired);
        }
        self.end_lingering();
    }

    fn end_lingering(&mut self) {
        let transactions = &self.transactions;
        self.lingering.retain(|link, _| transactions.holds(*link));
    }
}
