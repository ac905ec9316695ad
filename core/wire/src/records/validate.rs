//! What a producer sent: taken as it is, made over, or refused, before it gets its offsets.
//!
//! By default (`record.validation=header`) a batch is judged by its header: CRC, magic, one batch per partition, count
//! against last offset delta, newest timestamp, size, no control batch, a sequence where there is a producer; and by
//! the lengths of the records that lie open in it, so that a reader finds as many as it was promised (2 ns each,
//! measured). Records are decoded only where a rule must see them: a compacted topic's keys, another codec asked for by
//! the topic, a limit on old timestamps (the header names only the newest) or on single records in compressed batches,
//! a header that breaks a timestamp rule (the answer names the records), or `record.validation`: `structure` sees that
//! each record can be read, `full` all that Kafka sees. What that takes of a thread is bounded by [`AtOnce`].
//!
//! An accepted batch is not copied. The frame is shared by all partitions of the request, so the batch cannot be
//! numbered where it lies: its 61 header bytes are taken out ([`ReadyBatch`]), the records stay a slice of the frame,
//! and storage writes both with one vectored write. Copying the header costs 2 ns; copying 1 MiB of records would cost
//! as much as checking their CRC. LogAppendTime changes bytes under the CRC, which is then corrected from the header
//! alone.
//!
//! Order of checks and codes are Kafka's. Where this differs:
//! - In header mode the newest timestamp is believed, and so is the count of compressed records as long as so many
//!   could come out; Kafka inflates and counts, and repairs the timestamp.
//! - A stream that cannot be inflated, and a codec that does not exist, are INVALID_RECORD here and
//!   UNKNOWN_SERVER_ERROR there.
//! - Inflating stops at `compression::inflated_limit`.
//! - At most [`RECORD_ERRORS_MAX`] records are named in a refusal.
//!
//! Source: Kafka 4.x `LogValidator`, `UnifiedLog.analyzeAndValidateRecords`, `ProduceRequest.validateRecords`; 3.9's
//! for message formats 0 and 1; KIP-467.

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, Offset, TimestampMs};
use bytes::Bytes;

use super::header::{HEADER_BYTES, MAGIC_AT, number};
use super::{Batch, BatchError, BatchHeader, Codec, Compression, Entry, Message, TimestampType, entries};

mod convert;
mod records;

/// The most records that one refusal names.
pub const RECORD_ERRORS_MAX: usize = 1000;

/// The default of `max.decompressed.message.bytes`: the largest array that Java makes, which no batch can exceed.
pub const RECORD_BYTES_UNLIMITED: usize = 2_147_483_639;

/// The source of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchOrigin {
    #[default]
    Client,
    /// A coordinator of this broker: its batches may hold control records, and their counts are believed.
    Coordinator,
}

/// `record.validation`: how much of a batch is checked when no other rule requires more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordValidation {
    /// The header, and the number of uncompressed records. Compressed records and the insides of records are
    /// not checked.
    #[default]
    Header,
    /// The batch is decompressed and each record parsed, so that consumers can read it. Timestamps are not
    /// checked.
    Structure,
    /// All that Kafka looks at.
    Full,
}

/// How much a thread does at once on which others wait. What takes more is [`Verdict::TooMuch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    /// Bytes of records that are inflated, or walked.
    pub read_bytes_max: usize,
    /// Bytes of records that are written into a new batch.
    pub rebuilt_bytes_max: usize,
}

impl AtOnce {
    /// For a thread that nothing waits for: only [`super::compression::inflated_limit`] counts.
    pub const UNLIMITED: Self = Self { read_bytes_max: usize::MAX, rebuilt_bytes_max: usize::MAX };
}

/// What [`validate_at_once`] found out.
#[derive(Debug)]
pub enum Verdict {
    /// As [`validate_produce`].
    Taken(Option<Validated>),
    Refused(Refusal),
    /// Not decided, and nothing was done that counts: [`validate_produce`] decides, on another thread.
    TooMuch,
}

/// Why no batch comes out.
#[derive(Debug)]
enum Stop {
    Refused(Refusal),
    TooMuch,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What the topic and the request demand of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The Produce request's version. From 3 on, one v2 batch per partition; from 7 on, zstd.
    pub produce_version: i16,
    pub origin: BatchOrigin,
    /// The wall clock: LogAppendTime's date, and what timestamps are measured against.
    pub now: TimestampMs,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`; `i64::MAX` is no limit.
    pub timestamp_before_max: DurationMs,
    /// `message.timestamp.after.max.ms`; `i64::MAX` is no limit.
    pub timestamp_after_max: DurationMs,
    /// `max.message.bytes`.
    pub message_bytes_max: usize,
    /// `max.decompressed.message.bytes`: the largest single record that may lie in a compressed batch. Anything below
    /// [`RECORD_BYTES_UNLIMITED`] makes compressed batches be inflated and walked.
    pub record_bytes_max: usize,
    /// `segment.bytes`.
    pub segment_bytes: usize,
    /// `compression.type`; `None` is `producer`: as it came.
    pub compression: Option<Compression>,
    /// Whether `cleanup.policy` holds `compact`: every record needs a key.
    pub is_compacted: bool,
    pub validation: RecordValidation,
}

impl Default for Rules {
    /// Kafka 4's defaults, for the newest Produce.
    fn default() -> Self {
        Self {
            produce_version: i16::MAX,
            origin: BatchOrigin::Client,
            now: TimestampMs(0),
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max: DurationMs(i64::MAX),
            timestamp_after_max: DurationMs(3_600_000),
            message_bytes_max: 1_048_588,
            record_bytes_max: RECORD_BYTES_UNLIMITED,
            segment_bytes: 1 << 30,
            compression: None,
            is_compacted: false,
            validation: RecordValidation::Header,
        }
    }
}

/// One record that a refusal names (KIP-467).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Its place in the batch, from 0.
    pub index: i32,
    pub message: String,
}

/// Why a batch was not taken. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
    /// The records at fault, where single records are.
    pub record_errors: Vec<RecordError>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), record_errors: Vec::new() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRecord, message)
    }

    fn corrupt(error: &BatchError) -> Self {
        Self::new(ErrorCode::CorruptMessage, error.to_string())
    }
}

/// A batch that may be appended: it lacks nothing but its offset and leader epoch.
#[derive(Debug, Clone)]
pub struct ReadyBatch {
    header: BatchHeader,
    body: Bytes,
}

impl ReadyBatch {
    /// Takes a batch that the broker made itself.
    ///
    /// # Errors
    /// `bytes` are not exactly one batch.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, BatchError> {
        let batch = Batch::new(bytes)?;
        Ok(Self { header: *batch.header(), body: batch.body() })
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records, compressed as they will be stored: what follows the header.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Writes base offset and leader epoch into the header.
    pub fn number(&mut self, base: Offset, epoch: LeaderEpoch) {
        self.header = number(&self.header, self.body.len(), base, epoch, None);
    }

    /// The header's bytes: what precedes the body in the log.
    pub fn raw_header(&self) -> [u8; HEADER_BYTES] {
        self.header.to_raw()
    }

    /// Bytes of the whole batch.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// The whole batch in one piece: copies the records.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(self.size_bytes());
        bytes.extend_from_slice(&self.raw_header());
        bytes.extend_from_slice(&self.body);
        Bytes::from(bytes)
    }
}

/// A produced batch, ready to be numbered.
#[derive(Debug, Clone)]
pub struct Validated {
    pub batch: ReadyBatch,
    /// Whether records were decoded and made into a new batch (another codec, an older format): for the metrics.
    pub rebuilt: bool,
    /// Whether records were looked at one by one: what takes time.
    pub walked: bool,
}

/// Judges what one partition of a Produce request carries.
///
/// `None`: there is nothing to append, which only versions below 3 may send.
///
/// # Errors
/// [`Refusal`], with Kafka's code. The records are as they were.
pub fn validate_produce(records: Bytes, rules: &Rules) -> Result<Option<Validated>, Refusal> {
    match validate_at_once(records, rules, AtOnce::UNLIMITED) {
        Verdict::Taken(validated) => Ok(validated),
        Verdict::Refused(refusal) => Err(refusal),
        Verdict::TooMuch => unreachable!("invariant: nothing is too much without a limit"),
    }
}

/// As [`validate_produce`], unless that takes more than `at_once`.
pub fn validate_at_once(records: Bytes, rules: &Rules, at_once: AtOnce) -> Verdict {
    match validate(records, rules, at_once) {
        Ok(validated) => Verdict::Taken(validated),
        Err(Stop::Refused(refusal)) => Verdict::Refused(refusal),
        Err(Stop::TooMuch) => Verdict::TooMuch,
    }
}

fn validate(records: Bytes, rules: &Rules, at_once: AtOnce) -> Result<Option<Validated>, Stop> {
    let validated = if rules.origin == BatchOrigin::Client && rules.produce_version >= 3 {
        let batch = only_batch(records, rules.produce_version)?;
        check_batch(&batch, rules)?;
        records::validate_batch(batch, rules, at_once)?
    } else {
        match check_entries(&records, rules)? {
            None => return Ok(None),
            Some(Entry::Message(_)) => convert::convert(records, rules, at_once)?,
            Some(Entry::Batch(_)) if entries(records.clone()).nth(1).is_some() => {
                return Err(more_than_one().into());
            }
            Some(Entry::Batch(batch)) => records::validate_batch(batch, rules, at_once)?,
        }
    };
    let size = validated.batch.size_bytes();
    if validated.rebuilt {
        check_size(size, rules)?;
    }
    if size > rules.segment_bytes {
        let message = format!("batch of {size} bytes exceeds segment.bytes {}", rules.segment_bytes);
        return Err(Refusal::new(ErrorCode::RecordListTooLarge, message).into());
    }
    Ok(Some(validated))
}

/// From version 3 on: exactly one batch, of format 2, and zstd only from version 7 on.
fn only_batch(records: Bytes, version: i16) -> Result<Batch, Refusal> {
    let mut walk = entries(records);
    let Some(first) = walk.next() else {
        return Err(Refusal::invalid("no record batch for the partition"));
    };
    let Entry::Batch(batch) = first.map_err(|error| Refusal::corrupt(&error))? else {
        return Err(Refusal::invalid(format!(
            "produce version {version} takes record batches of magic 2 only"
        )));
    };
    if version < 7 && batch.header().attributes.codec() == Ok(Codec::Zstd) {
        let message = format!("produce version {version} does not take zstd");
        return Err(Refusal::new(ErrorCode::UnsupportedCompressionType, message));
    }
    match walk.next() {
        None => Ok(batch),
        Some(Ok(_)) => Err(more_than_one()),
        Some(Err(error)) => Err(Refusal::corrupt(&error)),
    }
}

fn more_than_one() -> Refusal {
    Refusal::invalid("more than one batch for one partition")
}

/// Checks offset, size and CRC of every entry; the first one comes back. Bytes after the last whole entry are not
/// looked at, as in Kafka.
fn check_entries(records: &Bytes, rules: &Rules) -> Result<Option<Entry>, Refusal> {
    let mut first = None;
    for entry in entries(records.clone()) {
        let entry = entry.map_err(|error| Refusal::corrupt(&error))?;
        match &entry {
            Entry::Batch(batch) => check_batch(batch, rules)?,
            Entry::Message(bytes) => {
                check_size(bytes.len(), rules)?;
                let message = Message::parse(bytes.clone()).map_err(|error| Refusal::corrupt(&error))?;
                message.check_crc().map_err(|error| Refusal::corrupt(&error))?;
            }
        }
        first.get_or_insert(entry);
    }
    Ok(first)
}

/// Base offset, size and CRC of one batch, in this order.
fn check_batch(batch: &Batch, rules: &Rules) -> Result<(), Refusal> {
    let base = batch.header().base_offset;
    if rules.origin == BatchOrigin::Client && base != Offset::ZERO {
        return Err(Refusal::invalid(format!("base offset of a produced batch is {base}, not 0")));
    }
    check_size(batch.bytes().len(), rules)?;
    batch.check_crc().map_err(|error| Refusal::corrupt(&error))
}

fn check_size(size: usize, rules: &Rules) -> Result<(), Refusal> {
    if size <= rules.message_bytes_max {
        return Ok(());
    }
    let message = format!("batch of {size} bytes exceeds max.message.bytes {}", rules.message_bytes_max);
    Err(Refusal::new(ErrorCode::MessageTooLarge, message))
}

/// The magic of a walked entry.
fn magic_of(entry: &Entry) -> i8 {
    match entry {
        Entry::Batch(_) => 2,
        Entry::Message(bytes) => bytes[MAGIC_AT] as i8,
    }
}

/// Collects the errors of single records and returns them with Kafka's code.
#[derive(Default)]
struct RecordFaults {
    errors: Vec<RecordError>,
    found: usize,
    any_timestamp: bool,
}

impl RecordFaults {
    fn add(&mut self, index: usize, code: ErrorCode, message: String) {
        self.found += 1;
        self.any_timestamp |= code == ErrorCode::InvalidTimestamp;
        if self.errors.len() < RECORD_ERRORS_MAX {
            self.errors.push(RecordError { index: index as i32, message });
        }
    }

    fn finish(self) -> Result<(), Refusal> {
        if self.found == 0 {
            return Ok(());
        }
        // Kafka's words: clients show them, and its tests compare them.
        let (code, message) = if self.any_timestamp {
            let message = "One or more records have been rejected due to invalid timestamp".to_owned();
            (ErrorCode::InvalidTimestamp, message)
        } else {
            let message = format!("{} records were rejected for their key or format", self.found);
            (ErrorCode::InvalidRecord, message)
        };
        Err(Refusal { code, message, record_errors: self.errors })
    }
}

/// What the rules say to one record's key and timestamp.
fn check_record(
    faults: &mut RecordFaults,
    index: usize,
    has_key: bool,
    timestamp: TimestampMs,
    batch_type: TimestampType,
    rules: &Rules,
) {
    if rules.is_compacted && !has_key {
        let message = "a compacted topic takes no record without a key".to_owned();
        return faults.add(index, ErrorCode::InvalidRecord, message);
    }
    if rules.timestamp_type == TimestampType::CreateTime && timestamp != TimestampMs::NONE {
        let oldest = rules.now.0.saturating_sub(rules.timestamp_before_max.0);
        let newest = rules.now.0.saturating_add(rules.timestamp_after_max.0);
        if timestamp.0 < oldest || timestamp.0 > newest {
            let message = format!("timestamp {} is outside [{oldest}, {newest}]", timestamp.0);
            faults.add(index, ErrorCode::InvalidTimestamp, message);
        }
    } else if batch_type == TimestampType::LogAppendTime {
        let message = "a producer may not set the timestamp type LogAppendTime".to_owned();
        faults.add(index, ErrorCode::InvalidTimestamp, message);
    }
}
