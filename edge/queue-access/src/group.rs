//! A queue's share group: that it begins at the oldest record, where it stands, and its end with a temporary queue.
//!
//! Kafka's share groups begin at the newest one (`share.auto.offset.reset=latest`); a queue gives out what was put
//! before its first receiver came, once it is committed. Where an operator has set the group's key, both keys are left
//! as they are.

use crate::address::Address;
use barnabas_base::{ErrorCode, Map, Offset, PartitionIndex};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{
    DeleteGroupsRequest, DescribeConfigsRequest, DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
};

const GROUP: i8 = 32;
/// Where a group's value comes from: the group itself.
const OWN: i8 = 8;
/// IncrementalAlterConfigs' operations.
const SET: i8 = 0;
const DELETE: i8 = 1;
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const RESET: &str = "share.auto.offset.reset";
/// Units of work of MQ are transactions: what is not committed is not delivered.
const ISOLATION: &str = "share.isolation.level";

/// Makes the group begin at the oldest record, unless it is set otherwise.
///
/// # Errors
/// The caller may not see or change the group's configuration, or the cluster does not answer.
pub async fn found(cluster: &mut Cluster, group: &str) -> Result<(), ClientError> {
    if is_set(cluster, group).await? {
        return Ok(());
    }
    set(cluster, group).await?;
    // The broker learns of it from the metadata log.
    let tries = cluster.tries(format!("setting {RESET} of group {group}"));
    while !is_set(cluster, group).await? {
        tries.after(ClientError::refused(RESET, ErrorCode::ConcurrentTransactions.code(), None)).await?;
    }
    Ok(())
}

async fn is_set(cluster: &mut Cluster, group: &str) -> Result<bool, ClientError> {
    let resource = DescribeConfigsResource {
        resource_type: GROUP,
        resource_name: group.into(),
        configuration_keys: Some(vec![RESET.into()]),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    let told = answer.results.first().ok_or_else(|| empty(group))?;
    check(what(group), told.error_code, told.error_message.as_deref())?;
    Ok(told.configs.iter().any(|config| config.config_source == OWN))
}

async fn set(cluster: &mut Cluster, group: &str) -> Result<(), ClientError> {
    alter(cluster, group, SET, [Some("earliest"), Some("read_committed")]).await
}

async fn alter(
    cluster: &mut Cluster,
    group: &str,
    config_operation: i8,
    values: [Option<&str>; 2],
) -> Result<(), ClientError> {
    let config = |(name, value): (&str, Option<&str>)| {
        let value = value.map(Into::into);
        AlterableConfig { name: name.into(), config_operation, value, ..Default::default() }
    };
    let resource = AlterConfigsResource {
        resource_type: GROUP,
        resource_name: group.into(),
        configs: [RESET, ISOLATION].into_iter().zip(values).map(config).collect(),
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    let told = answer.responses.first().ok_or_else(|| empty(group))?;
    check(what(group), told.error_code, told.error_message.as_deref())
}

/// Where the queue begins, in each partition: behind what its receivers are done with. Where they are done with all, at
/// the end, although the group may not have moved its start yet.
///
/// # Errors
/// The caller may not see the group or the topic, or the cluster does not answer.
pub async fn starts(
    cluster: &mut Cluster,
    address: &Address,
) -> Result<Map<PartitionIndex, Offset>, ClientError> {
    let mut starts = Map::default();
    for (index, start, lag) in places(cluster, address).await? {
        let start = match (start, lag) {
            (_, Some(0)) => cluster.list_offset(&address.topic, index, LATEST).await?,
            (Some(start), _) => start,
            (None, _) => cluster.list_offset(&address.topic, index, EARLIEST).await?,
        };
        starts.insert(index, start);
    }
    Ok(starts)
}

/// How many records the group is not done with: taken ones among them (KIP-1226), and markers of transactions where it
/// was never read from.
///
/// # Errors
/// As [`starts`].
pub async fn depth(cluster: &mut Cluster, address: &Address) -> Result<u64, ClientError> {
    let mut depth = 0;
    for (index, start, lag) in places(cluster, address).await? {
        let lag = match (lag, start) {
            (Some(lag), _) => lag,
            (None, start) => {
                let end = cluster.list_offset(&address.topic, index, LATEST).await?;
                let start = match start {
                    Some(start) => start,
                    None => cluster.list_offset(&address.topic, index, EARLIEST).await?,
                };
                end.get() - start.get()
            }
        };
        depth += u64::try_from(lag).unwrap_or(0);
    }
    Ok(depth)
}

/// A partition, where the group stands in it, and its lag, where they are known.
type GroupPlace = (PartitionIndex, Option<Offset>, Option<i64>);

async fn places(cluster: &mut Cluster, address: &Address) -> Result<Vec<GroupPlace>, ClientError> {
    let topic = cluster.topic(&address.topic, false).await?;
    let partitions: Vec<i32> = topic.partitions.iter().map(|partition| partition.partition_index).collect();
    let wanted = DescribeShareGroupOffsetsRequestTopic {
        topic_name: address.topic.as_str().into(),
        partitions: partitions.clone(),
        ..Default::default()
    };
    let group = DescribeShareGroupOffsetsRequestGroup {
        group_id: address.group.as_str().into(),
        topics: Some(vec![wanted]),
        ..Default::default()
    };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    let coordinator = cluster.group_coordinator(&address.group).await?;
    let answer = cluster.ask(coordinator, &request).await?;
    let told = answer.groups.first().ok_or_else(|| empty(&address.group))?;
    // A queue that was never received from has no group.
    if told.error_code != ErrorCode::GroupIdNotFound.code() {
        let what = format!("the place of group {}", address.group);
        check(what, told.error_code, told.error_message.as_deref())?;
    }
    let known = told.topics.iter().flat_map(|topic| &topic.partitions);
    let known: Map<i32, (i64, i64)> =
        known.map(|one| (one.partition_index, (one.start_offset, one.lag))).collect();
    let place = |index: i32| {
        let (start, lag) = known.get(&index).copied().unwrap_or((-1, -1));
        let start = Some(start).filter(|start| *start >= 0);
        // Without a start there is no lag yet.
        let lag = start.and(Some(lag).filter(|lag| *lag >= 0));
        (PartitionIndex(index), start.map(Offset), lag)
    };
    Ok(partitions.into_iter().map(place).collect())
}

/// Removes a group that has no members, and its configuration.
///
/// # Errors
/// The caller may not, or the group has members.
pub async fn remove(cluster: &mut Cluster, group: &str) -> Result<(), ClientError> {
    alter(cluster, group, DELETE, [None, None]).await?;
    let request = DeleteGroupsRequest { groups_names: vec![group.into()], ..Default::default() };
    let coordinator = cluster.group_coordinator(group).await?;
    let answer = cluster.ask(coordinator, &request).await?;
    let told = answer.results.first().ok_or_else(|| empty(group))?;
    if told.error_code == ErrorCode::GroupIdNotFound.code() {
        return Ok(());
    }
    check(format!("deleting group {group}"), told.error_code, told.error_message.as_deref())
}

fn what(group: &str) -> String {
    format!(
        "{RESET} of group {group} (a queue needs DESCRIBE_CONFIGS on its group, and ALTER_CONFIGS unless \
         kafka-configs has set it to earliest)"
    )
}

fn empty(group: &str) -> ClientError {
    ClientError::Invalid(format!("the answer does not name group {group}"))
}
