//! Messages of the formats 0 and 1 made one v2 batch, checked on the way.
//!
//! All uncompressed messages of a partition become one batch, as in Kafka 3.9. Compressed ones must come alone.

use super::records::{append_time, beyond, finish, is_slow, plain_max};
use super::{AtOnce, RecordFaults, Refusal, Rules, Stop, Validated, check_record, check_size, magic_of};
use crate::records::{
    BatchBuilder, BatchError, BatchOptions, Codec, Compression, Entry, LOG_OVERHEAD_BYTES, Message, entries,
};
use barnabas_base::ErrorCode;
use bytes::Bytes;

/// Converts `records`, whose first entry is a message of format 0 or 1 and whose sizes and outer CRCs are right.
pub(super) fn convert(records: Bytes, rules: &Rules, at_once: AtOnce) -> Result<Validated, Stop> {
    if records.len() > at_once.rebuilt_bytes_max {
        return Err(Stop::TooMuch);
    }
    let source = check_wrappers(&records)?;
    let compression = rules.compression.unwrap_or(Compression::of(source));
    if is_slow(compression, at_once) {
        return Err(Stop::TooMuch);
    }
    let options = BatchOptions { compression, append_time: append_time(rules), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    let mut first_magic = None;
    for entry in entries(records) {
        let entry = entry.map_err(|error| Refusal::corrupt(&error))?;
        if *first_magic.get_or_insert(magic_of(&entry)) != magic_of(&entry) {
            return Err(Refusal::invalid("messages of different magic for one partition").into());
        }
        let Entry::Message(bytes) = entry else {
            return Err(Refusal::invalid("a batch among messages of an older format").into());
        };
        let message = Message::parse(bytes).map_err(|error| Refusal::corrupt(&error))?;
        convert_one(&message, &mut builder, rules, at_once)?;
    }
    Ok(finish(builder)?)
}

/// A compressed set comes alone. The codec that came last comes back.
fn check_wrappers(records: &Bytes) -> Result<Codec, Refusal> {
    let mut source = Codec::None;
    let mut count = 0;
    for entry in entries(records.clone()) {
        let entry = entry.map_err(|error| Refusal::corrupt(&error))?;
        count += 1;
        let codec = match &entry {
            Entry::Batch(batch) => batch.header().attributes.codec(),
            Entry::Message(bytes) => Message::parse(bytes.clone()).and_then(|message| message.codec()),
        };
        match codec.map_err(|error| Refusal::invalid(error.to_string()))? {
            Codec::None => {}
            codec => source = codec,
        }
    }
    if source != Codec::None && count > 1 {
        return Err(Refusal::invalid("a compressed message set must come alone"));
    }
    Ok(source)
}

/// Adds the messages of one wrapper, or one plain message. Record errors count from the wrapper's first message.
fn convert_one(
    outer: &Message,
    builder: &mut BatchBuilder,
    rules: &Rules,
    at_once: AtOnce,
) -> Result<(), Stop> {
    let is_compressed = outer.codec() != Ok(Codec::None);
    let mut faults = RecordFaults::default();
    let is_plain = stays_plain(rules, outer);
    let plain_max = plain_max(is_compressed && is_plain, rules);
    let messages = outer.open_within(at_once.rebuilt_bytes_max.min(plain_max));
    let messages = messages.map_err(|error| match error {
        BatchError::TooLarge { limit } => beyond(limit, at_once.rebuilt_bytes_max, plain_max, error),
        error => refuse(error).into(),
    })?;
    for (index, message) in messages.enumerate() {
        let message = message.map_err(refuse)?;
        if is_compressed {
            let size = message.bytes().len() - LOG_OVERHEAD_BYTES;
            if size > rules.record_bytes_max {
                return Err(refuse(BatchError::TooLarge { limit: rules.record_bytes_max }).into());
            }
            message.check_crc().map_err(refuse)?;
        }
        if message.magic != outer.magic {
            let text = format!("magic {} inside a set of magic {}", message.magic, outer.magic);
            faults.add(index, ErrorCode::InvalidRecord, text);
            continue;
        }
        let (has_key, date) = (message.key.is_some(), message.timestamp);
        check_record(&mut faults, index, has_key, date, outer.timestamp_type, rules);
        if faults.found == 0 {
            builder.push(date, message.key.as_deref(), message.value.as_deref(), &[]);
            // Nothing will make it smaller again, so a bomb is not written out in full first.
            if is_plain {
                check_size(builder.size_bytes(), rules)?;
            }
        }
    }
    Ok(faults.finish()?)
}

/// Whether the converted batch will be uncompressed.
fn stays_plain(rules: &Rules, outer: &Message) -> bool {
    rules.compression.map_or(outer.codec() == Ok(Codec::None), |target| target.codec == Codec::None)
}

/// A wrong CRC or size inside a set is damage; anything else was sent so.
fn refuse(error: BatchError) -> Refusal {
    match error {
        BatchError::Crc { .. } | BatchError::Length { .. } => Refusal::corrupt(&error),
        _ => Refusal::invalid(error.to_string()),
    }
}
