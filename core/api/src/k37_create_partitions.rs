//! # CreatePartitions, key 37, versions 0–3
//!
//! Gives topics more partitions. The controller decides; this file sorts out what must not reach it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-195) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | THROTTLING_QUOTA_EXCEEDED (KIP-599) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `ControllerApis.createPartitions`.

use barnabas_base::{ErrorCode, Map};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::create_partitions_request::CreatePartitionsRequest;
use barnabas_wire::messages::create_partitions_response::{
    CreatePartitionsResponse, CreatePartitionsTopicResult,
};

use crate::access::refusal;
use crate::{Context, Plan, Refusal};

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: CreatePartitionsRequest,
    pub pending: Pending,
}

/// What was refused before the controller was asked.
#[derive(Debug)]
pub struct Pending {
    asked: Vec<Str>,
    refused: Vec<CreatePartitionsTopicResult>,
}

/// Takes out what must not reach the controller.
pub fn plan(mut request: CreatePartitionsRequest, ctx: &Context<'_>) -> Plan<Work, CreatePartitionsResponse> {
    let mut times: Map<Str, u32> = Map::default();
    for topic in &request.topics {
        *times.entry(topic.name.clone()).or_default() += 1;
    }
    let mut refused = Vec::new();
    request.topics.retain(|topic| {
        let Some(count) = times.get_mut(&topic.name) else { return false };
        if *count > 1 {
            let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
            refused.push(result(topic.name.clone(), &refusal));
        }
        let once = *count == 1;
        *count = if once { 1 } else { 0 };
        let is_denied = once && !ctx.access.topic(Operation::Alter, &topic.name);
        if is_denied {
            refused.push(result(topic.name.clone(), &refusal(ErrorCode::TopicAuthorizationFailed)));
        }
        once && !is_denied
    });
    if request.topics.is_empty() {
        return Plan::Answer(CreatePartitionsResponse {
            results: refused,
            ..CreatePartitionsResponse::default()
        });
    }
    let asked = request.topics.iter().map(|topic| topic.name.clone()).collect();
    Plan::Work(Work { request, pending: Pending { asked, refused } })
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<CreatePartitionsResponse, Refusal>) -> CreatePartitionsResponse {
        let mut response = outcome.unwrap_or_else(|refusal| CreatePartitionsResponse {
            results: self.asked.into_iter().map(|name| result(name, &refusal)).collect(),
            ..CreatePartitionsResponse::default()
        });
        response.results.extend(self.refused);
        response
    }
}

fn result(name: Str, refusal: &Refusal) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult {
        name,
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..CreatePartitionsTopicResult::default()
    }
}

#[cfg(test)]
mod tests;
