//! One client connection: frames in, requests started in the order they arrive, answers out in the same order.
//!
//! A request is started as soon as its frame is there, whatever the ones before it wait for: waiting for a sync, for data
//! or for a group holds up the answer, not the next request. Two halves run in one task: one reads and starts, the other
//! polls what has been started and writes what is ready, several answers in one system call.
//!
//! A producer whose batches all belong to other workers is moved to one of them, between two requests: its batches then stay on
//! one thread, which saves two wake-ups each. So is a consumer whose partitions do; it leaves its fetch session behind.
//!
//! Always true:
//! 1. requests start in the order of their frames, and are answered in it
//! 2. at most [`IN_FLIGHT_MAX`] requests wait for their answers; after that the socket is not read
//! 3. while the memory budget is spent, a connection that waits for large answers starts nothing more: what it would read could not be
//!    written before them
//! 4. nothing that a client sends ends more than its own connection
//!
//! Produce path 1 of 5. Before: shell/net's frame reader. After: core/api/src/k00_produce.rs, through dispatch.rs.

mod foreign;

use crate::brokers_gone;
use crate::dispatch::{self, Answer, HandingOn, OpenTransactions, Pieces, Started};
use crate::mailbox::Command;
use crate::metering::clients::OTHER;
use crate::metering::{Passed, Recorder, Stamp, Track, Tracks};
use crate::node::Node;
use barnabas_api::Client;
use barnabas_api::k01_fetch::FetchSessions;
use barnabas_api::share::Connection as ShareConnection;
use barnabas_base::{BrokerEpoch, BrokerId, ConnectionNumber};
use barnabas_net::{Claim, ConnectionSlot, FrameError, FrameReader, FrameWriter};
use barnabas_wire::messages::ResponseHeader;
use barnabas_wire::{ApiKey, Message, RequestBody, RequestStart, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use foreign::Foreign;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Kafka's clients keep five requests in flight; librdkafka may keep many more.
const IN_FLIGHT_MAX: usize = 128;
/// Answers that are ready are gathered up to this size before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// An accepted socket on its way to the worker that will serve it.
#[derive(Debug)]
pub struct NewConnection {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
    pub listener: usize,
    pub slot: ConnectionSlot,
    /// How far reading has come, if another worker served it before.
    pub reader: Option<FrameReader>,
    /// How many requests in a row must belong elsewhere before it is moved.
    pub patience: u32,
}

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
    /// The fetch sessions of this worker's connections.
    pub fetch_sessions: Rc<RefCell<FetchSessions>>,
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
    pub fn new(
        node: Arc<Node>,
        recorder: Rc<Recorder>,
        new: &NewConnection,
        worker: usize,
        fetch_sessions: Rc<RefCell<FetchSessions>>,
    ) -> Self {
        let active_ms = Cell::new(node.clock.monotonic().0);
        recorder.cells().connected.add(1);
        Self {
            node,
            tracks: RefCell::new(Tracks::new(recorder.clone())),
            recorder,
            peer: new.peer,
            number: new.slot.number(),
            listener: new.listener,
            fetch_sessions,
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
        let place = self.node.metering.client_came(client_id);
        let client = Arc::new(dispatch::client(self, client_id));
        if let Some((_, left)) = known.replace((client.clone(), place)) {
            self.node.metering.client_left(left);
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
        let connections = |worker| self.node.metering.connections(worker);
        let goes = same >= self.patience || connections(owner) <= connections(self.worker) + UNEVEN_MAX;
        goes.then_some(owner)
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
            self.node.metering.client_left(place);
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
    /// Its length and header are written; the body follows piece by piece.
    Pieces(Pieces),
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
            () = write_half(&session, &write, &queue) => End::Closed,
            () = closed(&session) => End::Closed,
        }
    };
    let End::Move(worker) = end else { return };
    match stream.into_std() {
        Ok(stream) => {
            let (peer, listener) = (session.peer, session.listener);
            let patience = session.patience.saturating_mul(4);
            let new = NewConnection { stream, peer, listener, slot, reader: Some(reader), patience };
            session.node.mailboxes[worker].send(Command::Connection(new)).await;
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
    // When the request before was started.
    let mut started = None;
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
            Err(error) => {
                if let FrameError::Io(error) = &error {
                    tracing::debug!(peer = %session.peer, %error, "connection lost");
                } else {
                    node.meter.bad_frames.one();
                    tracing::info!(peer = %session.peer, "connection closed: {error}");
                }
                return End::Closed;
            }
        };
        // Frames that came together: the clock has just been read for the one before.
        let read = started.unwrap_or_else(Stamp::now);
        let bytes = frame.len() as u32 + 4;
        session.recorder.cells().bytes_in.add(bytes.into());
        session.active_ms.set(read.ms());
        let Some(waiting) = begin(session, frame, claim).await else { return End::Closed };
        started = Some(session.started(&waiting, bytes, read));
        queue.borrow_mut().push_back(waiting);
    }
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
        let waiting = queue.borrow().len();
        if waiting == 0 && !session.writing.get() {
            session.is_scarce.set(false);
        }
        if waiting < IN_FLIGHT_MAX && !session.is_scarce.get() {
            return Poll::Ready(has_waited);
        }
        has_waited = true;
        session.park(Half::Read, context);
        Poll::Pending
    })
    .await
}

/// Reads a request and starts it. `None`: it cannot be read, and the connection is to be closed.
async fn begin(session: &Rc<Session>, frame: Bytes, claim: Claim) -> Option<Waiting> {
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
        bad_request(session, &what);
        return None;
    };
    let waiting =
        |version, state| Waiting { correlation_id: start.correlation_id, api, version, state, _claim: claim };
    if !dispatch::versions(api).contains(start.api_version) {
        if api == ApiKey::ApiVersions {
            // KIP-511: answered in version 0, from which the client learns what it may ask.
            let answer = dispatch::unsupported_api_versions();
            return Some(waiting(0, State::Done(answer)));
        }
        bad_request(session, &format!("version {} of {api} is not served here", start.api_version));
        return None;
    }
    let (header, body) = match RequestBody::decode_frame(frame, session.node.decode_bytes_max) {
        Ok(request) => request,
        Err(error) => {
            bad_request(session, &format!("{api} version {}: {error}", start.api_version));
            return None;
        }
    };
    let state = match dispatch::start(session.clone(), header, body).await {
        Started::Answer(answer) => State::Done(answer),
        Started::Wait(future) => State::Running(future),
    };
    Some(waiting(start.api_version, state))
}

fn bad_request(session: &Session, what: &str) {
    session.node.meter.bad_requests.one();
    tracing::info!(peer = %session.peer, "connection closed: {what}");
}

async fn write_half(session: &Session, stream: &WriteHalf<'_>, queue: &Queue) {
    let mut writer = FrameWriter::default();
    // Shares of the memory budget that answers on their way to the socket hold.
    let mut held = Vec::new();
    loop {
        if !gather(session, queue, &mut writer, &mut held).await {
            // What was answered before still goes out.
            let _ = writer.flush(stream).await;
            return;
        }
        session.writing.set(true);
        session.wake(Half::Read);
        match writer.flush(stream).await {
            Ok(bytes) => session.recorder.cells().bytes_out.add(bytes as u64),
            Err(error) => {
                tracing::debug!(peer = %session.peer, %error, "connection lost");
                return;
            }
        }
        held.clear();
        let written = session.tracks.borrow_mut().written();
        session.active_ms.set(written.ms());
        session.writing.set(false);
        session.wake(Half::Read);
    }
}

/// Waits for the next answers and queues them for writing. `false`: the connection is to be closed.
async fn gather(session: &Session, queue: &Queue, writer: &mut FrameWriter, held: &mut Vec<Claim>) -> bool {
    poll_fn(|context| {
        let mut queue = queue.borrow_mut();
        let mut now = None;
        for (place, waiting) in queue.iter_mut().enumerate() {
            if let State::Running(future) = &mut waiting.state
                && let Poll::Ready(answer) = future.as_mut().poll(context)
            {
                waiting.state = State::Done(answer);
                let now = *now.get_or_insert_with(Stamp::now);
                session.tracks.borrow_mut().ready(place, now, session.passed.take());
            }
        }
        let mut progress = false;
        while writer.queued_bytes() < WRITE_BYTES {
            match queue_front(session, &mut queue, writer, held, context) {
                Front::Queued => progress = true,
                Front::Waits => break,
                Front::Close => return Poll::Ready(false),
            }
        }
        if progress {
            return Poll::Ready(true);
        }
        Poll::Pending
    })
    .await
}

/// What came of looking at the request whose answer is the next to be written.
enum Front {
    Queued,
    Waits,
    Close,
}

/// Queues the next answer, or the next piece of one.
fn queue_front(
    session: &Session,
    queue: &mut VecDeque<Waiting>,
    writer: &mut FrameWriter,
    held: &mut Vec<Claim>,
    context: &mut Context<'_>,
) -> Front {
    let Some(front) = queue.front_mut() else { return Front::Waits };
    match &mut front.state {
        State::Running(_) => Front::Waits,
        State::Pieces(pieces) => match pieces.poll_next(context) {
            Poll::Pending => Front::Waits,
            Poll::Ready(None) => {
                queue.pop_front();
                session.tracks.borrow_mut().leaves();
                Front::Queued
            }
            Poll::Ready(Some(Ok(piece))) => {
                session.tracks.borrow_mut().wrote(piece.len());
                writer.queue([piece]);
                Front::Queued
            }
            Poll::Ready(Some(Err(broken))) => {
                let api = front.api;
                tracing::error!(peer = %session.peer, %api, "answer ends in the middle, connection closed: {}", broken.0);
                Front::Close
            }
        },
        State::Done(Answer::Pieces(_)) => {
            let State::Done(Answer::Pieces(pieces)) =
                std::mem::replace(&mut front.state, State::Done(Answer::Nothing))
            else {
                unreachable!("invariant: just matched")
            };
            let Some(start) = large_start(front, pieces.left) else { return Front::Close };
            writer.queue([start]);
            front.state = State::Pieces(pieces);
            Front::Queued
        }
        State::Done(_) => {
            let Some(waiting) = queue.pop_front() else { return Front::Waits };
            if queue_answer(session, waiting, writer, held) { Front::Queued } else { Front::Close }
        }
    }
}

/// Length and header of an answer whose body has `body_bytes`; `None` if no frame can be so long.
fn large_start(waiting: &Waiting, body_bytes: usize) -> Option<Bytes> {
    let header = ResponseHeader { correlation_id: waiting.correlation_id, ..ResponseHeader::default() };
    let mut w = Writer::with_capacity(16);
    let encoded = header.encode(&mut w, waiting.api.response_header_version(waiting.version));
    let header = encoded.ok().map(|()| w.into_bytes())?;
    let length = i32::try_from(header.len() + body_bytes).ok();
    let Some(length) = length else {
        tracing::error!(api = %waiting.api, body_bytes, "answer is longer than a frame can be; connection closed");
        return None;
    };
    let mut start = BytesMut::with_capacity(4 + header.len());
    start.put_i32(length);
    start.extend_from_slice(&header);
    Some(start.freeze())
}

/// Encodes an answer. `false`: the connection is to be closed instead.
fn queue_answer(
    session: &Session,
    waiting: Waiting,
    writer: &mut FrameWriter,
    held: &mut Vec<Claim>,
) -> bool {
    let State::Done(answer) = waiting.state else { return true };
    let body = match answer {
        Answer::Nothing => {
            session.tracks.borrow_mut().leaves();
            return true;
        }
        // Pieces are the caller's.
        Answer::Close | Answer::Pieces(_) => return false,
        Answer::Reply(body) => body,
        Answer::Held(body, claim) => {
            held.push(claim);
            body
        }
    };
    match barnabas_wire::frame_response(waiting.correlation_id, &body, waiting.version) {
        Ok(frame) => {
            let mut tracks = session.tracks.borrow_mut();
            tracks.wrote(frame.len);
            tracks.leaves();
            writer.queue(frame.segments);
            true
        }
        Err(error) => {
            // A bug of ours, but only this client need suffer from it.
            let (api, version) = (waiting.api, waiting.version);
            tracing::error!(peer = %session.peer, %api, version, %error, "answer cannot be written; connection closed");
            false
        }
    }
}
