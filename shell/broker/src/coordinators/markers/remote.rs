//! Markers for partitions that other brokers lead: by WriteTxnMarkers, those for one broker gathered.
//!
//! What a broker does not take is tried again by the shard that ordered it, wherever the partition is led by then. A
//! shard that is no longer here has nothing to say any more: what waits of its is dropped. What is under way is fenced
//! by its coordinator epoch, once a later coordinator has written a marker of the producer.
//!
//! Source: Kafka 4.4 `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`.

use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::node::peers::broker_links::{MarkerParcel, Outcomes, Purpose};
use crate::routing::broker_requests::{Parcel, patience};
use crate::routing::owners::led_under;
use barnabas_api::k27_write_txn_markers::{Ask, outcomes, request};
use barnabas_base::{BrokerId, ErrorCode, Map, ProducerId, TopicPartition};
use barnabas_coordinator::EndTransaction;
use barnabas_net::links::Link;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Partitions of one transaction in one request.
const PARTITIONS_MAX: usize = 5_000;

/// Sends one marker to partitions that another broker leads; returns the outcome of each. NETWORK_EXCEPTION:
/// unknown.
pub async fn bring(
    node: &Arc<Node>,
    shard: PartitionKey,
    end: &EndTransaction,
    broker: BrokerId,
    partitions: Vec<TopicPartition>,
) -> Outcomes {
    let mut all = Vec::with_capacity(partitions.len());
    for some in partitions.chunks(PARTITIONS_MAX) {
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            producer_id: end.producer.id,
            producer_epoch: end.producer.epoch,
            commit: end.commit,
            coordinator_epoch: end.coordinator_epoch,
            transaction_version: end.version.0,
            partitions: some.to_vec(),
        };
        node.peers.broker_links.markers.bring(node, broker, MarkerParcel { shard, ask, reply }).await;
        let unknown = || some.iter().map(|at| (at.clone(), ErrorCode::NetworkException)).collect();
        all.extend(answer.await.unwrap_or_else(|_| unknown()));
    }
    all
}

impl Parcel for MarkerParcel {
    const PURPOSE: Purpose = Purpose::Markers;
    type Name = ProducerId;

    fn name(&self) -> ProducerId {
        self.ask.producer_id
    }

    fn size(&self) -> usize {
        self.ask.partitions.len()
    }

    async fn deliver(node: Arc<Node>, link: Option<Link>, mut parcels: Vec<Self>) {
        parcels.retain(|parcel| {
            led_under(&node, parcel.shard)
                .is_some_and(|epoch| epoch.get() == parcel.ask.coordinator_epoch.get())
        });
        if parcels.is_empty() {
            return;
        }
        let Some(link) = link else {
            return parcels.into_iter().for_each(|parcel| parcel.answer(|_| ErrorCode::BrokerNotAvailable));
        };
        let asks: Vec<Ask> = parcels.iter().map(|parcel| parcel.ask.clone()).collect();
        let make = move |version| Some(request(&asks, version));
        let said = match link.send_with(patience(&node), make).await {
            Ok(response) => outcomes(response),
            Err(error) => {
                tracing::debug!(%error, "markers are tried again");
                return parcels.into_iter().for_each(|parcel| parcel.answer(|_| ErrorCode::NetworkException));
            }
        };
        for parcel in parcels {
            let producer = parcel.ask.producer_id;
            parcel.answer(|at| code_of(&said, producer, at));
        }
    }
}

/// A partition of which nothing was said is tried again.
fn code_of(
    said: &Map<(ProducerId, TopicPartition), ErrorCode>,
    producer: ProducerId,
    at: &TopicPartition,
) -> ErrorCode {
    said.get(&(producer, at.clone())).copied().unwrap_or(ErrorCode::UnknownServerError)
}

impl MarkerParcel {
    fn answer(self, of: impl Fn(&TopicPartition) -> ErrorCode) {
        let outcomes = self.ask.partitions.into_iter().map(|at| {
            let code = of(&at);
            (at, code)
        });
        // The caller is gone if the node is stopping.
        drop(self.reply.send(outcomes.collect()));
    }
}
