//! A v2 batch under the rules: by its header if that is enough, else record by record.

use barnabas_base::{DurationMs, ErrorCode, TimestampMs};

use super::{
    AtOnce, BatchOrigin, RECORD_BYTES_UNLIMITED, ReadyBatch, RecordFaults, RecordValidation, Refusal, Rules,
    Stop, Validated, check_record, check_size,
};
use crate::records::compression::inflated_limit;
use crate::records::record::{RECORD_BYTES_MIN, check_framing, check_structure};
use crate::records::{
    Attributes, Batch, BatchBuilder, BatchError, BatchHeader, BatchOptions, Codec, Compression, HeaderRef,
    Records, TimestampType,
};

/// Judges one v2 batch whose CRC and size are right.
pub(super) fn validate_batch(batch: Batch, rules: &Rules, at_once: AtOnce) -> Result<Validated, Stop> {
    let header = *batch.header();
    if rules.origin == BatchOrigin::Client {
        check_header(&header)?;
    }
    let source = header.attributes.codec().map_err(|error| Refusal::invalid(error.to_string()))?;
    let target = target_compression(source, header.attributes, rules);
    if target.codec == source && !must_see_records(&header, rules) {
        if rules.validation == RecordValidation::Structure && rules.origin == BatchOrigin::Client {
            let records = open(&batch, at_once, usize::MAX)?;
            if !check_structure(records.body(), &header)
                .map_err(|error| Refusal::invalid(error.to_string()))?
            {
                return validate_records(&batch, source, target, rules, at_once);
            }
        }
        let (header, body) = batch.into_parts();
        let walked = rules.validation != RecordValidation::Header;
        if rules.origin == BatchOrigin::Client && rules.validation == RecordValidation::Header {
            check_count(&header, source, &body)?;
        }
        let mut ready = ReadyBatch { header, body };
        if rules.timestamp_type == TimestampType::LogAppendTime {
            ready.header.set_max_timestamp(TimestampType::LogAppendTime, rules.now, ready.body.len());
        }
        return Ok(Validated { batch: ready, rebuilt: false, walked });
    }
    validate_records(&batch, source, target, rules, at_once)
}

/// The batch's records, unless to read them is too much at once.
fn open(batch: &Batch, at_once: AtOnce, plain_max: usize) -> Result<Records, Stop> {
    let body_bytes = batch.body().len();
    if body_bytes > at_once.read_bytes_max {
        return Err(Stop::TooMuch);
    }
    let records = batch.records_within(at_once.read_bytes_max.min(plain_max));
    records.map_err(|error| match error {
        BatchError::TooLarge { limit } => beyond(limit, at_once.read_bytes_max, plain_max, error),
        error => Stop::Refused(Refusal::invalid(error.to_string())),
    })
}

/// What it means that a batch inflates beyond `limit`.
pub(super) fn beyond(limit: usize, at_once_max: usize, plain_max: usize, error: BatchError) -> Stop {
    if limit == at_once_max {
        return Stop::TooMuch;
    }
    let code = if limit == plain_max { ErrorCode::MessageTooLarge } else { ErrorCode::InvalidRecord };
    Stop::Refused(Refusal::new(code, error.to_string()))
}

/// The most that is inflated of a batch which is to be stored uncompressed: no records of so many bytes make a batch
/// that `max.message.bytes` allows, as the smallest message of an old format is four times the smallest record.
pub(super) fn plain_max(is_inflated: bool, rules: &Rules) -> usize {
    if is_inflated { rules.message_bytes_max.saturating_mul(8).saturating_add(1024) } else { usize::MAX }
}

/// Whether to compress this way takes longer than [`AtOnce`] foresees: zstd's higher levels write two megabytes a
/// second.
pub(super) fn is_slow(compression: Compression, at_once: AtOnce) -> bool {
    const ZSTD_LEVEL_MAX: i32 = 6;
    at_once != AtOnce::UNLIMITED
        && compression.codec == Codec::Zstd
        && compression.level.is_some_and(|level| level > ZSTD_LEVEL_MAX)
}

/// What a client's header may not say.
fn check_header(header: &BatchHeader) -> Result<(), Refusal> {
    let offsets = i64::from(header.last_offset_delta) + 1;
    if offsets <= 0 {
        return Err(Refusal::invalid(format!("last offset delta {} is negative", header.last_offset_delta)));
    }
    if header.record_count <= 0 {
        return Err(Refusal::invalid(format!("record count is {}", header.record_count)));
    }
    if offsets != i64::from(header.record_count) {
        let count = header.record_count;
        return Err(Refusal::invalid(format!("{count} records but offsets for {offsets}")));
    }
    if header.attributes.is_control() {
        return Err(Refusal::invalid("clients may not write control records"));
    }
    if header.has_producer_id() && header.base_sequence.get() < 0 {
        let (producer, sequence) = (header.producer_id, header.base_sequence);
        return Err(Refusal::invalid(format!("producer {producer} sent the sequence {sequence}")));
    }
    Ok(())
}

/// Whether the records can be as many as the header says: counted by their lengths where they lie open; where they are
/// compressed, no more than could ever come out.
fn check_count(header: &BatchHeader, source: Codec, body: &[u8]) -> Result<(), Refusal> {
    if source == Codec::None {
        return check_framing(body, header.record_count).map_err(|error| Refusal::invalid(error.to_string()));
    }
    let possible = inflated_limit(body.len()) / RECORD_BYTES_MIN;
    if header.record_count as usize > possible {
        let (count, size) = (header.record_count, body.len());
        return Err(Refusal::invalid(format!("{count} records cannot be in {size} compressed bytes")));
    }
    Ok(())
}

/// How the batch will be stored. Control records stay as they were written, so that a log's own words need no codec.
fn target_compression(source: Codec, attributes: Attributes, rules: &Rules) -> Compression {
    match rules.compression {
        Some(target) if !(source == Codec::None && attributes.is_control()) => target,
        _ => Compression::of(source),
    }
}

/// Whether a rule cannot be decided by the header alone.
fn must_see_records(header: &BatchHeader, rules: &Rules) -> bool {
    if rules.validation == RecordValidation::Full {
        return true;
    }
    // What a coordinator of this broker built has just been built by the rules.
    if rules.origin == BatchOrigin::Coordinator {
        return false;
    }
    if rules.is_compacted {
        return true;
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return true;
    }
    if header.attributes.is_compressed() && rules.record_bytes_max < RECORD_BYTES_UNLIMITED {
        return true;
    }
    let newest_allowed = rules.now.0.saturating_add(rules.timestamp_after_max.0);
    rules.timestamp_type == TimestampType::CreateTime
        && (header.max_timestamp.0 > newest_allowed || rules.timestamp_before_max != DurationMs(i64::MAX))
}

/// Walks the records. Keeps the batch as it came if no record changes, else encodes it again.
fn validate_records(
    batch: &Batch,
    source: Codec,
    target: Compression,
    rules: &Rules,
    at_once: AtOnce,
) -> Result<Validated, Stop> {
    let header = *batch.header();
    let batch_type = header.attributes.timestamp_type();
    if target.codec != source && is_slow(target, at_once) {
        return Err(Stop::TooMuch);
    }
    let is_inflated = source != Codec::None && target.codec == Codec::None;
    let records = open(batch, at_once, plain_max(is_inflated, rules))?;
    let mut faults = RecordFaults::default();
    let mut newest = TimestampMs::NONE;
    let mut deltas_count_up = true;
    for (index, record) in records.iter().enumerate() {
        let record = record.map_err(|error| Refusal::invalid(error.to_string()))?;
        if source != Codec::None && record.body_bytes > rules.record_bytes_max {
            let size = record.body_bytes;
            let text = format!("record {index} of {size} bytes exceeds max.decompressed.message.bytes");
            return Err(Refusal::invalid(text).into());
        }
        check_record(&mut faults, index, record.key.is_some(), record.timestamp, batch_type, rules);
        newest = newest.max(record.timestamp);
        deltas_count_up &= record.offset_delta as usize == index;
    }
    faults.finish()?;
    // Some clients number compressed records wrongly. Kafka repairs that by encoding the batch
    // again, and so do we.
    if target.codec != source || !deltas_count_up {
        if records.body().len() > at_once.rebuilt_bytes_max || is_slow(target, at_once) {
            return Err(Stop::TooMuch);
        }
        return Ok(rebuild(&header, &records, target, rules)?);
    }
    let mut ready = ReadyBatch { header, body: batch.body() };
    let newest = if rules.timestamp_type == TimestampType::LogAppendTime { rules.now } else { newest };
    ready.header.set_max_timestamp(rules.timestamp_type, newest, ready.body.len());
    Ok(Validated { batch: ready, rebuilt: false, walked: true })
}

/// The same records in a new batch, numbered from 0.
fn rebuild(
    header: &BatchHeader,
    records: &Records,
    target: Compression,
    rules: &Rules,
) -> Result<Validated, Refusal> {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: target,
        append_time: append_time(rules),
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        transactional: header.attributes.is_transactional(),
        control: header.attributes.is_control(),
        ..BatchOptions::default()
    });
    let mut headers: Vec<HeaderRef<'_>> = Vec::new();
    for record in records {
        let record = record.map_err(|error| Refusal::invalid(error.to_string()))?;
        headers.clear();
        headers.extend(record.headers());
        builder.push(record.timestamp, record.key, record.value, &headers);
        // Nothing will make it smaller again, so a bomb is not written out in full first.
        if target.codec == Codec::None {
            check_size(builder.size_bytes(), rules)?;
        }
    }
    finish(builder)
}

/// The date that the broker gives, if the topic wants its.
pub(super) fn append_time(rules: &Rules) -> Option<TimestampMs> {
    (rules.timestamp_type == TimestampType::LogAppendTime).then_some(rules.now)
}

pub(super) fn finish(builder: BatchBuilder) -> Result<Validated, Refusal> {
    let too_large = |error: crate::records::BatchError| Refusal {
        code: ErrorCode::MessageTooLarge,
        message: error.to_string(),
        record_errors: Vec::new(),
    };
    let bytes = builder.build().map_err(too_large)?;
    let batch = ReadyBatch::from_bytes(bytes).map_err(too_large)?;
    Ok(Validated { batch, rebuilt: true, walked: true })
}
