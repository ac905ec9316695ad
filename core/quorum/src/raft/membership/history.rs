//! Who votes at which offset: the voters and the level of `kraft.version` as the control records of log and snapshot
//! set them.
//!
//! A member goes by the newest voters in its log, committed or not (KIP-853); truncation takes them back, a snapshot
//! holds those at its end.
//!
//! Source: Kafka `VoterSetHistory`, `KRaftControlRecordStateMachine`.

use barnabas_base::{LeaderEpoch, Offset};

use crate::batches::Control;
use crate::voters::Voters;

/// Voters and levels by the offset of their record, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    fixed: Voters,
    voters: Vec<(Offset, Voters)>,
    levels: Vec<(Offset, i16)>,
}

/// The offset that what the format tool wrote counts as written at.
const OF_BOOTSTRAP: Offset = Offset::NONE;

impl History {
    /// `fixed`: `controller.quorum.voters`, which count as long as no record names others.
    pub fn new(fixed: Voters) -> Self {
        Self { fixed, voters: Vec::new(), levels: Vec::new() }
    }

    /// The voters that count now.
    pub fn voters(&self) -> &Voters {
        self.voters.last().map_or(&self.fixed, |(_, voters)| voters)
    }

    /// Where the voters that count now were written: `None` if no record says so, −1 if only the format tool's does.
    pub fn voters_at(&self) -> Option<Offset> {
        self.voters.last().map(|&(at, _)| at)
    }

    /// The voters of a snapshot that ends at `end`; `None` where no record names any.
    pub fn voters_before(&self, end: Offset) -> Option<&Voters> {
        self.voters.iter().rev().find(|&&(at, _)| at < end).map(|(_, voters)| voters)
    }

    /// The level of `kraft.version`.
    pub fn level(&self) -> i16 {
        self.levels.last().map_or(0, |&(_, level)| level)
    }

    /// The level of a snapshot that ends at `end`.
    pub fn level_before(&self, end: Offset) -> i16 {
        self.levels.iter().rev().find(|&&(at, _)| at < end).map_or(0, |&(_, level)| level)
    }

    /// Takes a control record of the log. Returns whether the voters changed.
    pub fn apply(&mut self, at: Offset, control: &Control) -> bool {
        match control {
            Control::KRaftVersion(record) => self.levels.push((at, record.kraft_version)),
            Control::Voters(record) => self.voters.push((at, Voters::from_record(record))),
            Control::LeaderChange(_) | Control::SnapshotHeader(_) | Control::SnapshotFooter(_) => {}
        }
        matches!(control, Control::Voters(_))
    }

    /// Starts again from a snapshot that ends at `end` (zero: the format tool's).
    pub fn reset(&mut self, end: Offset, level: i16, voters: Option<Voters>) {
        let at = if end == Offset::ZERO { OF_BOOTSTRAP } else { Offset(end.get() - 1) };
        self.levels = vec![(at, level)];
        self.voters = voters.map(|voters| (at, voters)).into_iter().collect();
    }

    /// The log was cut off at `end`.
    pub fn truncate(&mut self, end: Offset) {
        self.voters.retain(|&(at, _)| at < end);
        self.levels.retain(|&(at, _)| at < end);
    }

    /// The log begins at `start` now: of what lies below only the last counts.
    pub fn start_at(&mut self, start: Offset) {
        keep_last_below(&mut self.voters, start);
        keep_last_below(&mut self.levels, start);
    }
}

fn keep_last_below<T>(entries: &mut Vec<(Offset, T)>, start: Offset) {
    let below = entries.iter().take_while(|&&(at, _)| at < start).count();
    entries.drain(..below.saturating_sub(1));
}

/// The epoch before any record was written.
pub(crate) const NO_EPOCH: LeaderEpoch = LeaderEpoch(0);
