//! Topics that come to be because somebody named them: what they are created with.
//!
//! Source: Kafka `DefaultAutoTopicCreationManager`, `GroupCoordinatorConfig`, `TransactionLogConfig`,
//! `ShareCoordinatorConfig`. Different here: where nobody has said how many replicas an internal topic is to have, it asks for no more
//! than there are nodes, so that a single node works without `offsets.topic.replication.factor=1`. What was said is asked for as it is: a
//! controller that knows fewer brokers refuses, and whoever needs the topic asks again (Kafka does so with its defaults, too).

use barnabas_base::name;
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};

use crate::Context;

/// "As the broker's default says", for partitions and for replicas.
const DEFAULT: i32 = -1;

/// The CreateTopics request by which `topics` come to be.
pub(crate) fn creation<'a>(topics: impl Iterator<Item = &'a str>, ctx: &Context<'_>) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: topics.map(|topic| auto_created_topic(topic, ctx)).collect(),
        timeout_ms: ctx.config.int("request.timeout.ms"),
        ..CreateTopicsRequest::default()
    }
}

/// What a topic of this name is created with when nobody said anything but its name.
pub fn auto_created_topic(topic: &str, ctx: &Context<'_>) -> CreatableTopic {
    let (partitions, replicas) = match topic {
        name::CONSUMER_OFFSETS => ("offsets.topic.num.partitions", "offsets.topic.replication.factor"),
        name::TRANSACTION_STATE => {
            ("transaction.state.log.num.partitions", "transaction.state.log.replication.factor")
        }
        name::SHARE_GROUP_STATE => (
            "share.coordinator.state.topic.num.partitions",
            "share.coordinator.state.topic.replication.factor",
        ),
        _ => return plain_topic(topic, ctx.config),
    };
    let configs = internal_topic_configs(topic, ctx.config).into_iter();
    CreatableTopic {
        name: Str::from(topic),
        num_partitions: ctx.config.int(partitions),
        replication_factor: replication_factor(replicas, ctx) as i16,
        configs: configs
            .map(|(key, value)| CreatableTopicConfig {
                name: Str::from(key),
                value: Some(Str::from(value)),
                ..CreatableTopicConfig::default()
            })
            .collect(),
        ..CreatableTopic::default()
    }
}

/// A cluster that is just starting is as large as its quorum says, if more brokers are not known yet: a topic that is made with one
/// replica keeps it.
fn replication_factor(key: &'static str, ctx: &Context<'_>) -> i32 {
    let wanted = ctx.config.int(key);
    if ctx.config.given().get(key).is_some() {
        return wanted;
    }
    let cluster = &ctx.image.cluster;
    let voters = ["controller.quorum.voters", "controller.quorum.bootstrap.servers"]
        .into_iter()
        .filter_map(|key| ctx.config.value(key))
        .map(|list| list.split(',').filter(|each| !each.trim().is_empty()).count());
    let nodes = voters.chain([cluster.broker_count(), cluster.controllers().count()]).max().unwrap_or(1);
    wanted.min(i32::try_from(nodes).unwrap_or(i32::MAX).max(1))
}

fn plain_topic(topic: &str, config: &BrokerConfig) -> CreatableTopic {
    // The controller's own defaults apply unless this broker's file says something else.
    let given = |key| if config.given().get(key).is_some() { config.int(key) } else { DEFAULT };
    CreatableTopic {
        name: Str::from(topic),
        num_partitions: given("num.partitions"),
        replication_factor: given("default.replication.factor") as i16,
        ..CreatableTopic::default()
    }
}

/// The configs that an internal topic is created with; none for any other topic.
pub fn internal_topic_configs(topic: &str, config: &BrokerConfig) -> Vec<(&'static str, String)> {
    let number = |key| config.int(key).to_string();
    match topic {
        name::CONSUMER_OFFSETS => vec![
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "producer".to_owned()),
            ("segment.bytes", number("offsets.topic.segment.bytes")),
        ],
        name::TRANSACTION_STATE => vec![
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "uncompressed".to_owned()),
            ("min.insync.replicas", number("transaction.state.log.min.isr")),
            ("segment.bytes", number("transaction.state.log.segment.bytes")),
            ("unclean.leader.election.enable", "false".to_owned()),
        ],
        name::SHARE_GROUP_STATE => vec![
            ("cleanup.policy", "delete".to_owned()),
            ("compression.type", "producer".to_owned()),
            ("min.insync.replicas", number("share.coordinator.state.topic.min.isr")),
            ("retention.ms", "-1".to_owned()),
            ("segment.bytes", number("share.coordinator.state.topic.segment.bytes")),
        ],
        _ => Vec::new(),
    }
}
