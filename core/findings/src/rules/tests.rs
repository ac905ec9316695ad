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
fn internal_topic_may_keep_everything() {
    let mut facts = healthy();
    let plant = cases::all().into_iter().find(|case| case.id == "T13").expect("a case").plant;
    plant(&mut facts);
    assert_eq!(findings(&facts, "T13").len(), 1);
    let topics = facts.topics.as_mut().expect("topics");
    topics.iter_mut().for_each(|topic| topic.is_internal = true);
    assert_eq!(findings(&facts, "T13"), []);
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
    facts.controllers = Err(missing());
    facts.reassigning = Err(missing());
    facts.acls = Err(missing());
    facts.scram = Err(missing());
    facts.transactions = Err(missing());
    facts.samples = Err(missing());
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
    assert_eq!(seeing, ["C11", "C15", "N6"]);
    assert_eq!(report.findings, []);
}

/// A node that is gone is no node with a wrong address, and the other way round.
#[test]
fn unreachable_node_is_heard_or_gone() {
    for (silent_ms, gone, wrong) in [(Some(500), 0, 1), (Some(20_000), 1, 0), (None, 1, 0)] {
        let mut facts = healthy();
        facts.nodes[2].reached = Err(Unseen("connection refused".to_owned()));
        facts.quorum.as_mut().expect("a quorum").voters[2].silent_ms = silent_ms;
        let found = (findings(&facts, "C15").len(), findings(&facts, "N6").len());
        assert_eq!(found, (gone, wrong), "{silent_ms:?}");
    }
    let mut facts = healthy();
    facts.nodes[0].reached = Err(Unseen("connection refused".to_owned()));
    for voter in &mut facts.quorum.as_mut().expect("a quorum").voters {
        voter.silent_ms = None;
    }
    assert_eq!(findings(&facts, "N6").len(), 1, "a leader that tells no times fences what it does not hear");
}

#[test]
fn lost_quorum_is_critical_whatever_is_known_of_controllers() {
    let mut facts = healthy();
    facts.no_leader = Some("it names none".to_owned());
    let found = findings(&facts, "C14");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, crate::Severity::Critical);
    assert_eq!(found[0].sentence, "no broker reaches a leader of the metadata quorum (it names none)");
    facts.controllers = Err(Unseen("no broker shows its settings".to_owned()));
    let report = examine(&facts, &Limits::default());
    assert!(report.findings.iter().any(|finding| finding.id == "C14"));
    assert!(report.gaps.iter().any(|gap| gap.id == "C14"));
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
