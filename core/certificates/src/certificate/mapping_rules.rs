//! `ssl.principal.mapping.rules`: a user name made of a distinguished name.
//!
//! A comma list of `DEFAULT` (the name as it is) and `RULE:pattern/replacement/[L|U]`. The first rule whose pattern
//! matches the whole name wins; the replacement is Java's: `$1` for a group, a backslash before what stands for
//! itself. No rule that matches means that the client is not authenticated. Patterns are Java's; what needs
//! backtracking (look-around, back references) cannot be had here and stops the start.
//!
//! Source: KIP-371; Kafka `SslPrincipalMapper`; Java's `Matcher.replaceAll`. Vectors: lab/compat/golden/tls.

use crate::TlsError;
use regex::{Captures, Regex};

const KEY: &str = "ssl.principal.mapping.rules";
const EXAMPLE: &str = "ssl.principal.mapping.rules=RULE:^CN=(.*?),OU=.*$/$1/L,DEFAULT";
/// What one rule looks like; groups: DEFAULT, pattern, replacement, case.
const RULE: &str = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|.*?";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Lower,
    Upper,
}

#[derive(Debug, Clone)]
enum Rule {
    Default,
    Pattern { whole: Regex, part: Regex, replacement: String, case: Case },
}

/// All rules, in order.
#[derive(Debug, Clone)]
pub struct MappingRules(Vec<Rule>);

impl MappingRules {
    /// # Errors
    /// A rule that is none, or a pattern that cannot be read.
    pub fn parse(text: &str) -> Result<Self, TlsError> {
        let splitter = Regex::new(&format!(r"\s*({RULE})\s*(?:,\s*|$)")).expect("a constant");
        let parser = Regex::new(&format!("^(?:{RULE})")).expect("a constant");
        let mut rules = Vec::new();
        for found in splitter.captures_iter(text.trim()) {
            let rule = found.get(1).map_or("", |rule| rule.as_str());
            let parsed = parser.captures(rule).filter(|parsed| parsed[0].len() == rule.len());
            let parsed = parsed.ok_or_else(|| {
                TlsError::new(
                    KEY,
                    format!("'{rule}' is neither DEFAULT nor RULE:pattern/replacement/[L|U]"),
                    EXAMPLE,
                )
            })?;
            if parsed.get(1).is_some() {
                rules.push(Rule::Default);
            } else if let Some(pattern) = parsed.get(2) {
                rules.push(rule_of(pattern.as_str(), &parsed[3], &parsed[4])?);
            }
        }
        Ok(Self(rules))
    }

    /// The name of the first rule that matches. `None`: none does, or the replacement names a group that does not
    /// exist.
    pub fn apply(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|rule| match rule {
            Rule::Default => Some(Some(name.to_owned())),
            Rule::Pattern { whole, .. } if !whole.is_match(name) => None,
            Rule::Pattern { part, replacement, case, .. } => {
                let replaced = replace_all(part, name, replacement);
                Some(replaced.map(|name| match case {
                    Case::Kept => name,
                    Case::Lower => name.to_lowercase(),
                    Case::Upper => name.to_uppercase(),
                }))
            }
        })?
    }
}

fn rule_of(pattern: &str, replacement: &str, case: &str) -> Result<Rule, TlsError> {
    let translated = translate(pattern);
    let compile = |text: &str| {
        Regex::new(text).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            TlsError::new(KEY, format!("the pattern '{pattern}' cannot be read: {why}"), EXAMPLE)
        })
    };
    Ok(Rule::Pattern {
        whole: compile(&format!(r"\A(?:{translated})\z"))?,
        part: compile(&translated)?,
        replacement: replacement.to_owned(),
        case: match case {
            "L" => Case::Lower,
            "U" => Case::Upper,
            _ => Case::Kept,
        },
    })
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

/// As Java's `String.replaceAll`: an empty match that follows a match at once is replaced too.
fn replace_all(pattern: &Regex, text: &str, replacement: &str) -> Option<String> {
    let mut replaced = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = (from <= text.len()).then(|| pattern.captures_at(text, from)).flatten() {
        let whole = found.get(0)?;
        replaced.push_str(&text[copied..whole.start()]);
        expand(replacement, &found, &mut replaced)?;
        copied = whole.end();
        from = whole.end();
        if whole.is_empty() {
            from += text[from..].chars().next().map_or(1, char::len_utf8);
        }
    }
    replaced.push_str(&text[copied..]);
    Some(replaced)
}

/// `$n` takes as many digits as make a group that exists. One that does not exist stands for itself where the pattern
/// has groups (Kafka's `escapeLiteralBackReferences`), and is an error where it has none.
fn expand(replacement: &str, found: &Captures<'_>, into: &mut String) -> Option<()> {
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
                    if groups == 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_need_backtracking_stop_the_start() {
        let refused = MappingRules::parse("RULE:^CN=(?!admin).*$/x/").expect_err("refused");
        assert!(refused.problem.contains("look-around"), "{refused}");
        assert!(MappingRules::parse(r"RULE:^CN=(.)\1$/x/").is_err());
        assert!(MappingRules::parse("NONSENSE").is_err());
        assert!(MappingRules::parse("RULE:a/b/X").is_err());
    }

    #[test]
    fn first_rule_that_matches_wins() {
        let rules =
            MappingRules::parse("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L")
                .expect("sound");
        assert_eq!(rules.apply("CN=kafka,OU=ServiceUsers,O=x").as_deref(), Some("kafka"));
        assert_eq!(rules.apply("CN=Eve,OU=Sales").as_deref(), Some("eve@sales"));
        assert_eq!(rules.apply("O=x"), None);
    }
}
