//! What readers of one replica may see by now, and what they were promised.
//!
//! Readers see what is durable. A producer with `acks=1` or `acks=0` counts its batch as written before that, so a read
//! that arrives afterwards waits until everything below the promised end is durable.
//!
//! Neighbours: shell/broker/src/mailbox/fetch_wait.rs, which wakes waiting fetches;
//! shell/broker/src/worker/partition_worker/reading/await_durable.rs, which holds reads.

use barnabas_base::Offset;
use barnabas_partition::Partition;

use crate::{Committed, Effect, Replica};

/// See the file's header.
#[derive(Debug)]
pub struct Readers {
    /// Producers with `acks=1` and `acks=0` count everything below as written.
    pub(crate) promised_end: Offset,
    /// Bytes appended that were not announced to waiting fetches.
    pub(crate) unannounced_bytes: i64,
    /// The high watermark at the last announcement.
    announced_to: Offset,
    /// The last stable offset at the last announcement, and whether a transaction held it up.
    announced_stable: (Offset, bool),
}

impl Readers {
    pub(crate) fn new(partition: &Partition) -> Self {
        Self {
            promised_end: Offset::ZERO,
            unannounced_bytes: 0,
            announced_to: partition.high_watermark(),
            announced_stable: stable(partition),
        }
    }

    /// The log was truncated and ends at `end`.
    pub(crate) fn restart(&mut self, partition: &Partition, end: Offset) {
        self.announced_stable = stable(partition);
        self.announced_to = partition.high_watermark();
        self.unannounced_bytes = 0;
        self.promised_end = self.promised_end.min(end);
    }
}

impl Replica {
    /// Up to where records must be durable before a reader that arrives now is served. `None`: they are.
    pub fn owed_to_readers(&self) -> Option<Offset> {
        let is_owed = self.readers.promised_end > self.partition.durable_end() && !self.partition.is_failed();
        is_owed.then_some(self.readers.promised_end)
    }

    /// Whether a reader that waits for `end` may be served: its records are durable, or never will be.
    pub fn has_kept(&self, end: Offset) -> bool {
        self.partition.durable_end() >= end || self.partition.is_failed()
    }

    /// The high watermark or the last stable offset moved: announces how much more can be read.
    ///
    /// The bytes between two high watermarks are not known. They are taken as a share of the bytes that were appended
    /// since, in proportion to the offsets.
    pub(crate) fn announce(&mut self, effects: &mut Vec<Effect>) {
        let readers = &mut self.readers;
        let (to, end) = (self.partition.high_watermark(), self.partition.log_end());
        let (safe, all) = (to.get() - readers.announced_to.get(), end.get() - readers.announced_to.get());
        readers.announced_to = to;
        let share = || i128::from(readers.unannounced_bytes) * i128::from(safe) / i128::from(all.max(1));
        let bytes = match safe {
            ..=0 => 0,
            _ if to >= end => readers.unannounced_bytes.max(1),
            _ => i64::try_from(share()).unwrap_or(i64::MAX).max(1),
        };
        readers.unannounced_bytes = readers.unannounced_bytes.saturating_sub(bytes).max(0);
        let now = stable(&self.partition);
        let (before, was_held_up) = std::mem::replace(&mut readers.announced_stable, now);
        let committed = match (now.0 > before, was_held_up) {
            (false, _) => Committed::Nothing,
            (true, false) => Committed::Bytes(bytes),
            (true, true) => Committed::Unknown,
        };
        if bytes > 0 || committed == Committed::Unknown {
            effects.push(Effect::Readable { bytes, committed });
        }
    }
}

/// The last stable offset, and whether a transaction holds it up.
fn stable(partition: &Partition) -> (Offset, bool) {
    (partition.last_stable(), partition.last_stable() < partition.high_watermark())
}
