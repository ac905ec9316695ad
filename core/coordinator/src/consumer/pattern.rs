//! The expressions that members subscribe by: RE2's syntax, matched against whole topic names, in time linear in the name.
//!
//! What a client may send is bounded by its length and by what it compiles to; an expression beyond that is refused as one
//! that is wrong. Topic names are ASCII, so classes are those of ASCII (which is also what `\w` means in RE2) unless the
//! expression speaks of Unicode itself. `\Q…\E` is known to RE2 and not to our engine: it is spelled out first.
//!
//! # Source
//! Kafka 4.4 `Utils.throwIfRegularExpressionIsInvalid`, `TopicRegexResolver` (RE2/J `Pattern.matches`).

use regex::bytes::{Regex, RegexBuilder};

/// What a compiled expression may take. RE2's own bound is of this order.
const COMPILED_BYTES_MAX: usize = 256 << 10;
/// An expression's own length.
const BYTES_MAX: usize = 8 << 10;

/// The expression, to be held against whole names.
///
/// # Errors
/// In words, what is wrong with it.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > BYTES_MAX {
        return Err(format!("longer than {BYTES_MAX} bytes"));
    }
    let pattern = without_quotes(pattern);
    // By itself first: `a)(b` must not become sound by what is put around it.
    let unicode = match build(&pattern, false) {
        Ok(_) => false,
        Err(_) => build(&pattern, true).map(|_| true).map_err(in_one_line)?,
    };
    build(&format!(r"\A(?:{pattern})\z"), unicode).map_err(in_one_line)
}

/// What is wrong, without the picture of where.
fn in_one_line(error: regex::Error) -> String {
    let whole = error.to_string();
    whole.lines().last().map_or_else(String::new, |line| line.trim_start_matches("error: ").to_owned())
}

fn build(pattern: &str, unicode: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(unicode)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(100)
        .build()
}

/// `\Q…\E`, or `\Q…` to the end, with every letter escaped.
fn without_quotes(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        if let Some(quoted) = escape.strip_prefix(r"\Q") {
            let (quoted, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            plain.push_str(&regex::escape(quoted));
            rest = after;
        } else {
            let end = escape.chars().take(2).map(char::len_utf8).sum();
            plain.push_str(&escape[..end]);
            rest = &escape[end..];
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(name.as_bytes())
    }

    #[test]
    fn a_whole_name_is_matched() {
        assert!(matches("a|ab", "ab"));
        assert!(!matches("a|ab", "abc"));
        assert!(matches("logs-.*", "logs-"));
        assert!(!matches("logs", "my-logs"));
        assert!(matches(r"\w+\.\d{2}", "x_1.22"));
        assert!(matches(r"\p{Lu}+", "ABC"));
        assert!(matches("", ""));
        assert!(matches("(?i)ABC", "abc"));
    }

    #[test]
    fn quotes_are_spelled_out() {
        assert!(matches(r"\Qa.b\E.*", "a.bc"));
        assert!(!matches(r"\Qa.b\E.*", "axbc"));
        assert!(matches(r"x\Q.", "x."));
        assert!(matches(r"\\Q", r"\Q"));
    }

    #[test]
    fn what_is_wrong_or_explodes_is_refused() {
        for pattern in
            ["(", "[", "a)(b", r"(?=x)", r"(a)\1", "*", "(((a{100}){100}){100})", r"(\pL{1000}){9}"]
        {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        assert!(compile(&"a".repeat(BYTES_MAX + 1)).is_err());
        assert!(compile(&"(".repeat(500)).is_err());
    }

    #[test]
    fn what_makes_others_backtrack_is_linear() {
        let name = "a".repeat(249);
        assert!(!matches("(a+)+b", &name));
        assert!(!matches("(a|aa)+b", &name));
    }
}
