//! The batches of a segment or a snapshot, and their records.

use super::{Shown, base_offset, failed};
use crate::{ToolError, say};
use barnabas_decoders::control;
use barnabas_wire::records::{Batch, BatchHeader, RecordRef, TimestampType};
use bytes::Bytes;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Offset and length, which stand in front of every batch.
const OVERHEAD_BYTES: usize = 12;
/// Batches of message formats 0 and 1 have their magic at the same place.
const MAGIC_AT: usize = 16;
/// A batch of more than this is damage. Kafka's `message.max.bytes` ends below it.
const BATCH_BYTES_MAX: usize = 1 << 30;
/// What a batch may inflate to: as much as the console consumer takes (`max.decompressed.batch.bytes`). Kafka's tool
/// inflates record by record and has no such limit.
const INFLATED_BYTES_MAX: usize = 1 << 30;
/// The least that Kafka takes for a length: a record of message format 0 without key and value.
const RECORD_OVERHEAD_MIN: i32 = 14;
const INDENT: &str = "|";

/// Prints a file; returns what is wrong with it.
pub fn dump(path: &Path, shown: &Shown) -> Result<Vec<String>, ToolError> {
    let mut batches = Batches::open(path, shown.bytes_max)?;
    say(&headline(path)?)?;
    let (mut last, mut gaps) = (-1_i64, Vec::new());
    while let Some(batch) = batches.next()? {
        say(&batch_line(batch.header(), batches.position, batch.check_crc().is_ok()))?;
        if !shown.records {
            continue;
        }
        print_records(path, &batch, shown, |offset| {
            if offset != last + 1 {
                gaps.push(format!("  {last} is followed by {offset}"));
            }
            last = offset;
        })?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if batches.left > 0 && shown.bytes_max == u64::MAX {
        say(&format!("Found {} invalid bytes at the end of {name}", batches.left))?;
    }
    if !gaps.is_empty() {
        gaps.insert(0, format!("Non-consecutive offsets in {}", path.display()));
    }
    Ok(gaps)
}

/// Prints the records of a batch; `note` is called with the offset of each.
///
/// # Errors
/// They cannot be read, or inflate to more than [`INFLATED_BYTES_MAX`].
pub fn print_records(
    path: &Path,
    batch: &Batch,
    shown: &Shown,
    mut note: impl FnMut(i64),
) -> Result<(), ToolError> {
    let records = batch.records_up_to(INFLATED_BYTES_MAX).map_err(|error| failed(path, error))?;
    for (index, record) in records.iter().enumerate() {
        let record = record.map_err(|error| failed(path, error))?;
        note(record.offset.get());
        say(&record_line(batch.header(), &record, index as i32, shown))?;
    }
    Ok(())
}

fn headline(path: &Path) -> Result<String, ToolError> {
    if path.extension().is_some_and(|ending| ending == "log") {
        return Ok(format!("Log starting offset: {}", base_offset(path)?));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if stem == "bootstrap" {
        return Ok("KRaft bootstrap snapshot".to_owned());
    }
    let parts = stem
        .split_once('-')
        .and_then(|(offset, epoch)| Some((offset.parse::<i64>().ok()?, epoch.parse::<i32>().ok()?)));
    let (offset, epoch) = parts.ok_or_else(|| failed(path, "its name is not that of a snapshot"))?;
    Ok(format!("Snapshot end offset: {offset}, epoch: {epoch}"))
}

/// Reads batch by batch, so that a segment of any size takes the memory of one batch.
pub struct Batches<'a> {
    path: &'a Path,
    file: BufReader<File>,
    /// Where the batch begins that was read last.
    pub position: u64,
    /// Where the next one begins.
    end: u64,
    /// Bytes that were not read as batches.
    pub left: u64,
}

impl<'a> Batches<'a> {
    pub fn open(path: &'a Path, bytes_max: u64) -> Result<Self, ToolError> {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let size = file.metadata().map_err(|error| failed(path, error))?.len();
        Ok(Self { path, file: BufReader::new(file), position: 0, end: 0, left: size.min(bytes_max) })
    }

    /// `None`: what is left is no whole batch.
    ///
    /// # Errors
    /// The file cannot be read; a length that no batch has; a batch of an old message format.
    ///
    /// # Source
    /// Kafka `FileLogInputStream.nextBatch`: a length below the minimum is an error, a batch beyond the end is not.
    pub fn next(&mut self) -> Result<Option<Batch>, ToolError> {
        if self.left < (MAGIC_AT + 1) as u64 {
            return Ok(None);
        }
        let mut head = [0; MAGIC_AT + 1];
        self.file.read_exact(&mut head).map_err(|error| failed(self.path, error))?;
        let length = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        let size = usize::try_from(length).unwrap_or(0).saturating_add(OVERHEAD_BYTES);
        if length < RECORD_OVERHEAD_MIN {
            // Kafka's tool ends with this error, too.
            return Err(failed(
                self.path,
                format!(
                    "found record size {length} smaller than minimum record overhead ({RECORD_OVERHEAD_MIN}) at \
                     position {}: the file is damaged there, and what follows is not shown",
                    self.end
                ),
            ));
        }
        if size <= head.len() || size > BATCH_BYTES_MAX || size as u64 > self.left {
            return Ok(None);
        }
        if head[MAGIC_AT] < 2 {
            let magic = head[MAGIC_AT];
            return Err(failed(
                self.path,
                format!(
                    "message format {magic} at position {} is not shown here; Apache Kafka's tool shows it",
                    self.end
                ),
            ));
        }
        let mut bytes = vec![0; size];
        bytes[..head.len()].copy_from_slice(&head);
        self.file.read_exact(&mut bytes[head.len()..]).map_err(|error| failed(self.path, error))?;
        let Ok(batch) = Batch::new(Bytes::from(bytes)) else { return Ok(None) };
        self.position = self.end;
        self.end += size as u64;
        self.left -= size as u64;
        Ok(Some(batch))
    }
}

fn time_name(header: &BatchHeader) -> &'static str {
    match header.attributes.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

pub fn batch_line(header: &BatchHeader, position: u64, is_valid: bool) -> String {
    let attributes = header.attributes;
    let horizon = if attributes.has_delete_horizon() {
        format!("OptionalLong[{}]", header.base_timestamp.0)
    } else {
        "OptionalLong.empty".to_owned()
    };
    let codec = attributes.codec().map_or("unknown", barnabas_wire::records::Codec::name);
    let last_sequence = if header.base_sequence.get() < 0 { -1 } else { header.last_sequence().get() };
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {last_sequence} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon} position: {position} {}: {} size: {} magic: {} \
         compresscodec: {codec} crc: {} isvalid: {is_valid}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.base_sequence,
        header.producer_id,
        header.producer_epoch,
        header.partition_leader_epoch,
        attributes.is_transactional(),
        attributes.is_control(),
        time_name(header),
        header.max_timestamp.0,
        header.size_bytes(),
        header.magic,
        header.crc,
    )
}

fn record_line(header: &BatchHeader, record: &RecordRef<'_>, index: i32, shown: &Shown) -> String {
    let mut line = String::new();
    let is_control = header.attributes.is_control();
    if !shown.without_metadata {
        let size = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
        let base = header.base_sequence.get();
        // Sequences go round below 2^31.
        let sequence = if base < 0 { -1 } else { base.wrapping_add(index) & i32::MAX };
        let keys: Vec<String> =
            record.headers().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
        let time = match header.attributes.timestamp_type() {
            TimestampType::CreateTime => record.timestamp.0,
            TimestampType::LogAppendTime => header.max_timestamp.0,
        };
        line = format!(
            "{INDENT} offset: {} {}: {time} keySize: {} valueSize: {} sequence: {sequence} headerKeys: [{}]",
            record.offset,
            time_name(header),
            size(record.key),
            size(record.value),
            keys.join(",")
        );
        if is_control {
            line += &control(record.key.unwrap_or_default(), record.value.unwrap_or_default());
        }
    }
    let Some(decoder) = shown.contents.as_ref().filter(|_| !is_control) else { return line };
    let (key, value) = decoder.decode(record.offset.get(), record.key, record.value);
    let mut prefix = if shown.without_metadata { format!("{INDENT} ") } else { " ".to_owned() };
    for (name, content) in [("key", key), ("payload", value)] {
        if let Some(content) = content {
            line += &format!("{prefix}{name}: {content}");
            " ".clone_into(&mut prefix);
        }
    }
    line
}
