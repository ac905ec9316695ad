//! Tells damage in the metadata log from a torn tail: whole batches behind a bad one were written after it was synced.
//!
//! The log is cut like any other where nothing whole follows. It does not look below the recovery point: `Log::open`
//! does.
//!
//! Before: files.rs. After: core/storage/src/log/open.rs.

use barnabas_base::Offset;
use barnabas_storage::{Disk, OpenMode, StorageError};
use barnabas_wire::records::{BatchHeader, check_crc};
use bytes::Bytes;
use std::path::Path;

const HEADER_BYTES: usize = 61;
const MAGIC_AT: usize = 16;
/// Batch length counts from behind base offset and length.
const LENGTH_AT: usize = 8;
const REMEDY: &str = "nothing is cut: restore this file from a copy of it, or, if the machine lost power, cut it at that byte \
     by hand; the newest snapshot (*.checkpoint) stands beside it";

/// Reads the segments from that of `recovery_point` on, as an unclean start does.
///
/// # Errors
/// [`StorageError::BadFile`]: a bad batch with a whole one behind it. Nothing was changed.
pub fn refuse_damage_before_valid(
    disk: &dyn Disk,
    dir: &Path,
    recovery_point: Offset,
) -> Result<(), StorageError> {
    let mut segments: Vec<(i64, String)> = disk
        .list(dir)?
        .into_iter()
        .filter_map(|entry| Some((entry.name.strip_suffix(".log")?.parse().ok()?, entry.name)))
        .collect();
    segments.sort_unstable();
    let first = segments.iter().rposition(|(base, _)| *base <= recovery_point.get()).unwrap_or(0);
    let mut bad: Option<(&str, usize, Offset)> = None;
    for (base, name) in &segments[first..] {
        let path = dir.join(name);
        let len = disk.stat(&path)?.map_or(0, |stat| stat.len as usize);
        let bytes = disk.open(&path, OpenMode::Read)?.read_bytes(0, len)?;
        let (mut at, mut next) = (0, Offset(*base));
        if let Some((_, _, offset)) = bad {
            next = offset;
        }
        while bad.is_none() && at < bytes.len() {
            match batch_at(&bytes, at, next) {
                Some((header, size)) => (at, next) = (at + size, header.next_offset()),
                None => bad = Some((name, at, next)),
            }
        }
        let Some((file, position, offset)) = bad else { continue };
        let Some(after) = (at..bytes.len()).find_map(|at| batch_at(&bytes, at, next)) else { continue };
        let follows = after.0.base_offset;
        let what = format!(
            "damage at byte {position} (offset {offset}), and a whole batch of offset {follows} behind it, which was written \
             after this was synced"
        );
        return Err(StorageError::BadFile { file: dir.join(file), what, remedy: REMEDY });
    }
    Ok(())
}

/// The batch that begins at this byte, if a whole one does, of `next` or a later offset.
fn batch_at(bytes: &Bytes, at: usize, next: Offset) -> Option<(BatchHeader, usize)> {
    let rest = &bytes[at..];
    if rest.len() < HEADER_BYTES || rest[MAGIC_AT] != 2 {
        return None;
    }
    let length = i32::from_be_bytes(rest[LENGTH_AT..LENGTH_AT + 4].try_into().ok()?);
    let size = usize::try_from(length).ok()?.checked_add(LENGTH_AT + 4)?;
    let batch = rest.get(..size)?;
    let header = BatchHeader::parse(batch).ok()?;
    (header.base_offset >= next && check_crc(batch).is_ok()).then_some((header, size))
}
