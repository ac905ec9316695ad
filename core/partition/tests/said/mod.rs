//! What stands after `> ` in a talk, and the replay of talks.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use std::fmt::Write;
use std::path::Path;

use barnabas_base::Offset;

/// One line that was said: `produce p=9 seq=0 txn`.
pub struct Said<'a> {
    pub verb: &'a str,
    pub words: Vec<&'a str>,
}

impl<'a> Said<'a> {
    pub fn new(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        Self { verb: words.next().unwrap_or_default(), words: words.collect() }
    }

    pub fn word(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    pub fn number(&self, key: &str) -> Option<i64> {
        self.word(key).map(|word| word.parse().unwrap_or_else(|_| panic!("{key}={word} is no number")))
    }

    pub fn or(&self, key: &str, default: i64) -> i64 {
        self.number(key).unwrap_or(default)
    }

    pub fn offset(&self, key: &str) -> Offset {
        Offset(self.number(key).unwrap_or_else(|| panic!("{} needs {key}=", self.verb)))
    }
}

/// The talk with the answers that are given now.
fn replay(text: &str, mut say: impl FnMut(&str) -> String) -> String {
    let mut replayed = String::new();
    for line in text.lines() {
        match line.strip_prefix("> ") {
            Some(said) => write!(replayed, "{line}\n{}", say(said)).unwrap(),
            None if line.is_empty() || line.starts_with('#') => writeln!(replayed, "{line}").unwrap(),
            None => {}
        }
    }
    replayed
}

/// Compares every talk of `directory` with what is answered now; `TALKS=write` rewrites them. Returns how many there
/// are.
pub fn compare<S: FnMut(&str) -> String>(directory: &str, mut talk: impl FnMut() -> S) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let write = std::env::var("TALKS").is_ok_and(|value| value == "write");
    let mut paths: Vec<_> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut wrong = Vec::new();
    for path in &paths {
        let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        let replayed = replay(&text, talk());
        if write {
            std::fs::write(path, &replayed).unwrap();
        } else if replayed != text {
            let pairs = text.lines().zip(replayed.lines()).enumerate();
            let first = pairs.map(|(at, (old, new))| (at + 1, old, new)).find(|(_, old, new)| old != new);
            let name = path.file_name().unwrap_or_default().to_owned();
            wrong.push(format!("{name:?}: expected and answered differ first at {first:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    paths.len()
}
