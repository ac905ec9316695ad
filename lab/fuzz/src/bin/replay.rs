//! Runs every file of lab/fuzz/corpus through its target: what once broke stays fixed. Needs no fuzzer. `--measure`
//! says what each target held at most.

use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: barnabas_fuzz::limit::Limited = barnabas_fuzz::limit::Limited;

fn main() -> ExitCode {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let (mut files, mut unreadable) = (0, 0);
    let measures = std::env::args().any(|word| word == "--measure");
    for target in barnabas_fuzz::TARGETS {
        let name = target.name;
        let mut most = (0, 0);
        let Ok(entries) = std::fs::read_dir(corpus.join(name)) else {
            println!("{name}: no corpus");
            unreadable += 1;
            continue;
        };
        for entry in entries.flatten() {
            match std::fs::read(entry.path()) {
                Ok(bytes) => {
                    most = most.max((target.feed(&bytes), bytes.len()));
                    files += 1;
                }
                Err(error) => {
                    println!("{}: {error}", entry.path().display());
                    unreadable += 1;
                }
            }
        }
        if measures {
            let bound = target.bound.bytes(most.1);
            println!("{name}: at most {} bytes for an input of {}, of {bound}", most.0, most.1);
        }
    }
    println!("{files} passed, {unreadable} failed");
    if unreadable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
