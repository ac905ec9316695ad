//! Transcripts: a line that begins with `> ` is sent to the shard, the lines after it are its answers. `UPDATE_TALKS=1`
//! writes the answers that the shard gives now; the diff is the review.

use std::path::Path;

/// Every transcript of the folder, of which there are at least so many, goes as written. `speaker` gives a new shard,
/// which takes a command and gives the lines that it answers.
pub fn check<S: FnMut(&str) -> Vec<String>>(folder: &str, least: usize, speaker: impl Fn() -> S) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the talks");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= least, "talks are missing");
    let wrong: Vec<String> = paths.iter().filter_map(|path| run(path, speaker()).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn run(path: &Path, mut speaker: impl FnMut(&str) -> Vec<String>) -> Result<(), String> {
    let written = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut now = String::new();
    let mut add = |line: &str| {
        now.push_str(line);
        now.push('\n');
    };
    for line in written.lines() {
        let command = line.strip_prefix("> ");
        if command.is_some() || line.starts_with("# ") || line.is_empty() {
            add(line);
        }
        for answer in command.into_iter().flat_map(&mut speaker) {
            add(&answer);
        }
    }
    if now == written {
        return Ok(());
    }
    if std::env::var_os("UPDATE_TALKS").is_some() {
        return std::fs::write(path, now).map_err(|error| error.to_string());
    }
    Err(format!("{} goes otherwise now:\n{now}", path.display()))
}
