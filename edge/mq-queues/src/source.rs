//! Where an open queue's messages come from: a task, which takes one at a time and hears what became of them.
//!
//! | source | behind it |
//! |---|---|
//! | shared | a member of the queue's share group (KIP-932). It acquires one record at a time: getters compete evenly |
//! | private | a plain consumer: a temporary queue has one reader, its own connection. It matches messages by id |
//!
//! A message whose time is over is not given out.
//!
//! Nothing is acquired ahead of a get: a group counts each acquisition as a delivery, and what is released too. Records
//! that getters held ahead and gave back would have a `BackoutCount` that no backout made, and after
//! `share.delivery.count.limit` of them be gone without an application having seen them.
//!
//! Always true: a message that was taken ends in one [`Outcome`], or goes back when the source is dropped.
//!
//! Before: conversation.rs.

mod private;
mod shared;

use crate::records::{self, Message};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{ClientError, ClusterConfig, Received};
use barnabas_queue_access::{Address, is_temporary};
use bytes::Bytes;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

/// Orders that wait for the task: a conversation gives one at a time.
const ORDERS_MAX: usize = 8;
/// A fetch is not interrupted: whether the getter is still there is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const BEAT: Duration = Duration::from_secs(1);
const FETCH_BYTES_MAX: i32 = 1024 * 1024;
/// What a batch of the topic may inflate to.
pub const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Got,
    Back,
}

/// Ids that a message must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Matching {
    pub msg_id: Option<[u8; 24]>,
    pub correl_id: Option<[u8; 24]>,
}

impl Matching {
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    pub fn fits(&self, message: &Message) -> bool {
        self.msg_id.is_none_or(|id| id == message.md.msg_id)
            && self.correl_id.is_none_or(|id| id == message.md.correl_id)
    }
}

/// A record's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub partition: PartitionIndex,
    pub offset: Offset,
}

impl Place {
    fn of(record: &Received) -> Self {
        Self { partition: record.partition, offset: record.offset }
    }

    /// A record without what acknowledgements do not need.
    fn bare(self) -> Received {
        Received {
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: 0,
            dated_by_broker: false,
            key: None,
            value: None,
            headers: Vec::<(Bytes, Option<Bytes>)>::new(),
        }
    }
}

/// A message that was taken: `md.expiry` is what is left of its time.
#[derive(Debug, Clone)]
pub struct Taken {
    pub place: Place,
    pub message: Message,
}

type Answer<T> = oneshot::Sender<Result<T, ClientError>>;

#[derive(Debug)]
enum Order {
    /// `None`: as long as the answer is waited for.
    Take {
        wait: Option<Duration>,
        matching: Matching,
        answer: Answer<Option<Taken>>,
    },
    Settle {
        places: Vec<Place>,
        outcome: Outcome,
        answer: Answer<()>,
    },
}

/// The task's handle. When all of them are dropped, the task gives back what was taken and ends.
#[derive(Debug, Clone)]
pub struct Source {
    orders: mpsc::Sender<Order>,
    is_private: bool,
}

impl Source {
    /// # Errors
    /// The queue cannot be read by this caller, or is not there.
    pub async fn open(kafka: &ClusterConfig, address: &Address) -> Result<Self, ClientError> {
        let (orders, given) = mpsc::channel(ORDERS_MAX);
        let is_private = is_temporary(&address.topic);
        if is_private {
            let source = private::Private::open(kafka, address).await?;
            spawn_local(source.run(given));
        } else {
            let source = shared::Shared::open(kafka, address).await?;
            spawn_local(source.run(given));
        }
        Ok(Self { orders, is_private })
    }

    /// Whether messages are taken by their ids.
    pub fn can_match(&self) -> bool {
        self.is_private
    }

    /// Begins to take a message; the receiver gets it, or `None` when `wait` is over.
    pub async fn begin(
        &self,
        wait: Option<Duration>,
        matching: Matching,
    ) -> oneshot::Receiver<Result<Option<Taken>, ClientError>> {
        let (answer, answered) = oneshot::channel();
        // A task that is gone drops the answer.
        let _ = self.orders.send(Order::Take { wait, matching, answer }).await;
        answered
    }

    /// Tells the group what became of messages, and waits until it knows.
    ///
    /// # Errors
    /// The group did not take it: the messages are delivered again.
    pub async fn settle(&self, places: Vec<Place>, outcome: Outcome) -> Result<(), ClientError> {
        let (answer, answered) = oneshot::channel();
        let _ = self.orders.send(Order::Settle { places, outcome, answer }).await;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

pub fn gone() -> ClientError {
    ClientError::Invalid("the queue's reader has ended".to_owned())
}

/// The message of a record, where its time is not over.
fn live(topic: &str, record: &Received, delivery: i16) -> Option<Taken> {
    let mut message = records::message(topic, record, delivery);
    message.md.expiry = records::time_left(&message, record, crate::dates::now_ms())?;
    Some(Taken { place: Place::of(record), message })
}

fn left(until: Option<Instant>) -> Duration {
    until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()).min(LOOK_EVERY))
}
