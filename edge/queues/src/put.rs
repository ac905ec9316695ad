//! A link that a peer sends on: each transfer becomes a record of the topic, with acks=all.
//!
//! Transfers that came together go in one batch. A transfer is settled when its batch is answered: `accepted`, or
//! `rejected` with Kafka's error. A peer that sent it settled learns nothing of an error; the log does.
//!
//! Always true: a delivery is settled once, and only after Produce has been answered for its record.
//!
//! Before: open.rs.

use crate::link::{FromLink, MESSAGE_BYTES_MAX, Opening, Served, ToLink};
use crate::refusal::condition;
use barnabas_amqp::{Arrived, Condition, DeliveryKey, Outcome, decode_message};
use barnabas_amqp_records::whole;
use barnabas_client::{
    ClientError, Cluster, Delivery, Outgoing, PipelineConfig, PipelinedProducer, Record, Spread, Taken,
};
use barnabas_queue_access::is_temporary;
use std::collections::BTreeMap;
use std::time::Duration;

/// Batches of a link, from their first record to their answer: sections come twice in a record at most.
const BUFFER_BYTES: usize = 4 * MESSAGE_BYTES_MAX;
/// Taken at once.
const TOGETHER: usize = 256;
const TURN: Duration = Duration::from_secs(1);

/// A delivery whose record is on its way.
#[derive(Debug)]
struct Waiting {
    id: DeliveryKey,
    is_settled: bool,
    bytes: usize,
}

struct Put {
    opening: Opening,
    producer: PipelinedProducer,
    waiting: BTreeMap<u64, Waiting>,
    next_mark: u64,
}

/// Serves the link. The peer learns the address where its node was made for it.
///
/// # Errors
/// What keeps the link from being.
pub async fn serve(opening: Opening, topic: &str, told: Option<String>) -> Served {
    let kafka = &opening.kafka;
    if told.is_none() && is_temporary(topic) {
        Cluster::new(kafka.clone()).topic(topic, false).await?;
    }
    let config = PipelineConfig {
        bootstrap: kafka.bootstrap.clone(),
        client_id: kafka.client_id.clone(),
        linger: Duration::ZERO,
        buffer_bytes: BUFFER_BYTES,
        request_bytes_max: BUFFER_BYTES,
        request_timeout: kafka.request_timeout,
        block_max: kafka.deadline,
        security: kafka.security.clone(),
        ..PipelineConfig::default()
    };
    let producer = PipelinedProducer::new(topic, config, Spread::Sticky).await?;
    if !opening.report(FromLink::Ready(opening.link, told)).await {
        return Ok(());
    }
    Put { opening, producer, waiting: BTreeMap::new(), next_mark: 0 }.run().await
}

impl Put {
    async fn run(mut self) -> Served {
        let mut came = Vec::with_capacity(TOGETHER);
        loop {
            let is_busy = self.producer.outstanding() > 0;
            tokio::select! {
                count = self.opening.from_peer.recv_many(&mut came, TOGETHER) => {
                    if count == 0 {
                        // What was taken is written, though its sender learns nothing of it any more.
                        return self.producer.flush().await;
                    }
                }
                turned = self.producer.turn(TURN), if is_busy => turned?,
            }
            for word in came.drain(..) {
                if let ToLink::Arrived(arrived) = word {
                    self.take(arrived).await?;
                }
            }
            self.producer.turn(Duration::ZERO).await?;
            self.settle_all().await;
        }
    }

    async fn take(&mut self, arrived: Arrived) -> Result<(), ClientError> {
        let Arrived { id, is_settled, payload, .. } = arrived;
        let waiting = Waiting { id, is_settled, bytes: payload.len() };
        let made = decode_message(payload).map_err(|error| error.to_string());
        match made.and_then(|message| whole::record(&message)) {
            Ok(record) => self.send(&record, waiting).await,
            Err(why) => {
                let error = Condition::new("amqp:decode-error", why);
                self.settle(waiting, Outcome::Rejected(error)).await;
                Ok(())
            }
        }
    }

    async fn send(&mut self, record: &Outgoing, waiting: Waiting) -> Result<(), ClientError> {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let given = Record {
            partition: None,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
            timestamp_ms: record.timestamp_ms,
        };
        let mark = self.next_mark;
        self.next_mark += 1;
        loop {
            match self.producer.send(&given, mark) {
                Ok(Taken::Yes) => break,
                Ok(Taken::Full) => {
                    self.producer.turn(TURN).await?;
                    self.settle_all().await;
                }
                Err(error) => {
                    self.settle(waiting, Outcome::Rejected(condition(&error))).await;
                    return Ok(());
                }
            }
        }
        self.waiting.insert(mark, waiting);
        Ok(())
    }

    async fn settle_all(&mut self) {
        while let Some(delivery) = self.producer.next_delivery() {
            let outcome = outcome_of(&delivery);
            for (mark, _) in &delivery.marks {
                if let Some(waiting) = self.waiting.remove(mark) {
                    self.settle(waiting, outcome.clone()).await;
                }
            }
        }
    }

    async fn settle(&self, waiting: Waiting, outcome: Outcome) {
        let Waiting { id, is_settled, bytes } = waiting;
        if let (true, Outcome::Rejected(error)) = (is_settled, &outcome) {
            tracing::info!(%error, "a message that an AMQP client had sent settled is lost");
        }
        let outcome = (!is_settled).then_some(outcome);
        // A connection that is gone waits for nothing.
        self.opening.report(FromLink::Settled { link: self.opening.link, id, outcome, bytes }).await;
    }
}

fn outcome_of(delivery: &Delivery) -> Outcome {
    match &delivery.error {
        None => Outcome::Accepted,
        Some(error) => Outcome::Rejected(condition(error)),
    }
}
