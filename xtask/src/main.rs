//! Chores of this repository: what is generated, and what is kept tidy.
//!
//! `cargo run -p xtask -- tidy` checks the house rules; `-- generate` writes the codec from its schema files; `--
//! plant` writes a copy of the tree with mistakes in it (lab/planted).

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tidy"] => xtask::tidy::main(false),
        ["tidy", "--tighten"] => xtask::tidy::main(true),
        ["plant"] => xtask::plant::main(&xtask::workspace_root()),
        ["generate"] => xtask::generate::main(false),
        ["generate", "--check"] => xtask::generate::main(true),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy [--tighten] | generate [--check] | plant");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(findings) => {
            eprintln!("{findings}");
            ExitCode::FAILURE
        }
    }
}
