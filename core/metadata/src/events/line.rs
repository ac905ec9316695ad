//! A line about the cluster: how loud, and which words.

use barnabas_base::BrokerId;

/// Partitions that a line names.
pub(super) const NAMED_MAX: usize = 10;

/// A line to be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    pub text: String,
}

/// How loud a line is, the loudest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
}

pub(super) fn ids(ids: &[BrokerId]) -> String {
    format!("[{}]", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
