//! The metrics of the metadata quorum: written by the quorum's thread alone, read by the exporter.

use barnabas_base::{BrokerId, Offset};
use barnabas_metrics::histogram::{Histogram, Scale};
use barnabas_net::links::Traffic;
use barnabas_quorum::raft::RoleName;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU64, Ordering};

/// The quorum's figures, in nanoseconds.
#[derive(Debug)]
pub struct Figures {
    /// From a leader's append to its commitment.
    pub commits: Histogram,
    /// The time without a leader.
    pub elections: Histogram,
    pub high_watermark: AtomicI64,
    pub voters: AtomicU64,
    role: AtomicU8,
    /// -1: there is none.
    voted: AtomicI32,
    /// What goes to other members of the quorum, and comes back.
    pub traffic: Arc<Traffic>,
}

/// In the order in which [`Figures`] keeps them.
const ROLES: [RoleName; 7] = [
    RoleName::Unattached,
    RoleName::Prospective,
    RoleName::Candidate,
    RoleName::Leader,
    RoleName::Follower,
    RoleName::Resigned,
    RoleName::Observer,
];

/// How the quorum stands here.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub high_watermark: Offset,
    pub voters: u64,
    pub role: RoleName,
    pub voted: Option<BrokerId>,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            commits: Histogram::new(Scale::Nanoseconds),
            elections: Histogram::new(Scale::Nanoseconds),
            high_watermark: AtomicI64::new(Offset::NONE.get()),
            voters: AtomicU64::default(),
            role: AtomicU8::default(),
            voted: AtomicI32::new(-1),
            traffic: Arc::default(),
        }
    }
}

impl Figures {
    /// What this member is now, and whom it voted for.
    pub fn stands(&self, role: RoleName, voted: Option<BrokerId>) {
        let place = ROLES.iter().position(|known| *known == role).unwrap_or(0);
        self.role.store(place as u8, Ordering::Relaxed);
        self.voted.store(voted.map_or(-1, BrokerId::get), Ordering::Relaxed);
    }

    pub fn standing(&self) -> Standing {
        Standing {
            high_watermark: Offset(self.high_watermark.load(Ordering::Relaxed)),
            voters: self.voters.load(Ordering::Relaxed),
            role: ROLES[usize::from(self.role.load(Ordering::Relaxed)).min(ROLES.len() - 1)],
            voted: Some(self.voted.load(Ordering::Relaxed)).filter(|&id| id >= 0).map(BrokerId),
        }
    }
}
