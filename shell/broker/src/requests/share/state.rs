//! What other brokers ask of this node's share coordinator (KIP-932): initialize, read, write, delete, summaries. Each
//! share-partition's part goes to its shard, and is answered by it or told that it is not here.

use crate::node::Node;
use crate::requests::call::{Answer, Call, Started};
use crate::routing::share_persister::ask_here;
use barnabas_api::k87_read_share_group_state_summary::Summary;
use barnabas_api::{
    Plan, k83_initialize_share_group_state, k84_read_share_group_state, k85_write_share_group_state,
    k86_delete_share_group_state, k87_read_share_group_state_summary,
};
use barnabas_base::{Offset, PartitionIndex, Text, TopicId};
use barnabas_coordinator::{SharePartitionKey, ShareStateRequest, ShareStateResponse, StateBatch};
use barnabas_wire::messages::{
    DeleteShareGroupStateRequest, InitializeShareGroupStateRequest, ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest, WriteShareGroupStateRequest,
};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Share-partitions of one request that are worked on at a time. A request names up to some millions, and a task takes
/// a kilobyte.
const AT_ONCE: usize = 64;

/// What one request asks, each with its place in the answer.
struct Asked<P> {
    node: Arc<Node>,
    /// In the order of the request, at most [`AT_ONCE`].
    begun: VecDeque<(P, JoinHandle<ShareStateResponse>)>,
    left: VecDeque<(P, ShareStateRequest)>,
}

impl<P> Asked<P> {
    fn of(call: &Call) -> Self {
        Self { node: call.session.node.clone(), begun: VecDeque::new(), left: VecDeque::new() }
    }

    /// Begins to ask, or waits until there is room. Tasks of one thread begin in the order in which they are made.
    fn ask(&mut self, place: P, request: ShareStateRequest) {
        if self.begun.len() >= AT_ONCE {
            return self.left.push_back((place, request));
        }
        let node = self.node.clone();
        let task = tokio::task::spawn_local(async move { ask_here(&node, request).await });
        self.begun.push_back((place, task));
    }

    /// The next answer, in the order of the request; `Err`: the node is stopping.
    async fn next(&mut self) -> Option<Result<(P, ShareStateResponse), ()>> {
        let (place, task) = self.begun.pop_front()?;
        let response = task.await;
        if let Some((place, request)) = self.left.pop_front() {
            self.ask(place, request);
        }
        Some(response.map(|response| (place, response)).map_err(|_| ()))
    }
}

fn key(group: &Text, topic: TopicId, partition: PartitionIndex) -> SharePartitionKey {
    SharePartitionKey { group: group.clone(), topic, partition }
}

/// Waits for every question and hands each answer over; closes the connection if the node is stopping.
macro_rules! gather {
    ($asked:ident, $pending:ident, |$slot:ident, $response:ident| $take:expr) => {
        Started::wait(async move {
            while let Some(answer) = $asked.next().await {
                let Ok(($slot, $response)) = answer else { return Answer::Close };
                $take
            }
            Answer::Reply($pending.respond().into())
        })
    };
}

pub fn initialize(call: Call, request: InitializeShareGroupStateRequest) -> Started {
    let work = match k83_initialize_share_group_state::plan(request) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut asked, mut pending) = (Asked::of(&call), work.pending);
    for part in work.parts {
        let key = key(&work.group, part.topic, part.partition);
        let (state_epoch, start_offset) = (part.state_epoch, part.start_offset);
        let request = ShareStateRequest::Initialize { key, state_epoch, start_offset };
        asked.ask(part.slot, request);
    }
    gather!(asked, pending, |slot, response| if let ShareStateResponse::Done(Err(refusal)) = response {
        pending.refuse(slot, refusal.code, refusal.why);
    })
}

pub fn read(call: Call, request: ReadShareGroupStateRequest) -> Started {
    let work = match k84_read_share_group_state::plan(request) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut asked, mut pending) = (Asked::of(&call), work.pending);
    for part in work.parts {
        let key = key(&work.group, part.topic, part.partition);
        let request = ShareStateRequest::Read { key, leader_epoch: part.leader_epoch };
        asked.ask(part.slot, request);
    }
    gather!(asked, pending, |slot, response| match response {
        ShareStateResponse::Read(Ok(state)) => {
            let batches = state.batches.iter().map(|batch| k84_read_share_group_state::StateBatch {
                first_offset: batch.first.get(),
                last_offset: batch.last.get(),
                delivery_state: batch.delivery_state,
                delivery_count: batch.delivery_count,
                ..Default::default()
            });
            pending.set_state(slot, state.state_epoch, state.start_offset.get(), batches.collect());
        }
        ShareStateResponse::Read(Err(refusal)) => pending.refuse(slot, refusal.code, refusal.why),
        _ => return Answer::Close,
    })
}

pub fn write(call: Call, request: WriteShareGroupStateRequest) -> Started {
    let work = match k85_write_share_group_state::plan(request) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut asked, mut pending) = (Asked::of(&call), work.pending);
    for part in work.parts {
        let batches = part.batches.iter().map(|batch| StateBatch {
            first: Offset(batch.first_offset),
            last: Offset(batch.last_offset),
            delivery_state: batch.delivery_state,
            delivery_count: batch.delivery_count,
        });
        let request = ShareStateRequest::Write {
            key: key(&work.group, part.topic, part.partition),
            state_epoch: part.state_epoch,
            leader_epoch: part.leader_epoch,
            start_offset: part.start_offset,
            delivery_complete_count: part.delivery_complete_count,
            batches: batches.collect(),
        };
        asked.ask(part.slot, request);
    }
    gather!(asked, pending, |slot, response| if let ShareStateResponse::Done(Err(refusal)) = response {
        pending.refuse(slot, refusal.code, refusal.why);
    })
}

pub fn delete(call: Call, request: DeleteShareGroupStateRequest) -> Started {
    let work = match k86_delete_share_group_state::plan(request) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut asked, mut pending) = (Asked::of(&call), work.pending);
    for part in work.parts {
        let key = key(&work.group, part.topic, part.partition);
        asked.ask(part.slot, ShareStateRequest::Delete { key });
    }
    gather!(asked, pending, |slot, response| if let ShareStateResponse::Done(Err(refusal)) = response {
        pending.refuse(slot, refusal.code, refusal.why);
    })
}

pub fn read_summary(call: Call, request: ReadShareGroupStateSummaryRequest) -> Started {
    let work = match k87_read_share_group_state_summary::plan(request) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut asked, mut pending) = (Asked::of(&call), work.pending);
    for part in work.parts {
        let key = key(&work.group, part.topic, part.partition);
        asked.ask(part.slot, ShareStateRequest::ReadSummary { key });
    }
    gather!(asked, pending, |slot, response| match response {
        ShareStateResponse::Summary(Ok(summary)) => pending.set_summary(
            slot,
            Summary {
                state_epoch: summary.state_epoch,
                leader_epoch: summary.leader_epoch.get(),
                start_offset: summary.start_offset.get(),
                delivery_complete_count: summary.delivery_complete_count,
            }
        ),
        ShareStateResponse::Summary(Err(refusal)) => pending.refuse(slot, refusal.code, refusal.why),
        _ => return Answer::Close,
    })
}
