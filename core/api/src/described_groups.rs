//! What the answers that describe groups have in common, whatever the groups' type: each group in its place, told by
//! its shard.
//!
//! Before: k15, k69, k77, k89, which say which shard is asked. Source: Kafka 4.4 `GroupCoordinatorService`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Map, PartitionIndex};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::messages::{
    consumer_group_describe_response, describe_groups_response, share_group_describe_response,
    streams_group_describe_response,
};
use barnabas_wire::{Str, Struct};

use crate::access::OPERATIONS_NOT_ASKED;
use crate::{Access, AnswerRoom};

/// What a description says first.
pub(crate) struct Head<'a> {
    group_id: &'a mut Str,
    error_code: &'a mut i16,
    authorized_operations: &'a mut i32,
}

/// The description of a group of one type.
pub(crate) trait Description: Clone + Default + Struct {
    fn head(&mut self) -> Head<'_>;

    /// The topics that the description shows.
    fn topics(&self) -> impl Iterator<Item = &str>;

    /// The same group for a client that may not describe one of them.
    fn without_topics(self) -> Self;
}

macro_rules! description {
    ($of:ident, $topics:expr, $denied:expr) => {
        impl Description for $of::DescribedGroup {
            fn head(&mut self) -> Head<'_> {
                let Self { group_id, error_code, authorized_operations, .. } = self;
                Head { group_id, error_code, authorized_operations }
            }

            fn topics(&self) -> impl Iterator<Item = &str> {
                let topics: fn(&Self) -> Vec<&str> = $topics;
                topics(self).into_iter()
            }

            fn without_topics(self) -> Self {
                let denied: fn(Self) -> Self = $denied;
                denied(self)
            }
        }
    };
    ($of:ident, $topics:expr) => {
        description!($of, $topics, |group| Self {
            group_id: group.group_id,
            error_code: ErrorCode::TopicAuthorizationFailed.code(),
            error_message: Some(Str::from_static(DENIED)),
            authorized_operations: OPERATIONS_NOT_ASKED,
            ..Self::default()
        });
    };
}

/// Kafka's sentence for a group with topics that the client may not describe.
const DENIED: &str = "The group has described topic(s) that the client is not authorized to describe.";

// The classic protocol's members keep their topics in bytes that the coordinator does not read.
description!(describe_groups_response, |_| Vec::new(), |group| group);
description!(consumer_group_describe_response, |group| {
    let assigned = group.members.iter().flat_map(|member| [&member.assignment, &member.target_assignment]);
    assigned.flat_map(|each| &each.topic_partitions).map(|topic| topic.topic_name.as_str()).collect()
});
description!(share_group_describe_response, |group| {
    let assigned = group.members.iter().flat_map(|member| &member.assignment.topic_partitions);
    assigned.map(|topic| topic.topic_name.as_str()).collect()
});
description!(streams_group_describe_response, |group| {
    let topologies = group.topology.iter().flat_map(|topology| &topology.subtopologies);
    let names = topologies.flatten().flat_map(|each| {
        let named = each.repartition_source_topics.iter().chain(&each.state_changelog_topics);
        let plain = each.source_topics.iter().chain(&each.repartition_sink_topics);
        plain.chain(named.map(|topic| &topic.name))
    });
    names.map(Str::as_str).collect()
});

/// The descriptions as far as they are known, in the order of the request, however often a group stands in it.
#[derive(Debug)]
pub(crate) struct Described<Group> {
    with_operations: bool,
    groups: Vec<Group>,
    places: Map<Str, Vec<usize>>,
}

impl<Group: Description> Described<Group> {
    /// What to ask which shard, each group once. A group without a shard is refused already.
    pub fn split(
        ids: Vec<Str>,
        with_operations: bool,
        shard_of: impl Fn(&Str) -> Result<PartitionIndex, ErrorCode>,
    ) -> (BTreeMap<PartitionIndex, Vec<Str>>, Self) {
        let mut described = Self { with_operations, groups: Vec::new(), places: Map::default() };
        let mut by_shard: BTreeMap<PartitionIndex, Vec<Str>> = BTreeMap::new();
        for id in ids {
            let shard = shard_of(&id);
            let mut group = Group::default();
            let head = group.head();
            *head.group_id = id.clone();
            *head.error_code = shard.err().unwrap_or_default().code();
            *head.authorized_operations = OPERATIONS_NOT_ASKED;
            let places = described.places.entry(id.clone()).or_default();
            places.push(described.groups.len());
            described.groups.push(group);
            if let Ok(shard) = shard
                && places.len() == 1
            {
                by_shard.entry(shard).or_default().push(id);
            }
        }
        (by_shard, described)
    }

    /// Adds a shard's descriptions. A group with a topic that the client may not describe is refused.
    pub fn add(
        &mut self,
        groups: impl IntoIterator<Item = Group>,
        version: i16,
        room: &AnswerRoom,
        access: &Access<'_>,
    ) {
        for mut group in groups {
            if !access.is_open() && !group.topics().all(|name| access.topic(Operation::Describe, name)) {
                group = group.without_topics();
            }
            let head = group.head();
            let Some(places) = self.places.get(&*head.group_id) else { continue };
            let shows = self.with_operations && *head.error_code == 0;
            *head.authorized_operations = match shows {
                true => access.operations(ResourceType::Group, head.group_id),
                false => OPERATIONS_NOT_ASKED,
            };
            for &place in places {
                match room.take_struct(&group, version) {
                    Ok(()) => self.groups[place] = group.clone(),
                    Err(large) => {
                        *self.groups[place].head().error_code =
                            large.code(ErrorCode::CoordinatorLoadInProgress).code();
                    }
                }
            }
        }
    }

    pub fn into_groups(self) -> Vec<Group> {
        self.groups
    }
}
