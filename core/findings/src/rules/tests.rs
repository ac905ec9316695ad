//! Each rule: what it finds in facts that have the fault, and that it finds nothing in those of a healthy cluster.

mod build;
mod cases;

use super::{Limits, RULES, find};
use crate::examine;
use crate::facts::{Facts, Unseen};
use crate::report::Finding;
use build::healthy;
use std::collections::BTreeSet;

fn findings(facts: &Facts, id: &str) -> Vec<Finding> {
    let report = examine(facts, &Limits::default());
    report.findings.into_iter().filter(|finding| finding.id == id).collect()
}

#[test]
fn healthy_cluster_has_no_finding_and_no_gap() {
    let report = examine(&healthy(), &Limits::default());
    assert_eq!(report.findings, []);
    assert_eq!(report.gaps, []);
}

#[test]
fn every_rule_has_a_case_that_it_finds() {
    let cases = cases::all();
    let known: BTreeSet<&str> = cases.iter().map(|case| case.id).collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(known, rules);
    for case in cases {
        let mut facts = healthy();
        (case.plant)(&mut facts);
        let found = findings(&facts, case.id);
        let sentences: Vec<String> =
            found.iter().map(|finding| format!("{}: {}", finding.subject, finding.sentence)).collect();
        assert_eq!(sentences, case.sentences, "{}", case.id);
        let commands: Vec<&String> = found.iter().flat_map(|finding| &finding.commands).collect();
        assert_eq!(commands, case.commands, "{}", case.id);
    }
}

/// A missing fact is a gap of each rule that needs it.
#[test]
fn missing_facts_are_gaps_of_their_rules() {
    let missing = || Unseen("it was not allowed".to_owned());
    let mut facts = healthy();
    facts.topics = Err(missing());
    facts.groups = Err(missing());
    facts.quorum = Err(missing());
    facts.reassigning = Err(missing());
    facts.acls = Err(missing());
    facts.scram = Err(missing());
    facts.transactions = Err(missing());
    for node in &mut facts.nodes {
        node.figures = Err(missing());
        node.configs = Err(missing());
        node.features = Err(missing());
        node.dirs = Err(missing());
    }
    let report = examine(&facts, &Limits::default());
    let blind: BTreeSet<&str> = report.gaps.iter().map(|gap| gap.id).collect();
    // An address is tried, not asked for; a broker is fenced or not.
    let seeing: Vec<&str> = RULES.iter().map(|rule| rule.id).filter(|id| !blind.contains(id)).collect();
    assert_eq!(seeing, ["C11", "N6"]);
    assert_eq!(report.findings, []);
}

#[test]
fn ids_are_unique_and_found_in_any_case() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    assert_eq!(find("c1").map(|rule| rule.id), Some("C1"));
    assert!(find("C999").is_none());
}

#[test]
fn limits_replace_those_of_the_rules() {
    let mut facts = healthy();
    build::partition(&mut facts, "orders", 0).leader = Some(2);
    let mut limits = Limits::default();
    limits.set("C3", 50.0).expect("it has a limit");
    assert_eq!(findings(&facts, "C3").len(), 1);
    assert_eq!(examine(&facts, &limits).findings, []);
    assert!(limits.set("T1", 1.0).is_err());
    assert!(limits.set("Z1", 1.0).is_err());
}
