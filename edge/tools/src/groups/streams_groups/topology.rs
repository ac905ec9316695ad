//! A streams group as its coordinator describes it, and which topics its topology reads and owns.

use crate::groups::description::{Partition, coordinator};
use crate::groups::reset::Plan;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, Committed, Coordinated, check};
use barnabas_wire::messages::streams_group_describe_response::{DescribedGroup, Subtopology, TaskIds};
use barnabas_wire::messages::{StreamsGroupDescribeRequest, StreamsGroupDescribeResponse};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// The group, and its coordinator as `host:port (id)`.
///
/// # Errors
/// The coordinator refuses: the group is not there, or of another kind.
pub async fn described(cluster: &mut Cluster, group: &str) -> Result<(DescribedGroup, String), ClientError> {
    let group_ids = vec![group.into()];
    ask(cluster, group, StreamsGroupDescribeRequest { group_ids, ..Default::default() }).await
}

/// The group with how its application describes its topology (KIP-1331).
///
/// # Errors
/// As [`described`]; the broker is older than Kafka 4.4.
pub async fn with_description(cluster: &mut Cluster, group: &str) -> Result<DescribedGroup, ClientError> {
    let group_ids = vec![group.into()];
    let request =
        StreamsGroupDescribeRequest { group_ids, include_topology_description: true, ..Default::default() };
    Ok(ask(cluster, group, request).await?.0)
}

async fn ask(
    cluster: &mut Cluster,
    group: &str,
    request: StreamsGroupDescribeRequest,
) -> Result<(DescribedGroup, String), ClientError> {
    let code =
        |answer: &StreamsGroupDescribeResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (node, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let missing = || ClientError::refused(group, ErrorCode::GroupIdNotFound.code(), None);
    let told = answer.groups.into_iter().next().ok_or_else(missing)?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    // Kafka's tool has one blank here, where its tool for consumers has two.
    let at = coordinator(cluster, node)?.replace("  (", " (");
    Ok((told, at))
}

fn subtopologies(told: &DescribedGroup) -> impl Iterator<Item = &Subtopology> {
    told.topology.iter().flat_map(|topology| topology.subtopologies.iter().flatten())
}

/// The topics that the topology reads and that others write.
pub fn input_topics(told: &DescribedGroup) -> BTreeSet<String> {
    subtopologies(told).flat_map(|part| part.source_topics.iter().map(ToString::to_string)).collect()
}

/// All topics that the topology reads: the input topics, and those between its parts.
pub fn source_topics(told: &DescribedGroup) -> BTreeSet<String> {
    let between = subtopologies(told).flat_map(|part| &part.repartition_source_topics);
    let mut topics = input_topics(told);
    topics.extend(between.map(|topic| topic.name.to_string()));
    topics
}

/// The topics that the topology made: between its parts, and its stores' changelogs. The second list: those that are
/// not named as such topics are.
pub fn internal_topics(told: &DescribedGroup) -> (Vec<String>, Vec<String>) {
    let inputs = input_topics(told);
    let own = subtopologies(told)
        .flat_map(|part| part.repartition_source_topics.iter().chain(&part.state_changelog_topics));
    let own: BTreeSet<String> =
        own.map(|topic| topic.name.to_string()).filter(|topic| !inputs.contains(topic)).collect();
    own.into_iter().partition(|topic| is_internal_name(topic, &told.group_id))
}

/// Whether a topic is named as Kafka Streams names the internal topics of `application`.
pub fn is_internal_name(topic: &str, application: &str) -> bool {
    let is_its_own = topic.strip_prefix(application).is_some_and(|rest| rest.starts_with('-'));
    let suffixes =
        ["-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic"];
    let joined = Regex::new(r"^.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic$");
    is_its_own
        && (suffixes.iter().any(|suffix| topic.ends_with(suffix))
            || joined.expect("a sound expression").is_match(topic))
}

/// The partitions that tasks read.
pub fn partitions_of(told: &DescribedGroup, tasks: &[TaskIds]) -> BTreeSet<Partition> {
    let of_task = |task: &TaskIds| {
        let parts = subtopologies(told).filter(|part| part.subtopology_id == task.subtopology_id);
        let topics = parts.flat_map(|part| {
            let between = part.repartition_source_topics.iter().map(|topic| topic.name.to_string());
            part.source_topics.iter().map(ToString::to_string).chain(between).collect::<Vec<_>>()
        });
        topics
            .flat_map(|topic| task.partitions.iter().map(move |number| (topic.clone(), *number)))
            .collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of_task).collect()
}

/// The committed offsets of these topics.
pub fn committed_of(committed: &BTreeMap<Partition, Committed>, topics: &BTreeSet<String>) -> Plan {
    let of = committed.iter().filter(|(partition, _)| topics.contains(&partition.0));
    of.map(|(partition, committed)| (partition.clone(), committed.offset)).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use barnabas_wire::messages::streams_group_describe_response::{TopicInfo, Topology};

    /// Two parts with a topic between them and a store.
    pub fn group() -> DescribedGroup {
        let topic = |name: &str| TopicInfo { name: name.into(), ..Default::default() };
        let first = Subtopology {
            subtopology_id: "0".into(),
            source_topics: vec!["lines".into()],
            ..Default::default()
        };
        let second = Subtopology {
            subtopology_id: "1".into(),
            repartition_source_topics: vec![topic("app-words-repartition")],
            state_changelog_topics: vec![topic("app-counts-changelog"), topic("elsewhere")],
            ..Default::default()
        };
        let topology = Topology { epoch: 3, subtopologies: Some(vec![first, second]), ..Default::default() };
        DescribedGroup {
            group_id: "app".into(),
            group_state: "Stable".into(),
            topology: Some(topology),
            ..Default::default()
        }
    }

    #[test]
    fn topics_are_told_apart_by_the_topology() {
        let group = group();
        assert_eq!(input_topics(&group).into_iter().collect::<Vec<_>>(), ["lines"]);
        assert_eq!(source_topics(&group).into_iter().collect::<Vec<_>>(), ["app-words-repartition", "lines"]);
        let (own, misnamed) = internal_topics(&group);
        assert_eq!(own, ["app-counts-changelog", "app-words-repartition"]);
        assert_eq!(misnamed, ["elsewhere"]);
    }

    #[test]
    fn internal_topics_are_known_by_their_names() {
        for (topic, is_internal) in [
            ("app-store-changelog", true),
            ("app-x-repartition", true),
            ("app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000003-topic", true),
            ("app-x-subscription-response-topic", true),
            ("app-output", false),
            ("apple-store-changelog", false),
            ("other-store-changelog", false),
        ] {
            assert_eq!(is_internal_name(topic, "app"), is_internal, "{topic}");
        }
    }

    #[test]
    fn tasks_read_the_topics_of_their_subtopology() {
        let task = |id: &str, partitions: &[i32]| TaskIds {
            subtopology_id: id.into(),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let read = partitions_of(&group(), &[task("0", &[1]), task("1", &[0])]);
        let expected = [("app-words-repartition".to_owned(), 0), ("lines".to_owned(), 1)];
        assert_eq!(read.into_iter().collect::<Vec<_>>(), expected);
    }
}
