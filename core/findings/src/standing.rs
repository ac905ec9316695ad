//! Findings of one node, check after check: which of them stand, which have just appeared, which are gone.
//!
//! Pure. A finding stands once two checks in a row have it, and is gone once two in a row do not: a figure that swings
//! about its limit makes no line each time.
//!
//! Always true:
//! 1. a finding is reported once when it appears, and once more when it becomes more severe
//! 2. what has appeared and is not silenced is reported once when it is gone
//! 3. at most [`STANDING_MAX`] findings are remembered; the others are counted

use crate::report::{Finding, Severity};
use std::collections::BTreeMap;

/// Findings that are remembered.
pub const STANDING_MAX: usize = 200;
/// Checks in a row that decide.
const CHECKS: u32 = 2;

/// See the file's header.
#[derive(Debug, Default)]
pub struct Standing {
    known: BTreeMap<(&'static str, String), Known>,
    unlisted: usize,
}

#[derive(Debug)]
struct Known {
    finding: Finding,
    /// Checks in a row that had it, up to [`CHECKS`].
    seen: u32,
    /// Checks in a row that did not.
    missed: u32,
    /// As what it was reported.
    reported: Option<Severity>,
}

/// What a check has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub appeared: Vec<Finding>,
    pub gone: Vec<Finding>,
}

impl Standing {
    /// Takes in the findings of a check. `is_silenced` ones are forgotten without a report.
    pub fn take(&mut self, findings: Vec<Finding>, is_silenced: impl Fn(&Finding) -> bool) -> Change {
        self.known.retain(|_, known| !is_silenced(&known.finding));
        self.known.values_mut().for_each(|known| known.missed += 1);
        self.unlisted = 0;
        for finding in findings.into_iter().filter(|finding| !is_silenced(finding)) {
            let key = (finding.id, finding.subject.clone());
            let is_full = self.known.len() >= STANDING_MAX;
            match self.known.get_mut(&key) {
                // Of several findings of one rule about one subject the first is the severest.
                Some(known) if known.missed == 0 => {}
                Some(known) => {
                    (known.missed, known.seen) = (0, (known.seen + 1).min(CHECKS));
                    known.finding = finding;
                }
                None if is_full => self.unlisted += 1,
                None => {
                    let known = Known { finding, seen: 1, missed: 0, reported: None };
                    self.known.insert(key, known);
                }
            }
        }
        self.change()
    }

    fn change(&mut self) -> Change {
        let mut change = Change::default();
        for known in self.known.values_mut() {
            let is_new = known.reported.is_none_or(|reported| known.finding.severity > reported);
            if known.missed == 0 && known.seen >= CHECKS && is_new {
                known.reported = Some(known.finding.severity);
                change.appeared.push(known.finding.clone());
            }
        }
        self.known.retain(|_, known| {
            let is_reported = known.reported.is_some();
            // One that was never reported begins again.
            let is_kept = if is_reported { known.missed < CHECKS } else { known.missed == 0 };
            if !is_kept && is_reported {
                change.gone.push(known.finding.clone());
            }
            is_kept
        });
        change
    }

    /// The findings that stand.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.known.values().filter(|known| known.reported.is_some()).map(|known| &known.finding)
    }

    /// How many of the last check are not remembered.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(subject: &str, severity: Severity) -> Finding {
        Finding {
            id: "D9",
            severity,
            subject: subject.to_owned(),
            sentence: String::new(),
            commands: Vec::new(),
        }
    }

    /// What a check with these findings reports: `+` and `-` with the subject.
    fn take(standing: &mut Standing, findings: &[(&str, Severity)]) -> String {
        let findings = findings.iter().map(|(subject, severity)| finding(subject, *severity)).collect();
        let change = standing.take(findings, |finding| finding.subject == "silenced");
        let words = |sign: &'static str, some: Vec<Finding>| {
            some.into_iter().map(move |finding| format!("{sign}{}", finding.subject))
        };
        words("+", change.appeared).chain(words("-", change.gone)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn finding_is_reported_once_and_once_when_it_is_gone() {
        let mut standing = Standing::default();
        let a = [("a", Severity::Warning)];
        assert_eq!(take(&mut standing, &a), "");
        assert_eq!(standing.findings().count(), 0, "one check is not enough");
        assert_eq!(take(&mut standing, &a), "+a");
        assert_eq!(take(&mut standing, &a), "");
        assert_eq!(take(&mut standing, &[]), "");
        assert_eq!(standing.findings().count(), 1);
        assert_eq!(take(&mut standing, &a), "", "it was not gone");
        assert_eq!((take(&mut standing, &[]), take(&mut standing, &[])), (String::new(), "-a".to_owned()));
        assert_eq!((take(&mut standing, &a), take(&mut standing, &a)), (String::new(), "+a".to_owned()));
    }

    #[test]
    fn finding_that_comes_and_goes_is_not_reported() {
        let mut standing = Standing::default();
        for _ in 0..5 {
            assert_eq!(take(&mut standing, &[("a", Severity::Critical)]), "");
            assert_eq!(take(&mut standing, &[]), "");
        }
    }

    #[test]
    fn finding_that_becomes_critical_is_reported_again() {
        let mut standing = Standing::default();
        let (warning, critical) = ([("a", Severity::Warning)], [("a", Severity::Critical)]);
        take(&mut standing, &warning);
        assert_eq!(take(&mut standing, &warning), "+a");
        assert_eq!(take(&mut standing, &critical), "+a");
        assert_eq!(take(&mut standing, &warning), "");
        assert_eq!(take(&mut standing, &critical), "");
    }

    #[test]
    fn silenced_finding_is_forgotten_without_a_report() {
        let mut standing = Standing::default();
        for _ in 0..2 {
            take(&mut standing, &[("silenced", Severity::Warning), ("a", Severity::Warning)]);
        }
        assert_eq!(standing.findings().count(), 1);
        let silence_all = |_: &Finding| true;
        assert_eq!(standing.take(vec![finding("a", Severity::Warning)], silence_all), Change::default());
        assert_eq!(standing.findings().count(), 0);
    }

    #[test]
    fn findings_that_are_remembered_are_bounded() {
        let mut standing = Standing::default();
        let many = || (0..STANDING_MAX + 7).map(|at| finding(&format!("{at:04}"), Severity::Info)).collect();
        standing.take(many(), |_| false);
        let change = standing.take(many(), |_| false);
        assert_eq!((change.appeared.len(), standing.unlisted()), (STANDING_MAX, 7));
    }
}
