use barnabas_base::Uuid;
use barnabas_metadata::{Delta, Image};
use barnabas_wire::messages::streams_group_topology_value::{CopartitionGroup, TopicConfig};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, StreamsGroupTopologyValue, TopicRecord};

use super::*;

fn image(topics: &[(&str, i32)]) -> Image {
    let mut delta = Delta::new(Image::default());
    for (number, (name, partitions)) in topics.iter().enumerate() {
        let topic_id = Uuid([number as u8 + 1; 16]);
        let topic = TopicRecord { name: (*name).into(), topic_id, ..Default::default() };
        delta.replay(&MetadataRecord::Topic(topic)).expect("a topic");
        for partition_id in 0..*partitions {
            let partition =
                PartitionRecord { partition_id, topic_id, replicas: vec![1], ..Default::default() };
            delta.replay(&MetadataRecord::Partition(partition)).expect("a partition");
        }
    }
    delta.apply().0
}

fn info(name: &str, partitions: i32) -> TopicInfo {
    TopicInfo { name: name.into(), partitions, ..Default::default() }
}

fn reads(id: &str, sources: &[&str]) -> Subtopology {
    let source_topics = sources.iter().map(|name| Str::from(*name)).collect();
    Subtopology { subtopology_id: id.into(), source_topics, ..Default::default() }
}

fn topology(subtopologies: Vec<Subtopology>) -> Topology {
    Topology::new(StreamsGroupTopologyValue { subtopologies, ..Default::default() })
}

fn shown(subtopologies: Vec<Subtopology>, topics: &[(&str, i32)]) -> String {
    match configure(&topology(subtopologies), &image(topics)) {
        Err(refused) => format!("{}: {}", refused.code.name(), refused.why),
        Ok(configured) => {
            let tasks =
                configured.subtopologies.iter().flatten().map(|(id, each)| format!("{id}={}", each.tasks));
            let missing =
                configured.missing.iter().map(|topic| format!("{}/{}", topic.name, topic.num_partitions));
            let (tasks, missing): (Vec<String>, Vec<String>) = (tasks.collect(), missing.collect());
            let obstacle = configured.obstacle.map_or(String::new(), |it| format!(" {:?}", it.code));
            format!("{} missing {}{obstacle}", tasks.join(","), missing.join(","))
        }
    }
}

/// Reads `t`, counts by another key, keeps the counts.
fn word_count() -> Vec<Subtopology> {
    let first = Subtopology { repartition_sink_topics: vec!["r".into()], ..reads("0", &["t"]) };
    let second = Subtopology {
        repartition_source_topics: vec![info("r", 0)],
        state_changelog_topics: vec![info("c", 0)],
        ..reads("1", &[])
    };
    vec![first, second]
}

#[test]
fn internal_topics_are_as_wide_as_what_they_come_from() {
    let missing = "0=4,1=4 missing c/4,r/4 MissingInternalTopics";
    assert_eq!(shown(word_count(), &[("t", 4)]), missing);
    assert_eq!(shown(word_count(), &[("t", 4), ("r", 4), ("c", 4)]), "0=4,1=4 missing ");
    assert_eq!(shown(word_count(), &[]), " missing  MissingSourceTopics");
    assert_eq!(shown(word_count(), &[("t", 4), ("c", 2)]), " missing  IncorrectlyPartitionedTopics");
}

#[test]
fn a_repartition_topic_may_say_how_wide_it_is() {
    let mut topology = word_count();
    topology[1].repartition_source_topics[0].partitions = 7;
    assert_eq!(shown(topology, &[("t", 4)]), "0=4,1=7 missing c/7,r/7 MissingInternalTopics");
}

#[test]
fn widths_are_found_through_a_chain_of_repartition_topics_in_any_order() {
    let last = Subtopology { repartition_source_topics: vec![info("s", 0)], ..reads("0", &[]) };
    let middle = Subtopology {
        repartition_source_topics: vec![info("r", 0)],
        repartition_sink_topics: vec!["s".into()],
        ..reads("1", &[])
    };
    let first = Subtopology { repartition_sink_topics: vec!["r".into()], ..reads("2", &["t", "u"]) };
    let all = vec![last, middle, first];
    assert_eq!(shown(all, &[("t", 2), ("u", 5)]), "0=5,1=5,2=5 missing r/5,s/5 MissingInternalTopics");
}

#[test]
fn cyclic_and_unwritten_topics_have_no_partition_count() {
    let circle = |id: &str, from: &str, to: &str| Subtopology {
        repartition_source_topics: vec![info(from, 0)],
        repartition_sink_topics: vec![to.into()],
        ..reads(id, &[])
    };
    let said = shown(vec![circle("0", "r", "s"), circle("1", "s", "r")], &[]);
    assert_eq!(
        said,
        "STREAMS_INVALID_TOPOLOGY: Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot be resolved."
    );
    let lonely = Subtopology { repartition_source_topics: vec![info("r", 0)], ..reads("0", &[]) };
    assert_eq!(
        shown(vec![lonely], &[]),
        "STREAMS_INVALID_TOPOLOGY: Failed to compute number of partitions for all repartition topics, because a repartition source topic is never used as a sink topic."
    );
    assert_eq!(shown(vec![reads("0", &[])], &[]), "STREAMS_INVALID_TOPOLOGY: Subtopology 0 reads no topic.");
}

fn join(sources: &[i16], internal: &[i16]) -> Vec<CopartitionGroup> {
    vec![CopartitionGroup {
        source_topics: sources.to_vec(),
        repartition_source_topics: internal.to_vec(),
        ..Default::default()
    }]
}

#[test]
fn copartitioned_topics_agree() {
    let both = || vec![Subtopology { copartition_groups: join(&[0, 1], &[]), ..reads("0", &["t", "u"]) }];
    assert_eq!(shown(both(), &[("t", 2), ("u", 2)]), "0=2 missing ");
    assert_eq!(shown(both(), &[("t", 2), ("u", 3)]), " missing  IncorrectlyPartitionedTopics");
    let stranger = vec![Subtopology { copartition_groups: join(&[5], &[]), ..reads("0", &["t"]) }];
    let said = shown(stranger, &[("t", 2)]);
    assert_eq!(said, "STREAMS_INVALID_TOPOLOGY: A copartition group names a topic that is not there.");
}

#[test]
fn a_repartition_topic_is_as_wide_as_what_it_is_joined_with() {
    let topology = |fixed: i32| {
        let writes = Subtopology { repartition_sink_topics: vec!["r".into()], ..reads("0", &["t"]) };
        let joins = Subtopology {
            repartition_source_topics: vec![info("r", fixed)],
            copartition_groups: join(&[0], &[0]),
            ..reads("1", &["u"])
        };
        vec![writes, joins]
    };
    let topics = [("t", 2), ("u", 6)];
    assert_eq!(shown(topology(0), &topics), "0=2,1=6 missing r/6 MissingInternalTopics");
    assert_eq!(shown(topology(6), &topics), "0=2,1=6 missing r/6 MissingInternalTopics");
    assert_eq!(shown(topology(4), &topics), " missing  IncorrectlyPartitionedTopics");
}

#[test]
fn two_repartition_topics_are_as_wide_as_the_wider_or_the_fixed_one() {
    let topology = |r: i32, s: i32| {
        let first = Subtopology { repartition_sink_topics: vec!["r".into()], ..reads("0", &["t"]) };
        let second = Subtopology { repartition_sink_topics: vec!["s".into()], ..reads("1", &["u"]) };
        let joins = Subtopology {
            repartition_source_topics: vec![info("r", r), info("s", s)],
            copartition_groups: join(&[], &[0, 1]),
            ..reads("2", &[])
        };
        vec![first, second, joins]
    };
    let topics = [("t", 2), ("u", 6)];
    let missing = |count| format!("0=2,1=6,2={count} missing r/{count},s/{count} MissingInternalTopics");
    assert_eq!(shown(topology(0, 0), &topics), missing(6));
    assert_eq!(shown(topology(3, 0), &topics), missing(3));
    assert_eq!(shown(topology(3, 4), &topics), " missing  IncorrectlyPartitionedTopics");
}

#[test]
fn what_is_to_be_created_is_as_the_topology_says() {
    let mut all = word_count();
    let config = TopicConfig { key: "cleanup.policy".into(), value: "compact".into(), ..Default::default() };
    all[1].state_changelog_topics[0].topic_configs = vec![config];
    all[1].state_changelog_topics[0].replication_factor = 3;
    let configured = configure(&topology(all), &image(&[("t", 1)])).expect("configured");
    let [changelog, repartition] = &configured.missing[..] else { panic!("two topics") };
    assert_eq!((changelog.replication_factor, repartition.replication_factor), (3, -1));
    assert_eq!(changelog.configs[0].value.as_deref(), Some("compact"));
    assert!(repartition.configs.is_empty());
}

/// A table that is read from its own changelog has no other one.
#[test]
fn a_source_that_is_its_own_changelog_is_not_made() {
    let table = Subtopology { state_changelog_topics: vec![info("t", 0)], ..reads("0", &["t"]) };
    assert_eq!(shown(vec![table], &[("t", 3)]), "0=3 missing ");
}
