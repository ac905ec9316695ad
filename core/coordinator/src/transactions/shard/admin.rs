//! DescribeTransactions, ListTransactions, and the expiration of transactional ids.
//!
//! What is shown is on disk; of a decided transaction, the partitions that have no marker yet.
//!
//! # Source
//! Kafka 4.4 `TransactionCoordinator.handleDescribeTransactions`, `TransactionStateManager.listTransactionStates`,
//! `removeExpiredTransactionalIds`.

use std::collections::BTreeSet;

use barnabas_base::{ErrorCode, Text, TimestampMs, TopicPartition};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_transactions_response::{TopicData, TransactionState as Described};
use barnabas_wire::messages::list_transactions_response::TransactionState as Listed;
use barnabas_wire::messages::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, ListTransactionsRequest,
    ListTransactionsResponse,
};
use regex::bytes::Regex;

use super::{Entry, TimerKey, TransactionShard};
use crate::framework::Ticket;
use crate::transactions::request::described_refused;
use crate::transactions::transaction::Transaction;
use crate::transactions::{TransactionResponse, TransactionState, record};

/// Tombstones that go into one batch.
const TOMBSTONES_MAX: usize = 2_000;

impl TransactionShard {
    pub(super) fn describe(&mut self, request: &DescribeTransactionsRequest, ticket: Ticket) {
        let states = request.transactional_ids.iter().map(|id| match self.known(id) {
            _ if id.is_empty() => described_refused(id.clone(), ErrorCode::InvalidRequest),
            None => described_refused(id.clone(), ErrorCode::TransactionalIdNotFound),
            Some(known) => {
                let markers = self.entries.get(id.as_str()).and_then(|entry| entry.markers.as_ref());
                let partitions = markers.map_or(&known.partitions, |markers| &markers.awaited);
                described(id.clone(), known, partitions)
            }
        });
        let transaction_states = states.collect();
        let response = DescribeTransactionsResponse { transaction_states, ..Default::default() };
        self.answer(ticket, TransactionResponse::Describe(response));
    }

    /// Filters on names of states compare exactly; names that mean none are named in the answer and let nothing
    /// through. A filter on the duration lets through what never had a transaction, as in Kafka, where its start is −1.
    /// `ids`: of these alone.
    pub(super) fn list(
        &mut self,
        request: &ListTransactionsRequest,
        ids: Option<&[Text]>,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        let pattern = pattern(request.transactional_id_pattern.as_deref())?;
        let state_of = |name: &Str| TransactionState::ALL.into_iter().find(|state| state.name() == &**name);
        let states: Vec<TransactionState> = request.state_filters.iter().filter_map(state_of).collect();
        let unknown = request.state_filters.iter().filter(|name| state_of(name).is_none()).cloned();
        let passes = |id: &Text, known: &Transaction| {
            (request.producer_id_filters.is_empty()
                || request.producer_id_filters.contains(&known.producer_id.get()))
                && (request.state_filters.is_empty() || states.contains(&known.state))
                && (request.duration_filter < 0 || age(known, self.now.wall) > request.duration_filter)
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(id.as_bytes()))
        };
        let listed = |(id, entry): (&Text, &Entry)| {
            let known = entry.transaction.committed().filter(|known| passes(id, known))?;
            Some(Listed {
                transactional_id: Str::from(id),
                producer_id: known.producer_id.get(),
                transaction_state: known.state.name().into(),
                ..Default::default()
            })
        };
        let mut listed: Vec<Listed> = match ids {
            Some(ids) => ids.iter().filter_map(|id| listed(self.entries.get_key_value(id)?)).collect(),
            None => self.entries.iter().filter_map(listed).collect(),
        };
        listed.sort_by(|a, b| a.transactional_id.cmp(&b.transactional_id));
        let response = ListTransactionsResponse {
            unknown_state_filters: unknown.collect(),
            transaction_states: listed,
            ..Default::default()
        };
        self.answer(ticket, TransactionResponse::List(response));
        Ok(())
    }

    /// Removes expired transactional ids, and schedules the next search.
    pub(super) fn expire(&mut self) {
        self.set_timer(
            TimerKey::Expiry,
            self.config.id_expiration_check_interval.max(barnabas_base::DurationMs(1)),
        );
        let last = self.now.wall.0.saturating_sub(self.config.id_expiration.0);
        let is_over = |id: &Text| {
            let known = self.known(id).filter(|known| known.state.is_idle());
            known.is_some_and(|known| known.last_update.0 <= last) && !self.is_busy(id)
        };
        let mut ids: Vec<Text> = self.entries.keys().filter(|id| is_over(id)).cloned().collect();
        ids.sort();
        let (mut records, mut ended, mut bytes) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            let tombstone = record::tombstone(&id);
            if records.len() == TOMBSTONES_MAX || bytes + tombstone.bytes() > self.config.batch_bytes_max {
                self.forget(std::mem::take(&mut records), std::mem::take(&mut ended));
                bytes = 0;
            }
            bytes += tombstone.bytes();
            records.push(tombstone);
            ended.push(id);
        }
        self.forget(records, ended);
    }

    fn forget(&mut self, records: Vec<crate::framework::Record>, ids: Vec<Text>) {
        // Those that are left over are found again by the next look.
        if records.is_empty() || self.is_full() {
            return;
        }
        let batch = self.append(records, ids.clone());
        for id in ids {
            self.transaction_changes(&id, |transaction| transaction.change(batch, None));
        }
    }
}

fn age(known: &Transaction, now: TimestampMs) -> i64 {
    now.0.saturating_sub(known.start.0)
}

fn pattern(text: Option<&str>) -> Result<Option<Regex>, ErrorCode> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    crate::framework::pattern::of_names(text).map(Some).map_err(|_| ErrorCode::InvalidRegularExpression)
}

/// `partitions`: those of the transaction, or those that have no marker yet.
fn described(id: Str, known: &Transaction, partitions: &BTreeSet<TopicPartition>) -> Described {
    let mut topics: Vec<TopicData> = Vec::new();
    for partition in partitions {
        match topics.last_mut().filter(|topic| *topic.topic == *partition.topic) {
            Some(topic) => topic.partitions.push(partition.partition.get()),
            None => topics.push(TopicData {
                topic: Str::from(&partition.topic),
                partitions: vec![partition.partition.get()],
                ..Default::default()
            }),
        }
    }
    Described {
        transactional_id: id,
        transaction_state: known.state.name().into(),
        transaction_timeout_ms: known.timeout_ms,
        transaction_start_time_ms: known.start.0,
        producer_id: known.producer_id.get(),
        producer_epoch: known.producer_epoch.get(),
        topics,
        ..Default::default()
    }
}
