//! The house rules that a machine can check: who may depend on whom, how long things are, what a file opens with.
//!
//! It reads the sources and `cargo metadata`; it changes nothing but, with `--tighten`, the ratchet's own figures. The
//! rules themselves: `arrows` (ranks and dependencies), `circles` (between modules), `folders` (entries, clocks),
//! `sources` (per file), `formats` (log lines), `overflow` (checked arithmetic), `size` (lengths), `names`
//! (breadcrumbs, ARCHITECTURE.md), `language` (words), `messages` (the page of
//! log messages). What is not yet as it should be stands on a `ratchet`.

mod arrows;
mod circles;
mod folders;
mod formats;
mod language;
mod messages;
mod names;
mod overflow;
mod ratchet;
mod size;
mod sources;

use ratchet::Figure;

use std::path::{Path, PathBuf};

/// Runs every rule over this workspace and prints the figures.
///
/// # Errors
/// All findings, a line each.
pub fn main(tighten: bool) -> Result<(), String> {
    let root = crate::workspace_root();
    let files = rust_files(&root);
    let mut findings = Vec::new();
    let arrows = arrows::check(&root, &mut findings);
    sources::check(&root, &files, &mut findings);
    formats::check(&root, &files, &mut findings);
    messages::check(&root, &files, &mut findings);
    overflow::check(&root, &mut findings);
    crate::plant::check(&root, &mut findings);
    let (sizes, mut figures) = size::check(&root, &files, &mut findings);
    println!("{arrows}");
    println!("{sizes}");
    figures.extend(show_circles(&root, &files));
    figures.extend(show_folders(&root, &files));
    figures.extend(show_texts(&root, &files, &mut findings));
    ratchet::hold(&root, &figures, tighten, &mut findings);
    if findings.is_empty() {
        println!("tidy: {} files, no finding", files.len());
        return Ok(());
    }
    findings.sort();
    Err(format!("{}\ntidy: {} findings in {} files", findings.join("\n"), findings.len(), files.len()))
}

fn show_circles(root: &Path, files: &[PathBuf]) -> [Figure; 1] {
    let (circles, in_circles) = circles::check(root, files);
    for circle in &circles {
        println!("{circle}");
    }
    println!("circles: {}, modules in them: {in_circles}", circles.len());
    [Figure { name: "modules_in_circles", now: in_circles, advice: "see the circles above" }]
}

fn show_folders(root: &Path, files: &[PathBuf]) -> [Figure; 2] {
    let folders = folders::check(root, files);
    let largest: Vec<String> =
        folders.largest.iter().map(|(entries, folder)| format!("{folder} {entries}")).collect();
    println!("entries over 12 in a folder: {} ({})", folders.entries_over, largest.join(", "));
    println!("files of the shell that read a clock, besides shell/clock: {}", folders.clock_readers.len());
    [
        Figure { name: "entries_over_12", now: folders.entries_over, advice: "make a folder of an idea" },
        Figure {
            name: "clock_readers",
            now: folders.clock_readers.len(),
            advice: "only shell/clock reads a clock",
        },
    ]
}

fn show_texts(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) -> [Figure; 5] {
    let names = names::check(root, files);
    for name in names.missing.iter().chain(&names.unresolved) {
        println!("leads nowhere: {name}");
    }
    let language = language::check(root, findings);
    println!(
        "breadcrumbs: {} to missing files, {} not answered; ARCHITECTURE.md: {} names that nothing has",
        names.missing.len(),
        names.one_way,
        names.unresolved.len()
    );
    println!("words on the ratchet: {}; comments wider than 120: {}", language.words, language.wide_comments);
    [
        Figure { name: "breadcrumbs_missing", now: names.missing.len(), advice: "name a file that exists" },
        Figure {
            name: "breadcrumbs_one_way",
            now: names.one_way,
            advice: "let the neighbour name this file",
        },
        Figure {
            name: "architecture_unresolved",
            now: names.unresolved.len(),
            advice: "ARCHITECTURE.md names what exists",
        },
        Figure { name: "words", now: language.words, advice: "name the subject (STYLE, Language)" },
        Figure { name: "wide_comments", now: language.wide_comments, advice: "break the line at 120" },
    ]
}

/// Every Rust file of ours, in the order of their paths, relative to the root.
fn rust_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> =
        ["core", "shell", "edge", "lab", "xtask"].iter().map(|rank| root.join(rank)).collect();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && name != ".cache" {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.strip_prefix(root).unwrap_or(&path).to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// Code that a generator wrote is not measured: its generator is.
fn is_generated(path: &Path) -> bool {
    path.starts_with("core/messages/src/generated")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        part.as_os_str() == "tests" || part.as_os_str() == "benches" || part.as_os_str() == "fuzz"
    }) || path.file_stem().is_some_and(|stem| {
        stem == "tests" || stem == "testing" || stem.to_string_lossy().ends_with("_tests")
    })
}
