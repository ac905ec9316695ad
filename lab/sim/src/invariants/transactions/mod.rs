//! What must hold of transactions, one invariant per file, judged over what high watermarks have shown: the logs as
//! they will be for ever.

mod aborted_is_hidden;
mod answers_hold;
mod at_rest;
mod epochs_grow;
mod markers_end_their_own;
mod no_zombies;
mod offsets_follow;
mod stable_offset;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{BrokerId, Offset, ProducerEpoch, ProducerId, Text, name};
use barnabas_coordinator::{Record, TransactionState};
use barnabas_partition::ReplicaKey;
use barnabas_wire::messages::{GroupRecordKey, GroupRecordValue};

use super::{View, Violation};
use crate::batch::{Batch, Contents, Value};
use crate::broker::coordinators::{state_of, transaction_of};
use crate::clients::transactional::attempt_of;
use crate::network::Answer;

/// A part of a transaction whose marker has not been shown.
#[derive(Debug, Clone)]
struct Open {
    base: Offset,
    value: Value,
    epoch: ProducerEpoch,
    /// Whose offset it is, if it is one.
    group: Option<Text>,
}

/// What became of one attempt's parts.
#[derive(Debug, Default)]
struct Fates {
    committed: BTreeSet<Value>,
    aborted: BTreeSet<Value>,
}

/// Where a producer stands, as `__transaction_state` shows it.
#[derive(Debug, Clone, Copy)]
struct Standing {
    epoch: ProducerEpoch,
    state: TransactionState,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: BTreeMap<(ReplicaKey, ProducerId), Vec<Open>>,
    /// By client and attempt.
    attempts: BTreeMap<(usize, usize), Fates>,
    /// Whether each part was committed.
    fates: BTreeMap<Value, bool>,
    holders: BTreeMap<Text, ProducerId>,
    standings: BTreeMap<ProducerId, Standing>,
    decided: BTreeSet<(ProducerId, ProducerEpoch, bool)>,
    /// No producer may write below this epoch any more.
    fenced: BTreeMap<ProducerId, ProducerEpoch>,
    /// The last epoch that each partition has seen.
    seen: BTreeMap<(ReplicaKey, ProducerId), ProducerEpoch>,
    /// By group.
    offsets: BTreeMap<Text, Value>,
    pub commits: usize,
    pub aborts: usize,
}

impl Ledger {
    /// A high watermark has passed `batch`.
    pub fn shown(&mut self, key: ReplicaKey, batch: &Batch, view: &View<'_>) -> Result<(), Violation> {
        match &batch.contents {
            Contents::Words | Contents::Nothing | Contents::Strange => Ok(()),
            Contents::Value(value) => self.part(key, batch, *value, None),
            Contents::Records { records, in_transaction: true } => {
                for (group, value) in records.iter().filter_map(offset_of) {
                    self.part(key, batch, value, Some(group))?;
                }
                Ok(())
            }
            Contents::Records { records, .. } => {
                let topic = view.image.topics.by_id(key.topic);
                if topic.is_some_and(|topic| *topic.name == *name::TRANSACTION_STATE) {
                    records.iter().try_for_each(|record| self.stands(record))?;
                }
                Ok(())
            }
            Contents::Marker { commit, .. } => self.marked(key, batch, *commit),
        }
    }

    fn stands(&mut self, record: &Record) -> Result<(), Violation> {
        let Some((id, value)) = transaction_of(record) else { return Ok(()) };
        let (producer, epoch) = (ProducerId(value.producer_id), ProducerEpoch(value.producer_epoch));
        let state = state_of(&value);
        epochs_grow::check_holder(self, &id, producer, epoch)?;
        self.holders.insert(id, producer);
        self.standings.insert(producer, Standing { epoch, state });
        if state.is_prepared() {
            self.decided.insert((producer, epoch, state == TransactionState::PrepareCommit));
        }
        if state.is_idle() {
            self.fenced.insert(producer, epoch);
        }
        Ok(())
    }

    fn part(
        &mut self,
        key: ReplicaKey,
        batch: &Batch,
        value: Value,
        group: Option<Text>,
    ) -> Result<(), Violation> {
        no_zombies::check(self, key, batch, value)?;
        epochs_grow::check_partition(self, key, batch)?;
        self.seen.insert((key, batch.producer), batch.producer_epoch);
        let part = Open { base: batch.base, value, epoch: batch.producer_epoch, group };
        self.open.entry((key, batch.producer)).or_default().push(part);
        Ok(())
    }

    fn marked(&mut self, key: ReplicaKey, batch: &Batch, commit: bool) -> Result<(), Violation> {
        epochs_grow::check_partition(self, key, batch)?;
        self.seen.insert((key, batch.producer), batch.producer_epoch);
        let ended = self.open.remove(&(key, batch.producer)).unwrap_or_default();
        markers_end_their_own::check(self, key, batch, commit, &ended)?;
        for part in ended {
            if let (Some(group), true) = (part.group, commit) {
                self.offsets.insert(group, part.value);
            }
            let fates = self.attempts.entry(attempt_of(part.value)).or_default();
            let set = if commit { &mut fates.committed } else { &mut fates.aborted };
            set.insert(part.value);
            self.fates.insert(part.value, commit);
            *if commit { &mut self.commits } else { &mut self.aborts } += 1;
            whole::check(attempt_of(part.value), self.attempts.get(&attempt_of(part.value)))?;
        }
        Ok(())
    }

    /// A replica's last stable offset is here. A producer snapshot does not say which transactions ended above the high
    /// watermark, as Kafka's does not: it may pass those of the markers that were `loaded`.
    pub fn stable(
        &mut self,
        broker: BrokerId,
        key: ReplicaKey,
        to: Offset,
        read: &[(Batch, bool)],
        loaded: &[Batch],
    ) -> Result<(), Violation> {
        stable_offset::check(self, broker, key, to, loaded)?;
        aborted_is_hidden::check(self, key, read, loaded)
    }

    /// A reader of committed records was sent all of a log. What is not decided is not looked at: after a start the
    /// last stable offset may pass a transaction whose end lies above the high watermark, as Kafka's.
    pub fn read(&self, key: ReplicaKey, read: &[(Batch, bool)]) -> Result<(), Violation> {
        let is_decided = |batch: &Batch| match &batch.contents {
            Contents::Value(value) => self.fates.contains_key(value),
            Contents::Records { records, in_transaction: true } => {
                records.iter().filter_map(offset_of).all(|(_, value)| self.fates.contains_key(&value))
            }
            _ => true,
        };
        let decided: Vec<_> = read.iter().filter(|(batch, _)| is_decided(batch)).cloned().collect();
        aborted_is_hidden::check(self, key, &decided, &[])
    }

    /// A client gets an answer.
    pub fn told(
        &self,
        client: usize,
        number: u64,
        answer: &Answer,
        view: &View<'_>,
    ) -> Result<(), Violation> {
        view.writers.get(client).map_or(Ok(()), |client| answers_hold::check(self, client, number, answer))
    }

    /// A group's offset was told.
    pub fn offset_told(&self, value: Value) -> Result<(), Violation> {
        offsets_follow::check(self, value)
    }

    pub fn at_rest(&self, view: &View<'_>) -> Result<(), Violation> {
        whole::at_rest(self, view.writers)?;
        stable_offset::at_rest(self, view)?;
        offsets_follow::at_rest(self, view.writers)?;
        at_rest::check(view)
    }
}

/// The group and the value of a committed offset.
fn offset_of(record: &Record) -> Option<(Text, Value)> {
    let GroupRecordKey::OffsetCommit(key) = GroupRecordKey::decode_key(record.key.clone()).ok()? else {
        return None;
    };
    let (value, _) = GroupRecordValue::decode_value(1, record.value.clone()?).ok()?;
    let GroupRecordValue::OffsetCommit(value) = value else { return None };
    Some((key.group.text(), value.offset as Value))
}
