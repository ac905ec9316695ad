//! One client connection: frames in, requests started in the order they arrive, answers out in the same order.
//!
//! A request is started as soon as its frame is there, whatever the ones before it wait for: waiting for a sync, for data
//! or for a group holds up the answer, not the next request. Requests that ask how far partitions are wait for the answers before
//! theirs, as every request does in Kafka: else they would say less than a Fetch that is answered before. Two halves run in one task: one reads and starts, the other
//! polls what has been started and writes what is ready, several answers in one system call.
//!
//! A producer whose batches all belong to other workers is moved to one of them, between two requests: its batches then stay on
//! one thread, which saves two wake-ups each. So is a consumer whose partitions do; it leaves its fetch session behind.
//!
//! Always true:
//! 1. requests start in the order of their frames, and are answered in it
//! 2. at most [`IN_FLIGHT_MAX`] requests wait for their answers, at most [`OTHERS_IN_FLIGHT_MAX`] where one is no Produce or Fetch;
//!    after that the socket is not read
//! 3. while the socket takes no more of the answers, nothing more is started; nor while answers of [`WRITE_BYTES`] wait to be written
//! 4. an answer that is not small has a share of the memory budget until it is written; while the budget is spent, a connection that
//!    waits for such answers starts nothing more
//! 5. nothing that a client sends ends more than its own connection
//!
//! Produce path 1 of 5. Before: shell/net's frame reader. After: core/api/src/k00_produce.rs, through dispatch.rs.

mod answers;
mod foreign;

use crate::brokers_gone;
use crate::dispatch::{self, Answer, HandingOn, OpenTransactions, Pieces, Started};
use crate::mailbox::{Command, NewConnection};
use crate::node::Node;
use crate::node::workers::complaints::Cause;
use barnabas_api::Client;
use barnabas_api::k01_fetch::FetchSessions;
use barnabas_api::share::Connection as ShareConnection;
use barnabas_base::{BrokerEpoch, BrokerId, ConnectionNumber};
use barnabas_metrics::clients::OTHER;
use barnabas_metrics::{Passed, Recorder, Stamp, Track, Tracks};
use barnabas_net::{Account, Claim, ConnectionSlot, FrameError, FrameReader};
use barnabas_wire::{ApiKey, Frame, RequestBody, RequestStart};
use bytes::Bytes;
use foreign::Foreign;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// Kafka's clients keep five requests in flight; librdkafka may keep many more.
const IN_FLIGHT_MAX: usize = 128;
/// Kafka works on one at a time.
const OTHERS_IN_FLIGHT_MAX: usize = 16;
/// Requests that came together are started for so long, before other connections have their turn.
const TURN_NS: u64 = 500_000;
/// Answers that are ready are gathered up to this size before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// Requests whose decoded form is not larger go into work without a share of the memory budget for it.
const DECODED_FREE_BYTES: usize = 64 * 1024;
/// What is made of a request on the way to its answer: the decoded entries, their owners' parts and outcomes, and the answer's entries,
/// for each byte of the decoded form. An estimate, not a measurement.
const WORK_BYTES_PER_DECODED: usize = 4;

/// Requests in a row until the first move. Each move makes the next one four times as hard, so that a producer that wanders
/// over partitions is not carried after them.
pub const MOVE_PATIENCE: u32 = 32;

/// How many connections more than its own worker another one may have that a connection moves to by choice.
const UNEVEN_MAX: u64 = 8;

/// What a connection's requests know of it.
#[derive(Debug)]
pub struct Session {
    pub node: Arc<Node>,
    pub recorder: Rc<Recorder>,
    pub peer: SocketAddr,
    /// Stays when another worker goes on with the connection.
    pub number: ConnectionNumber,
    /// The listener's place in the node's list.
    pub listener: usize,
    /// When something last moved, in milliseconds of the process's clock.
    pub active_ms: Cell<u64>,
    closing: Cell<bool>,
    /// The worker that serves the connection.
    worker: usize,
    patience: u32,
    foreign: Cell<Foreign>,
    /// Answers are on their way to the socket.
    writing: Cell<bool>,
    /// The memory budget was spent when one of the answers was read, which holds bytes without a share of it.
    pub is_scarce: Cell<bool>,
    /// The client as its last request named itself, and its place in the figures.
    client: RefCell<Option<(Arc<Client>, u16)>>,
    /// What became of the request whose future has just been polled; taken where it was polled.
    pub passed: Cell<Passed>,
    /// The newest Fetch was a follower's.
    pub follows: Cell<bool>,
    /// And the cluster knows it.
    pub is_follower: Cell<bool>,
    /// Only brokers or controllers connect to the listener.
    is_reserved: bool,
    /// What the address of the peer holds of the memory budget.
    account: Arc<Account>,
    /// Bytes of answers that are ready, and not yet on their way to the socket.
    unsent: Cell<usize>,
    pub open_transactions: RefCell<OpenTransactions>,
    pub handing_on: HandingOn,
    /// The broker whose heartbeats come in by this connection.
    pub registered: Cell<Option<(BrokerId, BrokerEpoch)>>,
    /// As share sessions know it, once one was begun here: its end is theirs.
    pub share_connection: Cell<Option<ShareConnection>>,
    tracks: RefCell<Tracks>,
    wakers: RefCell<[Option<Waker>; 2]>,
}

impl Session {
    pub fn new(node: Arc<Node>, recorder: Rc<Recorder>, new: &NewConnection, worker: usize) -> Self {
        let active_ms = Cell::new(node.clock.monotonic().0);
        let account = node.workers.budget.account(new.peer.ip());
        let is_reserved = node.identity.listeners[new.listener].0.is_reserved;
        recorder.cells().connected.add(1);
        Self {
            node,
            tracks: RefCell::new(Tracks::new(recorder.clone())),
            recorder,
            peer: new.peer,
            number: new.slot.number(),
            listener: new.listener,
            active_ms,
            closing: Cell::new(false),
            worker,
            patience: new.patience,
            foreign: Cell::default(),
            writing: Cell::new(false),
            is_scarce: Cell::new(false),
            client: RefCell::new(None),
            open_transactions: RefCell::default(),
            handing_on: HandingOn::default(),
            registered: Cell::default(),
            share_connection: Cell::new(None),
            passed: Cell::default(),
            follows: Cell::default(),
            is_follower: Cell::default(),
            is_reserved,
            account,
            unsent: Cell::default(),
            wakers: RefCell::default(),
        }
    }

    /// The client behind a request. Made once, as long as it goes on naming itself the same.
    pub fn client(&self, client_id: Option<&str>) -> Arc<Client> {
        let mut known = self.client.borrow_mut();
        if let Some((client, _)) = &*known
            && client.client_id.as_deref() == client_id
        {
            return client.clone();
        }
        let place = self.node.workers.metering.client_came(client_id);
        let client = Arc::new(dispatch::client(self, client_id));
        if let Some((_, left)) = known.replace((client.clone(), place)) {
            self.node.workers.metering.client_left(left);
        }
        client
    }

    /// A request of so many bytes that was read then has just been started. Returns when that is.
    fn started(&self, waiting: &Waiting, bytes: u32, read: Stamp) -> Stamp {
        let (api, version, passed) = (waiting.api, waiting.version, self.passed.take());
        let client = self.client.borrow().as_ref().map_or(OTHER, |(_, place)| *place);
        let started = Stamp::now();
        // What is not ready yet gets its own time later.
        let ready = started;
        let is_follower = api == ApiKey::Fetch && self.follows.get();
        let track =
            Track { api, version, is_follower, client, bytes, bytes_out: 0, read, started, ready, passed };
        self.tracks.borrow_mut().started(track);
        started
    }

    /// A request to produce or to fetch concerns partitions of these workers.
    pub fn worked_for(&self, owners: impl Iterator<Item = usize>) {
        self.foreign.set(self.foreign.get().after(self.worker, owners));
    }

    /// Where the connection had better be served.
    fn move_to(&self) -> Option<usize> {
        let Foreign { owner, same, any } = self.foreign.get();
        if any < self.patience || self.share_connection.get().is_some() {
            return None;
        }
        // Nobody else can do its work; or one of several can, and is not to do everybody's.
        let connections = |worker| self.node.workers.metering.connections(worker);
        let goes = same >= self.patience || connections(owner) <= connections(self.worker) + UNEVEN_MAX;
        goes.then_some(owner)
    }

    /// The shard that holds fetch session `id`; 0: the one for a new session.
    pub fn fetch_sessions(&self, id: i32) -> MutexGuard<'_, FetchSessions> {
        self.node.workers.fetch_sessions.of(id, self.worker)
    }

    /// An empty share of the memory budget.
    pub fn claim(&self) -> Claim {
        self.node.workers.budget.claim(Some(self.account.clone()))
    }

    /// Ends the connection at its next turn.
    pub fn close(&self) {
        self.closing.set(true);
        self.wake(Half::End);
    }

    fn wake(&self, half: Half) {
        if let Some(waker) = self.wakers.borrow_mut()[half as usize].take() {
            waker.wake();
        }
    }

    fn park(&self, half: Half, context: &Context<'_>) {
        let mut wakers = self.wakers.borrow_mut();
        let waker = &mut wakers[half as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.recorder.cells().disconnected.add(1);
        if let Some((id, epoch)) = self.registered.get() {
            brokers_gone::connection_closed(&self.node, id, epoch);
        }
        if let Some(connection) = self.share_connection.get() {
            dispatch::share_members_gone(&self.node, connection);
        }
        if let Some((_, place)) = self.client.get_mut().take() {
            self.node.workers.metering.client_left(place);
        }
    }
}

#[derive(Clone, Copy)]
enum Half {
    Read = 0,
    End = 1,
}

/// A request that was started and is not answered yet.
struct Waiting {
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    state: State,
    /// The request's share of the memory budget, given back with its answer.
    _claim: Claim,
}

enum State {
    Running(std::pin::Pin<Box<dyn Future<Output = Answer>>>),
    Done(Answer),
    /// Ready to be written, with its share of the memory budget.
    Framed(Frame, Claim),
    /// Its length and header are to be written.
    Large(Pieces, Claim),
    /// They are; the body follows piece by piece.
    Pieces(Pieces, Claim),
}

type Queue = RefCell<VecDeque<Waiting>>;

/// How a worker's part in a connection ends.
enum End {
    Closed,
    /// Another worker goes on with it.
    Move(usize),
}

/// Serves a connection until either side ends it, or hands it on.
pub async fn serve(session: Rc<Session>, mut stream: TcpStream, new: Handover) {
    let Handover { slot, mut reader } = new;
    let end = {
        let queue = Queue::default();
        let (mut read, write) = stream.split();
        // Either half ends the connection: the other is dropped with what it was waiting for.
        tokio::select! {
            // Every wake-up polls all of them, in this order: what was read is answered at the same turn if it can be.
            biased;
            end = read_half(&session, &mut reader, &mut read, &queue) => end,
            () = answers::write(&session, &write, &queue) => End::Closed,
            () = closed(&session) => End::Closed,
        }
    };
    let End::Move(worker) = end else { return };
    match stream.into_std() {
        Ok(stream) => {
            let (peer, listener) = (session.peer, session.listener);
            let patience = session.patience.saturating_mul(4);
            let new = NewConnection { stream, peer, listener, slot, reader: Some(reader), patience };
            session.node.workers.mailboxes[worker].send(Command::Connection(new)).await;
        }
        Err(error) => tracing::debug!(peer = %session.peer, %error, "connection lost"),
    }
}

/// What goes along with a connection from worker to worker.
#[derive(Debug)]
pub struct Handover {
    pub slot: ConnectionSlot,
    pub reader: FrameReader,
}

async fn closed(session: &Session) {
    poll_fn(|context| {
        if session.closing.get() {
            return Poll::Ready(());
        }
        session.park(Half::End, context);
        Poll::Pending
    })
    .await;
}

async fn read_half(
    session: &Rc<Session>,
    reader: &mut FrameReader,
    stream: &mut ReadHalf<'_>,
    queue: &Queue,
) -> End {
    let node = &session.node;
    // When the request before was started, and what those of this turn have cost.
    let (mut started, mut worked) = (None, 0);
    loop {
        if let Some(worker) = session.move_to().filter(|_| reader.is_empty()) {
            answered(session, queue).await;
            return End::Move(worker);
        }
        if room(session, queue).await || !reader.has_frame() {
            started = None;
        }
        let (frame, claim) = match reader.next(stream).await {
            Ok(Some(next)) => next,
            Ok(None) => return End::Closed,
            Err(FrameError::Io(error)) => {
                tracing::debug!(peer = %session.peer, %error, "connection lost");
                return End::Closed;
            }
            Err(error) => {
                node.workers.meter.bad_frames.one();
                node.workers.complaints.closed(session.peer, Cause::from(&error), error);
                return End::Closed;
            }
        };
        // Frames that came together: the clock has just been read for the one before.
        let read = started.unwrap_or_else(Stamp::now);
        let bytes = frame.len() as u32 + 4;
        session.recorder.cells().bytes_in.add(bytes.into());
        session.active_ms.set(read.ms());
        if asks_for_offsets(&frame) {
            answered(session, queue).await;
        }
        let Some(mut waiting) = begin(session, frame, claim).await else { return End::Closed };
        let begun = session.started(&waiting, bytes, read);
        started = Some(begun);
        answers::settle(session, &mut waiting);
        queue.borrow_mut().push_back(waiting);
        reader.follows(session.is_follower.get() || session.is_reserved);
        worked += begun.since(read);
        if worked >= TURN_NS {
            (worked, started) = (0, None);
            tokio::task::yield_now().await;
        }
    }
}

/// Whether the request's answer tells offsets of partitions, which must not be older than those in the answers before it. A consumer
/// takes a ListOffsets that overtook a waiting Fetch for the end of the log, and reports a lag below zero.
fn asks_for_offsets(frame: &Bytes) -> bool {
    let api = RequestStart::peek(frame).ok().and_then(|start| ApiKey::from_number(start.api_key));
    matches!(api, Some(ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch | ApiKey::DescribeProducers))
}

/// Waits until everything that was started is answered and written.
async fn answered(session: &Session, queue: &Queue) {
    poll_fn(|context| {
        if queue.borrow().is_empty() && !session.writing.get() {
            return Poll::Ready(());
        }
        session.park(Half::Read, context);
        Poll::Pending
    })
    .await;
}

/// Waits until another request may be started. Returns whether that took time.
async fn room(session: &Session, queue: &Queue) -> bool {
    let mut has_waited = false;
    poll_fn(|context| {
        let (queue, writing) = (queue.borrow(), session.writing.get());
        if queue.is_empty() && !writing {
            session.is_scarce.set(false);
        }
        let is_read = !writing && session.unsent.get() < WRITE_BYTES;
        if is_read && !session.is_scarce.get() && !is_full(&queue) {
            return Poll::Ready(has_waited);
        }
        has_waited = true;
        session.park(Half::Read, context);
        Poll::Pending
    })
    .await
}

/// Whether as many requests wait for their answers as a connection may have.
fn is_full(queue: &VecDeque<Waiting>) -> bool {
    let has_others = || queue.iter().any(|waiting| !matches!(waiting.api, ApiKey::Produce | ApiKey::Fetch));
    queue.len() >= IN_FLIGHT_MAX || (queue.len() >= OTHERS_IN_FLIGHT_MAX && has_others())
}

/// Reads a request and starts it. `None`: it cannot be read, and the connection is to be closed.
async fn begin(session: &Rc<Session>, frame: Bytes, mut claim: Claim) -> Option<Waiting> {
    let start = RequestStart::peek(&frame);
    let known = start.as_ref().ok().and_then(|start| {
        let api = ApiKey::from_number(start.api_key)?;
        dispatch::is_served(session, api).then_some((api, *start))
    });
    let Some((api, start)) = known else {
        let what = match start {
            Ok(start) => format!("api {} is not served here", start.api_key),
            Err(error) => format!("a request without a header: {error}"),
        };
        bad_request(session, Cause::Header, &what);
        return None;
    };
    let waiting = |version, state, claim| {
        let correlation_id = start.correlation_id;
        Waiting { correlation_id, api, version, state, _claim: claim }
    };
    if !dispatch::versions(api).contains(start.api_version) {
        if api == ApiKey::ApiVersions {
            // KIP-511: answered in version 0, from which the client learns what it may ask.
            let answer = dispatch::unsupported_api_versions();
            return Some(waiting(0, State::Done(answer), claim));
        }
        bad_request(
            session,
            Cause::Version(api),
            &format!("version {} of {api} is not served here", start.api_version),
        );
        return None;
    }
    let frame_bytes = frame.len();
    let decoded = match RequestBody::decode_counted(frame, session.node.workers.decode_bytes_max) {
        Ok(decoded) => decoded,
        Err(error) => {
            bad_request(session, Cause::Body(api), &format!("{api} version {}: {error}", start.api_version));
            return None;
        }
    };
    if decoded.memory_bytes > DECODED_FREE_BYTES {
        claim.grow_to((frame_bytes + decoded.memory_bytes * WORK_BYTES_PER_DECODED) as u64).await;
    }
    let state = match dispatch::start(session.clone(), decoded.header, decoded.body).await {
        Started::Answer(answer) => State::Done(answer),
        Started::Wait(future) => State::Running(future),
    };
    Some(waiting(start.api_version, state, claim))
}

fn bad_request(session: &Session, cause: Cause, what: &str) {
    session.node.workers.meter.bad_requests.one();
    session.node.workers.complaints.closed(session.peer, cause, what);
}
