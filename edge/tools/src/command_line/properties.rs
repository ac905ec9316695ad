//! Properties: of a file in Java's format (core/base's `properties`), or of `key=value` flags.

use crate::{ToolError, tell};
use barnabas_base::properties::{self, PropertiesError};

/// Pairs in order. Of a key that stands twice the last value holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Properties {
    pairs: Vec<(String, String)>,
}

impl Properties {
    /// # Errors
    /// The file cannot be read, is no text, or has a malformed `\u` escape.
    pub fn load(path: &str) -> Result<Self, ToolError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))?;
        Self::parse(&text).map_err(|error| ToolError::Usage(format!("{path}, {error}")))
    }

    /// # Errors
    /// A malformed `\u` escape.
    pub fn parse(text: &str) -> Result<Self, PropertiesError> {
        Ok(Self { pairs: properties::pairs(text)? })
    }

    /// Adds the words of `--flag key=value`.
    ///
    /// # Errors
    /// A word without `=`.
    pub fn add_words<'a>(
        &mut self,
        flag: &str,
        words: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ToolError> {
        for word in words {
            let pair = word.split_once('=').filter(|pair| !pair.0.is_empty());
            let (key, value) =
                pair.ok_or_else(|| ToolError::Usage(format!("--{flag} takes key=value, not '{word}'")))?;
            self.set(key, value);
        }
        Ok(())
    }

    pub fn set(&mut self, key: &str, value: &str) {
        self.pairs.push((key.to_owned(), value.to_owned()));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.as_str())
    }

    /// Whether `key` is set to `true`; `default` where it is not set.
    pub fn is_true(&self, key: &str, default: bool) -> bool {
        self.get(key).map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// The value, with `\t` and `\n` read as what they stand for.
    pub fn unescaped(&self, key: &str, default: &str) -> String {
        self.get(key).unwrap_or(default).replace("\\t", "\t").replace("\\n", "\n")
    }

    /// # Errors
    /// The value is no number, or out of its type's range.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, ToolError> {
        let Some(word) = self.get(key).map(str::trim) else { return Ok(None) };
        word.parse().map(Some).map_err(|_| ToolError::Usage(format!("{key} takes a number, not '{word}'")))
    }

    /// Warns of keys that `reader` does not know, as Kafka's clients do.
    pub fn warn_of_unknown(&self, reader: &str, is_known: impl Fn(&str) -> bool) {
        let mut unknown: Vec<&str> = self.iter().map(|pair| pair.0).filter(|key| !is_known(key)).collect();
        unknown.dedup();
        if !unknown.is_empty() {
            tell(&format!(
                "WARN no {reader} knows these properties, they change nothing: {}",
                unknown.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_java_reads_them() {
        let text = "# a comment\n! another\n\n a = 1 \nb:2\nc 3\nlong = x,\\\n   y,\\\n   z\nd\\=e=\\u0041\\tB\\\\\nempty=\na=4";
        let read = Properties::parse(text).expect("sound");
        let expected = [
            ("a", "1 "),
            ("b", "2"),
            ("c", "3"),
            ("long", "x,y,z"),
            ("d=e", "A\tB\\"),
            ("empty", ""),
            ("a", "4"),
        ];
        assert_eq!(read.iter().collect::<Vec<_>>(), expected);
        assert_eq!(read.get("a"), Some("4"));
    }

    #[test]
    fn words_without_a_value_are_refused() {
        let mut read = Properties::default();
        read.add_words("property", ["a=b=c", "d="]).expect("pairs");
        assert_eq!(read.iter().collect::<Vec<_>>(), [("a", "b=c"), ("d", "")]);
        let refused = read.add_words("property", ["print.key"]).expect_err("no value");
        assert_eq!(refused.to_string(), "--property takes key=value, not 'print.key'");
    }
}
