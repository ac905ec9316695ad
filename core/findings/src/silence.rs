//! Findings that the operator knows of: `ID[:SUBJECT] DATE REASON`, a line each.
//!
//! A silence ends on its date, so that an excuse is read again. A line without a reason or a date is refused.

use crate::report::Finding;
use crate::rules::find;
use barnabas_base::Date;

const DAY_MS: i64 = 86_400_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub id: &'static str,
    /// `None`: every subject.
    pub subject: Option<String>,
    /// The first moment at which it does not count any more.
    pub until_ms: i64,
    pub date: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilenceError {
    /// From 1.
    pub line: usize,
    pub why: String,
}

impl std::fmt::Display for SilenceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}. Example: T1:topic-scratch 2027-01-31 rebuilt each night", self.line, self.why)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Silences(Vec<Silence>);

impl Silences {
    /// Reads the lines; empty ones and those that begin with `#` are left out.
    ///
    /// # Errors
    /// An unknown id, no date, no reason.
    pub fn parse(text: &str) -> Result<Self, SilenceError> {
        let mut silences = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                silences.push(silence(line).map_err(|why| SilenceError { line: at + 1, why })?);
            }
        }
        Ok(Self(silences))
    }

    /// The silence that covers a finding now.
    pub fn of(&self, finding: &Finding, now_ms: i64) -> Option<&Silence> {
        // A blank in a subject is written as a hyphen: `topic-orders` is `topic orders`.
        let subject = finding.subject.replace(' ', "-");
        self.0.iter().find(|silence| {
            let covers = silence.subject.as_ref().is_none_or(|wanted| *wanted == subject);
            silence.id == finding.id && covers && now_ms < silence.until_ms
        })
    }
}

fn silence(line: &str) -> Result<Silence, String> {
    let mut words = line.splitn(3, char::is_whitespace);
    let (what, date) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let reason = words.next().map(str::trim).unwrap_or_default();
    let (id, subject) = what.split_once(':').map_or((what, None), |(id, subject)| (id, Some(subject)));
    let rule = find(id).ok_or_else(|| format!("there is no finding {id}"))?;
    let days =
        days(date).ok_or_else(|| format!("'{date}' is no date: YYYY-MM-DD, the last day of the silence"))?;
    if reason.is_empty() {
        return Err("the reason is missing".to_owned());
    }
    Ok(Silence {
        id: rule.id,
        subject: subject.map(str::to_owned),
        until_ms: (days + 1) * DAY_MS,
        date: date.to_owned(),
        reason: reason.to_owned(),
    })
}

/// Days since 1970 of `YYYY-MM-DD`.
fn days(date: &str) -> Option<i64> {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return None };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let (year, month, day) =
        (year.parse::<i64>().ok()?, month.parse::<i64>().ok()?, day.parse::<i64>().ok()?);
    let date = Date { year, month, day };
    let days = date.days_since_1970();
    // A day that its month does not have is another one.
    (year >= 1970 && Date::of_days_since_1970(days) == date).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Severity;

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-03-01"), Some(11_017));
        assert_eq!(days("2026-11-28"), Some(20_785));
        for wrong in ["2026-02-29", "2026-13-01", "2026-1-1", "1969-12-31", "soon", ""] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn silence_covers_its_subject_until_the_end_of_its_day() {
        let silences = Silences::parse("# known\n\nT1:topic-scratch 2026-11-28 rebuilt each night\n")
            .expect("it is one");
        let finding = |id, subject: &str| Finding {
            id,
            severity: Severity::Info,
            subject: subject.to_owned(),
            sentence: String::new(),
            commands: Vec::new(),
        };
        let last = 20_786 * DAY_MS - 1;
        let covering = silences.of(&finding("T1", "topic scratch"), last).expect("it is covered");
        assert_eq!(covering.reason, "rebuilt each night");
        assert_eq!(silences.of(&finding("T1", "topic scratch"), last + 1), None);
        assert_eq!(silences.of(&finding("T1", "topic orders"), last), None);
        assert_eq!(silences.of(&finding("T2", "topic scratch"), last), None);
    }

    #[test]
    fn silence_without_reason_or_date_is_refused() {
        for (line, why) in [
            ("T1 2026-11-28", "the reason is missing"),
            ("T1 soon because", "'soon' is no date: YYYY-MM-DD, the last day of the silence"),
            ("X9 2026-11-28 because", "there is no finding X9"),
        ] {
            let refused = Silences::parse(&format!("\n{line}")).expect_err(line);
            assert_eq!(refused, SilenceError { line: 2, why: why.to_owned() });
        }
    }
}
