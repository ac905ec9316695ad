//! Plants mistakes: reads `lab/planted/*.txt`, and writes a copy of the tree in which each can be switched on.
//!
//! Product lines carry nothing of it. A mistake is lines of one file and what stands there instead; in those, the word
//! `PLANTED` is true while the mistake is switched on (`PLANTED:Name`: that other one). The copy is built with `--cfg
//! planted`: tests and simulations that hunt mistakes exist only there. It does not build or run anything;
//! `lab/planted/run` does.
//!
//! Always true: 1. each mistake's lines stand exactly once in its file (tidy asks for that); 2. a file of the copy that
//! has not changed is not written again, so that the next build is a short one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where mistakes are written down, and the switch.
const FOLDER: &str = "lab/planted";
/// Where the switch goes in the copy.
const SWITCH: &str = "core/base/src/planted.rs";
const BASE: &str = "core/base/src/lib.rs";
/// Large, and nothing that is built.
const LEFT_OUT: &[&str] = &["lab/bench/results/", "lab/planted/"];

#[derive(Debug, Default, PartialEq, Eq)]
struct Mistake {
    name: String,
    /// The test or the simulation that hunts it.
    noticed_by: String,
    what: String,
    edits: Vec<Edit>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Edit {
    file: String,
    before: Vec<String>,
    after: Vec<String>,
}

/// Writes the copy and prints where it is.
///
/// # Errors
/// A mistake that cannot be planted, or a file that cannot be read or written.
pub fn main(root: &Path) -> Result<(), String> {
    let copy = root.join("target/planted/tree");
    let mistakes = read(root)?;
    let mut planted = plant(root, &mistakes)?;
    let switch = std::fs::read_to_string(root.join(FOLDER).join("planted.rs"));
    let switch = switch.map_err(|error| format!("{FOLDER}/planted.rs: {error}"))?;
    planted.push((SWITCH.into(), switch + &table(&mistakes)));
    let files = tracked(root)?;
    let known: BTreeSet<&str> = files.iter().map(String::as_str).chain([SWITCH]).collect();
    remove_others(&copy, &copy, &known)?;
    for file in &known {
        let given = planted.iter().find(|(path, _)| path == file).map(|(_, text)| text.clone().into_bytes());
        let bytes = given.map_or_else(|| std::fs::read(root.join(file)), Ok);
        write(&copy.join(file), &bytes.map_err(|error| format!("{file}: {error}"))?)?;
    }
    println!("{} mistakes planted in {}", mistakes.len(), copy.display());
    Ok(())
}

/// What cannot be planted any more.
pub fn check(root: &Path, findings: &mut Vec<String>) {
    let planted = read(root).and_then(|mistakes| plant(root, &mistakes));
    findings.extend(planted.err());
}

fn read(root: &Path) -> Result<Vec<Mistake>, String> {
    let entries = std::fs::read_dir(root.join(FOLDER)).map_err(|error| format!("{FOLDER}: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let mut mistakes = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        mistakes.extend(parse(&text).map_err(|why| format!("{}: {why}", path.display()))?);
    }
    Ok(mistakes)
}

fn parse(text: &str) -> Result<Vec<Mistake>, String> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("mistake ") {
            mistakes.push(Mistake { name: name.to_owned(), ..Mistake::default() });
            continue;
        }
        let mistake = mistakes.last_mut().ok_or_else(|| wrong("no mistake is named"))?;
        let edit = mistake.edits.last_mut().ok_or_else(|| wrong("no file is named"));
        match line.split_once(' ').unwrap_or((line, "")) {
            ("what", what) => mistake.what = what.to_owned(),
            ("by", test) => mistake.noticed_by = test.to_owned(),
            ("in", file) => mistake.edits.push(Edit { file: file.to_owned(), ..Edit::default() }),
            ("-", code) => edit?.before.push(code.trim().to_owned()),
            ("+", code) => edit?.after.push(code.trim().to_owned()),
            _ => return Err(wrong("expected `mistake`, `what`, `by`, `in`, `-` or `+`")),
        }
    }
    match mistakes.iter().find(|mistake| mistake.edits.is_empty() || mistake.noticed_by.is_empty()) {
        Some(mistake) => Err(format!("{}: no `in`, or no `by`", mistake.name)),
        None => Ok(mistakes),
    }
}

/// The files that are changed, and how.
fn plant(root: &Path, mistakes: &[Mistake]) -> Result<Vec<(String, String)>, String> {
    let base = std::fs::read_to_string(root.join(BASE)).map_err(|error| format!("{BASE}: {error}"))?;
    let mut files = vec![(BASE.to_owned(), format!("{base}\n#[cfg(planted)]\npub mod planted;\n"))];
    for (number, mistake) in mistakes.iter().enumerate() {
        for edit in &mistake.edits {
            let at = files.iter().position(|(path, _)| *path == edit.file);
            let at = at.map_or_else(
                || {
                    let text = std::fs::read_to_string(root.join(&edit.file));
                    files.push((edit.file.clone(), text.map_err(|error| format!("{}: {error}", edit.file))?));
                    Ok::<usize, String>(files.len() - 1)
                },
                Ok,
            )?;
            let switched =
                |lines: &[String]| lines.iter().map(|line| switch(line, number, mistakes)).collect();
            let edit = Edit {
                before: switched(&edit.before),
                after: switched(&edit.after),
                file: edit.file.clone(),
            };
            let planted = replace(&files[at].1, &edit);
            files[at].1 = planted.map_err(|why| format!("{}: mistake {}: {why}", edit.file, mistake.name))?;
        }
    }
    Ok(files)
}

fn switch(line: &str, number: usize, mistakes: &[Mistake]) -> String {
    let is = |number| format!("barnabas_base::planted::is({number})");
    let mut line = line.to_owned();
    for (number, other) in mistakes.iter().enumerate() {
        line = line.replace(&format!("PLANTED:{} ", other.name), &format!("{} ", is(number)));
    }
    line.replace("PLANTED", &is(number))
}

fn replace(text: &str, edit: &Edit) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let count = edit.before.len();
    let is_it = |at: &usize| lines[*at..*at + count].iter().zip(&edit.before).all(|(a, b)| a.trim() == b);
    let places: Vec<usize> = (0..(lines.len() + 1).saturating_sub(count)).filter(is_it).collect();
    let [at] = places[..] else {
        let lines = edit.before.join(" / ");
        return Err(format!("these lines stand {} times, not once: {lines}", places.len()));
    };
    let after = edit.after.iter().map(String::as_str);
    let all = lines[..at].iter().copied().chain(after).chain(lines[at + count..].iter().copied());
    Ok(all.collect::<Vec<&str>>().join("\n") + "\n")
}

fn table(mistakes: &[Mistake]) -> String {
    let mut table = String::from("\npub const MISTAKES: &[Mistake] = &[\n");
    for Mistake { name, noticed_by, what, .. } in mistakes {
        let _ =
            writeln!(table, "    Mistake {{ name: {name:?}, noticed_by: {noticed_by:?}, what: {what:?} }},");
    }
    table + "];\n"
}

fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let is_copied = |file: &&str| {
        !LEFT_OUT.iter().any(|folder| file.starts_with(folder)) && root.join(file).symlink_metadata().is_ok()
    };
    Ok(listed.lines().filter(is_copied).map(str::to_owned).collect())
}

fn remove_others(copy: &Path, folder: &Path, known: &BTreeSet<&str>) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let shown = path.strip_prefix(copy).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(copy, &path, known)?;
        } else if !known.contains(shown.as_str()) {
            std::fs::remove_file(&path).map_err(|error| format!("{shown}: {error}"))?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if std::fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{parse, replace, switch};

    const TEXT: &str = "mistake Swaps\nwhat Swaps two.\nby kill\nin a.rs\n- let a = b;\n+ let a = if PLANTED { c } else { b };\n";

    #[test]
    fn a_mistake_takes_the_place_of_its_lines() {
        let mistakes = parse(TEXT).unwrap();
        let planted = replace("fn f() {\n    let a = b;\n}\n", &mistakes[0].edits[0]).unwrap();
        assert_eq!(planted, "fn f() {\nlet a = if PLANTED { c } else { b };\n}\n");
        let line = "let a = PLANTED && !PLANTED:Swaps && b;";
        let is = |number| format!("barnabas_base::planted::is({number})");
        assert_eq!(switch(line, 7, &mistakes), format!("let a = {} && !{} && b;", is(7), is(0)));
    }

    #[test]
    fn lines_that_are_not_there_once_are_refused() {
        let mistakes = parse(TEXT).unwrap();
        for text in ["fn f() {}\n", "let a = b;\nlet a = b;\n", ""] {
            let why = replace(text, &mistakes[0].edits[0]).unwrap_err();
            assert!(why.contains("let a = b;"), "{why}");
        }
    }

    #[test]
    fn a_mistake_without_a_hunter_is_refused() {
        assert!(parse("mistake Swaps\nin a.rs\n- x\n+ y\n").unwrap_err().contains("Swaps"));
        assert!(parse("- x\n").unwrap_err().contains("line 1"));
    }
}
