//! One record of a v2 batch, borrowed from the batch's (inflated) bytes, and the walk over all of them.
//!
//! No count and no length is trusted: every field is checked against the bytes that remain, nothing is reserved on
//! a length's word, and a walk that ends with a wrong count or with bytes left over ends with an error.
//!
//! Source: Kafka `DefaultRecord`, `DefaultRecordBatch.RecordIterator`.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use super::{BatchError, BatchHeader, TimestampType, varint};

/// A record header: a key and perhaps a value.
pub type HeaderRef<'a> = (&'a [u8], Option<&'a [u8]>);

/// One record, as slices of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    pub attributes: i8,
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// Offset − the batch's base offset.
    pub offset_delta: i32,
    /// Timestamp − the batch's base timestamp, as it stands in the record.
    pub timestamp_delta: i64,
    /// Bytes that the record takes, without its length prefix.
    pub body_bytes: usize,
    header_count: i32,
    headers: &'a [u8],
}

impl<'a> RecordRef<'a> {
    /// The headers, in order. They were walked when the record was read, so this cannot fail.
    pub fn headers(&self) -> impl Iterator<Item = HeaderRef<'a>> + use<'a> {
        let mut rest = self.headers;
        (0..self.header_count).map_while(move |_| read_header(&mut rest))
    }

    pub fn header_count(&self) -> usize {
        self.header_count as usize
    }
}

/// The records of one batch, inflated if they were compressed.
#[derive(Debug, Clone)]
pub struct Records {
    pub(super) header: BatchHeader,
    pub(super) body: Bytes,
}

impl Records {
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records' bytes, inflated.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { header: &self.header, rest: &self.body, read: 0, done: false }
    }

    /// `slice`, a part of a record of these, without copying it.
    pub fn share(&self, slice: &[u8]) -> Bytes {
        self.body.slice_ref(slice)
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Result<RecordRef<'a>, BatchError>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

/// Walks a batch's records. The first error is the last item.
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    header: &'a BatchHeader,
    rest: &'a [u8],
    read: usize,
    done: bool,
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<RecordRef<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let counted = self.header.record_count;
        if counted < 0 || self.read >= counted as usize {
            self.done = true;
            let agrees = counted >= 0 && self.rest.is_empty();
            return (!agrees).then_some(Err(BatchError::Count { counted, found: self.read }));
        }
        match read_record(&mut self.rest, self.header) {
            Ok(record) => {
                self.read += 1;
                Some(Ok(record))
            }
            Err(what) => {
                self.done = true;
                Some(Err(BatchError::Record { index: self.read, what }))
            }
        }
    }
}

fn read_record<'a>(rest: &mut &'a [u8], header: &BatchHeader) -> Result<RecordRef<'a>, &'static str> {
    let length = varint::read_i32(rest).ok_or("length does not end")?;
    let length = usize::try_from(length).map_err(|_| "length is negative")?;
    let mut body = take(rest, length).ok_or("longer than what remains")?;
    let (&attributes, tail) = body.split_first().ok_or("has no attributes")?;
    body = tail;
    let timestamp_delta = varint::read_i64(&mut body).ok_or("timestamp does not end")?;
    let offset_delta = varint::read_i32(&mut body).ok_or("offset does not end")?;
    let key = read_nullable(&mut body).ok_or("key is longer than the record")?;
    let value = read_nullable(&mut body).ok_or("value is longer than the record")?;
    let header_count = varint::read_i32(&mut body).ok_or("header count does not end")?;
    if header_count < 0 {
        return Err("header count is negative");
    }
    // A header takes two bytes at the least, so a count beyond half of what remains fails on its first missing one.
    let headers = body;
    for _ in 0..header_count {
        read_header(&mut body).ok_or("header is longer than the record")?;
    }
    if !body.is_empty() {
        return Err("length does not match its fields");
    }
    let timestamp = match header.attributes.timestamp_type() {
        TimestampType::LogAppendTime => header.max_timestamp,
        TimestampType::CreateTime => TimestampMs(header.base_timestamp.0.wrapping_add(timestamp_delta)),
    };
    Ok(RecordRef {
        attributes: attributes as i8,
        offset: Offset(header.base_offset.get().wrapping_add(i64::from(offset_delta))),
        timestamp,
        key,
        value,
        offset_delta,
        timestamp_delta,
        body_bytes: length,
        header_count,
        headers,
    })
}

/// The least that a record takes: attributes, four numbers of a byte each and a header count, and their length in
/// front.
pub(super) const RECORD_BYTES_MIN: usize = 7;

/// Whether `body` is exactly `count` records, judged by their lengths alone.
///
/// What this costs (about 2 ns a record) buys that no reader runs past the batch or finds fewer records than offsets.
pub(super) fn check_framing(body: &[u8], count: i32) -> Result<(), BatchError> {
    let mut rest = body;
    let counted = count;
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let wrong = |what| BatchError::Record { index, what };
        let length = varint::read_i32(&mut rest).ok_or(wrong("length does not end"))?;
        let length = usize::try_from(length).map_err(|_| wrong("length is negative"))?;
        if length < RECORD_BYTES_MIN - 1 {
            return Err(wrong("is too short"));
        }
        take(&mut rest, length).ok_or(wrong("longer than what remains"))?;
    }
    // More than was counted; how many more does not matter.
    let found = usize::try_from(counted).unwrap_or(0) + 1;
    if rest.is_empty() { Ok(()) } else { Err(BatchError::Count { counted, found }) }
}

/// Whether `body` (inflated) is exactly the records that `header` counts, each of which can be read: every field within
/// its record, no byte left over. Returns whether their offsets count up from the batch's own, one by one.
pub(super) fn check_structure(body: &[u8], header: &BatchHeader) -> Result<bool, BatchError> {
    let mut rest = body;
    let counted = header.record_count;
    let mut deltas_count_up = true;
    for index in 0..usize::try_from(counted).unwrap_or(0) {
        let record = read_record(&mut rest, header).map_err(|what| BatchError::Record { index, what })?;
        deltas_count_up &= record.offset_delta as usize == index;
    }
    let found = usize::try_from(counted).unwrap_or(0) + 1;
    if rest.is_empty() { Ok(deltas_count_up) } else { Err(BatchError::Count { counted, found }) }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// A length and that many bytes; a negative length is null. `None` where they are not there.
fn read_nullable<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match usize::try_from(varint::read_i32(rest)?) {
        Ok(length) => take(rest, length).map(Some),
        Err(_) => Some(None),
    }
}

fn read_header<'a>(rest: &mut &'a [u8]) -> Option<HeaderRef<'a>> {
    let key = read_nullable(rest)??;
    Some((key, read_nullable(rest)?))
}

/// Appends one record's bytes.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[HeaderRef<'_>],
) {
    varint::write_i32(out, body_size(timestamp_delta, offset_delta, key, value, headers) as i32);
    out.push(0);
    varint::write_i64(out, timestamp_delta);
    varint::write_i32(out, offset_delta);
    write_nullable(out, key);
    write_nullable(out, value);
    varint::write_i32(out, headers.len() as i32);
    for (key, value) in headers {
        write_nullable(out, Some(key));
        write_nullable(out, *value);
    }
}

/// Bytes that [`write_record`] appends.
pub(super) fn record_size(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[HeaderRef<'_>],
) -> usize {
    let body = body_size(timestamp_delta, offset_delta, key, value, headers);
    varint::size_i32(body as i32) + body
}

fn body_size(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[HeaderRef<'_>],
) -> usize {
    let headers_size: usize =
        headers.iter().map(|(key, value)| nullable_size(Some(key)) + nullable_size(*value)).sum();
    1 + varint::size_i64(timestamp_delta)
        + varint::size_i32(offset_delta)
        + nullable_size(key)
        + nullable_size(value)
        + varint::size_i32(headers.len() as i32)
        + headers_size
}

fn nullable_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size_i32(bytes.len() as i32) + bytes.len())
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::write_i32(out, -1),
        Some(bytes) => {
            varint::write_i32(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
