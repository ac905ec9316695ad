//! Reads Kafka's primitive types from a frame without copying and without believing it.
//!
//! It knows no message: the generated code calls it field by field. `structs.rs` adds what reads structs.
//!
//! Always true:
//! 1. no length is believed beyond the bytes that remain; an array of `n` elements needs `n` times the least that an
//!    element takes
//! 2. no more than [`RESERVE_BYTES`] is reserved on the word of a count; a vector grows as its elements arrive
//! 3. what vectors, copied strings and unknown tags take in memory is charged to a budget that is set before the first
//!    byte
//! 4. strings, bytes and records are slices of the frame
//!
//! Depth needs no bound here: messages nest as deep as their schema does, and the generator refuses schemas that
//! contain themselves.

use barnabas_base::Uuid;
use bytes::{Buf, Bytes};

use crate::error::{DecodeError, DecodeErrorKind};
use crate::str::{STRING_BYTES_MAX, Str};
use crate::tagged::{TaggedFields, UnknownTaggedField};

/// The most that a count alone can make an array reserve.
pub const RESERVE_BYTES: usize = 16 * 1024;

/// Memory that decoding may take beyond the frame itself, unless the caller says otherwise: Kafka's
/// `socket.request.max.bytes` by default.
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// A position in a frame.
#[derive(Debug, Clone)]
pub struct Reader {
    rest: Bytes,
    /// Where `rest` begins, counted from the start of the frame.
    position: usize,
    memory_left: usize,
    memory_max: usize,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl Reader {
    pub fn new(frame: Bytes) -> Self {
        Self::with_memory_max(frame, MEMORY_BYTES_MAX)
    }

    /// `memory_max`: bytes that vectors and the like may take beyond the frame.
    pub fn with_memory_max(frame: Bytes, memory_max: usize) -> Self {
        Self { rest: frame, position: 0, memory_left: memory_max, memory_max }
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What has been charged for vectors, copied strings and unknown tags.
    pub fn memory_taken(&self) -> usize {
        self.memory_max - self.memory_left
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What has not been read.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// # Errors
    /// Bytes are left over: the message is not what its sender took it for.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.error("", DecodeErrorKind::Trailing(self.rest.len())))
    }

    #[cold]
    pub fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { kind, field, position: self.position }
    }

    fn need(&self, field: &'static str, needed: usize) -> Result<()> {
        if needed <= self.rest.len() {
            return Ok(());
        }
        Err(self.error(field, DecodeErrorKind::Short { needed: needed as u64, remaining: self.rest.len() }))
    }

    fn charge(&mut self, field: &'static str, bytes: usize) -> Result<()> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(self.error(field, DecodeErrorKind::Memory(self.memory_max))),
        }
    }

    fn fixed<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        match self.rest.first_chunk::<N>() {
            Some(chunk) => {
                let chunk = *chunk;
                self.rest.advance(N);
                self.position += N;
                Ok(chunk)
            }
            None => {
                Err(self
                    .error(field, DecodeErrorKind::Short { needed: N as u64, remaining: self.rest.len() }))
            }
        }
    }

    /// The next `length` bytes, as a slice of the frame.
    pub fn take(&mut self, field: &'static str, length: usize) -> Result<Bytes> {
        self.need(field, length)?;
        self.position += length;
        Ok(self.rest.split_to(length))
    }

    pub fn bool(&mut self, field: &'static str) -> Result<bool> {
        Ok(self.fixed::<1>(field)?[0] != 0)
    }

    pub fn int8(&mut self, field: &'static str) -> Result<i8> {
        Ok(i8::from_be_bytes(self.fixed(field)?))
    }

    pub fn int16(&mut self, field: &'static str) -> Result<i16> {
        Ok(i16::from_be_bytes(self.fixed(field)?))
    }

    pub fn uint16(&mut self, field: &'static str) -> Result<u16> {
        Ok(u16::from_be_bytes(self.fixed(field)?))
    }

    pub fn int32(&mut self, field: &'static str) -> Result<i32> {
        Ok(i32::from_be_bytes(self.fixed(field)?))
    }

    pub fn uint32(&mut self, field: &'static str) -> Result<u32> {
        Ok(u32::from_be_bytes(self.fixed(field)?))
    }

    pub fn int64(&mut self, field: &'static str) -> Result<i64> {
        Ok(i64::from_be_bytes(self.fixed(field)?))
    }

    pub fn float64(&mut self, field: &'static str) -> Result<f64> {
        Ok(f64::from_be_bytes(self.fixed(field)?))
    }

    pub fn uuid(&mut self, field: &'static str) -> Result<Uuid> {
        Ok(Uuid(self.fixed(field)?))
    }

    /// An unsigned number of one to five bytes, seven bits each, low bits first.
    pub fn uvarint(&mut self, field: &'static str) -> Result<u32> {
        let mut value: u32 = 0;
        for index in 0..5 {
            let byte = self.fixed::<1>(field)?[0];
            value |= u32::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                // The fifth byte has room for four bits; Kafka's reader drops what goes beyond, and so do we.
                return Ok(value);
            }
        }
        Err(self.error(field, DecodeErrorKind::Varint))
    }

    /// A zigzag number of one to five bytes.
    pub fn varint(&mut self, field: &'static str) -> Result<i32> {
        let raw = self.uvarint(field)?;
        Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
    }

    /// A zigzag number of one to ten bytes.
    pub fn varlong(&mut self, field: &'static str) -> Result<i64> {
        let mut raw: u64 = 0;
        for index in 0..10 {
            let byte = self.fixed::<1>(field)?[0];
            raw |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
            }
        }
        Err(self.error(field, DecodeErrorKind::Varint))
    }

    /// A length in front of bytes or an array: `None` for null.
    fn length(&mut self, field: &'static str, flexible: bool) -> Result<Option<usize>> {
        if flexible {
            let raw = self.uvarint(field)?;
            return Ok(raw.checked_sub(1).map(|length| length as usize));
        }
        match self.int32(field)? {
            -1 => Ok(None),
            length if length < 0 => Err(self.error(field, DecodeErrorKind::Length(i64::from(length)))),
            length => Ok(Some(length as usize)),
        }
    }

    fn no_null(&self, field: &'static str) -> DecodeError {
        self.error(field, DecodeErrorKind::Null)
    }

    /// `null_ok`: whether this version of the field may be null.
    pub fn nullable_string(
        &mut self,
        field: &'static str,
        flexible: bool,
        null_ok: bool,
    ) -> Result<Option<Str>> {
        let length = if flexible {
            self.uvarint(field)?.checked_sub(1).map(|length| length as usize)
        } else {
            match self.int16(field)? {
                -1 => None,
                length if length < 0 => {
                    return Err(self.error(field, DecodeErrorKind::Length(i64::from(length))));
                }
                length => Some(length as usize),
            }
        };
        let Some(length) = length else {
            return if null_ok { Ok(None) } else { Err(self.no_null(field)) };
        };
        if length > STRING_BYTES_MAX {
            return Err(self.error(field, DecodeErrorKind::Length(length as i64)));
        }
        let bytes = self.take(field, length)?;
        if std::str::from_utf8(&bytes).is_err() {
            // The copy with replacement characters takes at most three bytes for one.
            self.charge(field, 3 * length)?;
        }
        let text = Str::from_utf8_lossy(bytes);
        // What cannot be written back, in an answer that names it, is not taken: replacement characters are longer than
        // what they replace.
        if text.len() > STRING_BYTES_MAX {
            return Err(self.error(field, DecodeErrorKind::Length(text.len() as i64)));
        }
        Ok(Some(text))
    }

    pub fn string(&mut self, field: &'static str, flexible: bool) -> Result<Str> {
        self.nullable_string(field, flexible, false)?.ok_or_else(|| self.no_null(field))
    }

    pub fn nullable_bytes(
        &mut self,
        field: &'static str,
        flexible: bool,
        null_ok: bool,
    ) -> Result<Option<Bytes>> {
        match self.length(field, flexible)? {
            Some(length) => self.take(field, length).map(Some),
            None if null_ok => Ok(None),
            None => Err(self.no_null(field)),
        }
    }

    pub fn bytes(&mut self, field: &'static str, flexible: bool) -> Result<Bytes> {
        self.nullable_bytes(field, flexible, false)?.ok_or_else(|| self.no_null(field))
    }

    /// `element_bytes_min`: the least that one element takes on the wire, at least 1.
    pub fn nullable_array<T>(
        &mut self,
        field: &'static str,
        flexible: bool,
        null_ok: bool,
        element_bytes_min: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        let Some(count) = self.length(field, flexible)? else {
            return if null_ok { Ok(None) } else { Err(self.no_null(field)) };
        };
        self.check_count(field, count, element_bytes_min, size_of::<T>())?;
        let mut elements = Vec::with_capacity(count.min(RESERVE_BYTES / size_of::<T>().max(1)));
        for _ in 0..count {
            if elements.len() == elements.capacity() {
                // Doubles like `push` would, but never past the count, which was charged for.
                elements.reserve_exact(elements.len().max(1).min(count - elements.len()));
            }
            elements.push(read(self)?);
        }
        Ok(Some(elements))
    }

    fn check_count(&mut self, field: &'static str, count: usize, wire: usize, memory: usize) -> Result<()> {
        let needed = count as u64 * wire.max(1) as u64;
        if needed > self.rest.len() as u64 {
            return Err(self.error(field, DecodeErrorKind::Short { needed, remaining: self.rest.len() }));
        }
        self.charge(field, count.saturating_mul(memory))
    }

    pub fn array<T>(
        &mut self,
        field: &'static str,
        flexible: bool,
        element_bytes_min: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.nullable_array(field, flexible, false, element_bytes_min, read)?
            .ok_or_else(|| self.no_null(field))
    }

    /// The tagged fields at the end of a struct. `read` reads the ones that it knows and says whether it did.
    pub fn tagged_fields(
        &mut self,
        unknown: &mut TaggedFields,
        mut read: impl FnMut(&mut Self, u32) -> Result<bool>,
    ) -> Result<()> {
        const FIELD: &str = "_tagged_fields";
        let count = self.uvarint(FIELD)?;
        // A tag and its length take a byte each.
        self.check_count(FIELD, count as usize, 2, 0)?;
        for _ in 0..count {
            let tag = self.uvarint(FIELD)?;
            let size = self.uvarint(FIELD)? as usize;
            self.need(FIELD, size)?;
            let before = self.position;
            if !read(self, tag)? {
                // Twice: the vector doubles as it grows.
                self.charge(FIELD, 2 * size_of::<UnknownTaggedField>())?;
                let data = self.take(FIELD, size)?;
                unknown.push(tag, data);
            }
            let taken = self.position - before;
            if taken != size {
                return Err(self.error(FIELD, DecodeErrorKind::TagLength { tag, said: size, taken }));
            }
        }
        Ok(())
    }

    /// The tagged fields of a struct that knows none.
    pub fn unknown_tagged_fields(&mut self) -> Result<TaggedFields> {
        let mut unknown = TaggedFields::default();
        self.tagged_fields(&mut unknown, |_, _| Ok(false))?;
        Ok(unknown)
    }
}

#[cfg(test)]
mod tests;
