//! Records for a partition that another broker leads: by Produce, as a client's.

use crate::node::Node;
use crate::routing::broker_requests::{patience, while_there};
use crate::routing::own_records::{PRODUCE_TIMEOUT, Target};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::ProduceRequest;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use bytes::Bytes;

/// The version from which on topics are told by their ids.
const TOPIC_IDS_SINCE: i16 = 13;
const ALL: i16 = -1;

pub(super) async fn write(node: &Node, target: &Target, records: Bytes) -> Result<(), ErrorCode> {
    let to = (target.leader, target.purpose);
    let Some(link) = node.peers.broker_links.to(node, to.0, to.1) else {
        return Err(ErrorCode::NetworkException);
    };
    let _counted = node.peers.broker_links.awaited(to.1).begin();
    let (topic, at) = (target.topic.clone(), target.at);
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
    let response = match while_there(node, to, link.send_with(patience(node), make)).await {
        Some(Ok(response)) => response,
        Some(Err(error)) => {
            tracing::debug!(%error, topic = %target.topic, "records did not reach their partition's leader");
            return Err(ErrorCode::NetworkException);
        }
        None => return Err(ErrorCode::NotLeaderOrFollower),
    };
    let answer = response.responses.first().and_then(|topic| topic.partition_responses.first());
    match answer.map_or(ErrorCode::UnknownServerError, |answer| ErrorCode::from_code(answer.error_code)) {
        ErrorCode::None => Ok(()),
        code => Err(code),
    }
}
