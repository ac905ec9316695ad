//! How a line of standard input is a record.
//!
//! Source: Kafka `LineMessageReader`: headers, then key, then value.

use crate::ToolError;
use crate::command_line::properties::Properties;
use bytes::Bytes;
use std::io::{BufRead, IsTerminal, Write};

const KEYS: &[&str] = &[
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
    "ignore.error",
];
/// Lines that are read ahead of what is being sent.
const LINES_AHEAD_MAX: usize = 10_000;

/// Standard input, line by line, on a thread of its own: reading it blocks.
pub fn read_ahead() -> tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(LINES_AHEAD_MAX);
    std::thread::spawn(move || {
        let prompts = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut input = std::io::stdin().lock();
        loop {
            if prompts {
                // A terminal that takes no prompt takes no lines either: reading says so.
                let _ = write!(std::io::stdout(), ">").and_then(|()| std::io::stdout().flush());
            }
            let mut line = Vec::new();
            let told = match input.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => Ok(without_end(line)),
                Err(error) => Err(error),
            };
            let is_over = told.is_err();
            // A receiver that is gone has failed and has said so.
            if sender.blocking_send(told).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

fn without_end(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    line
}

/// What a line says.
#[derive(Debug, Default)]
pub struct Line {
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// Makes a record of a line.
#[derive(Debug)]
pub struct LineReader {
    parse_key: bool,
    parse_headers: bool,
    key_separator: String,
    headers_delimiter: String,
    headers_separator: String,
    header_key_separator: String,
    null_marker: Option<String>,
    ignore_error: bool,
}

/// What stands before and behind a separator.
type Halves<'a> = (&'a [u8], &'a [u8]);

impl LineReader {
    /// `class`: the name of Kafka's class.
    ///
    /// # Errors
    /// Another class; separators that cannot be told apart.
    pub fn new(class: Option<&str>, given: &Properties) -> Result<Self, ToolError> {
        let class = class.map_or("", |name| name.rsplit('.').next().unwrap_or_default());
        if !matches!(class, "" | "LineMessageReader") {
            return Err(ToolError::Usage(format!(
                "--line-reader takes LineMessageReader, not '{class}': no class of Java is run"
            )));
        }
        given.warn_of_unknown("line reader", |key| KEYS.contains(&key) || key == "topic");
        let reader = Self {
            parse_key: given.is_true("parse.key", false),
            parse_headers: given.is_true("parse.headers", false),
            key_separator: given.unescaped("key.separator", "\t"),
            headers_delimiter: given.unescaped("headers.delimiter", "\t"),
            headers_separator: given.unescaped("headers.separator", ","),
            header_key_separator: given.unescaped("headers.key.separator", ":"),
            null_marker: given.get("null.marker").map(str::to_owned),
            ignore_error: given.is_true("ignore.error", false),
        };
        reader.check()?;
        Ok(reader)
    }

    fn check(&self) -> Result<(), ToolError> {
        let marker = self.null_marker.as_deref();
        let names = [
            ("headers.delimiter", Some(self.headers_delimiter.as_str())),
            ("headers.separator", Some(&self.headers_separator)),
            ("headers.key.separator", Some(&self.header_key_separator)),
            ("null.marker", marker),
        ];
        for (place, one) in names.iter().enumerate() {
            if let Some(same) = names[place + 1..].iter().find(|other| one.1.is_some() && other.1 == one.1) {
                return Err(ToolError::Usage(format!("{} and {} are the same", one.0, same.0)));
            }
        }
        if marker == Some(self.key_separator.as_str()) {
            return Err(ToolError::Usage("key.separator and null.marker are the same".to_owned()));
        }
        Ok(())
    }

    /// # Errors
    /// A separator is missing, unless `ignore.error` is set.
    pub fn read(&self, line: &[u8], number: u64) -> Result<Line, ToolError> {
        let mut record = Line::default();
        let mut rest = line;
        if self.parse_headers
            && let Some((headers, after)) = self.cut(rest, &self.headers_delimiter, number)?
        {
            record.headers = self.headers(headers, number)?;
            rest = after;
        }
        if self.parse_key
            && let Some((key, after)) = self.cut(rest, &self.key_separator, number)?
        {
            record.key = self.bytes(key);
            rest = after;
        }
        record.value = self.bytes(rest);
        Ok(record)
    }

    fn cut<'a>(&self, line: &'a [u8], separator: &str, number: u64) -> Result<Option<Halves<'a>>, ToolError> {
        match split_once(line, separator.as_bytes()) {
            Some(parts) => Ok(Some(parts)),
            None if self.ignore_error => Ok(None),
            None => Err(ToolError::Usage(format!("line {number} has no '{}'", separator.escape_default()))),
        }
    }

    fn headers(&self, text: &[u8], number: u64) -> Result<Vec<(Bytes, Option<Bytes>)>, ToolError> {
        let mut headers = Vec::new();
        if self.bytes(text).is_none() {
            return Ok(headers);
        }
        let mut rest = Some(text);
        while let Some(line) = rest {
            let (header, after) = match split_once(line, self.headers_separator.as_bytes()) {
                Some((header, after)) => (header, Some(after)),
                None => (line, None),
            };
            rest = after;
            let parts = split_once(header, self.header_key_separator.as_bytes());
            let missing = |what: &str| ToolError::Usage(format!("line {number}: a header has no {what}"));
            match parts {
                Some((key, _)) if self.bytes(key).is_none() => return Err(missing("key")),
                Some((key, value)) => headers.push((Bytes::copy_from_slice(key), self.bytes(value))),
                None if self.ignore_error => headers.push((Bytes::copy_from_slice(header), None)),
                None => return Err(missing(&format!("'{}'", self.header_key_separator))),
            }
        }
        Ok(headers)
    }

    fn bytes(&self, text: &[u8]) -> Option<Bytes> {
        let is_null = self.null_marker.as_ref().is_some_and(|marker| marker.as_bytes() == text);
        (!is_null).then(|| Bytes::copy_from_slice(text))
    }
}

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<Halves<'a>> {
    if separator.is_empty() {
        return None;
    }
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(words: &[&str]) -> Result<LineReader, ToolError> {
        let mut given = Properties::default();
        given.add_words("reader-property", words.iter().copied())?;
        LineReader::new(None, &given)
    }

    const ALL: &[&str] = &["parse.key=true", "parse.headers=true", "key.separator=:", "null.marker=NULL"];

    #[test]
    fn a_line_is_headers_then_key_then_value() {
        let record = reader(ALL).expect("known").read(b"a:1,b:NULL\tkey:value:rest", 1).expect("whole");
        assert_eq!(record.headers, [(Bytes::from("a"), Some(Bytes::from("1"))), (Bytes::from("b"), None)]);
        assert_eq!(record.key.as_deref(), Some(&b"key"[..]));
        assert_eq!(record.value.as_deref(), Some(&b"value:rest"[..]));
    }

    #[test]
    fn a_line_without_its_separator_is_named() {
        let error = reader(ALL).expect("known").read(b"no key here", 7).expect_err("no separator");
        assert!(error.to_string().contains("line 7"), "{error}");
        let error = reader(ALL).expect("known").read(b"NULL:1\tk:v", 8).expect_err("a null key");
        assert_eq!(error.to_string(), "line 8: a header has no key");
    }

    #[test]
    fn the_marker_stands_for_null() {
        let plain = reader(&["null.marker=NULL"]).expect("known");
        assert_eq!(plain.read(b"NULL", 1).expect("whole").value, None);
        assert_eq!(plain.read(b"", 1).expect("whole").value, Some(Bytes::new()));
    }

    #[test]
    fn separators_that_are_the_same_are_refused() {
        for (words, refusal) in [
            (
                ["headers.delimiter=,", "parse.key=true"],
                "headers.delimiter and headers.separator are the same",
            ),
            (["key.separator=x", "null.marker=x"], "key.separator and null.marker are the same"),
            (["headers.separator=x", "null.marker=x"], "headers.separator and null.marker are the same"),
        ] {
            assert_eq!(reader(&words).expect_err(refusal).to_string(), refusal);
        }
    }
}
