//! What must hold after every step, one invariant per file.

mod acknowledged_is_kept;
mod at_rest;
mod batches_once;
mod exposed_is_safe;
mod logs_match;
mod metadata_is_sound;
mod nothing_cut_below;
mod transactions;

use std::cell::Cell;
use std::collections::BTreeMap;

use barnabas_base::{BrokerId, Offset, ProducerId, Sequence};
use barnabas_metadata::{Image, Partition as State};
use barnabas_partition::ReplicaKey;

use crate::batch::{Batch, Contents, Value};
use crate::broker::{Broker, Event};
use crate::clients::Client;
use crate::counts::{Checks, Invariant};
use crate::network::Answer;
use crate::transactional::TxnClient;
use transactions::Ledger;

/// An invariant that does not hold: which, and how it was seen.
pub(crate) type Violation = String;

/// The whole world, as an invariant sees it.
pub(crate) struct View<'a> {
    pub brokers: &'a [Broker],
    pub clients: &'a [Client],
    /// Clients that write in transactions.
    pub writers: &'a [TxnClient],
    pub image: &'a Image,
}

impl View<'_> {
    fn broker(&self, id: BrokerId) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.id == id)
    }

    fn state(&self, key: ReplicaKey) -> Option<&State> {
        self.image.topics.by_id(key.topic)?.partition(key.partition)
    }

    fn keys(&self) -> impl Iterator<Item = (ReplicaKey, &State)> {
        self.image.topics.by_ids().flat_map(|topic| {
            let key = move |partition| ReplicaKey { topic: topic.id, partition };
            topic.partitions().map(move |(partition, state)| (key(partition), state))
        })
    }
}

/// What has been shown of one partition, and what was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct History {
    shown: BTreeMap<Offset, Batch>,
    shown_end: Offset,
    acked: Vec<Batch>,
    /// The sequence that each producer's next batch must begin with.
    next: BTreeMap<ProducerId, Sequence>,
    /// Up to where each replica's log was compared.
    compared: BTreeMap<BrokerId, Offset>,
}

#[derive(Debug, Default)]
pub(crate) struct Judge {
    histories: BTreeMap<ReplicaKey, History>,
    ledger: Ledger,
    checks: Cell<Checks>,
}

impl Judge {
    fn asked(&self, invariant: Invariant) {
        let mut checks = self.checks.get();
        checks.note(invariant);
        self.checks.set(checks);
    }

    /// How often each invariant was asked.
    pub fn checks(&self) -> Checks {
        self.checks.get()
    }

    /// A broker did something.
    pub fn happened(&mut self, id: BrokerId, event: &Event, view: &View<'_>) -> Result<(), Violation> {
        let Some(broker) = view.broker(id) else { return Ok(()) };
        match event {
            Event::HighWatermark { key, to } => self.moved(broker, *key, *to, view),
            Event::LastStable { key, to } => {
                self.asked(Invariant::Transactions);
                self.ledger.stable(id, *key, *to, view)
            }
            Event::Acked { key, batch } => self.history(*key).acked(batch),
            Event::Cut { key, to, high_watermark } => {
                self.history(*key).compared.remove(&id);
                self.asked(Invariant::NothingCutBelow);
                nothing_cut_below::check(id, *key, *to, *high_watermark)
            }
            Event::Leads { key } => {
                self.asked(Invariant::AcknowledgedIsKept);
                let history = self.histories.entry(*key).or_default();
                acknowledged_is_kept::check(broker, *key, history, view)
            }
        }
    }

    fn history(&mut self, key: ReplicaKey) -> &mut History {
        self.histories.entry(key).or_default()
    }

    fn moved(
        &mut self,
        broker: &Broker,
        key: ReplicaKey,
        to: Offset,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        let Some(replica) = broker.process.as_ref().and_then(|process| process.replicas.get(&key)) else {
            return Ok(());
        };
        self.asked(Invariant::LogsMatch);
        let asked = |invariant| {
            let mut checks = self.checks.get();
            checks.note(invariant);
            self.checks.set(checks);
        };
        let history = self.histories.entry(key).or_default();
        if replica.partition.is_leader() && to > history.shown_end {
            let from = history.shown_end;
            for batch in replica.log.iter().filter(|batch| batch.base >= from && batch.end() <= to) {
                asked(Invariant::ExposedIsSafe);
                exposed_is_safe::check(key, batch, view)?;
                if batch.contents == Contents::Words {
                    asked(Invariant::BatchesOnce);
                    batches_once::check(batch, &mut history.next)?;
                }
                history.shown.insert(batch.base, batch.clone());
                self.ledger.shown(key, batch, view)?;
            }
            history.shown_end = to;
        }
        logs_match::check(broker.id, &replica.log, to, history)
    }

    /// A client that writes in transactions is told something.
    pub fn told(
        &self,
        client: usize,
        number: u64,
        answer: &Answer,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        self.asked(Invariant::Transactions);
        self.ledger.told(client, number, answer, view)
    }

    /// A group's offset was told.
    pub fn offset_told(&self, value: Value) -> Result<(), Violation> {
        self.ledger.offset_told(value)
    }

    /// Parts of transactions that were committed, and aborted.
    pub fn decided(&self) -> (usize, usize) {
        (self.ledger.commits, self.ledger.aborts)
    }

    /// Its logs were read anew.
    pub fn restarted(&mut self, id: BrokerId) {
        for history in self.histories.values_mut() {
            history.compared.remove(&id);
        }
    }

    /// The metadata has changed.
    pub fn learned(&self, view: &View<'_>) -> Result<(), Violation> {
        self.asked(Invariant::MetadataIsSound);
        metadata_is_sound::check(view)
    }

    /// The faults are over, and there was time.
    pub fn at_rest(&self, view: &View<'_>) -> Result<(), Violation> {
        self.asked(Invariant::AtRest);
        at_rest::check(&self.histories, view)?;
        self.ledger.at_rest(view)
    }

    pub fn acked(&self) -> usize {
        self.histories.values().map(|history| history.acked.len()).sum()
    }
}

impl History {
    fn acked(&mut self, batch: &Batch) -> Result<(), Violation> {
        if self.shown.get(&batch.base) != Some(batch) {
            let shown = self.shown.get(&batch.base);
            return Err(format!("acknowledged before it was safe: {batch:?}, where {shown:?} is"));
        }
        self.acked.push(batch.clone());
        Ok(())
    }
}
