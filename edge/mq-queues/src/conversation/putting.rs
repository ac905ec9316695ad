//! MQPUT and MQPUT1: a message is a record, with acks=all. In a unit of work it waits for MQCMIT.
//!
//! A put outside a unit of work goes in a batch with those of other connections (edge/queue-access/src/puts.rs). Those
//! to temporary queues do not: each has few putters, and a producer of its own would cost more than it saves.
//!
//! Puts without an answer (`MQPMO_ASYNC_RESPONSE`) are counted for MQSTAT. They are written one after the other without
//! a wait between them; every call but a put waits until they are done.

use super::{Answer, Conversation};
use crate::dates;
use crate::records;
use crate::refusal::reason_of;
use crate::task::Task;
use barnabas_client::Outgoing;
use barnabas_mq::{Descriptor, Put, PutOptions, Reply, fixed, oo, pmo, reason};
use barnabas_queue_access::{Address, Outcome, Putter, is_temporary};
use std::collections::BTreeMap;

/// Topics that a conversation keeps a way to a shared producer for.
const PRODUCERS_MAX: usize = 64;
/// Tags of puts whose answer is waited for, and of those without one.
const ANSWERED: u64 = 0;
const COUNTED: u64 = 1;
/// Puts without an answer that are under way to a topic.
const COUNTED_MAX: usize = 256;
/// Reports that a queue manager would send: on arrival, delivery, expiry, exceptions, activity.
const REPORTS: u32 = 0x700 | 0x3800 | 0x00e0_0000 | 0x0700_0000 | 0x4;
/// MQMF: segments of messages. Groups are kept, and read in the order of their records.
const SEGMENTS: u32 = 0x2 | 0x4;
const AS_QUEUE: u32 = 2;
const QUEUE_MANAGERS: i32 = 0;
const UTF_8: i32 = 1208;
/// MQAT_JAVA.
const JAVA: i32 = 28;

/// How the conversation's puts go.
#[derive(Default)]
pub struct Puts {
    putters: BTreeMap<String, Putter>,
    succeeded: u32,
    failed: u32,
    first_failure: Option<u32>,
    ids: Ids,
}

/// Ids of messages: a random range, and its numbers one after the other, so that not each put asks for random numbers.
#[derive(Default)]
struct Ids {
    range: [u8; 24],
    /// 0: a new range begins.
    next: u32,
}

impl Ids {
    fn next(&mut self, queue_manager: &str) -> Result<[u8; 24], u32> {
        if self.next == 0 {
            self.range = fresh_id(queue_manager)?;
        }
        let mut id = self.range;
        id[20..].copy_from_slice(&self.next.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        Ok(id)
    }
}

impl Puts {
    fn count(&mut self, why: u32) {
        if why == reason::NONE {
            self.succeeded += 1;
        } else {
            self.failed += 1;
            self.first_failure.get_or_insert(why);
        }
    }

    /// What became of the puts without an answer since the last time.
    pub(super) fn stat(&mut self, of: u32) -> Answer {
        let why = self.first_failure.take().unwrap_or(reason::NONE);
        let code = if why == reason::NONE { reason::CC_OK } else { reason::CC_FAILED };
        let (succeeded, failed) = (std::mem::take(&mut self.succeeded), std::mem::take(&mut self.failed));
        Answer::ok(Reply::Stat { of, codes: (code, why), succeeded, failed })
    }

    /// Puts a record through a shared producer. Without `is_counted` its outcome is waited for.
    async fn put(&mut self, task: &Task, topic: &str, record: Outgoing, is_counted: bool) -> Result<(), u32> {
        if !self.putters.contains_key(topic) {
            if self.putters.len() >= PRODUCERS_MAX {
                self.settle().await;
                self.putters.pop_first();
            }
            self.putters.insert(topic.to_owned(), task.producers.putter(&task.kafka, topic, task.origin));
        }
        let Some(putter) = self.putters.get_mut(topic) else { return Err(reason::UNEXPECTED_ERROR) };
        let tag = if is_counted { COUNTED } else { ANSWERED };
        let (mut own, mut others) = (Ok(()), Vec::new());
        match putter.submit(record, tag).await {
            Err(error) => own = Err(reason_of(&error)),
            Ok(()) => {
                let waits_for = if is_counted { COUNTED_MAX } else { 0 };
                while putter.outstanding() > waits_for {
                    let (of, outcome) = putter.next().await;
                    let why = why(&outcome);
                    if of == COUNTED {
                        others.push(why);
                    } else if why != reason::NONE {
                        own = Err(why);
                    }
                }
            }
        }
        others.into_iter().for_each(|why| self.count(why));
        own
    }

    /// Waits for the puts without an answer.
    pub(super) async fn settle(&mut self) {
        let mut outcomes = Vec::new();
        for putter in self.putters.values_mut() {
            while putter.outstanding() > 0 {
                outcomes.push(why(&putter.next().await.1));
            }
        }
        outcomes.into_iter().for_each(|why| self.count(why));
    }
}

/// How far a put is.
enum Done {
    Yes,
    UnderWay,
}

fn why(outcome: &Outcome) -> u32 {
    outcome.as_ref().err().map_or(reason::NONE, |error| reason_of(error))
}

impl Conversation {
    /// `None`: the client waits for nothing.
    pub(super) async fn put(&mut self, put: Put) -> Option<Answer> {
        let Put { object, handle, mut md, options, data } = put;
        let address = match &object {
            Some(object) => self.task.shared.names.address(&object.name).ok_or(reason::UNKNOWN_OBJECT_NAME),
            None => {
                let queue = self.handles.queue(handle, oo::OUTPUT, reason::NOT_OPEN_FOR_OUTPUT);
                queue.map(|queue| queue.address.clone())
            }
        };
        let done = match address.and_then(|address| self.complete(&mut md, options.options).map(|()| address))
        {
            Ok(address) => self.put_to(&address, &md, &data, &options).await,
            Err(why) => Err(why),
        };
        if options.has(pmo::ASYNC_RESPONSE) {
            // What is under way is counted when it is done.
            match done {
                Ok(Done::UnderWay) => {}
                Ok(Done::Yes) => self.puts.count(reason::NONE),
                Err(why) => self.puts.count(why),
            }
            return None;
        }
        let why = done.err().unwrap_or(reason::NONE);
        Some(Answer::with(why, handle, Reply::Put { object, md, options }))
    }

    async fn put_to(
        &mut self,
        address: &Address,
        md: &Descriptor,
        data: &bytes::Bytes,
        options: &PutOptions,
    ) -> Result<Done, u32> {
        let topic = &address.topic;
        let record = records::record(md, data, dates::now_ms());
        if is_temporary(topic) {
            // A reply that comes late does not make its queue again.
            self.cluster.topic(topic, false).await.map_err(|error| reason_of(&error))?;
        }
        if options.has(pmo::SYNCPOINT) {
            return self.unit.put(topic, record, data.len()).map(|()| Done::Yes);
        }
        if !is_temporary(topic) {
            let is_counted = options.has(pmo::ASYNC_RESPONSE);
            self.puts.put(&self.task, topic, record, is_counted).await?;
            return Ok(if is_counted { Done::UnderWay } else { Done::Yes });
        }
        // One record is one batch, whatever its size.
        match self.writer.write_batch(&mut self.cluster, topic, &[&record]).await {
            Ok(true) => Ok(Done::Yes),
            Ok(false) => Err(reason::UNEXPECTED_ERROR),
            Err(error) => Err(reason_of(&error)),
        }
    }

    /// Fills in what a queue manager does.
    fn complete(&mut self, md: &mut Descriptor, options: u32) -> Result<(), u32> {
        if options & pmo::LOGICAL_ORDER != 0 {
            return Err(reason::OPTIONS_ERROR);
        }
        if md.report & REPORTS != 0 {
            return Err(reason::REPORT_OPTIONS_ERROR);
        }
        if md.flags & SEGMENTS != 0 || md.offset != 0 {
            return Err(reason::MSG_FLAGS_ERROR);
        }
        let manager = &self.task.shared.queue_manager;
        if options & pmo::NEW_MSG_ID != 0 || md.msg_id == [0; 24] {
            md.msg_id = self.puts.ids.next(manager)?;
        }
        if options & pmo::NEW_CORREL_ID != 0 {
            md.correl_id = self.puts.ids.next(manager)?;
        }
        if md.persistence == AS_QUEUE {
            md.persistence = 1;
        }
        if md.priority < 0 {
            md.priority = 0;
        }
        if md.ccsid == QUEUE_MANAGERS {
            md.ccsid = UTF_8;
        }
        md.backout_count = 0;
        if md.reply_to_q[0] > b' ' && md.reply_to_qmgr[0] <= b' ' {
            md.reply_to_qmgr = fixed(manager);
        }
        if options & (pmo::SET_ALL_CONTEXT | pmo::SET_IDENTITY_CONTEXT) == 0 {
            md.user = fixed(&self.task.user);
            (md.accounting, md.appl_identity) = ([0; 32], [b' '; 32]);
        }
        if options & pmo::SET_ALL_CONTEXT == 0 {
            (md.put_date, md.put_time) = dates::of(dates::now_ms());
            (md.put_appl_type, md.put_appl_name) = (JAVA, fixed(&self.task.application));
            md.appl_origin = [b' '; 4];
        }
        Ok(())
    }
}

/// `AMQ `, a part of the queue manager's name, and 64 random bits before the last four bytes.
///
/// # Errors
/// There are no random numbers.
pub fn fresh_id(queue_manager: &str) -> Result<[u8; 24], u32> {
    let mut id = [0; 24];
    getrandom::fill(&mut id[12..]).map_err(|error| {
        tracing::warn!(%error, "no random numbers: a message of an MQ client gets no id");
        reason::UNEXPECTED_ERROR
    })?;
    id[..4].copy_from_slice(b"AMQ ");
    id[4..12].copy_from_slice(&fixed::<8>(queue_manager));
    id[20..].fill(0);
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_conversation_count_and_begin_a_new_range_at_the_end() {
        let mut ids = Ids::default();
        let first = ids.next("QM1").expect("random");
        assert_eq!((&first[..4], &first[4..7], &first[20..]), (&b"AMQ "[..], &b"QM1"[..], &[0; 4][..]));
        let second = ids.next("QM1").expect("random");
        assert_eq!((&second[..20], &second[20..]), (&first[..20], &[0, 0, 0, 1][..]));
        ids.next = u32::MAX;
        assert_eq!(ids.next("QM1").expect("random")[20..], [0xff; 4]);
        assert_ne!(ids.next("QM1").expect("random")[..20], first[..20]);
    }
}
