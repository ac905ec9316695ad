//! Records that the node writes itself to a topic of its cluster, with `acks=all`: to its own log where it leads the
//! partition, else by Produce to the leader's listener for brokers, with the identity that it has among them.
//!
//! Asked by: dead_letters.rs, audit_topic.rs. After: the partition, through owners.rs.

mod remote;

use crate::mailbox::{AppendItem, PartitionKey, Standing};
use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::node::topic_settings;
use crate::routing::owners;
use barnabas_api::k00_produce;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, Text};
use barnabas_partition::{Acks, Origin};
use barnabas_wire::Message;
use barnabas_wire::messages::ProduceRequest;
use barnabas_wire::records::validate_produce;
use bytes::Bytes;

/// For `acks=all`.
const PRODUCE_TIMEOUT: DurationMs = DurationMs(30_000);

/// The partition, and where it is led.
#[derive(Debug, Clone)]
pub struct Target {
    pub topic: Text,
    pub at: PartitionKey,
    pub leader: BrokerId,
    pub purpose: Purpose,
}

/// Writes a batch, wherever its partition is led.
///
/// # Errors
/// The code with which the partition refuses it, or why it was not reached.
pub async fn write(node: &Node, target: &Target, records: Bytes) -> Result<(), ErrorCode> {
    match target.leader == node.identity.broker_id {
        true => write_here(node, target, records).await,
        false => remote::write(node, target, records).await,
    }
}

async fn write_here(node: &Node, target: &Target, records: Bytes) -> Result<(), ErrorCode> {
    let rules = {
        let image = node.cluster.image.load();
        let config = topic_settings::topic_config(node, &image, &target.topic);
        k00_produce::rules(&target.topic, &config, ProduceRequest::VERSIONS.max, node.clock.wall())
    };
    let judge = move || validate_produce(records, &rules);
    let validated = node.workers.unpacking.run(None, judge).await.ok_or(ErrorCode::UnknownServerError)?;
    let validated = validated.map_err(|refusal| refusal.code)?;
    // A batch with a record in it is not empty.
    let Some(validated) = validated else { return Ok(()) };
    let item = AppendItem {
        slot: 0,
        partition: target.at,
        origin: Origin::Client,
        standing: Standing::Open,
        batch: validated.batch,
    };
    let deadline = node.clock.monotonic().plus(PRODUCE_TIMEOUT);
    let outcomes = owners::append(node, vec![item], Acks::All, deadline).await.all().await;
    match outcomes.into_iter().next().map(|outcome| outcome.result) {
        Some(Ok(_)) => Ok(()),
        Some(Err(declined)) => Err(declined.code()),
        // The node is stopping.
        None => Err(ErrorCode::NetworkException),
    }
}
