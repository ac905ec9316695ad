//! A report as text for people and as JSON for programs.

use barnabas_findings::{Facts, Finding, Limits, RULES, Report, Rule, Severity, Silence, Silences, find};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Findings of one rule that the text shows; JSON has all of them.
const SHOWN_MAX: usize = 5;

/// A report after the silences.
#[derive(Debug)]
pub struct Shown<'a> {
    report: &'a Report,
    facts: &'a Facts,
    limits: &'a Limits,
    findings: Vec<&'a Finding>,
    silenced: Vec<(&'a Finding, &'a Silence)>,
}

impl<'a> Shown<'a> {
    /// `limits`: those by which the report was made.
    pub fn new(facts: &'a Facts, report: &'a Report, limits: &'a Limits, silences: &'a Silences) -> Self {
        let (mut findings, mut silenced) = (Vec::new(), Vec::new());
        for finding in &report.findings {
            match silences.of(finding, facts.now_ms) {
                Some(silence) => silenced.push((finding, silence)),
                None => findings.push(finding),
            }
        }
        Self { report, facts, limits, findings, silenced }
    }

    /// The worst of what is not silenced.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Rules of this severity or a higher one that could not be judged, as the user has no right to what they look at.
    pub fn forbidden(&self, least: Severity) -> BTreeSet<&'static str> {
        let gaps = self.report.gaps.iter().filter(|gap| gap.why.contains("_AUTHORIZATION_FAILED"));
        let ids = gaps.map(|gap| gap.id);
        ids.filter(|id| find(id).is_some_and(|rule| rule.severity >= least)).collect()
    }
}

/// The report as lines.
pub fn text(shown: &Shown<'_>) -> String {
    let mut lines = Vec::new();
    let mut number_of = std::collections::BTreeMap::<&str, usize>::new();
    for finding in &shown.findings {
        let number = number_of.entry(finding.id).or_default();
        *number += 1;
        if *number > SHOWN_MAX {
            continue;
        }
        let rule = find(finding.id).expect("a finding has a rule");
        lines.push(format!(
            "{:<8} {:<4} {}: {}",
            finding.severity.name(),
            finding.id,
            finding.subject,
            finding.sentence
        ));
        if *number == 1 {
            lines.push(format!("              {}. {}", rule.name, rule.advice));
        }
        lines.extend(finding.commands.iter().map(|command| format!("              $ {command}")));
    }
    for (id, number) in number_of.iter().filter(|(_, number)| **number > SHOWN_MAX) {
        lines.push(format!("         {id:<4} and {} more: --json shows all", number - SHOWN_MAX));
    }
    for (finding, silence) in &shown.silenced {
        let Finding { id, subject, .. } = finding;
        lines.push(format!("silenced {id:<4} {subject}: {} (until {})", silence.reason, silence.date));
    }
    lines.extend(gaps(shown.report));
    lines.push(summary(shown));
    lines.join("\n")
}

/// A line for each reason, with the rules that it keeps from seeing.
fn gaps(report: &Report) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for gap in &report.gaps {
        match reasons.iter_mut().find(|(why, _)| *why == gap.why) {
            Some((_, ids)) => ids.push(gap.id),
            None => reasons.push((&gap.why, vec![gap.id])),
        }
    }
    let more = reasons.len().saturating_sub(SHOWN_MAX * 2);
    let shown = reasons.iter().take(SHOWN_MAX * 2);
    let mut lines: Vec<String> =
        shown.map(|(why, ids)| format!("not seen {}: {why}", ids.join(" "))).collect();
    if more > 0 {
        lines.push(format!("not seen and {more} more reasons: --json shows all"));
    }
    lines
}

fn summary(shown: &Shown<'_>) -> String {
    let count = |severity| shown.findings.iter().filter(|finding| finding.severity == severity).count();
    let blind: BTreeSet<&str> = shown.report.gaps.iter().map(|gap| gap.id).collect();
    let topics = shown.facts.topics.as_ref().map_or(0, Vec::len);
    format!(
        "doctor: {} critical, {} warning, {} info; {} silenced; {} of {} rules saw all they need; {} brokers, {topics} topics, {:.0} s",
        count(Severity::Critical),
        count(Severity::Warning),
        count(Severity::Info),
        shown.silenced.len(),
        RULES.len() - blind.len(),
        RULES.len(),
        shown.facts.nodes.len(),
        shown.facts.seconds,
    )
}

/// The report as one object.
pub fn json(shown: &Shown<'_>) -> String {
    let finding = |finding: &Finding| {
        let rule = find(finding.id).expect("a finding has a rule");
        json!({
            "id": finding.id,
            "name": rule.name,
            "severity": finding.severity.name(),
            "subject": finding.subject,
            "sentence": finding.sentence,
            "evidence": rule.evidence,
            "threshold": rule.threshold_with(shown.limits.of(rule)),
            "advice": rule.advice,
            "commands": finding.commands,
        })
    };
    let findings: Vec<Value> = shown.findings.iter().map(|known| finding(known)).collect();
    let silenced = shown.silenced.iter().map(|(known, silence)| {
        json!({"finding": finding(known), "reason": silence.reason, "until": silence.date})
    });
    let silenced: Vec<Value> = silenced.collect();
    let gaps: Vec<Value> =
        shown.report.gaps.iter().map(|gap| json!({"id": gap.id, "why": gap.why})).collect();
    json!({
        "findings": findings,
        "silenced": silenced,
        "notSeen": gaps,
        "seconds": shown.facts.seconds,
        "brokers": shown.facts.nodes.len(),
    })
    .to_string()
}

/// A rule's entry: `barnabas doctor explain C3`.
pub fn explanation(rule: &Rule) -> String {
    let limit =
        if rule.limit.is_some() { format!("  (--threshold {}=NUMBER)", rule.id) } else { String::new() };
    let mut lines = vec![
        format!("{} {}", rule.id, rule.name),
        format!("severity    {}", rule.severity.name()),
        format!("found when  {}{limit}", rule.threshold_text()),
        format!("evidence    {}", rule.evidence),
        format!("advice      {}", rule.advice),
    ];
    if !rule.command.is_empty() {
        lines.push(format!("command     {}", rule.command));
    }
    lines.join("\n")
}

/// A line for each rule.
pub fn list() -> String {
    let line = |rule: &Rule| format!("{:<4} {:<8} {}", rule.id, rule.severity.name(), rule.name);
    RULES.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
