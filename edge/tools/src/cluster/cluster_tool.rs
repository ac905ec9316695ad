//! `cluster`, as Kafka's `kafka-cluster`: shows the cluster's id, its nodes and their API versions; unregisters nodes.
//!
//! Source: Kafka 4.3 `ClusterTool`.

use super::broker_api_versions;
use crate::command_line::args::{
    GoesWith, action, action_of, check_goes_with, number, renamed, switch, value,
};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config_of, command_config,
};
use crate::output::table::{Layout, Table, output};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::{
    DescribeClusterRequest, DescribeClusterResponse, UnregisterBrokerRequest, UnregisterControllerRequest,
};
use clap::{Arg, ArgMatches};

const TOOL: &str = "cluster";
const ACTIONS: &str = "cluster-id|list-endpoints|api-versions|unregister|unregister-controller";
const FLAGS: [GoesWith<'_>; 2] =
    [("id", &["unregister", "unregister-controller"]), ("include-fenced-brokers", &["list-endpoints"])];
/// DescribeCluster's types of endpoints.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().short('b'),
        bootstrap_controller().short('C'),
        command_config().short('c'),
        value("config", "path", "The older name of --command-config"),
        action(ACTIONS),
        value("id", "id", "With unregister, unregister-controller: the node").short('i'),
        switch("include-fenced-brokers", "With list-endpoints: fenced brokers too"),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = action_of(matches, ACTIONS)?;
    check_goes_with(matches, action, &FLAGS)?;
    let file = renamed(matches, "command-config", "config")?;
    let mut cluster = Cluster::new(cluster_config_of(matches, "barnabas-cluster", file)?);
    block_on(async {
        match action {
            "cluster-id" => {
                let told = described(&mut cluster, false).await?;
                say(&format!("Cluster ID: {}", &*told.cluster_id))
            }
            "list-endpoints" => list(&mut cluster, matches).await,
            "api-versions" => broker_api_versions::print(&mut cluster).await,
            _ => unregister(&mut cluster, matches, action).await,
        }
    })
}

async fn described(cluster: &mut Cluster, with_fenced: bool) -> Result<DescribeClusterResponse, ClientError> {
    let endpoint_type = if cluster.config().is_of_controllers { CONTROLLERS } else { BROKERS };
    let request =
        DescribeClusterRequest { endpoint_type, include_fenced_brokers: with_fenced, ..Default::default() };
    let told = cluster.ask_any(&request).await?;
    match told.error_code {
        0 => Ok(told),
        code => Err(ClientError::refused("asking for the cluster", code, told.error_message.as_deref())),
    }
}

async fn list(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let with_fenced = matches.get_flag("include-fenced-brokers");
    let is_of_controllers = cluster.config().is_of_controllers;
    if with_fenced && is_of_controllers {
        return Err(ToolError::Plain(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option".to_owned(),
        ));
    }
    let told = described(cluster, with_fenced).await?;
    let mut table =
        Table::new(Layout::Blanks).number("ID", 10).text("HOST", 9).number("PORT", 10).text("RACK", 10);
    if !is_of_controllers {
        table = table.text("STATE", 10);
    }
    let mut table = table.text("ENDPOINT_TYPE", 15);
    for node in &told.brokers {
        let rack = node.rack.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string);
        let state = if node.is_fenced { "fenced" } else { "unfenced" };
        let mut cells = vec![node.broker_id.to_string(), node.host.to_string(), node.port.to_string(), rack];
        if !is_of_controllers {
            cells.push(state.to_owned());
        }
        cells.push(if is_of_controllers { "controller" } else { "broker" }.to_owned());
        table.row(cells);
    }
    table.print(matches)
}

async fn unregister(cluster: &mut Cluster, matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    let id = number::<i32>(matches, "id")?;
    let id = id.ok_or_else(|| ToolError::Usage(format!("{action} needs --id. Example: --id 3")))?;
    let config = cluster.config().clone();
    let (kind, code, why) = if action == "unregister" {
        let request = UnregisterBrokerRequest { broker_id: id, ..Default::default() };
        let told = telling(TOOL, config, cluster.ask_controller(|_| request.clone())).await?;
        ("Broker", told.error_code, told.error_message)
    } else {
        let request = UnregisterControllerRequest { controller_id: id, ..Default::default() };
        let told = telling(TOOL, config, cluster.ask_controller(|_| request.clone())).await?;
        ("Controller", told.error_code, told.error_message)
    };
    match code {
        0 => say(&format!("{kind} {id} is no longer registered.")),
        code => {
            Err(ClientError::refused(format!("{} {id}", kind.to_lowercase()), code, why.as_deref()).into())
        }
    }
}
