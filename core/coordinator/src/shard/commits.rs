//! Offsets written and taken away.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::{OffsetCommitRequest, OffsetDeleteRequest};

use super::{Group, GroupShard};
use crate::Response;
use crate::classic::{self, ClassicGroup, State};
use crate::framework::{BatchId, Caller, Ticket};
use crate::offsets::{self, OffsetKey};
use crate::outbox::{GroupThen, Then, append_refusal};
use crate::records;

/// Tombstones that go into one batch.
const TOMBSTONES_MAX: usize = 2_000;

impl GroupShard {
    /// Version 0 wrote to ZooKeeper, which Kafka refuses since it has none.
    pub(super) fn commit_offsets(
        &mut self,
        caller: &Caller<'_>,
        request: &OffsetCommitRequest,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        if caller.version == 0 {
            return Err(ErrorCode::UnsupportedVersion);
        }
        let (now, config) = (self.out.now.wall, &self.out.config);
        let group = match self.groups.get(request.group_id.as_str()) {
            Some(Group::Classic(group)) => Some(&**group),
            Some(Group::Other(_)) if request.generation_id_or_member_epoch >= 0 => {
                return Err(ErrorCode::UnknownMemberId);
            }
            Some(Group::Other(_)) | None => None,
        };
        let mut commit = offsets::commit(group, caller.version, request, now, config)?;
        if let Some(group) = group
            && matches!(group.state, State::Stable | State::PreparingRebalance)
        {
            classic::heard_of(group, &request.member_id, &mut self.out);
        }
        if self.out.is_too_large(&commit.records) {
            return Err(append_refusal(ErrorCode::RecordListTooLarge));
        }
        let response = Response::OffsetCommit(commit.response);
        if commit.records.is_empty() {
            self.out.answer(ticket, response);
            return Ok(());
        }
        let mut then = Then::default();
        let group_id = request.group_id.text();
        let is_new = !self.groups.contains_key(&group_id);
        if is_new {
            self.found_simple_group(&group_id);
            then.groups.push(GroupThen::Created(group_id));
        }
        let batch = self.out.pending.upcoming();
        for (key, entry) in &mut commit.changes {
            entry.written = self.written;
            self.written += 1;
            self.offsets.change(batch, key, Some(entry.clone()));
        }
        then.offsets = commit.changes.into_iter().map(|(key, _)| key).collect();
        self.out.append(commit.records, then);
        if is_new {
            self.out.groups_changed = batch;
        }
        self.out.answer_after(batch, ticket, response);
        Ok(())
    }

    pub(super) fn delete_offsets(
        &mut self,
        request: &OffsetDeleteRequest,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = match self.groups.get(request.group_id.as_str()) {
            Some(Group::Classic(group)) => Some(&**group),
            Some(Group::Other(_)) => return Err(ErrorCode::NonEmptyGroup),
            None => None,
        };
        let (response, keys) = offsets::delete(&self.offsets, group, request)?;
        let last = self.append_tombstones(keys, Vec::new());
        self.answer_after_last(last, ticket, Response::OffsetDelete(response));
        Ok(())
    }

    pub(super) fn answer_after_last(&mut self, last: Option<BatchId>, ticket: Ticket, response: Response) {
        match last {
            Some(batch) => self.out.answer_after(batch, ticket, response),
            None => self.out.answer(ticket, response),
        }
    }

    /// Ends offsets and, after those, groups, in as many batches as it takes. Gives the last one.
    pub(super) fn append_tombstones(
        &mut self,
        keys: Vec<OffsetKey>,
        groups: Vec<Box<ClassicGroup>>,
    ) -> Option<BatchId> {
        let mut last = None;
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            let some: Vec<OffsetKey> = keys.by_ref().take(TOMBSTONES_MAX).collect();
            let tombstone =
                |key: &OffsetKey| records::offset_tombstone(&key.group, &key.topic, key.partition.0);
            let records: Vec<_> = some.iter().map(tombstone).collect();
            let batch = self.out.pending.upcoming();
            for key in &some {
                self.written += 1;
                self.offsets.change(batch, key, None);
            }
            last = Some(self.out.append(records, Then { offsets: some, ..Default::default() }));
        }
        let mut groups = groups.into_iter().peekable();
        while groups.peek().is_some() {
            let some: Vec<Box<ClassicGroup>> = groups.by_ref().take(TOMBSTONES_MAX).collect();
            let records = some.iter().map(|group| records::group_tombstone(&group.id)).collect();
            self.written += some.len() as i64;
            let groups = some.into_iter().map(GroupThen::Deleted).collect();
            let batch = self.out.append(records, Then { groups, ..Default::default() });
            self.out.groups_changed = batch;
            last = Some(batch);
        }
        last
    }
}
