//! Decides what housekeeping does with a folder that no partition has opened: keep, delete or quarantine it,
//! and whether retention applies.
//!
//! Names, sizes and times of files are all that is read, so a million idle partitions stay closed.
//!
//! | folder | known | then |
//! |---|---|---|
//! | `-delete` | | a deletion that the last stop interrupted: removed |
//! | `-future`, `-stray`, `__cluster_metadata` | | stays: other code handles it |
//! | a partition | a replica of this broker | stays |
//! | a partition | another broker has the replica now | closed and quarantined, unless the metadata log was truncated |
//! | a partition | no | stays if the metadata log was truncated at this start: a lost record may name it |
//! | a partition | no, its topic is being deleted | stays: the deletion sees to it |
//! | a partition | no, its topic was deleted | deleted |
//! | a partition | no | quarantined as a stray |
//!
//! Neighbours: shell/broker/src/upkeep/housekeeping/sweep.rs, which looks and carries out.
//!
//! Source: Kafka `LogManager.isStrayReplica`.

use barnabas_base::{Offset, TimestampMs};
use barnabas_wire::records::BatchHeader;

use crate::journal::PartitionReplay;
use crate::log_config::LogConfig;
use crate::partition_files::dir_name::DirKind;

/// What the image says of a folder's name and topic id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A replica of this broker.
    Mine,
    /// A partition whose replicas other brokers have. The folder is of that topic, or does not say otherwise.
    Others,
    No,
}

/// What is known of a topic that the image does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Unknown,
    /// It is being deleted.
    Leaving,
    Deleted,
}

/// What becomes of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    Stays,
    /// As [`Swept::Stays`]; the operator is to know.
    StaysUnknown,
    Remove,
    /// Its owner closes it and puts it aside.
    Close,
    Delete,
    PutAside,
}

/// Decides what becomes of a folder: the table above. `log_was_cut`: the metadata log has lost its end at this start.
pub fn sweep(kind: DirKind, known: Known, fate: Fate, log_was_cut: bool) -> Swept {
    match (kind, known) {
        (DirKind::Delete, _) => Swept::Remove,
        (DirKind::Current, Known::Others) if !log_was_cut => Swept::Close,
        (DirKind::Current, Known::No) if log_was_cut => Swept::StaysUnknown,
        (DirKind::Current, Known::No) => match fate {
            Fate::Leaving => Swept::Stays,
            Fate::Deleted => Swept::Delete,
            Fate::Unknown => Swept::PutAside,
        },
        _ => Swept::Stays,
    }
}

/// A segment's file, as its folder lists it.
#[derive(Debug, Clone, Copy)]
pub struct SegmentFile {
    /// `None`: its name is no offset.
    pub base: Option<i64>,
    pub bytes: u64,
    pub modified: TimestampMs,
}

/// Whether retention may look at a partition at all.
pub fn has_retention(config: &LogConfig, start: Option<Offset>) -> bool {
    let (limit_ms, limit_bytes) = limits(config);
    limit_ms >= 0 || limit_bytes >= 0 || start.is_some()
}

/// Whether retention has something to do in a partition that is not open: its oldest segment is too old or holds
/// deleted records alone, or all are too large. `segments`: in the order of their offsets. `start`: from
/// `log-start-offset-checkpoint`.
pub fn retention_is_due(
    segments: &[SegmentFile],
    start: Option<Offset>,
    config: &LogConfig,
    now: TimestampMs,
) -> bool {
    let (limit_ms, limit_bytes) = limits(config);
    let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let oldest = segments.iter().find(|segment| segment.bytes > 0).map(|segment| segment.modified);
    let too_old = limit_ms >= 0 && oldest.is_some_and(|at| now.0.saturating_sub(at.0) > limit_ms);
    // Deleted records (DeleteRecords) fill the first segment.
    let second = segments.iter().filter_map(|segment| segment.base).nth(1);
    let deleted = start.is_some_and(|start| second.is_some_and(|second| second <= start.get()));
    deleted || too_old || (limit_bytes >= 0 && bytes > limit_bytes as u64)
}

/// As [`retention_is_due`], for what only the journal holds.
pub fn unreplayed_is_too_old(replay: &PartitionReplay, config: &LogConfig, now: TimestampMs) -> bool {
    let (limit_ms, _) = limits(config);
    let newest = replay.items.last().and_then(|item| BatchHeader::parse(&item.records).ok());
    limit_ms >= 0 && newest.is_some_and(|newest| now.0.saturating_sub(newest.max_timestamp.0) > limit_ms)
}

/// Milliseconds and bytes; −1: no limit.
fn limits(config: &LogConfig) -> (i64, i64) {
    match config.cleanup.delete {
        true => (config.retention_ms.0, config.retention_bytes),
        false => (-1, -1),
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::DurationMs;

    use super::*;
    use crate::log_config::CleanupPolicy;

    #[test]
    fn folder_is_swept_as_the_table_says() {
        let table = [
            (DirKind::Delete, Known::No, Fate::Unknown, true, Swept::Remove),
            (DirKind::Future, Known::No, Fate::Unknown, false, Swept::Stays),
            (DirKind::Stray, Known::No, Fate::Deleted, false, Swept::Stays),
            (DirKind::Current, Known::Mine, Fate::Unknown, false, Swept::Stays),
            (DirKind::Current, Known::Others, Fate::Unknown, false, Swept::Close),
            (DirKind::Current, Known::Others, Fate::Unknown, true, Swept::Stays),
            (DirKind::Current, Known::No, Fate::Unknown, true, Swept::StaysUnknown),
            (DirKind::Current, Known::No, Fate::Deleted, true, Swept::StaysUnknown),
            (DirKind::Current, Known::No, Fate::Leaving, false, Swept::Stays),
            (DirKind::Current, Known::No, Fate::Deleted, false, Swept::Delete),
            (DirKind::Current, Known::No, Fate::Unknown, false, Swept::PutAside),
        ];
        for (kind, known, fate, log_was_cut, expected) in table {
            let swept = sweep(kind, known, fate, log_was_cut);
            assert_eq!(swept, expected, "{kind:?} {known:?} {fate:?} {log_was_cut}");
        }
    }

    fn config(retention_ms: i64, retention_bytes: i64) -> LogConfig {
        LogConfig { retention_ms: DurationMs(retention_ms), retention_bytes, ..LogConfig::default() }
    }

    fn segments(sizes: &[u64]) -> Vec<SegmentFile> {
        let file = |(at, &bytes): (usize, &u64)| SegmentFile {
            base: Some(at as i64 * 10),
            bytes,
            modified: TimestampMs(1000 + at as i64),
        };
        sizes.iter().enumerate().map(file).collect()
    }

    #[test]
    fn retention_is_due_by_age_by_size_and_by_deleted_records() {
        let files = segments(&[0, 100, 50]);
        let is_due =
            |config: &LogConfig, start, now| retention_is_due(&files, start, config, TimestampMs(now));
        assert!(!is_due(&config(500, -1), None, 1501), "the first that is not empty counts");
        assert!(is_due(&config(500, -1), None, 1502));
        assert!(!is_due(&config(-1, 150), None, 9999));
        assert!(is_due(&config(-1, 149), None, 9999));
        assert!(!is_due(&config(-1, -1), Some(Offset(9)), 9999));
        assert!(is_due(&config(-1, -1), Some(Offset(10)), 9999));
    }

    #[test]
    fn compacted_partition_has_no_limits() {
        let compacted = LogConfig { cleanup: CleanupPolicy { delete: false, compact: true }, ..config(0, 0) };
        assert!(!has_retention(&compacted, None));
        assert!(has_retention(&compacted, Some(Offset(3))));
        assert!(!retention_is_due(&segments(&[100]), None, &compacted, TimestampMs(i64::MAX)));
    }
}
