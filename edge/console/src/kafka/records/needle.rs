//! What is looked for in records: a text or an expression in keys, values, headers' names and values, and a field of a
//! value that is JSON.
//!
//! A text is looked for as its UTF-8 bytes, or without regard to case. A regular expression has RE2's syntax and takes
//! time linear in what it looks at (the crate `regex`).
//!
//! Always true: a record that [`Needle::may_be_in`] excludes from its batch's bytes is in none of its parts.

use super::decode::Decoding;
use super::json::{JsonTest, OPERATIONS};
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
pub const IGNORE_CASE: Param =
    Param { name: "ignore_case", shape: Shape::OneOf(&["true", "false"]), about: "Letters of either case" };
pub const PARTS: Param = Param {
    name: "in",
    shape: Shape::Text,
    about: "Where text or regex is looked for: key, value, headers, with commas between; absent: in all",
};
pub const JSON: Param = Param {
    name: "json",
    shape: Shape::Text,
    about: "A field of values that are JSON, by its path (customer.id, lines[0].price), that op and value test",
};
pub const OPERATION: Param = Param {
    name: "op",
    shape: Shape::OneOf(OPERATIONS),
    about: "With json; absent: eq, or exists without a value",
};
pub const VALUE: Param = Param {
    name: "value",
    shape: Shape::Text,
    about: "With json: a number, true, false, null, or a text. Numbers are compared as they are written",
};

/// See the file's header. What is set has to hold.
#[derive(Debug, Clone)]
pub struct Needle {
    pattern: Option<Regex>,
    /// Whether the pattern, where it matches a part of a batch, matches the whole batch too: it has no anchors.
    is_floating: bool,
    parts: Parts,
    json: Option<JsonTest>,
}

/// Where the pattern is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    key: bool,
    value: bool,
    headers: bool,
}

const ALL: Parts = Parts { key: true, value: true, headers: true };

impl Needle {
    /// What the query says; `None`: nothing.
    ///
    /// # Errors
    /// It has both text and regex, a word that it does not take, or an expression that cannot be looked for.
    pub fn of_query(at: &Place) -> Result<Option<Self>, Problem> {
        let ignores_case = match at.query("ignore_case") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::bad("ignore_case takes true or false")),
        };
        let needle = match (at.query("text"), at.query("regex")) {
            (Some(_), Some(_)) => return Err(Problem::bad("a search takes text or regex, not both")),
            (Some(text), None) => Some(Self::text(text, ignores_case)?),
            (None, Some(pattern)) => Some(Self::pattern(pattern, ignores_case)?),
            (None, None) => None,
        };
        let parts = at.query("in").map(parts).transpose()?;
        if needle.is_none() && parts.is_some() {
            return Err(Problem::bad("in takes a text or a regex beside it"));
        }
        let json = match at.query("json") {
            Some(path) => Some(JsonTest::read(path, at.query("op"), at.query("value"))?),
            None if at.query("op").is_some() || at.query("value").is_some() => {
                return Err(Problem::bad("op and value take a json path beside them"));
            }
            None => None,
        };
        if needle.is_none() && json.is_none() {
            return Ok(None);
        }
        let needle = needle.unwrap_or(Self { pattern: None, is_floating: false, parts: ALL, json: None });
        Ok(Some(Self { parts: parts.unwrap_or(ALL), json, ..needle }))
    }

    /// # Errors
    /// It is no regular expression, or one that takes too much memory.
    pub fn pattern(pattern: &str, ignores_case: bool) -> Result<Self, Problem> {
        if pattern.len() > BYTES_MAX {
            return Err(Problem::bad(format!("regex takes 1 to {BYTES_MAX} bytes")));
        }
        // Anchors and flags are written with these; an escape may be one, or not.
        let is_floating = !pattern.contains(['^', '$', '\\']);
        Self::compile(pattern, ignores_case, is_floating)
    }

    /// # Errors
    /// The text is empty, or longer than a kilobyte.
    pub fn text(text: &str, ignores_case: bool) -> Result<Self, Problem> {
        if text.is_empty() || text.len() > BYTES_MAX {
            return Err(Problem::bad(format!("text takes 1 to {BYTES_MAX} bytes")));
        }
        Self::compile(&regex::escape(text), ignores_case, true)
    }

    fn compile(pattern: &str, ignores_case: bool, is_floating: bool) -> Result<Self, Problem> {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(PROGRAM_BYTES_MAX).dfa_size_limit(PROGRAM_BYTES_MAX);
        let built = builder.case_insensitive(ignores_case).build();
        let pattern = built.map_err(|why| Problem::bad(format!("regex: {why}")))?;
        Ok(Self { pattern: Some(pattern), is_floating, parts: ALL, json: None })
    }

    /// Whether any record of a batch can hold it, by the batch's inflated bytes: a part that matches lies in them
    /// somewhere.
    pub fn may_be_in(&self, records: &[u8]) -> bool {
        match &self.pattern {
            Some(pattern) if self.is_floating => pattern.is_match(records),
            _ => true,
        }
    }

    /// `json` tests what the value is decoded as, where it is.
    pub fn is_in_record(&self, record: &RecordRef<'_>, decoding: Option<&Decoding>) -> bool {
        let (pattern, parts) = (self.pattern.as_ref(), self.parts);
        let is_in = |part: Option<&[u8]>| match (pattern, part) {
            (Some(pattern), Some(part)) => pattern.is_match(part),
            _ => false,
        };
        let is_found = pattern.is_none()
            || (parts.key && is_in(record.key))
            || (parts.value && is_in(record.value))
            || (parts.headers && record.headers().any(|(name, value)| is_in(Some(name)) || is_in(value)));
        let passes = |test: &JsonTest| match decoding.and_then(|decoding| decoding.value(record)) {
            Some(decoded) => test.passes(decoded.as_bytes()),
            None => record.value.is_some_and(|value| test.passes(value)),
        };
        is_found && self.json.as_ref().is_none_or(passes)
    }
}

fn parts(words: &str) -> Result<Parts, Problem> {
    let mut parts = Parts { key: false, value: false, headers: false };
    for word in words.split(',') {
        match word {
            "key" => parts.key = true,
            "value" => parts.value = true,
            "headers" => parts.headers = true,
            _ => return Err(Problem::bad("in takes key, value and headers, with commas between")),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{Batch, BatchBuilder, BatchOptions};

    fn query(query: &str) -> Result<Option<Needle>, Problem> {
        Needle::of_query(&Place {
            query: Place::read_query(Some(query)).expect("sound"),
            ..Default::default()
        })
    }

    /// Whether it is in a record with these parts; and that the whole batch does not deny it.
    fn is_in(needle: &Needle, key: &[u8], value: &[u8], header: (&[u8], &[u8])) -> bool {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.push(TimestampMs(1), Some(key), Some(value), &[(header.0, Some(header.1))]);
        let batch = Batch::new(builder.build().expect("built")).expect("a batch");
        let records = batch.records().expect("readable");
        let record = records.iter().next().expect("one").expect("sound");
        let found = needle.is_in_record(&record, None);
        assert!(!found || needle.may_be_in(records.body()));
        found
    }

    fn in_value(needle: &Needle, value: &[u8]) -> bool {
        is_in(needle, b"", value, (b"", b""))
    }

    #[test]
    fn text_is_found_wherever_it_begins() {
        let is_in = |needle: &str, text: &[u8]| in_value(&Needle::text(needle, false).expect("sound"), text);
        for (needle, text) in [
            ("a", "a"),
            ("ab", "aab"),
            ("ab", "xxab"),
            ("aab", "aaab"),
            ("é", "caf\u{e9}"),
            ("(.*)$", "x(.*)$"),
        ] {
            assert!(is_in(needle, text.as_bytes()), "{needle} in {text}");
        }
        for (needle, text) in [("a", ""), ("ab", "a"), ("ab", "ba"), ("A", "a"), ("aab", "abab"), (".", "a")]
        {
            assert!(!is_in(needle, text.as_bytes()), "{needle} in {text}");
        }
        assert!(is_in("b", b"\xff\x00b"));
        let long = "x".repeat(BYTES_MAX + 1);
        assert!(Needle::text("", false).is_err() && Needle::text(&long, false).is_err());
    }

    #[test]
    fn pattern_matches_bytes_that_are_no_text_too() {
        let is_in =
            |pattern: &str, bytes: &[u8]| in_value(&Needle::pattern(pattern, false).expect("sound"), bytes);
        assert!(is_in("or(der|bit)-[0-9]+$", b"see orbit-77") && is_in("(?-u)\\xff.", b"\xff1"));
        assert!(!is_in("^b", b"ab") && is_in("(?i)ANNA", b"anna") && is_in("^ab$", b"ab"));
        assert!(is_in("\\bword\\b", b"word") && is_in("a.c", b"xabcx"));
        // Quadratic and worse where an engine backtracks.
        assert!(!is_in("(a|a)*(a|a)*(a|a)*b$", &[b'a'; 100_000]));
        for bad in ["(", "(a{1000}){1000}", &"x".repeat(BYTES_MAX + 1)] {
            assert_eq!(Needle::pattern(bad, false).expect_err("refused").status, 400);
        }
    }

    #[test]
    fn parts_case_and_field_narrow_it() {
        let found = |words: &str| {
            let needle = query(words).expect("sound").expect("a needle");
            is_in(&needle, b"Key-7", br#"{"id":7,"name":"Anna"}"#, (b"trace", b"t-1"))
        };
        assert!(found("text=Key") && found("text=key&ignore_case=true") && !found("text=key"));
        assert!(
            !found("text=Key&in=value,headers")
                && found("text=trace&in=headers")
                && !found("text=Anna&in=key")
        );
        assert!(found("text=t-1&in=key,headers") && found("regex=an%2Ba&ignore_case=true&in=value"));
        assert!(
            found("json=id&value=7")
                && found("text=Anna&json=id&op=lt&value=8")
                && !found("text=Bert&json=id")
        );
        assert!(!found("json=id&op=ne&value=7.0") && found("json=name"));
    }

    #[test]
    fn query_that_says_too_little_or_too_much_is_refused() {
        assert!(
            query("").expect("sound").is_none() && query("from=oldest&limit=3").expect("sound").is_none()
        );
        for bad in [
            "text=a&regex=b",
            "in=key",
            "text=a&in=body",
            "text=a&ignore_case=1",
            "op=eq&value=1",
            "json=a..b",
            "json=a&op=eq",
        ] {
            assert_eq!(query(bad).expect_err(bad).status, 400);
        }
    }
}
