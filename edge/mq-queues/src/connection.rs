//! One client: the socket, core/mq's machine, and the tasks of its conversations.
//!
//! Bounded, for each connection: bytes of calls without an answer ([`ServerConfig::held_bytes_max`]), conversations
//! ([`CONVERSATIONS_MAX`], those that are still ending included), messages on their way out
//! ([`OUTGOING_BYTES_MAX`] beside the socket's).
//!
//! Before: edge/queue-access/src/listener.rs. After: conversation.rs. Between them: task.rs. The machine:
//! core/mq/src/server.rs.

use crate::Shared;
use crate::conversation::{Conversation, MESSAGE_BYTES_MAX};
use crate::task::{CALLS_MAX, FromTask, OUTGOING_BYTES_MAX, Task};
use barnabas_base::MonotonicMs;
use barnabas_client::ClusterConfig;
use barnabas_mq::{
    Connect, ConversationId, MqError, Password, Server, ServerConfig, ServerEvent, Ticket, reason,
};
use barnabas_net::Stream;
use barnabas_queue_access::{Claim, Denied, LOGIN_WITHIN, Logins, Origin, Producers, Socket};
use barnabas_sasl::Secret;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::spawn_local;

const HELD_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
const CONVERSATIONS_MAX: u32 = 10;
const HEARTBEAT_S: u32 = 60;
const REPORTS_MAX: usize = 64;

/// A conversation's task.
#[derive(Debug)]
struct Held {
    calls: mpsc::Sender<(Ticket, barnabas_mq::Call)>,
    /// Dropped when the conversation is over.
    _alive: watch::Sender<()>,
}

pub struct Connection {
    socket: Socket,
    server: Server,
    started: Instant,
    logins: Logins,
    producers: Producers,
    origin: Origin,
    shared: Arc<Shared>,
    held: BTreeMap<ConversationId, Held>,
    reports: (mpsc::Sender<FromTask>, mpsc::Receiver<FromTask>),
    outgoing: Arc<Semaphore>,
    places: Arc<Semaphore>,
    temporaries: crate::task::Temporaries,
    is_closed: bool,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Mq(#[from] MqError),
    #[error("the socket: {0}")]
    Io(#[from] std::io::Error),
    #[error("no login within {} s", LOGIN_WITHIN.as_secs())]
    Late,
}

impl Connection {
    pub fn new(stream: Stream, logins: Logins, producers: Producers, shared: Arc<Shared>) -> Self {
        let config = ServerConfig {
            queue_manager: shared.queue_manager.clone(),
            identifier: shared.identifier.clone(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            held_bytes_max: HELD_BYTES_MAX,
            conversations_max: CONVERSATIONS_MAX,
            heartbeat_s: HEARTBEAT_S,
        };
        Self {
            socket: Socket::new(stream),
            server: Server::new(config, MonotonicMs(0)),
            started: Instant::now(),
            logins,
            origin: producers.origin(),
            producers,
            shared,
            held: BTreeMap::new(),
            reports: mpsc::channel(REPORTS_MAX),
            outgoing: Arc::new(Semaphore::new(OUTGOING_BYTES_MAX)),
            places: Arc::new(Semaphore::new(CONVERSATIONS_MAX as usize)),
            temporaries: Rc::new(RefCell::new(BTreeMap::new())),
            is_closed: false,
        }
    }

    /// Until the connection ends. The tasks of its conversations end by themselves then, and give back what was not
    /// committed.
    pub async fn run(mut self) {
        if let Err(error) = self.converse().await {
            tracing::debug!(%error, "an MQ connection ended");
        }
        self.queue_output();
        self.socket.end().await;
    }

    async fn converse(&mut self) -> Result<(), Ended> {
        loop {
            while let Some(event) = self.server.next_event() {
                self.take(event);
            }
            if self.is_closed {
                return Ok(());
            }
            self.step().await?;
        }
    }

    /// One read, one write that ended, one report of a task, or one timer.
    async fn step(&mut self) -> Result<(), Ended> {
        self.queue_output();
        let is_open = self.server.is_open();
        let deadline = self.started + Duration::from_millis(self.server.deadline().0);
        let deadline = if is_open { deadline } else { deadline.min(self.started + LOGIN_WITHIN) };
        let now = self.now();
        // A client that does not read its answers gets no more of them.
        let wants_input = self.server.wants_input() && self.socket.queued() < OUTGOING_BYTES_MAX;
        let (socket, server) = (&mut self.socket, &mut self.server);
        let receive = |bytes: &[u8]| server.receive(bytes, now).map_err(Ended::Mq);
        let report = tokio::select! {
            done = socket.go_on(wants_input, receive) => return done,
            report = self.reports.1.recv() => report,
            () = tokio::time::sleep_until(deadline.into()) => None,
        };
        match report {
            Some(report) => {
                self.hear(report);
                Ok(())
            }
            None if !is_open && self.started.elapsed() >= LOGIN_WITHIN => Err(Ended::Late),
            None => Ok(self.server.tick(self.now())?),
        }
    }

    fn take(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Connect(id, ticket, connect) => self.connect(id, ticket, *connect),
            ServerEvent::Call(id, ticket, call) => match self.held.get(&id) {
                Some(held) => {
                    // The channel holds as many calls as the machine lets in.
                    if held.calls.try_send((ticket, *call)).is_err() {
                        tracing::warn!(
                            "a conversation of an MQ client has ended by itself; the connection ends"
                        );
                        self.is_closed = true;
                    }
                }
                None => self.server.dismiss(ticket),
            },
            ServerEvent::Ended(id) => drop(self.held.remove(&id)),
            ServerEvent::Closed => self.is_closed = true,
        }
    }

    fn connect(&mut self, id: ConversationId, ticket: Ticket, connect: Connect) {
        let wanted = connect.queue_manager.trim_start_matches('*');
        if !wanted.is_empty()
            && wanted != self.shared.queue_manager
            && !connect.queue_manager.starts_with('*')
        {
            return self.server.refuse(ticket, reason::Q_MGR_NAME_ERROR);
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return self.server.refuse(ticket, reason::MAX_CONNS_LIMIT_REACHED);
        };
        let user = self.server.user().cloned();
        let (logins, reports) = (self.logins.clone(), self.reports.0.clone());
        spawn_local(async move {
            let judged = check(logins, user).await.map(|(user, kafka)| Box::new((user, kafka, place)));
            let application = connect.application;
            // The connection may be gone.
            let _ = reports.send(FromTask::Login { id, ticket, application, judged }).await;
        });
    }

    fn hear(&mut self, report: FromTask) {
        match report {
            FromTask::Login { id, ticket, application, judged } => match judged {
                Ok(entered) => {
                    let (user, kafka, place) = *entered;
                    self.server.connected(ticket);
                    let task = self.begin(id, user, application, kafka);
                    spawn_local(async move {
                        Conversation::new(task).run().await;
                        drop(place);
                    });
                }
                Err(why) => self.server.refuse(ticket, why),
            },
            FromTask::Reply { ticket, codes, handle, reply, permit } => {
                self.server.reply_with(ticket, codes, handle, &reply);
                drop(permit);
            }
            FromTask::Dismiss(ticket) => self.server.dismiss(ticket),
            FromTask::Send { id, message, permit } => {
                self.server.send(id, &message);
                drop(permit);
            }
            FromTask::Notify { id, request, notice } => self.server.notify(id, request, &notice),
            FromTask::Ended(id) => drop(self.held.remove(&id)),
        }
    }

    fn begin(&mut self, id: ConversationId, user: String, application: String, kafka: ClusterConfig) -> Task {
        let (calls, from_peer) = mpsc::channel(CALLS_MAX);
        let (alive, gone) = watch::channel(());
        self.held.insert(id, Held { calls, _alive: alive });
        Task {
            id,
            user,
            application,
            kafka,
            producers: self.producers.clone(),
            origin: self.origin,
            shared: self.shared.clone(),
            reports: self.reports.0.clone(),
            calls: from_peer,
            gone,
            outgoing: self.outgoing.clone(),
            temporaries: self.temporaries.clone(),
        }
    }

    fn queue_output(&mut self) {
        let out = self.server.take_output();
        self.socket.queue(&out);
    }

    fn now(&self) -> MonotonicMs {
        MonotonicMs(self.started.elapsed().as_millis() as u64)
    }
}

/// Asks the broker who the client is. The answer has the user's name and how its connections are opened.
async fn check(
    logins: Logins,
    user: Option<(String, Option<Password>)>,
) -> Result<(String, ClusterConfig), u32> {
    let name = user.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
    let claim = match user {
        _ if !logins.needs_login() => Claim::Anonymous,
        Some((name, Some(password))) if !name.is_empty() && !password.0.is_empty() => {
            Claim::User(name, Secret::from(password.0.as_str()))
        }
        _ => return Err(reason::NOT_AUTHORIZED),
    };
    match logins.check(claim).await {
        Ok(kafka) => Ok((name, kafka)),
        Err(Denied::Wrong) => Err(reason::NOT_AUTHORIZED),
        Err(Denied::Later) => Err(reason::Q_MGR_NOT_AVAILABLE),
    }
}
