//! ListGroups, DescribeGroups, DeleteGroups, and the groups and offsets that end by themselves.
//!
//! A group that is being made or deleted shows as it will be once that is on disk, and not before.

use barnabas_base::{ErrorCode, Set, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
use barnabas_wire::messages::list_groups_response::ListedGroup;
use barnabas_wire::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    ListGroupsRequest, ListGroupsResponse,
};

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{Caller, Ticket};
use crate::groups::classic::{self, State};
use crate::groups::table_order;
use crate::offsets;

type Refusal = Result<(), ErrorCode>;

impl GroupShard {
    /// Filters compare without regard to case; one that means nothing lets nothing through. `ids`: of these groups, in
    /// their order; `None`: of all, in Kafka's.
    ///
    /// # Source
    /// KIP-518, KIP-848; Kafka 4.4 `GroupMetadataManager.listGroups`.
    pub(super) fn list_groups(
        &mut self,
        request: &ListGroupsRequest,
        ids: Option<&[Text]>,
        ticket: Ticket,
    ) -> Refusal {
        let passes = |filter: &[Str], value: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(value))
        };
        let mut groups: Vec<ListedGroup> = match ids {
            Some(ids) => ids.iter().filter_map(|id| self.groups.get(id)).map(Group::list).collect(),
            None => self.groups.values().map(Group::list).collect(),
        };
        groups.retain(|group| passes(&request.states_filter, &group.group_state));
        groups.retain(|group| passes(&request.types_filter, &group.group_type));
        if ids.is_none() {
            table_order::arrange(&mut groups, self.groups.len(), |group| &group.group_id);
        }
        let response = ListGroupsResponse { groups, ..Default::default() };
        self.answer_after_groups(ticket, Response::ListGroups(response));
        Ok(())
    }

    pub(super) fn describe_groups(
        &mut self,
        caller: &Caller<'_>,
        request: &DescribeGroupsRequest,
        ticket: Ticket,
    ) -> Refusal {
        let groups = request.groups.iter().map(|id| match self.groups.get(id.as_str()) {
            Some(Group::Classic(group)) => classic::describe(group),
            _ => classic::describe_missing(id, caller.version),
        });
        let response = DescribeGroupsResponse { groups: groups.collect(), ..Default::default() };
        self.answer_after_groups(ticket, Response::DescribeGroups(response));
        Ok(())
    }

    fn answer_after_groups(&mut self, ticket: Ticket, response: Response) {
        let batch = self.out.groups_changed;
        self.out.answer_after(batch, ticket, response);
    }

    /// # Source
    /// Kafka 4.4 `GroupCoordinatorShard.deleteGroups`.
    pub(super) fn delete_groups(&mut self, request: &DeleteGroupsRequest, ticket: Ticket) -> Refusal {
        let mut seen = Set::default();
        let mut results = Vec::new();
        let mut keys = Vec::new();
        let mut groups = Vec::new();
        let mut shares = Vec::new();
        for id in request.groups_names.iter().filter(|id| seen.insert(id.as_str())) {
            let error = match self.groups.get(id.as_str()) {
                None => ErrorCode::GroupIdNotFound,
                Some(Group::Share(group)) if !group.is_empty() => ErrorCode::NonEmptyGroup,
                // Its topics are being initialized for a member that has just left.
                Some(Group::Share(group)) if group.own.order.is_some() => {
                    ErrorCode::CoordinatorLoadInProgress
                }
                Some(Group::Share(group)) if !group.own.set_up.is_empty() => {
                    shares.push(id.text());
                    ErrorCode::None
                }
                Some(Group::Share(_)) => {
                    groups.extend(self.take_group(id));
                    ErrorCode::None
                }
                Some(Group::Classic(group)) if group.state != State::Empty => ErrorCode::NonEmptyGroup,
                Some(Group::Consumer(group)) if !group.is_empty() => ErrorCode::NonEmptyGroup,
                Some(Group::Streams(group)) if !group.is_empty() => ErrorCode::NonEmptyGroup,
                Some(Group::Classic(_) | Group::Consumer(_) | Group::Streams(_)) => {
                    keys.extend(self.offsets.keys_of_group(&id.text()));
                    groups.extend(self.take_group(id));
                    ErrorCode::None
                }
            };
            results.push(DeletableGroupResult {
                group_id: id.clone(),
                error_code: error.code(),
                ..Default::default()
            });
        }
        let last = self.append_tombstones(keys, groups);
        if !shares.is_empty() {
            self.delete_shares(shares, results, ticket);
            return Ok(());
        }
        let response = DeleteGroupsResponse { results, ..Default::default() };
        self.answer_after_last(last, ticket, Response::DeleteGroups(response));
        Ok(())
    }

    pub(super) fn take_group(&mut self, id: &str) -> Option<Group> {
        let mut group = self.groups.remove(id)?;
        group.forget_timers(&mut self.out);
        Some(group)
    }

    /// Removes expired offsets and unused groups, and schedules the next search.
    ///
    /// A group with a newly issued member id is kept, unlike in Kafka, where that member finds its group gone.
    ///
    /// # Source
    /// Kafka 4.4 `GroupCoordinatorShard.cleanupGroupMetadata`.
    pub(super) fn expire(&mut self) {
        self.out.set_expiry();
        if self.out.is_full() {
            return;
        }
        let (now, retention) = (self.out.now.wall, self.out.config.offsets_retention);
        let mut keys = Vec::new();
        let mut ended: Vec<Text> = Vec::new();
        for (id, group) in &self.groups {
            let is_unused = match group {
                Group::Classic(group) => group.state == State::Empty && group.pending_members.is_empty(),
                Group::Consumer(group) => group.is_empty(),
                Group::Streams(group) => group.is_empty(),
                // A share group stays until it is deleted.
                Group::Share(_) => continue,
            };
            let expired = offsets::expire(&self.offsets, id, group, now, retention);
            keys.extend(expired.keys);
            if expired.is_all && is_unused {
                ended.push(id.clone());
            }
        }
        self.out.counts.offset_expirations += keys.len() as u64;
        keys.sort();
        ended.sort();
        let mut groups = Vec::with_capacity(ended.len());
        ended.iter().for_each(|id| groups.extend(self.take_group(id)));
        self.append_tombstones(keys, groups);
    }
}
