//! The unit of work: puts that wait, and messages that were got and are held.
//!
//! MQCMIT writes the puts, then accepts the gets at their groups. Puts that go to one partition are one batch, which
//! Kafka writes whole or not at all; others are one Kafka transaction, over all their topics. A batch costs one
//! request; a transaction three and its markers, and readers wait for those. Kafka has no transaction over records and
//! a share group's acknowledgements: a node that is killed between the two delivers the gets again after their puts
//! were written.
//!
//! | what fails | MQCMIT answers |
//! |---|---|
//! | the puts, and nothing was written | warning 2003 BACKED_OUT: the gets went back |
//! | the puts, and it is not known | 2549 CALL_INTERRUPTED; the gets went back |
//! | the gets, after puts were written | 2123 OUTCOME_MIXED: they are delivered again |
//! | the gets alone | warning 2003 BACKED_OUT |
//!
//! Bounded: [`GETS_MAX`] messages got, [`PUT_BYTES_MAX`] bytes and [`PUTS_MAX`] messages put.

use super::Conversation;
use crate::refusal::{is_definite, reason_of};
use crate::source::{Outcome, Place, Source};
use barnabas_client::{ClientError, Outgoing, TransactionConfig, TransactionalProducer};
use barnabas_mq::reason;

const GETS_MAX: usize = 2000;
const PUTS_MAX: usize = 10_000;
const PUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A transaction lasts as long as MQCMIT. One that a killed node left open is aborted after that, and holds up the
/// queue's getters until then, unless its transactional id is used again before.
const TRANSACTION_MS: i32 = 10_000;
/// Of a record's headers, beside the message's data.
const RECORD_BYTES: usize = 1024;

struct Got {
    handle: u32,
    source: Source,
    places: Vec<Place>,
}

/// What is not committed.
#[derive(Default)]
pub struct Unit {
    puts: Vec<(String, Outgoing)>,
    put_bytes: usize,
    gets: Vec<Got>,
    held: usize,
    /// The conversation's own transactional id, from its first transaction on.
    slot: Option<crate::slots::Slot>,
    producer: Option<TransactionalProducer>,
}

impl Unit {
    pub fn is_full(&self) -> bool {
        self.held >= GETS_MAX
    }

    pub fn hold(&mut self, handle: u32, source: Source, place: Place) {
        self.held += 1;
        match self.gets.iter_mut().find(|got| got.handle == handle) {
            Some(got) => got.places.push(place),
            None => self.gets.push(Got { handle, source, places: vec![place] }),
        }
    }

    /// # Errors
    /// `SYNCPOINT_LIMIT_REACHED`.
    pub fn put(&mut self, topic: &str, record: Outgoing, bytes: usize) -> Result<(), u32> {
        let after = self.put_bytes + bytes + RECORD_BYTES;
        if after > PUT_BYTES_MAX || self.puts.len() >= PUTS_MAX {
            return Err(reason::SYNCPOINT_LIMIT_REACHED);
        }
        self.put_bytes = after;
        self.puts.push((topic.to_owned(), record));
        Ok(())
    }
}

const DONE: (u32, u32) = (reason::CC_OK, reason::NONE);

impl Conversation {
    /// Completion code and reason.
    pub(super) async fn commit(&mut self) -> (u32, u32) {
        let puts = std::mem::take(&mut self.unit.puts);
        self.unit.put_bytes = 0;
        if let Err((definite, error)) = self.write_all(&puts).await {
            reason_of(&error);
            self.settle_gets(Outcome::Back).await;
            return if definite {
                (reason::CC_WARNING, reason::BACKED_OUT)
            } else {
                (reason::CC_FAILED, reason::CALL_INTERRUPTED)
            };
        }
        match (self.settle_gets(Outcome::Got).await, puts.is_empty()) {
            (true, _) => DONE,
            (false, true) => (reason::CC_WARNING, reason::BACKED_OUT),
            (false, false) => (reason::CC_FAILED, reason::OUTCOME_MIXED),
        }
    }

    pub(super) async fn back_out(&mut self) -> (u32, u32) {
        self.unit.puts.clear();
        self.unit.put_bytes = 0;
        self.settle_gets(Outcome::Back).await;
        DONE
    }

    /// The error, and whether it says that nothing was written.
    async fn write_all(&mut self, puts: &[(String, Outgoing)]) -> Result<(), (bool, ClientError)> {
        let Some((topic, _)) = puts.first() else { return Ok(()) };
        if puts.iter().all(|(of, _)| of == topic) {
            let records: Vec<_> = puts.iter().map(|(_, record)| record).collect();
            let written = self.puts.write(&mut self.cluster, topic, &records).await;
            if written.map_err(|error| (is_definite(&error), error))? {
                return Ok(());
            }
        }
        self.transact(puts).await
    }

    async fn transact(&mut self, puts: &[(String, Outgoing)]) -> Result<(), (bool, ClientError)> {
        if self.unit.producer.is_none() {
            let slot = self.unit.slot.get_or_insert_with(|| self.task.shared.slots.take());
            let config = TransactionConfig {
                transaction_timeout_ms: TRANSACTION_MS,
                ..TransactionConfig::new(&slot.transactional_id())
            };
            let started = TransactionalProducer::start(&mut self.cluster, config).await;
            self.unit.producer = Some(started.map_err(|error| (true, error))?);
        }
        let Some(producer) = &mut self.unit.producer else { return Ok(()) };
        let records: Vec<_> = puts.iter().map(|(topic, record)| (topic.as_str(), record.clone())).collect();
        let Err(error) = producer.commit(&mut self.cluster, &records).await else { return Ok(()) };
        // The next one fences this one, and aborts what it left open.
        let mut producer = self.unit.producer.take();
        let aborted = match &mut producer {
            Some(producer) if is_definite(&error) => producer.abort(&mut self.cluster).await.is_ok(),
            _ => false,
        };
        Err((aborted, error))
    }

    /// `false`: a group did not take it.
    async fn settle_gets(&mut self, outcome: Outcome) -> bool {
        self.unit.held = 0;
        let mut is_whole = true;
        for got in std::mem::take(&mut self.unit.gets) {
            if let Err(error) = got.source.settle(got.places, outcome).await {
                tracing::debug!(%error, "a share group did not take the end of a unit of work");
                is_whole = false;
            }
        }
        is_whole
    }
}
