//! The files beside a segment: where offsets and times are, which transactions were aborted, which producers wrote.
//!
//! Formats: docs/format/indexes.md, docs/format/producer-snapshot.md.

use super::segment::Batches;
use super::{Shown, base_offset, failed};
use crate::{ToolError, say};
use std::path::Path;

/// An entry of each file.
const OFFSET_BYTES: usize = 8;
const TIME_BYTES: usize = 12;
const ABORTED_BYTES: usize = 34;
const PRODUCER_BYTES: usize = 46;
/// Version, CRC and count, in front of the producers.
const SNAPSHOT_HEAD_BYTES: usize = 10;

fn read(path: &Path) -> Result<Vec<u8>, ToolError> {
    std::fs::read(path).map_err(|error| failed(path, error))
}

fn int16(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn int32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn int64(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A batch of the segment beside an index: where it begins, its last offset, its newest timestamp.
#[derive(Debug, Clone, Copy)]
struct Known {
    position: u64,
    last_offset: i64,
    max_timestamp: i64,
}

fn known(index: &Path) -> Result<Vec<Known>, ToolError> {
    let log = index.with_extension("log");
    let mut batches = Batches::open(&log, u64::MAX)?;
    let mut known = Vec::new();
    while let Some(batch) = batches.next()? {
        let header = batch.header();
        known.push(Known {
            position: batches.position,
            last_offset: header.last_offset().get(),
            max_timestamp: header.max_timestamp.0,
        });
    }
    Ok(known)
}

/// The entries of an index: offset and the rest. What follows a preallocated file's end is left out.
fn entries(path: &Path, size: usize, offset_at: usize) -> Result<Vec<(i64, Vec<u8>)>, ToolError> {
    let (bytes, base) = (read(path)?, base_offset(path)?);
    let mut entries = Vec::new();
    for (number, entry) in bytes.chunks_exact(size).enumerate() {
        let offset = base + i64::from(int32(entry, offset_at));
        if offset == base && number > 0 {
            break;
        }
        entries.push((offset, entry.to_vec()));
    }
    Ok(entries)
}

/// Kafka's check at a start: whole entries, and the last offset not below the first.
fn sane(path: &Path, size: usize, last: i64) -> Result<Vec<String>, ToolError> {
    let bytes = read(path)?.len();
    if !bytes.is_multiple_of(size) {
        return Err(failed(
            path,
            format!("{bytes} bytes are no whole entries of {size}: a broker rebuilds it"),
        ));
    }
    if last < base_offset(path)? {
        return Err(failed(path, "its last offset is below its first: a broker rebuilds it"));
    }
    say(&format!("{} passed sanity check.", path.display()))?;
    Ok(Vec::new())
}

/// Prints an offset index; returns what does not agree with the segment.
pub fn offsets(path: &Path, shown: &Shown) -> Result<Vec<String>, ToolError> {
    let entries = entries(path, OFFSET_BYTES, 0)?;
    let Some(last) = entries.last().map(|entry| entry.0) else {
        say(&format!("{} is empty.", path.display()))?;
        return Ok(Vec::new());
    };
    if shown.sanity_only {
        return sane(path, OFFSET_BYTES, last);
    }
    let batches = known(path)?;
    let mut wrong = Vec::new();
    for (offset, entry) in &entries {
        let position = int32(entry, 4);
        let at = batches.binary_search_by_key(&(position as u64), |batch| batch.position);
        let at = at.ok().map(|at| batches[at]);
        if at.is_none_or(|batch| batch.last_offset != *offset) {
            let found = at.map_or_else(|| "none".to_owned(), |batch| batch.last_offset.to_string());
            wrong.push(format!("  Index offset: {offset}, log offset: {found}"));
        }
        if shown.index_entries {
            say(&format!("offset: {offset} position: {position}"))?;
        }
    }
    if !wrong.is_empty() {
        wrong.insert(0, format!("Mismatches in :{}", path.display()));
    }
    Ok(wrong)
}

/// Prints a time index; returns what does not agree with the segment.
pub fn times(path: &Path, shown: &Shown) -> Result<Vec<String>, ToolError> {
    let entries = entries(path, TIME_BYTES, 8)?;
    if shown.sanity_only {
        let last = entries.last().map_or(base_offset(path)?, |entry| entry.0);
        return sane(path, TIME_BYTES, last);
    }
    let batches = known(path)?;
    let (mut differing, mut unordered, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = -1;
    for (offset, entry) in &entries {
        let timestamp = int64(entry, 0);
        let at = batches.partition_point(|batch| batch.last_offset < *offset);
        match batches.get(at) {
            Some(batch) if batch.last_offset == *offset => {
                if batch.max_timestamp != timestamp {
                    differing.push(format!(
                        "  Index timestamp: {timestamp}, log timestamp: {}",
                        batch.max_timestamp
                    ));
                }
                if before >= timestamp {
                    unordered.push(format!(
                        "  Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
                    ));
                }
            }
            batch => {
                let found = batch.map_or(-1, |batch| batch.last_offset);
                missing.push(format!("Indexed offset: {offset}, found log offset: {found}"));
            }
        }
        if shown.index_entries {
            say(&format!("timestamp: {timestamp} offset: {offset}"))?;
        }
        before = timestamp;
    }
    let name = path.display();
    let mut wrong = Vec::new();
    for (headline, lines) in [
        (format!("Found timestamp mismatch in :{name}"), differing),
        (format!("Found out of order timestamp in :{name}"), unordered),
        ("The following indexed offsets are not found in the log.".to_owned(), missing),
    ] {
        if !lines.is_empty() {
            wrong.push(headline);
            wrong.extend(lines);
        }
    }
    Ok(wrong)
}

/// Prints the aborted transactions of a segment.
pub fn transactions(path: &Path) -> Result<Vec<String>, ToolError> {
    for entry in read(path)?.chunks_exact(ABORTED_BYTES) {
        say(&format!(
            "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            int16(entry, 0),
            int64(entry, 2),
            int64(entry, 10),
            int64(entry, 18),
            int64(entry, 26)
        ))?;
    }
    Ok(Vec::new())
}

/// Prints a snapshot of producers.
pub fn producers(path: &Path) -> Result<Vec<String>, ToolError> {
    let bytes = read(path)?;
    if bytes.len() < SNAPSHOT_HEAD_BYTES {
        return Ok(vec![format!("{}: {} bytes are no snapshot of producers", path.display(), bytes.len())]);
    }
    let (version, stored) = (int16(&bytes, 0), int32(&bytes, 2) as u32);
    if version != 1 {
        return Ok(vec![format!("Snapshot contained an unknown file version {version}")]);
    }
    let computed = barnabas_wire::records::crc32c(&bytes[6..]);
    if stored != computed {
        return Ok(vec![format!(
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
        )]);
    }
    for entry in bytes[SNAPSHOT_HEAD_BYTES..].chunks_exact(PRODUCER_BYTES) {
        say(&producer(entry))?;
    }
    Ok(Vec::new())
}

fn producer(entry: &[u8]) -> String {
    let (last_sequence, last_offset, delta) = (int32(entry, 10), int64(entry, 14), int32(entry, 22));
    let first_offset = int64(entry, 38);
    let transaction = if first_offset >= 0 {
        format!("OptionalLong[{first_offset}]")
    } else {
        "OptionalLong.empty".to_owned()
    };
    let timestamp = int64(entry, 26);
    let mut line = format!(
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {transaction} lastTimestamp: {timestamp}",
        int64(entry, 0),
        int16(entry, 8),
        int32(entry, 34)
    );
    if last_offset >= 0 {
        // Sequences go round below 2^31.
        let first_sequence = last_sequence.wrapping_sub(delta) & i32::MAX;
        line += &format!(
            " firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} offsetDelta: {delta} timestamp: {timestamp}"
        );
    }
    line
}
