//! One client connection: frames in, requests started in the order they arrive, answers out in the same order.
//!
//! A request is started as soon as its frame is there, whatever the ones before it wait for: waiting for a sync, for
//! data or for a group holds up the answer, not the next request. Requests that ask how far partitions are wait for the
//! answers before theirs, as every request does in Kafka: else they would say less than a Fetch that is answered
//! before. Two halves run in one task: one reads and starts, the other polls what has been started and writes what is
//! ready, several answers in one system call.
//!
//! A producer whose batches all belong to other workers is moved to one of them, between two requests: its batches then
//! stay on one thread, which saves two wake-ups each. So is a consumer whose partitions do; it leaves its fetch session
//! behind.
//!
//! Always true:
//! 1. requests start in the order of their frames, and are answered in it
//! 2. at most 128 requests wait for their answers; at most 16 where one is no Produce or Fetch, or while the worker's
//!    connections have 128 Produce requests under way; after that the socket is not read (in_flight.rs)
//! 3. while the socket takes no more of the answers, nothing more is started; nor while answers of [`WRITE_BYTES`] wait
//!    to be written, or Fetches that are under way hold as much (session/reading.rs)
//! 4. an answer that is not small has a share of the memory budget until it is written; while the budget is spent, a
//!    connection that waits for such answers starts nothing more
//! 5. while the client is throttled, nothing more is read
//! 6. nothing that a client sends ends more than its own connection
//! 7. a worker makes one answer that grows with the node at a time; its other connections have their turn in between
//! 8. a worker closes few connections before its others have a turn (closing.rs)
//!
//! Produce path 1 of 5. Before: shell/net's frame reader. After: core/api/src/k00_produce.rs, through requests.rs.

mod answers;
mod closing;
mod errors;
mod in_flight;
mod login;
pub mod throttle;

use super::call::{Answer, Pieces, Started};
use super::decode::{Free, LargeTurn, decode};
use super::session::{Half, Session};
use crate::mailbox::{Command, NewConnection};
use crate::node::workers::complaints::Cause;
use barnabas_metrics::Stamp;
use barnabas_net::{Claim, ConnectionSlot, FrameError, FrameReader, ReadHalf, Stream};
use barnabas_wire::{ApiKey, Frame, RequestStart};
use bytes::Bytes;
use in_flight::{Place, is_full};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use throttle::Charge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that came together are started for so long, before other connections have their turn.
const TURN_NS: u64 = 500_000;
/// Answers that are ready are gathered up to this size before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// A request that was started and is not answered yet.
struct Waiting {
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    state: State,
    /// The request's share of the memory budget, given back with its answer.
    _claim: Claim,
    /// What it holds without one.
    _free: Option<Free>,
    /// Its place among the worker's requests, where those are counted.
    _place: Option<Place>,
    /// What its client's quotas are charged with, where it may have any.
    charge: Option<Charge>,
    /// Given back when its answer has been made.
    turn: Option<OwnedSemaphorePermit>,
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
pub async fn serve(session: Rc<Session>, mut stream: Stream, new: Handover) {
    let Handover { slot, mut reader } = new;
    let is_known = tokio::select! {
        is_known = login::log_in(&session, &mut stream, &mut reader, slot.accepted_at()) => is_known,
        () = closed(&session) => false,
    };
    if !is_known {
        closing::close(stream, reader).await;
        return;
    }
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
    let End::Move(worker) = end else {
        closing::close(stream, reader).await;
        return;
    };
    match stream.detach() {
        Ok(stream) => {
            let (peer, listener) = (session.peer, session.listener);
            let patience = session.patience.saturating_mul(4);
            let (certified, login) = (session.certified.clone(), session.handed_login());
            let (reader, software) = (Some(reader), session.software());
            let new =
                NewConnection { stream, certified, peer, listener, slot, reader, patience, login, software };
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
        throttle::unmuted(session).await;
        if let Some(worker) = session.move_to().filter(|_| reader.is_empty()) {
            answered(session, queue).await;
            return End::Move(worker);
        }
        if room(session, queue).await || !reader.has_frame() {
            started = None;
        }
        reader.replicates(session.replicates(queue.borrow().len()));
        let (frame, claim) = match reader.next(stream).await {
            Ok(Some(next)) => next,
            Ok(None) => return End::Closed,
            Err(FrameError::Io(error)) => {
                tracing::debug!(peer = %session.peer, %error, "connection lost");
                return End::Closed;
            }
            Err(error) => {
                node.workers.meter.bad_frames.one();
                let listener = &node.identity.listeners[session.listener].0;
                node.workers.complaints.bad_frame(session.peer, listener, &error);
                return End::Closed;
            }
        };
        // The answer that throttles its client was made while the frame was awaited.
        if throttle::unmuted(session).await {
            started = None;
        }
        // Frames that came together: the clock has just been read for the one before.
        let read = started.unwrap_or_else(Stamp::now);
        let bytes = frame.len() as u32 + 4;
        session.recorder.cells().bytes_in.add(bytes.into());
        session.active_ms.set(read.ms());
        match login::standing(session, &frame, read.ms()) {
            login::Standing::Request => {}
            login::Standing::Again => {
                drop(claim);
                if !login::again(session, (reader, stream), queue, frame).await {
                    return End::Closed;
                }
                started = None;
                continue;
            }
            login::Standing::Over => return End::Closed,
        }
        if Order::of(&frame) != Order::Nothing {
            answered(session, queue).await;
        }
        let Some(mut waiting) = begin(session, frame, claim).await else { return End::Closed };
        let begun = session.started((waiting.api, waiting.version, waiting.correlation_id), bytes, read);
        waiting.charge = Charge::of(session, waiting.api, bytes, begun.since(read));
        started = Some(begun);
        answers::settle(session, queue.borrow().len(), &mut waiting);
        queue.borrow_mut().push_back(waiting);
        worked += begun.since(read);
        if worked >= TURN_NS {
            (worked, started) = (0, None);
            tokio::task::yield_now().await;
        }
    }
}

/// What a request waits for before it is started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Nothing,
    /// Its connection's answers. The answer tells offsets of partitions, which must not be older than those in the
    /// answers before it: a consumer takes a ListOffsets that overtook a waiting Fetch for the end of the log, and
    /// reports a lag below zero. Or it grows with the node, and not with the request: a connection has one of those at
    /// a time.
    Answers,
    /// Those, and its turn among the worker's connections. The answer grows with the node, and making it never waits
    /// for memory.
    Turn,
}

impl Order {
    fn of(frame: &Bytes) -> Self {
        let api = RequestStart::peek(frame).ok().and_then(|start| ApiKey::from_number(start.api_key));
        api.map_or(Self::Nothing, Self::of_api)
    }

    fn of_api(api: ApiKey) -> Self {
        match api {
            ApiKey::ListOffsets
            | ApiKey::OffsetForLeaderEpoch
            | ApiKey::DescribeProducers
            | ApiKey::DescribeShareGroupOffsets
            | ApiKey::DescribeLogDirs => Self::Answers,
            ApiKey::ListGroups
            | ApiKey::DescribeGroups
            | ApiKey::ConsumerGroupDescribe
            | ApiKey::ShareGroupDescribe
            | ApiKey::StreamsGroupDescribe
            | ApiKey::ListTransactions
            | ApiKey::DescribeTransactions => Self::Turn,
            _ => Self::Nothing,
        }
    }

    /// Waits for the turn, where there is one. Its holder never waits for memory: those that wait here may hold it.
    async fn turn(self) -> Option<OwnedSemaphorePermit> {
        match self {
            // Never closed.
            Self::Turn => TURN.with(Arc::clone).acquire_owned().await.ok(),
            Self::Nothing | Self::Answers => None,
        }
    }
}

thread_local! {
    /// The answer that grows with the node and is made now. One of 1,000 groups with long names takes ten milliseconds:
    /// forty connections that ask for it at once must not hold up the others.
    static TURN: Arc<Semaphore> = Arc::new(Semaphore::new(1));
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
        let is_read = !writing && session.unsent.get() + session.reading.get() < WRITE_BYTES;
        if is_read && !session.is_scarce.get() && !is_full(&queue) {
            return Poll::Ready(has_waited);
        }
        has_waited = true;
        session.park(Half::Read, context);
        Poll::Pending
    })
    .await
}

/// Reads a request and starts it. `None`: it cannot be read, and the connection is to be closed.
async fn begin(session: &Rc<Session>, frame: Bytes, mut claim: Claim) -> Option<Waiting> {
    let start = RequestStart::peek(&frame);
    let known = start.as_ref().ok().and_then(|start| {
        let api = ApiKey::from_number(start.api_key)?;
        super::is_served(session, api).then_some((api, *start))
    });
    let Some((api, start)) = known else {
        let what = match start {
            Ok(start) => format!("api {} is not served here", start.api_key),
            Err(error) => format!("a request without a header: {error}"),
        };
        bad_request(session, Cause::Header, &what);
        return None;
    };
    let waiting = |version, state, claim, free| {
        let correlation_id = start.correlation_id;
        Waiting {
            correlation_id,
            api,
            version,
            state,
            _claim: claim,
            _free: free,
            _place: Place::of(api),
            charge: None,
            turn: None,
        }
    };
    if !super::versions(api).contains(start.api_version) {
        if api == ApiKey::ApiVersions {
            // KIP-511: answered in version 0, from which the client learns what it may ask.
            let answer = super::unsupported_api_versions();
            return Some(waiting(0, State::Done(answer), claim, None));
        }
        bad_request(
            session,
            Cause::Version(api),
            &format!("version {} of {api} is not served here", start.api_version),
        );
        return None;
    }
    let memory_max = session.node.workers.decode_bytes_max;
    let decoded = decode(frame, memory_max, &mut claim, &session.unclaimed, session.beside()).await;
    let (decoded, free) = match decoded {
        Ok(decoded) => decoded,
        Err(error) => {
            bad_request(session, Cause::Body(api), &format!("{api} version {}: {error}", start.api_version));
            return None;
        }
    };
    let turn = Order::of_api(api).turn().await;
    let large_turn = LargeTurn::of(&decoded).await;
    let state = match super::start(session.clone(), decoded.header, decoded.body).await {
        Started::Answer(answer) => State::Done(answer),
        Started::Wait(future) => State::Running(future),
    };
    drop(large_turn);
    Some(Waiting { turn, ..waiting(start.api_version, state, claim, free) })
}

fn bad_request(session: &Session, cause: Cause, what: &str) {
    session.node.workers.meter.bad_requests.one();
    session.node.workers.complaints.closed(session.peer, cause, what);
}
