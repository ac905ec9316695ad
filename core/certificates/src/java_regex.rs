//! Regular expressions and replacements as Java's, for rules that make user names: `ssl.principal.mapping.rules` and
//! `sasl.kerberos.principal.to.local.rules`.
//!
//! Patterns run in time linear in the text. What needs backtracking (look-around, back references) cannot be had here.
//!
//! Neighbours: core/certificates/src/certificate/mapping_rules.rs, core/sasl/src/kerberos/names/rules.rs.
//!
//! Source: Java's `Pattern`, `Matcher.replaceAll`, `Matcher.replaceFirst`.

use regex::{Captures, Regex};

/// How many matches a replacement takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    First,
    All,
}

/// What `$n` is for a group that the pattern does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownGroup {
    /// The replacement fails, as in Java.
    Fails,
    /// It stands for itself where the pattern has other groups (Kafka's `escapeLiteralBackReferences`).
    Kept,
}

/// A pattern. Not shown or compared beyond its text.
#[derive(Debug, Clone)]
pub struct JavaRegex {
    whole: Regex,
    part: Regex,
}

impl JavaRegex {
    /// # Errors
    /// Why the pattern cannot be read.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let translated = translate(pattern);
        let compile = |text: &str| {
            Regex::new(text).map_err(|error| {
                let why = error.to_string();
                why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            })
        };
        Ok(Self { whole: compile(&format!(r"\A(?:{translated})\z"))?, part: compile(&translated)? })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    /// An empty match that follows a match at once is replaced too. `None`: the replacement is none of Java's.
    pub fn replace(
        &self,
        text: &str,
        replacement: &str,
        repeat: Repeat,
        unknown: UnknownGroup,
    ) -> Option<String> {
        let mut replaced = String::new();
        let (mut copied, mut from) = (0, 0);
        while let Some(found) = (from <= text.len()).then(|| self.part.captures_at(text, from)).flatten() {
            let whole = found.get(0)?;
            replaced.push_str(&text[copied..whole.start()]);
            expand(replacement, &found, unknown, &mut replaced)?;
            copied = whole.end();
            from = whole.end();
            if repeat == Repeat::First {
                break;
            }
            if whole.is_empty() {
                from += text[from..].chars().next().map_or(1, char::len_utf8);
            }
        }
        replaced.push_str(&text[copied..]);
        Some(replaced)
    }
}

/// Java's classes `\d`, `\w` and `\s` know ASCII alone, and its dot excludes five ends of lines.
fn translate(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let (mut in_class, mut characters) = (0u32, pattern.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let next = characters.next();
                let class = match next {
                    Some('d') => "0-9",
                    Some('w') => "a-zA-Z_0-9",
                    Some('s') => r" \t\n\x0B\f\r",
                    _ => "",
                };
                match next {
                    Some(_) if !class.is_empty() && in_class > 0 => translated.push_str(class),
                    Some(_) if !class.is_empty() => translated.extend(["[", class, "]"]),
                    Some(next) => translated.extend(['\\', next]),
                    None => translated.push('\\'),
                }
                continue;
            }
            '.' if in_class == 0 => {
                translated.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]");
                continue;
            }
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            _ => {}
        }
        translated.push(character);
    }
    translated
}

/// `$n` takes as many digits as make a group that exists.
fn expand(replacement: &str, found: &Captures<'_>, unknown: UnknownGroup, into: &mut String) -> Option<()> {
    let groups = found.len() - 1;
    let mut rest = replacement.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => into.push(rest.next()?),
            '$' => {
                let mut digits = String::new();
                let first = rest.next_if(char::is_ascii_digit);
                digits.extend(first);
                let mut number = first.and_then(|digit| digit.to_digit(10))? as usize;
                if number > groups {
                    if groups == 0 || unknown == UnknownGroup::Fails {
                        return None;
                    }
                    into.push('$');
                    into.push_str(&digits);
                    continue;
                }
                while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
                    let longer = number * 10 + digit as usize;
                    if longer > groups {
                        break;
                    }
                    number = longer;
                    rest.next();
                }
                into.push_str(found.get(number).map_or("", |group| group.as_str()));
            }
            other => into.push(other),
        }
    }
    Some(())
}
