//! Writes Kafka's primitive types into a frame of segments; large fields are added by reference.
//!
//! It knows no message: the generated code in `messages` calls it field by field.
//!
//! Always true:
//! 1. the frame's bytes are the segments in their order, then the tail
//! 2. bytes of [`REFERENCE_BYTES_MIN`] and more are never copied

use barnabas_base::Uuid;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::EncodeError;
use crate::sentence::{SENTENCE_BYTES_MAX, sentence};
use crate::str::{STRING_BYTES_MAX, Str};
use crate::tagged::{TaggedFields, UnknownTaggedField};

/// From this length on, a reference is cheaper than a copy (one more segment in a vectored write).
pub const REFERENCE_BYTES_MIN: usize = 1024;

type Result<T> = std::result::Result<T, EncodeError>;

/// What [`Writer::finish`] hands to a vectored write.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    pub segments: Vec<Bytes>,
    /// Bytes of all segments.
    pub len: usize,
}

impl Frame {
    /// One piece; copies unless there is only one segment.
    pub fn into_bytes(mut self) -> Bytes {
        if self.segments.len() <= 1 {
            return self.segments.pop().unwrap_or_default();
        }
        let mut all = BytesMut::with_capacity(self.len);
        self.segments.iter().for_each(|segment| all.extend_from_slice(segment));
        all.freeze()
    }
}

/// A frame in the making.
#[derive(Debug, Default)]
pub struct Writer {
    segments: Vec<Bytes>,
    segments_len: usize,
    tail: BytesMut,
}

/// Where a part began whose length is written in front of it afterwards.
#[derive(Debug, Clone, Copy)]
struct Mark {
    segments: usize,
    tail: usize,
    len: usize,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(bytes: usize) -> Self {
        Self { tail: BytesMut::with_capacity(bytes), ..Self::default() }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.segments_len + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn finish(mut self) -> Frame {
        let len = self.len();
        if !self.tail.is_empty() {
            self.segments.push(std::mem::take(&mut self.tail).freeze());
        }
        Frame { segments: self.segments, len }
    }

    /// A writer whose frame begins with its own length, as it goes over a socket; end it with [`Self::finish_framed`].
    pub fn framed() -> Self {
        let mut writer = Self::with_capacity(128);
        writer.int32(0);
        writer
    }

    /// Fills in the length that [`Self::framed`] left room for: four bytes that count what follows them.
    ///
    /// # Errors
    /// The frame is longer than the protocol can say.
    pub fn finish_framed(mut self) -> Result<Frame> {
        let length = self.len() - 4;
        let prefix = i32::try_from(length).map_err(|_| EncodeError::TooLong { field: "frame", length })?;
        if self.segments.is_empty() {
            self.tail[..4].copy_from_slice(&prefix.to_be_bytes());
            return Ok(self.finish());
        }
        // What was sealed cannot be written to any more: the length becomes a segment of its own.
        let mut frame = self.finish();
        frame.segments[0].advance(4);
        frame.segments.insert(0, Bytes::copy_from_slice(&prefix.to_be_bytes()));
        Ok(frame)
    }

    /// The frame in one piece; copies only if something went in by reference.
    pub fn into_bytes(self) -> Bytes {
        if self.segments.is_empty() { self.tail.freeze() } else { self.finish().into_bytes() }
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            let sealed = self.tail.split().freeze();
            self.segments_len += sealed.len();
            self.segments.push(sealed);
        }
    }

    /// Bytes without a length in front: by reference where they are large.
    pub fn raw(&mut self, bytes: &Bytes) {
        if bytes.len() < REFERENCE_BYTES_MIN {
            self.tail.extend_from_slice(bytes);
            return;
        }
        self.seal_tail();
        self.segments_len += bytes.len();
        self.segments.push(bytes.clone());
    }

    /// Bytes without a length in front, copied.
    pub fn raw_slice(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    pub fn bool(&mut self, value: bool) {
        self.tail.put_u8(u8::from(value));
    }

    pub fn int8(&mut self, value: i8) {
        self.tail.put_i8(value);
    }

    pub fn int16(&mut self, value: i16) {
        self.tail.put_i16(value);
    }

    pub fn uint16(&mut self, value: u16) {
        self.tail.put_u16(value);
    }

    pub fn int32(&mut self, value: i32) {
        self.tail.put_i32(value);
    }

    pub fn uint32(&mut self, value: u32) {
        self.tail.put_u32(value);
    }

    pub fn int64(&mut self, value: i64) {
        self.tail.put_i64(value);
    }

    pub fn float64(&mut self, value: f64) {
        self.tail.put_f64(value);
    }

    pub fn uuid(&mut self, value: &Uuid) {
        self.tail.extend_from_slice(&value.0);
    }

    pub fn uvarint(&mut self, value: u32) {
        let (bytes, length) = uvarint_bytes(value);
        self.tail.extend_from_slice(&bytes[..length]);
    }

    pub fn varint(&mut self, value: i32) {
        self.uvarint(((value << 1) ^ (value >> 31)) as u32);
    }

    pub fn varlong(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            self.tail.put_u8(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.tail.put_u8(rest as u8);
    }

    /// A length in front of bytes or an array; null goes out as −1, or 0 in the compact form.
    fn length(&mut self, field: &'static str, flexible: bool, length: Option<usize>) -> Result<()> {
        let too_long = |length| EncodeError::TooLong { field, length };
        let length = match length {
            Some(length) => i32::try_from(length).map_err(|_| too_long(length))?,
            None => -1,
        };
        if flexible {
            self.uvarint(length.wrapping_add(1) as u32);
        } else {
            self.int32(length);
        }
        Ok(())
    }

    pub fn string(&mut self, field: &'static str, value: &Str, flexible: bool) -> Result<()> {
        let length = value.len();
        if length > STRING_BYTES_MAX {
            return Err(EncodeError::TooLong { field, length });
        }
        if flexible {
            self.uvarint(length as u32 + 1);
        } else {
            self.int16(length as i16);
        }
        self.tail.extend_from_slice(value.as_bytes());
        Ok(())
    }

    pub fn nullable_string(
        &mut self,
        field: &'static str,
        value: &Option<Str>,
        flexible: bool,
        null_ok: bool,
    ) -> Result<()> {
        match value {
            Some(value) => self.string(field, value, flexible)?,
            None if !null_ok => return Err(EncodeError::Null { field }),
            None if flexible => self.uvarint(0),
            None => self.int16(-1),
        }
        Ok(())
    }

    /// A string that says something to a reader and may be cut: see [`crate::sentence`].
    pub fn sentence(&mut self, field: &'static str, value: &Str, flexible: bool) -> Result<()> {
        if value.len() <= SENTENCE_BYTES_MAX {
            return self.string(field, value, flexible);
        }
        self.string(field, &Str::from(&*sentence(value.as_str())), flexible)
    }

    pub fn nullable_sentence(
        &mut self,
        field: &'static str,
        value: &Option<Str>,
        flexible: bool,
        null_ok: bool,
    ) -> Result<()> {
        match value {
            Some(value) => self.sentence(field, value, flexible),
            None => self.nullable_string(field, value, flexible, null_ok),
        }
    }

    pub fn bytes(&mut self, field: &'static str, value: &Bytes, flexible: bool) -> Result<()> {
        self.length(field, flexible, Some(value.len()))?;
        self.raw(value);
        Ok(())
    }

    pub fn nullable_bytes(
        &mut self,
        field: &'static str,
        value: &Option<Bytes>,
        flexible: bool,
        null_ok: bool,
    ) -> Result<()> {
        match value {
            Some(value) => self.bytes(field, value, flexible),
            None if null_ok => self.length(field, flexible, None),
            None => Err(EncodeError::Null { field }),
        }
    }

    pub fn array<T>(
        &mut self,
        field: &'static str,
        elements: &[T],
        flexible: bool,
        mut write: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        self.length(field, flexible, Some(elements.len()))?;
        elements.iter().try_for_each(|element| write(self, element))
    }

    pub fn nullable_array<T>(
        &mut self,
        field: &'static str,
        elements: &Option<Vec<T>>,
        flexible: bool,
        null_ok: bool,
        write: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        match elements {
            Some(elements) => self.array(field, elements, flexible, write),
            None if null_ok => self.length(field, flexible, None),
            None => Err(EncodeError::Null { field }),
        }
    }

    /// The tagged fields of a struct that has none set but those that it does not know.
    pub fn unknown_tagged_fields(&mut self, unknown: &TaggedFields) -> Result<()> {
        if unknown.is_empty() {
            self.uvarint(0);
            return Ok(());
        }
        self.tagged_fields(0, unknown, |_| Ok(()))
    }

    /// Opens a struct's tagged fields: `known` of its own are set; `write` puts them by rising tag with
    /// [`TaggedWriter::field`].
    pub fn tagged_fields(
        &mut self,
        known: usize,
        unknown: &TaggedFields,
        write: impl FnOnce(&mut TaggedWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let unknown = unknown.as_slice();
        self.uvarint((known + unknown.len()) as u32);
        let mut tagged = TaggedWriter { writer: self, unknown, written: 0, last: None };
        write(&mut tagged)?;
        tagged.unknown_below(u64::from(u32::MAX) + 1)?;
        debug_assert_eq!(tagged.written, known, "as many fields were announced as written");
        Ok(())
    }

    fn mark(&self) -> Mark {
        Mark { segments: self.segments.len(), tail: self.tail.len(), len: self.len() }
    }

    /// Puts the length of what was written since `mark` in front of it.
    fn put_length_at(&mut self, mark: Mark) {
        let (prefix, prefix_len) = uvarint_bytes((self.len() - mark.len) as u32);
        let prefix = &prefix[..prefix_len];
        if self.segments.len() == mark.segments {
            insert(&mut self.tail, mark.tail, prefix);
            return;
        }
        // The tail of that time was sealed on the way: its segment is cut in two around the length. If it was empty, it
        // left no segment of its own, and the length goes in front of the first that came.
        let mut pieces = Vec::with_capacity(3);
        if mark.tail > 0 {
            let sealed = &self.segments[mark.segments];
            let mut head = BytesMut::from(&sealed[..mark.tail]);
            head.extend_from_slice(prefix);
            pieces.push(head.freeze());
            if sealed.len() > mark.tail {
                pieces.push(sealed.slice(mark.tail..));
            }
            self.segments.splice(mark.segments..=mark.segments, pieces);
        } else {
            pieces.push(Bytes::copy_from_slice(prefix));
            self.segments.splice(mark.segments..mark.segments, pieces);
        }
        self.segments_len += prefix_len;
    }
}

/// Puts a struct's tagged fields in order, known and unknown.
#[derive(Debug)]
pub struct TaggedWriter<'a> {
    writer: &'a mut Writer,
    unknown: &'a [UnknownTaggedField],
    written: usize,
    last: Option<u32>,
}

impl TaggedWriter<'_> {
    /// One field that the schema knows.
    pub fn field(&mut self, tag: u32, write: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        self.unknown_below(u64::from(tag))?;
        self.note(tag)?;
        self.writer.uvarint(tag);
        let mark = self.writer.mark();
        write(self.writer)?;
        self.writer.put_length_at(mark);
        self.written += 1;
        Ok(())
    }

    fn unknown_below(&mut self, limit: u64) -> Result<()> {
        while let Some((first, rest)) = self.unknown.split_first().filter(|(f, _)| u64::from(f.tag) < limit) {
            self.note(first.tag)?;
            self.writer.uvarint(first.tag);
            self.writer.uvarint(first.data.len() as u32);
            self.writer.raw(&first.data);
            self.unknown = rest;
        }
        Ok(())
    }

    fn note(&mut self, tag: u32) -> Result<()> {
        if self.last.is_some_and(|last| last >= tag) {
            return Err(EncodeError::TagOrder { tag });
        }
        self.last = Some(tag);
        Ok(())
    }
}

fn uvarint_bytes(mut value: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut length = 0;
    while value >= 0x80 {
        bytes[length] = value as u8 | 0x80;
        length += 1;
        value >>= 7;
    }
    bytes[length] = value as u8;
    (bytes, length + 1)
}

fn insert(tail: &mut BytesMut, at: usize, prefix: &[u8]) {
    let end = tail.len();
    tail.extend_from_slice(prefix);
    tail.copy_within(at..end, at + prefix.len());
    tail[at..at + prefix.len()].copy_from_slice(prefix);
}

#[cfg(test)]
mod tests;
