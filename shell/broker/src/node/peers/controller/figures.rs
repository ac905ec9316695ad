//! The metrics of the metadata quorum: written by the quorum's thread alone, read by the exporter.

use barnabas_base::Offset;
use barnabas_metrics::histogram::{Histogram, Scale};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The quorum's figures, in nanoseconds.
#[derive(Debug)]
pub struct Figures {
    /// From a leader's append to its commitment.
    pub commits: Histogram,
    /// The time without a leader.
    pub elections: Histogram,
    pub high_watermark: AtomicI64,
    pub voters: AtomicU64,
}

/// How the quorum stands here.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub high_watermark: Offset,
    pub voters: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            commits: Histogram::new(Scale::Nanoseconds),
            elections: Histogram::new(Scale::Nanoseconds),
            high_watermark: AtomicI64::new(Offset::NONE.get()),
            voters: AtomicU64::default(),
        }
    }
}

impl Figures {
    pub fn standing(&self) -> Standing {
        Standing {
            high_watermark: Offset(self.high_watermark.load(Ordering::Relaxed)),
            voters: self.voters.load(Ordering::Relaxed),
        }
    }
}
