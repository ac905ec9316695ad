//! Auto-created topics: the CreateTopics request that a broker sends to the controller for a topic that a client named
//! and that does not exist, and for the internal topics of the coordinators.
//!
//! - A client's topic: `num.partitions` and `default.replication.factor` of this broker's file, else -1, for which the
//!   controller takes its own defaults.
//! - An internal topic (`__consumer_offsets`, `__transaction_state`, `__share_group_state`): the partitions and
//!   replicas of its own keys, and the configs of [`internal_topic_configs`].
//! - An internal topic whose replication factor is not in the broker's file: the default (3), but no more than the
//!   cluster has nodes. So a single node needs no `offsets.topic.replication.factor=1`. Kafka sends the default, and
//!   the controller refuses it with INVALID_REPLICATION_FACTOR.
//! - A replication factor from the file is sent unchanged, as in Kafka. A controller with fewer brokers refuses it; the
//!   next request that needs the topic sends CreateTopics again.
//!
//! Sent by shell/broker/src/requests/cluster.rs.
//!
//! Source: Kafka `DefaultAutoTopicCreationManager`, `GroupCoordinatorConfig`, `TransactionLogConfig`,
//! `ShareCoordinatorConfig`.

use barnabas_base::{DurationMs, MonotonicMs, Set, is_internal_topic, name};
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};

use crate::Context;

/// Limits how many topics Metadata requests create: `auto.create.topics.request.max` for one request,
/// `auto.create.topics.second.max` in a second. Without limits a client that names new topics in request after request
/// fills the metadata log.
///
/// A topic for which CreateTopics was sent in the same second is left out: many clients wait for the same one. Internal
/// topics are not counted. Holds at most `auto.create.topics.second.max` names.
#[derive(Debug, Default)]
pub struct AutoCreation {
    /// When the second began.
    since: Option<MonotonicMs>,
    /// Topics for which CreateTopics was sent since then.
    asked: Set<Str>,
}

/// How many topics of a request were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admitted {
    /// Topics beyond a limit, and the key of that limit.
    pub left_out: usize,
    pub key: &'static str,
}

const PER_REQUEST: &str = "auto.create.topics.request.max";
const PER_SECOND: &str = "auto.create.topics.second.max";
const SECOND: DurationMs = DurationMs(1000);

impl AutoCreation {
    /// Removes from `create` the topics that may not be created now.
    pub fn admit(
        &mut self,
        create: &mut CreateTopicsRequest,
        config: &BrokerConfig,
        now: MonotonicMs,
    ) -> Admitted {
        if self.since.is_none_or(|since| now.since(since) >= SECOND) {
            self.since = Some(now);
            self.asked.clear();
        }
        let most = |key| usize::try_from(config.int(key)).unwrap_or(0);
        let (mut of_request, per_second) = (most(PER_REQUEST), most(PER_SECOND));
        let mut admitted = Admitted::default();
        create.topics.retain(|topic| {
            if is_internal_topic(&topic.name) {
                return true;
            }
            if self.asked.contains(&topic.name) {
                return false;
            }
            let beyond = match () {
                () if of_request == 0 => PER_REQUEST,
                () if self.asked.len() >= per_second => PER_SECOND,
                () => {
                    of_request -= 1;
                    return self.asked.insert(topic.name.clone());
                }
            };
            admitted.left_out += 1;
            admitted.key = beyond;
            false
        });
        admitted
    }
}

/// The controller applies its own default, for partitions and for replicas.
const DEFAULT: i32 = -1;

/// The CreateTopics request for `topics`.
pub(crate) fn creation<'a>(topics: impl Iterator<Item = &'a str>, ctx: &Context<'_>) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: topics.map(|topic| auto_created_topic(topic, ctx)).collect(),
        timeout_ms: ctx.config.int("request.timeout.ms"),
        ..CreateTopicsRequest::default()
    }
}

/// One topic of a CreateTopics request, where only its name is known.
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

/// The value of `key` if the broker's file has it; else the default, but no more than the cluster has nodes.
///
/// The number of nodes is the largest of the registered brokers, the registered controllers and the entries of
/// `controller.quorum.voters` and `controller.quorum.bootstrap.servers`. While a cluster starts, only the first broker
/// is registered; a topic that is created with one replica then would keep it.
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
    // The controller applies its own defaults to keys that this broker's file does not have.
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

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metadata::config::{Properties, StaticConfig};

    fn config(request: &str, second: &str) -> BrokerConfig {
        let properties: Properties = [(PER_REQUEST, request), (PER_SECOND, second)]
            .map(|(key, value)| (key.into(), value.into()))
            .into();
        BrokerConfig::new(StaticConfig::check(properties).unwrap().0)
    }

    fn asking(names: impl IntoIterator<Item = String>) -> CreateTopicsRequest {
        let topic = |name: String| CreatableTopic { name: name.into(), ..CreatableTopic::default() };
        CreateTopicsRequest {
            topics: names.into_iter().map(topic).collect(),
            ..CreateTopicsRequest::default()
        }
    }

    fn names(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
        range.map(|number| format!("t{number}"))
    }

    #[test]
    fn topics_beyond_the_requests_limit_are_left_out() {
        let mut create = asking(names(0..20_000));
        let admitted = AutoCreation::default().admit(&mut create, &config("100", "1000"), MonotonicMs(5));
        assert_eq!(admitted, Admitted { left_out: 19_900, key: PER_REQUEST });
        assert_eq!(create.topics.len(), 100);
    }

    #[test]
    fn topics_beyond_the_seconds_limit_wait_for_the_next() {
        let (mut creation, config) = (AutoCreation::default(), config("100", "150"));
        let mut ask = |now: u64| {
            let mut create = asking(names(0..100).map(|name| format!("{name}-{}", now / 2)));
            let admitted = creation.admit(&mut create, &config, MonotonicMs(now));
            (create.topics.len(), admitted.left_out)
        };
        assert_eq!(ask(0), (100, 0));
        assert_eq!(ask(10), (50, 50));
        assert_eq!(ask(999), (0, 100));
        assert_eq!(ask(1000), (100, 0));
    }

    #[test]
    fn topic_of_many_clients_is_asked_for_once_a_second() {
        let (mut creation, config) = (AutoCreation::default(), config("100", "1"));
        let mut ask = |now| {
            let mut create = asking(["t".to_owned()]);
            let admitted = creation.admit(&mut create, &config, MonotonicMs(now));
            (create.topics.len(), admitted.left_out)
        };
        assert_eq!([ask(0), ask(1), ask(1500)], [(1, 0), (0, 0), (1, 0)]);
    }

    #[test]
    fn coordinators_topics_are_not_counted() {
        let mut create = asking([name::CONSUMER_OFFSETS.to_owned(), "t".to_owned()]);
        let admitted = AutoCreation::default().admit(&mut create, &config("0", "0"), MonotonicMs(0));
        assert_eq!((create.topics.len(), admitted.left_out), (1, 1));
    }
}
