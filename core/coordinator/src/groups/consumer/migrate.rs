//! From a classic group to a consumer group and back, with the members in it.
//!
//! Up: when the first member of the new protocol joins a classic group of consumers. What the members had is what they
//! have. Down: when the last member of the new protocol leaves, or is replaced by one of the classic protocol.
//!
//! # Source
//! KIP-848; Kafka 4.4 `GroupMetadataManager.convertToConsumerGroup`, `convertToClassicGroup`,
//! `ConsumerGroup.fromClassicGroup`, `ClassicGroup.fromConsumerGroup`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, Text, TimestampMs, TopicId};
use barnabas_metadata::Image;
use barnabas_wire::messages::consumer_protocol_assignment::TopicPartition;
use barnabas_wire::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use barnabas_wire::{Message, Reader, Str, Writer};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::group::ConsumerGroup;
use super::member::{Assigned, ClassicSide, ConsumerMember};
use crate::assignment::Partitions;
use crate::groups::classic::{self, ClassicGroup, State};
use crate::groups::reconciled::{Refused, set_names};
use crate::outbox::Outbox;
use crate::records::Entry;
use crate::request::Protocols;

pub(crate) use crate::config::MigrationPolicy as Policy;

/// The newest version of the consumer protocol that is known here; later ones begin as it does.
const PROTOCOL_VERSION_MAX: i16 = 3;

const CUSTOM_ASSIGNOR: &str = "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor \
before re-attempting the upgrade.";

/// Whether this classic group, which has members, may become a consumer group.
///
/// # Errors
/// GROUP_ID_NOT_FOUND, with the reason.
pub(crate) fn can_upgrade(group: &ClassicGroup, out: &Outbox) -> Result<(), Refused> {
    let refuse = |why: &str| Err(cannot_upgrade(&group.id, why));
    if !matches!(out.config.consumer.migration, Policy::Upgrade | Policy::Bidirectional) {
        return refuse("online upgrade is disabled.");
    }
    if !group.is_consumer() {
        return refuse("the group does not use the consumer embedded protocol.");
    }
    if group.members.len() > out.config.consumer.size_max {
        return refuse("the group size exceeds the consumer group maximum size.");
    }
    Ok(())
}

fn cannot_upgrade(group: &str, why: &str) -> Refused {
    let why = format!("Cannot upgrade classic group {group} to consumer group because {why}");
    Refused::new(ErrorCode::GroupIdNotFound, why)
}

/// Whether the group may become a classic one as `leaving` go; `replaced`: a member of the classic protocol replaces
/// them.
pub(crate) fn can_downgrade(group: &ConsumerGroup, leaving: &[Text], replaced: bool, out: &Outbox) -> bool {
    let stays = if replaced { group.members().len() } else { group.members().len() - leaving.len() };
    let speaks_new = |id: &Text| group.member(id).is_some_and(|member| member.own.classic.is_none());
    let leaving_new = leaving.iter().filter(|id| speaks_new(id)).count();
    leaving_new > 0
        && group.members().len() - group.classic_members() == leaving_new
        && stays > 0
        && matches!(out.config.consumer.migration, Policy::Downgrade | Policy::Bidirectional)
        && stays <= out.config.group_size_max
}

/// The consumer group that a classic one becomes. All members are stable with what they had.
///
/// # Errors
/// GROUP_ID_NOT_FOUND: what the members say to each other cannot be read, or an assignor of their own keeps user data
/// in the assignments, which would be lost.
pub(crate) fn from_classic(classic: &ClassicGroup, image: &Image) -> Result<ConsumerGroup, Refused> {
    let mut group = ConsumerGroup::new(classic.id.clone());
    let protocol = classic.protocol.clone().unwrap_or_default();
    group.epoch = classic.generation;
    group.assignment_epoch = classic.generation;
    for (id, known) in &classic.members {
        let unreadable = || cannot_upgrade(&classic.id, "the embedded consumer protocol is malformed.");
        let said = known
            .protocols
            .metadata(&protocol)
            .or_else(|| known.protocols.pairs().next().map(|(_, said)| said));
        let subscription = said
            .and_then(|said| read::<ConsumerProtocolSubscription>(said.clone()))
            .ok_or_else(unreadable)?;
        let mut member = ConsumerMember::new(id.clone());
        let assignment = assignment_of(&known.assignment).ok_or_else(unreadable)?;
        if assignment.user_data.as_ref().is_some_and(|data| !data.is_empty()) {
            return Err(cannot_upgrade(&classic.id, CUSTOM_ASSIGNOR));
        }
        let assigned = assigned_from(assignment, classic.generation, image);
        member.instance = known.instance.clone();
        member.rack = subscription.rack_id.as_ref().filter(|rack| !rack.is_empty()).map(Str::text);
        member.client_id = known.client_id.clone();
        member.client_host = known.client_host.clone();
        set_names(&mut member.own.names, subscription.topics.iter().map(Str::text));
        member.rebalance_timeout_ms = known.rebalance_timeout_ms;
        member.own.classic = Some(Arc::new(ClassicSide {
            session_timeout_ms: known.session_timeout_ms,
            protocols: known.protocols.clone(),
        }));
        member.epoch = classic.generation;
        member.previous_epoch = classic.generation;
        // A client that assigns as it likes may have given a partition to two: the first one has it.
        let mut assigned = assigned;
        for (topic, partitions) in &mut assigned {
            partitions.retain(|partition, _| group.owner(*topic, *partition).is_none());
        }
        assigned.retain(|_, partitions| !partitions.is_empty());
        let target = assigned
            .iter()
            .map(|(topic, each)| (*topic, each.keys().copied().collect()))
            .collect::<Partitions>();
        member.assigned = Arc::new(assigned);
        member.own.names = group.own.names.shared(member.own.names);
        group.targets.insert(id.clone(), Arc::new(target));
        group.put(member);
    }
    note_everything(&mut group);
    Ok(group)
}

fn note_everything(group: &mut ConsumerGroup) {
    let ids: Vec<Text> = group.members().keys().cloned().collect();
    group.note(Entry::OldClassic);
    group.note_all(ids.iter().cloned().map(Entry::Member));
    group.note(Entry::Group);
    group.note_all(ids.iter().cloned().map(Entry::Target));
    group.note(Entry::TargetEpoch);
    group.note_all(ids.into_iter().map(Entry::Current));
}

/// The classic group that is left of a consumer group without `leaving`: stable, with the targets as assignments.
pub(crate) fn to_classic(
    group: &ConsumerGroup,
    leaving: &[Text],
    image: &Image,
    now: TimestampMs,
) -> ClassicGroup {
    let mut new = ClassicGroup::new(group.id.clone(), now);
    new.generation = group.epoch;
    new.protocol_type = Some(Text::from("consumer"));
    for (id, member) in group.members().iter().filter(|(id, _)| !leaving.contains(id)) {
        let Some(side) = &member.own.classic else { continue };
        let target = group.targets.get(id).into_iter().flat_map(|target| target.iter());
        let target = target.map(|(topic, partitions)| (*topic, partitions.clone()));
        let assignment = assignment_bytes(target, &side.protocols, image);
        let known = classic::Member {
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: side.session_timeout_ms,
            protocols: side.protocols.clone(),
            assignment,
            join: None,
            sync: None,
            is_new: false,
        };
        new.add(id.clone(), known, "consumer");
    }
    new.protocol = new.select_protocol();
    new.find_subscribed();
    new.state = if new.members.is_empty() { State::Empty } else { State::Stable };
    new
}

/// What the member subscribes to, by the first of its protocols.
pub(super) fn subscription_of(protocols: &Protocols) -> Option<ConsumerProtocolSubscription> {
    read(protocols.pairs().next()?.1.clone())
}

fn read<M: Message>(mut bytes: Bytes) -> Option<M> {
    let version = bytes.try_get_i16().ok()?;
    if version < 0 {
        return None;
    }
    M::decode(&mut Reader::new(bytes), version.min(PROTOCOL_VERSION_MAX)).ok()
}

/// A member that has never synced has no bytes, and no partitions.
fn assignment_of(bytes: &Bytes) -> Option<ConsumerProtocolAssignment> {
    if bytes.is_empty() { Some(ConsumerProtocolAssignment::default()) } else { read(bytes.clone()) }
}

fn assigned_from(assignment: ConsumerProtocolAssignment, epoch: i32, image: &Image) -> Assigned {
    let mut assigned = Assigned::new();
    for topic in assignment.assigned_partitions {
        if let Some(id) = image.topics.id_of(&topic.topic) {
            let partitions = assigned.entry(id).or_default();
            partitions.extend(topic.partitions.iter().map(|partition| (*partition, epoch)));
        }
    }
    assigned.retain(|_, partitions| !partitions.is_empty());
    assigned
}

/// Partitions as an assignment of the consumer protocol, in the version that the member's first protocol speaks.
pub(super) fn assignment_bytes(
    partitions: impl Iterator<Item = (TopicId, Vec<i32>)>,
    protocols: &Protocols,
    image: &Image,
) -> Bytes {
    let first = protocols.pairs().next().map(|(_, said)| said.clone());
    let version = first.and_then(|mut said| said.try_get_i16().ok()).unwrap_or(0);
    let version = version.clamp(0, PROTOCOL_VERSION_MAX);
    let topics = partitions.filter_map(|(id, partitions)| {
        let topic = image.topics.by_id(id)?;
        Some(TopicPartition { topic: Str::from(&topic.name), partitions, ..Default::default() })
    });
    let assignment =
        ConsumerProtocolAssignment { assigned_partitions: topics.collect(), ..Default::default() };
    let mut writer = Writer::new();
    assignment
        .encode(&mut writer, version)
        .expect("invariant: topic names are short, and versions 0 to 3 have all fields");
    let body = writer.finish().into_bytes();
    let mut bytes = BytesMut::with_capacity(body.len() + 2);
    bytes.put_i16(version);
    bytes.extend_from_slice(&body);
    bytes.freeze()
}
