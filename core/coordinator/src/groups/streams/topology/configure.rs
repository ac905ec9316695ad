//! A topology against the topics that there are: how many tasks each subtopology has, how many partitions each internal
//! topic, and which of those are to be made.
//!
//! ```text
//! repartition topic   as many as it says; else as the widest source of a subtopology that writes to it, round by round
//! copartition group   all the same: those of its external topics; else of its fixed repartition topics; else the most
//! changelog           as the widest source of its subtopology
//! task                one for each partition of its subtopology's widest source
//! ```
//!
//! # Source
//! KIP-1071; Kafka 4.4 `InternalTopicManager`, `RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::streams_group_topology_value::{Subtopology, TopicInfo};

use super::{Topology, copartition_groups};
use crate::groups::reconciled::Refused;

/// The status that members get when the group's topics have a problem.
///
/// # Source
/// Kafka 4.4 `StreamsGroupHeartbeatResponse.Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusCode {
    StaleTopology = 0,
    MissingSourceTopics = 1,
    IncorrectlyPartitionedTopics = 2,
    MissingInternalTopics = 3,
    ShutdownApplication = 4,
    AssignmentDelayed = 5,
    MissingClientTags = 6,
}

/// What stands between a topology and its tasks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Obstacle {
    pub code: StatusCode,
    pub detail: String,
}

/// What came of holding a topology against the topics.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Configured {
    /// `None`: there are no tasks, whatever is done.
    pub subtopologies: Option<BTreeMap<Text, ConfiguredSubtopology>>,
    /// Internal topics that are to be made.
    pub missing: Vec<CreatableTopic>,
    /// `None`: everything is there.
    pub obstacle: Option<Obstacle>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ConfiguredSubtopology {
    pub tasks: i32,
    /// It keeps state, which standby tasks copy.
    pub is_stateful: bool,
    pub source_topics: Vec<Text>,
    pub sink_topics: Vec<Text>,
    pub repartition_topics: Vec<InternalTopic>,
    pub changelog_topics: Vec<InternalTopic>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InternalTopic {
    pub name: Text,
    pub partitions: i32,
    /// 0: as the broker's default says.
    pub replication_factor: i16,
    pub configs: Vec<(Text, Text)>,
}

impl Configured {
    pub fn is_ready(&self) -> bool {
        self.obstacle.is_none()
    }

    fn stopped(code: StatusCode, detail: String) -> Self {
        Self { obstacle: Some(Obstacle { code, detail }), ..Self::default() }
    }

    /// How many tasks a subtopology has; `None`: there is no such subtopology.
    pub fn tasks_of(&self, subtopology: &str) -> Option<i32> {
        self.subtopologies.as_ref().and_then(|all| all.get(subtopology)).map(|it| it.tasks)
    }
}

/// Why a topology has no tasks.
enum Stop {
    /// It never will have.
    Invalid(String),
    /// As topics are now.
    Now(StatusCode, String),
}

fn invalid(why: impl Into<String>) -> Stop {
    Stop::Invalid(why.into())
}

fn incorrect(why: String) -> Stop {
    Stop::Now(StatusCode::IncorrectlyPartitionedTopics, why)
}

/// Topics that a sentence names before it only counts them.
const NAMED_MAX: usize = 10;

/// # Errors
/// STREAMS_INVALID_TOPOLOGY: it can have no tasks, whatever topics there are.
pub(crate) fn configure(topology: &Topology, image: &Image) -> Result<Configured, Refused> {
    match decide(topology, image) {
        Ok(configured) => Ok(configured),
        Err(Stop::Now(code, why)) => Ok(Configured::stopped(code, why)),
        Err(Stop::Invalid(why)) => Err(Refused::new(ErrorCode::StreamsInvalidTopology, why)),
    }
}

fn decide(topology: &Topology, image: &Image) -> Result<Configured, Stop> {
    let subtopologies = &topology.value.subtopologies;
    let sources = subtopologies.iter().flat_map(|each| each.source_topics.iter());
    let missing: BTreeSet<&str> =
        sources.map(Str::as_str).filter(|topic| image.topics.by_name(topic).is_none()).collect();
    if !missing.is_empty() {
        let why = format!("Source topics {} are missing.", some_of(&missing));
        return Err(Stop::Now(StatusCode::MissingSourceTopics, why));
    }
    let mut counts = Counts { image, decided: BTreeMap::new() };
    counts.repartition(subtopologies)?;
    counts.copartition(subtopologies)?;
    counts.changelogs(subtopologies)?;
    let mut configured = BTreeMap::new();
    for each in subtopologies {
        configured.insert(each.subtopology_id.text(), counts.configured(each)?);
    }
    let missing = missing_topics(&configured, image)?;
    let obstacle = (!missing.is_empty()).then(|| {
        let names: BTreeSet<&str> = missing.iter().map(|topic| topic.name.as_str()).collect();
        let detail = format!("Internal topics are missing: {}", some_of(&names));
        Obstacle { code: StatusCode::MissingInternalTopics, detail }
    });
    Ok(Configured { subtopologies: Some(configured), missing, obstacle })
}

fn some_of(names: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED_MAX).copied().collect();
    match names.len().checked_sub(NAMED_MAX) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How many partitions topics have, or are to have.
struct Counts<'a> {
    image: &'a Image,
    decided: BTreeMap<&'a str, i32>,
}

impl<'a> Counts<'a> {
    /// A topic that there is has what it has.
    fn of(&self, topic: &str) -> Option<i32> {
        let there = self.image.topics.by_name(topic).map(|topic| topic.partition_count() as i32);
        there.or_else(|| self.decided.get(topic).copied())
    }

    fn repartition(&mut self, subtopologies: &'a [Subtopology]) -> Result<(), Stop> {
        let all = || subtopologies.iter().flat_map(|each| &each.repartition_source_topics);
        for topic in all().filter(|topic| topic.partitions != 0) {
            self.decided.insert(&topic.name, topic.partitions);
        }
        loop {
            let (mut is_open, mut found) = (false, false);
            for each in subtopologies {
                for sink in &each.repartition_sink_topics {
                    if self.decided.contains_key(sink.as_str()) {
                        continue;
                    }
                    match self.widest_so_far(each) {
                        Some(count) => {
                            self.decided.insert(sink, count);
                            found = true;
                        }
                        None => is_open = true,
                    }
                }
            }
            if !is_open {
                break;
            }
            if !found {
                return Err(invalid(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the \
                     topology that cannot be resolved.",
                ));
            }
        }
        let unknown = all().find(|topic| !self.decided.contains_key(topic.name.as_str()));
        let why = "Failed to compute number of partitions for all repartition topics, because a repartition source \
                   topic is never used as a sink topic.";
        unknown.map_or(Ok(()), |_| Err(invalid(why)))
    }

    /// The widest source of a subtopology, as far as it is known. What a repartition topic is to have counts, not what
    /// it has.
    fn widest_so_far(&self, subtopology: &Subtopology) -> Option<i32> {
        let repartition = subtopology.repartition_source_topics.iter();
        let repartition = repartition.filter_map(|topic| self.decided.get(topic.name.as_str()).copied());
        let external = subtopology.source_topics.iter().filter_map(|topic| self.of(topic));
        repartition.chain(external).max()
    }

    fn copartition(&mut self, subtopologies: &'a [Subtopology]) -> Result<(), Stop> {
        let all = || subtopologies.iter().flat_map(|each| &each.repartition_source_topics);
        let fixed: BTreeSet<&str> =
            all().filter(|topic| topic.partitions != 0).map(|topic| topic.name.as_str()).collect();
        let internal: BTreeSet<&str> = all().map(|topic| topic.name.as_str()).collect();
        for each in subtopologies {
            let groups = copartition_groups(each)
                .ok_or_else(|| invalid("A copartition group names a topic that is not there."))?;
            for group in groups.iter().filter(|group| !group.is_empty()) {
                self.enforce(group, &fixed, &internal)?;
            }
        }
        Ok(())
    }

    fn enforce(
        &mut self,
        group: &BTreeSet<&'a str>,
        fixed: &BTreeSet<&str>,
        internal: &BTreeSet<&str>,
    ) -> Result<(), Stop> {
        let mut known = BTreeMap::new();
        for topic in group {
            let count = self
                .of(topic)
                .ok_or_else(|| invalid(format!("The number of partitions of {topic} is unknown.")))?;
            known.insert(*topic, count);
        }
        let external = known.iter().filter(|(topic, _)| !internal.contains(*topic));
        let set = known.iter().filter(|(topic, _)| fixed.contains(*topic));
        let mut must_agree: Vec<(&str, i32)> = external.map(|(topic, count)| (*topic, *count)).collect();
        if must_agree.is_empty() {
            must_agree = set.map(|(topic, count)| (*topic, *count)).collect();
        }
        let count = match must_agree.first() {
            Some((_, first)) if must_agree.iter().any(|(_, count)| count != first) => {
                let shown: Vec<String> =
                    must_agree.iter().map(|(topic, count)| format!("{topic}={count}")).collect();
                let shown = shown.join(", ");
                return Err(incorrect(format!(
                    "Following topics do not have the same number of partitions: [{{{shown}}}]"
                )));
            }
            Some((_, first)) => *first,
            None => known.values().copied().max().unwrap_or(0),
        };
        for (topic, has) in known.iter().filter(|(topic, _)| internal.contains(*topic)) {
            if fixed.contains(topic) && *has != count {
                let why = format!(
                    "Number of partitions [{has}] of repartition topic [{topic}] doesn't match number of \
                     partitions [{count}] of the source topic."
                );
                return Err(incorrect(why));
            }
            self.decided.insert(topic, count);
        }
        Ok(())
    }

    fn changelogs(&mut self, subtopologies: &'a [Subtopology]) -> Result<(), Stop> {
        for each in subtopologies {
            let count = self.tasks(each)?;
            for topic in &each.state_changelog_topics {
                if !each.source_topics.contains(&topic.name) {
                    self.decided.insert(&topic.name, count);
                }
            }
        }
        Ok(())
    }

    fn tasks(&self, subtopology: &Subtopology) -> Result<i32, Stop> {
        let repartition = subtopology.repartition_source_topics.iter().map(|topic| &topic.name);
        let counts = subtopology.source_topics.iter().chain(repartition).filter_map(|topic| self.of(topic));
        let why = || invalid(format!("Subtopology {} reads no topic.", subtopology.subtopology_id));
        counts.max().ok_or_else(why)
    }

    fn configured(&self, subtopology: &Subtopology) -> Result<ConfiguredSubtopology, Stop> {
        let texts = |names: &[Str]| names.iter().map(Str::text).collect();
        let internal = |topics: &[TopicInfo]| topics.iter().map(|topic| self.internal(topic)).collect();
        Ok(ConfiguredSubtopology {
            tasks: self.tasks(subtopology)?,
            is_stateful: !subtopology.state_changelog_topics.is_empty(),
            source_topics: texts(&subtopology.source_topics),
            sink_topics: texts(&subtopology.repartition_sink_topics),
            repartition_topics: internal(&subtopology.repartition_source_topics),
            changelog_topics: internal(&subtopology.state_changelog_topics),
        })
    }

    fn internal(&self, topic: &TopicInfo) -> InternalTopic {
        let decided = self.decided.get(topic.name.as_str()).copied();
        InternalTopic {
            name: topic.name.text(),
            partitions: decided.or_else(|| self.of(&topic.name)).unwrap_or(topic.partitions),
            replication_factor: topic.replication_factor,
            configs: topic
                .topic_configs
                .iter()
                .map(|config| (config.key.text(), config.value.text()))
                .collect(),
        }
    }
}

/// The internal topics that there are not; those that there are must have as many partitions as they should.
fn missing_topics(
    configured: &BTreeMap<Text, ConfiguredSubtopology>,
    image: &Image,
) -> Result<Vec<CreatableTopic>, Stop> {
    let mut missing = BTreeMap::new();
    let topics =
        configured.values().flat_map(|each| each.repartition_topics.iter().chain(&each.changelog_topics));
    for topic in topics {
        let Some(there) = image.topics.by_name(&topic.name) else {
            missing.insert(&topic.name, creatable(topic));
            continue;
        };
        let has = there.partition_count() as i32;
        if has != topic.partitions {
            let (name, wanted) = (&topic.name, topic.partitions);
            return Err(incorrect(format!(
                "Existing topic {name} has different number of partitions: expected {wanted}, found {has}"
            )));
        }
    }
    Ok(missing.into_values().collect())
}

fn creatable(topic: &InternalTopic) -> CreatableTopic {
    let config = |(key, value): &(Text, Text)| CreatableTopicConfig {
        name: Str::from(key),
        value: Some(Str::from(value)),
        ..Default::default()
    };
    CreatableTopic {
        name: Str::from(&topic.name),
        num_partitions: topic.partitions,
        replication_factor: if topic.replication_factor == 0 { -1 } else { topic.replication_factor },
        configs: topic.configs.iter().map(config).collect(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
