//! # DeleteTopics, key 20, versions 0–6
//!
//! Deletes topics, by name or by id. The controller decides; this file sorts out what must not reach it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-4) |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | TOPIC_DELETION_DISABLED; before, it is answered as INVALID_REQUEST (KIP-322) |
//! | 4 | flexible (KIP-482) |
//! | 5 | error message; THROTTLING_QUOTA_EXCEEDED (KIP-599) |
//! | 6 | topic ids (KIP-516) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `ControllerApis.deleteTopics`.

use barnabas_base::{ErrorCode, Map, Set, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use barnabas_wire::messages::delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse};

use crate::access::refusal;
use crate::{Context, Plan, Refusal};

/// For the controller: each topic by name or by id.
#[derive(Debug)]
pub struct Work {
    pub request: DeleteTopicsRequest,
    /// The version in which the controller is asked, and that its answer is to come in: Kafka 4's speaks no version 0.
    pub version: i16,
    pub pending: Pending,
}

/// Before, topics are named in a list of names.
const IDS_SINCE: i16 = 6;

/// What was refused before the controller was asked.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    asked: Vec<DeleteTopicState>,
    refused: Vec<DeletableTopicResult>,
}

/// Takes out what must not reach the controller.
pub fn plan(
    mut request: DeleteTopicsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, DeleteTopicsResponse> {
    let by_name = std::mem::take(&mut request.topic_names).into_iter();
    let by_name = by_name.map(|name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() });
    let mut topics: Vec<DeleteTopicState> = by_name.chain(std::mem::take(&mut request.topics)).collect();
    let mut pending = Pending { version, asked: Vec::new(), refused: Vec::new() };
    if !ctx.config.boolean("delete.topic.enable") {
        let refusal = Refusal::new(
            ErrorCode::TopicDeletionDisabled,
            "Topics cannot be deleted: delete.topic.enable is false.",
        );
        pending.refused = topics.into_iter().map(|topic| result(topic, &refusal)).collect();
        return Plan::Answer(pending.join(DeleteTopicsResponse::default()));
    }
    pending.sort_out(&mut topics, ctx);
    if topics.is_empty() {
        return Plan::Answer(pending.join(DeleteTopicsResponse::default()));
    }
    pending.asked = topics.clone();
    // Whether a quota refuses or only throttles depends on the version: it stays the client's.
    match version < IDS_SINCE {
        true => request.topic_names = topics.into_iter().filter_map(|topic| topic.name).collect(),
        false => request.topics = topics,
    }
    Plan::Work(Work { request, version: version.max(1), pending })
}

impl Pending {
    /// Refuses topics that are named in no way, in two ways, or twice.
    fn sort_out(&mut self, topics: &mut Vec<DeleteTopicState>, ctx: &Context<'_>) {
        let invalid = |message| Refusal::new(ErrorCode::InvalidRequest, message);
        topics.retain(|topic| {
            let refusal = match (&topic.name, topic.topic_id.is_zero()) {
                (None, true) => invalid("Neither a topic name nor a topic id is given."),
                (Some(_), false) => {
                    invalid("A topic name and a topic id are given: only one of them may be.")
                }
                _ => return true,
            };
            self.refused.push(result(topic.clone(), &refusal));
            false
        });
        let mut times: Map<(Option<Str>, TopicId), u32> = Map::default();
        for topic in &*topics {
            *times.entry((topic.name.clone(), topic.topic_id)).or_default() += 1;
        }
        topics.retain(|topic| {
            let Some(count) = times.get_mut(&(topic.name.clone(), topic.topic_id)) else { return false };
            if *count > 1 {
                let message =
                    if topic.name.is_some() { "Duplicate topic name." } else { "Duplicate topic id." };
                self.refused.push(result(topic.clone(), &invalid(message)));
            }
            let once = *count == 1;
            *count = if once { 1 } else { 0 };
            once
        });
        self.deny(topics, ctx);
        // A topic that is named by id and by name is deleted in neither way.
        let ids: Set<TopicId> =
            topics.iter().filter(|topic| topic.name.is_none()).map(|topic| topic.topic_id).collect();
        let named_twice = |topic: &DeleteTopicState| {
            let id = topic.name.as_deref().and_then(|name| ctx.image.topics.id_of(name));
            id.filter(|id| ids.contains(id))
        };
        let twice: Set<TopicId> = topics.iter().filter_map(named_twice).collect();
        topics.retain(|topic| {
            if topic.name.is_none() {
                return !twice.contains(&topic.topic_id);
            }
            let Some(id) = named_twice(topic) else { return true };
            let refusal = invalid("This topic name stands for a topic id that is given as well.");
            self.refused.push(DeletableTopicResult { topic_id: id, ..result(topic.clone(), &refusal) });
            false
        });
    }

    /// Refuses topics that the client may not delete. An unknown id goes on to the controller: ids are no secret. The
    /// name that belongs to an id goes only to a client that may describe the topic. So does an unknown name: the
    /// controller says that it is unknown.
    ///
    /// # Source
    /// Kafka 4.4 `ControllerApis.deleteTopics`.
    fn deny(&mut self, topics: &mut Vec<DeleteTopicState>, ctx: &Context<'_>) {
        if ctx.access.holds_cluster(Operation::Delete) {
            return;
        }
        topics.retain(|topic| {
            let by_id = topic.name.is_none();
            let known = if by_id { ctx.image.topics.by_id(topic.topic_id) } else { None };
            let name = known.map(|known| Str::from(&known.name)).or_else(|| topic.name.clone());
            let Some(name) = name else { return true };
            let may_describe = || ctx.access.sees_topic(Operation::Describe, &name);
            let is_unknown = !by_id && ctx.image.topics.id_of(&name).is_none();
            if is_unknown && may_describe() || ctx.access.topic(Operation::Delete, &name) {
                return true;
            }
            let is_told = !by_id || may_describe();
            let refused = result(topic.clone(), &refusal(ErrorCode::TopicAuthorizationFailed));
            self.refused.push(DeletableTopicResult { name: is_told.then_some(name), ..refused });
            false
        });
    }

    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<DeleteTopicsResponse, Refusal>) -> DeleteTopicsResponse {
        let response = outcome.unwrap_or_else(|refusal| DeleteTopicsResponse {
            responses: self.asked.iter().map(|topic| result(topic.clone(), &refusal)).collect(),
            ..DeleteTopicsResponse::default()
        });
        self.join(response)
    }

    fn join(self, mut response: DeleteTopicsResponse) -> DeleteTopicsResponse {
        response.responses.extend(self.refused);
        for topic in &mut response.responses {
            if self.version < 3 && topic.error_code == ErrorCode::TopicDeletionDisabled.code() {
                topic.error_code = ErrorCode::InvalidRequest.code();
            }
            if self.version < 5 {
                topic.error_message = None;
            }
            if self.version < 6 {
                topic.topic_id = TopicId::ZERO;
                topic.name.get_or_insert_default();
            }
        }
        response
    }
}

fn result(topic: DeleteTopicState, refusal: &Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: topic.name,
        topic_id: topic.topic_id,
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..DeletableTopicResult::default()
    }
}

#[cfg(test)]
mod tests;
