//! Takes blocks of producer ids from the controller (node/peers/producer_ids.rs keeps the one in use).
//!
//! Source: KIP-730; Kafka `RPCProducerIdManager`.

use crate::node::Node;
use crate::node::peers::producer_ids::ProducerIds;
use crate::node::workers::repeated::Repeated;
use barnabas_base::{ErrorCode, ProducerId};
use barnabas_quorum::controller::Asked;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::AllocateProducerIdsRequest;

impl ProducerIds {
    /// A new producer id.
    ///
    /// # Errors
    /// The error code for the client, which retries.
    pub async fn next(&self, node: &Node) -> Result<ProducerId, ErrorCode> {
        let mut block = self.block.lock().await;
        if block.0 >= block.1 {
            *block = allocate(node).await?;
        }
        let id = block.0;
        block.0 += 1;
        Ok(ProducerId(id))
    }
}

async fn allocate(node: &Node) -> Result<(i64, i64), ErrorCode> {
    let request = AllocateProducerIdsRequest {
        broker_id: node.identity.broker_id.get(),
        broker_epoch: node.identity.broker_epoch().get(),
        ..AllocateProducerIdsRequest::default()
    };
    let answer = node.peers.controller.ask(request, Asked::default()).await;
    match answer {
        Ok(ResponseBody::AllocateProducerIds(response)) if response.error_code == 0 => {
            let start = response.producer_id_start;
            Ok((start, start + i64::from(response.producer_id_len)))
        }
        // This process is not registered yet, or has to register again.
        Ok(ResponseBody::AllocateProducerIds(response))
            if response.error_code == ErrorCode::StaleBrokerEpoch.code() =>
        {
            Err(ErrorCode::CoordinatorLoadInProgress)
        }
        Ok(other) => {
            let code = match other {
                ResponseBody::AllocateProducerIds(response) => ErrorCode::from_code(response.error_code),
                _ => ErrorCode::UnknownServerError,
            };
            if let Some(unsaid) = node.workers.repeated.happened(Repeated::NoProducerIds) {
                tracing::warn!(%code, "the controller did not allocate producer ids{unsaid}");
            }
            Err(ErrorCode::CoordinatorLoadInProgress)
        }
        // Kafka answers so while its own request to the controller is under way.
        Err(_) => Err(ErrorCode::CoordinatorLoadInProgress),
    }
}
