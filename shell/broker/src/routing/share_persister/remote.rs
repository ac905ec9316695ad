//! Questions about share-partitions to shards that another broker leads (keys 83 to 87), one share-partition at a time,
//! several under way on one connection. They arrive in the order in which they are sent.
//!
//! After a lost connection it is unknown whether a request was executed, and each may be sent again: a repeated
//! write has the same outcome, as the writer waits for one answer before the next write.
//!
//! Neighbours: share_persister.rs, which asks; core/coordinator/src/share_state/messages.rs, what is sent and read.
//!
//! Source: Kafka 4.4 `PersisterStateManager`.

use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::routing::broker_requests::{patience, while_there};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_coordinator::share_state_messages as messages;
use barnabas_coordinator::{ShareStateRequest, ShareStateResponse};
use barnabas_net::links::{Link, LinkError};
use barnabas_wire::Request;

/// Sends the request to the broker that leads the shard, and returns any answer. NETWORK_EXCEPTION: unknown outcome.
pub async fn ask(node: &Node, broker: BrokerId, request: ShareStateRequest) -> ShareStateResponse {
    let Some(link) = node.peers.broker_links.to(node, broker, Purpose::ShareState) else {
        return request.refuse(ErrorCode::CoordinatorNotAvailable);
    };
    let _counted = node.peers.broker_links.awaited(Purpose::ShareState).begin();
    let unheard = request.refuse(ErrorCode::NetworkException);
    match while_there(node, (broker, Purpose::ShareState), ask_over(node, link, request)).await {
        Some(Ok(said)) => said,
        Some(Err(error)) => {
            tracing::debug!(%error, "a share coordinator did not answer");
            unheard
        }
        None => unheard,
    }
}

async fn ask_over(
    node: &Node,
    link: Link,
    request: ShareStateRequest,
) -> Result<ShareStateResponse, LinkError> {
    match request {
        ShareStateRequest::Initialize { key, state_epoch, start_offset } => {
            let make = move |_| messages::initialize_request(&key, state_epoch, start_offset);
            send(node, &link, make).await.map(messages::initialized)
        }
        ShareStateRequest::Read { key, leader_epoch } => {
            let make = move |_| messages::read_request(&key, leader_epoch);
            send(node, &link, make).await.map(messages::state_read)
        }
        write @ ShareStateRequest::Write { .. } => {
            let make = move |version| messages::write_request(write, version);
            link.send_with(patience(node), make).await.map(messages::written)
        }
        ShareStateRequest::Delete { key } => {
            send(node, &link, move |_| messages::delete_request(&key)).await.map(messages::deleted)
        }
        ShareStateRequest::ReadSummary { key } => {
            send(node, &link, move |_| messages::summary_request(&key)).await.map(messages::summary_read)
        }
    }
}

async fn send<R: Request + Send + 'static>(
    node: &Node,
    link: &Link,
    make: impl FnOnce(i16) -> R + Send + 'static,
) -> Result<R::Response, LinkError> {
    link.send_with(patience(node), |version| Some(make(version))).await
}
