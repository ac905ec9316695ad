//! DeleteTopics: by name, or by id from version 6 on.
//!
//! Source: KIP-516; Kafka `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.

use barnabas_base::{ErrorCode, Set, TopicId, Uuid};
use barnabas_wire::messages::delete_topics_response::DeletableTopicResult;
use barnabas_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse, RemoveTopicRecord};
use barnabas_wire::{MetadataRecord, Str};

use crate::controller::{Case, Outcome, Refusal, Sentences, limits};

/// From this version on, a switched-off deletion has an error code of its own.
const DELETION_DISABLED_SINCE: i16 = 3;

/// A topic as it was named.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Named {
    Name(Str),
    Id(TopicId),
}

impl Named {
    fn id(&self) -> Option<TopicId> {
        match self {
            Self::Name(_) => None,
            Self::Id(id) => Some(*id),
        }
    }
}

pub(crate) fn delete(case: &Case<'_>, request: &DeleteTopicsRequest) -> Outcome {
    let mut responses = Vec::new();
    let mut sentences = Sentences::default();
    let mut results = Results { responses: &mut responses, sentences: &mut sentences };
    let count = request.topics.len() + request.topic_names.len();
    if let Err(refusal) = limits::check_named(case.config, count, "topics") {
        for name in &request.topic_names {
            results.push(Some(name.clone()), Uuid::ZERO, Some(&refusal));
        }
        for topic in &request.topics {
            results.push(topic.name.clone(), topic.topic_id, Some(&refusal));
        }
        return Outcome::new(
            Vec::new(),
            DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() },
        );
    }
    let named = names(request, &mut results);
    let enabled = case.config.boolean("delete.topic.enable");
    let mut records: Vec<MetadataRecord> = Vec::new();
    let by_id: Set<TopicId> = named.iter().filter_map(Named::id).collect();
    // Named by its name and by its id: it is not deleted, and only the name is answered.
    let both: Set<TopicId> = named
        .iter()
        .filter_map(|topic| match topic {
            Named::Name(name) => case.image.topics.id_of(name).filter(|id| by_id.contains(id)),
            Named::Id(_) => None,
        })
        .collect();
    for topic in named {
        if topic.id().is_some_and(|id| both.contains(&id)) {
            continue;
        }
        let decided = if enabled { find(case, &topic, &both) } else { Err(disabled(case.asked.version)) };
        match decided {
            Ok((name, topic_id)) => {
                records.push(RemoveTopicRecord { topic_id, ..RemoveTopicRecord::default() }.into());
                results.push(Some(name), topic_id, None);
            }
            Err(refusal) => {
                let (name, id) = match topic {
                    Named::Name(name) => (Some(name), Uuid::ZERO),
                    Named::Id(id) => (None, id),
                };
                results.push(name, id, Some(&refusal));
            }
        }
    }
    let all = responses.clone();
    let throttle_time_ms = case.budget.throttle_ms();
    Outcome::atomic(
        records,
        DeleteTopicsResponse { responses, throttle_time_ms, ..DeleteTopicsResponse::default() },
        move |why| {
            let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
            let mut sentences = Sentences::default();
            let refused = |mut response: DeletableTopicResult| {
                (response.error_code, response.error_message) = sentences.fields(Some(&refusal));
                response
            };
            let responses = all.into_iter().map(refused).collect();
            DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() }.into()
        },
    )
}

/// An answer while it fills.
struct Results<'a> {
    responses: &'a mut Vec<DeletableTopicResult>,
    sentences: &'a mut Sentences,
}

impl Results<'_> {
    fn push(&mut self, name: Option<Str>, topic_id: TopicId, refusal: Option<&Refusal>) {
        let (error_code, error_message) = self.sentences.fields(refusal);
        self.responses.push(DeletableTopicResult {
            name,
            topic_id,
            error_code,
            error_message,
            ..DeletableTopicResult::default()
        });
    }
}

/// The topics that are named properly, once each; answers for the others go to `results`.
fn names(request: &DeleteTopicsRequest, results: &mut Results<'_>) -> Vec<Named> {
    let invalid = |message: &str| Refusal::new(ErrorCode::InvalidRequest, message);
    let mut all: Vec<Named> = request.topic_names.iter().cloned().map(Named::Name).collect();
    for topic in &request.topics {
        match (&topic.name, topic.topic_id.is_zero()) {
            (None, true) => {
                let refusal = invalid("Neither topic name nor id were specified.");
                results.push(None, Uuid::ZERO, Some(&refusal));
            }
            (Some(name), false) => {
                let refusal = invalid("You may not specify both topic name and topic id.");
                results.push(Some(name.clone()), topic.topic_id, Some(&refusal));
            }
            (Some(name), true) => all.push(Named::Name(name.clone())),
            (None, false) => all.push(Named::Id(topic.topic_id)),
        }
    }
    let mut seen = Set::default();
    let mut twice = Set::default();
    for topic in &all {
        if !seen.insert(topic.clone()) {
            twice.insert(topic.clone());
        }
    }
    for topic in &twice {
        match topic {
            Named::Name(name) => {
                results.push(Some(name.clone()), Uuid::ZERO, Some(&invalid("Duplicate topic name.")));
            }
            Named::Id(id) => results.push(None, *id, Some(&invalid("Duplicate topic id."))),
        }
    }
    all.retain(|topic| !twice.contains(topic));
    all
}

fn find(case: &Case<'_>, topic: &Named, both: &Set<TopicId>) -> Result<(Str, TopicId), Refusal> {
    let found = match topic {
        Named::Name(name) => case.image.topics.by_name(name),
        Named::Id(id) => case.image.topics.by_id(*id),
    };
    let Some(found) = found else {
        let code = match topic {
            Named::Name(_) => ErrorCode::UnknownTopicOrPartition,
            Named::Id(_) => ErrorCode::UnknownTopicId,
        };
        return Err(Refusal::new(code, "there is no such topic"));
    };
    if both.contains(&found.id) {
        let message = "The provided topic name maps to an ID that was already supplied.";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    case.budget.take(found.partition_count())?;
    Ok((Str::from(&found.name), found.id))
}

fn disabled(version: i16) -> Refusal {
    if version < DELETION_DISABLED_SINCE {
        return Refusal::new(ErrorCode::InvalidRequest, "This version does not support topic deletion.");
    }
    Refusal::new(ErrorCode::TopicDeletionDisabled, "delete.topic.enable is false")
}
