//! Properties: of a file in Java's format, or of `key=value` flags.
//!
//! Source of the format: the documentation of Java's `Properties.load`.

use crate::{ToolError, tell};

/// Pairs in order. Of a key that stands twice the last value holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Properties {
    pairs: Vec<(String, String)>,
}

impl Properties {
    /// # Errors
    /// The file cannot be read, or is no text.
    pub fn load(path: &str) -> Result<Self, ToolError> {
        let text = std::fs::read_to_string(path);
        text.map(|text| Self::parse(&text))
            .map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))
    }

    pub fn parse(text: &str) -> Self {
        let mut pairs = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start().to_owned();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            while is_continued(&line) {
                line.pop();
                line += lines.next().unwrap_or_default().trim_start();
            }
            pairs.push(pair(&line));
        }
        Self { pairs }
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

/// An odd number of backslashes at the end.
fn is_continued(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

/// The key ends at the first `=`, `:` or white space that is not escaped.
fn pair(line: &str) -> (String, String) {
    let mut is_escaped = false;
    let end = line.find(|letter: char| {
        let is_end = !is_escaped && (matches!(letter, '=' | ':') || letter.is_whitespace());
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
    (unescaped(key), unescaped(value))
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_java_reads_them() {
        let text = "# a comment\n! another\n\n a = 1 \nb:2\nc 3\nlong = x,\\\n   y,\\\n   z\nd\\=e=\\u0041\\tB\\\\\nempty=\na=4";
        let read = Properties::parse(text);
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
