//! The task of one producer: takes puts as they come, sends the batches of batching.rs, and tells the outcomes.
//!
//! One request is under way for each leader: what comes meanwhile is the next one. Retries, leaders and sequences are
//! edge/client/src/pipeline/mod.rs.
//!
//! Before: puts.rs.

use super::batching::{Batching, Put, RECORD_BYTES_MAX};
use super::{Shared, Ticket, room_of};
use barnabas_client::{ClientError, PipelineConfig, PipelinedProducer, Record, Spread, Taken};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::yield_now;

/// Holds one batch of `batching`.
const BATCH_BYTES: usize = 512 * 1024;
/// Batches of a producer, from their first record to their answer.
const BUFFER_BYTES: usize = 32 * 1024 * 1024;
/// How long a batch is tried.
const DELIVER_WITHIN: Duration = Duration::from_secs(30);
const TURN: Duration = Duration::from_secs(1);
/// Without a put for so long, the producer ends.
const IDLE: Duration = Duration::from_secs(60);

struct Driver<'a> {
    shared: &'a Shared,
    producer: PipelinedProducer,
    batching: Batching<Ticket>,
    /// After an error that outlasted the producer's tries: another producer looks for the topic again.
    is_spent: bool,
}

/// Opens the producer, and serves it until it is idle or spent.
///
/// # Errors
/// What keeps it from opening, or ends it. All puts that it has seen have their outcome.
pub(super) async fn run(shared: &Shared) -> Result<(), Rc<ClientError>> {
    let kafka = &shared.kafka;
    let config = PipelineConfig {
        bootstrap: kafka.bootstrap.clone(),
        client_id: kafka.client_id.clone(),
        linger: Duration::ZERO,
        batch_bytes: BATCH_BYTES,
        buffer_bytes: BUFFER_BYTES,
        request_bytes_max: RECORD_BYTES_MAX,
        in_flight_max: 1,
        delivery_timeout: DELIVER_WITHIN,
        request_timeout: kafka.request_timeout,
        block_max: kafka.deadline,
        security: kafka.security.clone(),
        ..PipelineConfig::default()
    };
    let producer = PipelinedProducer::new(&shared.topic, config, Spread::Sticky).await?;
    shared.become_open();
    let mut driver = Driver { shared, producer, batching: Batching::default(), is_spent: false };
    let ended = driver.serve().await.map_err(Rc::new);
    if let Err(error) = &ended {
        driver.take_new();
        driver.batching.fail_all(error);
    }
    driver.tell();
    ended
}

impl Driver<'_> {
    async fn serve(&mut self) -> Result<(), ClientError> {
        loop {
            let (is_busy, mut is_idle) = (self.producer.outstanding() > 0, false);
            tokio::select! {
                biased;
                turned = self.producer.turn(TURN), if is_busy => turned?,
                // Connections whose put has arrived as well join the batch.
                () = self.shared.bell.notified() => yield_now().await,
                () = tokio::time::sleep(IDLE), if !is_busy => is_idle = true,
            }
            self.settle();
            self.take_new();
            self.send_rounds().await?;
            self.tell();
            let has_work = self.batching.busy() > 0;
            if (is_idle || self.is_spent || self.shared.is_unwanted.get()) && !has_work {
                return Ok(());
            }
            // With one partition, what comes now waits for the answer anyway.
            self.shared.is_busy.set(has_work && self.producer.partitions() == 1);
        }
    }

    fn take_new(&mut self) {
        let partitions = i32::try_from(self.producer.partitions()).unwrap_or(i32::MAX);
        for put in self.shared.came.borrow_mut().drain(..) {
            self.batching.add(put, partitions);
        }
    }

    /// Hands over every batch that can be under way. Each is one batch of the producer's.
    async fn send_rounds(&mut self) -> Result<(), ClientError> {
        let Self { batching, producer, .. } = self;
        while let Some((partition, puts)) = batching.next_round() {
            for put in puts {
                send(producer, partition, put).await?;
            }
        }
        Ok(())
    }

    /// Takes the producer's deliveries.
    fn settle(&mut self) {
        while let Some(delivery) = self.producer.next_delivery() {
            let outcome = delivery.error.map_or(Ok(()), Err);
            self.is_spent |= outcome
                .as_ref()
                .is_err_and(|error| error.is_retriable() || matches!(error, ClientError::TimedOut { .. }));
            self.batching.ended(delivery.partition, outcome);
        }
    }

    fn tell(&mut self) {
        while let Some((put, outcome)) = self.batching.next_outcome() {
            self.shared.room.add_permits(room_of(put.bytes) as usize);
            put.tag.tell(outcome);
        }
    }
}

/// Hands one record over. What could be wrong with it, `batching` has refused.
async fn send(
    producer: &mut PipelinedProducer,
    partition: i32,
    put: &Put<Ticket>,
) -> Result<(), ClientError> {
    let record = &put.record;
    let headers: Vec<_> = record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
    let record = Record {
        partition: Some(partition),
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: &headers,
        timestamp_ms: record.timestamp_ms,
    };
    while producer.send(&record, 0)? == Taken::Full {
        producer.turn(TURN).await?;
    }
    Ok(())
}
