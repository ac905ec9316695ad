//! What must hold after every step, one invariant per file.

mod acknowledged_is_kept;
mod at_rest;
mod batches_once;
mod damaged_stays_out;
mod durable_is_kept;
mod exposed_is_safe;
mod fetches_fit;
mod logs_match;
mod metadata_is_sound;
mod nothing_cut_below;
mod starts_are_safe;
mod transactions;

use std::cell::Cell;
use std::collections::BTreeMap;

use barnabas_base::{BrokerId, Offset, ProducerId};
use barnabas_metadata::{Image, Partition as State};
use barnabas_partition::ReplicaKey;

use crate::batch::{Batch, Contents, Value};
use crate::broker::{Broker, Event};
use crate::clients::Client;
use crate::clients::transactional::TxnClient;
use crate::controller::Host;
use crate::counts::{Checks, Invariant};
use crate::host::{Failure, Lookup, Readable};
use crate::network::Answer;
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

    pub fn keys(&self) -> impl Iterator<Item = (ReplicaKey, &State)> {
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
    /// What lies below was deleted, by whichever replica.
    started: Offset,
    acked: Vec<Batch>,
    next: BTreeMap<ProducerId, batches_once::Expected>,
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
        match event {
            Event::HighWatermark { key, to, leads, read } => {
                is_whole(id, *key, read)?;
                self.moved(id, *key, (*to, *leads), &read.batches, view)
            }
            Event::LastStable { key, to, read } => {
                self.asked(Invariant::Transactions);
                self.ledger.stable(id, *key, *to, read)
            }
            Event::Acked { key, base, batch } => match batch {
                Some(batch) => self.history(*key).acked(batch),
                // It may have been deleted since.
                None if *base < self.history(*key).started => Ok(()),
                None => Err(format!("{id} acknowledged {base} of {key:?}, where its log has no batch")),
            },
            Event::Cut { key, to, high_watermark } => {
                self.asked(Invariant::NothingCutBelow);
                nothing_cut_below::check(id, *key, *to, *high_watermark)
            }
            Event::Leads { key, log } => {
                is_whole(id, *key, log)?;
                self.asked(Invariant::AcknowledgedIsKept);
                let history = self.histories.entry(*key).or_default();
                acknowledged_is_kept::check(id, *key, log, history)
            }
            Event::Opened { key, start, log } => {
                is_whole(id, *key, log)?;
                self.asked(Invariant::DurableIsKept);
                durable_is_kept::check(id, *key, log, view)?;
                self.asked(Invariant::StartsAreSafe);
                starts_are_safe::check_opened(id, *key, *start, self.history(*key), view)
            }
            Event::Started { key, start } => {
                self.asked(Invariant::StartsAreSafe);
                starts_are_safe::check(id, *key, *start, self.history(*key))
            }
            Event::Served { key, asked, epoch } => {
                self.asked(Invariant::FetchesFit);
                fetches_fit::check_served(id, *key, *asked, *epoch)
            }
            Event::Took { key, asked, position } => {
                self.asked(Invariant::FetchesFit);
                fetches_fit::check_taken(id, *key, asked, position.as_ref())
            }
            Event::AsksFor { key, in_sync, known } => {
                self.asked(Invariant::FetchesFit);
                let topic = view.image.topics.by_id(key.topic);
                let state = topic.and_then(|topic| topic.partition(key.partition));
                let life = |member| (member, view.image.cluster.broker(member).map(|broker| broker.epoch));
                let are_in: Vec<_> =
                    state.into_iter().flat_map(|state| state.isr()).map(|member| life(*member)).collect();
                fetches_fit::check_asked(id, *key, in_sync, &[known, &*are_in].concat())
            }
            Event::LookedUp { key, lookup } => self.looked_up(id, *key, lookup),
            Event::Offline { key, why } => {
                // What was damaged may be refused: its operator replaces the disk.
                let is_damaged = view.broker(id).is_some_and(|broker| broker.damaged.contains(key));
                if is_damaged { Ok(()) } else { Err(format!("{id} cannot open {key:?}: {why}")) }
            }
            Event::Failed(Failure::Lost(why)) => Err(format!("{id} cannot go on: {why}")),
            Event::Durable { .. }
            | Event::Deleted { .. }
            | Event::WillCut { .. }
            | Event::GaveUp { .. }
            | Event::Mended { .. }
            | Event::Left { .. }
            | Event::Failed(Failure::Disk(_)) => Ok(()),
        }
    }

    /// What a leader answers by time, by offset and by epoch is what its batches say.
    fn looked_up(&self, id: BrokerId, key: ReplicaKey, lookup: &Lookup) -> Result<(), Violation> {
        self.asked(Invariant::LookupsAreRight);
        match lookup.found == lookup.expected {
            true => Ok(()),
            false => Err(format!("{id} answers for {key:?} what its log does not say: {lookup:?}")),
        }
    }

    fn history(&mut self, key: ReplicaKey) -> &mut History {
        self.histories.entry(key).or_default()
    }

    fn moved(
        &mut self,
        id: BrokerId,
        key: ReplicaKey,
        (to, leads): (Offset, bool),
        batches: &[Batch],
        view: &View<'_>,
    ) -> Result<(), Violation> {
        self.asked(Invariant::LogsMatch);
        let asked = |invariant| {
            let mut checks = self.checks.get();
            checks.note(invariant);
            self.checks.set(checks);
        };
        let history = self.histories.entry(key).or_default();
        if leads && to > history.shown_end {
            let from = history.shown_end;
            for batch in batches.iter().filter(|batch| batch.base >= from && batch.end() <= to) {
                asked(Invariant::ExposedIsSafe);
                exposed_is_safe::check(key, batch, view)?;
                if batch.contents == Contents::Words {
                    asked(Invariant::BatchesOnce);
                    batches_once::check(batch, history.started, &mut history.next)?;
                }
                history.shown.insert(batch.base, batch.clone());
                self.ledger.shown(key, batch, view)?;
            }
            history.shown_end = to;
        }
        logs_match::check(id, batches, to, history)
    }

    /// A transactional client gets an answer.
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

    /// The controller has answered a leader.
    pub fn altered(&self, before: &Image, host: &Host) -> Result<(), Violation> {
        self.asked(Invariant::DamagedStaysOut);
        damaged_stays_out::check(before, host)
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

    /// What one replica's log holds then.
    pub fn log_at_rest(&self, id: BrokerId, key: ReplicaKey, log: &Readable) -> Result<(), Violation> {
        is_whole(id, key, log)?;
        at_rest::check_log(id, key, log, &self.histories)
    }

    pub fn acked(&self) -> usize {
        self.histories.values().map(|history| history.acked.len()).sum()
    }
}

/// Nothing is damaged but what was.
fn is_whole(id: BrokerId, key: ReplicaKey, read: &Readable) -> Result<(), Violation> {
    if read.is_whole { Ok(()) } else { Err(format!("{id} cannot read its log of {key:?}")) }
}

impl History {
    /// Whether a producer's batch was shown and is deleted.
    fn is_deleted(&self, batch: Option<&Batch>) -> bool {
        let Some(wanted) = batch else { return false };
        let is_it = |shown: &Batch| (shown.producer, shown.sequence) == (wanted.producer, wanted.sequence);
        self.shown.values().any(|shown| is_it(shown) && shown.end() <= self.started)
    }

    fn acked(&mut self, batch: &Batch) -> Result<(), Violation> {
        if self.shown.get(&batch.base) != Some(batch) {
            let shown = self.shown.get(&batch.base);
            return Err(format!("acknowledged before it was safe: {batch:?}, where {shown:?} is"));
        }
        self.acked.push(batch.clone());
        Ok(())
    }
}
