//! A queue's share group, before its first member: it begins at the oldest record.
//!
//! Kafka's share groups begin at the newest one (`share.auto.offset.reset=latest`); a queue gives out what was put
//! before its first receiver came. Where an operator has set the group's key, it is left as it is.

use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

const GROUP: i8 = 32;
/// Where a group's value comes from: the group itself.
const OWN: i8 = 8;
const RESET: &str = "share.auto.offset.reset";

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
    let earliest =
        AlterableConfig { name: RESET.into(), value: Some("earliest".into()), ..Default::default() };
    let resource = AlterConfigsResource {
        resource_type: GROUP,
        resource_name: group.into(),
        configs: vec![earliest],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    let told = answer.responses.first().ok_or_else(|| empty(group))?;
    check(what(group), told.error_code, told.error_message.as_deref())
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
