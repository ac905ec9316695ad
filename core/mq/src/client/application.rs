//! What an application writes to a channel, and what comes back: calls ↔ bytes, in one conversation. It decides
//! nothing: client.rs does, and tests that say what no client says.
//!
//! Bounded: an answer has at most [`Application::answer_bytes_max`] bytes, a segment of it [`SEGMENT_BYTES_MAX`].

use crate::MqError;
use crate::bytes::{Order, Reader, Writer};
use crate::call::{kind, verb};
use crate::segment::{FIRST, Header, Kind, LAST, Segments, write_segment, write_segments};
use crate::structures::descriptor::Descriptor;
use crate::structures::object::Object;
use crate::structures::options::{GetOptions, PutOptions};
use crate::text::fixed;
use bytes::{Bytes, BytesMut};

/// What is sent as one segment, until something smaller is agreed.
pub const SEGMENT_BYTES: usize = 32_748;
/// What is taken as one segment.
const SEGMENT_BYTES_MAX: usize = 64 * 1024;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub segment: u8,
    pub flags: u8,
    pub request: u32,
    pub order: Order,
    /// Completion code and reason; zeros where the segment has none.
    pub codes: (u32, u32),
    pub handle: u32,
    /// Behind the codes.
    pub body: Bytes,
}

impl Answer {
    fn of(header: &Header, whole: Bytes) -> Self {
        let Header { segment, flags, request, order, .. } = *header;
        let (mut codes, mut handle, mut body) = ((0, 0), 0, whole);
        if segment >= 0x80 && body.len() >= 16 {
            let head = body.split_to(16);
            let mut reader = Reader::new(&head[4..], order);
            let mut next = || reader.u32().unwrap_or(0);
            codes = (next(), next());
            handle = next();
        }
        Self { segment, flags, request, order, codes, handle, body }
    }

    /// The message of an MQGET's answer: its descriptor, the length of the whole message, and its data.
    pub(super) fn message(&self) -> Option<(Descriptor, u32, Bytes)> {
        let mut reader = Reader::new(&self.body, self.order);
        let md = Descriptor::read_next(&mut reader).ok()?;
        GetOptions::read_next(&mut reader, self.order).ok()?;
        let length = reader.u32()?;
        Some((md, length, self.body.slice_ref(reader.left())))
    }
}

/// What INITIAL_DATA says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub fap: u8,
    pub channel: String,
    pub heartbeat_s: u32,
    pub message_bytes: u32,
    pub conversations: u32,
}

#[derive(Debug)]
pub struct Application {
    order: Order,
    /// Of calls: whether segments name their conversation.
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) segment_bytes: usize,
    pub(super) answer_bytes_max: usize,
    segments: Segments,
    partial: Option<(Header, BytesMut)>,
    out: BytesMut,
}

impl Default for Application {
    fn default() -> Self {
        Self::new(Order::Little)
    }
}

impl Application {
    pub fn new(order: Order) -> Self {
        Self {
            order,
            kind: Kind::Multiplexed,
            name: "test".to_owned(),
            segment_bytes: SEGMENT_BYTES,
            answer_bytes_max: 128 * 1024 * 1024,
            segments: Segments::default(),
            partial: None,
            out: BytesMut::new(),
        }
    }

    pub fn take_output(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    fn write(&mut self, segment: u8, body: &[u8]) {
        let header = self.header(self.kind, segment);
        write_segments(&mut self.out, &header, body, self.segment_bytes);
    }

    fn header(&self, kind: Kind, segment: u8) -> Header {
        let conversation = u32::from(kind == Kind::Multiplexed);
        Header { kind, conversation, request: 0, order: self.order, segment, flags: 0, ccsid: 1208 }
    }

    /// A call: its codes' place, then its body.
    pub fn call(&mut self, segment: u8, handle: u32, body: &[u8]) {
        let mut out = Writer::new(self.order);
        let mut length = Writer::new(Order::Big);
        let head = if self.kind == Kind::Multiplexed { 36 } else { 28 };
        length.u32(head + 16 + body.len() as u32);
        out.raw(&length.out).u32(0).u32(0).u32(handle).raw(body);
        self.write(segment, &out.out);
    }

    /// INITIAL_DATA: first as `TSH`, then, with what was agreed, as `TSHM`.
    pub fn begin(&mut self, is_first: bool, heartbeat_s: u32, message_bytes: u32) {
        let channel = "CHANNEL".to_owned();
        let hello = Hello { fap: 13, channel, heartbeat_s, message_bytes, conversations: 10 };
        self.hello(if is_first { Kind::Single } else { Kind::Multiplexed }, &hello);
    }

    pub(super) fn hello(&mut self, kind: Kind, hello: &Hello) {
        let mut out = Writer::new(self.order);
        out.raw(b"ID  ").raw(&[hello.fap, 0x26, 0, 0]).u16(0).u16(0).u32(self.segment_bytes as u32);
        out.u32(hello.message_bytes).u32(0).raw(&fixed::<20>(&hello.channel)).raw(&[0x51, 0]).u16(1208);
        out.raw(&[b' '; 48]).u32(hello.heartbeat_s).u16(0x8a).raw(&[0, 0]).raw(&[0, 0xff]).raw(&[0xff; 16]);
        out.u16(0).u32(0).u32(hello.conversations).raw(&[0; 16]).raw(&[b' '; 60]).raw(&[0; 32]);
        let header = Header { flags: FIRST | LAST, ..self.header(kind, kind::INITIAL_DATA) };
        write_segment(&mut self.out, &header, &out.out);
    }

    /// Without a call: a sign of life, or the answer to one.
    pub(super) fn heartbeat(&mut self, flags: u8) {
        let kind = if self.kind == Kind::Multiplexed { Kind::Control } else { Kind::Single };
        let header = Header { flags: flags | FIRST | LAST, ..self.header(kind, kind::HEARTBEAT) };
        write_segment(&mut self.out, &header, &[]);
    }

    pub fn log_in(&mut self, user: &str, password: &str) {
        self.user(user);
        self.password(user, password);
    }

    pub(super) fn user(&mut self, user: &str) {
        let mut out = Writer::new(self.order);
        out.raw(b"UID ").raw(&fixed::<12>(user)).raw(&[b' '; 12]).raw(&fixed::<64>(user)).raw(&[0; 40]);
        self.write(kind::USERID_DATA, &out.out);
    }

    pub(super) fn password(&mut self, user: &str, password: &str) {
        let mut out = Writer::new(self.order);
        out.raw(b"CAUT").u32(1).u32(user.len() as u32).u32(password.len() as u32);
        out.u32(user.len() as u32).u32(password.len() as u32).u32(0).u32(0);
        out.raw(user.as_bytes()).raw(password.as_bytes());
        self.write(kind::CONAUTH, &out.out);
    }

    pub fn connect(&mut self, queue_manager: &str) {
        let mut out = Writer::new(self.order);
        out.raw(&fixed::<48>(queue_manager))
            .raw(&fixed::<28>(&self.name))
            .u32(28)
            .raw(&[0; 32])
            .u32(7)
            .u32(0);
        self.call(kind::MQCONN, 0, &out.out);
    }

    /// MQOPEN of a queue by `MQOO_*`.
    pub fn open(&mut self, queue: &str, options: u32) {
        let mut out = Writer::new(self.order);
        Object::named(1, queue, self.order).write(&mut out, None);
        out.u32(options);
        self.call(kind::MQOPEN, 0, &out.out);
    }

    /// MQPUT by `MQPMO_*`, or MQPUT1 with a queue.
    pub fn put(&mut self, queue: Option<&str>, handle: u32, md: &Descriptor, options: u32, data: &[u8]) {
        let mut out = Writer::new(self.order);
        if let Some(queue) = queue {
            Object::named(1, queue, self.order).write(&mut out, None);
        }
        md.write(&mut out);
        PutOptions::new(options, self.order).write(&mut out);
        out.u32(data.len() as u32).raw(data);
        let segment = if queue.is_some() { kind::MQPUT1 } else { kind::MQPUT };
        self.call(segment, handle, &out.out);
    }

    /// MQGET by `MQGMO_*`. What is converted becomes UTF-8, with integers in big-endian order.
    pub fn get(&mut self, handle: u32, options: u32, wait_ms: i32, buffer_bytes: u32) {
        let mut out = Writer::new(self.order);
        Descriptor::default().write(&mut out);
        GetOptions::new(options, wait_ms, 0, self.order).write(&mut out);
        out.u32(buffer_bytes);
        self.call(kind::MQGET, handle, &out.out);
    }

    pub fn close(&mut self, handle: u32) {
        self.call(kind::MQCLOSE, handle, &[0; 4]);
    }

    pub fn commit(&mut self) {
        self.call(kind::MQCMIT, 0, &[]);
    }

    pub fn back_out(&mut self) {
        self.call(kind::MQBACK, 0, &[]);
    }

    pub fn disconnect(&mut self) {
        self.call(kind::MQDISC, 0, &[]);
    }

    /// Which SPI verbs there are.
    pub fn query(&mut self) {
        let mut out = Writer::new(self.order);
        out.u32(verb::QUERY).u32(1).u32(256).raw(b"SPQU").u32(1).u32(12).raw(b"SPQI").u32(1).u32(12);
        self.call(kind::SPI, 0, &out.out);
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.segments.push(bytes);
    }

    /// The next whole answer.
    ///
    /// # Errors
    /// As [`Segments::next`], and an answer that is too large.
    pub fn next_answer(&mut self) -> Result<Option<Answer>, MqError> {
        while let Some((header, body)) = self.segments.next(SEGMENT_BYTES_MAX)? {
            // Signs of life may come between the segments of an answer.
            if header.segment == kind::HEARTBEAT {
                return Ok(Some(Answer::of(&header, Bytes::new())));
            }
            let whole = match self.partial.take() {
                Some((first, mut bytes)) => {
                    bytes.extend_from_slice(&body);
                    (Header { flags: header.flags, ..first }, bytes)
                }
                None => (header, BytesMut::from(&body[..])),
            };
            if whole.1.len() > self.answer_bytes_max {
                let (bytes, bytes_max) = (whole.1.len(), self.answer_bytes_max);
                return Err(MqError::SegmentTooLarge { bytes, bytes_max });
            }
            if whole.0.flags & LAST == 0 {
                self.partial = Some(whole);
                continue;
            }
            return Ok(Some(Answer::of(&whole.0, whole.1.freeze())));
        }
        Ok(None)
    }

    /// The message of an MQGET's answer: its descriptor and data.
    pub fn message(&self, answer: &Answer) -> Option<(Descriptor, Bytes)> {
        answer.message().map(|(md, _, data)| (md, data))
    }
}
