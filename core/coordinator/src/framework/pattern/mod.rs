//! The expressions that clients send: RE2's syntax (re2.rs), matched against whole names, in time linear in the name.
//!
//! What a client may send is bounded by its length and by what it compiles to; an expression beyond that is refused as
//! one that is wrong. Topic names are ASCII, so that classes are those of ASCII wherever an expression does not speak
//! of Unicode itself.
//!
//! # Source
//! Kafka 4.4 `Utils.throwIfRegularExpressionIsInvalid`, `TopicRegexResolver` (RE2/J `Pattern.matches`), KIP-1152.

mod re2;

use regex::bytes::{Regex, RegexBuilder};

/// What a compiled expression may take. RE2's own bound is of this order.
const COMPILED_BYTES_MAX: usize = 256 << 10;
/// An expression's own length.
const BYTES_MAX: usize = 8 << 10;

/// The expression, to be held against whole names of topics.
///
/// # Errors
/// In words, what is wrong with it.
pub(crate) fn of_topics(pattern: &str) -> Result<Regex, String> {
    let pattern = translated(pattern)?;
    // By itself first: `a)(b` must not become sound by what is put around it.
    let unicode = match build(&pattern, false) {
        Ok(_) => false,
        Err(_) => build(&pattern, true).map(|_| true).map_err(in_one_line)?,
    };
    build(&whole(&pattern), unicode).map_err(in_one_line)
}

/// The expression, to be held against whole names that clients choose, of any letters.
///
/// # Errors
/// As for [`of_topics`].
pub(crate) fn of_names(pattern: &str) -> Result<Regex, String> {
    let pattern = translated(pattern)?;
    build(&pattern, true).map_err(in_one_line)?;
    build(&whole(&pattern), true).map_err(in_one_line)
}

fn translated(pattern: &str) -> Result<String, String> {
    if pattern.len() > BYTES_MAX {
        return Err(format!("longer than {BYTES_MAX} bytes"));
    }
    re2::translated(pattern)
}

fn whole(pattern: &str) -> String {
    format!(r"\A(?:{pattern})\z")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        of_topics(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(name.as_bytes())
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

    /// Each line as RE2/J 1.8 answered it: the expression, a name that it matches, one that it does not.
    #[test]
    fn what_our_engine_would_read_otherwise() {
        for (pattern, yes, no) in [
            ("[a&&b]+", "a&b", "c"),
            ("[--b]", "a", "c"),
            ("[a-]", "-", "b"),
            ("[[a]t]", "[t]", "a"),
            ("[]t]", "]", "x"),
            ("a{", "a{", "a"),
            ("a{,2}", "a{,2}", "aa"),
            ("a{x}", "a{x}", "a"),
            (r"\164\x74", "tt", "t"),
            (r"\<a\>", "<a>", "a"),
            (r"[\d\-_]+", "1-_", "a"),
            (r"[[:alpha:]\D]", "b", "1"),
            (r"\p{^Lu}", "a", "A"),
            ("(?P<name>a)(?i:B)", "ab", "AB"),
            ("a{2}?b", "aab", "ab"),
        ] {
            assert!(matches(pattern, yes), "{pattern} and {yes}");
            assert!(!matches(pattern, no), "{pattern} and {no}");
        }
    }

    #[test]
    fn what_our_engine_would_take_alone() {
        let more = [
            "a**",
            "a+*",
            "a{2}{3}",
            "a{1001}",
            "a{2,1001}",
            "a{3,2}",
            "(?x)a",
            "(?u)a",
            "(?R)a",
            r"\u0041",
            r"\8",
            r"\1",
            r"\y",
            "[b-a]",
            "[[:nonsense:]]",
            r"[a-\d]",
            r"[\b]",
            r"\",
            r"[\",
            r"\x{110000}",
            "[a--b]",
            r"\C",
            "(?-)a",
            "(?i-)a",
        ];
        for pattern in more {
            assert!(of_topics(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn names_are_of_any_letters() {
        let größe = of_names("gr.+e").expect("sound");
        assert!(größe.is_match("größe".as_bytes()) && !größe.is_match(b"groove!"));
        assert!(of_names("a)(b").is_err());
        assert!(!of_names(r"\w").expect("sound").is_match("ö".as_bytes()));
    }

    #[test]
    fn what_is_wrong_or_explodes_is_refused() {
        for pattern in
            ["(", "[", "a)(b", r"(?=x)", r"(a)\1", "*", "(((a{100}){100}){100})", r"(\pL{1000}){9}"]
        {
            assert!(of_topics(pattern).is_err(), "{pattern}");
        }
        assert!(of_topics(&"a".repeat(BYTES_MAX + 1)).is_err());
        assert!(of_topics(&"(".repeat(500)).is_err());
    }

    #[test]
    fn what_makes_others_backtrack_is_linear() {
        let name = "a".repeat(249);
        assert!(!matches("(a+)+b", &name));
        assert!(!matches("(a|aa)+b", &name));
    }
}
