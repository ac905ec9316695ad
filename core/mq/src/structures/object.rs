//! MQOD: what a call opens. 168, 200, 336 or 400 bytes, by its version. It goes back as it came, with the name that it
//! resolved to.

use crate::bytes::{Order, Reader, Writer};
use crate::reason;
use crate::text::{fixed, trimmed};
use bytes::Bytes;

const ID: &[u8; 4] = b"OD  ";
const NAME_AT: usize = 12;
/// Version 4: the length in the MQCHARV of the selection string, and that of the object string.
const OBJECT_STRING_LENGTH_AT: usize = 336 + 12;
const SELECTION_LENGTH_AT: usize = 356 + 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `MQOT_*`: 1 a queue, 5 the queue manager, 8 a topic.
    pub kind: u32,
    pub name: String,
    pub queue_manager: String,
    /// For a model queue: what the name of the queue that is made of it begins with, and a `*`.
    pub dynamic: String,
    pub has_selector: bool,
    pub has_long_name: bool,
    pub is_distribution_list: bool,
    raw: Bytes,
}

impl Object {
    /// One that a client opens: version 1.
    pub fn named(kind: u32, name: &str, order: Order) -> Self {
        let mut out = Writer::new(order);
        out.raw(ID).u32(1).u32(kind).raw(&fixed::<48>(name)).raw(&[b' '; 48]);
        out.raw(&fixed::<48>("AMQ.*")).raw(&[b' '; 12]);
        let raw = out.out.freeze();
        Self {
            kind,
            name: name.to_owned(),
            queue_manager: String::new(),
            dynamic: "AMQ.*".to_owned(),
            has_selector: false,
            has_long_name: false,
            is_distribution_list: false,
            raw,
        }
    }

    pub(crate) fn read_next(reader: &mut Reader<'_>, order: Order) -> Result<Self, u32> {
        read(reader, order).ok_or(reason::OD_ERROR)
    }

    /// The structure for a reply: with `name`, where the object has another one than it was opened by.
    pub(crate) fn write(&self, out: &mut Writer, name: Option<&str>) {
        let at = out.out.len();
        out.raw(&self.raw);
        if let Some(name) = name {
            let place = at + NAME_AT..at + NAME_AT + 48;
            if let Some(field) = out.out.get_mut(place) {
                field.copy_from_slice(&fixed::<48>(name));
            }
        }
    }
}

fn read(reader: &mut Reader<'_>, order: Order) -> Option<Object> {
    let start = reader.left();
    if reader.take(4)? != ID {
        return None;
    }
    let bytes = match reader.u32()? {
        1 => 168,
        2 => 200,
        3 => 336,
        4 => 400,
        _ => return None,
    };
    let raw = start.get(..bytes)?;
    let kind = reader.u32()?;
    let (name, queue_manager, dynamic) = (reader.take(48)?, reader.take(48)?, reader.take(48)?);
    let records = if bytes > 168 { Reader::new(raw.get(168..)?, order).u32()? } else { 0 };
    let length = |at: usize| -> Option<u32> {
        if bytes == 400 { Reader::new(raw.get(at..)?, order).u32() } else { Some(0) }
    };
    let object = Object {
        kind,
        name: trimmed(name),
        queue_manager: trimmed(queue_manager),
        dynamic: trimmed(dynamic),
        has_selector: length(SELECTION_LENGTH_AT)? != 0,
        has_long_name: length(OBJECT_STRING_LENGTH_AT)? != 0,
        is_distribution_list: records != 0,
        raw: Bytes::copy_from_slice(raw),
    };
    *reader = Reader::new(start.get(bytes..)?, order);
    Some(object)
}
