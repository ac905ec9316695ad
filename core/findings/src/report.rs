//! What the rules found, and what they could not see.

use crate::facts::{Seen, Unseen};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Works, and could be better.
    Info,
    /// Will cost data, time or money.
    Warning,
    /// Costs data or availability now.
    Critical,
}

impl Severity {
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// One finding about one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    /// `topic orders`, `node 2`, `group billing`, `cluster` …
    pub subject: String,
    /// One sentence, with the figure.
    pub sentence: String,
    /// Lines for a shell, in order; empty where no command mends it.
    pub commands: Vec<String>,
}

/// A rule could not see a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub id: &'static str,
    pub why: String,
}

#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    id: &'static str,
    severity: Option<Severity>,
}

impl Report {
    /// Begins with the rule of this id and severity.
    pub(crate) fn begin(&mut self, id: &'static str, severity: Severity) {
        self.id = id;
        self.severity = Some(severity);
    }

    /// A finding of the rule's own severity.
    pub(crate) fn find(&mut self, subject: impl Into<String>, sentence: String, commands: Vec<String>) {
        let severity = self.severity.expect("a rule is judged");
        self.find_as(severity, subject, sentence, commands);
    }

    pub(crate) fn find_as(
        &mut self,
        severity: Severity,
        subject: impl Into<String>,
        sentence: String,
        commands: Vec<String>,
    ) {
        self.findings.push(Finding { id: self.id, severity, subject: subject.into(), sentence, commands });
    }

    /// The fact, or `None` with a note that it was not seen. A reason is noted once for a rule.
    pub(crate) fn seen<'a, T>(&mut self, fact: &'a Seen<T>) -> Option<&'a T> {
        match fact {
            Ok(fact) => Some(fact),
            Err(Unseen(why)) => {
                self.not_seen(why);
                None
            }
        }
    }

    pub(crate) fn not_seen(&mut self, why: &str) {
        let id = self.id;
        if !self.gaps.iter().any(|gap| gap.id == id && gap.why == why) {
            self.gaps.push(Gap { id, why: why.to_owned() });
        }
    }

    /// The severest first; within a severity in the order of the rules.
    pub(crate) fn sort(&mut self) {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }
}
