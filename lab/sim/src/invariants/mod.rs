//! What must hold after every step, one invariant per file.

pub(crate) mod acknowledged_is_kept;
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

use barnabas_base::{BrokerId, MonotonicMs, Offset, ProducerId};
use barnabas_metadata::{Image, Partition as State};
use barnabas_partition::ReplicaKey;

use crate::batch::{Batch, Contents, Value};
use crate::broker::{Broker, DurableLog, Event};
use crate::clients::Client;
use crate::clients::transactional::TxnClient;
use crate::controller::Host;
use crate::counts::{Checks, Invariant};
use crate::host::{Failure, Lookup, Readable};
use crate::network::Answer;
use acknowledged_is_kept::compaction_keeps::{self, Asked, Known, Rules, check_swap};
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
    pub now: MonotonicMs,
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
    /// When each was.
    shown_at: BTreeMap<Offset, MonotonicMs>,
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
    /// Logs are compacted.
    pub compaction: Option<Rules>,
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
        if let Some(judged) = self.of_compaction(id, event, view) {
            return judged;
        }
        match event {
            Event::HighWatermark { key, to, leads, read } => {
                is_whole(id, *key, read)?;
                self.moved(id, *key, (*to, *leads), &read.batches, view)
            }
            Event::LastStable { key, to, read, loaded } => {
                self.asked(Invariant::Transactions);
                self.ledger.stable(id, *key, *to, read, loaded)
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
            Event::Opened { key, start, log } => self.opened(id, *key, *start, log, view),
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
                asks_for(id, *key, in_sync, known, view)
            }
            Event::Moved { key, before, after } => {
                self.asked(Invariant::MovesKeepAll);
                durable_is_kept::moves_keep_all::check(id, *key, before, after)
            }
            Event::LookedUp { key, lookup } => self.looked_up(id, *key, lookup),
            Event::Offline { key, why } => {
                // What was damaged may be refused: its operator replaces the disk.
                let is_damaged = view.broker(id).is_some_and(|broker| broker.damaged.contains(key));
                if is_damaged { Ok(()) } else { Err(format!("{id} cannot open {key:?}: {why}")) }
            }
            Event::Failed(failure) => failed(id, failure, view),
            Event::Assigned { .. }
            | Event::Durable { .. }
            | Event::Compacted { .. }
            | Event::Deleted { .. }
            | Event::WillCut { .. }
            | Event::GaveUp { .. }
            | Event::Mended { .. }
            | Event::Left { .. } => Ok(()),
        }
    }

    fn opened(
        &mut self,
        id: BrokerId,
        key: ReplicaKey,
        start: Offset,
        log: &Readable,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        is_whole(id, key, log)?;
        self.asked(Invariant::DurableIsKept);
        match self.compaction {
            Some(_) => self.keeps_durable(id, key, log, view)?,
            None => durable_is_kept::check(id, key, log, view)?,
        }
        self.asked(Invariant::StartsAreSafe);
        starts_are_safe::check_opened(id, key, start, self.history(key), view)
    }

    /// What is judged in another way where logs are compacted.
    fn of_compaction(
        &mut self,
        id: BrokerId,
        event: &Event,
        view: &View<'_>,
    ) -> Option<Result<(), Violation>> {
        self.compaction?;
        match event {
            Event::Acked { key, base, batch } => Some(self.history(*key).acked_once(*base, batch.as_ref())),
            Event::Leads { key, log } => {
                Some(is_whole(id, *key, log).and_then(|()| self.keeps(id, *key, log, view)))
            }
            Event::Compacted { key, before, after, bound, read } => {
                Some(self.compacted(id, *key, (before, after), *bound, read.as_deref(), view))
            }
            _ => None,
        }
    }

    /// Segments gave way to compacted ones. Damaged logs are not looked at.
    fn compacted(
        &self,
        id: BrokerId,
        key: ReplicaKey,
        (before, after): (&Readable, &Readable),
        bound: Offset,
        read: Option<&[(Batch, bool)]>,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        if !before.is_whole || !after.is_whole {
            return Ok(());
        }
        let swapped = check_swap(before, after, bound);
        swapped.map_err(|why| format!("{id} compacts {key:?}: {why}"))?;
        self.keeps_durable(id, key, after, view)?;
        read.map_or(Ok(()), |read| self.ledger.read(key, read))
    }

    /// A compacted log holds what its broker called durable, as far as that counts.
    fn keeps_durable(
        &self,
        id: BrokerId,
        key: ReplicaKey,
        log: &Readable,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        let Some(durable) = view.broker(id).and_then(|broker| broker.durable.get(&key)) else {
            return Ok(());
        };
        let end = durable.log.last().map_or(Offset::ZERO, Batch::end);
        if log.end < end || log.start > durable.start {
            return Err(format!("{id} finds {key:?} from {} to {}, and had {end}", log.start, log.end));
        }
        self.keeps_of(id, key, &Known::of(durable.log.iter(), durable.start), log, (view.now, Some(durable)))
    }

    /// A compacted log holds what was shown, as far as that counts.
    fn keeps(&self, id: BrokerId, key: ReplicaKey, log: &Readable, view: &View<'_>) -> Result<(), Violation> {
        let durable = view.broker(id).and_then(|broker| broker.durable.get(&key));
        self.keeps_shown(id, key, log, (view.now, durable))
    }

    fn keeps_shown(
        &self,
        id: BrokerId,
        key: ReplicaKey,
        log: &Readable,
        by: (MonotonicMs, Option<&DurableLog>),
    ) -> Result<(), Violation> {
        let Some(history) = self.histories.get(&key) else { return Ok(()) };
        if log.end < history.shown_end {
            return Err(format!("{id}'s log of {key:?} ends at {}, below {}", log.end, history.shown_end));
        }
        self.keeps_of(id, key, &Known::of(history.shown.values(), Offset::ZERO), log, by)
    }

    fn keeps_of(
        &self,
        id: BrokerId,
        key: ReplicaKey,
        known: &Known<'_>,
        log: &Readable,
        (now, durable): (MonotonicMs, Option<&DurableLog>),
    ) -> Result<(), Violation> {
        self.asked(Invariant::CompactionKeeps);
        let (Some(rules), Some(history)) = (self.compaction, self.histories.get(&key)) else { return Ok(()) };
        let had = |base| durable.is_some_and(|durable| durable.had(base));
        let asked = Asked { history, rules, now, had: &had };
        let kept = compaction_keeps::check(known, log, &asked);
        kept.map_err(|why| format!("{id}'s log of {key:?} is compacted: {why}"))
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
                if batch.contents == Contents::Strange {
                    return Err(format!("{batch:?} is shown"));
                }
                history.shown.insert(batch.base, batch.clone());
                history.shown_at.insert(batch.base, view.now);
                self.ledger.shown(key, batch, view)?;
            }
            history.shown_end = to;
        }
        logs_match::check(id, batches, to, history, self.compaction.is_some())
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
        at_rest::check(&self.histories, view, self.compaction.is_some())?;
        self.ledger.at_rest(view)
    }

    /// What one replica's log holds then.
    pub fn log_at_rest(
        &self,
        id: BrokerId,
        key: ReplicaKey,
        log: &Readable,
        by: (MonotonicMs, Option<&DurableLog>),
    ) -> Result<(), Violation> {
        is_whole(id, key, log)?;
        if self.compaction.is_some() {
            return self.keeps_shown(id, key, log, by);
        }
        at_rest::check_log(id, key, log, &self.histories)
    }

    /// What a reader of committed records is sent of a compacted log then.
    pub fn read_at_rest(&self, key: ReplicaKey, read: &[(Batch, bool)]) -> Result<(), Violation> {
        self.ledger.read(key, read)
    }

    pub fn acked(&self) -> usize {
        self.histories.values().map(|history| history.acked.len()).sum()
    }
}

fn asks_for(
    id: BrokerId,
    key: ReplicaKey,
    in_sync: &[(BrokerId, barnabas_base::BrokerEpoch)],
    known: &[(BrokerId, Option<barnabas_base::BrokerEpoch>)],
    view: &View<'_>,
) -> Result<(), Violation> {
    let topic = view.image.topics.by_id(key.topic);
    let state = topic.and_then(|topic| topic.partition(key.partition));
    let life = |member| (member, view.image.cluster.broker(member).map(|broker| broker.epoch));
    let are_in: Vec<_> =
        state.into_iter().flat_map(|state| state.isr()).map(|member| life(*member)).collect();
    fetches_fit::check_asked(id, key, in_sync, &[known, &*are_in].concat())
}

/// Nothing is damaged but what was.
fn is_whole(id: BrokerId, key: ReplicaKey, read: &Readable) -> Result<(), Violation> {
    if read.is_whole { Ok(()) } else { Err(format!("{id} cannot read its log of {key:?}")) }
}

impl History {
    /// Whether a leader may refuse a producer's batch again and again.
    ///
    /// The batch was shown and is deleted, or may be compacted, where logs are: of a producer the last batch alone is
    /// kept for sure. Or the batch before it is deleted, the producer was forgotten with it, and a late repeat of an
    /// older batch was taken for its beginning. Kafka's producer begins another epoch then; the one here does not.
    fn may_refuse(&self, batch: Option<&Batch>, is_compacted: bool) -> bool {
        let Some(wanted) = batch else { return false };
        let of_producer = || self.shown.values().filter(|shown| shown.producer == wanted.producer);
        let is_deleted = |shown: &Batch| shown.end() <= self.started;
        if of_producer().any(|shown| shown.sequence == wanted.sequence && (is_compacted || is_deleted(shown)))
        {
            return true;
        }
        let is_before = |shown: &&Batch| shown.sequence.plus(shown.offsets) == wanted.sequence;
        let before = of_producer().find(|shown| is_before(shown) && is_deleted(shown));
        before.is_some_and(|before| {
            of_producer().any(|shown| shown.base > before.base && shown.sequence < wanted.sequence)
        })
    }

    /// Of a compacted log: the answer to what is sent again names what may be gone since.
    fn acked_once(&mut self, base: Offset, batch: Option<&Batch>) -> Result<(), Violation> {
        match self.shown.get(&base) {
            Some(shown) if batch.is_none_or(|batch| batch.is_left_of(shown)) => {
                self.acked.push(shown.clone());
                Ok(())
            }
            None if base < self.started => Ok(()),
            shown => Err(format!("acknowledged before it was safe: {batch:?} at {base}, where {shown:?} is")),
        }
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

/// A directory may fail, and not have lost what was left in it; but for a journal of which a file was exchanged.
fn failed(id: BrokerId, failure: &Failure, view: &View<'_>) -> Result<(), Violation> {
    let is_rotten = view.broker(id).is_some_and(|broker| broker.has_rotten_journal);
    match failure {
        Failure::Lost(why) if !is_rotten => Err(format!("{id} cannot go on: {why}")),
        Failure::Lost(_) | Failure::Disk(_) => Ok(()),
    }
}
