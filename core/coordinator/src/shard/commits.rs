//! Offsets written, read and taken away.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{OffsetCommitRequest, OffsetDeleteRequest};

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{BatchId, Caller, Record, Ticket};
use crate::groups::classic::{self, State};
use crate::offsets;
use crate::outbox::{GroupThen, Then, append_refusal};
use crate::records;
use crate::records::OffsetKey;

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
            Some(Group::Share(_)) => return Err(ErrorCode::GroupIdNotFound),
            known => known,
        };
        let mut commit = offsets::commit(group, caller.version, request, &self.offsets, (now, config))?;
        if let Some(Group::Classic(group)) = group
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
        let is_new = !self.groups.contains_key(request.group_id.as_str());
        if is_new {
            self.found_simple_group(&request.group_id);
            then.groups.push(GroupThen::Created(request.group_id.text()));
        }
        self.out.counts.offset_commits += commit.changes.len() as u64;
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

    pub(super) fn fetch_offsets(
        &mut self,
        request: &OffsetFetchRequestGroup,
        require_stable: bool,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        let (member, epoch) = (request.member_id.as_deref(), request.member_epoch);
        match self.groups.get(request.group_id.as_str()) {
            Some(Group::Consumer(known)) => known.check_fetch(member, epoch)?,
            Some(Group::Streams(known)) => known.check_fetch(member, epoch)?,
            // A share group has none, and is treated as an unknown group.
            _ => {}
        }
        let response = Response::OffsetFetch(offsets::fetch(&self.offsets, request, require_stable));
        match self.out.pending.newest() {
            Some(batch) if require_stable => self.out.answer_after(batch, ticket, response),
            _ => self.out.answer(ticket, response),
        }
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
            Some(Group::Share(_)) => return Err(ErrorCode::GroupIdNotFound),
            known => known,
        };
        let (response, keys) = offsets::delete(&self.offsets, group, request)?;
        self.out.counts.offset_deletions += keys.len() as u64;
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

    /// Ends offsets and, after those, groups; in one batch, or in as many as it takes. Gives the last one.
    pub(super) fn append_tombstones(
        &mut self,
        keys: Vec<OffsetKey>,
        groups: impl IntoIterator<Item = Group>,
    ) -> Option<BatchId> {
        let (mut records, mut ended, mut bytes, mut last) = (Vec::new(), Ended::default(), 0, None);
        let ends = keys.into_iter().map(End::Offset).chain(groups.into_iter().map(End::Group));
        for end in ends {
            let tombstones = match &end {
                End::Offset(key) => vec![records::offset_tombstone(&key.group, &key.topic, key.partition.0)],
                End::Group(group) => group.tombstones(),
            };
            for record in tombstones {
                if records.len() >= TOMBSTONES_MAX || bytes + record.bytes() > self.out.config.batch_bytes_max
                {
                    last =
                        self.append_some(std::mem::take(&mut records), std::mem::take(&mut ended)).or(last);
                    bytes = 0;
                }
                bytes += record.bytes();
                records.push(record);
            }
            match end {
                End::Offset(key) => ended.offsets.push(key),
                End::Group(group) => ended.groups.push(group),
            }
        }
        self.append_some(records, ended).or(last)
    }

    fn append_some(&mut self, records: Vec<Record>, ended: Ended) -> Option<BatchId> {
        if records.is_empty() {
            return None;
        }
        let batch = self.out.pending.upcoming();
        self.written += records.len() as i64;
        ended.offsets.iter().for_each(|key| self.offsets.change(batch, key, None));
        if !ended.groups.is_empty() {
            self.out.groups_changed = batch;
            self.deleted.insert(batch, ended.groups);
        }
        Some(self.out.append(records, Then { offsets: ended.offsets, ..Then::default() }))
    }
}

/// What a tombstone ends.
enum End {
    Offset(OffsetKey),
    Group(Group),
}

/// What the tombstones of one batch end.
#[derive(Default)]
struct Ended {
    offsets: Vec<OffsetKey>,
    groups: Vec<Group>,
}
