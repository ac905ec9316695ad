//! `dump-log`, as Kafka's `kafka-dump-log`: shows the files of a partition, of the metadata log, and of the
//! coordinators' topics.
//!
//! It reads files and connects to no broker. Records of the metadata log and of coordinators are shown as JSON, decoded
//! by core/decoders.
//!
//! | file | answers |
//! |---|---|
//! | `dump_log/segment.rs` | batches and records of a segment or a snapshot |
//! | `dump_log/decoder.rs` | keys and values, as text or by their type |
//! | `dump_log/journal.rs` | rounds and entries of a journal's file |
//! | `dump_log/indexes.rs` | the files beside a segment |
//!
//! Source: Kafka 4.3 `DumpLogSegments`.

mod decoder;
mod indexes;
mod journal;
mod segment;

use crate::command_line::args::{given, number, switch, text, value};
use crate::{ToolError, say, tell};
use barnabas_decoders::Internal;
use clap::{Arg, ArgMatches};
use decoder::Decoder;
use std::path::Path;

const DECODERS: [&str; 4] =
    ["offsets-decoder", "transaction-log-decoder", "cluster-metadata-decoder", "share-group-state-decoder"];

/// What is shown.
#[derive(Debug)]
pub struct Shown {
    /// Records too, not batches alone.
    pub records: bool,
    /// The lines of records without offset, time and sizes.
    pub without_metadata: bool,
    /// Keys and values, by this decoder.
    pub contents: Option<Decoder>,
    pub bytes_max: u64,
    /// Of indexes: whether their entries are printed, or only checked.
    pub index_entries: bool,
    /// Of indexes: only check whether a broker would rebuild them.
    pub sanity_only: bool,
}

pub fn flags() -> Vec<Arg> {
    vec![
        value(
            "files",
            "file1,file2",
            "The files: .log, .checkpoint, .index, .timeindex, .txnindex, .snapshot, barnabas-journal-00 …",
        )
        .required(true),
        switch("print-data-log", "Show keys and values as text"),
        switch("deep-iteration", "Show records, not batches alone"),
        switch(
            "skip-record-metadata",
            "Leave out the offset, time and sizes of records; and control records",
        ),
        switch("offsets-decoder", "Show records as those of __consumer_offsets"),
        switch("transaction-log-decoder", "Show records as those of __transaction_state"),
        switch("cluster-metadata-decoder", "Show records as those of __cluster_metadata"),
        switch("share-group-state-decoder", "Show records as those of __share_group_state"),
        value("max-bytes", "bytes", "Read at most so many bytes of a .log"),
        value("max-message-size", "bytes", "Without effect: batches of any size are read"),
        switch("index-sanity-check", "Only check whether a broker would rebuild the indexes"),
        switch("verify-index-only", "Only check the indexes against their .log"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let decoders = given(matches, &DECODERS);
    let contents = match decoders[..] {
        [] => matches.get_flag("print-data-log").then_some(Decoder::Text),
        ["offsets-decoder"] => Some(Decoder::Of(Internal::Groups)),
        ["transaction-log-decoder"] => Some(Decoder::Of(Internal::Transactions)),
        ["cluster-metadata-decoder"] => Some(Decoder::Of(Internal::Metadata)),
        ["share-group-state-decoder"] => Some(Decoder::Of(Internal::Shares)),
        [one, other, ..] => {
            return Err(ToolError::Usage(format!("--{one} cannot be used together with --{other}")));
        }
        [_] => None,
    };
    let shown = Shown {
        records: matches.get_flag("deep-iteration") || contents.is_some(),
        without_metadata: matches.get_flag("skip-record-metadata"),
        contents,
        bytes_max: number(matches, "max-bytes")?.unwrap_or(u64::MAX),
        index_entries: !matches.get_flag("verify-index-only"),
        sanity_only: matches.get_flag("index-sanity-check"),
    };
    number::<u32>(matches, "max-message-size")?;
    let mut complaints = Vec::new();
    for name in text(matches, "files").unwrap_or_default().split(',') {
        say(&format!("Dumping {name}"))?;
        let path = Path::new(name.trim());
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let found = match ending {
            "log" | "checkpoint" => segment::dump(path, &shown)?,
            "index" => indexes::offsets(path, &shown)?,
            "timeindex" => indexes::times(path, &shown)?,
            "txnindex" => indexes::transactions(path)?,
            "snapshot" => indexes::producers(path)?,
            _ if journal::is_journal(path) => journal::dump(path, &shown)?,
            _ => {
                tell(&format!("Ignoring unknown file {name}"));
                Vec::new()
            }
        };
        complaints.extend(found);
    }
    // As in Kafka's tool, after everything else.
    complaints.iter().for_each(|line| tell(line));
    Ok(())
}

/// An error of a file, with its name.
fn failed(path: &Path, why: impl std::fmt::Display) -> ToolError {
    ToolError::Usage(format!("{}: {why}", path.display()))
}

/// The base offset in the name of a file of a segment: `00000000000000000042.log`.
fn base_offset(path: &Path) -> Result<i64, ToolError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.parse().map_err(|_| {
        failed(path, "its name is not a segment's base offset. Example: 00000000000000000000.log")
    })
}

#[cfg(test)]
mod tests;
