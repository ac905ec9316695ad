//! What a day has most of; and the days of compaction.

use barnabas_base::DurationMs;
use barnabas_coordinator::TransactionVersion;

use super::World;
use crate::host::{Compacting, Ways};
use crate::invariants::acknowledged_is_kept::compaction_keeps::Rules;

/// Longer than any day.
const EVER: DurationMs = DurationMs(1_000_000);
/// What a run has most of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Climate {
    /// A little of everything.
    Mixed,
    /// Bytes of segments are changed again and again, and stopped brokers start soon.
    Damage,
    /// Brokers learn of new metadata late.
    StaleMetadata,
    /// Segments are deleted by age and size, and records by DeleteRecords, while disks fill.
    Retention,
    /// Leaders change while replicas are repaired.
    Elections,
    /// Transaction coordinators change while their markers are on their way.
    MovingCoordinators,
    /// All topics are compacted, some by age and size as well.
    Compaction,
    /// Brokers have two log directories each, between which replicas move.
    Directories,
    /// `log.ack.durability=written`: no journal, and acknowledgements that wait for no sync.
    Written,
    /// Appends wait for journals and metadata, disks fill, and directories keep room back.
    Waiting,
    /// Damage comes to replicas that have to stay in the ISR, and files are restored in place.
    Aside,
    /// Files of brokers that are down are lost, or changed.
    Rot,
}

impl Climate {
    /// Of days of brokers, by the seed.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            1 | 5 => Self::Damage,
            3 | 7 => Self::StaleMetadata,
            4 => Self::Retention,
            6 => Self::Elections,
            _ => Self::Mixed,
        }
    }

    pub(super) fn ways(self, seed: u64) -> Ways {
        let one_in = |step: u64, n: u64| (seed / step).is_multiple_of(n);
        match self {
            Self::Directories => {
                Ways { directories: 2, sweeps: true, syncs_whole: one_in(1, 3), ..Ways::default() }
            }
            Self::Waiting => Ways {
                holds_appends: true,
                keeps_reserve: true,
                writes_inline: true,
                sweeps: true,
                syncs_whole: one_in(4, 2),
                retains: one_in(2, 2),
                directories: if one_in(1, 2) { 2 } else { 1 },
                ..Ways::default()
            },
            Self::Aside | Self::Rot => Ways { fetches_aside: true, sweeps: true, ..Ways::default() },
            Self::Written => Ways {
                acks_are_written: true,
                flush_messages: if one_in(1, 3) { 4 } else { 0 },
                preallocates: one_in(2, 2),
                direct_from: one_in(4, 2).then_some(500),
                rolls_by_time: one_in(8, 2),
                directories: if one_in(3, 3) { 2 } else { 1 },
                ..Ways::default()
            },
            _ => Ways::default(),
        }
    }

    /// By the word of the command line.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "mixed" => Some(Self::Mixed),
            "damage" => Some(Self::Damage),
            "stale-metadata" => Some(Self::StaleMetadata),
            "retention" => Some(Self::Retention),
            "elections" => Some(Self::Elections),
            "compaction" => Some(Self::Compaction),
            "directories" => Some(Self::Directories),
            "written" => Some(Self::Written),
            "waiting" => Some(Self::Waiting),
            "aside" => Some(Self::Aside),
            "rot" => Some(Self::Rot),
            _ => None,
        }
    }
}

impl World {
    /// A world of compacted topics, written to by idempotent producers or in transactions.
    pub fn compacted(seed: u64) -> Self {
        let in_transactions = !seed.is_multiple_of(2);
        let one_in = |step: u64, n: u64| (seed / step).is_multiple_of(n);
        let delete_retention = match seed / 2 % 4 {
            _ if in_transactions => EVER,
            0 | 1 => EVER,
            2 => DurationMs(150),
            _ => DurationMs(400),
        };
        let compacting = Compacting {
            deletes: !in_transactions && one_in(8, 4),
            delete_retention,
            min_lag: DurationMs(if one_in(16, 3) { 60 } else { 0 }),
            max_lag: if one_in(4, 3) { DurationMs(250) } else { DurationMs(i64::MAX) },
        };
        if !in_transactions {
            return Self::of_producers(seed, Climate::Compaction, Some(compacting));
        }
        let version = if one_in(2, 2) { TransactionVersion::V2 } else { TransactionVersion::V1 };
        let mut world = Self::of_transactions(seed, version);
        world.climate = Climate::Compaction;
        world.writers.iter_mut().for_each(|writer| writer.writes_keys = true);
        world.compact(Some(compacting));
        world
    }

    pub(super) fn compact(&mut self, compacts: Option<Compacting>) {
        self.compacts = compacts;
        let rules = |compacting: Compacting| Rules { delete_retention: compacting.delete_retention };
        self.judge.compaction = compacts.map(rules);
        for broker in &mut self.brokers {
            broker.compacts = compacts.is_some();
            if let Some(process) = &mut broker.process {
                process.host.compact(compacts);
            }
        }
    }
}
