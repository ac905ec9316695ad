//! Whether a snapshot is the one that its name says: its checksums hold for the records alone, and the name stands
//! outside.
//!
//! A snapshot names the time of the newest batch that it stands for. The log, which usually reaches further back than
//! the newest snapshot, has that batch: another snapshot's contents under this name would make topics vanish unsaid.

use crate::MetadataFiles;
use barnabas_base::{Offset, TimestampMs};
use barnabas_quorum::SnapshotId;
use barnabas_storage::{Disk, OpenMode, StorageError};
use barnabas_wire::messages::SnapshotHeaderRecord;
use barnabas_wire::records::{Batch, BatchHeader, batches};
use barnabas_wire::{Message, Reader};
use std::path::Path;

/// Batches that are looked through for the newest one with records; what the controller itself notes may lie behind it.
const OFFSETS_BACK: i64 = 200;
const HEADER_BYTES_MAX: usize = 64 << 10;

impl MetadataFiles {
    /// # Errors
    /// [`StorageError::BadFile`]: the log says that it is another one.
    pub(super) fn check_snapshot(&mut self, id: SnapshotId, path: &Path) -> Result<(), StorageError> {
        let Some(said) = last_timestamp(&**self.disk(), path)? else { return Ok(()) };
        let (start, end) = self.log_range();
        if id.end <= start || id.end > end {
            return Ok(());
        }
        let mut newest = Vec::new();
        let from = start.max(id.end.plus(-OFFSETS_BACK));
        for header in self.headers(from, id.end)? {
            if header.base_offset < id.end {
                newest.push((header.attributes.is_control(), header.max_timestamp));
            }
        }
        let last = newest.last().map(|(_, time)| *time);
        let last_data = newest.iter().rev().find(|(is_control, _)| !is_control).map(|(_, time)| *time);
        if last_data.is_none() || [last, last_data].contains(&Some(said)) {
            return Ok(());
        }
        Err(StorageError::BadFile {
            file: path.to_path_buf(),
            what: format!(
                "its newest record is of {} ms, and the log's before offset {} is of {} ms: it is another snapshot than its name \
                 says",
                said.0,
                id.end,
                last_data.unwrap_or(TimestampMs::NONE).0
            ),
            remedy: "were snapshots exchanged? Put them back, or move this one away: an older one and the log may do",
        })
    }
}

/// What the snapshot's first record says; `None` where that cannot be read, which others complain of.
fn last_timestamp(disk: &dyn Disk, path: &Path) -> Result<Option<TimestampMs>, StorageError> {
    let bytes = disk.open(path, OpenMode::Read)?.read_bytes(0, HEADER_BYTES_MAX)?;
    let first = batches(bytes).next().and_then(Result::ok);
    let said = |batch: Batch| {
        let records = batch.records().ok()?;
        let value = records.iter().next()?.ok()?.value?;
        let header = SnapshotHeaderRecord::decode(&mut Reader::new(records.share(value)), 0).ok()?;
        Some(TimestampMs(header.last_contained_log_timestamp))
    };
    Ok(first.and_then(said))
}

/// The headers of what a read of the log gave.
pub(super) fn headers_of(records: bytes::Bytes) -> (Vec<BatchHeader>, Option<Offset>) {
    let headers: Vec<_> = batches(records).map_while(Result::ok).map(|batch| *batch.header()).collect();
    let next = headers.last().map(BatchHeader::next_offset);
    (headers, next)
}
