//! MQGET, and messages that are requested ahead (which JMS's listeners do).
//!
//! Without a unit of work a message is accepted at the group before the client has it: it is got once at most. In one,
//! it is held until MQCMIT accepts or MQBACK releases it.

use super::{Answer, Conversation, Streamed};
use crate::records::Message;
use crate::refusal::reason_of;
use crate::source::{Matching, Outcome, Place, Source, Taken, gone};
use crate::task::FromTask;
use barnabas_client::ClientError;
use barnabas_mq::{
    Descriptor, FORMAT_RFH2, FORMAT_STRING, Get, GetOptions, Notice, Reply, Request, Ticket, convert, gmo,
    oo, reason,
};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_local};

/// What is not there: signals, locks and marks of browsing, groups and segments of messages.
const MISSING: u32 = gmo::SET_SIGNAL
    | gmo::LOCK
    | gmo::UNLOCK
    | gmo::BROWSE_MSG_UNDER_CURSOR
    | gmo::MSG_UNDER_CURSOR
    | gmo::GROUPS
    | gmo::MARKS;
const BROWSES: u32 = gmo::BROWSE_FIRST | gmo::BROWSE_NEXT;

/// Whether requested messages go out now.
#[derive(Debug, Default)]
pub struct Gets {
    is_started: bool,
}

/// A handle's messages outside of calls.
#[derive(Debug, Default)]
pub struct Streaming {
    /// What the client asked for last.
    request: Option<(Request, u32)>,
    selection: Option<barnabas_mq::Selection>,
    /// A message that was taken and not given out: it was too large for the buffer, or messages are suspended.
    waiting: Option<Taken>,
    /// Whether a message is being taken, in which turn.
    taking: bool,
    turn: u64,
    sent: u32,
    /// Waits for the message that is being taken.
    waiter: Option<AbortHandle>,
}

impl Streaming {
    pub fn take_waiting(&mut self) -> Option<Place> {
        self.turn += 1;
        if let Some(waiter) = self.waiter.take() {
            // The reader sees that its answer is not waited for, and gives back what it takes.
            waiter.abort();
        }
        self.waiting.take().map(|taken| taken.place)
    }
}

/// A message as its getter wants it.
struct Shaped {
    md: Descriptor,
    data: Bytes,
    /// Not converted, if not [`reason::NONE`].
    why: u32,
}

impl Conversation {
    /// `None`: the client is gone.
    pub(super) async fn get(&mut self, get: Get) -> Option<Answer> {
        let browses = get.options.has(BROWSES);
        let taken = match self.judge_get(&get, browses) {
            Err(why) => Err(why),
            Ok(matching) if browses => self.browsed(&get, matching).await,
            Ok(matching) => match self.taken(&get, matching).await {
                Ok(None) if self.task.gone.has_changed().is_err() => return None,
                taken => taken,
            },
        };
        Some(match taken {
            Ok(Some((place, message))) => self.give(get, place, message).await,
            Ok(None) => empty(get, reason::NO_MSG_AVAILABLE),
            Err(why) => empty(get, why),
        })
    }

    fn judge_get(&mut self, get: &Get, browses: bool) -> Result<Matching, u32> {
        let (options, otherwise) = if browses {
            (oo::BROWSE, reason::NOT_OPEN_FOR_BROWSE)
        } else {
            (oo::INPUT, reason::NOT_OPEN_FOR_INPUT)
        };
        let queue = self.handles.queue(get.handle, options, otherwise)?;
        // A client that had too small a buffer comes again for that message, by its id or token.
        let waiting = queue.streaming.waiting.as_ref();
        if !browses && waiting.is_some() && get.options.matches_token() {
            return Ok(Matching::default());
        }
        let matching = judge(&get.options, &get.md.msg_id, &get.md.correl_id)?;
        let waits = waiting.is_some_and(|taken| matching.fits(&taken.message));
        let can_match = waits || queue.source.as_ref().is_some_and(Source::can_match);
        if !browses && !matching.is_any() && !can_match {
            return Err(reason::MATCH_OPTIONS_ERROR);
        }
        if queue.streaming.taking {
            return Err(reason::HCONN_ASYNC_ACTIVE);
        }
        if !browses && self.unit.is_full() && get.options.has(gmo::SYNCPOINT | gmo::SYNCPOINT_IF_PERSISTENT) {
            return Err(reason::SYNCPOINT_LIMIT_REACHED);
        }
        Ok(matching)
    }

    async fn browsed(
        &mut self,
        get: &Get,
        matching: Matching,
    ) -> Result<Option<(Option<Place>, Message)>, u32> {
        let wait = wait_of(&get.options);
        let queue = self.handles.queue(get.handle, oo::BROWSE, reason::NOT_OPEN_FOR_BROWSE)?;
        let browser = queue.browser.as_mut().ok_or(reason::NOT_OPEN_FOR_BROWSE)?;
        let mut gone = self.task.gone.clone();
        let is_first = get.options.has(gmo::BROWSE_FIRST);
        let next = async {
            if is_first {
                browser.rewind().await?;
            }
            browser.next(wait, matching).await
        };
        let found = tokio::select! {
            found = next => found,
            _ = gone.changed() => Err(crate::source::gone()),
        };
        found.map(|message| message.map(|message| (None, message))).map_err(|error| reason_of(&error))
    }

    async fn taken(
        &mut self,
        get: &Get,
        matching: Matching,
    ) -> Result<Option<(Option<Place>, Message)>, u32> {
        let mut gone_too = self.task.gone.clone();
        let queue = self.handles.queue(get.handle, oo::INPUT, reason::NOT_OPEN_FOR_INPUT)?;
        let waits = queue.streaming.waiting.take_if(|taken| matching.fits(&taken.message));
        if let Some(taken) = waits {
            return Ok(Some((Some(taken.place), taken.message)));
        }
        let source = queue.source.clone().ok_or(reason::NOT_OPEN_FOR_INPUT)?;
        let answered = source.begin(wait_of(&get.options), matching).await;
        let taken = tokio::select! {
            taken = answered => taken.unwrap_or_else(|_| Err(gone())),
            // The reader gives back what nothing waits for.
            _ = gone_too.changed() => Ok(None),
        };
        let taken = taken.map_err(|error| reason_of(&error))?;
        Ok(taken.map(|taken| (Some(taken.place), taken.message)))
    }

    async fn give(&mut self, get: Get, place: Option<Place>, message: Message) -> Answer {
        let shaped = shape(&message, &get.options, get.md.ccsid, get.md.version);
        let (length, room) = (shaped.data.len(), get.buffer_bytes as usize);
        let is_cut = length > room;
        if is_cut && !get.options.has(gmo::ACCEPT_TRUNCATED_MSG) {
            // It waits at the handle for a larger buffer, which clients come with at once.
            if let (Some(place), Ok(queue)) = (place, self.handles.queue(get.handle, oo::INPUT, 0)) {
                queue.streaming.waiting = Some(Taken { place, message });
            }
            let data = shaped.data.slice(..room);
            let reply = Reply::Get { md: shaped.md, options: get.options, data, length: length as u32 };
            let codes = (reason::CC_WARNING, reason::TRUNCATED_MSG_FAILED);
            return Answer { codes, handle: get.handle, reply };
        }
        if let Some(place) = place
            && let Err(error) = self.keep(get.handle, &get.options, place, &message).await
        {
            return empty(get, reason_of(&error));
        }
        let why = if is_cut { reason::TRUNCATED_MSG_ACCEPTED } else { shaped.why };
        let code = if why == reason::NONE { reason::CC_OK } else { reason::CC_WARNING };
        let data = shaped.data.slice(..length.min(room));
        let reply = Reply::Get { md: shaped.md, options: get.options, data, length: length as u32 };
        Answer { codes: (code, why), handle: get.handle, reply }
    }

    /// Into the unit of work, or accepted at once.
    async fn keep(
        &mut self,
        handle: u32,
        options: &GetOptions,
        place: Place,
        message: &Message,
    ) -> Result<(), ClientError> {
        let queue = self.handles.queue(handle, oo::INPUT, 0).map_err(|_| gone())?;
        let source = queue.source.clone().ok_or_else(gone)?;
        let if_persistent = options.has(gmo::SYNCPOINT_IF_PERSISTENT) && message.md.persistence == 1;
        if options.has(gmo::SYNCPOINT) || if_persistent {
            self.unit.hold(handle, source, place);
            return Ok(());
        }
        source.settle(vec![place], Outcome::Got).await
    }

    pub(super) async fn request(&mut self, ticket: &Ticket, request: Request) {
        let (handle, flags) = (request.handle, request.flags);
        let Err(why) = self.begin_request(ticket.request(), request).await else { return };
        tracing::debug!(reason = why, "a request for messages of an MQ client was refused");
        if flags & Request::CHECK != 0 {
            self.checked(handle, ticket.request(), why).await;
        }
    }

    async fn checked(&self, handle: u32, request: u32, value: u32) {
        let notice = Notice { handle, code: Notice::CHECKED, value };
        self.task.report(FromTask::Notify { id: self.task.id, request, notice }).await;
    }

    async fn begin_request(&mut self, number: u32, request: Request) -> Result<(), u32> {
        let handle = request.handle;
        let queue = self.handles.queue(handle, oo::INPUT, reason::NOT_OPEN_FOR_INPUT)?;
        if request.selection.is_some() {
            queue.streaming.selection.clone_from(&request.selection);
        }
        let ids =
            queue.streaming.selection.as_ref().map_or(([0; 24], [0; 24]), |of| (of.msg_id, of.correl_id));
        let matching = judge(&request.options, &ids.0, &ids.1)?;
        let source = queue.source.clone().ok_or(reason::NOT_OPEN_FOR_INPUT)?;
        if !matching.is_any() && !source.can_match() {
            return Err(reason::MATCH_OPTIONS_ERROR);
        }
        let wait = match request.flags & (Request::CHECK | Request::WAIT) {
            Request::CHECK => Some(Duration::ZERO),
            0 => None,
            _ => wait_of(&request.options),
        };
        let streaming = &mut queue.streaming;
        streaming.request = Some((request, number));
        if streaming.taking {
            return Ok(());
        }
        let turn = streaming.turn;
        streaming.taking = true;
        let streamed = self.streamed.0.clone();
        if let Some(taken) = streaming.waiting.take() {
            self.stream(Streamed { handle, turn, taken: Ok(Some(taken)) }).await;
            return Ok(());
        }
        let waiter = spawn_local(async move {
            let answered = source.begin(wait, matching).await;
            let taken = tokio::select! {
                taken = answered => taken.unwrap_or_else(|_| Err(gone())),
                // Dropping the answer makes the reader give the message back.
                () = streamed.closed() => return,
            };
            // The conversation may be gone: the reader's end gives the message back.
            let _ = streamed.send(Streamed { handle, turn, taken }).await;
        });
        if let Ok(queue) = self.handles.queue(handle, oo::INPUT, 0) {
            queue.streaming.waiter = Some(waiter.abort_handle());
        }
        Ok(())
    }

    /// A message came for a request.
    pub(super) async fn stream(&mut self, streamed: Streamed) {
        let Streamed { handle, turn, taken } = streamed;
        let is_started = self.gets.is_started;
        let Ok(queue) = self.handles.queue(handle, oo::INPUT, 0) else { return };
        let source = queue.source.clone();
        let streaming = &mut queue.streaming;
        streaming.taking = false;
        let Some((request, number)) = streaming.request.clone().filter(|_| streaming.turn == turn) else {
            // Of an earlier life of the handle's number.
            if let (Ok(Some(taken)), Some(source)) = (taken, source) {
                let _ = source.settle(vec![taken.place], Outcome::Back).await;
            }
            return;
        };
        let checks = request.flags & Request::CHECK != 0;
        match taken {
            Ok(Some(taken)) if !is_started && !checks => streaming.waiting = Some(taken),
            Ok(Some(taken)) => {
                streaming.request = None;
                self.send(&request, taken).await;
                if checks {
                    self.checked(handle, number, reason::NONE).await;
                }
            }
            Ok(None) if checks => self.checked(handle, number, reason::NO_MSG_AVAILABLE).await,
            Ok(None) => {}
            Err(error) => self.checked(handle, number, reason_of(&error)).await,
        }
    }

    async fn send(&mut self, request: &Request, taken: Taken) {
        let handle = request.handle;
        let Ok(queue) = self.handles.queue(handle, oo::INPUT, 0) else { return };
        let name = queue.name.clone();
        let selection = queue.streaming.selection.clone();
        queue.streaming.sent = queue.streaming.sent.wrapping_add(1);
        let number = queue.streaming.sent;
        let (ccsid, version) = selection.as_ref().map_or((0, 2), |of| (of.ccsid, of.md_version.clamp(1, 2)));
        let shaped = shape(&taken.message, &request.options, ccsid, version);
        if let Err(error) = self.keep(handle, &request.options, taken.place, &taken.message).await {
            tracing::debug!(%error, "a message is not given out: its lock is lost");
            return;
        }
        let Some(permit) = self.task.room(shaped.data.len()).await else { return };
        let message = Box::new(barnabas_mq::Streamed {
            handle,
            number,
            index: request.index,
            selection: selection.map_or(0, |of| of.number),
            reason: shaped.why,
            queue: name,
            md: shaped.md,
            length: shaped.data.len() as u32,
            data: shaped.data,
        });
        self.task.report(FromTask::Send { id: self.task.id, message, permit }).await;
    }

    /// The client starts and stops messages; it waits for the answer.
    pub(super) async fn notified(&mut self, ticket: &Ticket, notice: Notice, confirms: bool) {
        if notice.code == Notice::CONNECTION_STATE {
            self.gets.is_started = notice.value != 0;
        }
        let is_state = matches!(notice.code, Notice::CONNECTION_STATE | Notice::QUEUE_STATE);
        if confirms && is_state {
            let notice = Notice { code: notice.code + 1, ..notice };
            let report = FromTask::Notify { id: self.task.id, request: ticket.request(), notice };
            self.task.report(report).await;
        }
        if self.gets.is_started {
            for handle in self.handles.numbers() {
                let Ok(queue) = self.handles.queue(handle, oo::INPUT, 0) else { continue };
                let turn = queue.streaming.turn;
                if queue.streaming.request.is_some()
                    && let Some(taken) = queue.streaming.waiting.take()
                {
                    self.stream(Streamed { handle, turn, taken: Ok(Some(taken)) }).await;
                }
            }
        }
    }
}

fn judge(options: &GetOptions, msg_id: &[u8; 24], correl_id: &[u8; 24]) -> Result<Matching, u32> {
    if options.has(MISSING) {
        return Err(reason::OPTIONS_ERROR);
    }
    if options.matches_more() {
        return Err(reason::MATCH_OPTIONS_ERROR);
    }
    Ok(Matching { msg_id: options.msg_id(*msg_id), correl_id: options.correl_id(*correl_id) })
}

/// `None`: without an end.
fn wait_of(options: &GetOptions) -> Option<Duration> {
    if !options.has(gmo::WAIT) {
        return Some(Duration::ZERO);
    }
    u64::try_from(options.wait_ms).ok().map(Duration::from_millis)
}

fn empty(get: Get, why: u32) -> Answer {
    let reply = Reply::Get { md: get.md, options: get.options, data: Bytes::new(), length: 0 };
    Answer::with(why, get.handle, reply)
}

/// With properties in front or not, and in the getter's character set if it wants that.
fn shape(message: &Message, options: &GetOptions, ccsid: i32, version: u32) -> Shaped {
    let mut md = Descriptor { version, ..message.md.clone() };
    let (mut body, mut why) = (message.body.clone(), reason::NONE);
    let is_text = md.format == FORMAT_STRING;
    if options.has(gmo::CONVERT) && is_text && ccsid > 0 && md.ccsid != ccsid {
        match convert(&body, md.ccsid, ccsid) {
            Some(converted) => (body, md.ccsid) = (Bytes::from(converted), ccsid),
            None => why = reason::NOT_CONVERTED,
        }
    }
    let wants = options.has(gmo::PROPERTIES_FORCE_MQRFH2 | gmo::PROPERTIES_IN_HANDLE) || message.was_put;
    let properties = message.properties.as_ref().filter(|_| wants && !options.has(gmo::NO_PROPERTIES));
    let Some(properties) = properties else { return Shaped { md, data: body, why } };
    // The properties name the format of the data behind them; the descriptor names theirs.
    let order = if md.encoding & 0xf == 2 { barnabas_mq::Order::Little } else { barnabas_mq::Order::Big };
    let mut data = BytesMut::from(&properties[..]);
    set(&mut data[12..16], md.encoding, order);
    set(&mut data[16..20], md.ccsid.cast_unsigned(), order);
    data[20..28].copy_from_slice(&md.format);
    data.extend_from_slice(&body);
    md.format = FORMAT_RFH2;
    Shaped { md, data: data.freeze(), why }
}

fn set(field: &mut [u8], value: u32, order: barnabas_mq::Order) {
    let bytes = if order == barnabas_mq::Order::Big { value.to_be_bytes() } else { value.to_le_bytes() };
    field.copy_from_slice(&bytes);
}
