//! `leader-epoch-checkpoint`: which leader epoch began at which offset, as text beside the segments.
//!
//! Can be rebuilt from the batches' headers. Source: Kafka `LeaderEpochCheckpointFile`.

use barnabas_base::{EpochEntry, LeaderEpoch, LeaderEpochs, Offset};

use crate::checkpoints::text;

pub(crate) const FILE_NAME: &str = "leader-epoch-checkpoint";

pub(crate) fn render(epochs: &LeaderEpochs) -> String {
    let line = |entry: &EpochEntry| format!("{} {}", entry.epoch, entry.start);
    text::render(epochs.entries().iter().map(line))
}

pub(crate) fn parse(text: &[u8]) -> Result<LeaderEpochs, String> {
    if text.last() != Some(&b'\n') {
        // Its last number may be cut off as well, and a number still.
        return Err("it ends within a line".to_owned());
    }
    let entries = text::parse(text, |line| {
        let (epoch, start) = line.split_once(char::is_whitespace)?;
        let (epoch, start) = (epoch.parse().ok()?, start.trim().parse().ok()?);
        (epoch >= 0 && start >= 0).then_some(EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) })
    })?;
    LeaderEpochs::from_entries(entries).ok_or_else(|| "its epochs do not rise".to_owned())
}
