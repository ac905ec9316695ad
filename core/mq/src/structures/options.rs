//! MQGMO and MQPMO: how a message is got and put. They go back as they came.

use crate::bytes::{Order, Reader, Writer};
use crate::reason;
use bytes::Bytes;

/// `MQOO_*`.
pub mod oo {
    pub const INPUT: u32 = 0x1 | 0x2 | 0x4;
    pub const INPUT_AS_QUEUE: u32 = 0x1;
    pub const BROWSE: u32 = 0x8;
    pub const OUTPUT: u32 = 0x10;
    pub const INQUIRE: u32 = 0x20;
    pub const SET: u32 = 0x40;
    pub const SET_CONTEXT: u32 = 0x400 | 0x800;
    pub const FAIL_IF_QUIESCING: u32 = 0x2000;
}

/// `MQGMO_*`.
pub mod gmo {
    pub const WAIT: u32 = 0x1;
    pub const SYNCPOINT: u32 = 0x2;
    pub const NO_SYNCPOINT: u32 = 0x4;
    pub const SET_SIGNAL: u32 = 0x8;
    pub const BROWSE_FIRST: u32 = 0x10;
    pub const BROWSE_NEXT: u32 = 0x20;
    pub const ACCEPT_TRUNCATED_MSG: u32 = 0x40;
    pub const MSG_UNDER_CURSOR: u32 = 0x100;
    pub const LOCK: u32 = 0x200;
    pub const UNLOCK: u32 = 0x400;
    pub const BROWSE_MSG_UNDER_CURSOR: u32 = 0x800;
    pub const SYNCPOINT_IF_PERSISTENT: u32 = 0x1000;
    pub const FAIL_IF_QUIESCING: u32 = 0x2000;
    pub const CONVERT: u32 = 0x4000;
    pub const GROUPS: u32 = 0x8000 | 0x1_0000 | 0x2_0000 | 0x4_0000;
    pub const MARKS: u32 = 0x10_0000 | 0x20_0000 | 0x40_0000 | 0x80_0000 | 0x100_0000;
    pub const PROPERTIES_FORCE_MQRFH2: u32 = 0x200_0000;
    pub const NO_PROPERTIES: u32 = 0x400_0000;
    pub const PROPERTIES_IN_HANDLE: u32 = 0x800_0000;
}

/// `MQPMO_*`.
pub mod pmo {
    pub const SYNCPOINT: u32 = 0x2;
    pub const NEW_MSG_ID: u32 = 0x40;
    pub const NEW_CORREL_ID: u32 = 0x80;
    pub const SET_IDENTITY_CONTEXT: u32 = 0x400;
    pub const SET_ALL_CONTEXT: u32 = 0x800;
    pub const FAIL_IF_QUIESCING: u32 = 0x2000;
    pub const LOGICAL_ORDER: u32 = 0x8000;
    pub const ASYNC_RESPONSE: u32 = 0x1_0000;
}

const MATCH_MSG_ID: u32 = 0x1;
const MATCH_CORREL_ID: u32 = 0x2;
const MATCH_MSG_TOKEN: u32 = 0x20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetOptions {
    pub options: u32,
    /// Milliseconds; negative: without an end.
    pub wait_ms: i32,
    pub match_options: u32,
    raw: Bytes,
}

impl GetOptions {
    /// As a client gives them: version 2.
    pub fn new(options: u32, wait_ms: i32, match_options: u32, order: Order) -> Self {
        let mut out = Writer::new(order);
        out.raw(b"GMO ").u32(2).u32(options).i32(wait_ms).u32(0).u32(0).raw(&[b' '; 48]);
        out.u32(match_options).raw(&[0; 4]);
        Self { options, wait_ms, match_options, raw: out.out.freeze() }
    }

    /// Of a request for messages, which carries no structure.
    pub(crate) fn bare(options: u32, wait_ms: i32, match_options: u32) -> Self {
        Self { options, wait_ms, match_options, raw: Bytes::new() }
    }

    pub(crate) fn read_next(reader: &mut Reader<'_>, order: Order) -> Result<Self, u32> {
        let read = |reader: &mut Reader<'_>| {
            let (version, raw) = structure(reader, b"GMO ", order, &[72, 80, 100, 112])?;
            let mut fields = Reader::new(raw.get(8..)?, order);
            let (options, wait_ms) = (fields.u32()?, fields.i32()?);
            let match_options = if version > 1 {
                Reader::new(raw.get(72..)?, order).u32()?
            } else {
                MATCH_MSG_ID | MATCH_CORREL_ID
            };
            Some(Self { options, wait_ms, match_options, raw: Bytes::copy_from_slice(raw) })
        };
        read(reader).ok_or(reason::GMO_ERROR)
    }

    pub fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    /// The message id that is asked for. All zeros match any.
    pub fn msg_id(&self, id: [u8; 24]) -> Option<[u8; 24]> {
        Some(id).filter(|id| self.match_options & MATCH_MSG_ID != 0 && *id != [0; 24])
    }

    pub fn correl_id(&self, id: [u8; 24]) -> Option<[u8; 24]> {
        Some(id).filter(|id| self.match_options & MATCH_CORREL_ID != 0 && *id != [0; 24])
    }

    /// Whether the message is asked for by the token of an earlier answer.
    pub fn matches_token(&self) -> bool {
        self.match_options & MATCH_MSG_TOKEN != 0
    }

    /// Whether more is matched than the two ids: group, sequence number, offset, token.
    pub fn matches_more(&self) -> bool {
        self.match_options & !(MATCH_MSG_ID | MATCH_CORREL_ID) != 0
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.raw(&self.raw);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOptions {
    pub options: u32,
    raw: Bytes,
}

impl PutOptions {
    /// As a client gives them: version 1.
    pub fn new(options: u32, order: Order) -> Self {
        let mut out = Writer::new(order);
        out.raw(b"PMO ").u32(1).u32(options).i32(-1).u32(0).u32(0).u32(0).u32(0).raw(&[b' '; 96]);
        Self { options, raw: out.out.freeze() }
    }

    pub(crate) fn read_next(reader: &mut Reader<'_>, order: Order) -> Result<Self, u32> {
        let read = |reader: &mut Reader<'_>| {
            let (version, raw) = structure(reader, b"PMO ", order, &[128, 152, 176])?;
            let options = Reader::new(raw.get(8..)?, order).u32()?;
            let records = if version > 1 { Reader::new(raw.get(128..)?, order).u32()? } else { 0 };
            (records == 0).then(|| Self { options, raw: Bytes::copy_from_slice(raw) })
        };
        read(reader).ok_or(reason::PMO_ERROR)
    }

    pub fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.raw(&self.raw);
    }
}

/// A structure whose length is its version's.
fn structure<'a>(
    reader: &mut Reader<'a>,
    id: &[u8; 4],
    order: Order,
    sizes: &[usize],
) -> Option<(u32, &'a [u8])> {
    let start = reader.left();
    if !reader.is_at(id) {
        return None;
    }
    let version = Reader::new(start.get(4..)?, order).u32()?;
    let bytes = *sizes.get((version as usize).checked_sub(1)?)?;
    Some((version, reader.take(bytes)?))
}
