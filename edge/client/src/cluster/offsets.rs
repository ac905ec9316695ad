//! Offsets: where a partition begins and ends, what a group has committed, and commits for a group without members.
//!
//! Requests about groups go out in the versions that name topics instead of ids: answers then have the offsets of
//! deleted topics too.

use super::Cluster;
use super::coordinators::Coordinated;
use crate::ClientError;
use crate::error::check;
use barnabas_base::{Offset, PartitionIndex};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
};
use barnabas_wire::messages::{
    ListOffsetsRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use std::collections::BTreeMap;

/// The newest versions that name topics.
const FETCH_NEWEST: i16 = 9;
const COMMIT_NEWEST: i16 = 9;
/// From this version on OffsetFetch asks for several groups.
const GROUPS_SINCE: i16 = 8;

/// A topic and the number of its partition.
type Partition = (String, i32);

/// What is committed for one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    pub offset: i64,
    pub leader_epoch: Option<i32>,
}

impl Cluster {
    /// One offset of one partition, by timestamp or sentinel (−1 latest, −2 earliest).
    ///
    /// # Errors
    /// The partition's error.
    pub async fn list_offset(
        &mut self,
        topic: &str,
        partition: PartitionIndex,
        timestamp: i64,
    ) -> Result<Offset, ClientError> {
        let leader = self.leader(topic, partition).await?;
        let asked =
            ListOffsetsPartition { partition_index: partition.get(), timestamp, ..Default::default() };
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: topic.into(),
                partitions: vec![asked],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(leader, &request).await?;
        let told = answer.topics.first().and_then(|topic| topic.partitions.first());
        let told =
            told.ok_or_else(|| ClientError::Invalid(format!("no offset was told for {topic}-{partition}")))?;
        if told.error_code != 0 {
            self.forget(topic);
        }
        check(format!("asking for an offset of {topic}-{partition}"), told.error_code, None)?;
        Ok(Offset(told.offset))
    }

    /// The offsets that a group has committed, by partition.
    ///
    /// # Errors
    /// The coordinator refuses.
    pub async fn committed_offsets(
        &mut self,
        group: &str,
    ) -> Result<BTreeMap<Partition, Committed>, ClientError> {
        let request = |version: i16| match version {
            GROUPS_SINCE.. => OffsetFetchRequest {
                groups: vec![OffsetFetchRequestGroup {
                    group_id: group.into(),
                    topics: None,
                    ..Default::default()
                }],
                ..Default::default()
            },
            _ => OffsetFetchRequest { group_id: group.into(), topics: None, ..Default::default() },
        };
        let code = |answer: &OffsetFetchResponse| {
            answer.groups.first().map_or(answer.error_code, |group| group.error_code)
        };
        let of = Coordinated::Group(group);
        let (_, answer) = self.ask_coordinator_up_to(of, FETCH_NEWEST, request, code).await?;
        check(format!("group {group}"), code(&answer), None)?;
        let topics = answer.groups.iter().flat_map(|group| &group.topics);
        let rows = topics.flat_map(|topic| {
            let row = |row: &OffsetFetchResponsePartitions| {
                (
                    topic.name.to_string(),
                    row.partition_index,
                    row.committed_offset,
                    row.committed_leader_epoch,
                )
            };
            topic.partitions.iter().map(row).collect::<Vec<_>>()
        });
        let old = answer.topics.iter().flat_map(|topic| {
            let row = |row: &OffsetFetchResponsePartition| {
                (
                    topic.name.to_string(),
                    row.partition_index,
                    row.committed_offset,
                    row.committed_leader_epoch,
                )
            };
            topic.partitions.iter().map(row).collect::<Vec<_>>()
        });
        let known = rows.chain(old).filter(|row| row.2 >= 0);
        Ok(known
            .map(|(topic, partition, offset, epoch)| {
                ((topic, partition), Committed { offset, leader_epoch: (epoch >= 0).then_some(epoch) })
            })
            .collect())
    }

    /// Commits for a group without members.
    ///
    /// # Errors
    /// The coordinator refuses, for instance since the group has members.
    pub async fn commit_offsets(
        &mut self,
        group: &str,
        offsets: &BTreeMap<Partition, i64>,
    ) -> Result<(), ClientError> {
        if offsets.is_empty() {
            return Ok(());
        }
        let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
        for ((topic, partition), offset) in offsets {
            if topics.last().is_none_or(|last| &*last.name != topic.as_str()) {
                topics.push(OffsetCommitRequestTopic { name: topic.as_str().into(), ..Default::default() });
            }
            let row = OffsetCommitRequestPartition {
                partition_index: *partition,
                committed_offset: *offset,
                committed_leader_epoch: -1,
                committed_metadata: Some("".into()),
                ..Default::default()
            };
            topics.last_mut().expect("it was put there just now").partitions.push(row);
        }
        let request = OffsetCommitRequest {
            group_id: group.into(),
            generation_id_or_member_epoch: -1,
            topics,
            ..Default::default()
        };
        let first_code = |answer: &OffsetCommitResponse| {
            let mut codes =
                answer.topics.iter().flat_map(|topic| &topic.partitions).map(|row| row.error_code);
            codes.find(|code| *code != 0).unwrap_or(0)
        };
        let of = Coordinated::Group(group);
        let (_, answer) =
            self.ask_coordinator_up_to(of, COMMIT_NEWEST, |_| request.clone(), first_code).await?;
        let failed = answer.topics.iter().flat_map(|topic| {
            let rows = topic.partitions.iter().filter(|row| row.error_code != 0);
            rows.map(|row| format!("{}-{}", &*topic.name, row.partition_index)).collect::<Vec<_>>()
        });
        let failed = failed.collect::<Vec<_>>().join(", ");
        let why = format!("Failed altering group offsets for the following partitions: [{failed}]");
        check(format!("group {group}"), first_code(&answer), Some(&why))
    }
}
