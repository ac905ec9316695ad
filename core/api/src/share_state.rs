//! Which partition of `__share_group_state` holds the state of a share-partition, and which broker leads it.
//!
//! The key of a share-partition is `group:topic id:partition`. Its hash selects the partition, as a group's id selects
//! one of `__consumer_offsets`.
//!
//! Source: Kafka 4.4 `ShareCoordinatorService.partitionFor`, `SharePartitionKey`.

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, Uuid, name, partition_for};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::messages::create_topics_request::CreateTopicsRequest;

use crate::groups::Shard;
use crate::{Access, Client, Context, auto_create};

/// `None` where `__share_group_state`, or its partition's leader, is not known yet.
pub fn shard_of(key: &str, ctx: &Context<'_>) -> Option<Shard> {
    let topic = ctx.image.topics.by_name(name::SHARE_GROUP_STATE)?;
    let partition = partition_of(key, ctx.image)?;
    Some(Shard { partition, leader: ctx.leader_of(topic.partition(partition)?) })
}

/// The shard's partition and its leader; [`BrokerId::NONE`] while it has none.
///
/// # Errors
/// COORDINATOR_NOT_AVAILABLE where there is no such partition yet.
pub fn coordinated_by(key: &str, image: &Image) -> Result<(PartitionIndex, BrokerId), ErrorCode> {
    let partition = partition_of(key, image).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let topic = image.topics.by_name(name::SHARE_GROUP_STATE);
    let state =
        topic.and_then(|topic| topic.partition(partition)).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    Ok((partition, state.leader))
}

/// Whether `key` is the key of a share-partition: a group id, which may contain colons, a topic id and a partition.
///
/// # Source
/// Kafka 4.4 `SharePartitionKey.validate`.
pub fn is_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let (partition, topic, group) = (parts.next(), parts.next(), parts.next());
    partition.is_some_and(|partition| partition.parse::<i32>().is_ok())
        && topic.is_some_and(|topic| Uuid::parse(topic).is_some())
        && group.is_some_and(|group| !group.trim().is_empty())
}

/// The CreateTopics request that this broker sends for `__share_group_state`: partitions from
/// `share.coordinator.state.topic.num.partitions`, replicas and configs as in [`auto_create`].
///
/// # Source
/// Kafka `DefaultAutoTopicCreationManager.creatableTopic`.
pub fn creation(image: &Image, config: &BrokerConfig, node: BrokerId) -> CreateTopicsRequest {
    let text = |text: &str| barnabas_base::Text::from(text);
    let client = Client {
        listener: text(""),
        client_id: None,
        host: text(""),
        principal: text("User:ANONYMOUS"),
        is_authenticated: false,
        token_authenticated: false,
    };
    let now = barnabas_base::TimestampMs(0);
    let room = crate::AnswerRoom::unlimited();
    let loggers = Vec::new;
    let access = Access::OPEN;
    let ctx = Context {
        image,
        config,
        cluster_id: "",
        node,
        offline: None,
        client: &client,
        access,
        now,
        loggers,
        room: &room,
    };
    auto_create::creation([name::SHARE_GROUP_STATE].into_iter(), &ctx)
}

fn partition_of(key: &str, image: &Image) -> Option<PartitionIndex> {
    let topic = image.topics.by_name(name::SHARE_GROUP_STATE)?;
    let partitions = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
    Some(partition_for(key, partitions))
}
