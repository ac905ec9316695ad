//! Messages of the formats 0 and 1, which producers and consumers older than Kafka 0.11 speak.
//!
//! ```text
//! offset i64 | size i32 | CRC-32 u32 of all that follows | magic i8 | attributes i8 | [timestamp i64: format 1]
//! | key length i32, key | value length i32, value
//! ```
//! A compressed set is one message whose value is the deflated run of inner messages. In format 1 the inner offsets
//! count from 0 and the wrapper bears the last one's offset; in format 0 they stand as they are.
//!
//! Nothing of this is ever stored: what comes in is converted to v2 (`validate`), what old consumers ask for is
//! converted back ([`down_convert`]). It does not number or check anything.
//!
//! Bounded like everything here: inner messages are walked inside the inflated bytes, never collected.
//!
//! Source: Kafka 3.9 `AbstractLegacyRecordBatch`, `LegacyRecord`, `RecordsUtil`; KIP-31, KIP-32.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use crate::records::compression::{inflate_for_magic, inflated_limit};
use crate::records::header::{LOG_OVERHEAD_BYTES, MAGIC_AT};
use crate::records::{BatchError, Codec, TimestampType, crc32};

const CRC_AT: usize = 12;
const ATTRIBUTES_AT: usize = 17;
/// The least that a message's size may say: CRC, magic, attributes and two lengths.
const MESSAGE_BYTES_MIN: usize = 14;

/// One message of format 0 or 1, or a compressed set of them.
#[derive(Debug, Clone)]
pub struct Message {
    pub offset: Offset,
    pub magic: i8,
    pub attributes: i8,
    /// −1 in format 0, which has none.
    pub timestamp: TimestampMs,
    /// Always [`TimestampType::CreateTime`] in format 0.
    pub timestamp_type: TimestampType,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    bytes: Bytes,
}

impl Message {
    /// Takes `bytes`, exactly one message. Its CRC is not checked.
    ///
    /// # Errors
    /// Another magic than 0 and 1, or lengths that do not fit.
    pub fn parse(bytes: Bytes) -> Result<Self, BatchError> {
        let Some(&magic) = bytes.get(MAGIC_AT) else {
            return Err(BatchError::Short { have: bytes.len(), need: MAGIC_AT + 1 });
        };
        let magic = magic as i8;
        if !(0..=1).contains(&magic) {
            return Err(BatchError::Magic { magic });
        }
        let mut rest = bytes.get(ATTRIBUTES_AT..).unwrap_or_default();
        Self::parse_fields(&bytes, magic, &mut rest)
            .ok_or(BatchError::Record { index: 0, what: "fields of an old message do not fit its size" })
    }

    fn parse_fields(bytes: &Bytes, magic: i8, rest: &mut &[u8]) -> Option<Self> {
        let attributes = take::<1>(rest)?[0] as i8;
        let timestamp = if magic == 1 { i64::from_be_bytes(*take::<8>(rest)?) } else { -1 };
        let key = read_nullable(rest)?.map(|key| bytes.slice_ref(key));
        let value = read_nullable(rest)?.map(|value| bytes.slice_ref(value));
        let timestamp_type = if magic == 1 && attributes & 0x08 != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        };
        Some(Self {
            offset: Offset(i64::from_be_bytes(*bytes.first_chunk()?)),
            magic,
            attributes,
            timestamp: TimestampMs(timestamp),
            timestamp_type,
            key,
            value,
            bytes: bytes.clone(),
        })
    }

    /// The whole message, offset and size included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// # Errors
    /// [`BatchError::Crc`] where the stored CRC is not that of the bytes.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let stored = self.bytes[CRC_AT..CRC_AT + 4].iter().fold(0, |crc, &byte| (crc << 8) | u32::from(byte));
        let computed = crc32(&self.bytes[MAGIC_AT..]);
        if stored == computed { Ok(()) } else { Err(BatchError::Crc { stored, computed }) }
    }

    /// # Errors
    /// [`BatchError::Codec`] for a number that means nothing, zstd's included: the old formats do not know it.
    pub fn codec(&self) -> Result<Codec, BatchError> {
        let id = i16::from(self.attributes & 0x07);
        match Codec::from_id(id) {
            Some(Codec::Zstd) | None => Err(BatchError::Codec { id }),
            Some(codec) => Ok(codec),
        }
    }

    /// The messages in it: itself if it is not compressed, else the inner ones with their true offsets and timestamps.
    ///
    /// # Errors
    /// A wrapper without a value or without a message in it, a stream that its codec refuses or that inflates too far,
    /// a wrapper's offset that lies before its inner ones.
    pub fn open(&self) -> Result<Messages, BatchError> {
        self.open_within(usize::MAX)
    }

    /// As [`Self::open`], inflating no more than `inflated_max` bytes: [`BatchError::TooLarge`] beyond.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(&self, inflated_max: usize) -> Result<Messages, BatchError> {
        let codec = self.codec()?;
        if codec == Codec::None {
            return Ok(Messages { rest: self.bytes.clone(), base: 0, wrapper: None });
        }
        let refuse = |what| BatchError::Record { index: 0, what };
        let value = self.value.clone().ok_or_else(|| refuse("a compressed set has no value"))?;
        let limit = inflated_limit(value.len()).min(inflated_max);
        let rest = inflate_for_magic(codec, value, self.magic, limit)?;
        let last = last_offset(&rest)?.ok_or_else(|| refuse("a compressed set has no message in it"))?;
        let base = match (self.magic, self.offset.get()) {
            // Some librdkafka versions leave the wrapper's offset at 0: Kafka takes the inner ones as they are.
            (0, _) | (_, 0) => 0,
            (_, wrapper) if wrapper < last => {
                return Err(refuse("a compressed set's offset lies before its messages"));
            }
            (_, wrapper) => wrapper.wrapping_sub(last),
        };
        Ok(Messages { rest, base, wrapper: Some((self.timestamp, self.timestamp_type)) })
    }
}

/// Walks the messages of one wrapper. The first error is the last item.
#[derive(Debug, Clone)]
pub struct Messages {
    rest: Bytes,
    base: i64,
    /// The timestamp type and timestamp of the wrapper.
    wrapper: Option<(TimestampMs, TimestampType)>,
}

impl Messages {
    fn step(&mut self) -> Result<Option<Message>, BatchError> {
        let Some(bytes) = split_entry(&mut self.rest)? else { return Ok(None) };
        let mut message = Message::parse(bytes)?;
        let Some((timestamp, timestamp_type)) = self.wrapper else { return Ok(Some(message)) };
        if message.attributes & 0x07 != 0 {
            return Err(BatchError::Record { index: 0, what: "a compressed message lies inside another" });
        }
        message.offset = Offset(self.base.wrapping_add(message.offset.get()));
        if message.magic == 1 {
            message.timestamp_type = timestamp_type;
            if timestamp_type == TimestampType::LogAppendTime {
                message.timestamp = timestamp;
            }
        }
        Ok(Some(message))
    }
}

impl Iterator for Messages {
    type Item = Result<Message, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.rest = Bytes::new();
        }
        step.transpose()
    }
}

/// Takes the next message's bytes off the front; `None` at the end and before a message that is not all there.
fn split_entry(rest: &mut Bytes) -> Result<Option<Bytes>, BatchError> {
    let Some(head) = rest.first_chunk::<LOG_OVERHEAD_BYTES>() else { return Ok(None) };
    let length = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let size = usize::try_from(length).ok().filter(|&size| size >= MESSAGE_BYTES_MIN);
    let size = LOG_OVERHEAD_BYTES + size.ok_or(BatchError::Length { length })?;
    Ok((size <= rest.len()).then(|| rest.split_to(size)))
}

/// The offset that the last whole message of a run bears.
fn last_offset(run: &Bytes) -> Result<Option<i64>, BatchError> {
    let mut rest = run.clone();
    let mut last = None;
    while let Some(entry) = split_entry(&mut rest)? {
        last = entry.first_chunk().map(|offset| i64::from_be_bytes(*offset));
    }
    Ok(last)
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(taken)
}

/// A length and that many bytes; a negative length is null. `None` where they are not there.
fn read_nullable<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = i32::from_be_bytes(*take::<4>(rest)?);
    let Ok(length) = usize::try_from(length) else { return Some(None) };
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(Some(taken))
}

/// Appends one message.
pub(crate) fn write_message(
    out: &mut Vec<u8>,
    magic: i8,
    offset: Offset,
    attributes: i8,
    timestamp: TimestampMs,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) {
    let at = out.len();
    out.extend_from_slice(&offset.get().to_be_bytes());
    // Size and CRC, known at the end.
    out.extend_from_slice(&[0; 8]);
    out.push(magic as u8);
    out.push(attributes as u8);
    if magic == 1 {
        out.extend_from_slice(&timestamp.0.to_be_bytes());
    }
    for field in [key, value] {
        out.extend_from_slice(&field.map_or(-1, |field| field.len() as i32).to_be_bytes());
        out.extend_from_slice(field.unwrap_or_default());
    }
    let size = (out.len() - at - LOG_OVERHEAD_BYTES) as i32;
    out[at + 8..at + LOG_OVERHEAD_BYTES].copy_from_slice(&size.to_be_bytes());
    let crc = crc32(&out[at + MAGIC_AT..]);
    out[at + CRC_AT..at + MAGIC_AT].copy_from_slice(&crc.to_be_bytes());
}
