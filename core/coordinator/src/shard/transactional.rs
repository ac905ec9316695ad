//! Offsets within transactions, and the markers that end those.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId};
use barnabas_wire::messages::TxnOffsetCommitRequest;

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{Caller, EndTransaction, Producer, Ticket};
use crate::offsets::{self, Transactional};
use crate::outbox::Effect;
use crate::outbox::{GroupThen, Then, append_refusal};

impl GroupShard {
    pub(super) fn commit_in_transaction(
        &mut self,
        caller: &Caller<'_>,
        request: &TxnOffsetCommitRequest,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        let producer = (ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch));
        if caller.connection.is_some_and(|connection| self.heard.is_late(producer, connection)) {
            self.out.answer(ticket, Response::Close);
            return Ok(());
        }
        let group = match self.groups.get(request.group_id.as_str()) {
            Some(Group::Share(_)) => return Err(ErrorCode::GroupIdNotFound),
            known => known,
        };
        let (now, config) = (self.out.now.wall, &self.out.config);
        let commit = offsets::commit_in_transaction(group, request, now, config)?;
        if self.out.is_too_large(&commit.records) {
            return Err(append_refusal(ErrorCode::RecordListTooLarge));
        }
        if commit.records.is_empty() {
            self.out.answer(ticket, Response::TxnOffsetCommit(commit.response));
            return Ok(());
        }
        if let Some(connection) = caller.connection {
            self.heard.hear(producer, connection);
        }
        self.append_in_transaction(request, commit, ticket);
        Ok(())
    }

    fn append_in_transaction(
        &mut self,
        request: &TxnOffsetCommitRequest,
        commit: Transactional,
        ticket: Ticket,
    ) {
        let producer =
            Producer { id: ProducerId(request.producer_id), epoch: ProducerEpoch(request.producer_epoch) };
        let mut then = Then::default();
        let group_id = request.group_id.text();
        let is_new = !self.groups.contains_key(&group_id);
        if is_new {
            self.found_simple_group(&group_id);
            then.groups.push(GroupThen::Created(group_id));
        }
        let batch = self.out.pending.upcoming();
        let mut keys = Vec::with_capacity(commit.changes.len());
        for (key, mut entry) in commit.changes {
            entry.written = self.written;
            self.written += 1;
            self.offsets.change_in_transaction(batch, producer.id, &key, entry);
            keys.push(key);
        }
        self.out.counts.offset_commits += keys.len() as u64;
        then.in_transaction = Some((producer.id, keys));
        let records = commit.records;
        self.out.open(then, |batch| Effect::AppendInTransaction { batch, producer, records });
        if is_new {
            self.out.groups_changed = batch;
        }
        self.out.answer_after(batch, ticket, Response::TxnOffsetCommit(commit.response));
    }

    /// The transaction coordinator's word. It is written down even where nothing is known of the transaction, as the
    /// partition may have it open.
    pub(super) fn end_transaction(&mut self, end: EndTransaction, ticket: Ticket) {
        let then = Then { ends: Some((end.producer.id, end.commit)), ..Then::default() };
        self.written += 1;
        let batch = self.out.open(then, |batch| Effect::AppendMarker { batch, end });
        self.out.answer_after(batch, ticket, Response::EndTransaction(ErrorCode::None));
    }

    pub(super) fn transaction_ended(&mut self, producer: ProducerId, committed: bool) {
        self.offsets.end_transaction(producer, committed);
    }
}
