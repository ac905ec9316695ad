//! Conversations with a transaction coordinator: `tests/transaction_talks/*.txt`, in the form of `tests/talks`.
//! `UPDATE_TALKS=1 cargo test -p barnabas-coordinator --test transaction_talks` writes the answers anew.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod transactions;

use std::path::Path;

use transactions::speech::Speaker;

fn run(path: &Path) -> Result<(), String> {
    let said = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut speaker = Speaker::default();
    let mut heard = String::new();
    for line in said.lines() {
        let command = line.strip_prefix("> ");
        if command.is_some() || line.starts_with("# ") || line.is_empty() {
            heard.push_str(line);
            heard.push('\n');
        }
        for answer in command.into_iter().flat_map(|command| speaker.say(command)) {
            heard.push_str(&answer);
            heard.push('\n');
        }
    }
    if heard == said {
        return Ok(());
    }
    if std::env::var_os("UPDATE_TALKS").is_some() {
        return std::fs::write(path, heard).map_err(|error| error.to_string());
    }
    Err(format!("{} goes otherwise now:\n{heard}", path.display()))
}

#[test]
fn every_talk_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transaction_talks");
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("the talks").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 12, "talks are missing");
    let wrong: Vec<String> = paths.iter().filter_map(|path| run(path).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
