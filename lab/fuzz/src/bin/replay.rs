//! Runs every file of lab/fuzz/corpus through its target: what once broke stays fixed. Needs no fuzzer.

use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: barnabas_fuzz::limit::Limited = barnabas_fuzz::limit::Limited;

fn main() -> ExitCode {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let (mut files, mut unreadable) = (0, 0);
    for (name, work) in barnabas_fuzz::TARGETS {
        let Ok(entries) = std::fs::read_dir(corpus.join(name)) else {
            println!("{name}: no corpus");
            unreadable += 1;
            continue;
        };
        for entry in entries.flatten() {
            match std::fs::read(entry.path()) {
                Ok(bytes) => {
                    work(&bytes);
                    files += 1;
                }
                Err(error) => {
                    println!("{}: {error}", entry.path().display());
                    unreadable += 1;
                }
            }
        }
    }
    println!("{files} passed, {unreadable} failed");
    if unreadable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
