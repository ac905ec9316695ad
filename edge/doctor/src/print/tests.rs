//! What the text and the JSON of a report show.

use super::*;
use barnabas_findings::{Limits, Quorum, Unseen, Voter, examine};

/// A quorum of two, and nothing else that was seen.
fn facts() -> Facts {
    let missing = || Unseen("it was not allowed".to_owned());
    let voter =
        |id: i32| Voter { id, directory: format!("dir-{id}"), behind_ms: Ok(Some(0)), silent_ms: None };
    Facts {
        connect: "--bootstrap-server h:1".to_owned(),
        now_ms: 1_800_000_000_000,
        seconds: 10.0,
        nodes: Vec::new(),
        topics: Err(missing()),
        groups: Err(missing()),
        quorum: Ok(Quorum { leader: 1, voters: vec![voter(1), voter(2)], observers: Vec::new() }),
        no_leader: None,
        controllers: Ok(Vec::new()),
        reassigning: Err(missing()),
        quotas: Err(missing()),
        acls: Err(missing()),
        scram: Err(missing()),
        transactions: Err(missing()),
        samples: Err(missing()),
    }
}

#[test]
fn text_shows_finding_advice_command_and_gaps() {
    let facts = facts();
    let limits = Limits::default();
    let report = examine(&facts, &limits);
    let silences = Silences::default();
    let text = text(&Shown::new(&facts, &report, &limits, &silences));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "warning  C1   cluster: the metadata quorum has 2 voters: it survives 0 failures");
    assert!(lines[1].contains("Run three or five controllers"), "{}", lines[1]);
    assert!(lines[2].ends_with("$ barnabas metadata-quorum --bootstrap-server h:1 remove-controller --controller-id 2 --controller-directory-id dir-2"), "{}", lines[2]);
    assert!(lines[3].starts_with("not seen C3 C4 "), "{}", lines[3]);
    assert!(lines[3].ends_with(": it was not allowed"), "{}", lines[3]);
    assert_eq!(lines[4], "not seen C8: the controller is no broker: its metrics are not asked for");
    assert!(lines[5].starts_with("doctor: 0 critical, 1 warning, 0 info; 0 silenced;"), "{}", lines[5]);
}

#[test]
fn what_the_user_may_not_see_is_not_taken_for_fine() {
    let hidden = "topics: CLUSTER_AUTHORIZATION_FAILED";
    let facts = Facts { topics: Err(Unseen(hidden.to_owned())), ..facts() };
    let limits = Limits::default();
    let report = examine(&facts, &limits);
    let silences = Silences::default();
    let shown = Shown::new(&facts, &report, &limits, &silences);
    let has = |least, id| shown.forbidden(least).contains(id);
    assert!(has(Severity::Info, "C3") && has(Severity::Warning, "C6"));
    assert!(!has(Severity::Warning, "C3") && !has(Severity::Info, "C10"));
}

#[test]
fn silenced_finding_is_named_and_does_not_count() {
    let facts = facts();
    let limits = Limits::default();
    let report = examine(&facts, &limits);
    let silences = Silences::parse("C1:cluster 2030-01-01 the third comes on Monday").expect("a silence");
    let shown = Shown::new(&facts, &report, &limits, &silences);
    assert_eq!(shown.worst(), None);
    let text = text(&shown);
    assert!(
        text.starts_with("silenced C1   cluster: the third comes on Monday (until 2030-01-01)\n"),
        "{text}"
    );
    let told: Value = serde_json::from_str(&json(&shown)).expect("JSON");
    assert_eq!(told["findings"], json!([]));
    assert_eq!(told["silenced"][0]["finding"]["id"], "C1");
    assert_eq!(told["silenced"][0]["reason"], "the third comes on Monday");
}

#[test]
fn json_has_findings_with_their_rules_and_gaps() {
    let facts = facts();
    let limits = Limits::default();
    let report = examine(&facts, &limits);
    let silences = Silences::default();
    let shown = Shown::new(&facts, &report, &limits, &silences);
    let told: Value = serde_json::from_str(&json(&shown)).expect("JSON");
    assert_eq!(told["findings"][0]["severity"], "warning");
    assert_eq!(told["findings"][0]["evidence"], "DescribeQuorum, racks of the brokers");
    assert!(told["notSeen"].as_array().expect("gaps").iter().any(|gap| gap["id"] == "T1"));
}

#[test]
fn json_has_the_threshold_that_was_judged_by() {
    let mut facts = facts();
    facts.quorum.as_mut().expect("a quorum").voters[1].behind_ms = Ok(Some(7_000));
    let mut limits = Limits::default();
    limits.set("C2", 5.0).expect("it has a limit");
    let report = examine(&facts, &limits);
    let silences = Silences::default();
    let told: Value =
        serde_json::from_str(&json(&Shown::new(&facts, &report, &limits, &silences))).expect("JSON");
    let found = told["findings"].as_array().expect("findings").iter().find(|found| found["id"] == "C2");
    let threshold = &found.expect("C2")["threshold"];
    assert_eq!(threshold, "more than 5 s ago, or not since the leader was elected");
}
