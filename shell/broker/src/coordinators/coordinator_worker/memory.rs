//! What the coordinators of a node hold in memory, over all workers.
//!
//! Each shard knows what it holds itself ([`Room`]). Its host adds that to the node's count, and tells a shard before a
//! request what all others hold.
//!
//! Always true: the node's count is the sum of what its shards held when each last said something; a shard that goes
//! gives back its own.

use crate::node::Node;
use barnabas_base::MonotonicMs;
use barnabas_coordinator::{Now, Room};
use barnabas_metadata::config::{BrokerConfig, ConfigSource};
use std::cell::Cell;
use std::sync::Arc;

const KEY: &str = "groups.memory.max.bytes";
/// Where the key is not set, the bound is this part of the machine's memory, and no more than the key's default.
const PART: u64 = 8;
const LEAST: usize = 1 << 20;

thread_local! {
    static WARNED_AT: Cell<Option<MonotonicMs>> = const { Cell::new(None) };
}

/// What is counted of one shard.
#[derive(Debug)]
pub(super) struct Counted {
    node: Arc<Node>,
    bytes: usize,
}

impl Counted {
    pub fn new(node: &Arc<Node>) -> Self {
        Self { node: node.clone(), bytes: 0 }
    }

    /// What the shard holds now.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.node.workers.coordinator_memory.change(self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// What the node's other shards hold.
    pub fn others(&self) -> usize {
        self.node.workers.coordinator_memory.besides(self.bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What all coordinators of the node may hold.
pub(super) fn bytes_max(config: &BrokerConfig, memory_bytes: u64) -> usize {
    let set = usize::try_from(config.long(KEY)).unwrap_or(usize::MAX);
    let is_default = config.levels(KEY).first().is_none_or(|level| level.source == ConfigSource::Default);
    if !is_default {
        return set;
    }
    usize::try_from(memory_bytes / PART).unwrap_or(usize::MAX).max(LEAST).min(set)
}

/// Says that a request was refused because coordinators hold all the memory that they may; once a minute for each
/// worker.
pub(super) fn warn_of_refusal(room: &Room, now: Now) {
    const EVERY_MS: u64 = 60_000;
    let is_due = WARNED_AT.with(|at| {
        let is_due = at.get().is_none_or(|at: MonotonicMs| now.mono.0 >= at.0 + EVERY_MS);
        if is_due {
            at.set(Some(now.mono));
        }
        is_due
    });
    if is_due {
        tracing::warn!(
            why = room.why(),
            "a coordinator refused a request because its memory limit is reached; raise the limit if its \
             groups and transactional ids are legitimate"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;
    use barnabas_metadata::config::StaticConfig;

    const MIB: u64 = 1 << 20;

    #[test]
    fn bound_is_an_eighth_of_the_memory_unless_it_is_set() {
        let config = |text: &str| {
            let lines = text.split_whitespace().filter_map(|line| line.split_once('='));
            let given = lines.map(|(name, value)| (Text::from(name), Text::from(value))).collect();
            BrokerConfig::new(StaticConfig::check(given).expect("settings").0)
        };
        let max = |config: &BrokerConfig, memory| bytes_max(config, memory) as u64;
        assert_eq!(max(&config(""), 1024 * MIB), 128 * MIB);
        assert_eq!(max(&config(""), 64 * 1024 * MIB), 256 * MIB);
        assert_eq!(max(&config("groups.memory.max.bytes=268435456"), 1024 * MIB), 256 * MIB);
    }
}
