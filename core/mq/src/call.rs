//! What a client asks for: the MQI's calls as they come in segments. A call that cannot be read is answered with its
//! reason code; the connection goes on.
//!
//! All but [`Call::Request`] and [`Call::Notify`] begin with 16 bytes:
//! length (big) · completion code · reason · handle.

use crate::bytes::{Order, Reader};
use crate::reason;
use crate::segment::{CONFIRM, Header};
use crate::structures::descriptor::Descriptor;
use crate::structures::object::Object;
use crate::structures::options::{GetOptions, PutOptions};
use bytes::Bytes;

/// Types of segments that clients send.
pub mod kind {
    pub const INITIAL_DATA: u8 = 1;
    pub const STATUS_DATA: u8 = 5;
    pub const USERID_DATA: u8 = 8;
    pub const HEARTBEAT: u8 = 9;
    pub const CONAUTH: u8 = 10;
    pub const SOCKET_ACTION: u8 = 12;
    pub const ASYNC_MESSAGE: u8 = 13;
    pub const REQUEST_MSGS: u8 = 14;
    pub const NOTIFICATION: u8 = 15;
    pub const MQCONN: u8 = 0x81;
    pub const MQDISC: u8 = 0x82;
    pub const MQOPEN: u8 = 0x83;
    pub const MQCLOSE: u8 = 0x84;
    pub const MQGET: u8 = 0x85;
    pub const MQPUT: u8 = 0x86;
    pub const MQPUT1: u8 = 0x87;
    pub const MQINQ: u8 = 0x89;
    pub const MQCMIT: u8 = 0x8a;
    pub const MQBACK: u8 = 0x8b;
    pub const SPI: u8 = 0x8c;
    pub const MQSTAT: u8 = 0x8d;
    /// From a call to its reply.
    pub const REPLY: u8 = 0x10;
}

/// Verbs of the SPI.
pub mod verb {
    pub const QUERY: u32 = 1;
    pub const RESERVE: u32 = 6;
    pub const OPEN: u32 = 12;
}

/// More selectors than this are an error.
const SELECTORS_MAX: u32 = 256;
const API_BYTES: usize = 16;

/// How an MQOPEN came, and goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain { has_defaults: bool },
    Spi,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    pub object: Object,
    pub options: u32,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// MQPUT1 names an object, MQPUT a handle.
    pub object: Option<Object>,
    pub handle: u32,
    pub md: Descriptor,
    pub options: PutOptions,
    pub data: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Get {
    pub handle: u32,
    pub md: Descriptor,
    pub options: GetOptions,
    pub buffer_bytes: u32,
}

/// Messages that are to come as they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub handle: u32,
    pub message_bytes_max: u32,
    pub options: GetOptions,
    /// One message, or the word that there is none: [`Request::CHECK`]. Waiting: [`Request::WAIT`].
    pub flags: u32,
    /// The client's number of the request, which goes back with each message.
    pub index: u32,
    /// What is matched, and the descriptor's version. `None`: as in the request before.
    pub selection: Option<Selection>,
}

impl Request {
    pub const CHECK: u32 = 0x4;
    pub const WAIT: u32 = 0x8;
    const SELECTION: u32 = 0x10;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub number: u16,
    pub md_version: u32,
    pub ccsid: i32,
    pub encoding: u32,
    pub match_options: u32,
    pub msg_id: [u8; 24],
    pub correl_id: [u8; 24],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Open(Open),
    Close {
        handle: u32,
        options: u32,
    },
    Put(Put),
    Get(Get),
    Request(Request),
    /// A notification: code, value, and whether it is to be answered.
    Notify {
        handle: u32,
        code: u32,
        value: u32,
        confirms: bool,
    },
    Inquire {
        handle: u32,
        selectors: Vec<u32>,
        integers: u32,
        characters: u32,
    },
    /// MQSTAT of this type.
    Stat {
        of: u32,
    },
    /// Message ids that are the client's to give.
    Reserve,
    Commit,
    Back,
    Disconnect,
    /// Answered here: which SPI verbs there are.
    Query,
}

/// Reads the call of a segment.
///
/// # Errors
/// The reason code that it is answered with.
pub(crate) fn read(header: &Header, body: &Bytes) -> Result<Call, u32> {
    let order = header.order;
    match header.segment {
        kind::REQUEST_MSGS => return request(&mut Reader::new(body, order)).ok_or(reason::OPTIONS_ERROR),
        kind::NOTIFICATION => return notification(header, body).ok_or(reason::OPTIONS_ERROR),
        _ => {}
    }
    let mut reader = Reader::new(body, order);
    let api = reader.take(API_BYTES).ok_or(reason::UNEXPECTED_ERROR)?;
    let handle = Reader::new(&api[12..], order).u32().ok_or(reason::UNEXPECTED_ERROR)?;
    match header.segment {
        kind::MQOPEN => open(&mut reader, order),
        kind::MQCLOSE => {
            let options = reader.u32().ok_or(reason::OPTIONS_ERROR)?;
            Ok(Call::Close { handle, options })
        }
        kind::MQGET => {
            let md = Descriptor::read_next(&mut reader)?;
            let options = GetOptions::read_next(&mut reader, order)?;
            let buffer_bytes = reader.u32().ok_or(reason::GMO_ERROR)?;
            Ok(Call::Get(Get { handle, md, options, buffer_bytes }))
        }
        kind::MQPUT => put(&mut reader, None, handle, body),
        kind::MQPUT1 => {
            let object = Object::read_next(&mut reader, order)?;
            put(&mut reader, Some(object), handle, body)
        }
        kind::MQINQ => inquire(&mut reader, handle).ok_or(reason::SELECTOR_ERROR),
        kind::MQSTAT => Ok(Call::Stat { of: reader.u32().ok_or(reason::OPTIONS_ERROR)? }),
        kind::MQCMIT => Ok(Call::Commit),
        kind::MQBACK => Ok(Call::Back),
        kind::MQDISC => Ok(Call::Disconnect),
        kind::SPI => spi(&mut reader, order),
        _ => Err(reason::FUNCTION_NOT_SUPPORTED),
    }
}

fn open(reader: &mut Reader<'_>, order: Order) -> Result<Call, u32> {
    let object = Object::read_next(reader, order)?;
    let options = reader.u32().ok_or(reason::OPTIONS_ERROR)?;
    let has_defaults = reader.is_at(b"FOPA");
    Ok(Call::Open(Open { object, options, form: Form::Plain { has_defaults } }))
}

fn put(reader: &mut Reader<'_>, object: Option<Object>, handle: u32, body: &Bytes) -> Result<Call, u32> {
    let md = Descriptor::read_next(reader)?;
    let options = PutOptions::read_next(reader, reader.order())?;
    let length = reader.u32().ok_or(reason::PMO_ERROR)? as usize;
    let data = reader.take(length).ok_or(reason::PMO_ERROR)?;
    Ok(Call::Put(Put { object, handle, md, options, data: body.slice_ref(data) }))
}

fn inquire(reader: &mut Reader<'_>, handle: u32) -> Option<Call> {
    let (count, integers, characters) = (reader.u32()?, reader.u32()?, reader.u32()?);
    if count > SELECTORS_MAX {
        return None;
    }
    let selectors = (0..count).map(|_| reader.u32()).collect::<Option<_>>()?;
    Some(Call::Inquire { handle, selectors, integers, characters })
}

fn spi(reader: &mut Reader<'_>, order: Order) -> Result<Call, u32> {
    let verb = reader.u32().ok_or(reason::FUNCTION_NOT_SUPPORTED)?;
    match verb {
        verb::QUERY => Ok(Call::Query),
        verb::RESERVE => Ok(Call::Reserve),
        verb::OPEN => spi_open(reader, order),
        _ => Err(reason::FUNCTION_NOT_SUPPORTED),
    }
}

/// version 4 · length 4 · SPOU 12 · SPOI 12 · LPOO 32 · OD
fn spi_open(reader: &mut Reader<'_>, order: Order) -> Result<Call, u32> {
    let options = |reader: &mut Reader<'_>| {
        reader.take(8 + 12 + 12)?;
        if !reader.is_at(b"LPOO") {
            return None;
        }
        Reader::new(reader.take(32)?.get(8..)?, order).u32()
    };
    let options = options(reader).ok_or(reason::OPTIONS_ERROR)?;
    let object = Object::read_next(reader, order)?;
    Ok(Call::Open(Open { object, options, form: Form::Spi }))
}

fn request(reader: &mut Reader<'_>) -> Option<Call> {
    reader.u32().filter(|version| *version == 1)?;
    let handle = reader.u32()?;
    reader.take(8)?;
    let message_bytes_max = reader.u32()?;
    let (options, wait_ms) = (reader.u32()?, reader.i32()?);
    reader.u32()?;
    let (flags, index) = (reader.u32()?, reader.u32()?);
    let selection = if flags & Request::SELECTION != 0 { Some(selection(reader)?) } else { None };
    let matched = selection.as_ref().map_or(0, |selection| selection.match_options);
    let options = GetOptions::bare(options, wait_ms, matched);
    Some(Call::Request(Request { handle, message_bytes_max, options, flags, index, selection }))
}

fn selection(reader: &mut Reader<'_>) -> Option<Selection> {
    let (number, md_version) = (reader.u16()?, reader.u16()?.into());
    let (ccsid, encoding) = (reader.i32()?, reader.u32()?);
    reader.take(8)?;
    let match_options = reader.u32()?;
    let mut id = |option: u32| {
        if match_options & option != 0 { reader.array() } else { Some([0; 24]) }
    };
    let (msg_id, correl_id) = (id(1)?, id(2)?);
    Some(Selection { number, md_version, ccsid, encoding, match_options, msg_id, correl_id })
}

fn notification(header: &Header, body: &Bytes) -> Option<Call> {
    let mut reader = Reader::new(body, header.order);
    reader.u32()?;
    let (handle, code, value) = (reader.u32()?, reader.u32()?, reader.u32()?);
    Some(Call::Notify { handle, code, value, confirms: header.flags & CONFIRM != 0 })
}
