//! `--property key=value`: reads them, and says which key nobody knows.

use crate::ToolError;
use clap::ArgMatches;

/// What was given under one or several flags of the same meaning (Kafka has renamed some).
#[derive(Debug, Default)]
pub struct KeyValues {
    given: Vec<(String, String)>,
}

impl KeyValues {
    /// # Errors
    /// A word without `=`, or a key that is not among `known`.
    pub fn read(matches: &ArgMatches, flags: &[&str], known: &[&str]) -> Result<Self, ToolError> {
        let mut given = Vec::new();
        for flag in flags {
            for word in matches.get_many::<String>(flag).into_iter().flatten() {
                let pair = word.split_once('=');
                let (key, value) =
                    pair.ok_or_else(|| ToolError::Usage(format!("--{flag} takes key=value, not '{word}'")))?;
                if !known.contains(&key) {
                    let known = known.join(", ");
                    return Err(ToolError::Usage(format!(
                        "--{flag} does not know '{key}'; it knows {known}"
                    )));
                }
                given.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(Self { given })
    }

    /// The last value given for `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.given.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.as_str())
    }

    /// Whether `key` was set to `true`; `default` where it was not set.
    pub fn is_true(&self, key: &str, default: bool) -> bool {
        self.get(key).map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// The value, with `\t`, `\n` and `\\` read as what they stand for.
    pub fn unescaped(&self, key: &str, default: &str) -> String {
        self.get(key).unwrap_or(default).replace("\\t", "\t").replace("\\n", "\n")
    }

    /// # Errors
    /// The value is no number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, ToolError> {
        let Some(word) = self.get(key) else { return Ok(None) };
        word.parse().map(Some).map_err(|_| ToolError::Usage(format!("{key} takes a number, not '{word}'")))
    }
}
