//! Which shard of the group coordinator a group belongs to, and whether it is here.
//!
//! A group's requests go to the owner of the partition of `__consumer_offsets` that its name falls on; what they come
//! to is decided there (barnabas_coordinator).
//!
//! Source: Kafka 4.4 `GroupCoordinatorService.partitionFor`, `Utils.abs`.

use barnabas_base::{ErrorCode, PartitionIndex, name, partition_for};

use crate::{Context, Leader};
use barnabas_security::Operation;
use barnabas_wire::Str;

/// The partition that looks after a group, and who leads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    pub partition: PartitionIndex,
    pub leader: Leader,
}

/// A request for one shard of the group coordinator.
#[derive(Debug, Clone, PartialEq)]
pub struct ToShard<Request> {
    pub shard: PartitionIndex,
    pub request: Request,
}

/// `None` where `__consumer_offsets`, or its partition's leader, is not known yet.
pub fn shard_of(group: &str, ctx: &Context<'_>) -> Option<Shard> {
    let topic = ctx.image.topics.by_name(name::CONSUMER_OFFSETS)?;
    let partition = partition_of(group, topic.partition_count())?;
    Some(Shard { partition, leader: ctx.leader_of(topic.partition(partition)?) })
}

/// The shard if it is here.
///
/// # Errors
/// NOT_COORDINATOR where another broker coordinates the group, or none does because `__consumer_offsets` does not exist
/// yet. Kafka's runtime makes no difference between the two (`CoordinatorRuntime.contextOrThrow`).
pub fn shard_here(group: &str, ctx: &Context<'_>) -> Result<PartitionIndex, ErrorCode> {
    let shard = shard_of(group, ctx).ok_or(ErrorCode::NotCoordinator)?;
    if shard.leader.id == ctx.node { Ok(shard.partition) } else { Err(ErrorCode::NotCoordinator) }
}

/// As [`shard_here`], for groups of a type that this cluster may not have.
///
/// # Errors
/// UNSUPPORTED_VERSION where it does not.
pub(crate) fn shard_here_if(
    has_such_groups: bool,
    group: &str,
    ctx: &Context<'_>,
) -> Result<PartitionIndex, ErrorCode> {
    if has_such_groups { shard_here(group, ctx) } else { Err(ErrorCode::UnsupportedVersion) }
}

/// As [`shard_here_if`], of a group that must have a name. (Members without one are told so by the shard, in words.)
///
/// # Errors
/// Also INVALID_GROUP_ID.
pub(crate) fn shard_of_named_if(
    has_such_groups: bool,
    group: &str,
    ctx: &Context<'_>,
) -> Result<PartitionIndex, ErrorCode> {
    if has_such_groups && group.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    shard_here_if(has_such_groups, group, ctx)
}

/// Why a member may not take part: it may not read the group, or not describe a topic that it reads.
pub(crate) fn denied<'a>(
    group: &str,
    topics: impl IntoIterator<Item = &'a Str>,
    ctx: &Context<'_>,
) -> Option<ErrorCode> {
    if !ctx.access.group(Operation::Read, group) {
        return Some(ErrorCode::GroupAuthorizationFailed);
    }
    let mut topics = topics.into_iter().filter(|_| !ctx.access.is_open());
    let is_allowed = topics.all(|topic| ctx.access.topic(Operation::Describe, topic));
    (!is_allowed).then_some(ErrorCode::TopicAuthorizationFailed)
}

/// Every shard that is here, by number.
pub fn shards_here(ctx: &Context<'_>) -> Vec<PartitionIndex> {
    let topic = ctx.image.topics.by_name(name::CONSUMER_OFFSETS);
    let partitions = topic.iter().flat_map(|topic| topic.partitions());
    partitions.filter(|(_, state)| state.leader == ctx.node).map(|(index, _)| index).collect()
}

fn partition_of(group: &str, partitions: usize) -> Option<PartitionIndex> {
    let partitions = i32::try_from(partitions).ok().filter(|count| *count > 0)?;
    Some(partition_for(group, partitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fall_where_java_puts_them() {
        // "polygenelubricants".hashCode() is Integer.MIN_VALUE.
        assert_eq!(partition_of("polygenelubricants", 50), Some(PartitionIndex(0)));
        assert_eq!(partition_of("a", 50), Some(PartitionIndex(97 % 50)));
        assert_eq!(partition_of("", 50), Some(PartitionIndex(0)));
        assert_eq!(partition_of("a", 0), None);
    }
}
