//! Which file is harmed, and which other one of its kind it changes places with.

use super::harm::Harm;
use crate::Trouble;
use std::path::{Path, PathBuf};

/// How a file is found in the prepared directory.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// A path below the directory of all log directories; `*` in the directory's place: whichever holds it.
    At(&'static str),
    /// In the partition's directory, the file with this ending that comes `nth` from the front (0) or the end (−1).
    Nth(&'static str, &'static str, i32),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub which: Which,
    pub other: Option<Which>,
    /// Changed bytes shall hit the file's end.
    pub tail: bool,
    /// Records may be missing at the end of the log after an unclean stop, if the log says so: nothing vouches for
    /// them.
    pub may_cut: bool,
}

const fn row(name: &'static str, which: Which, other: Option<Which>) -> Target {
    Target { name, which, other, tail: false, may_cut: false }
}

const METADATA: &str = "__cluster_metadata-0";

pub const ROWS: &[Target] = &[
    row(".log (first)", Which::Nth("plain-0", ".log", 0), None),
    row(".log (sealed)", Which::Nth("plain-0", ".log", 1), Some(Which::Nth("other-0", ".log", 1))),
    row(".log (active)", Which::Nth("plain-0", ".log", -1), Some(Which::Nth("plain-1", ".log", -1))),
    Target {
        tail: true,
        may_cut: true,
        ..row(".log (active, last batch)", Which::Nth("plain-0", ".log", -1), None)
    },
    row(".index (sealed)", Which::Nth("plain-0", ".index", 1), Some(Which::Nth("plain-0", ".index", 2))),
    row(".index (active)", Which::Nth("plain-0", ".index", -1), Some(Which::Nth("plain-0", ".index", 1))),
    row(
        ".timeindex (sealed)",
        Which::Nth("plain-0", ".timeindex", 1),
        Some(Which::Nth("plain-0", ".timeindex", 2)),
    ),
    row(
        ".timeindex (active)",
        Which::Nth("plain-0", ".timeindex", -1),
        Some(Which::Nth("plain-0", ".timeindex", 1)),
    ),
    row(".txnindex", Which::Nth("txn-0", ".txnindex", 0), Some(Which::Nth("txn-0", ".txnindex", 1))),
    row(
        ".snapshot (producers)",
        Which::Nth("plain-0", ".snapshot", -1),
        Some(Which::Nth("other-0", ".snapshot", -1)),
    ),
    row(
        "leader-epoch-checkpoint",
        Which::At("*/plain-0/leader-epoch-checkpoint"),
        Some(Which::At("*/txn-0/leader-epoch-checkpoint")),
    ),
    row(
        "partition.metadata",
        Which::At("*/plain-0/partition.metadata"),
        Some(Which::At("*/other-0/partition.metadata")),
    ),
    row(
        "recovery-point-offset-checkpoint",
        Which::At("a/recovery-point-offset-checkpoint"),
        Some(Which::At("b/recovery-point-offset-checkpoint")),
    ),
    row(
        "replication-offset-checkpoint",
        Which::At("a/replication-offset-checkpoint"),
        Some(Which::At("b/replication-offset-checkpoint")),
    ),
    row(
        "log-start-offset-checkpoint (a)",
        Which::At("a/log-start-offset-checkpoint"),
        Some(Which::At("b/log-start-offset-checkpoint")),
    ),
    row(
        "log-start-offset-checkpoint (b)",
        Which::At("b/log-start-offset-checkpoint"),
        Some(Which::At("a/log-start-offset-checkpoint")),
    ),
    row(
        "cleaner-offset-checkpoint",
        Which::At("a/cleaner-offset-checkpoint"),
        Some(Which::At("b/cleaner-offset-checkpoint")),
    ),
    row("meta.properties", Which::At("a/meta.properties"), Some(Which::At("b/meta.properties"))),
    row("meta.properties (b)", Which::At("b/meta.properties"), None),
    row(
        ".kafka_cleanshutdown",
        Which::At("a/.kafka_cleanshutdown"),
        Some(Which::At("b/.kafka_cleanshutdown")),
    ),
    row(".lock", Which::At("a/.lock"), Some(Which::At("b/.lock"))),
    row("barnabas-journal-00", Which::At("a/barnabas-journal-00"), Some(Which::At("b/barnabas-journal-00"))),
    row("barnabas-journal-01", Which::At("a/barnabas-journal-01"), Some(Which::At("a/barnabas-journal-00"))),
    row("bootstrap.checkpoint", Which::At("a/bootstrap.checkpoint"), None),
    row("metadata .log", Which::Nth(METADATA, ".log", -1), Some(Which::Nth("plain-0", ".log", 0))),
    Target { tail: true, ..row("metadata .log (last batch)", Which::Nth(METADATA, ".log", -1), None) },
    row("metadata .index", Which::Nth(METADATA, ".index", -1), Some(Which::Nth("plain-0", ".index", 0))),
    row(
        "metadata .checkpoint (newest)",
        Which::Nth(METADATA, ".checkpoint", -1),
        Some(Which::Nth(METADATA, ".checkpoint", 0)),
    ),
    row("metadata .checkpoint (oldest)", Which::Nth(METADATA, ".checkpoint", 0), None),
    row(
        "metadata leader-epoch-checkpoint",
        Which::At("*/__cluster_metadata-0/leader-epoch-checkpoint"),
        Some(Which::At("*/plain-0/leader-epoch-checkpoint")),
    ),
    row(
        "metadata partition.metadata",
        Which::At("*/__cluster_metadata-0/partition.metadata"),
        Some(Which::At("*/plain-0/partition.metadata")),
    ),
    row("quorum-state", Which::At("*/__cluster_metadata-0/quorum-state"), None),
    row("disk-full.reserve", Which::At("*/__cluster_metadata-0/disk-full.reserve"), None),
    row(
        "__consumer_offsets .log",
        Which::Nth("__consumer_offsets-0", ".log", -1),
        Some(Which::Nth("plain-0", ".log", 0)),
    ),
    row(
        "__consumer_offsets .snapshot",
        Which::Nth("__consumer_offsets-0", ".snapshot", -1),
        Some(Which::Nth("other-0", ".snapshot", -1)),
    ),
];

/// What cannot be told from these files alone, and why: listed in docs/DAMAGE.md, and nothing else may be.
pub fn known(row: &str, harm: Harm, clean: bool) -> Option<&'static str> {
    match (row, harm, clean) {
        (".log (sealed)" | ".log (active)" | "__consumer_offsets .log", Harm::Swapped, _) => {
            Some("Kafka's segments do not say whose they are")
        }
        (".txnindex", Harm::Truncated | Harm::Swapped | Harm::Missing, true) => {
            Some("Kafka's index of aborted transactions has neither a count nor a checksum")
        }
        (name, Harm::Stale, false) if name.starts_with("barnabas-journal") => {
            Some("an older journal is whole; it is missed as far as the high watermarks' checkpoint reaches")
        }
        _ => None,
    }
}

impl Which {
    /// The file's path below `root`; `None` where there is none.
    pub fn find(self, root: &Path) -> Result<Option<PathBuf>, Trouble> {
        match self {
            Self::At(path) => Ok(candidates(path).map(|path| root.join(path)).find(|path| path.exists())),
            Self::Nth(partition, ending, nth) => {
                for dir in ["a", "b"] {
                    let dir = root.join(dir).join(partition);
                    if dir.exists() {
                        return nth_in(&dir, ending, nth);
                    }
                }
                Ok(None)
            }
        }
    }
}

fn candidates(path: &'static str) -> impl Iterator<Item = String> {
    ["a", "b"].into_iter().map(move |dir| path.replacen('*', dir, 1))
}

fn nth_in(dir: &Path, ending: &str, nth: i32) -> Result<Option<PathBuf>, Trouble> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    let at = if nth < 0 { found.len().checked_sub(nth.unsigned_abs() as usize) } else { Some(nth as usize) };
    Ok(at.and_then(|at| found.get(at).cloned()))
}
