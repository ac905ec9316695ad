//! One conversation (`MQHCONN`): its handles, its unit of work, and what its calls do.
//!
//! Calls are done in the order in which they came, one at a time. Messages that were requested ahead come beside them.
//!
//! | call | module |
//! |---|---|
//! | MQOPEN, MQCLOSE | `opening` |
//! | MQGET, requests for messages | `getting` |
//! | MQPUT, MQPUT1 | `putting` |
//! | MQCMIT, MQBACK, MQDISC | `unit` |
//! | MQINQ | `inquiring` |
//!
//! Before: connection.rs. Between them: task.rs. After: source.rs, browser.rs.

mod getting;
mod inquiring;
mod opening;
mod putting;
mod unit;

use crate::source::Taken;
use crate::task::{FromTask, Task};
use barnabas_client::{ClientError, Cluster};
use barnabas_mq::{Call, Notice, Reply, Ticket, reason};
use barnabas_queue_access::UnitWriter;
use getting::Gets;
use opening::Handles;
use putting::Puts;
use tokio::sync::mpsc;
use unit::Unit;

/// The largest message that is taken.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Messages that were requested and came: one of each handle.
const STREAMED_MAX: usize = 64;

/// A message that came for a request, or the word that none did.
#[derive(Debug)]
struct Streamed {
    handle: u32,
    turn: u64,
    taken: Result<Option<Taken>, ClientError>,
}

/// What a call is answered.
#[derive(Debug)]
struct Answer {
    codes: (u32, u32),
    handle: u32,
    reply: Reply,
}

impl Answer {
    fn ok(reply: Reply) -> Self {
        Self::with(reason::NONE, 0, reply)
    }

    /// A reason other than [`reason::NONE`] is a failure.
    fn with(why: u32, handle: u32, reply: Reply) -> Self {
        let code = if why == reason::NONE { reason::CC_OK } else { reason::CC_FAILED };
        Self { codes: (code, why), handle, reply }
    }
}

pub struct Conversation {
    task: Task,
    /// For what is not a reader of its own: puts, inquiries, temporary queues.
    cluster: Cluster,
    handles: Handles,
    unit: Unit,
    /// For units of work, and temporary queues.
    writer: UnitWriter,
    puts: Puts,
    gets: Gets,
    streamed: (mpsc::Sender<Streamed>, mpsc::Receiver<Streamed>),
}

impl Conversation {
    pub fn new(task: Task) -> Self {
        let slots = task.shared.slots.clone();
        Self {
            cluster: Cluster::new(task.kafka.clone()),
            task,
            handles: Handles::default(),
            unit: Unit::default(),
            writer: UnitWriter::new(slots),
            puts: Puts::default(),
            gets: Gets::default(),
            streamed: mpsc::channel(STREAMED_MAX),
        }
    }

    /// Until the client disconnects or is gone. What is not committed then goes back.
    pub async fn run(mut self) {
        loop {
            let streamed = tokio::select! {
                call = self.task.calls.recv() => match call {
                    Some((ticket, Call::Disconnect)) => {
                        self.disconnect(ticket).await;
                        break;
                    }
                    Some((ticket, call)) => {
                        self.answer(ticket, call).await;
                        continue;
                    }
                    None => break,
                },
                streamed = self.streamed.1.recv() => streamed,
            };
            if let Some(streamed) = streamed {
                self.stream(streamed).await;
            }
        }
        self.back_out().await;
        self.close_all().await;
    }

    async fn disconnect(&mut self, ticket: Ticket) {
        self.puts.settle().await;
        let codes = self.commit().await;
        self.reply(ticket, Answer { codes, handle: 0, reply: Reply::Bare }).await;
        self.task.report(FromTask::Ended(self.task.id)).await;
    }

    async fn answer(&mut self, ticket: Ticket, call: Call) {
        if !matches!(call, Call::Put(_)) {
            self.puts.settle().await;
        }
        let answer = match call {
            Call::Open(open) => self.open(open).await,
            Call::Close { handle, options } => self.close(handle, options).await,
            Call::Put(put) => match self.put(put).await {
                Some(answer) => answer,
                None => return self.task.report(FromTask::Dismiss(ticket)).await,
            },
            Call::Get(get) => match self.get(get).await {
                Some(answer) => answer,
                // The client is gone.
                None => return self.task.report(FromTask::Dismiss(ticket)).await,
            },
            Call::Request(request) => {
                self.request(&ticket, request).await;
                return self.task.report(FromTask::Dismiss(ticket)).await;
            }
            Call::Notify { handle, code, value, confirms } => {
                self.notified(&ticket, Notice { handle, code, value }, confirms).await;
                return self.task.report(FromTask::Dismiss(ticket)).await;
            }
            Call::Inquire { handle, selectors, integers, characters } => {
                self.inquire(handle, selectors, (integers, characters)).await
            }
            Call::Stat { of } => self.puts.stat(of),
            Call::Reserve => self.reserve(),
            Call::Commit => Answer { codes: self.commit().await, handle: 0, reply: Reply::Bare },
            Call::Back => Answer { codes: self.back_out().await, handle: 0, reply: Reply::Bare },
            // Both are answered before they come here.
            Call::Disconnect | Call::Query => Answer::with(reason::UNEXPECTED_ERROR, 0, Reply::Bare),
        };
        self.reply(ticket, answer).await;
    }

    async fn reply(&mut self, ticket: Ticket, answer: Answer) {
        let bytes = if let Reply::Get { data, .. } = &answer.reply { data.len() } else { 0 };
        let permit = if bytes > 0 { self.task.room(bytes).await } else { None };
        let Answer { codes, handle, reply } = answer;
        let reply = Box::new(reply);
        self.task.report(FromTask::Reply { ticket, codes, handle, reply, permit }).await;
    }

    /// Message ids for a client to give: the last four bytes count.
    fn reserve(&self) -> Answer {
        let mut first = [0; 24];
        match putting::fresh_id(&self.task.shared.queue_manager) {
            Ok(id) => first[..20].copy_from_slice(&id[..20]),
            Err(why) => return Answer::with(why, 0, Reply::Bare),
        }
        Answer::ok(Reply::Reserve { first })
    }
}
