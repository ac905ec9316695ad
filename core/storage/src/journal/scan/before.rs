//! What rounds before the replay point say: up to where segments are synced.
//!
//! Replay begins behind what is written back and synced. The files of the ring hold older rounds until they are
//! overwritten. The last that such a round says of a partition was written back and synced, so the partition's log
//! reaches that far, though `recovery-point-offset-checkpoint` says less: it is written once a minute at most, and on a
//! full disk not at all. Without this a start would take damage there for a torn tail and truncate the log.
//!
//! Always true: only rounds that follow one another up to the replay point count. One that is missing may have
//! truncated a log.

use std::sync::Arc;

use barnabas_base::{Map, Offset};

use super::{Found, Scan, next_in_file};
use crate::journal::error::JournalError;
use crate::journal::format::{RoundHeader, parse_entries};
use crate::journal::replay::PartitionReplay;
use crate::journal::types::{Entry, EntryKind, JournalPartition, Place};

/// Of partitions that older rounds name; those that have left since, or were emptied, are not in it.
type Ends = Map<Arc<JournalPartition>, Offset>;

impl Scan {
    /// The partitions that rounds before `replay_from` name and that are not in `replayed`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn written_back(
        &self,
        replay_from: Place,
        replayed: &[PartitionReplay],
    ) -> Result<Vec<PartitionReplay>, JournalError> {
        let mut ends = self.ends_before(replay_from)?;
        for replay in replayed {
            ends.remove(&replay.partition);
        }
        let mut written_back: Vec<PartitionReplay> = ends
            .into_iter()
            .map(|(partition, end)| PartitionReplay {
                synced_end: Some(end),
                ..PartitionReplay::new(partition)
            })
            .collect();
        written_back.sort_by(|a, b| a.partition.cmp(&b.partition));
        Ok(written_back)
    }

    fn ends_before(&self, replay_from: Place) -> Result<Ends, JournalError> {
        let mut ends = Ends::default();
        let mut before: Option<RoundHeader> = None;
        let mut lives: Vec<u64> = self.files.iter().filter_map(|file| Some(file.first?.place.life)).collect();
        lives.sort_unstable();
        for life in lives.into_iter().filter(|life| *life <= replay_from.life) {
            let mut at = Place { life, position: 0 };
            while let Some(found) = self.valid_at(at)? {
                let follows = before.is_some_and(|before| found.header.follows(&before));
                if !follows && at.position > 0 {
                    // Of an earlier filling of the file.
                    break;
                }
                if !follows {
                    ends.clear();
                }
                if at >= replay_from {
                    return Ok(ends);
                }
                if !note_ends(&mut ends, &found) {
                    ends.clear();
                }
                at = next_in_file(&found.header);
                before = Some(found.header);
            }
        }
        // The round that replay begins with does not follow.
        Ok(Ends::default())
    }
}

/// `false`: the round holds something else than entries.
fn note_ends(ends: &mut Ends, found: &Found) -> bool {
    let Some(entries) = parse_entries(&found.bytes, &found.header) else { return false };
    for Entry { partition, kind, .. } in entries {
        match kind {
            EntryKind::Records { end, .. } | EntryKind::Range { end, .. } | EntryKind::Truncate { end } => {
                ends.insert(partition, end);
            }
            EntryKind::Restart { .. } | EntryKind::Remove => {
                ends.remove(&partition);
            }
        }
    }
    true
}
