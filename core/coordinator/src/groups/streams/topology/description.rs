//! The description of a group's topology (KIP-1331): when a member is asked for it, and what is kept of it.
//!
//! Kafka hands descriptions to a plug-in. This is the plug-in that comes with Kafka 4.4,
//! `InMemoryTopologyDescriptionPlugin`, with bounds: one description for each group, no longer than
//! `group.member.metadata.max.bytes`, and counted into what the group and all groups may hold (shard/memory). It is in
//! no record: after a move of the coordinator a member is asked again. Kafka's plug-in has lost the description then,
//! and its group is not asked again.
//!
//! A description is kept as the bytes that an answer carries: nodes as structures take up to 25 times as much.
//!
//! # Source
//! Kafka 4.4 `StreamsGroupTopologyDescriptionManager`, `StreamsGroupTopologyDescriptionBackoff`,
//! `StreamsGroupTopologyDescriptionConverter`, `GroupMetadataManager.validateStreamsGroupTopologyDescriptionUpdate`.

use barnabas_base::{DurationMs, ErrorCode, MonotonicMs, Set};
use barnabas_wire::messages::streams_group_describe_response as response;
use barnabas_wire::messages::streams_group_topology_description_update_request as request;
use barnabas_wire::{Reader, Str, Struct, Writer};
use bytes::Bytes;

use crate::framework::part;
use crate::groups::reconciled::Refused;

/// How long no other member is asked: this long at first, then twice as long each time. Kafka adds up to a fifth by
/// chance.
const FIRST_WAIT: DurationMs = DurationMs(30_000);
const LONGEST_WAIT: DurationMs = DurationMs(3_600_000);

/// The version of StreamsGroupDescribe that has descriptions.
const DESCRIBED_IN: i16 = 1;

/// Memory that a kept description may take while it is read, beyond its bytes.
const READ_BYTES_MAX: usize = 64 << 20;

const SOURCE: i8 = 1;
const PROCESSOR: i8 = 2;
const SINK: i8 = 3;

/// What is known of a group's description.
#[derive(Debug, Default)]
pub(crate) struct Description {
    kept: Option<Kept>,
    /// Of the topology whose description was refused for good.
    refused_epoch: Option<i32>,
    asked: Option<Asked>,
}

#[derive(Debug, PartialEq, Eq)]
struct Kept {
    topology_epoch: i32,
    /// As StreamsGroupDescribe carries it.
    bytes: Bytes,
    /// What its structures take once it is read.
    structures: usize,
}

#[derive(Debug)]
struct Asked {
    topology_epoch: i32,
    times: u32,
    next: MonotonicMs,
}

/// What StreamsGroupDescribe says of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    NotStored = 1,
    Error = 2,
    Available = 3,
}

impl Description {
    pub fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes.len())
    }

    /// What it takes in an answer, while that is made and written.
    pub fn shown_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| part::taken(kept.bytes.len()) + kept.structures)
    }

    fn bytes_of(&self, topology_epoch: i32) -> Option<&Bytes> {
        let kept = self.kept.as_ref().filter(|kept| kept.topology_epoch == topology_epoch);
        kept.map(|kept| &kept.bytes)
    }

    /// Whether a member is to be asked now; if so, the next one is asked later.
    pub fn ask(&mut self, topology_epoch: i32, now: MonotonicMs) -> bool {
        if self.bytes_of(topology_epoch).is_some() || self.refused_epoch == Some(topology_epoch) {
            return false;
        }
        let last = self.asked.as_ref().filter(|asked| asked.topology_epoch == topology_epoch);
        if last.is_some_and(|asked| asked.next > now) {
            return false;
        }
        let times = last.map_or(0, |asked| asked.times);
        let wait = FIRST_WAIT.0.saturating_mul(1 << times.min(16)).min(LONGEST_WAIT.0);
        let next = now.plus(DurationMs(wait));
        self.asked = Some(Asked { topology_epoch, times: times.saturating_add(1), next });
        true
    }

    /// Keeps a description in the place of an earlier one. `most`: the bytes that it may have.
    ///
    /// # Errors
    /// INVALID_REQUEST for what is no description; STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED for one that is too
    /// long: no member is asked for it again.
    pub fn keep(
        &mut self,
        topology_epoch: i32,
        said: &request::TopologyDescription,
        most: usize,
    ) -> Result<(), Refused> {
        let shown = shown(said)?;
        let mut writer = Writer::new();
        if let Err(error) = shown.write(&mut writer, DESCRIBED_IN) {
            return Err(Refused::new(ErrorCode::InvalidRequest, error.to_string()));
        }
        // A copy of the right size, without the writer's spare room.
        let bytes = Bytes::copy_from_slice(&writer.finish().into_bytes());
        let length = bytes.len();
        if length > most {
            self.refused_epoch = Some(topology_epoch);
            let why = format!(
                "The topology description has {length} bytes; group.member.metadata.max.bytes allows {most}."
            );
            return Err(Refused::new(ErrorCode::StreamsTopologyDescriptionUpdateFailed, why));
        }
        *self = Self {
            kept: Some(Kept { topology_epoch, bytes, structures: structures(&shown) }),
            ..Self::default()
        };
        Ok(())
    }

    /// Adds the description of this topology to what is shown of a group, or why there is none.
    pub fn show(&self, topology_epoch: i32, group: &mut response::DescribedGroup) {
        let read = self.bytes_of(topology_epoch).map(|bytes| {
            let mut reader = Reader::with_memory_max(bytes.clone(), READ_BYTES_MAX);
            response::TopologyDescription::read(&mut reader, DESCRIBED_IN)
        });
        let status = match read {
            None => Status::NotStored,
            Some(Err(_)) => Status::Error,
            Some(Ok(description)) => {
                group.topology_description = Some(description);
                Status::Available
            }
        };
        group.topology_description_status = status as i8;
    }
}

/// A description as it is shown: of each node what is its type's, each name once.
fn shown(said: &request::TopologyDescription) -> Result<response::TopologyDescription, Refused> {
    let mut shown = response::TopologyDescription::default();
    for subtopology in &said.subtopologies {
        shown.subtopologies.push(response::TopologyDescriptionSubtopology {
            subtopology_id: subtopology.subtopology_id.clone(),
            nodes: subtopology.nodes.iter().map(node).collect::<Result<_, _>>()?,
            ..Default::default()
        });
    }
    for store in &said.global_stores {
        let (source, processor) = (node(&store.source)?, node(&store.processor)?);
        if source.node_type != SOURCE || processor.node_type != PROCESSOR {
            let why = "Global store must be composed of a source and a processor node.";
            return Err(Refused::new(ErrorCode::InvalidRequest, why));
        }
        shown.global_stores.push(response::TopologyDescriptionGlobalStore {
            source,
            processor,
            ..Default::default()
        });
    }
    Ok(shown)
}

fn node(said: &request::TopologyDescriptionNode) -> Result<response::TopologyDescriptionNode, Refused> {
    let mut shown = response::TopologyDescriptionNode {
        name: said.name.clone(),
        node_type: said.node_type,
        successors: once(&said.successors),
        ..Default::default()
    };
    match said.node_type {
        SOURCE => shown.source_topics = once(&said.source_topics),
        PROCESSOR => shown.stores = once(&said.stores),
        SINK => shown.sink_topic = said.sink_topic.clone(),
        other => {
            let why = format!("Unknown topology node type: {other}");
            return Err(Refused::new(ErrorCode::InvalidRequest, why));
        }
    }
    Ok(shown)
}

fn structures(shown: &response::TopologyDescription) -> usize {
    let of_subtopologies = shown.subtopologies.iter().flat_map(|each| &each.nodes);
    let of_stores = shown.global_stores.iter().flat_map(|each| [&each.source, &each.processor]);
    let nodes = of_subtopologies.chain(of_stores).map(|node| {
        let names = node.source_topics.len() + node.stores.len() + node.successors.len();
        size_of::<response::TopologyDescriptionNode>() + names * size_of::<Str>()
    });
    nodes.sum::<usize>()
        + shown.subtopologies.len() * size_of::<response::TopologyDescriptionSubtopology>()
        + shown.global_stores.len() * size_of::<response::TopologyDescriptionGlobalStore>()
}

fn once(names: &[Str]) -> Vec<Str> {
    let mut seen: Set<&Str> = Set::default();
    names.iter().filter(|name| seen.insert(name)).cloned().collect()
}

#[cfg(test)]
mod tests;
