//! A group's topology, as its first member brought it: which subtopologies there are, and what topics they read and
//! write.
//!
//! Kept as the record that it is written as. How it fits the topics that there are: configure.rs. How its application
//! describes it to people: description.rs.

mod configure;
mod description;

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::StreamsGroupTopologyValue;
use barnabas_wire::messages::streams_group_heartbeat_request as request;
use barnabas_wire::messages::streams_group_topology_value::{
    CopartitionGroup, Subtopology, TopicConfig, TopicInfo,
};

pub(crate) use configure::{Configured, ConfiguredSubtopology, InternalTopic, StatusCode, configure};
pub(crate) use description::Description;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Topology {
    pub value: StreamsGroupTopologyValue,
    /// All topics that its tasks need: sources, repartition topics, changelogs.
    pub required: BTreeSet<Text>,
    /// Topics that are read, with the subtopology that reads each.
    pub sources: BTreeMap<Text, Text>,
}

impl Topology {
    pub fn new(value: StreamsGroupTopologyValue) -> Self {
        let (mut required, mut sources) = (BTreeSet::new(), BTreeMap::new());
        for subtopology in &value.subtopologies {
            let id = subtopology.subtopology_id.text();
            let repartition = subtopology.repartition_source_topics.iter().map(|topic| &topic.name);
            for topic in subtopology.source_topics.iter().chain(repartition) {
                required.insert(topic.text());
                sources.insert(topic.text(), id.clone());
            }
            required.extend(subtopology.state_changelog_topics.iter().map(|topic| topic.name.text()));
        }
        Self { value, required, sources }
    }

    pub fn epoch(&self) -> i32 {
        self.value.epoch
    }

    /// Whether it is the same topology, whatever the order in which its subtopologies are named.
    pub fn is(&self, other: &StreamsGroupTopologyValue) -> bool {
        let by_id = |value: &StreamsGroupTopologyValue| -> Vec<Subtopology> {
            let mut all = value.subtopologies.clone();
            all.sort_by(|a, b| a.subtopology_id.cmp(&b.subtopology_id));
            all
        };
        self.value.epoch == other.epoch
            && (self.value.subtopologies == other.subtopologies || by_id(&self.value) == by_id(other))
    }

    pub fn has(&self, subtopology: &str) -> bool {
        self.value.subtopologies.iter().any(|each| each.subtopology_id == *subtopology)
    }
}

/// The record of what a member said.
///
/// # Source
/// Kafka 4.4 `StreamsCoordinatorRecordHelpers.convertToStreamsGroupTopologyRecord`.
pub(crate) fn said(topology: &request::Topology) -> StreamsGroupTopologyValue {
    let subtopologies = topology.subtopologies.iter().map(|each| Subtopology {
        subtopology_id: each.subtopology_id.clone(),
        source_topics: each.source_topics.clone(),
        source_topic_regex: each.source_topic_regex.clone(),
        state_changelog_topics: each.state_changelog_topics.iter().map(topic).collect(),
        repartition_sink_topics: each.repartition_sink_topics.clone(),
        repartition_source_topics: each.repartition_source_topics.iter().map(topic).collect(),
        copartition_groups: each.copartition_groups.iter().map(copartition).collect(),
        ..Default::default()
    });
    StreamsGroupTopologyValue {
        epoch: topology.epoch,
        subtopologies: subtopologies.collect(),
        ..Default::default()
    }
}

fn topic(said: &request::TopicInfo) -> TopicInfo {
    let config = |config: &request::KeyValue| TopicConfig {
        key: config.key.clone(),
        value: config.value.clone(),
        ..Default::default()
    };
    TopicInfo {
        name: said.name.clone(),
        partitions: said.partitions,
        replication_factor: said.replication_factor,
        topic_configs: said.topic_configs.iter().map(config).collect(),
        ..Default::default()
    }
}

fn copartition(said: &request::CopartitionGroup) -> CopartitionGroup {
    CopartitionGroup {
        source_topics: said.source_topics.clone(),
        source_topic_regex: said.source_topic_regex.clone(),
        repartition_source_topics: said.repartition_source_topics.clone(),
        ..Default::default()
    }
}

/// The topics that each copartition group of a subtopology names by their places in its lists. `None`: a place that
/// there is not.
fn copartition_groups(subtopology: &Subtopology) -> Option<Vec<BTreeSet<&str>>> {
    let at = |place: i16| usize::try_from(place).ok();
    let groups = subtopology.copartition_groups.iter().map(|group| {
        let mut topics = BTreeSet::new();
        for place in &group.source_topics {
            topics.insert(subtopology.source_topics.get(at(*place)?).map(Str::as_str)?);
        }
        for place in &group.repartition_source_topics {
            let topic = subtopology.repartition_source_topics.get(at(*place)?)?;
            topics.insert(topic.name.as_str());
        }
        Some(topics)
    });
    groups.collect()
}
