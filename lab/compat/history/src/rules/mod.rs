//! The rules, one file each, in folders by what they are about, and what a rule is.
//!
//! A rule looks at all the facts, says how many things it judged (a rule that had nothing to judge has not held, it was
//! not asked), and tells what it found. A9 tells and never fails: Kafka isolates no writes.

mod cluster;
mod consumers;
mod records;
mod transactions;

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
    records::a01_lost_write::RULE,
    records::a02_unseen::RULE,
    records::a03_duplicate::RULE,
    records::a04_inconsistent_offset::RULE,
    records::a05_wrong_offset::RULE,
    transactions::a06_aborted_read::RULE,
    transactions::a07_torn_transaction::RULE,
    transactions::a08_circular_flow::RULE,
    transactions::a09_write_cycle::RULE,
    transactions::a10_precommitted_read::RULE,
    consumers::a11_poll_skip::RULE,
    consumers::a12_consumer_skip::RULE,
    records::a13_send_order::RULE,
    consumers::a14_committed_offset::RULE,
    consumers::a15_watermark_regress::RULE,
    records::a16_replica_divergence::RULE,
    records::a17_compaction::RULE,
    cluster::a18_metadata::RULE,
    consumers::a19_share_groups::RULE,
    cluster::a20_liveness::RULE,
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
