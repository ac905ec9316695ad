//! Segments: a header, and what it carries.
//!
//! ```text
//! TSH   id 4 · length 4 (big) · order 1 · type 1 · flags 2 · luw 8 · encoding 4 · ccsid 2 · zeros 2
//! TSHM  id 4 · length 4 (big) · conversation 4 · request 4 (both big) · order 1 and so on
//! TSHC  as TSH: of the socket, not of a conversation
//! ```
//!
//! A message that is larger than a segment goes in several: the first has [`FIRST`], the last [`LAST`].

use crate::MqError;
use crate::bytes::{Order, Reader, Writer};
use bytes::{Bytes, BytesMut};

pub const CONFIRM: u8 = 0x01;
pub const ERROR: u8 = 0x02;
pub const CLOSE: u8 = 0x08;
pub const FIRST: u8 = 0x10;
pub const LAST: u8 = 0x20;

const SHORT: usize = 28;
const LONG: usize = 36;
const TSH: [u8; 4] = *b"TSH ";
const TSHM: [u8; 4] = *b"TSHM";
const TSHC: [u8; 4] = *b"TSHC";
/// `TSH` in EBCDIC.
const EBCDIC: [u8; 3] = [0xe3, 0xe2, 0xc8];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Single,
    Multiplexed,
    Control,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// 0 where the kind has none, as the request.
    pub conversation: u32,
    pub request: u32,
    pub order: Order,
    pub segment: u8,
    pub flags: u8,
    pub ccsid: u16,
}

/// Bytes that came, as segments.
#[derive(Debug, Default)]
pub struct Segments {
    buffer: BytesMut,
}

impl Segments {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn waiting_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole segment.
    ///
    /// # Errors
    /// It is none of MQ, or larger than `bytes_max`.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<(Header, Bytes)>, MqError> {
        let Some(id) = self.buffer.first_chunk::<4>().copied() else { return Ok(None) };
        let kind = match id {
            TSH => Kind::Single,
            TSHM => Kind::Multiplexed,
            TSHC => Kind::Control,
            [a, b, c, _] if [a, b, c] == EBCDIC => return Err(MqError::Ebcdic),
            other => return Err(MqError::NotMq(other)),
        };
        let Some(head) = self.buffer.first_chunk::<8>() else { return Ok(None) };
        let bytes = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let least = if kind == Kind::Multiplexed { LONG } else { SHORT };
        if bytes > bytes_max {
            return Err(MqError::SegmentTooLarge { bytes, bytes_max });
        }
        if bytes < least {
            return Err(MqError::protocol(format!("a segment of {bytes} bytes; its header has {least}")));
        }
        if self.buffer.len() < bytes {
            return Ok(None);
        }
        let whole = self.buffer.split_to(bytes).freeze();
        let header =
            read_header(&whole, kind).ok_or_else(|| MqError::protocol("a byte order that is none"))?;
        Ok(Some((header, whole.slice(least..))))
    }
}

fn read_header(whole: &[u8], kind: Kind) -> Option<Header> {
    let mut reader = Reader::new(whole.get(8..)?, Order::Big);
    let (conversation, request) =
        if kind == Kind::Multiplexed { (reader.u32()?, reader.u32()?) } else { (0, 0) };
    let [order, segment, flags, _] = reader.array()?;
    let order = Order::from_code(order)?;
    let mut reader = Reader::new(reader.left().get(12..)?, order);
    Some(Header { kind, conversation, request, order, segment, flags, ccsid: reader.u16()? })
}

/// Appends one segment.
pub fn write_segment(out: &mut BytesMut, header: &Header, body: &[u8]) {
    let (id, least) = match header.kind {
        Kind::Single => (TSH, SHORT),
        Kind::Multiplexed => (TSHM, LONG),
        Kind::Control => (TSHC, SHORT),
    };
    let mut big = Writer::new(Order::Big);
    big.raw(&id).u32((least + body.len()) as u32);
    if header.kind == Kind::Multiplexed {
        big.u32(header.conversation).u32(header.request);
    }
    big.raw(&[header.order.code(), header.segment, header.flags, 0]).raw(&[0; 8]);
    let mut own = Writer::new(header.order);
    own.u32(header.order.encoding()).u16(header.ccsid).u16(0);
    out.extend_from_slice(&big.out);
    out.extend_from_slice(&own.out);
    out.extend_from_slice(body);
}

/// Appends `body` in as many segments as it takes.
pub fn write_segments(out: &mut BytesMut, header: &Header, body: &[u8], segment_bytes_max: usize) {
    let room = segment_bytes_max.saturating_sub(LONG).max(1);
    if body.len() <= room {
        return write_segment(out, &Header { flags: header.flags | FIRST | LAST, ..*header }, body);
    }
    let last = body.len().div_ceil(room) - 1;
    for (number, piece) in body.chunks(room).enumerate() {
        let first = if number == 0 { FIRST } else { 0 };
        let end = if number == last { LAST } else { 0 };
        write_segment(out, &Header { flags: header.flags | first | end, ..*header }, piece);
    }
}
