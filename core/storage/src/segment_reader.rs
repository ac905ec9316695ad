//! Reads a partition's segments in order, in large pieces of whole batches, beside the log's owner and without its
//! help.
//!
//! For work that looks at everything and may be late: a search. It sees what has been written back to segments; the
//! rest is in the owner's memory. The caller bounds what it looks at by an offset that the owner called committed:
//! below it nothing is truncated. Segments may be deleted or compacted meanwhile: an open file stays good, and a
//! later piece may begin further on.
//!
//! Nothing is checked here but the lengths of batches: the caller compares checksums, and asks the owner about what
//! looks damaged.
//!
//! For whom: shell/broker/src/server/listeners/own_logs.rs, which lends it to the console.

use crate::disk::{Disk, DiskError, DiskFile, OpenMode};
use crate::scrub::segments;
use crate::segment::batch::{BatchHeader, HEADER_BYTES};
use crate::segment::offset_index::{ENTRY_BYTES, OffsetEntry};
use crate::segment::{LOG, OFFSET_INDEX, offset_path};
use barnabas_base::Offset;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// A batch that is longer is the owner's to read.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// See the file's header.
#[derive(Debug)]
pub struct SegmentReader {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    at: Option<Place>,
}

/// Where the next piece begins.
#[derive(Debug)]
struct Place {
    file: Arc<dyn DiskFile>,
    base: Offset,
    position: u64,
    /// The first offset that was not given yet.
    next: Offset,
}

impl SegmentReader {
    /// `dir`: the partition's own.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Self {
        Self { disk, dir, at: None }
    }

    /// Whole batches from the one that holds `from`, or is the next behind it, on: about `bytes`, and one batch at
    /// least. Batches that end before `from` may come first. Empty: no segment has more, or a batch is longer than a
    /// search takes; the owner may have it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&mut self, from: Offset, bytes: usize) -> Result<Bytes, DiskError> {
        let mut place = match self.at.take().filter(|place| place.next == from) {
            Some(place) => place,
            None => match self.find(from)? {
                Some(place) => place,
                None => return Ok(Bytes::new()),
            },
        };
        loop {
            let (piece, next) = piece(&place, bytes)?;
            if let Some(next) = next {
                place.position += piece.len() as u64;
                place.next = next;
                self.at = Some(place);
                return Ok(piece);
            }
            let listed = segments(&*self.disk, &self.dir)?;
            let Some(behind) = listed.iter().find(|segment| segment.base > place.base) else {
                return Ok(Bytes::new());
            };
            let Some(file) = self.open(behind.base)? else { return Ok(Bytes::new()) };
            place = Place { file, base: behind.base, position: 0, next: behind.base };
        }
    }

    fn open(&self, base: Offset) -> Result<Option<Arc<dyn DiskFile>>, DiskError> {
        match self.disk.open(&offset_path(&self.dir, base, LOG), OpenMode::Read) {
            Ok(file) => Ok(Some(file)),
            // Deleted since it was listed.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn find(&self, from: Offset) -> Result<Option<Place>, DiskError> {
        let listed = segments(&*self.disk, &self.dir)?;
        let Some(base) = listed.iter().rev().map(|segment| segment.base).find(|base| *base <= from) else {
            return Ok(None);
        };
        let Some(file) = self.open(base)? else { return Ok(None) };
        let indexed = self.indexed(base, from)?;
        let position = match header(&*file, indexed)? {
            // The index of a log that was cut may say more than there is.
            Some(header) if header.base_offset <= from => indexed,
            _ => 0,
        };
        Ok(Some(Place { file, base, position, next: from }))
    }

    /// The byte from which on `from` can be found, as the segment's index knows it.
    fn indexed(&self, base: Offset, from: Offset) -> Result<u64, DiskError> {
        let file = match self.disk.open(&offset_path(&self.dir, base, OFFSET_INDEX), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(0),
            Err(error) => return Err(error),
        };
        let len = usize::try_from(file.len()?).unwrap_or(0);
        let bytes = file.read_bytes(0, len)?;
        let (mut found, mut last) = (0, base);
        for entry in bytes.chunks_exact(ENTRY_BYTES) {
            let entry = OffsetEntry::decode(entry.try_into().expect("invariant: chunks are exact"), base);
            // Zeros behind the last entry: room that is kept for more.
            if entry.offset > from || entry.offset < last {
                break;
            }
            (found, last) = (u64::from(entry.position), entry.offset);
        }
        Ok(found)
    }
}

/// Whole batches from a place on, and the offset behind them; without that offset there are none.
fn piece(place: &Place, bytes: usize) -> Result<(Bytes, Option<Offset>), DiskError> {
    let mut piece = place.file.read_bytes(place.position, bytes.max(HEADER_BYTES))?;
    let (mut whole, mut next) = (0, None);
    while let Ok(header) = BatchHeader::parse(&piece[whole..]) {
        let end = whole + header.size as usize;
        if end > piece.len() {
            break;
        }
        (whole, next) = (end, Some(header.last_offset.plus(1)));
    }
    if next.is_none()
        && let Ok(header) = BatchHeader::parse(&piece)
        && header.size as usize <= BATCH_BYTES_MAX
    {
        let size = header.size as usize;
        piece = place.file.read_bytes(place.position, size)?;
        if piece.len() == size {
            (whole, next) = (size, Some(header.last_offset.plus(1)));
        }
    }
    piece.truncate(if next.is_some() { whole } else { 0 });
    Ok((piece, next))
}

fn header(file: &dyn DiskFile, position: u64) -> Result<Option<BatchHeader>, DiskError> {
    let bytes = file.read_bytes(position, HEADER_BYTES)?;
    Ok(BatchHeader::parse(&bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::memory_disk::MemoryDisk;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
    use std::path::Path;

    const DIR: &str = "/data/t-0";

    fn batch(offset: i64) -> Bytes {
        let options = BatchOptions { base_offset: Offset(offset), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        builder.push(TimestampMs(1), None, Some(&[7; 100]), &[]);
        builder.push(TimestampMs(1), None, Some(&[7; 100]), &[]);
        builder.build().unwrap()
    }

    /// Segments of ten batches of two records each, at 0 and 20, and one that is empty at 40; what follows the last
    /// batch is `tail`. The index of the first knows each batch, and has room behind.
    fn disk(tail: &[u8]) -> Arc<dyn Disk> {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let dir = Path::new(DIR);
        disk.create_dir(Path::new("/data")).unwrap();
        disk.create_dir(dir).unwrap();
        let mut index = Vec::new();
        for base in [0, 20] {
            let mut bytes = Vec::new();
            for offset in (base..base + 20).step_by(2) {
                if base == 0 {
                    let entry = OffsetEntry { offset: Offset(offset + 1), position: bytes.len() as u32 };
                    index.extend(entry.encode(Offset(0)));
                }
                bytes.extend(batch(offset));
            }
            if base == 20 {
                bytes.extend(tail);
            }
            let file = disk.open(&offset_path(dir, Offset(base), LOG), OpenMode::Create).unwrap();
            file.write_at(0, &[&bytes]).unwrap();
        }
        index.extend([0; 64]);
        let file = disk.open(&offset_path(dir, Offset(0), OFFSET_INDEX), OpenMode::Create).unwrap();
        file.write_at(0, &[&index]).unwrap();
        disk.open(&offset_path(dir, Offset(40), LOG), OpenMode::Create).unwrap();
        disk
    }

    /// The base offsets of what comes in pieces of `bytes` from `from` on.
    fn read(disk: &Arc<dyn Disk>, from: i64, bytes: usize) -> Vec<Vec<i64>> {
        let mut reader = SegmentReader::new(disk.clone(), DIR.into());
        let (mut next, mut pieces) = (Offset(from), Vec::new());
        loop {
            let piece = reader.read(next, bytes).unwrap();
            if piece.is_empty() {
                return pieces;
            }
            let headers: Vec<_> = batches(piece).map(|batch| *batch.unwrap().header()).collect();
            next = headers.last().unwrap().next_offset();
            pieces.push(headers.iter().map(|header| header.base_offset.get()).collect());
        }
    }

    #[test]
    fn every_batch_comes_once_and_in_order_across_segments() {
        let all: Vec<i64> = (0..40).step_by(2).collect();
        for bytes in [1, batch(0).len() * 3 + 1, 1 << 20] {
            for tail in [&b""[..], &[0; 500], &batch(40)[..70]] {
                let pieces = read(&disk(tail), 0, bytes);
                assert_eq!(pieces.concat(), all, "{bytes} {}", tail.len());
                assert!(bytes > 1 || pieces.iter().all(|piece| piece.len() == 1));
            }
        }
    }

    #[test]
    fn read_begins_at_the_batch_that_holds_the_offset() {
        let disk = disk(&[]);
        let first = |from| read(&disk, from, 1).first().map(|piece| piece[0]);
        // By the index of the first segment: from the batch before on.
        assert_eq!((first(0), first(7), first(19)), (Some(0), Some(6), Some(18)));
        // Without an index: from the segment's front on.
        assert_eq!((first(20), first(31), first(40)), (Some(20), Some(20), None));
        disk.remove_file(&offset_path(Path::new(DIR), Offset(0), LOG)).unwrap();
        assert_eq!(first(5), None, "the owner knows where the log begins now");
        assert_eq!(read(&disk, 20, 1 << 20).concat().len(), 10);
    }
}
