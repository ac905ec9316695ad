//! Which segments become one: neighbours, as long as together they are no larger than one segment may be.
//!
//! Source: Kafka `Cleaner.groupSegmentsBySize`.

use crate::disk::file_pool::FileKind;
use crate::disk::{Disk, DiskError};
use crate::segment::offset_path;

use super::types::{LogToClean, SegmentToClean};

/// A segment with the sizes that count.
#[derive(Debug, Clone, Copy)]
struct Sized {
    segment: SegmentToClean,
    bytes: u64,
    offset_index_bytes: u64,
    time_index_bytes: u64,
}

/// Groups of the segments that begin below `end`, oldest first.
pub(super) fn groups(
    disk: &dyn Disk,
    log: &LogToClean,
    end: barnabas_base::Offset,
) -> Result<Vec<Vec<SegmentToClean>>, DiskError> {
    let mut groups: Vec<Vec<SegmentToClean>> = Vec::new();
    let mut sum: Option<Sized> = None;
    for &segment in log.segments.iter().filter(|segment| segment.base < end) {
        let next = sized(disk, log, segment)?;
        match (&mut sum, groups.last_mut()) {
            (Some(sum), Some(group)) if fits(log, sum, &next) => {
                sum.bytes += next.bytes;
                sum.offset_index_bytes += next.offset_index_bytes;
                sum.time_index_bytes += next.time_index_bytes;
                group.push(segment);
            }
            _ => {
                sum = Some(next);
                groups.push(vec![segment]);
            }
        }
    }
    Ok(groups)
}

/// `sum`'s segment is the first of its group.
fn fits(log: &LogToClean, sum: &Sized, next: &Sized) -> bool {
    let index_max = u64::from(log.config.segment_index_bytes);
    let last_offset = next.segment.next_base.plus(-1);
    sum.bytes + next.bytes <= u64::from(log.config.segment_bytes)
        && sum.offset_index_bytes + next.offset_index_bytes <= index_max
        && sum.time_index_bytes + next.time_index_bytes <= index_max
        // An empty segment adds no offset.
        && (next.bytes == 0 || last_offset.since(sum.segment.base) <= i64::from(i32::MAX))
}

fn sized(disk: &dyn Disk, log: &LogToClean, segment: SegmentToClean) -> Result<Sized, DiskError> {
    let len = |kind: FileKind| -> Result<u64, DiskError> {
        let stat = disk.stat(&offset_path(&log.dir, segment.base, kind.suffix()))?;
        Ok(stat.map_or(0, |stat| stat.len))
    };
    Ok(Sized {
        segment,
        bytes: segment.size.into(),
        offset_index_bytes: len(FileKind::OffsetIndex)?,
        time_index_bytes: len(FileKind::TimeIndex)?,
    })
}
