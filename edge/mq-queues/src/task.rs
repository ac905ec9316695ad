//! What goes between a connection and the tasks of its conversations, and how much of it at most.
//!
//! Before and after: connection.rs, conversation.rs.

use crate::Shared;
use crate::source::Source;
use barnabas_client::ClusterConfig;
use barnabas_mq::{Call, ConversationId, Notice, Reply, Streamed, Ticket};
use barnabas_queue_access::{Origin, Producers};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Calls that wait: as many as core/mq lets in.
pub const CALLS_MAX: usize = 256;
/// Messages of a connection that wait to be sent.
pub const OUTGOING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Temporary queues that a connection has made, and the one reader that each may have.
pub type Temporaries = Rc<RefCell<BTreeMap<String, Option<Source>>>>;

/// A user, its way to the broker, and its place among the conversations.
pub type Entered = Box<(String, ClusterConfig, OwnedSemaphorePermit)>;

/// What a connection learns of its tasks.
#[derive(Debug)]
pub enum FromTask {
    Login {
        id: ConversationId,
        ticket: Ticket,
        application: String,
        /// Or the reason code.
        judged: Result<Entered, u32>,
    },
    Reply {
        ticket: Ticket,
        codes: (u32, u32),
        handle: u32,
        reply: Box<Reply>,
        permit: Option<OwnedSemaphorePermit>,
    },
    Dismiss(Ticket),
    Send {
        id: ConversationId,
        message: Box<Streamed>,
        permit: OwnedSemaphorePermit,
    },
    Notify {
        id: ConversationId,
        request: u32,
        notice: Notice,
    },
    /// The conversation was ended by its client's MQDISC.
    Ended(ConversationId),
}

/// What a conversation's task has.
#[derive(Debug)]
pub struct Task {
    pub id: ConversationId,
    pub user: String,
    pub application: String,
    pub kafka: ClusterConfig,
    pub producers: Producers,
    /// The same for all conversations of a connection.
    pub origin: Origin,
    pub shared: Arc<Shared>,
    pub reports: mpsc::Sender<FromTask>,
    pub calls: mpsc::Receiver<(Ticket, Call)>,
    /// Changes when the client is gone.
    pub gone: watch::Receiver<()>,
    pub outgoing: Arc<Semaphore>,
    pub temporaries: Temporaries,
}

impl Task {
    /// Tells the connection. One that is gone needs to know nothing.
    pub async fn report(&self, report: FromTask) {
        let _ = self.reports.send(report).await;
    }

    /// Room for a message on its way out. `None`: the connection is gone.
    pub async fn room(&mut self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = bytes.clamp(1, OUTGOING_BYTES_MAX) as u32;
        tokio::select! {
            permit = self.outgoing.clone().acquire_many_owned(wanted) => permit.ok(),
            _ = self.gone.changed() => None,
        }
    }
}
