//! How new the committed log is: up to which moment this member knows all that was committed.
//!
//! An answered Fetch is no proof by itself: a leader that was replaced and has not heard of it answers as before. It
//! commits nothing any more, though. So the proof has two parts:
//! 1. at some moment the leader of an epoch had written nothing at or behind an offset: it is this member, or a Fetch
//!    from that offset that was sent then was answered without records
//! 2. later something behind that offset is committed in the same epoch: a majority still followed this leader when it
//!    wrote that, so no later leader had committed anything at the moment of (1)
//!
//! All that was committed by the moment of (1) lies below that offset. No clock but this member's own is needed, and
//! neither slow messages nor hanging processes matter. The leader's no-op records (`metadata.max.idle.interval.ms`)
//! bring the proof about where nothing else is written: each is fetched, and an answer without records carries its
//! commit (KIP-1166).
//!
//! Neighbours: shell/broker/src/node/cluster/known_by.rs, which keeps it for the partitions.

use barnabas_base::{LeaderEpoch, MonotonicMs, Offset};

/// See the module's header.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The leader of the epoch had written nothing at or behind the offset at that moment.
    unwritten: Option<(LeaderEpoch, Offset, MonotonicMs)>,
    /// All that was committed by the moment lies below the offset.
    proved: Option<(Offset, MonotonicMs)>,
}

impl Known {
    /// The leader of `epoch` had written nothing at or behind `from` at the moment `at`. The oldest such moment of an
    /// epoch is kept until it is proved.
    pub fn unwritten(&mut self, epoch: LeaderEpoch, from: Offset, at: MonotonicMs) {
        if self.unwritten.is_none_or(|(known, ..)| known != epoch) {
            self.unwritten = Some((epoch, from, at));
        }
    }

    /// Everything below `high_watermark` is committed, by the leader of `epoch`.
    pub fn committed(&mut self, epoch: LeaderEpoch, high_watermark: Offset) {
        if let Some((_, from, at)) =
            self.unwritten.take_if(|(known, from, _)| *known == epoch && *from < high_watermark)
        {
            self.proved = Some((from, at));
        }
    }

    pub fn proved(&self) -> Option<(Offset, MonotonicMs)> {
        self.proved
    }
}
