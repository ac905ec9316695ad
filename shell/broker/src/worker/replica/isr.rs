//! The broker's questions to the controller: who is in sync with what it leads (AlterPartition).
//!
//! Workers put their partitions' questions here; one request for all of them is under way at a time
//! ([`IsrRequests`](barnabas_partition::IsrRequests) says what it holds), and each answer goes back to the worker that
//! owns the partition. A task of the first worker carries them.
//!
//! Always true: a question that was put here is answered, asked again, or withdrawn.
//!
//! Neighbours: partition_worker/replication/followers.rs, which asks and hears; core/quorum's
//! `controller/replicas/alter_partition.rs`.
//!
//! Source: KIP-497; Kafka `DefaultAlterPartitionManager`.

use crate::mailbox::ReplicationEvent;
use crate::mailbox::{PartitionKey, Report};
use crate::node::Node;
#[cfg(test)]
use crate::node::peers::replication::isr::Answers;
use barnabas_api::replication::alter_partition::{self, Question};
use barnabas_base::{ErrorCode, MonotonicMs};
use barnabas_quorum::controller::Asked;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{AlterPartitionRequest, AlterPartitionResponse};
use std::sync::Arc;
use std::time::Duration;

/// How long the controller is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The newest version: of every controller since Kafka 3.5.
const VERSION: i16 = 3;

/// Carries questions to the controller for as long as the node lives.
pub async fn run(node: Arc<Node>) {
    let desk = &node.peers.replication.isr;
    loop {
        let now = node.clock.monotonic();
        let due = desk.lock().due();
        let (request, numbers) = match due {
            Some(due) if due <= now => take(&node, now),
            Some(due) => {
                let due = node.clock.instant(due).into();
                let _ = tokio::time::timeout_at(due, desk.changed.notified()).await;
                continue;
            }
            None => {
                desk.changed.notified().await;
                continue;
            }
        };
        let answer = tokio::time::timeout(PATIENCE, ask(&node, request)).await;
        hear(&node, answer.unwrap_or(None), &numbers);
    }
}

/// Which partition was asked about, and the number of its question.
type Numbers = Vec<(PartitionKey, u32)>;

fn take(node: &Node, now: MonotonicMs) -> (AlterPartitionRequest, Numbers) {
    let mut requests = node.peers.replication.isr.lock();
    let taken = requests.take(now);
    let questions = taken.iter().map(|(key, change)| Question {
        topic: key.topic,
        partition: key.partition,
        leader_epoch: change.leader_epoch,
        partition_epoch: change.partition_epoch,
        in_sync: &change.in_sync,
    });
    let request =
        alter_partition::request(node.identity.broker_id, node.identity.broker_epoch(), VERSION, questions);
    (request, taken.iter().map(|(key, change)| (*key, change.number)).collect())
}

async fn ask(node: &Node, request: AlterPartitionRequest) -> Option<AlterPartitionResponse> {
    #[cfg(test)]
    if let Some(Answers(answer)) = node.peers.replication.isr.answers.get() {
        return answer(request).await.ok();
    }
    let asked = Asked { version: VERSION, ..Asked::default() };
    match node.peers.controller.ask(request, asked).await {
        Ok(ResponseBody::AlterPartition(response)) => Some(*response),
        Ok(other) => {
            tracing::warn!(answer = %other.key(), "the controller sent an unexpected response to \
                AlterPartition");
            None
        }
        Err(why) => {
            tracing::debug!(?why, "the controller was not asked who is in sync: it is asked again");
            None
        }
    }
}

fn hear(node: &Node, answer: Option<AlterPartitionResponse>, numbers: &Numbers) {
    let now = node.clock.monotonic();
    let desk = &node.peers.replication.isr;
    let Some(response) = answer else { return desk.lock().unanswered(now) };
    let error = ErrorCode::from_code(response.error_code);
    if !desk.lock().answered(error, now) {
        tracing::debug!(%error, "the controller did not hear who is in sync: it is asked again");
        return;
    }
    for answer in alter_partition::answers(response) {
        let key = PartitionKey { topic: answer.topic, partition: answer.partition };
        let Some((_, number)) = numbers.iter().find(|(asked, _)| *asked == key) else { continue };
        let event = ReplicationEvent::Altered { key, number: *number, answer: answer.result };
        node.workers.owner(key).report(Report::Replication(event));
    }
}
