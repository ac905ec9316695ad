//! A browse cursor: what getters could still get, left where it is.
//!
//! It begins where the queue's share group begins, before the oldest message that is not done with; so messages that
//! were taken behind that one are seen too.
//!
//! Before: conversation.rs.

use crate::dates::now_ms;
use crate::records::{self, Message};
use crate::source::{INFLATED_BYTES_MAX, Matching};
use barnabas_base::{Map, Offset, PartitionIndex};
use barnabas_client::{ClientError, Cluster, ClusterConfig, Consumer, ConsumerConfig, StartAt};
use barnabas_queue_access::{Address, Ends, group};
use std::time::{Duration, Instant};

const FETCH_BYTES_MAX: i32 = 1024 * 1024;
const WAIT: Duration = Duration::from_millis(100);
/// Behind a transaction that stays open nothing is seen: the end is not waited for longer than this.
const END_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Browser {
    address: Address,
    cluster: Cluster,
    consumer: Consumer,
    starts: Map<PartitionIndex, Offset>,
}

impl Browser {
    /// # Errors
    /// The queue cannot be read by this caller, or is not there.
    pub async fn open(kafka: &ClusterConfig, address: &Address) -> Result<Self, ClientError> {
        let mut cluster = Cluster::new(kafka.clone());
        let tries = cluster.tries(format!("finding topic {}", address.topic));
        while let Err(error) = cluster.topic(&address.topic, true).await {
            tries.after(error).await?;
        }
        let consumer = Consumer::new(&address.topic, ConsumerConfig::default());
        let mut browser = Self { address: address.clone(), cluster, consumer, starts: Map::default() };
        browser.rewind().await?;
        Ok(browser)
    }

    /// To the queue's first message.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn rewind(&mut self) -> Result<(), ClientError> {
        self.starts = group::starts(&mut self.cluster, &self.address).await?;
        let config = ConsumerConfig {
            bytes_max: FETCH_BYTES_MAX,
            partition_bytes_max: FETCH_BYTES_MAX,
            inflated_bytes_max: INFLATED_BYTES_MAX,
            wait_max: WAIT,
            read_committed: true,
            ..ConsumerConfig::default()
        };
        self.consumer = Consumer::new(&self.address.topic, config);
        self.consumer.assign(self.starts.iter().map(|(index, start)| (*index, StartAt::Offset(*start))));
        Ok(())
    }

    /// The next message, or `None` at the end that the queue has when `wait` is over (`None`: never).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn next(
        &mut self,
        wait: Option<Duration>,
        matching: Matching,
    ) -> Result<Option<Message>, ClientError> {
        let until = wait.map(|wait| Instant::now() + wait);
        loop {
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            let ends = if is_late {
                Some(Ends::now(&mut self.cluster, &self.address.topic, self.starts.keys().copied()).await?)
            } else {
                None
            };
            while let Some(record) = self.consumer.poll(&mut self.cluster, WAIT).await? {
                let mut message = records::message(&self.address.topic, &record, 1);
                let Some(left) = records::time_left(&message, &record, now_ms()) else { continue };
                message.md.expiry = left;
                if matching.fits(&message) {
                    return Ok(Some(message));
                }
            }
            let gives_up = until.is_some_and(|until| Instant::now() >= until + END_WITHIN);
            if gives_up || ends.is_some_and(|ends| ends.are_reached(&self.consumer, &self.starts)) {
                return Ok(None);
            }
        }
    }
}
