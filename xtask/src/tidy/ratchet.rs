//! Figures that may fall but never rise. Those in force stand in `xtask/ratchet.txt`; `tidy --tighten` writes lower
//! ones there.

use std::path::Path;

/// A figure by its name in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    pub name: &'static str,
    pub now: usize,
    /// What to do where it rose.
    pub advice: &'static str,
}

/// What the file held, and what was found to be too high.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    /// The file's new text.
    pub text: String,
    pub findings: Vec<String>,
}

/// Compares `figures` with the text of the ratchet file. A figure that the file does not name is a finding.
pub fn compare(text: &str, figures: &[Figure]) -> Held {
    let mut held = Held { text: String::new(), findings: Vec::new() };
    for figure in figures {
        let name = figure.name;
        let before = in_force(text, name);
        let kept = before.unwrap_or(usize::MAX).min(figure.now);
        held.text.push_str(&format!("{name} {kept}\n"));
        match before {
            None => held.findings.push(format!("xtask/ratchet.txt has no {name}: run `tidy --tighten`")),
            Some(before) if figure.now > before => {
                held.findings.push(format!("{name} rose from {before} to {}: {}", figure.now, figure.advice));
            }
            Some(_) => {}
        }
    }
    held
}

fn in_force(text: &str, name: &str) -> Option<usize> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// As [`compare`], with the file in the workspace at `root`, which is written only with `tighten`.
pub fn hold(root: &Path, figures: &[Figure], tighten: bool, findings: &mut Vec<String>) {
    let path = root.join("xtask/ratchet.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let held = compare(&text, figures);
    if tighten {
        if let Err(error) = std::fs::write(&path, held.text) {
            findings.push(format!("{}: {error}", path.display()));
        }
        findings.extend(held.findings.into_iter().filter(|finding| finding.contains(" rose from ")));
    } else {
        findings.extend(held.findings);
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, compare};

    fn figure(name: &'static str, now: usize) -> Figure {
        Figure { name, now, advice: "shorten it" }
    }

    #[test]
    fn a_figure_that_rises_is_a_finding_and_the_file_keeps_the_lower_one() {
        let held = compare("lines 10\nlines_max 7\n", &[figure("lines", 11), figure("lines_max", 6)]);
        assert_eq!(held.findings, ["lines rose from 10 to 11: shorten it"]);
        assert_eq!(held.text, "lines 10\nlines_max 6\n");
    }

    #[test]
    fn a_figure_that_the_file_does_not_name_is_a_finding() {
        let held = compare("lines_max 7\n", &[figure("lines", 3)]);
        assert_eq!(held.findings, ["xtask/ratchet.txt has no lines: run `tidy --tighten`"]);
        assert_eq!(held.text, "lines 3\n");
    }
}
