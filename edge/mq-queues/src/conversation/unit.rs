//! The unit of work: puts that wait, and messages that were got and are held.
//!
//! MQCMIT writes the puts, then accepts the gets at their groups: a node that is killed between the two delivers the
//! gets again after their puts were written.
//!
//! | what fails | MQCMIT answers |
//! |---|---|
//! | the puts, and nothing was written | warning 2003 BACKED_OUT: the gets went back |
//! | the puts, and it is not known | 2549 CALL_INTERRUPTED; the gets went back |
//! | the gets, after puts were written | 2123 OUTCOME_MIXED: they are delivered again |
//! | the gets alone | warning 2003 BACKED_OUT |
//!
//! Bounded: [`GETS_MAX`] messages got, [`PUT_BYTES_MAX`] bytes and [`PUTS_MAX`] messages put.
//!
//! After: edge/queue-access/src/units.rs.

use super::Conversation;
use crate::refusal::reason_of;
use crate::source::{Outcome, Place, Source};
use barnabas_client::Outgoing;
use barnabas_mq::reason;
use barnabas_queue_access::{PUT_BYTES_MAX, PUTS_MAX, Puts, RECORD_BYTES};

const GETS_MAX: usize = 2000;

struct Got {
    handle: u32,
    source: Source,
    places: Vec<Place>,
}

/// What is not committed.
#[derive(Default)]
pub struct Unit {
    puts: Puts,
    put_bytes: usize,
    gets: Vec<Got>,
    held: usize,
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
        if let Err(not) = self.writer.write(&mut self.cluster, &puts).await {
            reason_of(&not.error);
            self.settle_gets(Outcome::Back).await;
            return if not.is_definite {
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
