//! The house rules that a machine can check: who may depend on whom, how long things are, what a file opens with.
//!
//! It reads the sources and `cargo metadata`; it changes nothing but, with `--tighten`, the ratchet's own figures.
//! The rules themselves: `arrows` (ranks and dependencies), `sources` (per file), `size` (lengths, with a ratchet).

mod arrows;
mod size;
mod sources;

use std::path::{Path, PathBuf};

/// Runs every rule over this workspace and prints the figures.
///
/// # Errors
/// All findings, a line each.
pub fn main(tighten: bool) -> Result<(), String> {
    let root = workspace_root();
    let files = rust_files(&root);
    let mut findings = Vec::new();
    let arrows = arrows::check(&root, &mut findings);
    sources::check(&root, &files, &mut findings);
    let figures = size::check(&root, &files, tighten, &mut findings);
    println!("{arrows}");
    println!("{figures}");
    if findings.is_empty() {
        println!("tidy: {} files, no finding", files.len());
        return Ok(());
    }
    findings.sort();
    Err(format!("{}\ntidy: {} findings in {} files", findings.join("\n"), findings.len(), files.len()))
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
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

/// Code that a generator wrote is measured by nobody: its generator is.
fn is_generated(path: &Path) -> bool {
    path.starts_with("core/wire/src/messages")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        part.as_os_str() == "tests" || part.as_os_str() == "benches" || part.as_os_str() == "fuzz"
    }) || path.file_stem().is_some_and(|stem| {
        stem == "tests" || stem == "testing" || stem.to_string_lossy().ends_with("_tests")
    })
}
