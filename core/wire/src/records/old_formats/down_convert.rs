//! Stored batches as an old consumer must see them: Fetch 0 and 1 want messages of format 0, Fetch 2 and 3 of format 1.
//!
//! What the old formats cannot say is dropped, as Kafka dropped it: control batches, headers, producer fields. Records
//! below the offset that was asked for are dropped from uncompressed batches, because old clients do not skip them.
//!
//! Source: Kafka 3.9 `RecordsUtil.downConvert`, KIP-98, KIP-110.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use crate::records::old_formats::message_set::Message;
use crate::records::old_formats::message_set::write_message;
use crate::records::{Batch, BatchError, Codec, Compression, Entry, TimestampType, entries};

/// Why stored batches cannot be given to an old consumer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownConvertError {
    /// UNSUPPORTED_COMPRESSION_TYPE: the old formats do not know zstd.
    #[error("a zstd batch cannot be given to a consumer of message format {magic}")]
    Zstd { magic: i8 },
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// `batches` (a run as the log holds it) in the format `magic`, 0 or 1, from `first` on. A torn last batch is left out.
///
/// # Errors
/// A zstd batch; records that cannot be read.
pub fn down_convert(batches: Bytes, magic: i8, first: Offset) -> Result<Bytes, DownConvertError> {
    down_convert_within(batches, magic, first, usize::MAX)
}

/// As [`down_convert`], of the first batches alone once they have inflated to more than `inflated_max` bytes: the
/// consumer asks for the others next.
///
/// # Errors
/// As [`down_convert`].
pub fn down_convert_within(
    batches: Bytes,
    magic: i8,
    first: Offset,
    inflated_max: usize,
) -> Result<Bytes, DownConvertError> {
    assert!((0..=1).contains(&magic), "only formats 0 and 1 are older than what is stored");
    let mut out = Vec::with_capacity(batches.len());
    let mut inflated = 0;
    for entry in entries(batches) {
        match entry? {
            Entry::Message(bytes) => inflated += convert_message(&Message::parse(bytes)?, magic, &mut out)?,
            Entry::Batch(batch) if batch.header().attributes.is_control() => {}
            Entry::Batch(batch) => inflated += convert_batch(&batch, magic, first, &mut out)?,
        }
        if inflated > inflated_max && !out.is_empty() {
            break;
        }
    }
    Ok(Bytes::from(out))
}

/// Returns how many bytes its records are.
fn convert_batch(
    batch: &Batch,
    magic: i8,
    first: Offset,
    out: &mut Vec<u8>,
) -> Result<usize, DownConvertError> {
    let attributes = batch.header().attributes;
    let codec = attributes.codec()?;
    if codec == Codec::Zstd {
        return Err(DownConvertError::Zstd { magic });
    }
    let mut set = MessageSet::new(magic, codec, attributes.timestamp_type());
    let records = batch.records()?;
    for record in &records {
        let record = record?;
        if codec != Codec::None || record.offset >= first {
            set.push(record.offset, record.timestamp, record.key, record.value);
        }
    }
    set.finish(out)?;
    Ok(records.body().len())
}

/// A message that an old broker stored: as it is, unless the consumer is older still.
/// Returns how many bytes its messages become.
fn convert_message(message: &Message, magic: i8, out: &mut Vec<u8>) -> Result<usize, DownConvertError> {
    if message.magic <= magic {
        out.extend_from_slice(message.bytes());
        return Ok(message.bytes().len());
    }
    let mut set = MessageSet::new(magic, message.codec()?, message.timestamp_type);
    for inner in message.open()? {
        let inner = inner?;
        set.push(inner.offset, inner.timestamp, inner.key.as_deref(), inner.value.as_deref());
    }
    let inflated = set.body.len();
    set.finish(out)?;
    Ok(inflated)
}

/// Collects messages and then is a run of them, or one compressed set.
struct MessageSet {
    magic: i8,
    codec: Codec,
    timestamp_type: TimestampType,
    body: Vec<u8>,
    /// First and last offset.
    range: Option<(Offset, Offset)>,
    newest: TimestampMs,
}

impl MessageSet {
    fn new(magic: i8, codec: Codec, timestamp_type: TimestampType) -> Self {
        Self { magic, codec, timestamp_type, body: Vec::new(), range: None, newest: TimestampMs::NONE }
    }

    fn attributes(&self) -> i8 {
        // Format 0 has no timestamps, and so no timestamp type.
        if self.magic == 1 && self.timestamp_type == TimestampType::LogAppendTime { 0x08 } else { 0 }
    }

    fn push(&mut self, offset: Offset, timestamp: TimestampMs, key: Option<&[u8]>, value: Option<&[u8]>) {
        let (base, _) = self.range.unwrap_or((offset, offset));
        self.range = Some((base, offset));
        self.newest = self.newest.max(timestamp);
        let relative = self.magic == 1 && self.codec != Codec::None;
        let inner = if relative { Offset(offset.since(base)) } else { offset };
        let attributes = self.attributes();
        write_message(&mut self.body, self.magic, inner, attributes, timestamp, key, value);
    }

    fn finish(self, out: &mut Vec<u8>) -> Result<(), BatchError> {
        let Some((_, last)) = self.range else { return Ok(()) };
        if self.codec == Codec::None {
            out.extend_from_slice(&self.body);
            return Ok(());
        }
        let mut value = Vec::new();
        Compression::of(self.codec).deflate_for_magic(&self.body, self.magic, &mut value)?;
        let attributes = self.attributes() | self.codec.id() as i8;
        write_message(out, self.magic, last, attributes, self.newest, None, Some(&value));
        Ok(())
    }
}
