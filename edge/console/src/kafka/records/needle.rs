//! What is looked for in records: in keys, values, and headers' names and values. A text is looked for as its UTF-8
//! bytes; a regular expression has RE2's syntax and takes time linear in what it looks at (the crate `regex`).

use crate::http::call::Place;
use crate::http::problem::Problem;
use crate::http::shape::{Param, Shape};
use barnabas_wire::records::RecordRef;
use regex::bytes::{Regex, RegexBuilder};

const BYTES_MAX: usize = 1024;
/// Of a compiled expression, and of what it remembers while it looks.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;

pub const TEXT: Param = Param {
    name: "text",
    shape: Shape::Text,
    about: "What keys, values or headers contain: 1 to 1024 bytes",
};
pub const REGEX: Param = Param {
    name: "regex",
    shape: Shape::Text,
    about: "Instead of text: what matches somewhere in a key, a value or a header, in RE2's syntax",
};

#[derive(Debug, Clone)]
pub enum Needle {
    Text { first: u8, rest: Vec<u8> },
    Pattern(Regex),
}

impl Needle {
    /// What the query's `text` or `regex` says; `None`: it has neither.
    ///
    /// # Errors
    /// It has both, or one that cannot be looked for.
    pub fn of_query(at: &Place) -> Result<Option<Self>, Problem> {
        match (at.query("text"), at.query("regex")) {
            (Some(_), Some(_)) => Err(Problem::bad("a search takes text or regex, not both")),
            (Some(text), None) => Self::read(text).map(Some),
            (None, Some(pattern)) => Self::pattern(pattern).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// # Errors
    /// It is no regular expression, or one that takes too much memory.
    pub fn pattern(pattern: &str) -> Result<Self, Problem> {
        if pattern.len() > BYTES_MAX {
            return Err(Problem::bad(format!("regex takes 1 to {BYTES_MAX} bytes")));
        }
        let mut builder = RegexBuilder::new(pattern);
        let built = builder.size_limit(PROGRAM_BYTES_MAX).dfa_size_limit(PROGRAM_BYTES_MAX).build();
        built.map(Self::Pattern).map_err(|why| Problem::bad(format!("regex: {why}")))
    }

    /// # Errors
    /// The text is empty, or longer than a kilobyte.
    pub fn read(text: &str) -> Result<Self, Problem> {
        match text.as_bytes().split_first() {
            Some((first, rest)) if text.len() <= BYTES_MAX => {
                Ok(Self::Text { first: *first, rest: rest.to_vec() })
            }
            _ => Err(Problem::bad(format!("text takes 1 to {BYTES_MAX} bytes"))),
        }
    }

    pub fn is_in_record(&self, record: &RecordRef<'_>) -> bool {
        let is_in = |part: Option<&[u8]>| part.is_some_and(|part| self.is_in(part));
        is_in(record.key)
            || is_in(record.value)
            || record.headers().any(|(name, value)| self.is_in(name) || is_in(value))
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let (first, rest) = match self {
            Self::Text { first, rest } => (first, rest),
            Self::Pattern(pattern) => return pattern.is_match(bytes),
        };
        let mut left = bytes;
        while let Some(at) = left.iter().position(|byte| byte == first) {
            left = &left[at + 1..];
            if left.starts_with(rest) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_wherever_it_begins() {
        let is_in = |needle: &str, text: &[u8]| Needle::read(needle).expect("sound").is_in(text);
        for (needle, text) in [("a", "a"), ("ab", "aab"), ("ab", "xxab"), ("aab", "aaab"), ("é", "caf\u{e9}")]
        {
            assert!(is_in(needle, text.as_bytes()), "{needle} in {text}");
        }
        for (needle, text) in [("a", ""), ("ab", "a"), ("ab", "ba"), ("A", "a"), ("aab", "abab")] {
            assert!(!is_in(needle, text.as_bytes()), "{needle} in {text}");
        }
        assert!(is_in("b", b"\xff\x00b"));
        let long = "x".repeat(BYTES_MAX + 1);
        assert!(Needle::read("").is_err() && Needle::read(&long).is_err());
    }

    #[test]
    fn pattern_matches_bytes_that_are_no_text_too() {
        let is_in = |pattern: &str, bytes: &[u8]| Needle::pattern(pattern).expect("sound").is_in(bytes);
        assert!(is_in("or(der|bit)-[0-9]+$", b"see orbit-77") && is_in("(?-u)\\xff.", b"\xff1"));
        assert!(!is_in("^b", b"ab") && is_in("(?i)ANNA", b"anna"));
        // Quadratic and worse where an engine backtracks.
        assert!(!is_in("(a|a)*(a|a)*(a|a)*b$", &[b'a'; 100_000]));
        for bad in ["(", "(a{1000}){1000}", &"x".repeat(BYTES_MAX + 1)] {
            assert_eq!(Needle::pattern(bad).expect_err("refused").status, 400);
        }
    }

    #[test]
    fn query_has_a_text_or_a_pattern() {
        let at =
            |query| Place { query: Place::read_query(Some(query)).expect("sound"), ..Default::default() };
        assert!(matches!(Needle::of_query(&at("text=a")), Ok(Some(Needle::Text { .. }))));
        assert!(matches!(Needle::of_query(&at("regex=a%2B")), Ok(Some(Needle::Pattern(_)))));
        assert!(
            matches!(Needle::of_query(&at("")), Ok(None)) && Needle::of_query(&at("text=a&regex=b")).is_err()
        );
    }
}
