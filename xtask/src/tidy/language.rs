//! Words that hide the subject of a sentence (STYLE, *Language*), on a falling ratchet; and comments that are too wide.

use std::path::Path;
use std::process::Command;

/// Each is written in two parts, so that this file does not find itself.
const WORDS: &[(&str, &str)] = &[
    ("who", "ever"),
    ("no", "body"),
    ("some", "body"),
    ("is t", "old"),
    ("is s", "aid"),
    ("a", "new"),
    ("l", "ay"),
    ("l", "ays"),
    ("la", "id"),
    ("let ", "go"),
    ("lets ", "go"),
];

/// Characters of the widest line of a comment.
const COMMENT_MAX: usize = 120;

const EXTENSIONS: &[&str] = &["rs", "md", "py", "java", "go", "js", "sh"];

/// Not ours to word, or a record of what was measured on a day.
const LEFT_OUT: &[&str] = &["lab/bench/results/", "lab/bench/JOURNAL.md", "core/messages/src/generated/"];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Language {
    pub words: usize,
    /// Lines of Rust comments that are wider than [`COMMENT_MAX`].
    pub wide_comments: usize,
}

/// Counts over every text that git knows.
pub fn check(root: &Path, findings: &mut Vec<String>) -> Language {
    let mut counted = Language::default();
    let output = Command::new("git").args(["ls-files"]).current_dir(root).output();
    let listed = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            findings.push(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
            return counted;
        }
        Err(error) => {
            findings.push(format!("git ls-files: {error}"));
            return counted;
        }
    };
    for path in listed.lines() {
        let is_text = Path::new(path)
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
        if !is_text || LEFT_OUT.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        counted.words += words_in(&text);
        if path.ends_with(".rs") {
            counted.wide_comments += text.lines().filter(|line| is_wide_comment(line)).count();
        }
    }
    counted
}

fn is_wide_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > COMMENT_MAX
}

/// How often one of [`WORDS`] stands in `text` as a word of its own; `_` parts words, as in names of tests.
fn words_in(text: &str) -> usize {
    let lower = text.to_ascii_lowercase().replace('_', " ");
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    WORDS
        .iter()
        .map(|(first, second)| {
            let word = format!("{first}{second}");
            lower
                .match_indices(&word)
                .filter(|(at, _)| {
                    let bytes = lower.as_bytes();
                    !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)))
                        && !is_part(bytes.get(at + word.len()))
                })
                .count()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{is_wide_comment, words_in};

    #[test]
    fn words_count_alone_and_in_names_and_not_inside_others() {
        assert_eq!(words_in(&format!("No{} lets it {}; fn who{}_writes()", "body", "go", "ever")), 2);
        assert_eq!(words_in(&format!("He is {}, and lays it an{}", "told", "ew")), 3);
        assert_eq!(words_in("renew display layer mislaid delay"), 0);
    }

    #[test]
    fn only_comments_are_held_to_the_width() {
        assert!(is_wide_comment(&format!("    // {}", "x".repeat(120))));
        assert!(!is_wide_comment(&format!("    // {}", "x".repeat(100))));
        assert!(!is_wide_comment(&"x".repeat(130)));
    }
}
