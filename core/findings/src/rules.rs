//! The table of rules. Ids are those of the reference list; docs/DOCTOR.md shows each.
//!
//! | file | rules |
//! |---|---|
//! | `rules/cluster.rs` | C: quorum, leaders, placement, features, settings |
//! | `rules/replicas.rs` | C, T: replicas, racks and minimum of topics |
//! | `rules/topics.rs`, `rules/topics/` | T, D: what a topic's settings, records and growth say |
//! | `rules/groups.rs`, `rules/groups/` | G, N: groups |
//! | `rules/clients.rs`, `rules/clients/` | W: what clients do |
//! | `rules/nodes.rs`, `rules/nodes/` | O, D, N: the machine, disks and network of a node |
//! | `rules/reach.rs` | C, N: who answers, and who does not |
//! | `rules/security.rs` | S: who may do what, and how they prove it |

mod clients;
mod cluster;
mod groups;
mod nodes;
mod reach;
mod replicas;
mod security;
mod topics;
pub(crate) mod words;

use crate::facts::Facts;
use crate::report::{Report, Severity};
use std::collections::BTreeMap;

/// A rule: how it judges, and what its page says.
#[derive(Clone, Copy)]
pub struct Rule {
    pub id: &'static str,
    /// What it finds, as a noun.
    pub name: &'static str,
    /// Of most of its findings.
    pub severity: Severity,
    /// Where the figure comes from.
    pub evidence: &'static str,
    /// When it is a finding. `{}` stands for the limit.
    pub threshold: &'static str,
    pub limit: Option<Limit>,
    /// Why it matters and what to do.
    pub advice: &'static str,
    /// The command that mends it, as a pattern; empty where there is none.
    pub command: &'static str,
    pub judge: fn(&Facts, f64, &mut Report),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

impl Rule {
    /// The threshold with the rule's own limit in it.
    pub fn threshold_text(&self) -> String {
        self.threshold_with(self.limit.map_or(0.0, |limit| limit.default))
    }

    /// The threshold with the limit that it was judged by.
    pub fn threshold_with(&self, limit: f64) -> String {
        self.threshold.replace("{}", &limit.to_string())
    }
}

/// The number at which a rule begins to find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    pub default: f64,
}

const fn limit(default: f64) -> Option<Limit> {
    Some(Limit { default })
}

/// All rules, in the order in which they are judged.
pub const RULES: &[Rule] = &[
    cluster::VOTERS,
    cluster::VOTER_LAG,
    cluster::PREFERRED,
    cluster::UNEQUAL,
    replicas::ONE_RACK,
    replicas::UNDER_REPLICATED,
    cluster::ISR_FLAPS,
    cluster::UNCLEAN,
    cluster::FEATURES,
    cluster::THROTTLE,
    cluster::FENCED,
    cluster::SETTINGS_DIFFER,
    replicas::INTERNAL_SINGLE,
    reach::NO_LEADER,
    reach::SILENT,
    nodes::CPU,
    nodes::QUOTA,
    nodes::WORKERS,
    nodes::REQUEST_MEMORY,
    nodes::SWAPPED,
    nodes::DESCRIPTORS,
    nodes::CLOCK,
    nodes::TIME,
    nodes::SYNC,
    nodes::SATURATED,
    nodes::SMALL_ROUNDS,
    nodes::WRITE_CACHE,
    nodes::SCHEDULER,
    nodes::FILE_SYSTEM,
    topics::FULL_ON_A_DATE,
    topics::NEVER_FITS,
    nodes::ROOM,
    nodes::INODES,
    nodes::SHARED_DEVICE,
    nodes::OFFLINE_DIR,
    nodes::UNCLEANABLE,
    nodes::SLOWEST_DISK,
    nodes::MTU,
    nodes::RETRANSMITS,
    nodes::INTERFACE,
    nodes::LISTEN_DROPS,
    reach::UNREACHABLE,
    nodes::CHURN,
    nodes::CONNECTIONS,
    groups::ACROSS_RACKS,
    replicas::SINGLE,
    replicas::MINIMUM,
    topics::UNCLEAN_ALLOWED,
    topics::UNUSED,
    topics::HOT_PARTITION,
    topics::HOT_KEY,
    topics::IDLE_PARTITIONS,
    topics::LARGE_RECORDS,
    topics::TINY_SEGMENTS,
    topics::FUTURE,
    topics::NEVER_COMPACTED,
    topics::FOR_EVER,
    clients::SMALL_BATCHES,
    clients::NOT_COMPRESSED,
    clients::WEAK_ACKS,
    clients::NOT_IDEMPOTENT,
    clients::OLD_CLIENTS,
    clients::TINY_FETCHES,
    clients::COMMITS,
    clients::METADATA,
    clients::REFUSED,
    clients::OLD_TRANSACTION,
    clients::QUOTA,
    clients::DOES_NOT_READ,
    clients::NAMELESS,
    clients::NEW_PRODUCERS,
    groups::REBALANCES,
    groups::STUCK,
    groups::LOSING,
    groups::FALLING_BEHIND,
    groups::IDLE_MEMBERS,
    groups::POISON,
    groups::OUT_OF_RANGE,
    groups::EAGER,
    groups::SHARE_GROUPS,
    security::OPEN,
    security::DENIED,
    security::CERTIFICATES,
    security::WEAK_SCRAM,
    security::FAILED_LOGINS,
];

/// Rules whose facts a node has by itself: its metrics page and its settings.
pub const OF_A_NODE: &[&str] = &[
    "C7", "C8", "O1", "O2", "O3", "O4", "O5", "O6", "O8", "D1", "D2", "D3", "D4", "D5", "D6", "D9", "D10",
    "D11", "D12", "D13", "N2", "N3", "N4", "N7", "N8", "W1", "W3", "W5", "W7", "W8", "W9", "W10", "W12",
    "W13", "W14", "W15", "G1", "G11", "S1", "S2", "S3", "S5",
];

/// What these rules read of a node's settings.
pub const KEYS_OF_A_NODE: &[&str] = &[
    "allow.everyone.if.no.acl.found",
    "authorizer.class.name",
    "listener.security.protocol.map",
    "listeners",
    "max.connections",
    "min.insync.replicas",
];

/// The rule of this id, in any case of its letters.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// Limits that differ from the rules' own.
#[derive(Debug, Clone, Default)]
pub struct Limits(BTreeMap<&'static str, f64>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLimit;

impl Limits {
    /// # Errors
    /// There is no such rule, or it has no limit.
    pub fn set(&mut self, id: &str, value: f64) -> Result<(), UnknownLimit> {
        let rule = find(id).filter(|rule| rule.limit.is_some()).ok_or(UnknownLimit)?;
        self.0.insert(rule.id, value);
        Ok(())
    }

    /// The limit of a rule; 0 where it has none.
    pub fn of(&self, rule: &Rule) -> f64 {
        let default = rule.limit.map_or(0.0, |limit| limit.default);
        self.0.get(rule.id).copied().unwrap_or(default)
    }
}

#[cfg(test)]
mod tests;
