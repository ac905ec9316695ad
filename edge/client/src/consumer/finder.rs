//! Finds the leaders of a topic's partitions: a task with connections of its own, so that a node that hangs holds up no
//! fetch.
//!
//! Bounded: one question at a time.

use crate::{ClientError, Cluster};
use barnabas_base::{BrokerId, ErrorCode, Map, PartitionIndex, TopicId};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Where a topic's partitions are.
#[derive(Debug)]
pub(super) struct Found {
    pub topic_id: TopicId,
    partitions: Map<PartitionIndex, Result<BrokerId, ErrorCode>>,
    addresses: Map<BrokerId, String>,
}

impl Found {
    fn new(topic: &MetadataResponseTopic, addresses: Map<BrokerId, String>) -> Self {
        let leader = |code: i16, leader: i32| match ErrorCode::from_code(code) {
            _ if leader >= 0 => Ok(BrokerId(leader)),
            ErrorCode::None => Err(ErrorCode::LeaderNotAvailable),
            code => Err(code),
        };
        let partitions = topic.partitions.iter();
        let partitions = partitions
            .map(|one| (PartitionIndex(one.partition_index), leader(one.error_code, one.leader_id)))
            .collect();
        Self { topic_id: topic.topic_id, partitions, addresses }
    }

    /// The partition's leader and its address.
    ///
    /// # Errors
    /// The partition's code; `LEADER_NOT_AVAILABLE` without a leader, `UNKNOWN_TOPIC_OR_PARTITION` without a partition.
    pub fn leader(&self, partition: PartitionIndex) -> Result<(BrokerId, &str), ErrorCode> {
        let leader = *self.partitions.get(&partition).unwrap_or(&Err(ErrorCode::UnknownTopicOrPartition));
        let address = |broker| self.addresses.get(&broker).ok_or(ErrorCode::BrokerNotAvailable);
        leader.and_then(|broker| Ok((broker, address(broker)?.as_str())))
    }

    pub fn address(&self, broker: BrokerId) -> Option<&str> {
        self.addresses.get(&broker).map(String::as_str)
    }
}

/// What the task answers.
pub(super) type Answer = Result<Found, ClientError>;

/// The running task. It ends with this.
#[derive(Debug)]
pub(super) struct Finder {
    questions: mpsc::Sender<()>,
    answers: mpsc::Receiver<Answer>,
    pub is_asked: bool,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Finder {
    /// `cluster`: used by the task alone.
    pub fn start(mut cluster: Cluster, topic: String) -> Self {
        let (questions, mut asked) = mpsc::channel(1);
        let (sender, answers) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            while asked.recv().await.is_some() {
                cluster.forget(&topic);
                let known = cluster.topic(&topic, false).await.cloned();
                let found = known.map(|known| Found::new(&known, cluster.addresses().collect()));
                if sender.send(found).await.is_err() {
                    return;
                }
            }
        });
        Self { questions, answers, is_asked: false, task }
    }

    /// Asks, if no question is open.
    pub fn ask(&mut self) {
        self.is_asked = self.is_asked || self.questions.try_send(()).is_ok();
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.answers.poll_recv(cx) {
            Poll::Ready(Some(answer)) => {
                self.is_asked = false;
                Poll::Ready(answer)
            }
            Poll::Ready(None) => {
                let why = "the task that finds leaders has ended without an answer".to_owned();
                Poll::Ready(Err(ClientError::Invalid(why)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
