//! Rules that one file keeps or breaks by itself.

use super::{is_generated, is_test};
use std::path::{Path, PathBuf};

/// Names that say nothing (STYLE).
const EMPTY_NAMES: &[&str] =
    &["manager", "util", "utils", "helper", "helpers", "impls", "common", "v2", "misc"];

/// Text that may not stand in our code, and why. Written in two parts so that this file does not find itself.
const BANNED: &[(&str, &str, &str)] = &[
    ("unbounded", "_channel", "every queue has a capacity and a metric"),
    ("mpsc::channel", "()", "every queue has a capacity: sync_channel(n)"),
    ("to", "do!(", "unfinished code is left out, not left open"),
    ("unimple", "mented!(", "unfinished code is left out, not left open"),
];

/// Product lines carry no planted mistakes: lab/planted has them. These ask for the two that an end-to-end test plants.
const PLANTED_MAY_STAND_IN: &[&str] = &[
    "shell/broker/src/node/peers",
    "shell/broker/src/worker/partition_worker.rs",
    "shell/broker/src/worker/partition_worker/replica_fetcher.rs",
];

/// Where the lint `unsafe_code` may be lifted. Everywhere else that is a finding.
const UNSAFE_MAY_STAND_IN: &[&str] = &["shell/disk/", "shell/net/", "lab/fuzz/"];

pub fn check(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) {
    for path in files {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else {
            findings.push(format!("{}: cannot be read", path.display()));
            continue;
        };
        check_file(path, &text, findings);
    }
    check_length(root, "ARCHITECTURE.md", 300, findings);
    check_length(root, "README.md", 200, findings);
}

fn check_file(path: &Path, text: &str, findings: &mut Vec<String>) {
    let shown = path.display();
    if !text.starts_with("//!") && !is_test(path) && !is_generated(path) {
        findings.push(format!("{shown}: does not open with `//!`"));
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if stem.split('_').any(|word| EMPTY_NAMES.contains(&word)) {
        findings.push(format!("{shown}: a name that says nothing"));
    }
    let may_be_unsafe = UNSAFE_MAY_STAND_IN.iter().any(|folder| path.starts_with(folder));
    for (index, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        for (first, second, why) in BANNED {
            if code.contains(&format!("{first}{second}")) && !is_generated(path) {
                findings.push(format!("{shown}:{}: {first}{second}: {why}", index + 1));
            }
        }
        if code.starts_with("#![allow(unsafe_code") && !may_be_unsafe {
            findings.push(format!("{shown}:{}: unsafe outside the crates that may", index + 1));
        }
        if asks_for_mistakes(path, code) {
            findings
                .push(format!("{shown}:{}: a planted mistake in a product line (lab/planted)", index + 1));
        }
        if path.starts_with("core") && code.contains("anyhow") {
            findings.push(format!("{shown}:{}: anyhow below main", index + 1));
        }
    }
}

fn asks_for_mistakes(path: &Path, code: &str) -> bool {
    let is_product = ["core", "shell", "edge"].iter().any(|rank| path.starts_with(rank)) && !is_test(path);
    let may = PLANTED_MAY_STAND_IN.iter().any(|place| path.starts_with(place));
    // A simulation beside its code is a test as well: it asks only in the copy that has mistakes.
    is_product && !may && code.contains("planted::") && !code.contains("barnabas_base::planted::")
}

fn check_length(root: &Path, name: &str, lines_max: usize, findings: &mut Vec<String>) {
    match std::fs::read_to_string(root.join(name)) {
        Ok(text) if text.lines().count() > lines_max => {
            findings.push(format!("{name}: {} lines, at most {lines_max}", text.lines().count()));
        }
        Ok(_) => {}
        Err(_) => findings.push(format!("{name}: missing")),
    }
}
