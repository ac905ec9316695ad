//! From files to verdicts, and the words for them.

use crate::facts::Facts;
use crate::gather::Gather;
use crate::rules::{Findings, RULES, Rule};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What one rule said.
#[derive(Debug)]
pub struct Verdict {
    pub rule: &'static Rule,
    pub findings: Findings,
}

impl Verdict {
    pub fn is_broken(&self) -> bool {
        self.rule.is_fatal && self.findings.total > 0
    }

    /// Whether it had anything to judge. What it found without counts as asked.
    pub fn is_asked(&self) -> bool {
        self.findings.judged > 0 || self.findings.total > 0
    }
}

/// Every rule over these facts.
pub fn judge(facts: &Facts) -> Vec<Verdict> {
    let verdict = |rule: &'static Rule| {
        let mut findings = Findings::default();
        (rule.check)(facts, &mut findings);
        Verdict { rule, findings }
    };
    RULES.iter().map(verdict).collect()
}

/// The `.jsonl` files that these paths name, those of directories in the order of their names.
///
/// # Errors
/// What cannot be read.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut inside: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        inside.sort();
        found.extend(inside);
    }
    if found.is_empty() { Err("no history there".into()) } else { Ok(found) }
}

/// Streams the files. A last line that was cut off, as kill −9 of a client leaves it, is counted and left out.
///
/// # Errors
/// A file that cannot be read, or a line that is no event anywhere else.
pub fn read(files: &[PathBuf]) -> Result<Facts, String> {
    let mut gather = Gather::default();
    for path in files {
        let mut lines = lines_of(path)?;
        let mut line = Vec::new();
        let mut number = 0_u64;
        loop {
            line.clear();
            let told = |error: String| format!("{}:{number}: {error}", path.display());
            if lines.read_until(b'\n', &mut line).map_err(|error| told(error.to_string()))? == 0 {
                break;
            }
            number += 1;
            let text = String::from_utf8_lossy(&line);
            match gather.line(text.trim_end()) {
                Ok(()) => {}
                Err(_) if !text.ends_with('\n') => gather.torn(),
                Err(error) => return Err(format!("{}:{number}: {error}", path.display())),
            }
        }
    }
    Ok(gather.done())
}

fn lines_of(path: &Path) -> Result<BufReader<File>, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// A line for each rule, then its findings.
pub fn told(verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let (rule, findings) = (verdict.rule, &verdict.findings);
        let word = match (verdict.is_asked(), findings.total, rule.is_fatal) {
            (false, ..) => "not asked".to_owned(),
            (_, 0, _) => format!("holds over {} {}", findings.judged, rule.unit),
            (_, count, true) => format!("BROKEN {count} times over {} {}", findings.judged, rule.unit),
            (_, count, false) => format!("{count} among {} {} (normal in Kafka)", findings.judged, rule.unit),
        };
        out += &format!("{:<4} {:<46} {word}\n", rule.id, rule.anomaly);
        if rule.is_fatal {
            for finding in &findings.kept {
                out += &format!("       {}\n", finding.text);
            }
        }
    }
    out
}

/// How long each producer was told of nothing: a figure to compare, no rule.
pub fn waits(facts: &Facts) -> String {
    let told = facts.waits.iter().map(|(client, waits)| {
        let (name, tenths) = (facts.client_name(*client), waits.longest_ns / 100_000_000);
        format!("{name} {}.{} s ({} above 1 s)", tenths / 10, tenths % 10, waits.above_a_second)
    });
    format!("longest without an acknowledgement: {}", told.collect::<Vec<_>>().join(", "))
}

/// The line to quote.
pub fn summary(facts: &Facts, verdicts: &[Verdict]) -> String {
    let fatal = || verdicts.iter().filter(|verdict| verdict.rule.is_fatal);
    let broken: Vec<&str> =
        fatal().filter(|verdict| verdict.is_broken()).map(|verdict| verdict.rule.id).collect();
    let asked = fatal().filter(|verdict| verdict.is_asked()).count();
    let held = if broken.is_empty() {
        format!("{asked} of {} rules asked, all held", fatal().count())
    } else {
        format!("BROKEN: {}", broken.join(", "))
    };
    let listed = |counts: &std::collections::BTreeMap<String, u64>| {
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    format!(
        "faults: {}; clients: {}; {} records sent, {} read, {} transactions; {held}",
        listed(&facts.faults),
        listed(&facts.kinds),
        facts.sent,
        facts.polled,
        facts.txns.len(),
    )
}

/// The lines in which a finding's values stand, shortened around them: at most `limit` for each value.
///
/// # Errors
/// A file that cannot be read again.
pub fn excerpt(files: &[PathBuf], values: &[u64], limit: usize) -> Result<Vec<String>, String> {
    let needles: Vec<String> = values.iter().map(u64::to_string).collect();
    let mut counts = vec![0; needles.len()];
    let mut found = Vec::new();
    for path in files {
        for line in lines_of(path)?.split(b'\n') {
            let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
            let text = String::from_utf8_lossy(&line);
            for (needle, count) in needles.iter().zip(&mut counts) {
                if let Some(at) = text.find(needle.as_str()).filter(|_| *count < limit) {
                    *count += 1;
                    found.push(shortened(&text, at));
                }
            }
        }
    }
    Ok(found)
}

/// A line's beginning, which says who and when, and what stands around `at`.
fn shortened(text: &str, at: usize) -> String {
    let cut = |from: usize, to: usize| -> String {
        text.char_indices()
            .filter(|(index, _)| (from..to).contains(index))
            .map(|(_, letter)| letter)
            .collect()
    };
    if text.len() <= 260 || at < 160 {
        return cut(0, 260);
    }
    format!("{} … {}", cut(0, 120), cut(at.saturating_sub(40), at + 80))
}
