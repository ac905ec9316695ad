//! The rules, one file each, and what a rule is.
//!
//! A rule looks at all the facts, says how many things it judged (a rule that had nothing to judge has not held, it was
//! not asked), and tells what it found. A9 tells and never fails: Kafka isolates no writes.

mod a01_lost_write;
mod a02_unseen;
mod a03_duplicate;
mod a04_inconsistent_offset;
mod a05_wrong_offset;
mod a06_aborted_read;
mod a07_torn_transaction;
mod a08_circular_flow;
mod a09_write_cycle;
mod a10_precommitted_read;
mod a11_poll_skip;
mod a12_consumer_skip;
mod a13_send_order;
mod a14_committed_offset;
mod a15_watermark_regress;
mod a16_replica_divergence;
mod a17_compaction;
mod a18_metadata;
mod a19_share_groups;
mod a20_liveness;

use crate::facts::Facts;

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name in the reliability reference.
    pub id: &'static str,
    /// What it is that must not be.
    pub anomaly: &'static str,
    /// What `judged` counts.
    pub unit: &'static str,
    /// Whether a finding fails the run.
    pub is_fatal: bool,
    pub check: fn(&Facts, &mut Findings),
}

/// All of them, in order.
pub const RULES: &[Rule] = &[
    a01_lost_write::RULE,
    a02_unseen::RULE,
    a03_duplicate::RULE,
    a04_inconsistent_offset::RULE,
    a05_wrong_offset::RULE,
    a06_aborted_read::RULE,
    a07_torn_transaction::RULE,
    a08_circular_flow::RULE,
    a09_write_cycle::RULE,
    a10_precommitted_read::RULE,
    a11_poll_skip::RULE,
    a12_consumer_skip::RULE,
    a13_send_order::RULE,
    a14_committed_offset::RULE,
    a15_watermark_regress::RULE,
    a16_replica_divergence::RULE,
    a17_compaction::RULE,
    a18_metadata::RULE,
    a19_share_groups::RULE,
    a20_liveness::RULE,
];

/// So many findings of one rule are kept; all are counted.
const KEPT_MAX: usize = 20;

/// One thing that must not be, in words, and the values by which its lines are found in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub text: String,
    pub values: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct Findings {
    pub judged: u64,
    pub total: u64,
    pub kept: Vec<Finding>,
}

impl Findings {
    pub fn judge(&mut self) {
        self.judged += 1;
    }

    pub fn find(&mut self, values: &[u64], text: impl FnOnce() -> String) {
        self.total += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(Finding { text: text(), values: values.to_vec() });
        }
    }
}
