//! Requests that one shard can answer alone, their answers, and how each says no.
//!
//! Requests are Kafka's messages. Those that concern several groups (DescribeGroups, DeleteGroups, OffsetFetch) reach a
//! shard with its own groups only: core/api splits them by [`barnabas_base::partition_for`] and joins the answers. FindCoordinator
//! needs no shard.

use barnabas_base::{ErrorCode, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_describe_response::DescribedGroup as DescribedConsumerGroup;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
use barnabas_wire::messages::describe_groups_response::DescribedGroup;
use barnabas_wire::messages::leave_group_response::MemberResponse;
use barnabas_wire::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::offset_fetch_response::OffsetFetchResponseGroup;
use barnabas_wire::messages::share_group_describe_response::DescribedGroup as DescribedShareGroup;
use barnabas_wire::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
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
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, SyncGroupRequest, SyncGroupResponse,
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, streams_group_describe_response as streams,
};

use crate::framework::{EndTransaction, Refusable};

/// The longest string that a message can carry.
pub(crate) const ID_BYTES_MAX: usize = i16::MAX as usize;

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
    /// One group of the request, in the form of version 8 on, whatever the version. `topics: None` asks for all; the names
    /// are filled in as for commits.
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
    DescribeGroups(DescribeGroupsRequest),
    ConsumerGroupDescribe(ConsumerGroupDescribeRequest),
    StreamsGroupHeartbeat(Box<StreamsGroupHeartbeatRequest>),
    StreamsGroupDescribe(StreamsGroupDescribeRequest),
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
    DeleteGroups(DeleteGroupsResponse),
    ShareGroupHeartbeat(ShareGroupHeartbeatResponse),
    /// `authorized_operations` is left for core/api to fill in.
    ShareGroupDescribe(ShareGroupDescribeResponse),
    /// By topic.
    SharePartitions(Result<Vec<(TopicId, Vec<i32>)>, ErrorCode>),
    AlterShareGroupOffsets(AlterShareGroupOffsetsResponse),
    DeleteShareGroupOffsets(DeleteShareGroupOffsetsResponse),
}

/// The answer to a StreamsGroupHeartbeat, with the internal topics that the broker is to create before it passes it on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamsHeartbeat {
    pub response: StreamsGroupHeartbeatResponse,
    pub create: Vec<CreatableTopic>,
}

impl StreamsHeartbeat {
    fn refused(code: i16) -> Box<Self> {
        let response = StreamsGroupHeartbeatResponse { error_code: code, ..Default::default() };
        Box::new(Self { response, create: Vec::new() })
    }
}

impl Request {
    /// The answer that says `error` and nothing else: for a shard that is not here, or a caller who may not.
    pub fn refuse(&self, error: ErrorCode) -> Response {
        let code = error.code();
        match self {
            Self::JoinGroup(request) => Response::JoinGroup(join_refused(&request.member_id, error)),
            Self::SyncGroup(_) => {
                Response::SyncGroup(SyncGroupResponse { error_code: code, ..Default::default() })
            }
            Self::Heartbeat(_) => {
                Response::Heartbeat(HeartbeatResponse { error_code: code, ..Default::default() })
            }
            Self::ConsumerGroupHeartbeat(_) => {
                Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
                    error_code: code,
                    ..Default::default()
                })
            }
            Self::ConsumerGroupDescribe(request) => {
                let groups = request.group_ids.iter().map(|group_id| DescribedConsumerGroup {
                    group_id: group_id.clone(),
                    error_code: code,
                    ..Default::default()
                });
                Response::ConsumerGroupDescribe(ConsumerGroupDescribeResponse {
                    groups: groups.collect(),
                    ..Default::default()
                })
            }
            Self::StreamsGroupHeartbeat(_) => {
                Response::StreamsGroupHeartbeat(StreamsHeartbeat::refused(code))
            }
            Self::StreamsGroupDescribe(request) => {
                let groups = request.group_ids.iter().map(|group_id| streams::DescribedGroup {
                    group_id: group_id.clone(),
                    error_code: code,
                    ..Default::default()
                });
                Response::StreamsGroupDescribe(StreamsGroupDescribeResponse {
                    groups: groups.collect(),
                    ..Default::default()
                })
            }
            Self::LeaveGroup(_) => {
                Response::LeaveGroup(LeaveGroupResponse { error_code: code, ..Default::default() })
            }
            Self::OffsetCommit(request) => Response::OffsetCommit(commit_refused(request, error)),
            Self::OffsetFetch { group, .. } => Response::OffsetFetch(OffsetFetchResponseGroup {
                group_id: group.group_id.clone(),
                error_code: code,
                ..Default::default()
            }),
            Self::TxnOffsetCommit(request) => Response::TxnOffsetCommit(txn_commit_refused(request, error)),
            Self::EndTransaction(_) => Response::EndTransaction(error),
            Self::OffsetDelete(_) => {
                Response::OffsetDelete(OffsetDeleteResponse { error_code: code, ..Default::default() })
            }
            Self::ListGroups(_) => {
                Response::ListGroups(ListGroupsResponse { error_code: code, ..Default::default() })
            }
            Self::DescribeGroups(request) => {
                let groups = request.groups.iter().map(|group_id| DescribedGroup {
                    group_id: group_id.clone(),
                    error_code: code,
                    ..Default::default()
                });
                Response::DescribeGroups(DescribeGroupsResponse {
                    groups: groups.collect(),
                    ..Default::default()
                })
            }
            Self::DeleteGroups(request) => {
                let results = request.groups_names.iter().map(|group_id| DeletableGroupResult {
                    group_id: group_id.clone(),
                    error_code: code,
                    ..Default::default()
                });
                Response::DeleteGroups(DeleteGroupsResponse {
                    results: results.collect(),
                    ..Default::default()
                })
            }
            Self::ShareGroupHeartbeat(_)
            | Self::ShareGroupDescribe(_)
            | Self::SharePartitions(_)
            | Self::AlterShareGroupOffsets(_)
            | Self::DeleteShareGroupOffsets(_) => self.refuse_share(error),
        }
    }

    fn refuse_share(&self, error: ErrorCode) -> Response {
        let error_code = error.code();
        match self {
            Self::ShareGroupDescribe(request) => {
                let groups = request.group_ids.iter().map(|group_id| DescribedShareGroup {
                    group_id: group_id.clone(),
                    error_code,
                    ..Default::default()
                });
                Response::ShareGroupDescribe(ShareGroupDescribeResponse {
                    groups: groups.collect(),
                    ..Default::default()
                })
            }
            Self::SharePartitions(_) => Response::SharePartitions(Err(error)),
            Self::AlterShareGroupOffsets(_) => {
                Response::AlterShareGroupOffsets(AlterShareGroupOffsetsResponse {
                    error_code,
                    ..Default::default()
                })
            }
            Self::DeleteShareGroupOffsets(_) => {
                Response::DeleteShareGroupOffsets(DeleteShareGroupOffsetsResponse {
                    error_code,
                    ..Default::default()
                })
            }
            _ => Response::ShareGroupHeartbeat(ShareGroupHeartbeatResponse {
                error_code,
                ..Default::default()
            }),
        }
    }

    /// Whether what the request says can be written into a record. It can be longer than it was on the wire if it was no
    /// UTF-8, as every byte that is none becomes three.
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
            | Self::DescribeGroups(_)
            | Self::ConsumerGroupDescribe(_)
            | Self::StreamsGroupDescribe(_)
            | Self::ShareGroupDescribe(_)
            | Self::SharePartitions(_) => false,
        }
    }

    /// The refusal while the shard's partition is read. A heartbeat is told that all is well, as nothing can be said against
    /// it yet; who wants to sync is told to join again, as the rebalance that it took part in is forgotten and older clients
    /// know no other retriable answer.
    ///
    /// # Source
    /// Kafka `GroupCoordinatorService.heartbeat`; for sync, `GroupCoordinator.scala` of Kafka 3.9.
    pub fn refuse_while_loading(&self) -> Response {
        match self {
            Self::Heartbeat(_) => Response::Heartbeat(HeartbeatResponse::default()),
            Self::SyncGroup(_) => self.refuse(ErrorCode::RebalanceInProgress),
            other => other.refuse(ErrorCode::CoordinatorLoadInProgress),
        }
    }
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

fn join_refused(member_id: &str, error: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        member_id: member_id.into(),
        error_code: error.code(),
        protocol_name: Some("".into()),
        ..Default::default()
    }
}

fn commit_refused(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

fn txn_commit_refused(request: &TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

impl Response {
    /// The same with words for people, where the message has a place for them at the top.
    pub(crate) fn saying(mut self, why: Option<Str>) -> Self {
        match &mut self {
            Self::AlterShareGroupOffsets(response) => response.error_message = why,
            Self::DeleteShareGroupOffsets(response) => response.error_message = why,
            _ => {}
        }
        self
    }
}

impl Refusable for Response {
    /// What was to be said before the records behind it were lost.
    fn refused(self, error: ErrorCode) -> Self {
        let code = error.code();
        match self {
            Self::JoinGroup(response) => Self::JoinGroup(join_refused(&response.member_id, error)),
            Self::SyncGroup(_) => {
                Self::SyncGroup(SyncGroupResponse { error_code: code, ..Default::default() })
            }
            Self::Heartbeat(_) => {
                Self::Heartbeat(HeartbeatResponse { error_code: code, ..Default::default() })
            }
            Self::ConsumerGroupHeartbeat(_) => Self::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
                error_code: code,
                ..Default::default()
            }),
            Self::ConsumerGroupDescribe(mut response) => {
                for group in &mut response.groups {
                    let group_id = std::mem::take(&mut group.group_id);
                    *group = DescribedConsumerGroup { group_id, error_code: code, ..Default::default() };
                }
                Self::ConsumerGroupDescribe(response)
            }
            Self::StreamsGroupHeartbeat(_) => Self::StreamsGroupHeartbeat(StreamsHeartbeat::refused(code)),
            Self::StreamsGroupDescribe(mut response) => {
                for group in &mut response.groups {
                    let group_id = std::mem::take(&mut group.group_id);
                    *group = streams::DescribedGroup { group_id, error_code: code, ..Default::default() };
                }
                Self::StreamsGroupDescribe(response)
            }
            Self::LeaveGroup(response) => Self::LeaveGroup(LeaveGroupResponse {
                error_code: code,
                members: Vec::<MemberResponse>::new(),
                ..response
            }),
            Self::OffsetCommit(mut response) => {
                let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
                partitions.filter(|part| part.error_code == 0).for_each(|part| part.error_code = code);
                Self::OffsetCommit(response)
            }
            Self::TxnOffsetCommit(mut response) => {
                let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
                partitions.filter(|part| part.error_code == 0).for_each(|part| part.error_code = code);
                Self::TxnOffsetCommit(response)
            }
            Self::EndTransaction(_) => Self::EndTransaction(error),
            // Consumers older than 3.9 do not know COORDINATOR_NOT_AVAILABLE here (Kafka
            // `GroupCoordinatorService.handleOffsetFetchException`).
            Self::OffsetFetch(response) => Self::OffsetFetch(OffsetFetchResponseGroup {
                group_id: response.group_id,
                error_code: if error == ErrorCode::CoordinatorNotAvailable {
                    ErrorCode::NotCoordinator.code()
                } else {
                    code
                },
                ..Default::default()
            }),
            Self::OffsetDelete(_) => {
                Self::OffsetDelete(OffsetDeleteResponse { error_code: code, ..Default::default() })
            }
            Self::ListGroups(_) => {
                Self::ListGroups(ListGroupsResponse { error_code: code, ..Default::default() })
            }
            Self::DescribeGroups(mut response) => {
                for group in &mut response.groups {
                    let group_id = std::mem::take(&mut group.group_id);
                    *group = DescribedGroup { group_id, error_code: code, ..Default::default() };
                }
                Self::DescribeGroups(response)
            }
            Self::DeleteGroups(mut response) => {
                let taken = response.results.iter_mut().filter(|result| result.error_code == 0);
                taken.for_each(|result| result.error_code = code);
                Self::DeleteGroups(response)
            }
            Self::ShareGroupHeartbeat(_) => Self::ShareGroupHeartbeat(ShareGroupHeartbeatResponse {
                error_code: code,
                ..Default::default()
            }),
            Self::ShareGroupDescribe(mut response) => {
                for group in &mut response.groups {
                    let group_id = std::mem::take(&mut group.group_id);
                    *group = DescribedShareGroup { group_id, error_code: code, ..Default::default() };
                }
                Self::ShareGroupDescribe(response)
            }
            Self::SharePartitions(_) => Self::SharePartitions(Err(error)),
            Self::AlterShareGroupOffsets(_) => Self::AlterShareGroupOffsets(AlterShareGroupOffsetsResponse {
                error_code: code,
                ..Default::default()
            }),
            Self::DeleteShareGroupOffsets(_) => {
                Self::DeleteShareGroupOffsets(DeleteShareGroupOffsetsResponse {
                    error_code: code,
                    ..Default::default()
                })
            }
        }
    }
}
