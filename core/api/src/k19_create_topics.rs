//! # CreateTopics, key 19, versions 0–7
//!
//! Creates topics. The controller decides; this file sorts out what must not reach it and adds to its answer what only
//! a broker knows: the configuration that a new topic will have.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-4) |
//! | 1 | dry run, error message |
//! | 2 | throttle time in the answer |
//! | 3 | throttling by the client (KIP-219) |
//! | 4 | −1 for the defaults of partitions and replicas (KIP-464) |
//! | 5 | flexible; partitions, replicas and configs in the answer (KIP-525) |
//! | 6 | THROTTLING_QUOTA_EXCEEDED (KIP-599) |
//! | 7 | topic id in the answer (KIP-516) |
//!
//! ## Left out
//! - Policies of `create.topic.policy.class.name`.
//!
//! Source: Kafka 4.4 `ControllerApis.createTopics`, `ReplicationControlManager.createTopics`.

use barnabas_base::{ErrorCode, Map, Set, name};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use barnabas_wire::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse,
};

use crate::access::refusal;
use crate::described::topic_entries;
use crate::{Context, Plan, Refusal};

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: CreateTopicsRequest,
    /// The version in which the controller is asked, and that its answer is to come in: Kafka 4's speaks none before 2
    /// (KIP-896).
    pub version: i16,
    pub pending: Pending,
}

/// What was refused before the controller was asked, and what each topic was to be configured with.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    asked: Vec<Str>,
    refused: Vec<CreatableTopicResult>,
    configs: Map<Str, Vec<(Str, Str)>>,
    /// The client may not describe their configurations.
    hidden: Set<Str>,
}

/// Takes out what must not reach the controller.
///
/// # Source
/// Kafka 4.4 `ControllerApis.createTopics`: the order of the checks.
pub fn plan(
    mut request: CreateTopicsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, CreateTopicsResponse> {
    let mut times: Map<Str, u32> = Map::default();
    for topic in &request.topics {
        *times.entry(topic.name.clone()).or_default() += 1;
    }
    let mut pending = Pending {
        version,
        asked: Vec::new(),
        refused: Vec::new(),
        configs: Map::default(),
        hidden: Set::default(),
    };
    request.topics.retain(|topic| match times.get_mut(&topic.name) {
        Some(1) if topic.name == name::CLUSTER_METADATA => {
            let why = "Creation of internal topic __cluster_metadata is prohibited.";
            let refusal = Refusal::new(ErrorCode::InvalidRequest, why);
            pending.refused.push(result(topic.name.clone(), &refusal));
            false
        }
        Some(1) if !ctx.access.create_topic(&topic.name) => {
            pending.refused.push(result(topic.name.clone(), &refusal(ErrorCode::TopicAuthorizationFailed)));
            false
        }
        Some(1) => {
            pending.ask(topic, ctx);
            true
        }
        Some(times) => {
            if *times > 0 {
                let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
                pending.refused.push(result(topic.name.clone(), &refusal));
            }
            *times = 0;
            false
        }
        None => false,
    });
    if request.topics.is_empty() {
        let nothing = CreateTopicsResponse::default();
        return Plan::Answer(pending.join(nothing));
    }
    Plan::Work(Work { request, version: version.max(2), pending })
}

impl Pending {
    fn ask(&mut self, topic: &CreatableTopic, ctx: &Context<'_>) {
        self.asked.push(topic.name.clone());
        if self.version >= 5 {
            // Kafka's `logIfDenied = false`: the topic is created all the same.
            if !ctx.access.sees_topic(Operation::DescribeConfigs, &topic.name) {
                self.hidden.insert(topic.name.clone());
            }
            let configs = topic.configs.iter();
            let configs = configs.filter_map(|config| Some((config.name.clone(), config.value.clone()?)));
            self.configs.insert(topic.name.clone(), configs.collect());
        }
    }

    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(
        self,
        outcome: Result<CreateTopicsResponse, Refusal>,
        ctx: &Context<'_>,
    ) -> CreateTopicsResponse {
        let mut response = outcome.unwrap_or_else(|refusal| CreateTopicsResponse {
            topics: self.asked.iter().map(|name| result(name.clone(), &refusal)).collect(),
            ..CreateTopicsResponse::default()
        });
        if self.version >= 5 {
            let is_shown = |topic: &&mut CreatableTopicResult| {
                topic.error_code == 0 && topic.topic_config_error_code == 0
            };
            for topic in response.topics.iter_mut().filter(is_shown) {
                if self.hidden.contains(&topic.name) {
                    hide_configs(topic);
                    continue;
                }
                let asked = self.configs.get(&topic.name).map_or(&[][..], Vec::as_slice);
                let shown = topic.configs.take().filter(|configs| !configs.is_empty());
                show_configs(topic, shown.unwrap_or_else(|| configs(asked, ctx)), ctx);
            }
        }
        self.join(response)
    }

    fn join(self, mut response: CreateTopicsResponse) -> CreateTopicsResponse {
        response.topics.extend(self.refused);
        for topic in &mut response.topics {
            trim(topic, self.version);
        }
        response
    }
}

fn result(name: Str, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        num_partitions: -1,
        replication_factor: -1,
        ..CreatableTopicResult::default()
    }
}

/// Leaves out what the version cannot say.
fn trim(topic: &mut CreatableTopicResult, version: i16) {
    let bare = CreatableTopicResult::default();
    if version < 1 {
        topic.error_message = bare.error_message;
    }
    if version < 5 {
        topic.topic_config_error_code = bare.topic_config_error_code;
        topic.num_partitions = bare.num_partitions;
        topic.replication_factor = bare.replication_factor;
        topic.configs = bare.configs;
    }
    if version < 7 {
        topic.topic_id = bare.topic_id;
    }
}

/// The topic's configuration, or why it is not there.
fn show_configs(topic: &mut CreatableTopicResult, shown: Vec<CreatableTopicConfigs>, ctx: &Context<'_>) {
    let values =
        shown.iter().map(|each| each.name.len() + each.value.as_ref().map_or(0, |value| value.len()));
    let bytes = shown.len() * size_of::<CreatableTopicConfigs>() + 2 * values.sum::<usize>();
    match ctx.room.take(bytes) {
        Ok(()) => topic.configs = Some(shown),
        // The protocol has a code for it; the topic is there all the same.
        Err(large) => topic.topic_config_error_code = large.code(ErrorCode::RequestTimedOut).code(),
    }
}

/// The client may create the topic, and not describe its configuration (KIP-525).
fn hide_configs(topic: &mut CreatableTopicResult) {
    topic.topic_config_error_code = ErrorCode::TopicAuthorizationFailed.code();
    (topic.num_partitions, topic.replication_factor) = (-1, -1);
    topic.configs = CreatableTopicResult::default().configs;
}

fn configs(asked: &[(Str, Str)], ctx: &Context<'_>) -> Vec<CreatableTopicConfigs> {
    let own = asked.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let own: std::collections::BTreeMap<&str, &str> = own.collect();
    let entries = topic_entries(&|key| own.get(key).copied(), ctx.config).into_iter();
    entries
        .map(|entry| CreatableTopicConfigs {
            name: Str::from(entry.name),
            value: entry.value.map(Str::from),
            read_only: entry.read_only,
            config_source: entry.source as i8,
            is_sensitive: entry.is_sensitive,
            ..CreatableTopicConfigs::default()
        })
        .collect()
}

#[cfg(test)]
mod tests;
