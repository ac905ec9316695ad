//! The broker's fetch sessions (KIP-227), shared by all its connections.
//!
//! One shard for each worker. A session begins in the shard of the worker that serves its client, and its id names the
//! shard. A client that reconnects, or whose connection moves to another worker, goes on with its session.
//!
//! A fetch locks one shard twice, for as long as it takes to plan it and to compare its answer with the session. A
//! worker mostly locks its own shard, which no other thread wants then.
//!
//! Source: Kafka `FetchSessionCache`, which has shards with a lock each, too.

use barnabas_api::k01_fetch::FetchSessions;
use barnabas_base::TimestampMs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct FetchSessionShards {
    shards: Box<[Mutex<FetchSessions>]>,
}

impl FetchSessionShards {
    /// At most about `sessions_max` sessions, `max.incremental.fetch.session.cache.slots`, in one shard for each of
    /// `workers`.
    pub fn new(sessions_max: usize, workers: usize) -> Self {
        let workers = u16::try_from(workers).unwrap_or(u16::MAX).max(1);
        let of_each = sessions_max.div_ceil(usize::from(workers));
        let shard = |owner| Mutex::new(FetchSessions::new(of_each, owner, workers));
        Self { shards: (0..workers).map(shard).collect() }
    }

    /// The shard of session `id`. A request without a session uses the shard of its `worker`.
    pub fn of(&self, id: i32, worker: usize) -> MutexGuard<'_, FetchSessions> {
        let named = usize::try_from(id).ok().filter(|id| *id > 0);
        let place = named.unwrap_or(worker) % self.shards.len();
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the sessions go that were not used for two minutes: a client that wanted one found no room for it.
    pub fn evict_stale(&self, now: TimestampMs) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).evict_stale(now);
        }
    }

    /// What all shards hold together, for the metrics.
    pub fn counts(&self) -> FetchSessionCounts {
        let mut counts = FetchSessionCounts::default();
        for shard in &self.shards {
            let sessions = shard.lock().unwrap_or_else(PoisonError::into_inner);
            counts.sessions += sessions.len() as u64;
            counts.partitions += sessions.partition_count() as u64;
            counts.evictions += sessions.evictions();
        }
        counts
    }
}

/// Kafka's metrics of its `FetchSessionCache`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FetchSessionCounts {
    pub sessions: u64,
    /// Partitions of all sessions.
    pub partitions: u64,
    /// Sessions evicted since the start.
    pub evictions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_names_its_shard_whatever_worker_asks() {
        let shards = FetchSessionShards::new(10, 3);
        let place = |id, worker| std::ptr::from_ref(&*shards.of(id, worker)) as usize;
        let own: Vec<usize> = (0..3).map(|worker| place(0, worker)).collect();
        assert!(own[0] != own[1] && own[1] != own[2] && own[0] != own[2]);
        for id in 1..30 {
            assert_eq!([0, 1, 2].map(|worker| place(id, worker)), [own[id as usize % 3]; 3], "id {id}");
        }
        assert_eq!(place(-1, 2), own[2], "a negative id names no session");
    }
}
