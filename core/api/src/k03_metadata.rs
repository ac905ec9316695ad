//! # Metadata, key 3, versions 0–13
//!
//! Tells a client which brokers and topics there are, and which broker leads each partition. Topics that do not exist
//! are auto-created where the request and `auto.create.topics.enable` allow it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | no topics named means all; replicas that are not there are an error of the partition |
//! | 1 | null means all topics, none named means none; racks, controller, internal topics |
//! | 2 | cluster id (KIP-78) |
//! | 3 | throttle time in the answer |
//! | 4 | whether topics may be created by asking (KIP-204) |
//! | 5 | offline replicas (KIP-112) |
//! | 6 | LISTENER_NOT_FOUND instead of LEADER_NOT_AVAILABLE; throttling by the client (KIP-219) |
//! | 7 | leader epochs (KIP-320) |
//! | 8 | authorized operations (KIP-430) |
//! | 9 | flexible (KIP-482) |
//! | 10 | topic ids in the answer (KIP-516) |
//! | 11 | authorized operations of the cluster moved to DescribeCluster (KIP-700) |
//! | 12 | topics may be asked for by id |
//! | 13 | an error for the whole answer (KIP-1102) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleTopicMetadataRequest`, `KRaftMetadataCache`.

mod large;
pub mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, TopicId, check_topic_name, is_internal_topic};
use barnabas_metadata::{Broker, Partition, Topic};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::CreateTopicsRequest;
use barnabas_wire::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use barnabas_wire::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};

use crate::access::OPERATIONS_NOT_ASKED;
use crate::auto_create::creation;
use crate::{Context, Plan};
pub use large::{Large, Place, Writing, large, names_many};

/// Topics have to be created; the answer goes out at once and the client asks again, as with Kafka.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// For the controller, in this node's own name. What comes of it is for the log, not for the client.
    pub create: CreateTopicsRequest,
    pub response: MetadataResponse,
}

/// Makes the answer, and names the topics that are to be created.
pub fn plan(request: MetadataRequest, version: i16, ctx: &Context<'_>) -> Plan<Work, MetadataResponse> {
    let Some(wanted) = wanted(&request, version) else { return Plan::Answer(invalid(request)) };
    let mut response = without_topics(&request, version, ctx);
    let creates = may_create(&request, version, ctx);
    let missing = add_topics(&mut response, &wanted, version, creates, ctx);
    if version >= 8 && request.include_topic_authorized_operations {
        response.topics.iter_mut().for_each(|topic| show_operations(topic, ctx));
    }
    match to_create(creates, missing.iter(), ctx) {
        Some(create) => Plan::Work(Work { create, response }),
        None => Plan::Answer(response),
    }
}

/// What the client may do to the topic. Denied and unknown ones of which only the id is known have none.
fn show_operations(topic: &mut MetadataResponseTopic, ctx: &Context<'_>) {
    if let Some(name) = &topic.name
        && topic.error_code != ErrorCode::TopicAuthorizationFailed.code()
    {
        topic.topic_authorized_operations = ctx.access.operations(ResourceType::Topic, name);
    }
}

/// Whether the request and this broker allow that missing topics are created.
fn may_create(request: &MetadataRequest, version: i16, ctx: &Context<'_>) -> bool {
    ctx.config.auto_create_topics && (version < 4 || request.allow_auto_topic_creation)
}

/// What the controller is to be asked for of the topics that are missing.
fn to_create<'a>(
    creates: bool,
    missing: impl Iterator<Item = &'a Str>,
    ctx: &Context<'_>,
) -> Option<CreateTopicsRequest> {
    if !creates {
        return None;
    }
    let valid = missing.map(Str::as_str).filter(|name| check_topic_name(name).is_ok());
    let names: BTreeSet<&str> = valid.collect();
    (!names.is_empty()).then(|| creation(names.into_iter(), ctx))
}

/// The answer as far as it does not depend on topics.
fn without_topics(request: &MetadataRequest, version: i16, ctx: &Context<'_>) -> MetadataResponse {
    let operations = (8..=10).contains(&version) && request.include_cluster_authorized_operations;
    MetadataResponse {
        brokers: brokers(version, ctx),
        cluster_id: (version >= 2).then(|| Str::from(ctx.cluster_id)),
        controller_id: if version >= 1 { ctx.controller_id() } else { BrokerId::NONE.get() },
        cluster_authorized_operations: if operations {
            ctx.access.cluster_operations()
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..MetadataResponse::default()
    }
}

/// Which topics a request is about.
enum Wanted<'a> {
    All,
    Names(Vec<&'a Str>),
    Ids(Vec<TopicId>),
}

/// `None` for a request that its version does not allow.
fn wanted(request: &MetadataRequest, version: i16) -> Option<Wanted<'_>> {
    let Some(topics) = &request.topics else { return Some(Wanted::All) };
    if version == 0 && topics.is_empty() {
        return Some(Wanted::All);
    }
    let bad = |topic: &MetadataRequestTopic| topic.name.is_none() || !topic.topic_id.is_zero();
    if version < 12 && topics.iter().any(bad) {
        return None;
    }
    let ids: BTreeSet<TopicId> =
        topics.iter().map(|topic| topic.topic_id).filter(|id| !id.is_zero()).collect();
    if !ids.is_empty() {
        return Some(Wanted::Ids(ids.into_iter().collect()));
    }
    let mut seen = BTreeSet::new();
    let names = topics.iter().filter_map(|topic| topic.name.as_ref());
    Some(Wanted::Names(names.filter(|name| seen.insert(name.as_str())).collect()))
}

/// Kafka `MetadataRequest.getErrorResponse`: the error stands with every topic.
fn invalid(request: MetadataRequest) -> MetadataResponse {
    let refused = |topic: MetadataRequestTopic| MetadataResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some(topic.name.unwrap_or_default()),
        topic_id: topic.topic_id,
        ..MetadataResponseTopic::default()
    };
    MetadataResponse {
        topics: request.topics.unwrap_or_default().into_iter().map(refused).collect(),
        controller_id: BrokerId::NONE.get(),
        ..MetadataResponse::default()
    }
}

fn brokers(version: i16, ctx: &Context<'_>) -> Vec<MetadataResponseBroker> {
    let of = |node: crate::Node| MetadataResponseBroker {
        node_id: node.id.get(),
        host: node.host,
        port: node.port,
        rack: node.rack.filter(|_| version >= 1),
        ..MetadataResponseBroker::default()
    };
    ctx.alive_nodes().map(of).collect()
}

/// Adds what is known of the wanted topics and returns the names that are not.
fn add_topics(
    response: &mut MetadataResponse,
    wanted: &Wanted<'_>,
    version: i16,
    creates: bool,
    ctx: &Context<'_>,
) -> Vec<Str> {
    let topics = &ctx.image.topics;
    let mut missing = Vec::new();
    match wanted {
        // In no order that a client could use, as with Kafka: this one costs least.
        Wanted::All => {
            let shown = topics.by_ids().filter(|topic| is_shown(topic, ctx));
            response.topics = shown.map(|topic| describe(topic, version, ctx)).collect();
        }
        Wanted::Ids(ids) => {
            for id in ids {
                let known = topics.by_id(*id).map(|topic| {
                    if ctx.access.topic(Operation::Describe, &topic.name) {
                        describe(topic, version, ctx)
                    } else {
                        denied_id(*id)
                    }
                });
                response.topics.push(known.unwrap_or_else(|| unknown_id(*id)));
            }
        }
        Wanted::Names(names) => {
            for name in names {
                if is_denied(name, topics.by_name(name).is_some(), creates, ctx) {
                    response.topics.push(denied(name));
                } else if let Some(topic) = topics.by_name(name) {
                    response.topics.push(describe(topic, version, ctx));
                } else {
                    response.topics.push(unknown(name, version));
                    missing.push((*name).clone());
                }
            }
        }
    }
    missing
}

/// Whether a list of all topics has this one. What it leaves out is not logged.
fn is_shown(topic: &Topic, ctx: &Context<'_>) -> bool {
    ctx.access.sees_topic(Operation::Describe, &topic.name)
}

/// Whether the client is denied a topic that it names: it may not see it, or may not create it by naming it.
fn is_denied(name: &str, exists: bool, creates: bool, ctx: &Context<'_>) -> bool {
    !ctx.access.topic(Operation::Describe, name) || (!exists && creates && !ctx.access.create_topic(name))
}

/// The same whether there is such a topic or not.
fn denied(name: &Str) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::TopicAuthorizationFailed.code(),
        name: Some(name.clone()),
        ..MetadataResponseTopic::default()
    }
}

fn denied_id(topic_id: TopicId) -> MetadataResponseTopic {
    MetadataResponseTopic { error_code: ErrorCode::TopicAuthorizationFailed.code(), ..unknown_id(topic_id) }
}

fn unknown(name: &Str, version: i16) -> MetadataResponseTopic {
    let code = match check_topic_name(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    MetadataResponseTopic {
        error_code: code.code(),
        name: Some(name.clone()),
        is_internal: version >= 1 && is_internal_topic(name),
        ..MetadataResponseTopic::default()
    }
}

fn unknown_id(topic_id: TopicId) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::UnknownTopicId.code(),
        name: None,
        topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn describe(topic: &Arc<Topic>, version: i16, ctx: &Context<'_>) -> MetadataResponseTopic {
    let partitions =
        topic.partitions().map(|(index, state)| describe_partition((topic.id, index), state, version, ctx));
    MetadataResponseTopic { partitions: partitions.collect(), ..without_partitions(topic, version) }
}

fn without_partitions(topic: &Topic, version: i16) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(Str::from(&topic.name)),
        topic_id: if version >= 10 { topic.id } else { TopicId::ZERO },
        is_internal: version >= 1 && is_internal_topic(&topic.name),
        ..MetadataResponseTopic::default()
    }
}

fn describe_partition(
    named: (TopicId, PartitionIndex),
    state: &Partition,
    version: i16,
    ctx: &Context<'_>,
) -> MetadataResponsePartition {
    // Version 0 leaves out replicas that cannot be reached and says so; later ones name them all.
    let replicas = shown_replicas(state.replicas(), version == 0, ctx);
    let isr = shown_replicas(state.isr(), version == 0, ctx);
    let leader = leader(named, state, ctx);
    let reachable = leader.is_some_and(|broker| broker.endpoint(&ctx.client.listener).is_some());
    let error = match leader {
        None => ErrorCode::LeaderNotAvailable,
        Some(_) if !reachable && version >= 6 => ErrorCode::ListenerNotFound,
        Some(_) if !reachable => ErrorCode::LeaderNotAvailable,
        Some(_) if replicas.len() < state.replicas().len() || isr.len() < state.isr().len() => {
            ErrorCode::ReplicaNotAvailable
        }
        Some(_) => ErrorCode::None,
    };
    MetadataResponsePartition {
        error_code: error.code(),
        partition_index: named.1.get(),
        leader_id: if reachable { state.leader.get() } else { BrokerId::NONE.get() },
        leader_epoch: if version >= 7 { state.leader_epoch.get() } else { -1 },
        replica_nodes: replicas,
        isr_nodes: isr,
        offline_replicas: if version >= 5 { offline_replicas(named, state, ctx) } else { Vec::new() },
        ..MetadataResponsePartition::default()
    }
}

fn shown_replicas(replicas: &[BrokerId], only_alive: bool, ctx: &Context<'_>) -> Vec<i32> {
    let is_shown = |id: &&BrokerId| {
        let broker = ctx.image.cluster.broker(**id).filter(|broker| !broker.fenced);
        !only_alive || broker.is_some_and(|broker| broker.endpoint(&ctx.client.listener).is_some())
    };
    replicas.iter().filter(is_shown).map(|id| id.get()).collect()
}

/// The broker that leads. A replica of this node that serves nothing does not: where the log directory of the only
/// replica has failed, Kafka's partition has no leader either.
pub(crate) fn leader<'a>(
    named: (TopicId, PartitionIndex),
    state: &Partition,
    ctx: &Context<'a>,
) -> Option<&'a Arc<Broker>> {
    let is_offline = state.leader == ctx.node && ctx.is_offline_here(named);
    ctx.image.cluster.broker(state.leader).filter(|_| !is_offline)
}

/// Replicas on brokers that are fenced, that this client cannot reach, or whose directory has failed; and one of this
/// node's whose log cannot be opened.
pub(crate) fn offline_replicas(
    named: (TopicId, PartitionIndex),
    state: &Partition,
    ctx: &Context<'_>,
) -> Vec<i32> {
    let is_offline = |id: &&BrokerId| match ctx.image.cluster.broker(**id) {
        None => true,
        Some(_) if **id == ctx.node && ctx.is_offline_here(named) => true,
        Some(broker) => {
            broker.fenced
                || broker.endpoint(&ctx.client.listener).is_none()
                || state.directory(**id).is_some_and(|directory| !broker.has_online_directory(directory))
        }
    };
    state.replicas().iter().filter(is_offline).map(|id| id.get()).collect()
}

#[cfg(test)]
mod tests;
