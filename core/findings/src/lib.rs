//! Which findings do these facts give: the rules of `barnabas doctor`.
//!
//! Pure: facts in ([`Facts`]), findings out ([`Report`]). It knows no protocol, socket, file or clock; edge/doctor
//! looks at the cluster and prints. A node judges itself by the rules of [`OF_A_NODE`], and [`Standing`] says what is
//! new (shell/broker/src/server/exporter/doctor.rs). docs/DOCTOR.md is written from [`RULES`].
//!
//! Always true:
//! 1. a rule that lacks a fact says so ([`Gap`]); a missing fact never counts as "no finding"
//! 2. a finding names its subject, its figure, and a command or a step that mends it
//! 3. ids are stable: a silence of last year still means the same rule

mod facts;
mod report;
mod rules;
mod scrape;
mod silence;
mod size;
mod standing;

pub use facts::{
    Acl, Client, Committed, Config, Configs, Controller, Dir, DirFigures, Facts, Features, Figures, Group,
    GroupKind, Histogram, Holder, Interface, Machine, Member, Node, Offsets, Partition, Quorum, Quota,
    RecordSample, Replica, Room, Scram, Seen, Shared, Source, Topic, Transaction, Unseen, Voter,
    figures_between,
};
pub use report::{Finding, Gap, Report, Severity};
pub use rules::{KEYS_OF_A_NODE, Limit, Limits, OF_A_NODE, RULES, Rule, UnknownLimit, find};
pub use scrape::{Sample, Scrape};
pub use silence::{Silence, SilenceError, Silences};
pub use size::{Load, Size, TooLarge, size};
pub use standing::{Change, STANDING_MAX, Standing};

/// Judges the facts by all rules.
pub fn examine(facts: &Facts, limits: &Limits) -> Report {
    judge(facts, limits, RULES.iter())
}

/// Judges the facts by the rules of [`OF_A_NODE`].
pub fn examine_node(facts: &Facts, limits: &Limits) -> Report {
    judge(facts, limits, RULES.iter().filter(|rule| OF_A_NODE.contains(&rule.id)))
}

fn judge<'a>(facts: &Facts, limits: &Limits, rules: impl Iterator<Item = &'a Rule>) -> Report {
    let mut report = Report::default();
    for rule in rules {
        let limit = limits.of(rule);
        report.begin(rule.id, rule.severity);
        (rule.judge)(facts, limit, &mut report);
    }
    report.sort();
    report
}
