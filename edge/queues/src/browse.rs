//! A link that looks at a queue: what its receivers could still get, left where it is.
//!
//! It begins where the queue's share group begins, before the oldest message that is not done with; so messages that
//! were taken behind that one are seen too. Drain is answered at the end that the topic had when it was asked. What a
//! link's selector does not select is passed over.
//!
//! Before: open.rs.

use crate::link::{Deliver, Demand, FromLink, Opening, Place, Served, Settled, ToLink};
use barnabas_amqp::{Selector, encode_message};
use barnabas_amqp_records::whole;
use barnabas_base::{Map, Offset, PartitionIndex};
use barnabas_client::{ClientError, Cluster, Consumer, ConsumerConfig, Received, StartAt};
use barnabas_queue_access::{Address, Ends, group};
use std::time::Duration;

const FETCH_BYTES_MAX: i32 = 1024 * 1024;
/// A fetch is not interrupted: a peer's end is seen after it.
const WAIT: Duration = Duration::from_millis(250);

struct Browse {
    opening: Opening,
    topic: String,
    selector: Option<Selector>,
    cluster: Cluster,
    consumer: Consumer,
    starts: Map<PartitionIndex, Offset>,
    /// Deliveries given to the connection.
    given: u64,
    /// The drain that was answered.
    drained: Option<Demand>,
}

/// Serves the link.
///
/// # Errors
/// What keeps the link from being, or ends it.
pub async fn serve(opening: Opening, address: &Address, selector: Option<Selector>) -> Served {
    let mut cluster = Cluster::new(opening.kafka.clone());
    let tries = cluster.tries(format!("finding topic {}", address.topic));
    while let Err(error) = cluster.topic(&address.topic, true).await {
        tries.after(error).await?;
    }
    let starts = group::starts(&mut cluster, address).await?;
    let config = ConsumerConfig {
        bytes_max: FETCH_BYTES_MAX,
        partition_bytes_max: FETCH_BYTES_MAX,
        inflated_bytes_max: crate::get::INFLATED_BYTES_MAX,
        wait_max: WAIT,
        ..ConsumerConfig::default()
    };
    let mut consumer = Consumer::new(&address.topic, config);
    consumer.assign(starts.iter().map(|(index, start)| (*index, StartAt::Offset(*start))));
    let topic = address.topic.clone();
    if !opening.report(FromLink::Ready(opening.link, None)).await {
        return Ok(());
    }
    Browse { opening, topic, selector, cluster, consumer, starts, given: 0, drained: None }.run().await
}

impl Browse {
    async fn run(mut self) -> Served {
        while self.take_outcomes().await {
            let demand = *self.opening.demanded.borrow_and_update();
            if demand.limit <= self.given || self.drained == Some(demand) {
                if !self.wait().await {
                    return Ok(());
                }
                continue;
            }
            let ends = if demand.drain {
                Some(Ends::now(&mut self.cluster, &self.topic, self.starts.keys().copied()).await?)
            } else {
                None
            };
            loop {
                let next = self.consumer.poll(&mut self.cluster, WAIT).await?;
                let is_there = next.is_some();
                if let Some(record) = next {
                    self.deliver(&record).await?;
                }
                if ends.as_ref().is_some_and(|ends| ends.are_reached(&self.consumer, &self.starts)) {
                    self.drained = Some(demand);
                    self.opening.report(FromLink::Drained(self.opening.link)).await;
                    break;
                }
                let is_asked = ends.is_some() && !self.opening.from_peer.is_closed();
                if demand.limit <= self.given || !(is_there || is_asked) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A peer may settle what it saw; nothing becomes of it. `false`: the link is gone.
    async fn take_outcomes(&mut self) -> bool {
        while let Ok(word) = self.opening.from_peer.try_recv() {
            self.take(word).await;
        }
        !self.opening.from_peer.is_closed()
    }

    async fn take(&self, word: ToLink) {
        match word {
            ToLink::Outcome { id, outcome, is_settled: false, .. } => {
                self.opening.report(FromLink::Concluded(id, outcome)).await;
            }
            // A connection that is gone does not wait.
            ToLink::Settle { answer, .. } => drop(answer.send(Settled::Taken)),
            _ => {}
        }
    }

    /// Until the peer says something. `false`: the link is gone.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            word = self.opening.from_peer.recv() => match word {
                Some(word) => {
                    self.take(word).await;
                    true
                }
                None => false,
            },
            changed = self.opening.demanded.changed() => changed.is_ok(),
        }
    }

    async fn deliver(&mut self, record: &Received) -> Result<(), ClientError> {
        let message = whole::message(&self.topic, record, 1).map_err(ClientError::Invalid)?;
        if whole::expires_at_ms(&message, record).is_some_and(|at| at <= crate::get::now_ms()) {
            return Ok(());
        }
        if self.selector.as_ref().is_some_and(|selector| !selector.matches(&message)) {
            return Ok(());
        }
        let payload = encode_message(&message);
        let place = Place { partition: record.partition, offset: record.offset };
        let Some(permit) = self.opening.room(payload.len()).await else { return Ok(()) };
        self.given += 1;
        let deliver = Deliver { payload, place, is_settled: self.opening.sends_settled, _permit: permit };
        self.opening.report(FromLink::Deliver(self.opening.link, deliver)).await;
        Ok(())
    }
}
