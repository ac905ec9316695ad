//! What an answer, or its absence, means for a batch: delivered, to be sent again, or given up.
//!
//! | told | done |
//! |---|---|
//! | nothing wrong, or a duplicate | delivered |
//! | out of order, and an older batch is not settled | sent again behind it |
//! | out of order otherwise | given up; all that follows gets another producer id |
//! | producer unknown or of an old epoch | sent again under another producer id |
//! | retriable, or the connection ended | retried after a pause, until `retries` or `delivery.timeout.ms` ends it |
//! | anything else | given up |
//!
//! Source: Kafka `Sender.completeBatch`, `TransactionManager.canRetry`.

use super::lane::Lane;
use super::link::{Event, Flight};
use super::{Delivery, PipelinedProducer, SPARE_MAX};
use crate::ClientError;
use barnabas_base::{BrokerId, ErrorCode, PartitionIndex};
use barnabas_wire::messages::ProduceResponse;
use barnabas_wire::messages::produce_response::PartitionProduceResponse;
use std::time::{Duration, Instant};

/// Between two looks for batches whose time is up.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

impl PipelinedProducer {
    pub(super) fn take_in(&mut self, event: Event, now: Instant) -> Result<(), ClientError> {
        match event {
            Event::Answer(flight, answer) => self.take_answer(flight, answer, now),
            Event::Written(flight) => {
                for (partition, batch) in flight.batches {
                    self.deliver(partition, batch, -1);
                }
            }
            Event::Lost(broker, error, flights) => {
                self.counters.lost += 1;
                self.last_error = error.to_string();
                self.errands.wants_metadata = true;
                self.note_lost(broker, &error, now);
                let batches = flights.into_iter().flat_map(|flight| flight.batches);
                for (partition, batch) in batches.collect::<Vec<_>>() {
                    self.send_again(partition, batch, &error, now);
                }
            }
        }
        Ok(())
    }

    fn take_answer(&mut self, flight: Flight, answer: ProduceResponse, now: Instant) {
        let took = flight.sent.elapsed().as_nanos() as u64;
        self.counters.request_ns += took;
        self.counters.request_ns_max = self.counters.request_ns_max.max(took);
        let told: Vec<&PartitionProduceResponse> =
            answer.responses.iter().flat_map(|topic| &topic.partition_responses).collect();
        for (place, (partition, batch)) in flight.batches.iter().copied().enumerate() {
            let is_same = |told: &&&PartitionProduceResponse| told.index == partition as i32;
            // Brokers answer in the order of the request, but the protocol does not require it.
            let found = told.get(place).filter(is_same).or_else(|| told.iter().find(is_same));
            match found {
                Some(told) => self.settle(partition, batch, told, now),
                None => {
                    let error =
                        ClientError::Invalid(format!("the answer is silent on partition {partition}"));
                    self.give_up(partition, batch, error);
                }
            }
        }
    }

    fn settle(&mut self, partition: usize, batch: u64, told: &PartitionProduceResponse, now: Instant) {
        let code = ErrorCode::from_code(told.error_code);
        let error = || {
            let what = format!("sending to {}-{partition}", &*self.topic.name);
            let record =
                told.record_errors.first().and_then(|error| error.batch_index_error_message.as_deref());
            ClientError::refused(what, told.error_code, record.or(told.error_message.as_deref()))
        };
        match code {
            ErrorCode::None | ErrorCode::DuplicateSequenceNumber => {
                self.deliver(partition, batch, told.base_offset);
            }
            ErrorCode::OutOfOrderSequenceNumber
                if self.is_renewing || self.lanes[partition].place(batch).is_some_and(|place| place > 0) =>
            {
                let error = error();
                self.send_again(partition, batch, &error, now);
            }
            ErrorCode::UnknownProducerId | ErrorCode::InvalidProducerEpoch if self.identity.is_some() => {
                let error = error();
                self.is_renewing = true;
                self.send_again(partition, batch, &error, now);
            }
            _ => {
                let error = error();
                // A broker that lost a log directory, or no longer leads, is not the one to ask.
                self.errands.wants_metadata |= error.is_retriable();
                self.send_again(partition, batch, &error, now);
            }
        }
    }

    /// Every partition that waits for this broker.
    fn note_lost(&mut self, broker: BrokerId, error: &ClientError, now: Instant) {
        let waits = |(index, lane): (usize, &Lane)| {
            let is_led_there = lane.leader.is_some_and(|link| self.links[link].node == broker);
            (is_led_there && !lane.is_empty()).then_some(Some(PartitionIndex(index as i32)))
        };
        let places: Vec<_> = self.lanes.iter().enumerate().filter_map(waits).collect();
        self.troubles.note(places, Some(broker), error, now);
    }

    fn deliver(&mut self, partition: usize, batch: u64, base_offset: i64) {
        if !self.troubles.is_empty() {
            self.troubles.end(Some(PartitionIndex(partition as i32)));
        }
        self.finish(partition, batch, base_offset, None);
    }

    fn give_up(&mut self, partition: usize, batch: u64, error: ClientError) {
        let lane = &self.lanes[partition];
        let is_numbered = lane.place(batch).is_some_and(|place| lane.closed[place].is_numbered());
        let was_numbered = is_numbered && self.identity.is_some();
        self.counters.errors += 1;
        self.last_error = error.to_string();
        self.finish(partition, batch, -1, Some(error));
        // Its sequence will never come: those behind it can only go on under another producer id.
        self.is_renewing |= was_numbered;
    }

    fn finish(&mut self, partition: usize, id: u64, base_offset: i64, error: Option<ClientError>) {
        let lane = &mut self.lanes[partition];
        let Some(place) = lane.place(id) else { return };
        let has_waited = lane.leader.is_none_or(|link| lane.waits_for_answers(link, self.identity.is_some()));
        let Some(mut batch) = lane.closed.remove(place) else { return };
        lane.has_begun |= error.is_none();
        if has_waited && !lane.is_empty() {
            self.list(partition);
        }
        self.outstanding -= 1;
        self.used_bytes -= batch.reserved;
        if error.is_none() {
            self.counters.records += u64::from(batch.count().unsigned_abs());
            self.counters.bytes_before_compression += batch.inflated_bytes as u64;
        }
        let marks = std::mem::take(&mut batch.marks);
        let (records, content_bytes) = (batch.count(), batch.content_bytes);
        self.deliveries.push_back(Delivery {
            partition: partition as i32,
            base_offset,
            records,
            content_bytes,
            marks,
            error,
        });
        if self.spare.len() < SPARE_MAX {
            self.spare.extend(batch.into_buffer());
        }
    }

    /// Sends a batch again after a pause where that may help and is still wanted; gives it up otherwise.
    fn send_again(&mut self, partition: usize, id: u64, error: &ClientError, now: Instant) {
        let is_about_sequence = matches!(
            error.code(),
            Some(
                ErrorCode::OutOfOrderSequenceNumber
                    | ErrorCode::UnknownProducerId
                    | ErrorCode::InvalidProducerEpoch
            )
        ) && (self.is_renewing
            || self.lanes[partition].place(id).is_some_and(|place| place > 0));
        let Some(place) = self.lanes[partition].place(id) else { return };
        let batch = &mut self.lanes[partition].closed[place];
        batch.is_in_flight = false;
        let attempts = batch.attempts;
        let is_curable = is_about_sequence
            || matches!(error, ClientError::Lost { .. } | ClientError::Garbled { .. })
            || error.is_retriable();
        let is_late = batch.opened + self.config.delivery_timeout <= now;
        if !is_curable || attempts > self.config.retries || is_late {
            let error = repeat(error, &self.topic.name, partition);
            self.give_up(partition, id, error);
            return;
        }
        self.counters.retries += 1;
        self.last_error = error.to_string();
        if error.code().is_some() {
            let broker = self.lanes[partition].leader.map(|link| self.links[link].node);
            self.troubles.note([Some(PartitionIndex(partition as i32))], broker, error, now);
        }
        let factor = 1_u32 << (attempts.max(1) - 1).min(16);
        let pause = self.config.retry_backoff.saturating_mul(factor).min(self.config.retry_backoff_max);
        if self.lanes[partition].retry_at.is_none() {
            let at = now + pause;
            self.lanes[partition].retry_at = Some(at);
            self.retries.push((at, partition));
        }
    }

    /// Gives up what was not delivered within `delivery.timeout.ms` and is not under way.
    pub(super) fn sweep(&mut self, now: Instant) -> Result<(), ClientError> {
        let limit = self.config.delivery_timeout;
        for partition in 0..self.lanes.len() {
            if self.lanes[partition].open.as_ref().is_some_and(|open| open.opened + limit <= now) {
                self.close(partition)?;
            }
            loop {
                let late = self.lanes[partition].closed.iter();
                let mut late = late.filter(|batch| !batch.is_in_flight && batch.opened + limit <= now);
                let Some(id) = late.next().map(|batch| batch.id) else { break };
                let error = ClientError::TimedOut {
                    what: format!("sending to {}-{partition}", &*self.topic.name),
                    after_ms: limit.as_millis() as u64,
                    last: self.last_error.clone(),
                };
                self.give_up(partition, id, error);
            }
        }
        Ok(())
    }
}

/// The same error for another batch: I/O errors cannot be cloned, so their text is copied.
fn repeat(error: &ClientError, topic: &str, partition: usize) -> ClientError {
    match error {
        ClientError::Refused { what, code, message } => {
            ClientError::Refused { what: what.clone(), code: *code, message: message.clone() }
        }
        other => ClientError::Lost { address: format!("{topic}-{partition}"), why: other.to_string() },
    }
}
