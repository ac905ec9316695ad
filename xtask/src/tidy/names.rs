//! Names in texts that must lead somewhere: breadcrumbs in the headers of files, and paths and code names in
//! ARCHITECTURE.md.
//!
//! A breadcrumb is a header line of a module (`//!`) that begins with one of [`CRUMBS`]. Each `*.rs` that it names must
//! exist, and should name the file back.

use super::{is_generated, is_test};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CRUMBS: &[&str] = &["Neighbours:", "Before:", "After:", "Next:", "Asked by:"];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Breadcrumbs to files that do not exist.
    pub missing: Vec<String>,
    /// Breadcrumbs to files that do not name the file back.
    pub one_way: usize,
    /// Paths and names in ARCHITECTURE.md that nothing in the tree has.
    pub unresolved: Vec<String>,
}

pub fn check(root: &Path, files: &[PathBuf]) -> Names {
    let mut names = Names::default();
    let mut identifiers = BTreeSet::new();
    for path in files {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        identifiers.extend(identifiers_of(&text).map(str::to_owned));
        if is_generated(path) || is_test(path) {
            continue;
        }
        for crumb in crumbs_of(&text) {
            match find(path, &crumb, files) {
                None => names.missing.push(format!("{}: {crumb}", path.display())),
                Some(other) => {
                    let back = std::fs::read_to_string(root.join(other)).unwrap_or_default();
                    let own = path.file_name().unwrap_or_default().to_string_lossy();
                    names.one_way += usize::from(!header(&back).contains(&*own));
                }
            }
        }
    }
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    names.unresolved = quoted(&map).filter(|name| !resolves(root, name, files, &identifiers)).collect();
    names
}

fn header(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join("\n")
}

/// The files that the header's breadcrumbs name. A breadcrumb may go on over several lines, up to an empty one.
fn crumbs_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_crumb = false;
    for line in header(text).lines() {
        let line = line.trim_start_matches("//!").trim();
        is_crumb = !line.is_empty() && (is_crumb || CRUMBS.iter().any(|crumb| line.contains(crumb)));
        if is_crumb {
            let words = line.split(|sign: char| !(sign.is_alphanumeric() || "_-/.".contains(sign)));
            let named = words.map(|word| word.trim_end_matches('.')).filter(|word| word.ends_with(".rs"));
            found.extend(named.map(str::to_owned));
        }
    }
    found
}

/// A file by the end of its path: the one that is nearest to `from`.
fn find<'a>(from: &Path, name: &str, files: &'a [PathBuf]) -> Option<&'a PathBuf> {
    let shared = |path: &PathBuf| path.iter().zip(from).take_while(|(one, other)| one == other).count();
    files.iter().filter(|path| path.ends_with(name)).max_by_key(|path| shared(path))
}

/// What stands between backticks, outside of blocks of code.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    let mut is_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.into_iter()
}

/// Paths exist; names of code (`Foo::bar`, `begin_round`, `TopicImage`) stand somewhere in the sources. Other words are
/// not names.
fn resolves(root: &Path, name: &str, files: &[PathBuf], identifiers: &BTreeSet<String>) -> bool {
    if name.contains(['*', ' ', '=', '-', '<', '(']) {
        return true;
    }
    if name.ends_with(".rs") || name.contains('/') {
        return root.join(name).exists() || files.iter().any(|path| path.ends_with(name));
    }
    let is_code = name.contains("::") || name.contains('_') || name.starts_with(char::is_uppercase);
    !is_code || name.contains('.') || name.split("::").all(|part| identifiers.contains(part))
}

fn identifiers_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{crumbs_of, find, quoted, resolves};
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_breadcrumb_names_files_up_to_an_empty_line() {
        let text = "//! Title of one.rs.\n//!\n//! Neighbours: two.rs, which acts;\n//! a/three.rs.\n//!\n//! four.rs\nuse five;";
        assert_eq!(crumbs_of(text), ["two.rs", "a/three.rs"]);
    }

    #[test]
    fn a_file_is_the_nearest_of_its_name() {
        let files: Vec<PathBuf> = ["a/src/log.rs", "b/src/log.rs"].iter().map(PathBuf::from).collect();
        assert_eq!(find(Path::new("b/src/tail.rs"), "log.rs", &files), Some(&files[1]));
        assert_eq!(find(Path::new("b/src/tail.rs"), "tail.rs", &files), None);
    }

    #[test]
    fn names_of_code_resolve_and_other_words_are_left_alone() {
        let found: Vec<String> = quoted("a `Foo::bar` b\n```\n`not`\n```\n`acks=all`").collect();
        assert_eq!(found, ["Foo::bar", "acks=all"]);
        let known = BTreeSet::from(["Foo".to_owned()]);
        assert!(!resolves(Path::new("/"), "Foo::bar", &[], &known));
        assert!(resolves(Path::new("/"), "Foo", &[], &known));
        assert!(resolves(Path::new("/"), "acks=all", &[], &known));
        assert!(!resolves(Path::new("/"), "core/none.rs", &[], &known));
    }
}
