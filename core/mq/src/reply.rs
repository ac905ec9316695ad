//! What a client is answered: replies to calls, messages that were asked for ahead, and notifications.

use crate::bytes::{Order, Writer};
use crate::call::{Form, Open, verb};
use crate::structures::descriptor::Descriptor;
use crate::structures::object::Object;
use crate::structures::options::{GetOptions, PutOptions};
use bytes::Bytes;

/// The body of a reply, without completion and reason codes: those go beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing but the codes.
    Bare,
    /// With the name that the object resolved to, where it is another one.
    Open {
        open: Open,
        name: Option<String>,
    },
    Put {
        object: Option<Object>,
        md: Descriptor,
        options: PutOptions,
    },
    /// `data` may be cut; `length` is that of the whole message.
    Get {
        md: Descriptor,
        options: GetOptions,
        data: Bytes,
        length: u32,
    },
    Inquire {
        selectors: Vec<u32>,
        integers: Vec<u32>,
        characters: Vec<u8>,
    },
    /// MQSTS of asynchronous puts: how many went well and how many did not, and the first failure.
    Stat {
        of: u32,
        codes: (u32, u32),
        succeeded: u32,
        failed: u32,
    },
    /// A range of message ids that begins with `first`: its last four bytes count up.
    Reserve {
        first: [u8; 24],
    },
    /// What an MQCONN said, back.
    Connect {
        body: Bytes,
    },
    Query,
}

/// A message on its way without a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    pub handle: u32,
    /// Counts up from 1, of each handle.
    pub number: u32,
    pub index: u32,
    pub selection: u16,
    pub reason: u32,
    pub queue: String,
    pub md: Descriptor,
    pub data: Bytes,
    pub length: u32,
}

/// A notification to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    pub handle: u32,
    pub code: u32,
    pub value: u32,
}

impl Notice {
    pub const CONNECTION_STATE: u32 = 3;
    pub const QUEUE_STATE: u32 = 5;
    /// The end of a request with [`crate::Request::CHECK`]. The value is a reason code.
    pub const CHECKED: u32 = 11;
}

/// Clients ask for 0x00ffffff.
const RESERVED: u32 = 1_000_000;
/// Defaults of a queue: persistent, answers are waited for, no read-ahead, properties as the getter asks.
const DEFAULTS: [i32; 4] = [1, 1, 0, 0];

pub(crate) fn write(out: &mut Writer, reply: &Reply) {
    match reply {
        Reply::Bare => {}
        Reply::Open { open, name } => write_open(out, open, name.as_deref()),
        Reply::Put { object, md, options } => {
            if let Some(object) = object {
                object.write(out, None);
            }
            md.write(out);
            options.write(out);
        }
        Reply::Get { md, options, data, length } => {
            md.write(out);
            options.write(out);
            out.u32(*length).raw(data);
        }
        Reply::Inquire { selectors, integers, characters } => {
            out.u32(selectors.len() as u32).u32(integers.len() as u32).u32(characters.len() as u32);
            selectors.iter().chain(integers).for_each(|value| {
                out.u32(*value);
            });
            out.raw(characters);
        }
        Reply::Stat { of, codes, succeeded, failed } => {
            out.u32(*of).raw(b"STAT").u32(1).u32(codes.0).u32(codes.1);
            out.u32(*succeeded).u32(0).u32(*failed).u32(1).raw(&[b' '; 4 * 48]);
        }
        Reply::Reserve { first } => {
            out.u32(verb::RESERVE).u32(1).u32(44).raw(b"SPRU").u32(1).u32(12);
            // How many ids, and where in the id they count.
            out.raw(b"SPRO").u32(1).u32(44).u32(RESERVED).u32(20).raw(first);
        }
        Reply::Connect { body } => {
            out.raw(body);
        }
        Reply::Query => {
            let verbs = [verb::QUERY, verb::RESERVE, verb::OPEN];
            out.u32(verb::QUERY).u32(1).u32(16 + 20 * verbs.len() as u32).raw(b"SPQU").u32(1).u32(12);
            out.raw(b"SPQO").u32(1).u32(16 + 20 * verbs.len() as u32).u32(verbs.len() as u32);
            for verb in verbs {
                out.u32(verb).u32(1).u32(1).u32(1).u32(0);
            }
        }
    }
}

fn write_open(out: &mut Writer, open: &Open, name: Option<&str>) {
    match open.form {
        Form::Plain { has_defaults } => {
            open.object.write(out, name);
            out.u32(open.options);
            if has_defaults {
                out.raw(b"FOPA").u32(1).u32(28);
                DEFAULTS.iter().for_each(|value| {
                    out.i32(*value);
                });
            }
        }
        Form::Spi => {
            out.u32(verb::OPEN).u32(1).u32(0).raw(b"SPOU").u32(1).u32(12);
            let start = out.out.len();
            out.raw(b"SPOO").u32(1).u32(0).raw(b"LPOO").u32(1).u32(open.options).u32(0);
            DEFAULTS.iter().for_each(|value| {
                out.i32(*value);
            });
            open.object.write(out, name);
            let length = (out.out.len() - start) as u32;
            out.set_u32(start + 8, length).set_u32(start - 16, length);
        }
    }
}

/// What is before the descriptor in a message's first segment, or before its data in a later one.
pub(crate) fn write_streamed(
    out: &mut Writer,
    message: &Streamed,
    number_of_segment: u16,
    segment_bytes: usize,
) {
    out.u32(1).u32(message.handle).u32(message.number).u32(message.index);
    out.u32(segment_bytes as u32).u16(number_of_segment).u16(message.selection);
    if number_of_segment > 0 {
        return;
    }
    out.u32(message.reason).u32(message.length).u32(message.data.len() as u32).raw(&[0; 16]).u16(0);
    let name = &message.queue.as_bytes()[..message.queue.len().min(48)];
    out.raw(&[name.len() as u8]).raw(name);
    out.raw(&[0; 3][..(4 - (3 + name.len()) % 4) % 4]);
    message.md.write(out);
}

pub(crate) fn write_notice(out: &mut Writer, notice: &Notice) {
    out.u32(1).u32(notice.handle).u32(notice.code).u32(notice.value);
}

/// Whether text fields of this order's peers are those of the reply: a client's structures go back as they came.
pub(crate) fn codes(order: Order, length: usize, codes: (u32, u32), handle: u32) -> Writer {
    let mut big = Writer::new(Order::Big);
    big.u32(length as u32);
    let mut out = Writer::new(order);
    out.raw(&big.out).u32(codes.0).u32(codes.1).u32(handle);
    out
}
