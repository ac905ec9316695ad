//! Conversations with a group coordinator: `tests/talks/*.txt`. A line that begins with `> ` is said to the shard, the
//! lines after it are what it answered. `UPDATE_TALKS=1 cargo test -p barnabas-coordinator --test talks` writes the
//! answers anew; the diff is the review.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod rig;
mod speech;

use std::path::Path;

fn run(path: &Path) -> Result<(), String> {
    let said = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut speaker = speech::Speaker::default();
    let mut heard = String::new();
    for line in said.lines() {
        let Some(command) = line.strip_prefix("> ") else {
            if line.starts_with("# ") || line.is_empty() {
                heard.push_str(line);
                heard.push('\n');
            }
            continue;
        };
        heard.push_str(line);
        heard.push('\n');
        for answer in speaker.say(command) {
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/talks");
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("the talks").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 20, "talks are missing");
    let wrong: Vec<String> = paths.iter().filter_map(|path| run(path).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
