//! AMQP's type system ↔ bytes.
//!
//! Nothing is reserved on the word of a length or a count: a value takes memory in proportion to its bytes. Nesting
//! ends at [`DEPTH_MAX`], elements at one for each byte of the input (arrays of zero-width elements would have no
//! bound).
//!
//! # Source
//! AMQP 1.0 part 1, sections 1.2 and 1.6.

use crate::AmqpError;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Lists in lists, and so on.
pub const DEPTH_MAX: usize = 24;

/// One value. Floats are kept as their bits, so that values compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(u32),
    Double(u64),
    Decimal32([u8; 4]),
    Decimal64([u8; 8]),
    Decimal128([u8; 16]),
    Char(u32),
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(Bytes),
    String(String),
    Symbol(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// Elements of one type.
    Array(Vec<Value>),
    Described(Box<(Value, Value)>),
}

impl Value {
    pub fn symbol(text: &str) -> Self {
        Self::Symbol(text.to_owned())
    }

    pub fn string(text: &str) -> Self {
        Self::String(text.to_owned())
    }

    pub fn described(code: u64, value: Value) -> Self {
        Self::Described(Box::new((Self::Ulong(code), value)))
    }

    /// The text of a string or symbol.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) | Self::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// Any integer type that fits.
    pub fn integer(&self) -> Option<i64> {
        match *self {
            Self::Ubyte(n) => Some(n.into()),
            Self::Ushort(n) => Some(n.into()),
            Self::Uint(n) => Some(n.into()),
            Self::Ulong(n) => i64::try_from(n).ok(),
            Self::Byte(n) => Some(n.into()),
            Self::Short(n) => Some(n.into()),
            Self::Int(n) => Some(n.into()),
            Self::Long(n) | Self::Timestamp(n) => Some(n),
            _ => None,
        }
    }
}

/// Reads values from the front of a buffer.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    elements_left: usize,
}

const SHORT: AmqpError = AmqpError::Decode("it ends within a value");

impl Reader {
    pub fn new(bytes: Bytes) -> Self {
        let elements_left = bytes.len() + 1;
        Self { bytes, elements_left }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was not read.
    pub fn rest(self) -> Bytes {
        self.bytes
    }

    /// The next value.
    ///
    /// # Errors
    /// [`AmqpError::Decode`].
    pub fn value(&mut self) -> Result<Value, AmqpError> {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Result<Value, AmqpError> {
        if depth > DEPTH_MAX {
            return Err(AmqpError::Decode("values are nested too deep"));
        }
        let code = self.u8()?;
        if code == 0 {
            let descriptor = self.nested(depth + 1)?;
            return Ok(Value::Described(Box::new((descriptor, self.nested(depth + 1)?))));
        }
        self.of_code(code, depth)
    }

    fn of_code(&mut self, code: u8, depth: usize) -> Result<Value, AmqpError> {
        self.elements_left =
            self.elements_left.checked_sub(1).ok_or(AmqpError::Decode("it has more elements than bytes"))?;
        Ok(match code {
            0x40 => Value::Null,
            0x41 => Value::Bool(true),
            0x42 => Value::Bool(false),
            0x56 => Value::Bool(self.boolean()?),
            0x50 => Value::Ubyte(self.u8()?),
            0x51 => Value::Byte(self.u8()? as i8),
            0x60 => Value::Ushort(u16::from_be_bytes(self.array()?)),
            0x61 => Value::Short(i16::from_be_bytes(self.array()?)),
            0x43 => Value::Uint(0),
            0x52 => Value::Uint(self.u8()?.into()),
            0x70 => Value::Uint(u32::from_be_bytes(self.array()?)),
            0x44 => Value::Ulong(0),
            0x53 => Value::Ulong(self.u8()?.into()),
            0x80 => Value::Ulong(u64::from_be_bytes(self.array()?)),
            0x54 => Value::Int((self.u8()? as i8).into()),
            0x71 => Value::Int(i32::from_be_bytes(self.array()?)),
            0x55 => Value::Long((self.u8()? as i8).into()),
            0x81 => Value::Long(i64::from_be_bytes(self.array()?)),
            0x72 => Value::Float(u32::from_be_bytes(self.array()?)),
            0x82 => Value::Double(u64::from_be_bytes(self.array()?)),
            0x74 => Value::Decimal32(self.array()?),
            0x84 => Value::Decimal64(self.array()?),
            0x94 => Value::Decimal128(self.array()?),
            0x73 => Value::Char(u32::from_be_bytes(self.array()?)),
            0x83 => Value::Timestamp(i64::from_be_bytes(self.array()?)),
            0x98 => Value::Uuid(self.array()?),
            0xa0 | 0xb0 => Value::Binary(self.sized(code == 0xb0)?),
            0xa1 | 0xb1 => Value::String(self.text(code == 0xb1)?),
            0xa3 | 0xb3 => Value::Symbol(self.text(code == 0xb3)?),
            0x45 => Value::List(Vec::new()),
            0xc0 | 0xd0 => Value::List(self.list(code == 0xd0, depth)?),
            0xc1 | 0xd1 => self.map(code == 0xd1, depth)?,
            0xe0 | 0xf0 => self.elements(code == 0xf0, depth)?,
            _ => return Err(AmqpError::Decode("it has a type that AMQP 1.0 does not know")),
        })
    }

    fn boolean(&mut self) -> Result<bool, AmqpError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(AmqpError::Decode("a boolean is neither 0 nor 1")),
        }
    }

    fn u8(&mut self) -> Result<u8, AmqpError> {
        if self.bytes.is_empty() { Err(SHORT) } else { Ok(self.bytes.get_u8()) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], AmqpError> {
        let found = *self.bytes.first_chunk::<N>().ok_or(SHORT)?;
        self.bytes.advance(N);
        Ok(found)
    }

    fn length(&mut self, is_wide: bool) -> Result<usize, AmqpError> {
        if is_wide { Ok(u32::from_be_bytes(self.array()?) as usize) } else { Ok(self.u8()?.into()) }
    }

    fn sized(&mut self, is_wide: bool) -> Result<Bytes, AmqpError> {
        let length = self.length(is_wide)?;
        if length > self.bytes.len() {
            return Err(SHORT);
        }
        Ok(self.bytes.split_to(length))
    }

    fn text(&mut self, is_wide: bool) -> Result<String, AmqpError> {
        let bytes = self.sized(is_wide)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| AmqpError::Decode("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// The inside of a list, map or array, and how many elements it claims. The reader ends with the inside.
    fn inside(&mut self, is_wide: bool) -> Result<(Reader, usize), AmqpError> {
        let mut inside = Reader { bytes: self.sized(is_wide)?, elements_left: self.elements_left };
        let count = inside.length(is_wide)?;
        Ok((inside, count))
    }

    fn end_of(&mut self, inside: &Reader) -> Result<(), AmqpError> {
        self.elements_left = inside.elements_left;
        if inside.is_empty() { Ok(()) } else { Err(AmqpError::Decode("a list is longer than its elements")) }
    }

    fn list(&mut self, is_wide: bool, depth: usize) -> Result<Vec<Value>, AmqpError> {
        let (mut inside, count) = self.inside(is_wide)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(inside.nested(depth + 1)?);
        }
        self.end_of(&inside)?;
        Ok(list)
    }

    fn map(&mut self, is_wide: bool, depth: usize) -> Result<Value, AmqpError> {
        let (mut inside, count) = self.inside(is_wide)?;
        if !count.is_multiple_of(2) {
            return Err(AmqpError::Decode("a map has a key without a value"));
        }
        let mut map = Vec::new();
        for _ in 0..count / 2 {
            let key = inside.nested(depth + 1)?;
            map.push((key, inside.nested(depth + 1)?));
        }
        self.end_of(&inside)?;
        Ok(Value::Map(map))
    }

    fn elements(&mut self, is_wide: bool, depth: usize) -> Result<Value, AmqpError> {
        let (mut inside, count) = self.inside(is_wide)?;
        let mut code = inside.u8()?;
        let mut descriptor = None;
        if code == 0 {
            descriptor = Some(inside.nested(depth + 1)?);
            code = inside.u8()?;
        }
        if depth >= DEPTH_MAX || code == 0 {
            return Err(AmqpError::Decode("values are nested too deep"));
        }
        let mut array = Vec::new();
        for _ in 0..count {
            let value = inside.of_code(code, depth + 1)?;
            array.push(match &descriptor {
                // Each element would hold a copy: what is described here is small or not ours.
                Some(Value::Ulong(code)) => Value::described(*code, value),
                Some(Value::Symbol(name)) if name.len() <= 32 => {
                    Value::Described(Box::new((Value::symbol(name), value)))
                }
                Some(_) => return Err(AmqpError::Decode("an array has a descriptor that no type has")),
                None => value,
            });
        }
        self.end_of(&inside)?;
        Ok(Value::Array(array))
    }
}

/// Appends a value in the shortest form of its type.
pub fn write_value(out: &mut BytesMut, value: &Value) {
    match value {
        Value::Null => out.put_u8(0x40),
        Value::Bool(is) => out.put_u8(if *is { 0x41 } else { 0x42 }),
        Value::Uint(0) => out.put_u8(0x43),
        Value::Uint(n) if *n < 256 => out.put_slice(&[0x52, *n as u8]),
        Value::Ulong(0) => out.put_u8(0x44),
        Value::Ulong(n) if *n < 256 => out.put_slice(&[0x53, *n as u8]),
        Value::Int(n) if i8::try_from(*n).is_ok() => out.put_slice(&[0x54, *n as u8]),
        Value::Long(n) if i8::try_from(*n).is_ok() => out.put_slice(&[0x55, *n as u8]),
        Value::Binary(bytes) if bytes.len() < 256 => write_short(out, 0xa0, bytes),
        Value::String(text) if text.len() < 256 => write_short(out, 0xa1, text.as_bytes()),
        Value::Symbol(text) if text.len() < 256 => write_short(out, 0xa3, text.as_bytes()),
        Value::List(list) if list.is_empty() => out.put_u8(0x45),
        Value::Described(pair) => {
            out.put_u8(0);
            write_value(out, &pair.0);
            write_value(out, &pair.1);
        }
        other => {
            out.put_u8(wide_code(other));
            write_wide(out, other);
        }
    }
}

fn write_short(out: &mut BytesMut, code: u8, bytes: &[u8]) {
    out.put_slice(&[code, bytes.len() as u8]);
    out.put_slice(bytes);
}

/// The type's code in the form that holds any value of it: the form in which arrays hold their elements.
fn wide_code(value: &Value) -> u8 {
    match value {
        Value::Null => 0x40,
        Value::Bool(_) => 0x56,
        Value::Ubyte(_) => 0x50,
        Value::Ushort(_) => 0x60,
        Value::Uint(_) => 0x70,
        Value::Ulong(_) => 0x80,
        Value::Byte(_) => 0x51,
        Value::Short(_) => 0x61,
        Value::Int(_) => 0x71,
        Value::Long(_) => 0x81,
        Value::Float(_) => 0x72,
        Value::Double(_) => 0x82,
        Value::Decimal32(_) => 0x74,
        Value::Decimal64(_) => 0x84,
        Value::Decimal128(_) => 0x94,
        Value::Char(_) => 0x73,
        Value::Timestamp(_) => 0x83,
        Value::Uuid(_) => 0x98,
        Value::Binary(_) => 0xb0,
        Value::String(_) => 0xb1,
        Value::Symbol(_) => 0xb3,
        Value::List(_) => 0xd0,
        Value::Map(_) => 0xd1,
        Value::Array(_) => 0xf0,
        Value::Described(_) => 0x00,
    }
}

/// What follows the type's wide code.
fn write_wide(out: &mut BytesMut, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(is) => out.put_u8((*is).into()),
        Value::Ubyte(n) => out.put_u8(*n),
        Value::Byte(n) => out.put_i8(*n),
        Value::Ushort(n) => out.put_u16(*n),
        Value::Short(n) => out.put_i16(*n),
        Value::Uint(n) | Value::Float(n) | Value::Char(n) => out.put_u32(*n),
        Value::Ulong(n) | Value::Double(n) => out.put_u64(*n),
        Value::Int(n) => out.put_i32(*n),
        Value::Long(n) | Value::Timestamp(n) => out.put_i64(*n),
        Value::Decimal32(bytes) => out.put_slice(bytes),
        Value::Decimal64(bytes) => out.put_slice(bytes),
        Value::Decimal128(bytes) | Value::Uuid(bytes) => out.put_slice(bytes),
        Value::Binary(bytes) => write_sized(out, bytes),
        Value::String(text) | Value::Symbol(text) => write_sized(out, text.as_bytes()),
        Value::List(list) => write_inside(out, list.len(), |out| {
            list.iter().for_each(|value| write_value(out, value));
        }),
        Value::Map(map) => write_inside(out, map.len() * 2, |out| {
            for (key, value) in map {
                write_value(out, key);
                write_value(out, value);
            }
        }),
        Value::Array(array) => write_inside(out, array.len(), |out| write_elements(out, array)),
        Value::Described(pair) => write_wide(out, &pair.1),
    }
}

fn write_sized(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put_slice(bytes);
}

fn write_elements(out: &mut BytesMut, array: &[Value]) {
    match array.first() {
        Some(Value::Described(pair)) => {
            out.put_u8(0);
            write_value(out, &pair.0);
            out.put_u8(wide_code(&pair.1));
        }
        Some(first) => out.put_u8(wide_code(first)),
        None => out.put_u8(0x40),
    }
    array.iter().for_each(|value| write_wide(out, value));
}

/// Size and count in four bytes each, then the elements.
fn write_inside(out: &mut BytesMut, count: usize, elements: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u32(0);
    out.put_u32(count as u32);
    elements(out);
    let size = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: &Value) {
        let mut out = BytesMut::new();
        write_value(&mut out, value);
        let mut reader = Reader::new(out.freeze());
        assert_eq!(reader.value().as_ref(), Ok(value));
        assert!(reader.is_empty());
    }

    #[test]
    fn every_type_survives_a_round_trip() {
        let plain = vec![
            Value::Null,
            Value::Bool(true),
            Value::Ubyte(7),
            Value::Ushort(300),
            Value::Uint(0),
            Value::Uint(255),
            Value::Uint(256),
            Value::Ulong(0),
            Value::Ulong(u64::MAX),
            Value::Byte(-1),
            Value::Short(-300),
            Value::Int(-128),
            Value::Int(-129),
            Value::Long(127),
            Value::Long(i64::MIN),
            Value::Float(1.5f32.to_bits()),
            Value::Double(f64::NAN.to_bits()),
            Value::Decimal32([1; 4]),
            Value::Decimal64([2; 8]),
            Value::Decimal128([3; 16]),
            Value::Char('ß' as u32),
            Value::Timestamp(-1),
            Value::Uuid([9; 16]),
            Value::Binary(Bytes::from(vec![1; 300])),
            Value::string("kurz"),
            Value::Symbol("s".repeat(256)),
        ];
        for value in &plain {
            round(value);
            round(&Value::Array(vec![value.clone(), value.clone()]));
        }
        round(&Value::List(plain.clone()));
        round(&Value::Map(vec![(Value::symbol("k"), Value::List(vec![]))]));
        round(&Value::described(0x24, Value::List(plain)));
        round(&Value::Array(vec![]));
        round(&Value::Array(vec![Value::described(3, Value::Uint(1)), Value::described(3, Value::Uint(2))]));
        round(&Value::Array(vec![Value::Array(vec![Value::Int(1)]), Value::Array(vec![])]));
    }

    #[test]
    fn lengths_are_not_trusted() {
        let cases: &[&[u8]] = &[
            &[],
            &[0xb0, 0xff, 0xff, 0xff, 0xff, 1],
            &[0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff],
            // An array of four billion nulls in ten bytes.
            &[0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40],
            &[0xc1, 2, 1, 0x40],
            &[0xa1, 1, 0xff],
            &[0x56, 2],
            &[0x3f],
        ];
        for case in cases {
            assert!(Reader::new(Bytes::copy_from_slice(case)).value().is_err(), "{case:02x?}");
        }
    }

    #[test]
    fn nesting_ends() {
        let mut deep = vec![0u8; 100_000];
        deep.push(0x40);
        assert!(Reader::new(deep.into()).value().is_err());
    }
}
