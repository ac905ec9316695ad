//! The outgoing side of a connection: polls what was started, makes bytes of what is ready, writes several answers in
//! one system call.
//!
//! Invariants 3 and 4 of connection.rs are kept here: what answers hold until the peer reads them is counted when they
//! are ready.

use super::errors::first_error;
use super::{Half, Queue, Session, State, WRITE_BYTES, Waiting, throttle};
use crate::node::log_rate_limit::Unsaid;
use crate::node::workers::complaints::Cause;
use crate::node::workers::repeated::Repeated;
use crate::requests::call::Answer;
use barnabas_metrics::Stamp;
use barnabas_net::{Claim, FrameWriter, Pace, Standing, WriteHalf};
use barnabas_wire::messages::ResponseHeader;
use barnabas_wire::{ApiKey, Message, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// Smaller answers claim nothing: as many as a connection may have in flight are half a megabyte.
const UNCLAIMED_BYTES: usize = 4 * 1024;
/// What a very large answer holds at a time (requests/call/pieces.rs).
const PIECES_BYTES: usize = 2 << 20;

/// Writes answers until the connection ends.
pub(super) async fn write(session: &Session, stream: &WriteHalf<'_>, queue: &Queue) {
    let mut writer = FrameWriter::default();
    // Shares of the memory budget that answers on their way to the socket hold.
    let mut held = Vec::new();
    loop {
        if !gather(session, queue, &mut writer, &mut held).await {
            // What was answered before still goes out.
            let _ = flush(session, &mut writer, stream).await;
            return;
        }
        session.writing.set(true);
        match flush(session, &mut writer, stream).await {
            Ok(bytes) => session.recorder.cells().bytes_out.add(bytes as u64),
            Err(error) => {
                tracing::debug!(peer = %session.peer, %error, "connection lost");
                return;
            }
        }
        held.clear();
        let written = session.tracks.borrow_mut().written(&|| session.asker());
        session.active_ms.set(written.ms());
        session.writing.set(false);
        session.wake(Half::Read);
    }
}

/// Gives the socket what is queued. A peer that does not read it is given up once others wait for the memory that it
/// holds; else `connections.max.idle.ms` ends it.
async fn flush(
    session: &Session,
    writer: &mut FrameWriter,
    stream: &WriteHalf<'_>,
) -> std::io::Result<usize> {
    let (mut pace, claim) = (Pace::writing(), session.claim());
    let bytes = (writer.queued_bytes() + session.unsent.get()) as u64;
    let goes_on = |waited: Duration, written: usize| {
        if written > 0 {
            pace.went_by(written);
            session.active_ms.set(session.node.clock.monotonic().0);
        }
        let Some(slow) = pace.waited(waited, || claim.press_on(bytes)) else { return true };
        let (late, seconds) = (slow.late, slow.seconds);
        let what = format!(
            "its answers are not read: {late} bytes of {bytes} went in {seconds} s, and others wait for the memory that they hold"
        );
        session.node.workers.complaints.closed(session.peer, Cause::Unread, what);
        false
    };
    writer.flush_while(stream, goes_on).await
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
                settle(session, place, waiting);
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
        State::Done(Answer::Nothing) => {
            queue.pop_front();
            session.tracks.borrow_mut().leaves();
            Front::Queued
        }
        State::Done(_) => Front::Close,
        State::Framed(frame, claim) => {
            session.unsent.set(session.unsent.get() - frame.len);
            let mut tracks = session.tracks.borrow_mut();
            tracks.wrote(frame.len);
            tracks.leaves();
            writer.queue(std::mem::take(&mut frame.segments));
            held.push(claim.split(u64::MAX));
            queue.pop_front();
            Front::Queued
        }
        State::Large(pieces, _) => {
            let body_bytes = pieces.left;
            let Some(start) = large_start(session, front, body_bytes) else { return Front::Close };
            writer.queue([start]);
            front.state = match std::mem::replace(&mut front.state, State::Done(Answer::Close)) {
                State::Large(pieces, claim) => State::Pieces(pieces, claim),
                other => other,
            };
            Front::Queued
        }
        State::Pieces(pieces, claim) => match pieces.poll_next(context) {
            Poll::Pending => Front::Waits,
            Poll::Ready(None) => {
                // Its last piece is not written yet.
                held.push(claim.split(u64::MAX));
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
                say_cut_off(session, front.api, &broken.0);
                Front::Close
            }
        },
    }
}

/// Length and header of an answer whose body has `body_bytes`; `None` if no frame can be so long.
fn large_start(session: &Session, waiting: &Waiting, body_bytes: usize) -> Option<Bytes> {
    let header = ResponseHeader { correlation_id: waiting.correlation_id, ..ResponseHeader::default() };
    let mut w = Writer::with_capacity(16);
    let encoded = header.encode(&mut w, waiting.api.response_header_version(waiting.version));
    let header = encoded.ok().map(|()| w.into_bytes())?;
    let length = i32::try_from(header.len() + body_bytes).ok();
    let Some(length) = length else {
        if let Some(unsaid) = broken_answer(session, waiting.api) {
            tracing::error!(api = %waiting.api, body_bytes, "response exceeds the maximum frame size; \
                connection closed{unsaid}");
        }
        return None;
    };
    let mut start = BytesMut::with_capacity(4 + header.len());
    start.put_i32(length);
    start.extend_from_slice(&header);
    Some(start.freeze())
}

fn say_cut_off(session: &Session, api: ApiKey, error: &str) {
    if let Some(unsaid) = broken_answer(session, api) {
        tracing::error!(peer = %session.peer, %api, "response was cut off, connection closed: {error}{unsaid}");
    }
}

fn broken_answer(session: &Session, api: ApiKey) -> Option<Unsaid> {
    session.node.workers.repeated.happened(Repeated::BrokenAnswer(Some(api)))
}

/// Where requests are pushed as spans: the error code of an answer that is there, at its place of the queue.
fn note_error(session: &Session, place: usize, waiting: &Waiting) {
    if session.recorder.sampler().is_none() {
        return;
    }
    if let State::Done(answer) = &waiting.state
        && let Some(error) = answer.body().and_then(first_error)
    {
        session.tracks.borrow_mut().failed(place, error);
    }
}

/// Makes bytes of an answer that is ready, with their share of the memory budget: once, and before the socket takes
/// them, so that what answers hold until they are read is known.
///
/// `place`: of the queue.
pub(super) fn settle(session: &Session, place: usize, waiting: &mut Waiting) {
    note_error(session, place, waiting);
    if matches!(waiting.state, State::Running(_)) {
        return;
    }
    // Ends when the bytes are made.
    let _turn = waiting.turn.take();
    if let State::Done(answer) = &mut waiting.state
        && let Some(charge) = waiting.charge.take()
    {
        throttle::charge(session, &charge, answer);
    }
    let (body, mut claim) = match std::mem::replace(&mut waiting.state, State::Done(Answer::Close)) {
        State::Done(Answer::Reply(body)) => (body, session.claim()),
        State::Done(Answer::Held(body, claim)) => (body, claim),
        State::Done(Answer::Pieces(pieces)) => {
            let mut claim = session.claim();
            claim_for(session, &mut claim, pieces.left.min(PIECES_BYTES));
            waiting.state = State::Large(pieces, claim);
            return;
        }
        other => {
            waiting.state = other;
            return;
        }
    };
    match barnabas_wire::frame_response(waiting.correlation_id, &body, waiting.version) {
        Ok(frame) => {
            claim_for(session, &mut claim, frame.len);
            session.unsent.set(session.unsent.get() + frame.len);
            waiting.state = State::Framed(frame, claim);
        }
        Err(error) => {
            // A bug of ours, but only this client need suffer from it.
            let (api, version) = (waiting.api, waiting.version);
            if let Some(unsaid) = broken_answer(session, api) {
                tracing::error!(peer = %session.peer, %api, version, %error, "response cannot be encoded; \
                    connection closed{unsaid}");
            }
        }
    }
}

/// Claims what an answer holds. Never waits: the answer is here. Where there is no room, the connection gets no other
/// before it has read this one.
fn claim_for(session: &Session, claim: &mut Claim, bytes: usize) {
    if bytes < UNCLAIMED_BYTES || claim.bytes() >= bytes as u64 {
        return;
    }
    if claim.standing() != Standing::Replication {
        claim.stand(Standing::of(bytes as u64));
    }
    if !claim.try_grow_to(bytes as u64) {
        session.is_scarce.set(true);
    }
}
