//! What is read from one leader: a task of its own, so that the next answer is on its way while the last one is looked at.
//!
//! It asks in a fetch session (KIP-227): the first request names every partition, each later one only those whose offset
//! has moved, and the answer only those with news. Where each partition goes on it sees from the batches' headers alone.
//! What it does not understand or cannot cure it tells and ends; the consumer then begins anew from what was taken.
//!
//! Bounded: two answers wait at the most.

use super::ConsumerConfig;
use crate::error::check;
use crate::{ClientError, Connection};
use barnabas_base::{ErrorCode, Map, PartitionIndex, TopicId, TopicPartition};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::{FetchRequest, FetchResponse};
use barnabas_wire::records::{Entry, entries};
use std::time::Duration;
use tokio::sync::mpsc;

/// Answers that wait to be looked at.
const AHEAD: usize = 2;

/// What a leader's task tells.
pub(super) type Told = Result<PartitionData, ClientError>;

/// A running task. It ends when this goes.
#[derive(Debug)]
pub(super) struct Leader {
    pub answers: mpsc::Receiver<Told>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is to be read, and how.
#[derive(Debug)]
pub(super) struct Reading {
    pub address: String,
    pub client_id: String,
    pub connect_timeout: Duration,
    pub topic: String,
    pub topic_id: TopicId,
    pub config: ConsumerConfig,
    /// Where each partition goes on.
    pub offsets: Map<PartitionIndex, i64>,
}

/// Begins to read.
pub(super) fn read(reading: Reading) -> Leader {
    let (sender, answers) = mpsc::channel(AHEAD);
    let task = tokio::spawn(async move {
        let mut session = Session::new(reading);
        // Only a receiver that is gone ends this without an error to tell.
        if let Err(error) = session.run(&sender).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    Leader { answers, task }
}

#[derive(Debug)]
struct Session {
    reading: Reading,
    id: i32,
    epoch: i32,
    /// What the broker believes: the offsets as they were asked for last.
    asked: Map<PartitionIndex, i64>,
}

impl Session {
    fn new(reading: Reading) -> Self {
        Self { reading, id: 0, epoch: 0, asked: Map::default() }
    }

    async fn run(&mut self, sender: &mpsc::Sender<Told>) -> Result<(), ClientError> {
        let reading = &self.reading;
        let buffers = (-1, reading.config.receive_buffer_bytes);
        let opening =
            Connection::open_with(&reading.address, &reading.client_id, reading.connect_timeout, buffers);
        let mut connection = opening.await?;
        loop {
            let request = self.request();
            let patience = self.reading.config.wait_max;
            let answer = connection.call_patiently(&request, patience).await?;
            if self.is_session_lost(&answer) {
                (self.id, self.epoch) = (0, 0);
                self.asked.clear();
                continue;
            }
            check(format!("fetching {}", self.reading.topic), answer.error_code, None)?;
            self.go_on(&answer);
            for data in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
                self.note(&data)?;
                let is_news =
                    data.error_code != 0 || data.records.as_ref().is_some_and(|bytes| !bytes.is_empty());
                if is_news && sender.send(Ok(data)).await.is_err() {
                    return Ok(());
                }
            }
        }
    }

    fn request(&mut self) -> FetchRequest {
        let config = &self.reading.config;
        let mut partitions: Vec<_> =
            self.reading.offsets.iter().map(|(index, offset)| (*index, *offset)).collect();
        partitions.retain(|(index, offset)| self.asked.get(index) != Some(offset));
        partitions.sort_unstable();
        self.asked.extend(partitions.iter().copied());
        let asked = |(index, offset): (PartitionIndex, i64)| FetchPartition {
            partition: index.get(),
            fetch_offset: offset,
            partition_max_bytes: config.partition_bytes_max,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: self.reading.topic.as_str().into(),
            topic_id: self.reading.topic_id,
            partitions: partitions.into_iter().map(asked).collect(),
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
            forgotten_topics_data: Vec::<ForgottenTopic>::new(),
            ..Default::default()
        }
    }

    /// The broker keeps a bounded number of sessions: whoever falls out begins with a full request.
    fn is_session_lost(&self, answer: &FetchResponse) -> bool {
        let lost = [
            ErrorCode::FetchSessionIdNotFound,
            ErrorCode::InvalidFetchSessionEpoch,
            ErrorCode::FetchSessionTopicIdError,
        ];
        self.id != 0 && lost.contains(&ErrorCode::from_code(answer.error_code))
    }

    fn go_on(&mut self, answer: &FetchResponse) {
        self.id = answer.session_id;
        if self.id == 0 {
            // No session was given: the next request names everything again.
            self.epoch = 0;
            self.asked.clear();
        } else {
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    /// Where the partition goes on.
    fn note(&mut self, data: &PartitionData) -> Result<(), ClientError> {
        let index = PartitionIndex(data.partition_index);
        let (Some(offset), Some(records)) = (self.reading.offsets.get_mut(&index), &data.records) else {
            return Ok(());
        };
        for entry in entries(records.clone()) {
            let place = TopicPartition::new(self.reading.topic.as_str(), index).to_string();
            match entry {
                Ok(Entry::Batch(batch)) => *offset = (*offset).max(batch.header().next_offset().get()),
                Ok(Entry::Message(_)) => {
                    return Err(ClientError::Records(place, "the node sent an old record format".to_owned()));
                }
                Err(error) => return Err(ClientError::Records(place, error.to_string())),
            }
        }
        Ok(())
    }
}
