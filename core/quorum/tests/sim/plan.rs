//! What a seed stands for: how many nodes, how bad the network, how often something breaks.

use super::rng::Rng;

#[derive(Debug, Clone)]
pub struct Plan {
    /// Voters at the beginning.
    pub voters: i32,
    /// Controllers beside them, which may become voters.
    pub spares: i32,
    /// Brokers, which only observe.
    pub brokers: i32,
    /// Whether voters stand in the log (`kraft.version` 1).
    pub dynamic: bool,
    /// Whether voters who stand in files are brought into the log on the way (`kraft.version` 0 → 1).
    pub raises: bool,
    pub auto_join: bool,
    pub loss: u64,
    pub duplicates: u64,
    pub delay_max: u64,
    /// Mean time between faults, ms.
    pub fault_every: u64,
    /// Weights: crash, cut, heal, pause.
    pub faults: [u64; 4],
    /// Chance that a crash comes in the middle of carrying out effects, per million steps.
    pub crash_within: u64,
    pub slow_sync: u64,
    pub client_every: u64,
    pub admin_every: u64,
    /// Batches between snapshots; 0: none.
    pub snapshot_every: u64,
    pub fetch_bytes_max: i32,
    pub safety_ms: u64,
    /// The longest time until a node notices that a peer closed its connection, ms.
    pub notices_within_ms: u64,
    /// Election and fetch timeouts.
    pub timeouts_ms: (i64, i64),
}

impl Plan {
    pub fn of(rng: &mut Rng) -> Self {
        let dynamic = rng.permille(600);
        let raises = !dynamic && rng.permille(500);
        let voters = if rng.permille(600) { 3 } else { rng.between(1, 7) as i32 };
        let rough = rng.below(4);
        Self {
            voters,
            spares: if dynamic || raises { rng.between(0, 2) as i32 } else { 0 },
            brokers: rng.below(2) as i32,
            dynamic,
            raises,
            auto_join: rng.permille(300),
            loss: [0, 10, 50, 150][rng.below(4) as usize],
            duplicates: [0, 20, 100][rng.below(3) as usize],
            delay_max: [2, 10, 60, 400][rng.below(4) as usize],
            fault_every: [150, 400, 1_000, 4_000][rough as usize],
            faults: [rng.between(1, 8), rng.between(0, 6), rng.between(1, 4), rng.between(0, 3)],
            crash_within: [0, 500, 3_000][rng.below(3) as usize],
            slow_sync: [0, 20, 100][rng.below(3) as usize],
            client_every: [20, 60, 200][rng.below(3) as usize],
            admin_every: [100, 300, 1_000][rng.below(3) as usize],
            snapshot_every: [0, 10, 40][rng.below(3) as usize],
            fetch_bytes_max: [100, 300, 1 << 20][rng.below(3) as usize],
            safety_ms: rng.between(4_000, 12_000),
            notices_within_ms: 5,
            timeouts_ms: (300, 600),
        }
    }

    /// Voters in one room, Kafka's timeouts, and nothing that breaks.
    pub fn quiet(voters: i32) -> Self {
        Self {
            voters,
            spares: 0,
            brokers: 0,
            dynamic: true,
            raises: false,
            auto_join: false,
            loss: 0,
            duplicates: 0,
            delay_max: 1,
            fault_every: u64::MAX / 4,
            faults: [0, 0, 1, 0],
            crash_within: 0,
            slow_sync: 0,
            client_every: 5,
            admin_every: u64::MAX / 4,
            snapshot_every: 0,
            fetch_bytes_max: 1 << 20,
            safety_ms: 5_000,
            notices_within_ms: 5,
            timeouts_ms: (1_000, 2_000),
        }
    }
}
