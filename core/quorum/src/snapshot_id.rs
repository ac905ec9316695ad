//! A snapshot's name: where it ends, and in which epoch. Source: KIP-630; Kafka `Snapshots`.

use barnabas_base::{LeaderEpoch, Offset};

/// What a snapshot stands for: everything below `end`, the last of it written in `epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    pub end: Offset,
    pub epoch: LeaderEpoch,
}

impl SnapshotId {
    /// What `storage format` writes: no offset is behind it, it says how to start (KIP-1170).
    pub const BOOTSTRAP: Self = Self { end: Offset::ZERO, epoch: LeaderEpoch(0) };

    /// `00000000000000000042-0000000003.checkpoint`
    pub fn file_name(self) -> String {
        format!("{:020}-{:010}.checkpoint", self.end, self.epoch)
    }

    /// Reads a file's name; `None` for anything else in the directory, unfinished (`.part`) and deleted ones too.
    pub fn parse(name: &str) -> Option<Self> {
        let (end, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
        let digits =
            |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(end, 20) || !digits(epoch, 10) {
            return None;
        }
        Some(Self { end: Offset(end.parse().ok()?), epoch: LeaderEpoch(epoch.parse().ok()?) })
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:020}-{:010}", self.end, self.epoch)
    }
}
