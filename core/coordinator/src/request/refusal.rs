//! How each request says no: from a request, or from an answer whose records were lost, to the answer that carries an
//! error alone.
//!
//! Most answers have one place for an error, at their top ([`AtTop`]), or one for each group ([`ByGroup`]); what each
//! type is like stands in a list below. The few others are worded by hand. When to refuse, and with which error, others
//! decide.

use super::{Request, Response, StreamsHeartbeat};
use crate::framework::Refusable;
use barnabas_base::ErrorCode;
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_describe_response::DescribedGroup as DescribedConsumerGroup;
use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
use barnabas_wire::messages::describe_groups_response::DescribedGroup;
use barnabas_wire::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use barnabas_wire::messages::offset_fetch_response::OffsetFetchResponseGroup;
use barnabas_wire::messages::share_group_describe_response::DescribedGroup as DescribedShareGroup;
use barnabas_wire::messages::streams_group_describe_response::DescribedGroup as DescribedStreamsGroup;
use barnabas_wire::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use barnabas_wire::messages::{
    AlterShareGroupOffsetsResponse, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse,
    DeleteGroupsResponse, DeleteShareGroupOffsetsResponse, DescribeGroupsResponse, HeartbeatResponse,
    JoinGroupResponse, LeaveGroupResponse, ListGroupsResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetDeleteResponse, ShareGroupDescribeResponse, ShareGroupHeartbeatResponse,
    StreamsGroupDescribeResponse, StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateResponse, SyncGroupResponse, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};

/// An answer with one place for an error.
trait AtTop: Default {
    fn code(&mut self) -> &mut i16;
}

macro_rules! at_top {
    ($($response:ty),* $(,)?) => {
        $(impl AtTop for $response {
            fn code(&mut self) -> &mut i16 {
                &mut self.error_code
            }
        })*
    };
}
at_top!(
    AlterShareGroupOffsetsResponse,
    ConsumerGroupHeartbeatResponse,
    DeleteShareGroupOffsetsResponse,
    HeartbeatResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetDeleteResponse,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateResponse,
    SyncGroupResponse,
);

impl AtTop for StreamsHeartbeat {
    fn code(&mut self) -> &mut i16 {
        self.response.code()
    }
}

fn at_top<R: AtTop>(error: ErrorCode) -> R {
    let mut response = R::default();
    *response.code() = error.code();
    response
}

/// An answer with a place for an error in each group.
trait ByGroup: Default {
    type Group: Default;
    fn groups(&mut self) -> &mut Vec<Self::Group>;
    fn id_and_code(group: &mut Self::Group) -> (&mut Str, &mut i16);
}

macro_rules! by_group {
    ($($response:ty, $groups:ident: $group:ty;)*) => {
        $(impl ByGroup for $response {
            type Group = $group;
            fn groups(&mut self) -> &mut Vec<$group> {
                &mut self.$groups
            }
            fn id_and_code(group: &mut $group) -> (&mut Str, &mut i16) {
                (&mut group.group_id, &mut group.error_code)
            }
        })*
    };
}
by_group! {
    ConsumerGroupDescribeResponse, groups: DescribedConsumerGroup;
    DeleteGroupsResponse, results: DeletableGroupResult;
    DescribeGroupsResponse, groups: DescribedGroup;
    ShareGroupDescribeResponse, groups: DescribedShareGroup;
    StreamsGroupDescribeResponse, groups: DescribedStreamsGroup;
}

fn group<R: ByGroup>(group_id: Str, error: ErrorCode) -> R::Group {
    let mut group = R::Group::default();
    let (id, code) = R::id_and_code(&mut group);
    (*id, *code) = (group_id, error.code());
    group
}

fn by_group<R: ByGroup>(group_ids: &[Str], error: ErrorCode) -> R {
    let mut response = R::default();
    *response.groups() = group_ids.iter().map(|group_id| group::<R>(group_id.clone(), error)).collect();
    response
}

/// The same groups once more, with nothing but the error in each.
fn again<R: ByGroup>(mut response: R, error: ErrorCode) -> R {
    for one in response.groups() {
        let group_id = std::mem::take(R::id_and_code(one).0);
        *one = group::<R>(group_id, error);
    }
    response
}

impl Request {
    /// The answer that says `error` and nothing else: for a shard that is not here, or a caller who may not.
    pub fn refuse(&self, error: ErrorCode) -> Response {
        match self {
            Self::JoinGroup(request) => Response::JoinGroup(join(&request.member_id, error)),
            Self::SyncGroup(_) => Response::SyncGroup(at_top(error)),
            Self::Heartbeat(_) => Response::Heartbeat(at_top(error)),
            Self::LeaveGroup(_) => Response::LeaveGroup(at_top(error)),
            Self::ConsumerGroupHeartbeat(_) => Response::ConsumerGroupHeartbeat(at_top(error)),
            Self::StreamsGroupHeartbeat(_) => Response::StreamsGroupHeartbeat(Box::new(at_top(error))),
            Self::ShareGroupHeartbeat(_) => Response::ShareGroupHeartbeat(at_top(error)),
            Self::OffsetCommit(request) => Response::OffsetCommit(commit(request, error)),
            Self::OffsetFetch { group, .. } => Response::OffsetFetch(fetch(group.group_id.clone(), error)),
            Self::TxnOffsetCommit(request) => Response::TxnOffsetCommit(txn_commit(request, error)),
            Self::EndTransaction(_) => Response::EndTransaction(error),
            Self::OffsetDelete(_) => Response::OffsetDelete(at_top(error)),
            Self::ListGroups(_) | Self::ListGroupsParts(_) | Self::ListSomeGroups { .. } => {
                Response::ListGroups(at_top(error))
            }
            Self::DescribeGroups(request) => Response::DescribeGroups(by_group(&request.groups, error)),
            Self::ConsumerGroupDescribe(request) => {
                Response::ConsumerGroupDescribe(by_group(&request.group_ids, error))
            }
            Self::StreamsGroupDescribe(request) => {
                Response::StreamsGroupDescribe(by_group(&request.group_ids, error))
            }
            Self::StreamsTopologyDescription(_) => Response::StreamsTopologyDescription(at_top(error)),
            Self::ShareGroupDescribe(request) => {
                Response::ShareGroupDescribe(by_group(&request.group_ids, error))
            }
            Self::DeleteGroups(request) => Response::DeleteGroups(by_group(&request.groups_names, error)),
            Self::SharePartitions(_) => Response::SharePartitions(Err(error)),
            Self::AlterShareGroupOffsets(_) => Response::AlterShareGroupOffsets(at_top(error)),
            Self::DeleteShareGroupOffsets(_) => Response::DeleteShareGroupOffsets(at_top(error)),
        }
    }

    /// The answer while the shard's partition is loaded. A heartbeat succeeds, as nothing speaks against it yet.
    /// SyncGroup gets REBALANCE_IN_PROGRESS, as the rebalance is forgotten and older clients know no other retriable
    /// error.
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

impl Refusable for Response {
    /// What was to be said before the records behind it were lost.
    fn refused(self, error: ErrorCode) -> Self {
        match self {
            Self::JoinGroup(response) => Self::JoinGroup(join(&response.member_id, error)),
            Self::SyncGroup(_) => Self::SyncGroup(at_top(error)),
            Self::Heartbeat(_) => Self::Heartbeat(at_top(error)),
            Self::LeaveGroup(_) => Self::LeaveGroup(at_top(error)),
            Self::ConsumerGroupHeartbeat(_) => Self::ConsumerGroupHeartbeat(at_top(error)),
            Self::StreamsGroupHeartbeat(_) => Self::StreamsGroupHeartbeat(Box::new(at_top(error))),
            Self::ShareGroupHeartbeat(_) => Self::ShareGroupHeartbeat(at_top(error)),
            Self::OffsetCommit(mut response) => {
                let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
                taken(partitions.map(|partition| &mut partition.error_code), error);
                Self::OffsetCommit(response)
            }
            // Consumers older than 3.9 do not know COORDINATOR_NOT_AVAILABLE here (Kafka
            // `GroupCoordinatorService.handleOffsetFetchException`).
            Self::OffsetFetch(response) if error == ErrorCode::CoordinatorNotAvailable => {
                Self::OffsetFetch(fetch(response.group_id, ErrorCode::NotCoordinator))
            }
            Self::OffsetFetch(response) => Self::OffsetFetch(fetch(response.group_id, error)),
            Self::TxnOffsetCommit(mut response) => {
                let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
                taken(partitions.map(|partition| &mut partition.error_code), error);
                Self::TxnOffsetCommit(response)
            }
            Self::EndTransaction(_) => Self::EndTransaction(error),
            Self::OffsetDelete(_) => Self::OffsetDelete(at_top(error)),
            Self::ListGroups(_) => Self::ListGroups(at_top(error)),
            Self::DescribeGroups(response) => Self::DescribeGroups(again(response, error)),
            Self::ConsumerGroupDescribe(response) => Self::ConsumerGroupDescribe(again(response, error)),
            Self::StreamsGroupDescribe(response) => Self::StreamsGroupDescribe(again(response, error)),
            Self::StreamsTopologyDescription(_) => Self::StreamsTopologyDescription(at_top(error)),
            Self::ShareGroupDescribe(response) => Self::ShareGroupDescribe(again(response, error)),
            Self::DeleteGroups(mut response) => {
                taken(response.results.iter_mut().map(|result| &mut result.error_code), error);
                Self::DeleteGroups(response)
            }
            Self::SharePartitions(_) => Self::SharePartitions(Err(error)),
            Self::AlterShareGroupOffsets(_) => Self::AlterShareGroupOffsets(at_top(error)),
            Self::DeleteShareGroupOffsets(_) => Self::DeleteShareGroupOffsets(at_top(error)),
            // No answer was built.
            Self::Parts(parts) => Self::Parts(parts),
            Self::Close => Self::Close,
        }
    }
}

/// What was taken is refused after all; what was refused before stays so.
fn taken<'a>(codes: impl Iterator<Item = &'a mut i16>, error: ErrorCode) {
    codes.filter(|code| **code == 0).for_each(|code| *code = error.code());
}

fn join(member_id: &str, error: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        member_id: member_id.into(),
        error_code: error.code(),
        protocol_name: Some("".into()),
        ..Default::default()
    }
}

fn fetch(group_id: Str, error: ErrorCode) -> OffsetFetchResponseGroup {
    OffsetFetchResponseGroup { group_id, error_code: error.code(), ..Default::default() }
}

fn commit(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
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

fn txn_commit(request: &TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse {
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
