//! A node's metrics page through the Kafka protocol: the configs of a resource type that only Barnabas knows.
//!
//! The other side: shell/broker/src/requests/cluster/metrics_in_band.rs.

use crate::Scrape;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::DescribeConfigsRequest;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;

/// What Barnabas calls its metrics among the resources that have configurations.
const RESOURCE: i8 = 98;
/// Its name that asks for topics and groups.
const SERIES: &str = "series";

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum NoPage {
    #[error("node {0} has no metrics page: it is no Barnabas, or an older one")]
    NotBarnabas(BrokerId),
    #[error("node {0}: {1}")]
    Refused(BrokerId, String),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A node's metrics now, with all buckets of its histograms and without series by topic and group.
///
/// # Errors
/// The node is none of Barnabas, refuses, or does not answer.
pub async fn metrics_page(cluster: &mut Cluster, node: BrokerId) -> Result<Scrape, NoPage> {
    page(cluster, node, "").await
}

/// A node's metrics now, with series by topic and group. An older node answers as for [`metrics_page`].
///
/// # Errors
/// As [`metrics_page`].
pub async fn series_page(cluster: &mut Cluster, node: BrokerId) -> Result<Scrape, NoPage> {
    page(cluster, node, SERIES).await
}

async fn page(cluster: &mut Cluster, node: BrokerId, name: &str) -> Result<Scrape, NoPage> {
    let resource =
        DescribeConfigsResource { resource_type: RESOURCE, resource_name: name.into(), ..Default::default() };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = cluster.ask(node, &request).await?;
    let Some(result) = answer.results.into_iter().next() else { return Err(NoPage::NotBarnabas(node)) };
    let code = ErrorCode::from_code(result.error_code);
    let page: String = result.configs.iter().filter_map(|config| config.value.as_deref()).collect();
    match (code, page) {
        (ErrorCode::None, page) if !page.is_empty() => Ok(Scrape::parse(&page)),
        (ErrorCode::None | ErrorCode::InvalidRequest, _) => Err(NoPage::NotBarnabas(node)),
        (code, _) => {
            let why = result.error_message.as_deref().unwrap_or(code.name());
            Err(NoPage::Refused(node, why.to_owned()))
        }
    }
}
