//! Letters for a partition that another broker leads: by Produce, as a client's.

use super::{PRODUCE_TIMEOUT, Place};
use crate::links::{Link, LinkSettings};
use crate::node::Node;
use crate::replica::line::address_of;
use barnabas_base::ErrorCode;
use barnabas_partition::FetcherId;
use barnabas_wire::messages::ProduceRequest;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use bytes::Bytes;
use std::time::Duration;

/// The version from which on topics are told by their ids.
const TOPIC_IDS_SINCE: i16 = 13;
/// What the leader sees as the client id.
const CLIENT_ID: &str = "share-group-dead-letters";
const ALL: i16 = -1;

pub(super) async fn write(node: &Node, place: &Place, records: Bytes) -> Result<(), ErrorCode> {
    let address = {
        let (image, config) = (node.image.load(), node.config.load());
        address_of(&image, FetcherId { leader: place.leader, number: 0 }, &config)
    };
    let Some(address) = address else { return Err(ErrorCode::NetworkException) };
    // Dead letters are rare, and mostly for this node's own partitions: no connection is kept for them.
    let link = Link::start(node.links.handle(), address, LinkSettings::new(CLIENT_ID));
    let (topic, at) = (place.letters.topic.clone(), place.at);
    let patience = Duration::from_millis(u64::try_from(PRODUCE_TIMEOUT.0).unwrap_or(0)) * 2;
    let make = move |version| {
        let by_id = version >= TOPIC_IDS_SINCE;
        let partition = PartitionProduceData {
            index: at.partition.get(),
            records: Some(records),
            ..PartitionProduceData::default()
        };
        let data = TopicProduceData {
            name: if by_id { Default::default() } else { (&topic).into() },
            topic_id: if by_id { at.topic } else { Default::default() },
            partition_data: vec![partition],
            ..TopicProduceData::default()
        };
        Some(ProduceRequest {
            acks: ALL,
            timeout_ms: i32::try_from(PRODUCE_TIMEOUT.0).unwrap_or(i32::MAX),
            topic_data: vec![data],
            ..ProduceRequest::default()
        })
    };
    let response = link.send_with(patience, make).await.map_err(|error| {
        tracing::debug!(%error, "dead letters did not reach their partition's leader");
        ErrorCode::NetworkException
    })?;
    let answer = response.responses.first().and_then(|topic| topic.partition_responses.first());
    match answer.map_or(ErrorCode::UnknownServerError, |answer| ErrorCode::from_code(answer.error_code)) {
        ErrorCode::None => Ok(()),
        code => Err(code),
    }
}
