//! Bytes of a message as JSON in the form of Kafka's `JsonConverter`s: fields in their order, those of other versions
//! and tagged fields that were not written left out, bytes in base 64.

use super::schema::{Field, Schema, Type};
use crate::quoted;
use barnabas_base::Uuid;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Walks bytes. Errors say what is missing.
#[derive(Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        if self.rest.len() < count {
            return Err(format!("{count} bytes are expected, and {} are left", self.rest.len()));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("it has so many bytes"))
    }

    pub fn int16(&mut self) -> Result<i16, String> {
        self.array().map(i16::from_be_bytes)
    }

    fn int32(&mut self) -> Result<i32, String> {
        self.array().map(i32::from_be_bytes)
    }

    /// An unsigned varint.
    pub fn varint(&mut self) -> Result<u32, String> {
        let mut value = 0_u32;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint has more than five bytes".to_owned())
    }

    /// A length; `None`: null.
    fn length(&mut self, is_compact: bool, is_short: bool) -> Result<Option<usize>, String> {
        let length = match (is_compact, is_short) {
            (true, _) => i64::from(self.varint()?) - 1,
            (false, true) => i64::from(self.int16()?),
            (false, false) => i64::from(self.int32()?),
        };
        Ok(usize::try_from(length).ok())
    }
}

/// Shows bytes of a field of a message in another way; `None`: in base 64.
pub type Bytes<'a> = dyn Fn(&str, &str, &[u8]) -> Option<String> + 'a;

struct Walk<'a> {
    schema: &'a Schema,
    version: i16,
    is_flexible: bool,
    bytes: &'a Bytes<'a>,
    /// Bytes of text that may still be written.
    left: &'a Cell<usize>,
}

/// A message, without what stands in front of it.
///
/// Takes what it writes from `left`.
///
/// # Errors
/// The version is none that the schema knows; the bytes end early; the text is longer than what is left.
pub fn object(
    (schema, version): (&Schema, i16),
    cursor: &mut Cursor<'_>,
    bytes: &Bytes<'_>,
    left: &Cell<usize>,
) -> Result<String, String> {
    if !schema.versions.has(version) {
        return Err(format!("{} has no version {version}", schema.name));
    }
    let walk = Walk { schema, version, is_flexible: schema.flexible.has(version), bytes, left };
    walk.fields(&schema.name, cursor)
}

impl Walk<'_> {
    fn spend(&self, bytes: usize) -> Result<(), String> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(crate::TOO_LONG)?);
        Ok(())
    }

    fn fields(&self, name: &str, cursor: &mut Cursor<'_>) -> Result<String, String> {
        let fields = self.schema.structs.get(name).ok_or_else(|| format!("no struct {name} is known"))?;
        let is_tagged =
            |field: &Field| self.is_flexible && field.tag.is_some_and(|(_, since)| self.version >= since);
        let mut shown: BTreeMap<&str, String> = BTreeMap::new();
        let here = fields.iter().filter(|field| field.versions.has(self.version));
        for field in here.clone().filter(|field| !is_tagged(field)) {
            shown.insert(&field.name, self.value(field, &field.kind, cursor)?);
        }
        if self.is_flexible {
            for _ in 0..cursor.varint()? {
                let tag = cursor.varint()?;
                let size = cursor.varint()? as usize;
                let mut inner = Cursor::new(cursor.take(size)?);
                let of_tag =
                    |field: &&Field| is_tagged(field) && field.tag.is_some_and(|(own, _)| own == tag);
                if let Some(field) = here.clone().find(of_tag) {
                    shown.insert(&field.name, self.value(field, &field.kind, &mut inner)?);
                }
            }
        }
        self.spend(2 + shown.keys().map(|name| name.len() + 4).sum::<usize>())?;
        let in_order = fields.iter().filter_map(|field| {
            shown.get(field.name.as_str()).map(|value| format!("{}:{value}", quoted(&field.name)))
        });
        Ok(format!("{{{}}}", in_order.collect::<Vec<_>>().join(",")))
    }

    fn value(&self, field: &Field, kind: &Type, cursor: &mut Cursor<'_>) -> Result<String, String> {
        let is_compact = self.is_flexible && !field.inflexible;
        let text = match kind {
            Type::Bool => (cursor.array::<1>()?[0] != 0).to_string(),
            Type::Int8 => cursor.array().map(i8::from_be_bytes)?.to_string(),
            Type::Int16 => cursor.int16()?.to_string(),
            Type::Uint16 => cursor.array().map(u16::from_be_bytes)?.to_string(),
            Type::Int32 => cursor.int32()?.to_string(),
            Type::Uint32 => cursor.array().map(u32::from_be_bytes)?.to_string(),
            Type::Int64 => cursor.array().map(i64::from_be_bytes)?.to_string(),
            Type::Float64 => double(cursor.array().map(f64::from_be_bytes)?),
            Type::Uuid => quoted(&Uuid(cursor.array()?).to_string()),
            Type::Text => match cursor.length(is_compact, true)? {
                Some(length) => quoted(&String::from_utf8_lossy(cursor.take(length)?)),
                None => "null".to_owned(),
            },
            Type::Bytes => match cursor.length(is_compact, false)? {
                Some(length) => self.shown(field, cursor.take(length)?),
                None => "null".to_owned(),
            },
            Type::Array(of) => {
                let Some(count) = cursor.length(is_compact, false)? else { return Ok("null".to_owned()) };
                let mut items = Vec::new();
                for _ in 0..count {
                    self.spend(1)?;
                    items.push(self.value(field, of, cursor)?);
                }
                return Ok(format!("[{}]", items.join(",")));
            }
            Type::Struct(name) => {
                let is_alone = !matches!(field.kind, Type::Array(_));
                if is_alone && field.nullable.has(self.version) && cursor.array::<1>()?[0] as i8 == -1 {
                    return Ok("null".to_owned());
                }
                return self.fields(name, cursor);
            }
        };
        self.spend(text.len())?;
        Ok(text)
    }

    fn shown(&self, field: &Field, bytes: &[u8]) -> String {
        let other = (self.bytes)(&self.schema.name, &field.name, bytes);
        other.unwrap_or_else(|| quoted(&STANDARD.encode(bytes)))
    }
}

/// As Java writes it: `1000.0`, and from ten million on `1.0E7`.
fn double(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        let written = format!("{value:E}");
        let (digits, exponent) = written.split_once('E').unwrap_or((&written, "0"));
        let digits = if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") };
        return format!("{digits}E{exponent}");
    }
    format!("{value:?}")
}
