//! # ShareAcknowledge, key 79, versions 1–2
//!
//! Takes what a member of a share group says of records that it has acquired (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 1 | the first stable one |
//! | 2 | renewal of locks, and how long they are (KIP-1222) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleShareAcknowledgeRequest`, `processShareAcknowledgeResponse`.

use barnabas_base::{ErrorCode, Map, Offset, TopicId};
use barnabas_wire::messages::share_acknowledge_request::ShareAcknowledgeRequest;
use barnabas_wire::messages::share_acknowledge_response::{
    NodeEndpoint, PartitionData, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};

use crate::k78_share_fetch::AckPart;
use crate::share::{Acknowledgement, MemberKey, SharePart, ShareSessions, lock_ms, member, part, refusal};
use crate::{Context, Plan, Refusal, Slot};

/// What the owners of partitions have to do.
#[derive(Debug)]
pub struct Work {
    pub key: MemberKey,
    pub acknowledge: Vec<AckPart>,
    /// The session ends with this request.
    pub is_last: bool,
    pub pending: Pending,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    key: MemberKey,
    version: i16,
    entries: Vec<Option<(SharePart, PartitionData)>>,
    endpoints: Vec<NodeEndpoint>,
}

/// Checks the session, and what is acknowledged of which partition.
pub fn plan(
    request: &ShareAcknowledgeRequest,
    version: i16,
    sessions: &mut ShareSessions,
    ctx: &Context<'_>,
) -> Plan<Work, ShareAcknowledgeResponse> {
    let key = member(request.group_id.as_ref(), request.member_id.as_ref(), ctx);
    let key = key.and_then(|key| {
        sessions.acknowledge(&key, request.share_session_epoch)?;
        Ok(key)
    });
    let key = match key {
        Ok(key) => key,
        Err(code) => return Plan::Answer(refuse(code)),
    };
    let pending = Pending { key: key.clone(), version, entries: Vec::new(), endpoints: Vec::new() };
    let is_last = request.share_session_epoch == -1;
    let mut work = Work { key, acknowledge: Vec::new(), is_last, pending };
    let mut silent = Vec::new();
    for topic in &request.topics {
        for data in &topic.partitions {
            let part = part(topic.topic_id, data.partition_index);
            let batches: Vec<Acknowledgement> = data
                .acknowledgement_batches
                .iter()
                .map(|batch| Acknowledgement {
                    first: Offset(batch.first_offset),
                    last: Offset(batch.last_offset),
                    types: batch.acknowledge_types.clone(),
                })
                .collect();
            let refused = refusal(&part, &batches, version, request.is_renew_ack, ctx);
            let slot = work.pending.add(part);
            match refused {
                Some(code) => work.pending.acknowledged(slot, Err(code.into()), ctx),
                None if batches.is_empty() => silent.push(slot),
                None => work.acknowledge.push(AckPart { slot, part, batches }),
            }
        }
    }
    if work.acknowledge.is_empty() {
        // If no partition has an answer of its own, Kafka leaves all of them out of the response.
        silent.into_iter().for_each(|slot| work.pending.forget(slot));
    }
    Plan::Work(work)
}

/// The whole request is refused.
pub fn refuse(code: ErrorCode) -> ShareAcknowledgeResponse {
    ShareAcknowledgeResponse { error_code: code.code(), ..ShareAcknowledgeResponse::default() }
}

impl Pending {
    fn add(&mut self, part: SharePart) -> Slot {
        let data = PartitionData { partition_index: part.partition.get(), ..PartitionData::default() };
        self.entries.push(Some((part, data)));
        Slot::new(0, self.entries.len() - 1)
    }

    fn forget(&mut self, slot: Slot) {
        self.entries[slot.partition()] = None;
    }

    /// What became of a partition's acknowledgements.
    pub fn acknowledged(&mut self, slot: Slot, result: Result<(), Refusal>, ctx: &Context<'_>) {
        let Some((part, data)) = &mut self.entries[slot.partition()] else { return };
        let Err(refusal) = result else { return };
        data.error_code = refusal.code.code();
        data.error_message = refusal.text();
        if !matches!(refusal.code, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch) {
            return;
        }
        let topic = ctx.image.topics.by_id(part.topic);
        let Some(state) = topic.and_then(|topic| topic.partition(part.partition)) else { return };
        let leader = ctx.leader_of(state);
        data.current_leader = (&leader).into();
        leader.tell_address(&mut self.endpoints);
    }

    /// The answer.
    pub fn respond(self, ctx: &Context<'_>) -> ShareAcknowledgeResponse {
        let mut topics: Vec<ShareAcknowledgeTopicResponse> = Vec::new();
        let mut places: Map<TopicId, usize> = Map::default();
        for (part, data) in self.entries.into_iter().flatten() {
            let at = *places.entry(part.topic).or_insert(topics.len());
            if at == topics.len() {
                topics.push(ShareAcknowledgeTopicResponse { topic_id: part.topic, ..Default::default() });
            }
            topics[at].partitions.push(data);
        }
        ShareAcknowledgeResponse {
            acquisition_lock_timeout_ms: if self.version >= 2 { lock_ms(&self.key.group, ctx) } else { 0 },
            responses: topics,
            node_endpoints: self.endpoints,
            ..ShareAcknowledgeResponse::default()
        }
    }
}

#[cfg(test)]
mod tests;
