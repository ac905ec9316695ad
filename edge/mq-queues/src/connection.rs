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
use barnabas_queue_access::{Claim, Denied, LOGIN_WITHIN, Logins};
use barnabas_sasl::Secret;
use bytes::{Buf, BytesMut};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::spawn_local;
use tokio::time::timeout;

const HELD_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
const CONVERSATIONS_MAX: u32 = 10;
const HEARTBEAT_S: u32 = 60;
const REPORTS_MAX: usize = 64;
/// For what is left to be written when the connection has ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// A conversation's task.
#[derive(Debug)]
struct Held {
    calls: mpsc::Sender<(Ticket, barnabas_mq::Call)>,
    /// Dropped when the conversation is over.
    _alive: watch::Sender<()>,
}

pub struct Connection {
    stream: Stream,
    out: BytesMut,
    server: Server,
    started: Instant,
    logins: Logins,
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
    #[error("the peer closed the socket")]
    Cut,
}

impl Connection {
    pub fn new(stream: Stream, logins: Logins, shared: Arc<Shared>) -> Self {
        let config = ServerConfig {
            queue_manager: shared.queue_manager.clone(),
            identifier: shared.identifier.clone(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            held_bytes_max: HELD_BYTES_MAX,
            conversations_max: CONVERSATIONS_MAX,
            heartbeat_s: HEARTBEAT_S,
        };
        Self {
            stream,
            out: BytesMut::new(),
            server: Server::new(config, MonotonicMs(0)),
            started: Instant::now(),
            logins,
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
        // The connection is over either way.
        let _ = timeout(LAST_WORDS_WITHIN, async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        })
        .await;
        self.stream.say_end();
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
        let (stream, out, server) = (&mut self.stream, &mut self.out, &mut self.server);
        let report = tokio::select! {
            done = poll_fn(|context| poll_both(stream, out, server, now, context)) => return done,
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
        if !out.is_empty() {
            self.out.extend_from_slice(&out);
        }
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

/// Writes and reads as far as the socket goes. Ready when something was read, or when everything is written. While
/// much waits to be written, nothing is read: a client that does not read its answers gets no more of them.
fn poll_both(
    stream: &mut Stream,
    out: &mut BytesMut,
    server: &mut Server,
    now: MonotonicMs,
    context: &mut Context<'_>,
) -> Poll<Result<(), Ended>> {
    let had_output = !out.is_empty();
    while !out.is_empty() {
        match Pin::new(&mut *stream).poll_write(context, out) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(Ended::Io(ErrorKind::WriteZero.into()))),
            Poll::Ready(Ok(count)) => out.advance(count),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            Poll::Pending => break,
        }
    }
    let flushed = Pin::new(&mut *stream).poll_flush(context);
    if let Poll::Ready(Err(error)) = flushed {
        return Poll::Ready(Err(error.into()));
    }
    if server.wants_input() && out.len() < OUTGOING_BYTES_MAX {
        // On the stack: an idle connection has no buffer.
        let mut buffer = [0; 16 * 1024];
        let mut into = ReadBuf::new(&mut buffer);
        if let Poll::Ready(done) = Pin::new(stream).poll_read(context, &mut into) {
            return Poll::Ready(match done {
                Ok(()) if into.filled().is_empty() => Err(Ended::Cut),
                Ok(()) => server.receive(into.filled(), now).map_err(Ended::Mq),
                Err(error) => Err(error.into()),
            });
        }
    }
    if had_output && out.is_empty() && flushed.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
}
