//! `hotspots`: where a node's time goes between two looks at its metrics, as a profiler's table would show it, and
//! one sentence that names the bottleneck.
//!
//! The metrics come through the Kafka protocol, as the configs of a resource type that only Barnabas knows (why:
//! shell/broker/src/requests/cluster/metrics_in_band.rs). They make up the text of the metrics endpoint, and
//! everything here is made from differences of that text; nothing is asked of the node in between.
//!
//! | file | answers |
//! |---|---|
//! | `core/findings/src/scrape.rs` | what does the text say |
//! | `hotspots/figures.rs` | what happened between two of them |
//! | `hotspots/verdict.rs` | what is the bottleneck |
//! | `hotspots/report.rs` | how is that shown |

pub mod figures;
mod report;
pub mod units;
pub mod verdict;

use crate::command_line::args::{number, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::{ToolError, block_on, say};
use barnabas_base::BrokerId;
use barnabas_client::Cluster;
use barnabas_doctor::{NoPage, Scrape, metrics_page};
use clap::{Arg, ArgMatches};
use figures::Figures;
use std::time::Duration;

const INTERVAL_S: f64 = 5.0;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value("interval", "seconds", "Between the two looks; 5 where it is left out"),
        value("broker-list", "ids", "Only these nodes, with commas between; all where it is left out"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let interval = number::<f64>(matches, "interval")?.unwrap_or(INTERVAL_S);
    if !(0.1..=86_400.0).contains(&interval) {
        return Err(ToolError::Usage("--interval takes seconds, from 0.1 to 86400".to_owned()));
    }
    let wanted: Vec<&str> =
        text(matches, "broker-list").into_iter().flat_map(|ids| ids.split(',')).map(str::trim).collect();
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-hotspots")?);
    block_on(async {
        let known = cluster.refresh(Some(&[]), false).await?.brokers;
        let mut nodes: Vec<i32> = known.iter().map(|broker| broker.node_id).collect();
        nodes.sort_unstable();
        if let Some(missing) = wanted.iter().find(|id| !nodes.iter().any(|node| node.to_string() == **id)) {
            return Err(ToolError::Usage(format!("--broker-list: there is no node {missing}")));
        }
        nodes.retain(|node| wanted.is_empty() || wanted.contains(&&*node.to_string()));
        let mut before = Vec::new();
        for node in &nodes {
            before.push(look(&mut cluster, *node).await?);
        }
        tokio::time::sleep(Duration::from_secs_f64(interval)).await;
        for (node, before) in nodes.into_iter().zip(before) {
            let after = look(&mut cluster, node).await?;
            say(report::report(node, &Figures::between(&before, &after)).trim_end())?;
        }
        Ok(())
    })
}

/// A node's metrics now.
async fn look(cluster: &mut Cluster, node: i32) -> Result<Scrape, ToolError> {
    match metrics_page(cluster, BrokerId(node)).await {
        Ok(page) => Ok(page),
        Err(NoPage::Client(error)) => Err(error.into()),
        Err(NoPage::NotBarnabas(_)) => Err(ToolError::Usage(format!(
            "node {node} does not tell where its time goes: it is no Barnabas, or an older one"
        ))),
        Err(refused) => Err(ToolError::Usage(refused.to_string())),
    }
}

#[cfg(test)]
mod tests;
