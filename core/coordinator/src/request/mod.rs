//! Requests that one shard can answer alone, and their answers. How each says no: request/refusal.rs.
//!
//! Requests are Kafka's messages. Those that concern several groups (DescribeGroups, DeleteGroups, OffsetFetch) reach a
//! shard with its own groups only: core/api splits them by [`barnabas_base::partition_for`] and joins the answers.
//! FindCoordinator needs no shard.

mod protocols;
mod refusal;

use crate::framework::{EndTransaction, ID_BYTES_MAX, Part};
use barnabas_base::{ErrorCode, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::offset_fetch_response::OffsetFetchResponseGroup;
use barnabas_wire::messages::streams_group_topology_description_update_request::{
    TopologyDescription, TopologyDescriptionNode,
};
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    DeleteGroupsRequest, DeleteGroupsResponse, DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse, DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatRequest,
    HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    ListGroupsRequest, ListGroupsResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest,
    OffsetDeleteResponse, ShareGroupDescribeRequest, ShareGroupDescribeResponse, ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
    SyncGroupRequest, SyncGroupResponse, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};

pub(crate) use protocols::Protocols;

/// One shard's share of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    JoinGroup(JoinGroupRequest),
    SyncGroup(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    /// With topic ids, core/api has filled in the names, and has answered for the ids that it does not know.
    OffsetCommit(OffsetCommitRequest),
    /// One group of the request, in the form of version 8 on, whatever the version. `topics: None` asks for all; the
    /// names are filled in as for commits.
    OffsetFetch {
        group: OffsetFetchRequestGroup,
        require_stable: bool,
    },
    /// As for commits.
    TxnOffsetCommit(TxnOffsetCommitRequest),
    /// The shard's partition's share of a WriteTxnMarkers.
    EndTransaction(EndTransaction),
    OffsetDelete(OffsetDeleteRequest),
    ListGroups(ListGroupsRequest),
    /// The parts of a long list, each a [`Request::ListSomeGroups`].
    ListGroupsParts(ListGroupsRequest),
    /// Of these groups, those that pass.
    ListSomeGroups {
        list: ListGroupsRequest,
        ids: Vec<Text>,
    },
    DescribeGroups(DescribeGroupsRequest),
    ConsumerGroupDescribe(ConsumerGroupDescribeRequest),
    StreamsGroupHeartbeat(Box<StreamsGroupHeartbeatRequest>),
    StreamsGroupDescribe(StreamsGroupDescribeRequest),
    StreamsTopologyDescription(Box<StreamsGroupTopologyDescriptionUpdateRequest>),
    DeleteGroups(DeleteGroupsRequest),
    ShareGroupHeartbeat(ShareGroupHeartbeatRequest),
    ShareGroupDescribe(ShareGroupDescribeRequest),
    /// Which share-partitions of this group are set up.
    SharePartitions(Str),
    AlterShareGroupOffsets(AlterShareGroupOffsetsRequest),
    DeleteShareGroupOffsets(DeleteShareGroupOffsetsRequest),
}

/// One shard's share of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    OffsetCommit(OffsetCommitResponse),
    /// In the form of version 8 on, whatever the version; topics carry both name and id.
    OffsetFetch(OffsetFetchResponseGroup),
    TxnOffsetCommit(TxnOffsetCommitResponse),
    EndTransaction(ErrorCode),
    OffsetDelete(OffsetDeleteResponse),
    ListGroups(ListGroupsResponse),
    /// `authorized_operations` is left for core/api to fill in.
    DescribeGroups(DescribeGroupsResponse),
    /// Likewise.
    ConsumerGroupDescribe(ConsumerGroupDescribeResponse),
    StreamsGroupHeartbeat(Box<StreamsHeartbeat>),
    /// Likewise.
    StreamsGroupDescribe(StreamsGroupDescribeResponse),
    StreamsTopologyDescription(StreamsGroupTopologyDescriptionUpdateResponse),
    DeleteGroups(DeleteGroupsResponse),
    ShareGroupHeartbeat(ShareGroupHeartbeatResponse),
    /// `authorized_operations` is left for core/api to fill in.
    ShareGroupDescribe(ShareGroupDescribeResponse),
    /// By topic.
    SharePartitions(Result<Vec<(TopicId, Vec<i32>)>, ErrorCode>),
    AlterShareGroupOffsets(AlterShareGroupOffsetsResponse),
    DeleteShareGroupOffsets(DeleteShareGroupOffsetsResponse),
    /// The answer would take more than there is room for. These requests are to be asked instead.
    Parts(Vec<Part<Request>>),
    /// The request came too late to be heard: its connection is closed, and that is the answer.
    Close,
}

/// An answer that says nothing. As Kafka's, it has an empty list of statuses, not a null one.
pub(crate) fn empty_streams_heartbeat() -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse { status: Some(Vec::new()), ..Default::default() }
}

/// The answer to a StreamsGroupHeartbeat, with the internal topics that the broker is to create before it passes it on.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamsHeartbeat {
    pub response: StreamsGroupHeartbeatResponse,
    pub create: Vec<CreatableTopic>,
}

impl Default for StreamsHeartbeat {
    fn default() -> Self {
        Self { response: empty_streams_heartbeat(), create: Vec::new() }
    }
}

impl Request {
    /// Whether what the request says can be written into a record. It can be longer than it was on the wire if it was
    /// no UTF-8, as every byte that is none becomes three.
    pub(crate) fn is_writable(&self) -> bool {
        let fits = |text: &str| text.len() <= ID_BYTES_MAX;
        match self {
            Self::JoinGroup(request) => {
                fits(&request.group_id)
                    && fits(&request.member_id)
                    && request.group_instance_id.as_deref().is_none_or(|id| id.len() < ID_BYTES_MAX - 37)
                    && fits(&request.protocol_type)
                    && request.protocols.iter().all(|protocol| fits(&protocol.name))
            }
            Self::OffsetCommit(request) => {
                let partitions = || request.topics.iter().flat_map(|topic| &topic.partitions);
                fits(&request.group_id)
                    && request.topics.iter().all(|topic| fits(&topic.name))
                    && partitions().all(|partition| partition.committed_metadata.as_deref().is_none_or(fits))
            }
            Self::TxnOffsetCommit(request) => {
                let partitions = || request.topics.iter().flat_map(|topic| &topic.partitions);
                fits(&request.group_id)
                    && request.topics.iter().all(|topic| fits(&topic.name))
                    && partitions().all(|partition| partition.committed_metadata.as_deref().is_none_or(fits))
            }
            Self::ConsumerGroupHeartbeat(request) => {
                let names = request.subscribed_topic_names.iter().flatten();
                let texts = [&request.instance_id, &request.rack_id, &request.subscribed_topic_regex];
                fits(&request.group_id)
                    && fits(&request.member_id)
                    && texts.iter().all(|text| text.as_deref().is_none_or(fits))
                    && names.into_iter().all(|name| fits(name))
            }
            Self::StreamsGroupHeartbeat(request) => streams_fits(request),
            Self::ShareGroupHeartbeat(request) => {
                let names = request.subscribed_topic_names.iter().flatten();
                fits(&request.group_id)
                    && fits(&request.member_id)
                    && request.rack_id.as_deref().is_none_or(fits)
                    && names.into_iter().all(|name| fits(name))
            }
            Self::AlterShareGroupOffsets(request) => fits(&request.group_id),
            // These write nothing but what is in a record already.
            _ => true,
        }
    }

    /// The group that is to hold what the request says, and how many bytes that is. `None`: it brings nothing that
    /// stays.
    pub(crate) fn brings(&self) -> Option<(&str, usize)> {
        let names =
            |names: &Option<Vec<Str>>| names.iter().flatten().map(|name| name.len() + 2).sum::<usize>();
        let texts = |texts: &[&Option<Str>]| -> usize {
            texts.iter().filter_map(|text| Some(text.as_ref()?.len())).sum()
        };
        Some(match self {
            Self::JoinGroup(request) => {
                let said = request.protocols.iter().map(|each| each.name.len() + each.metadata.len());
                let who = request.member_id.len() + texts(&[&request.group_instance_id]);
                (&request.group_id, who + said.sum::<usize>())
            }
            Self::SyncGroup(request) if !request.assignments.is_empty() => {
                (&request.group_id, request.assignments.iter().map(|each| each.assignment.len()).sum())
            }
            Self::ConsumerGroupHeartbeat(request) if request.member_epoch >= 0 => {
                let said = [
                    &request.instance_id,
                    &request.rack_id,
                    &request.subscribed_topic_regex,
                    &request.server_assignor,
                ];
                let who = request.member_id.len() + texts(&said);
                (&request.group_id, who + names(&request.subscribed_topic_names))
            }
            Self::ShareGroupHeartbeat(request) if request.member_epoch >= 0 => {
                let who = request.member_id.len() + texts(&[&request.rack_id]);
                (&request.group_id, who + names(&request.subscribed_topic_names))
            }
            Self::StreamsGroupHeartbeat(request) if request.member_epoch >= 0 => {
                (&request.group_id, streams_bytes(request))
            }
            Self::StreamsTopologyDescription(request) => {
                (&request.group_id, description_bytes(&request.topology_description))
            }
            Self::OffsetCommit(request) => {
                let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
                let notes = partitions
                    .map(|each| each.committed_metadata.as_ref().map_or(0, |note| note.len()) + 256);
                (&request.group_id, notes.sum())
            }
            Self::TxnOffsetCommit(request) => {
                let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
                let notes = partitions
                    .map(|each| each.committed_metadata.as_ref().map_or(0, |note| note.len()) + 256);
                (&request.group_id, notes.sum())
            }
            _ => return None,
        })
    }

    /// Groups that may be lighter after the request.
    pub(crate) fn takes_from(&self) -> Vec<&str> {
        match self {
            Self::LeaveGroup(request) => vec![&request.group_id],
            Self::ConsumerGroupHeartbeat(request) => vec![&request.group_id],
            Self::ShareGroupHeartbeat(request) => vec![&request.group_id],
            Self::StreamsGroupHeartbeat(request) => vec![&request.group_id],
            Self::OffsetDelete(request) => vec![&request.group_id],
            Self::DeleteGroups(request) => request.groups_names.iter().map(|id| &**id).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it may come to records.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::JoinGroup(_)
            | Self::SyncGroup(_)
            | Self::ConsumerGroupHeartbeat(_)
            | Self::StreamsGroupHeartbeat(_)
            | Self::OffsetCommit(_)
            | Self::TxnOffsetCommit(_)
            | Self::EndTransaction(_)
            | Self::OffsetDelete(_)
            | Self::DeleteGroups(_)
            | Self::ShareGroupHeartbeat(_)
            | Self::AlterShareGroupOffsets(_)
            | Self::DeleteShareGroupOffsets(_) => true,
            Self::Heartbeat(_)
            | Self::LeaveGroup(_)
            | Self::OffsetFetch { .. }
            | Self::ListGroups(_)
            | Self::ListGroupsParts(_)
            | Self::ListSomeGroups { .. }
            | Self::DescribeGroups(_)
            | Self::ConsumerGroupDescribe(_)
            | Self::StreamsGroupDescribe(_)
            // A description is in no record.
            | Self::StreamsTopologyDescription(_)
            | Self::ShareGroupDescribe(_)
            | Self::SharePartitions(_) => false,
        }
    }
}

fn streams_bytes(request: &StreamsGroupHeartbeatRequest) -> usize {
    let texts = [&request.instance_id, &request.rack_id, &request.process_id];
    let texts = texts.iter().filter_map(|text| Some(text.as_ref()?.len())).sum::<usize>();
    let tags =
        request.client_tags.iter().flatten().map(|tag| tag.key.len() + tag.value.len() + 4).sum::<usize>();
    let endpoint = request.user_endpoint.as_ref().map_or(0, |endpoint| endpoint.host.len() + 2);
    let offsets = request.task_offsets.iter().chain(&request.task_end_offsets).map(Vec::len).sum::<usize>();
    let subtopologies = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let topology = subtopologies.map(|each| {
        let sources =
            each.source_topics.iter().chain(&each.repartition_sink_topics).map(|name| name.len() + 2);
        let made = each.state_changelog_topics.iter().chain(&each.repartition_source_topics);
        let made = made.map(|topic| {
            let configs = topic.topic_configs.iter().map(|config| config.key.len() + config.value.len() + 4);
            topic.name.len() + 8 + configs.sum::<usize>()
        });
        each.subtopology_id.len() + sources.sum::<usize>() + made.sum::<usize>()
    });
    request.member_id.len() + texts + tags + endpoint + 64 * offsets + topology.sum::<usize>()
}

/// As it is kept, and a little more.
fn description_bytes(description: &TopologyDescription) -> usize {
    let names = |names: &[Str]| names.iter().map(|name| name.len() + 3).sum::<usize>();
    let node = |node: &TopologyDescriptionNode| {
        let sink = node.sink_topic.as_ref().map_or(0, Str::len);
        let names = names(&node.source_topics) + names(&node.stores) + names(&node.successors);
        node.name.len() + sink + names + 12
    };
    let subtopologies = description
        .subtopologies
        .iter()
        .map(|each| each.subtopology_id.len() + each.nodes.iter().map(node).sum::<usize>() + 10);
    let stores = description.global_stores.iter().map(|each| node(&each.source) + node(&each.processor) + 1);
    subtopologies.sum::<usize>() + stores.sum::<usize>() + 10
}

fn streams_fits(request: &StreamsGroupHeartbeatRequest) -> bool {
    let fits = |text: &str| text.len() <= ID_BYTES_MAX;
    let texts = [&request.instance_id, &request.rack_id, &request.process_id];
    let tags = || request.client_tags.iter().flatten();
    // Of a topology, whether a record can hold it is seen when it is made.
    fits(&request.group_id)
        && fits(&request.member_id)
        && texts.iter().all(|text| text.as_deref().is_none_or(fits))
        && request.user_endpoint.as_ref().is_none_or(|endpoint| fits(&endpoint.host))
        && tags().all(|tag| fits(&tag.key) && fits(&tag.value))
}

impl Response {
    /// The same with words for people, where the message has a place for them at the top.
    pub(crate) fn saying(mut self, why: Option<Str>) -> Self {
        match &mut self {
            Self::AlterShareGroupOffsets(response) => response.error_message = why,
            Self::DeleteShareGroupOffsets(response) => response.error_message = why,
            Self::ConsumerGroupHeartbeat(response) => response.error_message = why,
            Self::ShareGroupHeartbeat(response) => response.error_message = why,
            Self::StreamsGroupHeartbeat(answer) => answer.response.error_message = why,
            Self::StreamsTopologyDescription(response) => response.error_message = why,
            _ => {}
        }
        self
    }
}
