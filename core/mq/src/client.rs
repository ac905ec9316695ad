//! An application's end of a channel, as far as tests need it: it writes calls and reads what comes back. One
//! conversation, number 1; little-endian after the first exchange.

use crate::MqError;
use crate::bytes::{Order, Reader, Writer};
use crate::call::{kind, verb};
use crate::segment::{FIRST, Header, Kind, LAST, Segments, write_segment, write_segments};
use crate::structures::descriptor::Descriptor;
use crate::structures::object::Object;
use crate::structures::options::{GetOptions, PutOptions};
use crate::text::fixed;
use bytes::{Bytes, BytesMut};

const SEGMENT_BYTES: usize = 32_748;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub segment: u8,
    pub request: u32,
    /// Completion code and reason; zeros where the segment has none.
    pub codes: (u32, u32),
    pub handle: u32,
    /// Behind the codes.
    pub body: Bytes,
}

#[derive(Debug)]
pub struct Application {
    order: Order,
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
        Self { order, segments: Segments::default(), partial: None, out: BytesMut::new() }
    }

    pub fn take_output(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    fn write(&mut self, segment: u8, body: &[u8]) {
        let header = self.header(Kind::Multiplexed, segment);
        write_segments(&mut self.out, &header, body, SEGMENT_BYTES);
    }

    fn header(&self, kind: Kind, segment: u8) -> Header {
        Header { kind, conversation: 1, request: 0, order: self.order, segment, flags: 0, ccsid: 1208 }
    }

    /// A call: its codes' place, then its body.
    pub fn call(&mut self, segment: u8, handle: u32, body: &[u8]) {
        let mut out = Writer::new(self.order);
        let mut length = Writer::new(Order::Big);
        length.u32(36 + 16 + body.len() as u32);
        out.raw(&length.out).u32(0).u32(0).u32(handle).raw(body);
        self.write(segment, &out.out);
    }

    /// INITIAL_DATA: first as `TSH`, then, with what was agreed, as `TSHM`.
    pub fn begin(&mut self, is_first: bool, heartbeat_s: u32, message_bytes: u32) {
        let mut out = Writer::new(self.order);
        out.raw(b"ID  ").raw(&[13, 0x26, 0, 0]).u16(0).u16(0).u32(SEGMENT_BYTES as u32).u32(message_bytes);
        out.u32(0).raw(&fixed::<20>("CHANNEL")).raw(&[0x51, 0]).u16(1208).raw(&[b' '; 48]).u32(heartbeat_s);
        out.u16(0x8a).raw(&[0, 0]).raw(&[0, 0xff]).raw(&[0xff; 16]).u16(0).u32(0).u32(10).raw(&[0; 16]);
        out.raw(&[b' '; 60]).raw(&[0; 32]);
        let kind = if is_first { Kind::Single } else { Kind::Multiplexed };
        let header = Header { flags: FIRST | LAST, ..self.header(kind, kind::INITIAL_DATA) };
        write_segment(&mut self.out, &header, &out.out);
    }

    pub fn log_in(&mut self, user: &str, password: &str) {
        let mut out = Writer::new(self.order);
        out.raw(b"UID ").raw(&fixed::<12>(user)).raw(&[b' '; 12]).raw(&fixed::<64>(user)).raw(&[0; 40]);
        let body = out.out.split();
        self.write(kind::USERID_DATA, &body);
        out.raw(b"CAUT").u32(1).u32(user.len() as u32).u32(password.len() as u32);
        out.u32(user.len() as u32).u32(password.len() as u32).u32(0).u32(0);
        out.raw(user.as_bytes()).raw(password.as_bytes());
        self.write(kind::CONAUTH, &out.out);
    }

    pub fn connect(&mut self, queue_manager: &str) {
        let mut out = Writer::new(self.order);
        out.raw(&fixed::<48>(queue_manager)).raw(&fixed::<28>("test")).u32(28).raw(&[0; 32]).u32(7).u32(0);
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

    /// MQGET by `MQGMO_*`.
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
    /// As [`Segments::next`].
    pub fn next_answer(&mut self) -> Result<Option<Answer>, MqError> {
        while let Some((header, body)) = self.segments.next(usize::MAX)? {
            let mut whole = match self.partial.take() {
                Some((first, mut bytes)) => {
                    bytes.extend_from_slice(&body);
                    (Header { flags: header.flags, ..first }, bytes)
                }
                None => (header, BytesMut::from(&body[..])),
            };
            if whole.0.flags & LAST == 0 {
                self.partial = Some(whole);
                continue;
            }
            let header = whole.0;
            let mut answer = Answer {
                segment: header.segment,
                request: header.request,
                codes: (0, 0),
                handle: 0,
                body: Bytes::new(),
            };
            if header.segment >= 0x80 && whole.1.len() >= 16 {
                let head = whole.1.split_to(16);
                let mut reader = Reader::new(&head[4..], header.order);
                let mut next = || reader.u32().unwrap_or(0);
                answer.codes = (next(), next());
                answer.handle = next();
            }
            answer.body = whole.1.freeze();
            return Ok(Some(answer));
        }
        Ok(None)
    }

    /// The message of an MQGET's answer: its descriptor and data.
    pub fn message(&self, answer: &Answer) -> Option<(Descriptor, Bytes)> {
        const GMO_BYTES: usize = 80;
        let (md, left) = Descriptor::read(&answer.body, self.order).ok()?;
        let data = left.get(GMO_BYTES + 4..)?;
        Some((md, answer.body.slice_ref(data)))
    }
}
