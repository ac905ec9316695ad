//! `barnabas-history DIR|FILE…`: judges a history; exit 0 when no rule is broken, 1 when one is, 2 when it cannot be
//! read.

use barnabas_history::judge;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        eprintln!("usage: barnabas-history DIR|FILE…");
        return ExitCode::from(2);
    }
    match run(&paths) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("barnabas-history: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(paths: &[PathBuf]) -> Result<bool, String> {
    let files = judge::files(paths)?;
    let facts = judge::read(&files)?;
    let verdicts = judge::judge(&facts);
    print!("{}", judge::told(&verdicts));
    for verdict in verdicts.iter().filter(|verdict| verdict.is_broken()) {
        let Some(first) = verdict.findings.kept.iter().find(|finding| !finding.values.is_empty()) else {
            continue;
        };
        println!("\nwhat the history says about the first of {}: {}", verdict.rule.id, first.text);
        for line in judge::excerpt(&files, &first.values, 8)? {
            println!("  {line}");
        }
    }
    println!("{}", judge::waits(&facts));
    println!("{}", judge::summary(&facts, &verdicts));
    Ok(!verdicts.iter().any(judge::Verdict::is_broken))
}
