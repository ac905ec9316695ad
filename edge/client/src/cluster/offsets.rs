//! Offsets: where a partition begins and ends, what a group has committed, and commits for a group without members.
//!
//! Requests about groups go out in the versions that name topics instead of ids: answers then have the offsets of
//! deleted topics too.

#[cfg(test)]
mod tests;

use super::coordinators::Coordinated;
use super::{Cluster, leader_of};
use crate::ClientError;
use crate::error::check;
use barnabas_base::{BrokerId, Offset, PartitionIndex};
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
use std::collections::{BTreeMap, BTreeSet};

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

fn list_offsets_request(partitions: &[&Partition], timestamp: i64) -> ListOffsetsRequest {
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for (topic, index) in partitions {
        if topics.last().is_none_or(|last| &*last.name != topic.as_str()) {
            topics.push(ListOffsetsTopic { name: topic.as_str().into(), ..Default::default() });
        }
        let row = ListOffsetsPartition { partition_index: *index, timestamp, ..Default::default() };
        topics.last_mut().expect("it was put there just now").partitions.push(row);
    }
    ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }
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

    /// One offset of each partition, as [`Self::list_offset`]. What a later try may cure is tried again, all of it at
    /// the same time: partitions that stay without an answer cost the deadline once.
    ///
    /// Each partition has an outcome of its own: [`ClientError::TimedOut`] where the deadline passed.
    ///
    /// # Source
    /// Kafka 4.3 `KafkaAdminClient.listOffsets`, `ListOffsetsHandler`.
    pub async fn list_offsets(
        &mut self,
        partitions: impl IntoIterator<Item = Partition>,
        timestamp: i64,
    ) -> BTreeMap<Partition, Result<Offset, ClientError>> {
        let tries = self.tries("asking for offsets");
        let mut open: BTreeSet<Partition> = partitions.into_iter().collect();
        let mut outcomes = BTreeMap::new();
        loop {
            let mut again = Vec::new();
            for (partition, answer) in self.list_offsets_once(&open, timestamp).await {
                match answer {
                    Err(error) if error.is_retriable() => again.push((partition, error)),
                    outcome => {
                        outcomes.insert(partition, outcome);
                    }
                }
            }
            let Some((_, error)) = again.first() else { return outcomes };
            if !tries.has_more_time_after(error).await {
                outcomes.extend(again.into_iter().map(|((topic, index), error)| {
                    let what = format!("asking for an offset of {topic}-{index}");
                    ((topic, index), Err(tries.timed_out(&what, &error)))
                }));
                return outcomes;
            }
            let topics: BTreeSet<&str> = again.iter().map(|((topic, _), _)| topic.as_str()).collect();
            let topics: Vec<&str> = topics.into_iter().collect();
            // Where no node answers this, the old leaders are asked again, and fail with the reason.
            let _ = self.refresh(Some(&topics), false).await;
            open = again.into_iter().map(|(partition, _)| partition).collect();
        }
    }

    /// One request to each leader. Each partition has one row in the answer.
    async fn list_offsets_once(
        &mut self,
        partitions: &BTreeSet<Partition>,
        timestamp: i64,
    ) -> Vec<(Partition, Result<Offset, ClientError>)> {
        let mut answers = Vec::new();
        let mut of_leaders: BTreeMap<BrokerId, Vec<&Partition>> = BTreeMap::new();
        for partition in partitions {
            let (topic, index) = (&partition.0, PartitionIndex(partition.1));
            let leader = match self.known_topic(topic) {
                Some(known) => leader_of(known, topic, index),
                None => self.leader(topic, index).await,
            };
            match leader {
                Ok(leader) => of_leaders.entry(leader).or_default().push(partition),
                Err(error) => answers.push((partition.clone(), Err(error))),
            }
        }
        for (leader, asked) in of_leaders {
            let answer = self.ask(leader, &list_offsets_request(&asked, timestamp)).await;
            let rows = answer.map(|answer| {
                let topics = answer.topics.into_iter();
                let rows = topics.flat_map(|topic| {
                    let rows = topic.partitions.into_iter();
                    rows.map(move |row| ((topic.name.to_string(), row.partition_index), row))
                });
                rows.collect::<BTreeMap<Partition, _>>()
            });
            answers.extend(asked.into_iter().map(|partition| {
                let (topic, index) = partition;
                let offset = match &rows {
                    Err(error) => Err(error.repeated()),
                    Ok(rows) => match rows.get(partition) {
                        None => Err(ClientError::Invalid(format!("no offset was told for {topic}-{index}"))),
                        Some(row) => {
                            let what = format!("asking for an offset of {topic}-{index}");
                            check(what, row.error_code, None).map(|()| Offset(row.offset))
                        }
                    },
                };
                (partition.clone(), offset)
            }));
        }
        answers
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
