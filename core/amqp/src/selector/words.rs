//! A selector's words: literals, identifiers, keywords and signs.
//!
//! Keywords are written in any case, identifiers in one. Identifiers are Java's, with dots.

use super::SelectorError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Text(String),
    /// An integer without its sign: 2⁶³ only fits with one.
    Exact(u64),
    /// A double's bits.
    Approximate(u64),
    Identifier(String),
    Keyword(Keyword),
    Sign(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    And,
    Between,
    Escape,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    True,
}

const KEYWORDS: [(&str, Keyword); 11] = [
    ("AND", Keyword::And),
    ("BETWEEN", Keyword::Between),
    ("ESCAPE", Keyword::Escape),
    ("FALSE", Keyword::False),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("LIKE", Keyword::Like),
    ("NOT", Keyword::Not),
    ("NULL", Keyword::Null),
    ("OR", Keyword::Or),
    ("TRUE", Keyword::True),
];

/// Longer ones first.
const SIGNS: [&str; 13] = ["<>", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

/// The words, and where each begins, in characters from 1. The last place is the text's end.
#[derive(Debug)]
pub struct Words {
    pub words: Vec<(usize, Word)>,
    pub end: usize,
}

pub fn words(text: &str) -> Result<Words, SelectorError> {
    let mut words = Vec::new();
    let (mut left, mut at) = (text, 1);
    loop {
        let trimmed = left.trim_start();
        at += left[..left.len() - trimmed.len()].chars().count();
        left = trimmed;
        let Some(first) = left.chars().next() else { return Ok(Words { words, end: at }) };
        let wrong = |why: String| SelectorError { at, why };
        let (word, rest) = if first == '\'' {
            let (text, rest) = quoted(left).ok_or_else(|| wrong("a text has no ' at its end".to_owned()))?;
            (Word::Text(text), rest)
        } else if begins_number(left) {
            number(left).ok_or_else(|| wrong("a number is none of Java's integers or doubles".to_owned()))?
        } else if is_name(first) {
            let length = left.find(|c| !is_name(c) && !c.is_numeric() && c != '.').unwrap_or(left.len());
            (named(&left[..length]), &left[length..])
        } else if let Some(sign) = SIGNS.iter().find(|sign| left.starts_with(**sign)) {
            (Word::Sign(sign), &left[sign.len()..])
        } else {
            return Err(wrong(format!("'{first}' begins no word")));
        };
        words.push((at, word));
        at += left[..left.len() - rest.len()].chars().count();
        left = rest;
    }
}

fn is_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn named(name: &str) -> Word {
    match KEYWORDS.iter().find(|keyword| keyword.0.eq_ignore_ascii_case(name)) {
        Some((_, keyword)) => Word::Keyword(*keyword),
        None => Word::Identifier(name.to_owned()),
    }
}

/// A text in quotes, two of which are one in it; and what follows.
fn quoted(left: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = &left[1..];
    loop {
        let end = rest.find('\'')?;
        text.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Some((text, rest)),
        }
    }
}

fn begins_number(left: &str) -> bool {
    let digits = left.strip_prefix('.').unwrap_or(left);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn number(left: &str) -> Option<(Word, &str)> {
    let mut length = left.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(left.len());
    let is_hex = left.starts_with("0x") || left.starts_with("0X");
    let has_exponent = |text: &str| !is_hex && text.ends_with(['e', 'E']);
    if has_exponent(&left[..length]) && left[length..].starts_with(['+', '-']) {
        let after = &left[length + 1..];
        length += 1 + after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
    }
    let (text, rest) = left.split_at(length);
    let exact = text.strip_suffix(['l', 'L']).unwrap_or(text);
    let octal = exact.strip_prefix('0').filter(|digits| !digits.is_empty());
    let found = if is_hex {
        u64::from_str_radix(&exact[2..], 16).ok()
    } else if let Some(digits) = octal.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit())) {
        u64::from_str_radix(digits, 8).ok()
    } else {
        exact.parse().ok()
    };
    if let Some(found) = found {
        return (found <= 1 << 63).then_some((Word::Exact(found), rest));
    }
    let approximate = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let is_double = approximate.contains(['.', 'e', 'E']) || approximate != text;
    let parsed: f64 = approximate.parse().ok().filter(|_| is_double && !is_hex)?;
    parsed.is_finite().then_some((Word::Approximate(parsed.to_bits()), rest))
}
