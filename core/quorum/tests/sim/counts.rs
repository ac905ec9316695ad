//! What a run amounted to.

/// What a run amounted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub steps: u64,
    pub simulated_ms: u64,
    pub crashes: u64,
    pub cuts: u64,
    pub pauses: u64,
    pub elections: u64,
    pub committed: u64,
    pub voter_changes: u64,
    pub snapshots_fetched: u64,
    pub truncations: u64,
    pub replaced: u64,
    /// Quorums whose voters were brought from files into the log.
    pub raised: u64,
    /// Requests, answers, syncs, snapshots stored, ticks, others.
    pub events: [u64; 6],
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.simulated_ms += other.simulated_ms;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.pauses += other.pauses;
        self.elections += other.elections;
        self.committed += other.committed;
        self.voter_changes += other.voter_changes;
        self.snapshots_fetched += other.snapshots_fetched;
        self.truncations += other.truncations;
        self.replaced += other.replaced;
        self.raised += other.raised;
        self.events.iter_mut().zip(other.events).for_each(|(mine, other)| *mine += other);
    }
}
