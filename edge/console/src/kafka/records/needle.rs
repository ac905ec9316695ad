//! A text that is looked for in records, as its UTF-8 bytes: in keys, values, and headers' names and values.

use crate::http::problem::Problem;
use barnabas_wire::records::RecordRef;

const BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    first: u8,
    rest: Vec<u8>,
}

impl Needle {
    /// # Errors
    /// The text is empty, or longer than a kilobyte.
    pub fn read(text: &str) -> Result<Self, Problem> {
        match text.as_bytes().split_first() {
            Some((first, rest)) if text.len() <= BYTES_MAX => Ok(Self { first: *first, rest: rest.to_vec() }),
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
        let mut left = bytes;
        while let Some(at) = left.iter().position(|byte| *byte == self.first) {
            left = &left[at + 1..];
            if left.starts_with(&self.rest) {
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
}
