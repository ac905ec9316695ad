//! The fetch loop of one leader, in a task of its own: the next answer arrives while the last one is
//! processed, and no leader waits for another.
//!
//! It finds where a partition begins (ListOffsets), then fetches in a session (KIP-227): the first request names every
//! partition, each later one only those whose offset has moved, and the answer only those with news. A partition that
//! fails is reported and left out of the session; the others go on. An error of the connection ends the task.
//!
//! Always true: after [`Told::Failed`] nothing more comes of that partition until it is begun again.
//!
//! Bounded: two partitions' data wait at most.

use super::unpack::{Fault, unpack};
use super::{ConsumerConfig, FetchedBatch, StartAt};
use crate::error::check;
use crate::{ClientError, Connection, Dial};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicId, TopicPartition};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::{FetchRequest, FetchResponse, ListOffsetsRequest};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Answers that wait to be used.
const AHEAD: usize = 2;
/// Lists of partitions to begin that wait for the end of a fetch.
const BEGINS: usize = 8;

/// ListOffsets' sentinels.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// What a leader's task reports.
#[derive(Debug)]
pub(super) enum Told {
    /// The first answer about these has come, and it was no error.
    Working(Vec<PartitionIndex>),
    /// Where reading begins.
    Position(PartitionIndex, Offset),
    Data {
        partition: PartitionIndex,
        batches: Vec<FetchedBatch>,
        next: Offset,
    },
    Failed(PartitionIndex, ClientError),
    /// The task has ended, and with it all its partitions.
    Ended(ClientError),
}

/// The partitions to fetch, and the fetch settings.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub broker: BrokerId,
    pub address: String,
    pub dial: Dial,
    pub topic: String,
    pub topic_id: TopicId,
    pub config: ConsumerConfig,
}

type Begin = (PartitionIndex, StartAt);

/// A running task. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Leader {
    pub reading: Reading,
    begins: mpsc::Sender<Vec<Begin>>,
    answers: mpsc::Receiver<Told>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Leader {
    pub fn start(reading: Reading) -> Self {
        let (sender, answers) = mpsc::channel(AHEAD);
        let (begins, mut begun) = mpsc::channel(BEGINS);
        let mut session = Session::new(reading.clone());
        let task = tokio::spawn(async move {
            // Without an error it ends only because the consumer has gone.
            if let Err(error) = session.run(&mut begun, &sender).await {
                let _ = sender.send(Told::Ended(error)).await;
            }
        });
        Self { reading, begins, answers, task }
    }

    /// Whether the task takes these partitions.
    pub fn begin(&self, partitions: Vec<Begin>) -> bool {
        self.begins.try_send(partitions).is_ok()
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Told> {
        self.answers.poll_recv(cx).map(|told| {
            told.unwrap_or_else(|| {
                Told::Ended(ClientError::Invalid("a leader's task ended without an answer".to_owned()))
            })
        })
    }
}

#[derive(Debug)]
struct Session {
    reading: Reading,
    /// Partitions whose first offset is not known yet: the timestamp or sentinel to ask for.
    unplaced: Vec<(PartitionIndex, i64)>,
    /// Where each partition goes on.
    offsets: Map<PartitionIndex, Offset>,
    /// Those of which no answer has come since they were begun.
    fresh: Vec<PartitionIndex>,
    id: i32,
    epoch: i32,
    /// What the broker knows of the session: the offsets that were asked for last.
    asked: Map<PartitionIndex, Offset>,
    /// In the broker's session, and not to be read any more.
    forgotten: Vec<PartitionIndex>,
}

/// Why a session ends without an error: the consumer has gone.
struct Gone;

impl Session {
    fn new(reading: Reading) -> Self {
        Self {
            reading,
            unplaced: Vec::new(),
            offsets: Map::default(),
            fresh: Vec::new(),
            id: 0,
            epoch: 0,
            asked: Map::default(),
            forgotten: Vec::new(),
        }
    }

    async fn run(
        &mut self,
        begins: &mut mpsc::Receiver<Vec<Begin>>,
        sender: &mpsc::Sender<Told>,
    ) -> Result<(), ClientError> {
        let reading = &self.reading;
        let mut connection = Connection::open_with(&reading.address, &reading.dial).await?;
        while self.take_begins(begins).await.is_ok() {
            if !self.unplaced.is_empty() {
                let answer = connection.call(&self.offsets_request()).await?;
                if self.take_offsets(answer, sender).await.is_err() {
                    break;
                }
            }
            if self.offsets.is_empty() {
                continue;
            }
            let answer = connection.call_patiently(&self.request(), self.reading.config.wait_max).await?;
            if self.is_session_lost(&answer) {
                self.forget_session();
                continue;
            }
            check(format!("fetching {}", self.reading.topic), answer.error_code, None)?;
            self.go_on(&answer);
            if self.take(answer, sender).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Takes new partitions; waits for them if there are none to fetch.
    async fn take_begins(&mut self, begins: &mut mpsc::Receiver<Vec<Begin>>) -> Result<(), Gone> {
        if self.offsets.is_empty() && self.unplaced.is_empty() {
            let partitions = begins.recv().await.ok_or(Gone)?;
            self.begin(partitions);
        }
        while let Ok(partitions) = begins.try_recv() {
            self.begin(partitions);
        }
        Ok(())
    }

    fn begin(&mut self, partitions: Vec<Begin>) {
        for (partition, start) in partitions {
            self.forgotten.retain(|forgotten| *forgotten != partition);
            self.fresh.push(partition);
            match start {
                StartAt::Offset(offset) => drop(self.offsets.insert(partition, offset)),
                StartAt::Earliest => self.unplaced.push((partition, EARLIEST)),
                StartAt::Latest => self.unplaced.push((partition, LATEST)),
            }
        }
    }

    fn offsets_request(&self) -> ListOffsetsRequest {
        let asked = |(partition, timestamp): &(PartitionIndex, i64)| ListOffsetsPartition {
            partition_index: partition.get(),
            timestamp: *timestamp,
            ..Default::default()
        };
        let topic = ListOffsetsTopic {
            name: self.reading.topic.as_str().into(),
            partitions: self.unplaced.iter().map(asked).collect(),
            ..Default::default()
        };
        ListOffsetsRequest {
            replica_id: -1,
            isolation_level: i8::from(self.reading.config.read_committed),
            topics: vec![topic],
            ..Default::default()
        }
    }

    async fn take_offsets(
        &mut self,
        answer: barnabas_wire::messages::ListOffsetsResponse,
        sender: &mpsc::Sender<Told>,
    ) -> Result<(), Gone> {
        let told: Vec<_> = answer.topics.into_iter().flat_map(|topic| topic.partitions).collect();
        for (partition, _) in std::mem::take(&mut self.unplaced) {
            let found = told.iter().find(|told| told.partition_index == partition.get());
            let offset = match found {
                Some(told) => {
                    let what = || format!("finding an offset of {}", self.place(partition));
                    check(what(), told.error_code, None).map(|()| Offset(told.offset))
                }
                None => Err(ClientError::Invalid(format!("no offset came for {}", self.place(partition)))),
            };
            match offset {
                Ok(offset) => {
                    self.offsets.insert(partition, offset);
                    sender.send(Told::Position(partition, offset)).await.map_err(|_| Gone)?;
                }
                Err(error) => self.fail(partition, error, sender).await?,
            }
        }
        Ok(())
    }

    fn place(&self, partition: PartitionIndex) -> String {
        TopicPartition::new(self.reading.topic.as_str(), partition).to_string()
    }

    fn request(&mut self) -> FetchRequest {
        let config = &self.reading.config;
        let mut partitions: Vec<_> = self.offsets.iter().map(|(index, offset)| (*index, *offset)).collect();
        partitions.retain(|(index, offset)| self.asked.get(index) != Some(offset));
        partitions.sort_unstable();
        self.asked.extend(partitions.iter().copied());
        let asked = |(index, offset): (PartitionIndex, Offset)| FetchPartition {
            partition: index.get(),
            fetch_offset: offset.get(),
            partition_max_bytes: config.partition_bytes_max,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: self.reading.topic.as_str().into(),
            topic_id: self.reading.topic_id,
            partitions: partitions.into_iter().map(asked).collect(),
            ..Default::default()
        };
        let forgotten = ForgottenTopic {
            topic: self.reading.topic.as_str().into(),
            topic_id: self.reading.topic_id,
            partitions: self.forgotten.drain(..).map(PartitionIndex::get).collect(),
            ..Default::default()
        };
        FetchRequest {
            max_wait_ms: config.wait_max.as_millis() as i32,
            min_bytes: config.bytes_min,
            max_bytes: config.bytes_max,
            isolation_level: i8::from(config.read_committed),
            session_id: self.id,
            session_epoch: self.epoch,
            topics: if topic.partitions.is_empty() { Vec::new() } else { vec![topic] },
            forgotten_topics_data: if forgotten.partitions.is_empty() { Vec::new() } else { vec![forgotten] },
            ..Default::default()
        }
    }

    /// The broker keeps a bounded number of sessions. A client whose session is gone begins with a full request.
    fn is_session_lost(&self, answer: &FetchResponse) -> bool {
        let lost = [
            ErrorCode::FetchSessionIdNotFound,
            ErrorCode::InvalidFetchSessionEpoch,
            ErrorCode::FetchSessionTopicIdError,
        ];
        self.id != 0 && lost.contains(&ErrorCode::from_code(answer.error_code))
    }

    /// The next request names everything.
    fn forget_session(&mut self) {
        (self.id, self.epoch) = (0, 0);
        self.asked.clear();
        self.forgotten.clear();
    }

    fn go_on(&mut self, answer: &FetchResponse) {
        self.id = answer.session_id;
        if self.id == 0 {
            self.forget_session();
        } else {
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    async fn take(&mut self, answer: FetchResponse, sender: &mpsc::Sender<Told>) -> Result<(), Gone> {
        for data in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
            self.take_one(data, sender).await?;
        }
        let fresh = std::mem::take(&mut self.fresh);
        let working: Vec<_> =
            fresh.into_iter().filter(|partition| self.offsets.contains_key(partition)).collect();
        if !working.is_empty() {
            sender.send(Told::Working(working)).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    async fn take_one(&mut self, data: PartitionData, sender: &mpsc::Sender<Told>) -> Result<(), Gone> {
        let partition = PartitionIndex(data.partition_index);
        let Some(from) = self.offsets.get(&partition).copied() else { return Ok(()) };
        // No text comes with the code. Kafka `FetchCollector.handleInitializeErrors` names the offset, too.
        let message = (data.error_code == ErrorCode::CorruptMessage.code())
            .then(|| format!("encountered corrupt message when fetching offset {from}"));
        let what = format!("fetching {}", self.place(partition));
        if let Err(error) = check(what, data.error_code, message.as_deref()) {
            return self.fail(partition, error, sender).await;
        }
        let config = &self.reading.config;
        let (read_committed, limit) = (config.read_committed, config.inflated_bytes_max);
        let unpacked = unpack(data, from, read_committed, limit);
        let (batches, next) = (unpacked.batches, unpacked.next);
        if next > from {
            self.offsets.insert(partition, next);
            sender.send(Told::Data { partition, batches, next }).await.map_err(|_| Gone)?;
        }
        match unpacked.error {
            Some(fault) => {
                let place = self.place(partition);
                let error = match fault {
                    Fault::Unreadable(why) => ClientError::Records(place, why),
                    Fault::TooLarge { at, next } => ClientError::TooLarge { place, at, next, limit },
                };
                self.fail(partition, error, sender).await
            }
            None => Ok(()),
        }
    }

    /// Leaves the partition out of the session.
    async fn fail(
        &mut self,
        partition: PartitionIndex,
        error: ClientError,
        sender: &mpsc::Sender<Told>,
    ) -> Result<(), Gone> {
        self.offsets.remove(&partition);
        self.fresh.retain(|fresh| *fresh != partition);
        if self.asked.remove(&partition).is_some() && self.id != 0 {
            self.forgotten.push(partition);
        }
        sender.send(Told::Failed(partition, error)).await.map_err(|_| Gone)
    }
}
