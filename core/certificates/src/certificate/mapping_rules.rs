//! `ssl.principal.mapping.rules`: a user name made of a distinguished name.
//!
//! A comma list of `DEFAULT` (the name as it is) and `RULE:pattern/replacement/[L|U]`. The first rule whose pattern
//! matches the whole name wins; the replacement is Java's: `$1` for a group, a backslash before what stands for
//! itself. No rule that matches means that the client is not authenticated. Patterns are Java's
//! (core/certificates/src/java_regex.rs); what needs backtracking cannot be had here and stops the start.
//!
//! Source: KIP-371; Kafka `SslPrincipalMapper`; Java's `Matcher.replaceAll`. Vectors: lab/compat/golden/tls.

use crate::TlsError;
use crate::java_regex::{JavaRegex, Repeat, UnknownGroup};
use regex::Regex;

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
    Pattern { pattern: JavaRegex, replacement: String, case: Case },
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
            Rule::Pattern { pattern, .. } if !pattern.matches(name) => None,
            Rule::Pattern { pattern, replacement, case } => {
                let replaced = pattern.replace(name, replacement, Repeat::All, UnknownGroup::Kept);
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
    let compiled = JavaRegex::new(pattern).map_err(|why| {
        TlsError::new(KEY, format!("the pattern '{pattern}' cannot be read: {why}"), EXAMPLE)
    })?;
    Ok(Rule::Pattern {
        pattern: compiled,
        replacement: replacement.to_owned(),
        case: match case {
            "L" => Case::Lower,
            "U" => Case::Upper,
            _ => Case::Kept,
        },
    })
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
