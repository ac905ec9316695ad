//! Which member serves which partitions, for applications that route queries to each other.
//!
//! # Source
//! Kafka 4.4 `EndpointToPartitionsManager`, `StreamsGroup.buildEndpointToPartitions`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::Text;
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::streams_group_heartbeat_response::{
    Endpoint, EndpointToPartitions, TopicPartition,
};

use super::group::StreamsGroup;
use super::topology::ConfiguredSubtopology;

/// One entry for each member that can be reached.
pub(super) fn endpoints(group: &StreamsGroup, image: &Image) -> Vec<EndpointToPartitions> {
    let none = BTreeMap::new();
    let configured = group.own.configured.as_ref().and_then(|configured| configured.subtopologies.as_ref());
    let subtopologies = configured.unwrap_or(&none);
    let members = group.members().values().filter_map(|member| {
        let endpoint = member.own.endpoint.as_ref()?;
        let active = member.assigned.active.iter().map(|(id, parts)| (id, parts.keys().copied().collect()));
        let standby = member.assigned.standby.iter().map(|(id, parts)| (id, parts.clone()));
        Some(EndpointToPartitions {
            user_endpoint: Endpoint {
                host: Str::from(&endpoint.host),
                port: endpoint.port,
                ..Default::default()
            },
            active_partitions: partitions(active, subtopologies, image),
            standby_partitions: partitions(standby, subtopologies, image),
            ..Default::default()
        })
    });
    members.collect()
}

/// The partitions that tasks read: those of every source that there are.
fn partitions<'a>(
    tasks: impl Iterator<Item = (&'a Text, BTreeSet<i32>)>,
    subtopologies: &BTreeMap<Text, ConfiguredSubtopology>,
    image: &Image,
) -> Vec<TopicPartition> {
    let mut all = Vec::new();
    for (id, partitions) in tasks {
        let Some(subtopology) = subtopologies.get(id) else { continue };
        let repartition = subtopology.repartition_topics.iter().map(|topic| &topic.name);
        for name in subtopology.source_topics.iter().chain(repartition) {
            let count = image.topics.by_name(name).map_or(0, |topic| topic.partition_count() as i32);
            all.push(TopicPartition {
                topic: Str::from(name),
                partitions: partitions.range(..count).copied().collect(),
                ..Default::default()
            });
        }
    }
    all
}
