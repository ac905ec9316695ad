//! Membership of a share group: join, acquire records, acknowledge them, leave. One topic.
//!
//! The leaders of the assigned partitions are asked one after the other. What was acknowledged goes with the next
//! fetch from its leader, or with [`ShareConsumer::commit`]. Offsets that were acquired and have no record (markers of
//! transactions, compacted records) are acknowledged as gaps.
//!
//! Always true:
//! 1. a record is given out only if the leader acquired it for this member
//! 2. [`ShareConsumer::close`] returns what was not acknowledged: another member gets it at once
//!
//! Source: KIP-932; Kafka `ShareConsumeRequestManager`, `ShareSessionHandler`, `ShareInFlightBatch`.

mod acknowledgements;

use super::Received;
use crate::error::check;
use crate::{ClientError, Cluster};
use acknowledgements::{Acknowledgements, GAP};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicId, Uuid};
use barnabas_wire::messages::share_acknowledge_request::{self as acknowledge, AcknowledgePartition};
use barnabas_wire::messages::share_fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::share_fetch_response::{AcquiredRecords, PartitionData};
use barnabas_wire::messages::{
    ShareAcknowledgeRequest, ShareFetchRequest, ShareFetchResponse, ShareGroupHeartbeatRequest,
};
use barnabas_wire::records::{Entry, TimestampType, entries};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Between two heartbeats of a member that has no partitions yet.
const UNASSIGNED_BEAT: Duration = Duration::from_millis(200);
/// The member epochs that join and leave, and the session epochs that open and close.
const JOIN: i32 = 0;
const LEAVE: i32 = -1;
const OPEN: i32 = 0;
const CLOSE: i32 = -1;

/// How to read.
#[derive(Debug, Clone)]
pub struct ShareConfig {
    pub group: String,
    pub bytes_max: i32,
    pub bytes_min: i32,
    pub wait_max: Duration,
    /// Records of one answer: Kafka's `max.poll.records`.
    pub records_max: i32,
    /// Whether never more than `records_max` are acquired, whole batches or not (KIP-1206, version 2).
    pub is_exact: bool,
    /// What a batch may inflate to.
    pub inflated_bytes_max: usize,
}

impl ShareConfig {
    pub fn new(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            bytes_max: 50 * 1024 * 1024,
            bytes_min: 1,
            wait_max: Duration::from_millis(500),
            records_max: 500,
            is_exact: false,
            inflated_bytes_max: 1024 * 1024 * 1024,
        }
    }
}

/// What becomes of a record: the codes of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    Accept = 1,
    Release = 2,
    Reject = 3,
}

/// A record that was acquired, and for which time it is delivered.
#[derive(Debug)]
pub struct Shared {
    pub record: Received,
    pub delivery: i16,
}

/// One member, for one topic.
#[derive(Debug)]
pub struct ShareConsumer {
    config: ShareConfig,
    topic: String,
    topic_id: TopicId,
    member: String,
    epoch: i32,
    coordinator: BrokerId,
    beat_every: Duration,
    beaten: Option<Instant>,
    assigned: Vec<PartitionIndex>,
    /// The next epoch of each leader's share session.
    sessions: Map<BrokerId, i32>,
    acknowledgements: Acknowledgements,
    ready: VecDeque<Shared>,
    turn: usize,
}

impl ShareConsumer {
    /// Nothing is sent before the first [`Self::poll`].
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(config: ShareConfig, topic: &str) -> Result<Self, ClientError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| ClientError::Invalid(format!("no random numbers: {error}")))?;
        Ok(Self {
            config,
            topic: topic.to_owned(),
            topic_id: TopicId::default(),
            member: Uuid::from_random(bytes).to_string(),
            epoch: JOIN,
            coordinator: BrokerId::NONE,
            beat_every: UNASSIGNED_BEAT,
            beaten: None,
            assigned: Vec::new(),
            sessions: Map::default(),
            acknowledgements: Acknowledgements::default(),
            ready: VecDeque::new(),
            turn: 0,
        })
    }

    /// The next record that is acquired, or `None` when `wait` has passed without one.
    ///
    /// # Errors
    /// What no later try can cure: `GROUP_AUTHORIZATION_FAILED` for instance, or a batch that cannot be read.
    pub async fn poll(
        &mut self,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<Shared>, ClientError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            self.beat_if_due(cluster).await?;
            let left = until.saturating_duration_since(Instant::now());
            if self.assigned.is_empty() {
                if left.is_zero() {
                    return Ok(None);
                }
                tokio::time::sleep(left.min(UNASSIGNED_BEAT)).await;
                continue;
            }
            self.fetch(cluster, left).await?;
            if self.ready.is_empty() && Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Becomes a member and waits until it has partitions.
    ///
    /// # Errors
    /// As [`Self::poll`]; [`ClientError::TimedOut`] without partitions within `wait`.
    pub async fn join(&mut self, cluster: &mut Cluster, wait: Duration) -> Result<(), ClientError> {
        let until = Instant::now() + wait;
        loop {
            self.beat_if_due(cluster).await?;
            if !self.assigned.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                let after_ms = wait.as_millis() as u64;
                let last = "it has no partitions".to_owned();
                return Err(ClientError::TimedOut { what: self.what("joining"), after_ms, last });
            }
            tokio::time::sleep(UNASSIGNED_BEAT).await;
        }
    }

    /// Remains a member without fetching, and tells the leaders what was acknowledged.
    ///
    /// # Errors
    /// As [`Self::poll`]. What a leader does not take is delivered again.
    pub async fn stay(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        self.beat_if_due(cluster).await?;
        match self.commit(cluster).await {
            Err(error) if error.is_retriable() || is_lapsed(&error) => {
                cluster.forget(&self.topic);
                Ok(())
            }
            committed => committed,
        }
    }

    /// Of the fetches that follow.
    pub fn set_records_max(&mut self, records_max: i32) {
        self.config.records_max = records_max;
    }

    /// Whether the next [`Self::poll`] has to wait for a broker.
    pub fn is_drained(&self) -> bool {
        self.ready.is_empty()
    }

    /// Notes what becomes of a record. The next fetch tells the leader.
    pub fn acknowledge(&mut self, record: &Received, what: Acknowledge) {
        self.acknowledgements.add(record.partition, record.offset.get(), what as i8);
    }

    /// Whether an acknowledgement of a record of the partition is not told yet: [`Self::commit`] leaves those of
    /// partitions without a leader or a session.
    pub fn has_untold(&self, partition: PartitionIndex) -> bool {
        self.acknowledgements.has(partition)
    }

    /// Tells the leaders now.
    ///
    /// # Errors
    /// A leader cannot be reached, or refuses.
    pub async fn commit(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        for (leader, partitions) in self.by_leader(cluster).await? {
            if !partitions.iter().any(|index| self.acknowledgements.has(*index)) {
                continue;
            }
            let Some(epoch) = self.sessions.get(&leader).copied().filter(|epoch| *epoch != OPEN) else {
                continue;
            };
            self.tell(cluster, leader, &partitions, epoch).await?;
            self.sessions.insert(leader, next(epoch));
        }
        Ok(())
    }

    /// Tells the leaders what was acknowledged, gives back what was not, and leaves the group.
    ///
    /// # Errors
    /// A leader or the coordinator does not answer; the locks' end and the session's end do the same.
    pub async fn close(mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        self.ready.clear();
        for (leader, partitions) in self.by_leader(cluster).await? {
            if self.sessions.get(&leader).is_some_and(|epoch| *epoch != OPEN) {
                match self.tell(cluster, leader, &partitions, CLOSE).await {
                    // A session that is gone has given back everything.
                    Err(error) if error.code() == Some(ErrorCode::ShareSessionNotFound) => {}
                    told => told?,
                }
            }
        }
        if self.coordinator == BrokerId::NONE || self.epoch == JOIN {
            return Ok(());
        }
        let request = self.heartbeat(LEAVE);
        let answer = cluster.ask(self.coordinator, &request).await?;
        check(self.what("leaving"), answer.error_code, answer.error_message.as_deref())
    }

    fn heartbeat(&self, epoch: i32) -> ShareGroupHeartbeatRequest {
        ShareGroupHeartbeatRequest {
            group_id: self.config.group.as_str().into(),
            member_id: self.member.as_str().into(),
            member_epoch: epoch,
            subscribed_topic_names: (epoch == JOIN).then(|| vec![self.topic.as_str().into()]),
            ..Default::default()
        }
    }

    async fn beat_if_due(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        let every = if self.assigned.is_empty() { UNASSIGNED_BEAT } else { self.beat_every };
        if self.beaten.is_some_and(|beaten| beaten.elapsed() < every) {
            return Ok(());
        }
        let tries = cluster.tries(self.what("staying in"));
        loop {
            let Err(error) = self.beat(cluster).await else { return Ok(()) };
            match error.code() {
                Some(ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch) => {
                    self.epoch = JOIN;
                    self.assigned.clear();
                }
                _ => {
                    self.coordinator = BrokerId::NONE;
                    tries.after(error).await?;
                }
            }
        }
    }

    async fn beat(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        if self.coordinator == BrokerId::NONE {
            self.coordinator = cluster.group_coordinator(&self.config.group).await?;
        }
        let answer = cluster.ask(self.coordinator, &self.heartbeat(self.epoch)).await?;
        check(self.what("staying in"), answer.error_code, answer.error_message.as_deref())?;
        self.beaten = Some(Instant::now());
        self.epoch = answer.member_epoch;
        self.beat_every = Duration::from_millis(answer.heartbeat_interval_ms.max(1).unsigned_abs().into());
        if let Some(assignment) = answer.assignment {
            cluster.topic(&self.topic, false).await?;
            self.topic_id = cluster.topic_id(&self.topic).unwrap_or_default();
            let ours = assignment.topic_partitions.iter().filter(|one| one.topic_id == self.topic_id);
            self.assigned =
                ours.flat_map(|one| one.partitions.iter().map(|of| PartitionIndex(*of))).collect();
        }
        Ok(())
    }

    /// The assigned partitions that have a leader.
    async fn by_leader(
        &mut self,
        cluster: &mut Cluster,
    ) -> Result<Vec<(BrokerId, Vec<PartitionIndex>)>, ClientError> {
        let mut leaders: Vec<(BrokerId, Vec<PartitionIndex>)> = Vec::new();
        for index in self.assigned.clone() {
            let leader = match cluster.leader(&self.topic, index).await {
                Ok(leader) => leader,
                Err(error) if error.is_retriable() => {
                    cluster.forget(&self.topic);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match leaders.iter_mut().find(|known| known.0 == leader) {
                Some(known) => known.1.push(index),
                None => leaders.push((leader, vec![index])),
            }
        }
        Ok(leaders)
    }

    /// Asks the leaders in turn until one gives records or `wait` is over.
    async fn fetch(&mut self, cluster: &mut Cluster, wait: Duration) -> Result<(), ClientError> {
        let mut leaders = self.by_leader(cluster).await?;
        if leaders.is_empty() {
            tokio::time::sleep(wait.min(UNASSIGNED_BEAT)).await;
            return Ok(());
        }
        self.turn = (self.turn + 1) % leaders.len();
        leaders.rotate_left(self.turn);
        let share = wait.min(self.config.wait_max) / leaders.len() as u32;
        for (leader, partitions) in leaders {
            self.fetch_from(cluster, leader, &partitions, share).await?;
            if !self.ready.is_empty() {
                break;
            }
        }
        Ok(())
    }

    async fn fetch_from(
        &mut self,
        cluster: &mut Cluster,
        leader: BrokerId,
        partitions: &[PartitionIndex],
        wait: Duration,
    ) -> Result<(), ClientError> {
        let epoch = self.sessions.get(&leader).copied().unwrap_or(OPEN);
        // A session that opens knows of no record that could be acknowledged.
        let mut taken = if epoch == OPEN { Map::default() } else { self.acknowledgements.take(partitions) };
        let partition = |index: &PartitionIndex| FetchPartition {
            partition_index: index.get(),
            acknowledgement_batches: taken.remove(index).unwrap_or_default(),
            ..Default::default()
        };
        // In a session that is open, partitions without news need not be named.
        let topic = FetchTopic {
            topic_id: self.topic_id,
            partitions: partitions.iter().map(partition).collect(),
            ..Default::default()
        };
        let request = ShareFetchRequest {
            group_id: Some(self.config.group.as_str().into()),
            member_id: Some(self.member.as_str().into()),
            share_session_epoch: epoch,
            max_wait_ms: wait.as_millis() as i32,
            min_bytes: self.config.bytes_min,
            max_bytes: self.config.bytes_max,
            max_records: self.config.records_max,
            batch_size: self.config.records_max,
            share_acquire_mode: self.config.is_exact.into(),
            topics: vec![topic],
            ..Default::default()
        };
        let answer = cluster.ask(leader, &request).await.and_then(|answer| {
            let what = self.what("fetching from");
            check(what, answer.error_code, answer.error_message.as_deref()).map(|()| answer)
        });
        match answer {
            Ok(answer) => {
                self.sessions.insert(leader, next(epoch));
                self.take(cluster, answer)
            }
            Err(error) if error.is_retriable() => {
                self.sessions.remove(&leader);
                cluster.forget(&self.topic);
                tokio::time::sleep(cluster.config().retry_backoff).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, cluster: &mut Cluster, answer: ShareFetchResponse) -> Result<(), ClientError> {
        for partition in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
            let what = format!("{}-{}", self.topic, partition.partition_index);
            let acknowledged = check(what.as_str(), partition.acknowledge_error_code, None);
            let fetched = check(what.as_str(), partition.error_code, partition.error_message.as_deref());
            for error in [acknowledged, fetched].into_iter().filter_map(Result::err) {
                // What was not acknowledged is delivered again; a leader that moved is looked for.
                if !error.is_retriable() && !is_lapsed(&error) {
                    return Err(error);
                }
                cluster.forget(&self.topic);
            }
            self.unpack(partition)?;
        }
        Ok(())
    }

    fn unpack(&mut self, data: PartitionData) -> Result<(), ClientError> {
        let index = PartitionIndex(data.partition_index);
        let place = format!("{}-{index}", self.topic);
        let unreadable = |error: String| ClientError::Records(place.clone(), error);
        // In the order of offsets, as the ranges are.
        let mut given = Vec::new();
        for entry in entries(data.records.unwrap_or_default()) {
            let batch = match entry.map_err(|error| unreadable(error.to_string()))? {
                Entry::Batch(batch) => batch,
                Entry::Message(_) => {
                    return Err(unreadable("the broker sent an old record format".to_owned()));
                }
            };
            batch.check_crc().map_err(|error| unreadable(error.to_string()))?;
            if batch.header().attributes.is_control() {
                continue;
            }
            let records = batch.records_up_to(self.config.inflated_bytes_max);
            let records = records.map_err(|error| unreadable(error.to_string()))?;
            let dated_by_broker =
                records.header().attributes.timestamp_type() == TimestampType::LogAppendTime;
            for record in records.iter() {
                let record = record.map_err(|error| unreadable(error.to_string()))?;
                let Some(delivery) = delivery_of(&data.acquired_records, record.offset) else { continue };
                given.push(record.offset.get());
                let copy = |slice: Option<&[u8]>| slice.map(Bytes::copy_from_slice);
                let header =
                    |(key, value): (&[u8], Option<&[u8]>)| (Bytes::copy_from_slice(key), copy(value));
                let headers = record.headers().map(header).collect();
                let record = Received {
                    partition: index,
                    offset: record.offset,
                    timestamp_ms: record.timestamp.0,
                    dated_by_broker,
                    key: copy(record.key),
                    value: copy(record.value),
                    headers,
                };
                self.ready.push_back(Shared { record, delivery });
            }
        }
        for gap in gaps(&data.acquired_records, &given) {
            self.acknowledgements.add(index, gap, GAP);
        }
        Ok(())
    }

    async fn tell(
        &mut self,
        cluster: &mut Cluster,
        leader: BrokerId,
        partitions: &[PartitionIndex],
        epoch: i32,
    ) -> Result<(), ClientError> {
        let partition = |(index, batches): (PartitionIndex, Vec<_>)| AcknowledgePartition {
            partition_index: index.get(),
            acknowledgement_batches: batches.into_iter().map(of_acknowledge).collect(),
            ..Default::default()
        };
        let topic = acknowledge::AcknowledgeTopic {
            topic_id: self.topic_id,
            partitions: self.acknowledgements.take(partitions).into_iter().map(partition).collect(),
            ..Default::default()
        };
        let request = ShareAcknowledgeRequest {
            group_id: Some(self.config.group.as_str().into()),
            member_id: Some(self.member.as_str().into()),
            share_session_epoch: epoch,
            topics: if topic.partitions.is_empty() { Vec::new() } else { vec![topic] },
            ..Default::default()
        };
        let answer = cluster.ask(leader, &request).await?;
        check(self.what("acknowledging to"), answer.error_code, answer.error_message.as_deref())?;
        let mut rows = answer.responses.iter().flat_map(|topic| &topic.partitions);
        rows.try_for_each(|row| {
            let what = format!("{}-{}", self.topic, row.partition_index);
            check(what, row.error_code, row.error_message.as_deref())
        })
    }

    fn what(&self, doing: &str) -> String {
        format!("{doing} share group {}", self.config.group)
    }
}

/// The lock of a record, or the session that had it, has ended: the record is delivered again.
fn is_lapsed(error: &ClientError) -> bool {
    let code = error.code();
    matches!(
        code,
        Some(
            ErrorCode::InvalidRecordState
                | ErrorCode::ShareSessionNotFound
                | ErrorCode::InvalidShareSessionEpoch
        )
    )
}

/// ShareFetch and ShareAcknowledge have the same struct under two names.
fn of_acknowledge(
    batch: barnabas_wire::messages::share_fetch_request::AcknowledgementBatch,
) -> acknowledge::AcknowledgementBatch {
    acknowledge::AcknowledgementBatch {
        first_offset: batch.first_offset,
        last_offset: batch.last_offset,
        acknowledge_types: batch.acknowledge_types,
        ..Default::default()
    }
}

/// The session epoch after `epoch`. As in Kafka it begins again at 1.
fn next(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

/// For which time the record at `offset` is delivered; `None`: it is not acquired.
fn delivery_of(acquired: &[AcquiredRecords], offset: Offset) -> Option<i16> {
    let range = |one: &&AcquiredRecords| (one.first_offset..=one.last_offset).contains(&offset.get());
    acquired.iter().find(range).map(|one| one.delivery_count)
}

/// The offsets that are acquired and have no record. `given`: those that have, in order.
fn gaps(acquired: &[AcquiredRecords], given: &[i64]) -> Vec<i64> {
    let offsets = acquired.iter().flat_map(|one| one.first_offset..=one.last_offset);
    offsets.filter(|offset| given.binary_search(offset).is_err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquired(first_offset: i64, last_offset: i64, delivery_count: i16) -> AcquiredRecords {
        AcquiredRecords { first_offset, last_offset, delivery_count, ..Default::default() }
    }

    #[test]
    fn records_outside_of_the_acquired_ranges_are_not_given() {
        let ranges = [acquired(2, 3, 1), acquired(6, 6, 4)];
        let deliveries: Vec<_> = (1..8).map(|offset| delivery_of(&ranges, Offset(offset))).collect();
        assert_eq!(deliveries, [None, Some(1), Some(1), None, None, Some(4), None]);
    }

    #[test]
    fn offsets_without_a_record_are_gaps() {
        assert_eq!(gaps(&[acquired(0, 3, 1), acquired(6, 7, 1)], &[0, 2, 6]), [1, 3, 7]);
    }

    #[test]
    fn session_epochs_begin_again_at_1() {
        assert_eq!((next(OPEN), next(7), next(i32::MAX)), (1, 8, 1));
    }
}
