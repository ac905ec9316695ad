//! Dynamic nodes: a temporary queue that is made for a link, named in the answer to its attach, and deleted when the
//! link ends.
//!
//! Before: open.rs. After: edge/queue-access/src/temporary.rs.

use crate::link::{Opening, Served};
use crate::{get, put};
use barnabas_client::Cluster;
use barnabas_queue_access::{AMQP_TEMPORARY, Address, temporary};

/// Serves the link of a dynamic node.
///
/// # Errors
/// What keeps the topic or the link from being, or ends it.
pub async fn serve(opening: Opening, receives: bool) -> Served {
    let mut cluster = Cluster::new(opening.kafka.clone());
    let topic = temporary::make(&mut cluster, AMQP_TEMPORARY).await?;
    let served = match Address::parse(&topic) {
        Some(address) if receives => get::serve(opening, &address, Some(topic.clone())).await,
        _ => put::serve(opening, &topic, Some(topic.clone())).await,
    };
    temporary::remove(&mut cluster, &topic).await;
    served
}
