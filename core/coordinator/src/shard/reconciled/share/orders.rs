//! What share groups ask of the share coordinator, and who waits for it.
//!
//! An order leaves once the record that speaks of it is on disk, and a group has one under way at a time, so that what
//! is set up and what is deleted cannot overtake each other.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService`, `GroupMetadataManager`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, Offset, Set, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
use barnabas_wire::messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic;
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, DeleteGroupsResponse,
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse,
};

use super::{Group, GroupShard, refusal};
use crate::framework::{BatchId, Now, Ticket};
use crate::groups::find_mut;
use crate::groups::reconciled::{Refused, not_found, wrong_kind};
use crate::groups::share::{Awaiting, Heartbeat, Outcomes, Share, ShareGroup};
use crate::outbox::{
    Effect, GroupThen, ShareStateDone, ShareStateOrder, ShareStateWork, TimerKey, append_refusal,
};
use crate::records::{Entry, GroupKind};
use crate::{Response, SharePartitionKey};

impl GroupShard {
    /// # Source
    /// Kafka 4.4 `GroupMetadataManager.alterShareGroupOffsets`: an unknown group is created, if there is a topic.
    pub(in crate::shard) fn alter_share_offsets(
        &mut self,
        request: &AlterShareGroupOffsetsRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        match self.groups.get(&id) {
            Some(Group::Share(group)) => check_at_rest(group)?,
            Some(_) => return Err(wrong_kind(GroupKind::Share, &id)),
            // The client may read none of its topics: Kafka writes no record then.
            None if request.topics.is_empty() => {
                self.out.answer(
                    ticket,
                    Response::AlterShareGroupOffsets(AlterShareGroupOffsetsResponse::default()),
                );
                return Ok(());
            }
            None => {
                let mut group = ShareGroup::new(id.clone());
                group.note(Entry::Group);
                self.groups.insert(id.clone(), Group::Share(Box::new(group)));
                self.out.groups_changed = self.out.pending.upcoming();
            }
        }
        let group = find_mut::<Share>(&mut self.groups, &id)?;
        let (mut starts, mut responses) = (BTreeMap::new(), Vec::new());
        for topic in &request.topics {
            let known = self.world.image.topics.by_name(&topic.topic_name);
            let partitions = topic.partitions.iter().map(|partition| {
                let index = partition.partition_index;
                let is_there = known.is_some_and(|known| {
                    usize::try_from(index).is_ok_and(|index| index < known.partition_count())
                });
                if let Some(known) = known.filter(|_| is_there) {
                    let key = SharePartitionKey {
                        group: id.clone(),
                        topic: known.id,
                        partition: barnabas_base::PartitionIndex(index),
                    };
                    group.own.set_up.note_initializing(known.id, &known.name, BTreeSet::from([index]));
                    starts.insert(key, Offset(partition.start_offset));
                }
                let error = if is_there { ErrorCode::None } else { ErrorCode::UnknownTopicOrPartition };
                AlterShareGroupOffsetsResponsePartition {
                    partition_index: index,
                    error_code: error.code(),
                    ..Default::default()
                }
            });
            responses.push(AlterShareGroupOffsetsResponseTopic {
                topic_name: topic.topic_name.clone(),
                topic_id: known.map(|known| known.id).unwrap_or_default(),
                partitions: partitions.collect(),
                ..Default::default()
            });
        }
        let response = AlterShareGroupOffsetsResponse { responses, ..Default::default() };
        if starts.is_empty() {
            group.answer(ticket, Response::AlterShareGroupOffsets(response), &mut self.out);
            return Ok(());
        }
        group.note(Entry::SetUp);
        let state_epoch = group.epoch;
        let work = ShareStateWork::Initialize { state_epoch, starts: starts.into_iter().collect() };
        self.order(&id, work, Awaiting::Altered { group: id.clone(), ticket, response });
        Ok(())
    }

    /// # Source
    /// Kafka 4.4 `GroupCoordinatorShard.initiateDeleteShareGroupOffsets`, `completeDeleteShareGroupOffsets`.
    pub(in crate::shard) fn delete_share_offsets(
        &mut self,
        request: &DeleteShareGroupOffsetsRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let group = find_mut::<Share>(&mut self.groups, &id)?;
        check_at_rest(group)?;
        let (mut keys, mut topics, mut responses) = (Vec::new(), Vec::new(), Vec::new());
        // A topic that is named again is answered again, and its share-partitions are deleted once.
        let mut named = Set::default();
        for topic in &request.topics {
            let known = self.world.image.topics.by_name(&topic.topic_name);
            let is_kept = known.is_some_and(|known| {
                group.own.set_up.initialized.contains_key(&known.id)
                    || group.own.set_up.deleting.contains_key(&known.id)
            });
            match known.filter(|_| is_kept) {
                Some(known) => {
                    if named.insert(known.id) {
                        keys.extend(group.own.set_up.delete(&id, known.id, &self.world.image));
                    }
                    topics.push((known.id, known.name.clone()));
                }
                None => responses.push(DeleteShareGroupOffsetsResponseTopic {
                    topic_name: topic.topic_name.clone(),
                    error_code: ErrorCode::UnknownTopicOrPartition.code(),
                    error_message: known.map(|_| Str::from_static("The group has no offsets of this topic.")),
                    ..Default::default()
                }),
            }
        }
        let response = DeleteShareGroupOffsetsResponse { responses, ..Default::default() };
        if keys.is_empty() {
            group.answer(ticket, Response::DeleteShareGroupOffsets(response), &mut self.out);
            return Ok(());
        }
        group.note(Entry::SetUp);
        let awaiting = Awaiting::OffsetsDeleted { group: id.clone(), ticket, topics, response };
        self.order(&id, ShareStateWork::Delete(keys), awaiting);
        Ok(())
    }

    /// Has the state of share groups deleted that are to go. Gives those results that wait for nothing back.
    pub(in crate::shard) fn delete_shares(
        &mut self,
        ids: Vec<Text>,
        results: Vec<DeletableGroupResult>,
        ticket: Ticket,
    ) {
        let (mut keys, mut last) = (Vec::new(), BatchId(0));
        let number = self.share_orders_made + 1;
        for id in &ids {
            let Some(Group::Share(group)) = self.groups.get_mut(id) else { continue };
            keys.extend(group.own.set_up.delete_all(id, &self.world.image));
            group.note(Entry::SetUp);
            group.own.order = Some(number);
            group.flush(&mut self.out);
            last = last.max(group.last_batch());
        }
        let groups = ids.into_iter().collect();
        self.order_after(
            last,
            ShareStateWork::Delete(keys),
            Awaiting::GroupsDeleted { ticket, groups, results },
        );
    }

    /// Writes what the group says of an order, and gives the order out once that is on disk.
    pub(super) fn order(&mut self, id: &Text, work: ShareStateWork, awaiting: Awaiting) {
        let number = self.share_orders_made + 1;
        let Some(Group::Share(group)) = self.groups.get_mut(id) else { return };
        group.own.order = Some(number);
        group.flush(&mut self.out);
        let batch = group.last_batch();
        self.order_after(batch, work, awaiting);
    }

    fn order_after(&mut self, batch: BatchId, work: ShareStateWork, awaiting: Awaiting) {
        self.share_orders_made += 1;
        let order = ShareStateOrder { number: self.share_orders_made, work };
        self.share_orders.insert(order.number, awaiting);
        match self.out.pending.then_mut(batch) {
            Some(Some(then)) => then.groups.push(GroupThen::ShareOrdered(order)),
            _ => self.out.compute(Effect::ShareState(order)),
        }
    }

    /// The record of the order is not on disk, or may not be: nothing was ordered.
    pub(in crate::shard) fn share_order_lost(&mut self, order: ShareStateOrder, error: ErrorCode) {
        let error = append_refusal(error);
        let keys: Vec<SharePartitionKey> = match order.work {
            ShareStateWork::Initialize { starts, .. } => starts.into_iter().map(|(key, _)| key).collect(),
            ShareStateWork::Delete(keys) => keys,
        };
        let outcomes = keys.into_iter().map(|key| (key, error)).collect();
        self.take_share_state(ShareStateDone { number: order.number, outcomes }, Some(error));
    }

    /// An order of this shard was carried out, as far as that went.
    pub fn share_state_done(&mut self, done: ShareStateDone, now: Now) -> Vec<Effect> {
        self.out.now = now;
        self.take_share_state(done, None);
        self.out.take_effects()
    }

    /// `lost`: none of it was even begun.
    fn take_share_state(&mut self, done: ShareStateDone, lost: Option<ErrorCode>) {
        let Some(awaiting) = self.share_orders.remove(&done.number) else { return };
        let outcomes = done.outcomes;
        match awaiting {
            Awaiting::SetUp { group, heartbeats, .. } => {
                self.out.timers.cancel(&TimerKey::SetUp(group.clone()));
                self.set_up(&group, heartbeats, &outcomes, lost);
            }
            Awaiting::Altered { group, ticket, response } => {
                self.altered(&group, ticket, response, &outcomes)
            }
            Awaiting::OffsetsDeleted { group, ticket, topics, response } => {
                self.offsets_deleted(&group, ticket, topics, response, &outcomes);
            }
            Awaiting::GroupsDeleted { ticket, groups, results } => {
                self.shares_deleted(groups, results, ticket, &outcomes, lost);
            }
        }
    }

    fn set_up(
        &mut self,
        id: &Text,
        heartbeats: Vec<Heartbeat>,
        outcomes: &[(SharePartitionKey, ErrorCode)],
        lost: Option<ErrorCode>,
    ) {
        // A topic that has gone meanwhile is nothing that a member need hear of.
        let errors = outcomes.iter().map(|(_, error)| *error);
        let mut failed =
            errors.filter(|error| !matches!(error, ErrorCode::None | ErrorCode::UnknownTopicOrPartition));
        let failed = lost.or(failed.next_back());
        let is_full = failed == Some(ErrorCode::GroupMaxSizeReached);
        if let Some(Group::Share(group)) = self.groups.get_mut(id) {
            group.own.order = None;
            group.own.set_up.end(outcomes);
            group.wait_for_room(is_full, self.out.now.mono);
            group.note(Entry::SetUp);
            group.flush(&mut self.out);
        }
        for heartbeat in heartbeats {
            // Members that are known go on with what is set up.
            let failed = failed.filter(|_| !is_full || heartbeat.before.epoch == 0);
            match failed {
                Some(error) => {
                    let why = "The state of the group's topics could not be set up.";
                    self.out.answer(heartbeat.ticket, refusal(Refused::new(error, why)));
                }
                None if self.groups.contains_key(id) => self.end_heartbeat(id, &heartbeat),
                None => self.out.answer(heartbeat.ticket, refusal(not_found(id))),
            }
        }
    }

    fn altered(
        &mut self,
        id: &Text,
        ticket: Ticket,
        mut response: AlterShareGroupOffsetsResponse,
        outcomes: &[(SharePartitionKey, ErrorCode)],
    ) {
        let found = Outcomes::new(outcomes);
        for topic in &mut response.responses {
            for partition in topic.partitions.iter_mut().filter(|partition| partition.error_code == 0) {
                if let Some(error) = found.of_partition(topic.topic_id, partition.partition_index) {
                    partition.error_code = error.code();
                }
            }
        }
        let response = Response::AlterShareGroupOffsets(response);
        let Some(Group::Share(group)) = self.groups.get_mut(id) else {
            return self.out.answer(ticket, response);
        };
        group.own.order = None;
        group.own.set_up.end(outcomes);
        group.note(Entry::SetUp);
        group.answer(ticket, response, &mut self.out);
    }

    fn offsets_deleted(
        &mut self,
        id: &Text,
        ticket: Ticket,
        topics: Vec<(TopicId, Text)>,
        mut response: DeleteShareGroupOffsetsResponse,
        outcomes: &[(SharePartitionKey, ErrorCode)],
    ) {
        let outcomes = Outcomes::new(outcomes);
        let mut gone = Vec::new();
        for (topic_id, name) in topics {
            let failed = outcomes.failure_of_topic(topic_id);
            if failed.is_none() {
                gone.push(topic_id);
            }
            response.responses.push(DeleteShareGroupOffsetsResponseTopic {
                topic_name: Str::from(&name),
                topic_id,
                error_code: failed.unwrap_or(ErrorCode::None).code(),
                ..Default::default()
            });
        }
        let response = Response::DeleteShareGroupOffsets(response);
        let Some(Group::Share(group)) = self.groups.get_mut(id) else {
            return self.out.answer(ticket, response);
        };
        group.own.order = None;
        gone.iter().for_each(|topic| {
            group.own.set_up.deleting.remove(topic);
        });
        group.note(Entry::SetUp);
        group.answer(ticket, response, &mut self.out);
    }

    fn shares_deleted(
        &mut self,
        groups: BTreeSet<Text>,
        mut results: Vec<DeletableGroupResult>,
        ticket: Ticket,
        outcomes: &[(SharePartitionKey, ErrorCode)],
        lost: Option<ErrorCode>,
    ) {
        let outcomes = Outcomes::new(outcomes);
        let (mut taken, mut errors) = (Vec::new(), BTreeMap::new());
        for id in &groups {
            let failed = lost.or(outcomes.failure_of_group(id));
            let error = match self.groups.get_mut(id) {
                Some(Group::Share(group)) => {
                    group.own.order = None;
                    // A member may have joined meanwhile.
                    failed.or((!group.is_empty()).then_some(ErrorCode::NonEmptyGroup))
                }
                _ => Some(ErrorCode::GroupIdNotFound),
            };
            if error.is_none() {
                taken.extend(self.take_group(id));
            }
            errors.insert(id.as_str(), error.unwrap_or(ErrorCode::None));
        }
        for result in &mut results {
            if let Some(error) = errors.remove(result.group_id.as_str()) {
                result.error_code = error.code();
            }
        }
        let last = self.append_tombstones(Vec::new(), taken);
        let response = DeleteGroupsResponse { results, ..Default::default() };
        self.answer_after_last(last, ticket, Response::DeleteGroups(response));
    }

    /// Requests that wait for an order are refused.
    pub(in crate::shard) fn abandon_share_orders(&mut self) {
        let mut orders: Vec<(u64, Awaiting)> = self.share_orders.drain().collect();
        orders.sort_by_key(|(number, _)| *number);
        let error = ErrorCode::NotCoordinator;
        for (_, awaiting) in orders {
            match awaiting {
                Awaiting::SetUp { heartbeats, .. } => {
                    for heartbeat in heartbeats {
                        self.out.answer(heartbeat.ticket, refusal(Refused::new(error, "")));
                    }
                }
                Awaiting::Altered { ticket, .. } => {
                    let response =
                        AlterShareGroupOffsetsResponse { error_code: error.code(), ..Default::default() };
                    self.out.answer(ticket, Response::AlterShareGroupOffsets(response));
                }
                Awaiting::OffsetsDeleted { ticket, .. } => {
                    let response =
                        DeleteShareGroupOffsetsResponse { error_code: error.code(), ..Default::default() };
                    self.out.answer(ticket, Response::DeleteShareGroupOffsets(response));
                }
                Awaiting::GroupsDeleted { ticket, groups, mut results } => {
                    let waiting =
                        results.iter_mut().filter(|result| groups.contains(result.group_id.as_str()));
                    waiting.for_each(|result| result.error_code = error.code());
                    let response = DeleteGroupsResponse { results, ..Default::default() };
                    self.out.answer(ticket, Response::DeleteGroups(response));
                }
            }
        }
    }
}

/// Whether a group's offsets may be changed: it has no member, and no change is under way.
fn check_at_rest(group: &ShareGroup) -> Result<(), Refused> {
    if !group.is_empty() {
        return Err(Refused::new(ErrorCode::NonEmptyGroup, "The group is not empty."));
    }
    if group.own.order.is_some() {
        let why = "The group's topics are being set up.";
        return Err(Refused::new(ErrorCode::CoordinatorLoadInProgress, why));
    }
    Ok(())
}
