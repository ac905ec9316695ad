//! Sends batches to the new leaders of their partitions, and sets their outcomes: which and when is decided by core/api
//! (`k00_produce::forwarding`).
//!
//! Neighbours: produce.rs, which asks; session/turns.rs, which waits; server/stop.rs, which waits until producers have
//! gone; core/api/src/k00_produce/forwarding.rs.

use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::requests::call::Call;
use crate::requests::session::turns::Turn;
use crate::routing::broker_requests::while_there;
use barnabas_api::k00_produce::forwarding::{Kept, Key, Verdict, request};
use barnabas_api::k00_produce::{Acks, Pending};
use barnabas_base::{BrokerId, MonotonicMs};
use barnabas_wire::messages::ProduceResponse;
use std::time::Duration;

/// Before a leader is asked again whose image lacks its election.
const AGAIN: Duration = Duration::from_millis(2);
/// On top of what a request may take at the leader.
const WAY: Duration = Duration::from_secs(5);

/// Forwards batches to their new leaders and sets their outcomes. Batches without a new leader stay refused.
pub async fn forward(
    call: &Call,
    turn: &Turn,
    (acks, deadline): (Acks, MonotonicMs),
    mut left: Vec<Kept>,
    pending: &mut Pending,
) {
    let keys: Vec<Key> = left.iter().map(Kept::key).collect();
    turn.comes(&keys).await;
    let node = &call.session.node;
    let next = |left: &mut Vec<Kept>| {
        let (image, now) = (node.cluster.image.load_full(), node.clock.monotonic());
        call.session.forwarding.borrow_mut().next(left, &image, now)
    };
    while let Some((leader, batches)) = next(&mut left) {
        let response = match send(node, leader, (acks, deadline), &batches).await {
            Ok(response) => response,
            Err(why) => {
                tracing::debug!(%leader, why, "batches were not forwarded: their producers are refused");
                let (now, mut forwarding) = (node.clock.monotonic(), call.session.forwarding.borrow_mut());
                batches.iter().for_each(|batch| forwarding.give_up(batch.key(), now));
                continue;
            }
        };
        node.note_forwarded();
        let (moment, now) = (call.moment(), node.clock.monotonic());
        let context = call.context(&moment);
        let mut is_early = false;
        for batch in batches {
            let verdict = call.session.forwarding.borrow_mut().verdict(&response, &batch, now);
            match verdict {
                Verdict::Acked(outcome) => {
                    node.workers.meter.batches_forwarded.one();
                    pending.set(batch.slot(), outcome, &context);
                }
                Verdict::Refused(outcome) => pending.set(batch.slot(), outcome, &context),
                Verdict::Early => {
                    is_early = true;
                    left.push(batch);
                }
                Verdict::Silent => {}
                Verdict::Denied => {
                    tracing::debug!(%leader, "the new leader does not let this broker write batches of others");
                }
            }
        }
        if is_early {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn send(
    node: &Node,
    leader: BrokerId,
    (acks, deadline): (Acks, MonotonicMs),
    batches: &[Kept],
) -> Result<ProduceResponse, &'static str> {
    let to = (leader, Purpose::ProduceForwarding);
    let Some(link) = node.peers.broker_links.to(node, to.0, to.1) else {
        return Err("it has no listener for brokers");
    };
    let _counted = node.peers.broker_links.awaited(to.1).begin();
    let left = deadline.since(node.clock.monotonic()).0.max(0);
    let patience = Duration::from_millis(left.unsigned_abs()) + WAY;
    let timeout_ms = i32::try_from(left).unwrap_or(i32::MAX);
    let batches = batches.to_vec();
    let make = move |version| Some(request(&batches, acks, timeout_ms, version));
    match while_there(node, to, link.send_with(patience, make)).await {
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => {
            tracing::debug!(%leader, %error, "a new leader did not take forwarded batches");
            Err("it did not answer")
        }
        None => Err("it is gone"),
    }
}
