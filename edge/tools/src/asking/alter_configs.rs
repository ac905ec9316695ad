//! Sets and deletes configs by IncrementalAlterConfigs.

use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::IncrementalAlterConfigsRequest;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};

/// Operations on a config.
pub const SET: i8 = 0;
pub const DELETE: i8 = 1;

/// The changes of one resource, in order. A config without a value is deleted.
pub fn changes<'a>(
    resource_type: i8,
    name: &str,
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> AlterConfigsResource {
    let config = |(key, value): (&str, Option<&str>)| AlterableConfig {
        name: key.into(),
        config_operation: if value.is_some() { SET } else { DELETE },
        value: value.map(Into::into),
        ..Default::default()
    };
    AlterConfigsResource {
        resource_type,
        resource_name: name.into(),
        configs: configs.into_iter().map(config).collect(),
        ..Default::default()
    }
}

/// Sends `changes` to `node`, which a broker's and a controller's own configs need, or to any.
///
/// # Errors
/// The first refusal, named by `what`.
pub async fn alter(
    cluster: &mut Cluster,
    node: Option<BrokerId>,
    what: &str,
    changes: Vec<AlterConfigsResource>,
) -> Result<(), ClientError> {
    if changes.is_empty() {
        return Ok(());
    }
    let request = IncrementalAlterConfigsRequest { resources: changes, ..Default::default() };
    let answer = match node {
        Some(node) => cluster.ask(node, &request).await?,
        None => cluster.ask_any(&request).await?,
    };
    answer.responses.iter().try_for_each(|row| check(what, row.error_code, row.error_message.as_deref()))
}
