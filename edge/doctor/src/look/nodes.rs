//! The brokers, and what each says of itself: settings, features, log directories.

use super::ask::{Asker, checked};
use barnabas_findings::{Config, Configs, Dir, Features, Node, Replica, Room, Seen, Source, Unseen};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResourceResult;
use barnabas_wire::messages::describe_log_dirs_response::DescribeLogDirsResult;
use barnabas_wire::messages::{
    ApiVersionsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeLogDirsRequest,
    MetadataResponse,
};
use tokio::task::JoinSet;

/// DescribeConfigs' type of a broker.
const BROKER: i8 = 4;
/// The first version of DescribeCluster that knows fenced brokers (KIP-1073).
const FENCED_SINCE: i16 = 2;

/// A broker as the cluster knows it.
#[derive(Debug)]
pub struct Broker {
    id: i32,
    host: String,
    port: i32,
    rack: Option<String>,
    is_fenced: bool,
}

/// All that are registered; from Metadata alone where the cluster does not list fenced ones.
pub async fn brokers(asker: &mut Asker, metadata: &MetadataResponse) -> Vec<Broker> {
    let asked = asker.ask_any(|version| DescribeClusterRequest {
        include_fenced_brokers: version >= FENCED_SINCE,
        ..Default::default()
    });
    let mut brokers: Vec<Broker> = match asked.await {
        Ok(answer) if answer.error_code == 0 && !answer.brokers.is_empty() => {
            let broker =
                |broker: &barnabas_wire::messages::describe_cluster_response::DescribeClusterBroker| Broker {
                    id: broker.broker_id,
                    host: broker.host.to_string(),
                    port: broker.port,
                    rack: broker.rack.as_ref().map(ToString::to_string),
                    is_fenced: broker.is_fenced,
                };
            answer.brokers.iter().map(broker).collect()
        }
        _ => {
            let broker =
                |broker: &barnabas_wire::messages::metadata_response::MetadataResponseBroker| Broker {
                    id: broker.node_id,
                    host: broker.host.to_string(),
                    port: broker.port,
                    rack: broker.rack.as_ref().map(ToString::to_string),
                    is_fenced: false,
                };
            metadata.brokers.iter().map(broker).collect()
        }
    };
    brokers.sort_by_key(|broker| broker.id);
    brokers
}

/// What each broker says of itself, all asked side by side.
pub async fn nodes(asker: &mut Asker, brokers: Vec<Broker>) -> Vec<Node> {
    let mut asked = JoinSet::new();
    for broker in brokers {
        let mut fork = asker.fork();
        asked.spawn(async move {
            let node = node(&mut fork, &broker).await;
            (node, fork)
        });
    }
    let mut nodes = Vec::new();
    for (node, fork) in asked.join_all().await {
        asker.join(fork);
        nodes.push(node);
    }
    nodes.sort_by_key(|node| node.id);
    nodes
}

/// What a broker says of itself. A fenced one is not asked.
async fn node(asker: &mut Asker, broker: &Broker) -> Node {
    let missing = || Unseen(format!("node {} is fenced", broker.id));
    let mut node = Node {
        id: broker.id,
        host: broker.host.clone(),
        port: broker.port,
        rack: broker.rack.clone(),
        is_fenced: broker.is_fenced,
        reached: Err(missing()),
        configs: Err(missing()),
        features: Err(missing()),
        dirs: Err(missing()),
        figures: Err(missing()),
    };
    if !broker.is_fenced {
        node.features = features(asker, broker.id).await;
        node.reached = asker.check(broker.id);
        node.configs = configs(asker, broker.id).await;
        node.dirs = dirs(asker, broker.id).await;
    }
    node
}

async fn features(asker: &mut Asker, node: i32) -> Seen<Features> {
    let request = |_| ApiVersionsRequest {
        client_software_name: "barnabas-doctor".into(),
        client_software_version: env!("CARGO_PKG_VERSION").into(),
        ..Default::default()
    };
    let answer = asker.ask(node, request).await?;
    checked(&format!("node {node}"), answer.error_code, None)?;
    let finalized = answer.finalized_features.iter().map(|f| (f.name.to_string(), f.max_version_level));
    let supported = answer.supported_features.iter().map(|f| (f.name.to_string(), f.max_version));
    Ok(Features { finalized: finalized.collect(), supported: supported.collect() })
}

async fn configs(asker: &mut Asker, node: i32) -> Seen<Configs> {
    let resource = DescribeConfigsResource {
        resource_type: BROKER,
        configuration_keys: None,
        resource_name: node.to_string().into(),
        ..Default::default()
    };
    let answer = asker
        .ask(node, |_| DescribeConfigsRequest { resources: vec![resource.clone()], ..Default::default() })
        .await?;
    let what = format!("settings of node {node}");
    let Some(result) = answer.results.first() else { return Err(Unseen(format!("{what}: none were told"))) };
    checked(&what, result.error_code, result.error_message.as_deref())?;
    Ok(result.configs.iter().map(config).collect())
}

/// A setting by its key.
pub fn config(row: &DescribeConfigsResourceResult) -> (String, Config) {
    let source = match row.config_source {
        1 => Source::Topic,
        2 => Source::DynamicBroker,
        3 => Source::DynamicDefault,
        4 => Source::Static,
        _ => Source::Default,
    };
    (row.name.to_string(), Config { value: row.value.as_ref().map(ToString::to_string), source })
}

async fn dirs(asker: &mut Asker, node: i32) -> Seen<Vec<Dir>> {
    let answer = asker.ask(node, |_| DescribeLogDirsRequest { topics: None, ..Default::default() }).await?;
    checked(&format!("log directories of node {node}"), answer.error_code, None)?;
    Ok(answer.results.iter().map(dir).collect())
}

fn dir(told: &DescribeLogDirsResult) -> Dir {
    let code = barnabas_base::ErrorCode::from_code(told.error_code);
    let replicas = told.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|row| Replica {
            topic: topic.name.to_string(),
            partition: row.partition_index,
            bytes: row.partition_size,
        })
    });
    Dir {
        path: told.log_dir.to_string(),
        error: (told.error_code != 0).then(|| code.name().to_owned()),
        bytes: (told.total_bytes >= 0).then_some(Room { total: told.total_bytes, usable: told.usable_bytes }),
        replicas: replicas.collect(),
    }
}
