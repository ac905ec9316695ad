//! Membership of a classic consumer group: join, take the share of partitions, stay, commit, leave.
//!
//! The `range` assignor, so that it can share a group with any of Kafka's clients that still offers it. Most callers
//! read one topic ([`Group::new`], [`Group::join`]); [`Group::of_topics`] and [`Group::join_all`] take several.
//!
//! Sources: KIP-62 (heartbeats beside processing), KIP-394 (member id first); Kafka `ConsumerProtocol`,
//! `RangeAssignor`.

use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::{BrokerId, ErrorCode, Offset, PartitionIndex};
use barnabas_wire::messages::consumer_protocol_assignment::TopicPartition as AssignedTopic;
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use barnabas_wire::{Message, Reader, Str, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use std::time::{Duration, Instant};

const ASSIGNOR: &str = "range";
/// Versions of the embedded protocol that are written: 1 is understood by every client.
const EMBEDDED_VERSION: i16 = 1;
/// The newest version of OffsetCommit that names topics: for those whose id is not known here.
const COMMIT_BY_NAME_NEWEST: i16 = 9;

#[derive(Debug, Clone)]
pub struct GroupConfig {
    pub group: String,
    /// A static member's name (KIP-345). Such a member does not leave at the end.
    pub instance: Option<String>,
    pub session_timeout: Duration,
    pub rebalance_timeout: Duration,
    pub heartbeat_interval: Duration,
}

impl GroupConfig {
    pub fn new(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            instance: None,
            session_timeout: Duration::from_secs(45),
            rebalance_timeout: Duration::from_secs(60),
            heartbeat_interval: Duration::from_secs(3),
        }
    }
}

/// A partition of a subscribed topic.
type Partition = (String, i32);

/// One member.
#[derive(Debug)]
pub struct Group {
    config: GroupConfig,
    /// At least one, in order.
    topics: Vec<String>,
    coordinator: BrokerId,
    member: Str,
    generation: i32,
    beaten: Instant,
}

impl Group {
    /// A member for one topic.
    pub fn new(config: GroupConfig, topic: &str) -> Self {
        Self::of_topics(config, vec![topic.to_owned()])
    }

    /// A member for these topics.
    pub fn of_topics(config: GroupConfig, mut topics: Vec<String>) -> Self {
        let coordinator = BrokerId::NONE;
        topics.sort_unstable();
        topics.dedup();
        Self { config, topics, coordinator, member: Str::default(), generation: -1, beaten: Instant::now() }
    }

    /// Joins (again) and returns the partitions that are ours, each with its committed offset if there is one: of a
    /// member for one topic.
    ///
    /// # Errors
    /// What trying again does not cure.
    pub async fn join(
        &mut self,
        cluster: &mut Cluster,
    ) -> Result<Vec<(PartitionIndex, Option<Offset>)>, ClientError> {
        let partitions = self.join_until_assigned(cluster).await?;
        let indexes = partitions.into_iter().map(|partition| PartitionIndex(partition.1)).collect();
        self.with_offsets(cluster, indexes).await
    }

    /// [`Self::join`] of a member for several topics.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub async fn join_all(
        &mut self,
        cluster: &mut Cluster,
    ) -> Result<Vec<(Partition, Option<Offset>)>, ClientError> {
        let partitions = self.join_until_assigned(cluster).await?;
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let committed = cluster.committed_offsets(&self.config.group).await?;
        let with_offset = |partition: Partition| {
            let offset = committed.get(&partition).map(|committed| Offset(committed.offset));
            (partition, offset)
        };
        Ok(partitions.into_iter().map(with_offset).collect())
    }

    /// Takes these topics from the next join on.
    pub fn subscribe(&mut self, mut topics: Vec<String>) {
        topics.sort_unstable();
        topics.dedup();
        self.topics = topics;
    }

    /// The only topic, or the first.
    fn topic(&self) -> &str {
        self.topics.first().map_or("", String::as_str)
    }

    async fn join_until_assigned(&mut self, cluster: &mut Cluster) -> Result<Vec<Partition>, ClientError> {
        let tries = cluster.tries(format!("joining group {}", self.config.group));
        loop {
            let error = match self.join_once(cluster).await {
                Ok(partitions) => return Ok(partitions),
                Err(error) => error,
            };
            match error.code() {
                Some(
                    ErrorCode::MemberIdRequired
                    | ErrorCode::RebalanceInProgress
                    | ErrorCode::IllegalGeneration,
                ) => {}
                Some(ErrorCode::UnknownMemberId) => self.member = Str::default(),
                _ => {
                    self.coordinator = BrokerId::NONE;
                    tries.after(error).await?;
                }
            }
        }
    }

    async fn join_once(&mut self, cluster: &mut Cluster) -> Result<Vec<Partition>, ClientError> {
        if self.coordinator == BrokerId::NONE {
            self.coordinator = cluster.group_coordinator(&self.config.group).await?;
        }
        let request = self.join_request()?;
        let answer = cluster.ask_patiently(self.coordinator, &request, self.config.rebalance_timeout).await?;
        if !answer.member_id.is_empty() {
            self.member = answer.member_id.clone();
        }
        check(self.what("joining"), answer.error_code, None)?;
        self.generation = answer.generation_id;
        self.beaten = Instant::now();
        let assignments =
            if answer.leader == self.member { self.assign_all(cluster, &answer).await? } else { Vec::new() };
        let request = SyncGroupRequest {
            group_id: self.config.group.as_str().into(),
            generation_id: self.generation,
            member_id: self.member.clone(),
            group_instance_id: self.instance(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some(ASSIGNOR.into()),
            assignments,
            ..Default::default()
        };
        let answer = cluster.ask_patiently(self.coordinator, &request, self.config.rebalance_timeout).await?;
        check(self.what("synchronising"), answer.error_code, None)?;
        self.read_assignment(answer.assignment)
    }

    fn join_request(&self) -> Result<JoinGroupRequest, ClientError> {
        let topics = self.topics.iter().map(|topic| topic.as_str().into()).collect();
        let subscription = ConsumerProtocolSubscription { topics, ..Default::default() };
        let protocol = JoinGroupRequestProtocol {
            name: ASSIGNOR.into(),
            metadata: embed(&subscription)?,
            ..Default::default()
        };
        Ok(JoinGroupRequest {
            group_id: self.config.group.as_str().into(),
            session_timeout_ms: self.config.session_timeout.as_millis() as i32,
            rebalance_timeout_ms: self.config.rebalance_timeout.as_millis() as i32,
            member_id: self.member.clone(),
            group_instance_id: self.instance(),
            protocol_type: "consumer".into(),
            protocols: vec![protocol],
            ..Default::default()
        })
    }

    /// As leader: shares every subscribed topic's partitions among its members, in ranges.
    async fn assign_all(
        &self,
        cluster: &mut Cluster,
        joined: &JoinGroupResponse,
    ) -> Result<Vec<SyncGroupRequestAssignment>, ClientError> {
        let mut members = Vec::new();
        for member in &joined.members {
            let subscription: ConsumerProtocolSubscription = unembed(&member.metadata, &self.config.group)?;
            members.push((member.member_id.clone(), subscription.topics));
        }
        members.sort_by(|one, other| one.0.cmp(&other.0));
        let mut topics: Vec<Str> = members.iter().flat_map(|member| member.1.clone()).collect();
        topics.sort();
        topics.dedup();
        let mut shares: Vec<ConsumerProtocolAssignment> =
            vec![ConsumerProtocolAssignment::default(); members.len()];
        for topic in topics {
            let count = match cluster.topic(&topic, false).await {
                Ok(found) => found.partitions.len(),
                // Another member's topic that is not there yet must not keep the group from its others.
                Err(error) if is_unknown(&error) && !self.topics.iter().any(|ours| **ours == *topic) => 0,
                Err(error) => return Err(error),
            };
            let takers: Vec<usize> =
                (0..members.len()).filter(|index| members[*index].1.contains(&topic)).collect();
            for (place, range) in ranges(count, takers.len()).enumerate() {
                let partitions: Vec<i32> = range.map(|partition| partition as i32).collect();
                if !partitions.is_empty() {
                    let assigned = AssignedTopic { topic: topic.clone(), partitions, ..Default::default() };
                    shares[takers[place]].assigned_partitions.push(assigned);
                }
            }
        }
        let assignment = |((member_id, _), share): ((Str, Vec<Str>), ConsumerProtocolAssignment)| {
            Ok(SyncGroupRequestAssignment { member_id, assignment: embed(&share)?, ..Default::default() })
        };
        members.into_iter().zip(shares).map(assignment).collect()
    }

    fn read_assignment(&self, bytes: Bytes) -> Result<Vec<Partition>, ClientError> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let assignment: ConsumerProtocolAssignment = unembed(&bytes, &self.config.group)?;
        let is_ours = |topic: &str| self.topics.iter().any(|ours| ours == topic);
        let ours = assignment.assigned_partitions.iter().filter(|assigned| is_ours(&assigned.topic));
        let of_topic = |assigned: &AssignedTopic| {
            let topic = assigned.topic.to_string();
            assigned.partitions.iter().map(|index| (topic.clone(), *index)).collect::<Vec<_>>()
        };
        Ok(ours.flat_map(of_topic).collect())
    }

    async fn with_offsets(
        &self,
        cluster: &mut Cluster,
        partitions: Vec<PartitionIndex>,
    ) -> Result<Vec<(PartitionIndex, Option<Offset>)>, ClientError> {
        let indexes: Vec<i32> = partitions.iter().map(|partition| partition.get()).collect();
        let topic_id = cluster.topic_id(self.topic()).unwrap_or_default();
        let single = OffsetFetchRequestTopic {
            name: self.topic().into(),
            partition_indexes: indexes.clone(),
            ..Default::default()
        };
        let topic = OffsetFetchRequestTopics {
            name: self.topic().into(),
            topic_id,
            partition_indexes: indexes,
            ..Default::default()
        };
        let group = self.config.group.as_str();
        // Up to version 7 the request names one group, from 8 on it has a list.
        let request = |version: i16| match version {
            ..=7 => OffsetFetchRequest {
                group_id: group.into(),
                topics: Some(vec![single.clone()]),
                ..Default::default()
            },
            _ => OffsetFetchRequest {
                groups: vec![OffsetFetchRequestGroup {
                    group_id: group.into(),
                    topics: Some(vec![topic.clone()]),
                    ..Default::default()
                }],
                ..Default::default()
            },
        };
        let tries = cluster.tries(self.what("reading offsets"));
        let answer = loop {
            let asked = cluster.ask_with(self.coordinator, request).await;
            let code = |answer: &barnabas_wire::messages::OffsetFetchResponse| {
                answer.groups.first().map_or(answer.error_code, |group| group.error_code)
            };
            match asked
                .and_then(|answer| check(self.what("reading offsets"), code(&answer), None).map(|()| answer))
            {
                Ok(answer) => break answer,
                Err(error) => tries.after(error).await?,
            }
        };
        let of_groups =
            answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions);
        let mut committed: Vec<(i32, i64)> =
            of_groups.map(|partition| (partition.partition_index, partition.committed_offset)).collect();
        let of_old = answer.topics.iter().flat_map(|topic| &topic.partitions);
        committed.extend(of_old.map(|partition| (partition.partition_index, partition.committed_offset)));
        let offset_of = |partition: &PartitionIndex| {
            let found = committed.iter().find(|entry| entry.0 == partition.get() && entry.1 >= 0);
            found.map(|entry| Offset(entry.1))
        };
        Ok(partitions.iter().map(|partition| (*partition, offset_of(partition))).collect())
    }

    /// Sends a heartbeat if one is due. `false`: the group is rebalancing, join again.
    ///
    /// # Errors
    /// What joining again does not cure.
    pub async fn stay(&mut self, cluster: &mut Cluster) -> Result<bool, ClientError> {
        if self.beaten.elapsed() < self.config.heartbeat_interval {
            return Ok(true);
        }
        self.beaten = Instant::now();
        let request = HeartbeatRequest {
            group_id: self.config.group.as_str().into(),
            generation_id: self.generation,
            member_id: self.member.clone(),
            group_instance_id: self.instance(),
            ..Default::default()
        };
        let asked = cluster.ask(self.coordinator, &request).await;
        match asked.and_then(|answer| check(self.what("staying in"), answer.error_code, None)) {
            Ok(()) => Ok(true),
            Err(error) => self.must_join_again(error),
        }
    }

    /// Commits the next offsets. `false`: the group is rebalancing, join again.
    ///
    /// # Errors
    /// What joining again does not cure.
    pub async fn commit(
        &mut self,
        cluster: &mut Cluster,
        offsets: impl IntoIterator<Item = (PartitionIndex, Offset)>,
    ) -> Result<bool, ClientError> {
        let topic = self.topic().to_owned();
        let offsets = offsets.into_iter().map(|(index, offset)| ((topic.clone(), index.get()), offset));
        self.commit_all(cluster, offsets).await
    }

    /// [`Self::commit`] of a member for several topics.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn commit_all(
        &mut self,
        cluster: &mut Cluster,
        offsets: impl IntoIterator<Item = (Partition, Offset)>,
    ) -> Result<bool, ClientError> {
        let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
        for ((topic, index), offset) in offsets {
            if topics.last().is_none_or(|last| *last.name != *topic) {
                topics.push(OffsetCommitRequestTopic {
                    topic_id: cluster.topic_id(&topic).unwrap_or_default(),
                    name: topic.as_str().into(),
                    ..Default::default()
                });
            }
            topics.last_mut().expect("invariant: pushed just now").partitions.push(
                OffsetCommitRequestPartition {
                    partition_index: index,
                    committed_offset: offset.get(),
                    ..Default::default()
                },
            );
        }
        if topics.is_empty() {
            return Ok(true);
        }
        let request = OffsetCommitRequest {
            group_id: self.config.group.as_str().into(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.member.clone(),
            group_instance_id: self.instance(),
            topics,
            ..Default::default()
        };
        let has_ids = request.topics.iter().all(|topic| !topic.topic_id.is_zero());
        let newest = if has_ids { i16::MAX } else { COMMIT_BY_NAME_NEWEST };
        let answer = match cluster.ask_up_to(self.coordinator, newest, |_| request.clone()).await {
            Ok(answer) => answer,
            Err(error) => return self.must_join_again(error),
        };
        let codes =
            answer.topics.iter().flat_map(|topic| &topic.partitions).map(|partition| partition.error_code);
        for code in codes {
            if let Err(error) = check(self.what("committing to"), code, None) {
                return self.must_join_again(error);
            }
        }
        Ok(true)
    }

    /// Leaves, so that the others need not wait for the session to end. Nothing happens where it has not joined, or is
    /// a static member: its place is kept for the session, as with Kafka's consumer.
    ///
    /// # Errors
    /// The coordinator does not answer; the session's end removes the member all the same.
    pub async fn leave(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        if self.config.instance.is_some() || self.member.is_empty() || self.coordinator == BrokerId::NONE {
            return Ok(());
        }
        let member = MemberIdentity { member_id: self.member.clone(), ..Default::default() };
        let group_id: Str = self.config.group.as_str().into();
        let request = |version: i16| match version {
            ..=2 => LeaveGroupRequest {
                group_id: group_id.clone(),
                member_id: self.member.clone(),
                ..Default::default()
            },
            _ => LeaveGroupRequest {
                group_id: group_id.clone(),
                members: vec![member.clone()],
                ..Default::default()
            },
        };
        let answer = cluster.ask_with(self.coordinator, request).await?;
        check(self.what("leaving"), answer.error_code, None)
    }

    fn must_join_again(&mut self, error: ClientError) -> Result<bool, ClientError> {
        match error.code() {
            Some(ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration) => Ok(false),
            Some(ErrorCode::UnknownMemberId) => {
                self.member = Str::default();
                Ok(false)
            }
            _ if error.is_retriable() => {
                self.coordinator = BrokerId::NONE;
                Ok(false)
            }
            _ => Err(error),
        }
    }

    fn instance(&self) -> Option<Str> {
        self.config.instance.as_deref().map(Into::into)
    }

    fn what(&self, doing: &str) -> String {
        format!("{doing} group {}", self.config.group)
    }
}

fn is_unknown(error: &ClientError) -> bool {
    error.code() == Some(ErrorCode::UnknownTopicOrPartition)
}

/// Kafka's range assignor: of `count` partitions each of `takers` gets a run; the first ones get one more.
fn ranges(count: usize, takers: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let share = count.checked_div(takers).unwrap_or(0);
    let more = count - share * takers;
    (0..takers).map(move |taker| {
        let start = taker * share + taker.min(more);
        start..start + share + usize::from(taker < more)
    })
}

/// Version, then the message: how the embedded protocol travels.
fn embed<M: Message>(message: &M) -> Result<Bytes, ClientError> {
    let mut writer = Writer::new();
    message.encode(&mut writer, EMBEDDED_VERSION)?;
    let body = writer.into_bytes();
    let mut bytes = BytesMut::with_capacity(2 + body.len());
    bytes.put_i16(EMBEDDED_VERSION);
    bytes.put_slice(&body);
    Ok(bytes.freeze())
}

fn unembed<M: Message>(bytes: &Bytes, group: &str) -> Result<M, ClientError> {
    let unreadable = |why: String| {
        ClientError::Invalid(format!("a member of group {group} speaks another embedded protocol: {why}"))
    };
    let mut reader = Reader::new(bytes.clone());
    let version = reader.int16("Version").map_err(|error| unreadable(error.to_string()))?;
    let version = version.clamp(M::VERSIONS.min, M::VERSIONS.max);
    M::decode(&mut reader, version).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn the_first_members_get_one_more() {
        let shared: Vec<_> = ranges(7, 3).collect();
        assert_eq!(shared, [0..3, 3..5, 5..7]);
        assert_eq!(ranges(1, 2).collect::<Vec<_>>(), [0..1, 1..1]);
        assert_eq!(ranges(5, 0).count(), 0);
    }
}
