//! Entries per folder, and where the shell reads a clock.

use super::{is_generated, is_test};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// More entries than this do not fit into a reader's head.
const ENTRIES_MAX: usize = 12;

/// Folders that are lists, an entry for each API or record type.
const LISTS: &[&str] = &["core/api/src", "core/quorum/src/controller/apis"];

/// The one place of the shell that reads a clock.
const CLOCK: &str = "shell/clock";

/// What both rules came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// Entries over the limit, added up over all folders.
    pub entries_over: usize,
    /// The folders that have too many, the largest first.
    pub largest: Vec<(usize, String)>,
    /// Files of the shell that read a clock, other than the clock's own.
    pub clock_readers: Vec<String>,
}

/// Counts entries: `name.rs` and `name/` are one, test code is left out.
pub fn check(root: &Path, files: &[PathBuf]) -> Folders {
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut found = Folders::default();
    for path in files.iter().filter(|path| !is_generated(path) && !is_test(path)) {
        enter(path, &mut folders);
        let is_clock = path.starts_with(CLOCK);
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        if path.starts_with("shell") && !is_clock && reads_clock(&text) {
            found.clock_readers.push(path.display().to_string());
        }
    }
    for (folder, entries) in folders {
        if entries.len() > ENTRIES_MAX && !LISTS.contains(&folder.as_str()) {
            found.entries_over += entries.len() - ENTRIES_MAX;
            found.largest.push((entries.len(), folder));
        }
    }
    found.largest.sort();
    found.largest.reverse();
    found
}

/// Puts a file, and each folder above it up to `src`, into the folder that holds it.
fn enter(path: &Path, folders: &mut BTreeMap<String, BTreeSet<String>>) {
    let mut at = path;
    while let Some(folder) = at.parent() {
        let stem = at.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(stem.as_str(), "mod" | "lib" | "main") {
            folders.entry(folder.display().to_string()).or_default().insert(stem);
        }
        if folder.file_name().is_some_and(|name| name == "src") {
            return;
        }
        at = folder;
    }
}

fn reads_clock(text: &str) -> bool {
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    product
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .any(|line| line.contains("Instant::now()") || line.contains("SystemTime::now()"))
}

#[cfg(test)]
mod tests {
    use super::{enter, reads_clock};
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn a_file_and_the_folder_of_its_name_are_one_entry() {
        let mut folders = BTreeMap::new();
        for path in
            ["a/src/lib.rs", "a/src/log.rs", "a/src/log/tail.rs", "a/src/log/open.rs", "a/src/disk/mod.rs"]
        {
            enter(Path::new(path), &mut folders);
        }
        assert_eq!(folders["a/src"].len(), 2);
        assert_eq!(folders["a/src/log"].len(), 2);
    }

    #[test]
    fn a_clock_that_only_tests_read_is_none() {
        assert!(reads_clock("fn f() { let now = Instant::now(); }"));
        assert!(!reads_clock("// Instant::now()\n#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }"));
    }
}
