//! `sasl.kerberos.principal.to.local.rules`: a user name made of a principal.
//!
//! A list, of which the first rule that fits decides. `DEFAULT`: the first component, in the default realm.
//! `RULE:[n:format](match)s/pattern/replacement/g/L`: for names of `n` components. `$0` in the format is the realm,
//! `$1` and `$2` the components; `match` must match the whole of what the format makes; `L` and `U` change the case. A
//! principal that no rule fits is refused, and so is one whose user name would hold `/` or `@`.
//!
//! Patterns are Java's (core/certificates/src/java_regex.rs); what needs backtracking stops the start.
//!
//! # Source
//! Kafka `KerberosShortNamer`, `KerberosRule`, `KerberosName`.

use barnabas_certificates::{JavaRegex, Repeat, UnknownGroup};
use regex::Regex;

use super::Principal;

/// What one rule looks like; groups: DEFAULT, count, format, match, pattern, replacement, g, case.
const RULE: &str =
    r"^(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Lower,
    Upper,
}

#[derive(Debug, Clone)]
enum Rule {
    Default,
    Made(Box<Made>),
}

#[derive(Debug, Clone)]
struct Made {
    components: usize,
    format: String,
    matches: Option<JavaRegex>,
    replaced: Option<(JavaRegex, String, Repeat)>,
    case: Case,
}

/// All rules, in order.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Rule>,
    default_realm: String,
    /// As they were given.
    text: String,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.default_realm == other.default_realm
    }
}

impl Rules {
    /// # Errors
    /// What is wrong with which rule.
    pub fn parse(text: &str, default_realm: &str) -> Result<Self, String> {
        let shape = Regex::new(RULE).expect("a constant");
        let listed = text.trim();
        let listed = if listed.is_empty() { None } else { Some(listed.split(',').map(str::trim)) };
        let rules = listed.into_iter().flatten().map(|rule| rule_of(&shape, rule));
        let rules = rules.collect::<Result<_, String>>()?;
        Ok(Self { rules, default_realm: default_realm.to_owned(), text: text.to_owned() })
    }

    /// The user name.
    ///
    /// # Errors
    /// Why there is none.
    pub fn user_of(&self, principal: &Principal) -> Result<String, String> {
        let parts = &principal.components;
        let is_plain = |text: &String| !text.contains(['/', '@']);
        if parts.len() > 2 || !parts.iter().chain([&principal.realm]).all(is_plain) {
            return Err(format!("Malformed Kerberos name: {principal}"));
        }
        let params: Vec<&str> = [&principal.realm].into_iter().chain(parts).map(String::as_str).collect();
        for rule in &self.rules {
            let found = match rule {
                Rule::Default => (principal.realm == self.default_realm).then(|| params[1].to_owned()),
                Rule::Made(made) => made.apply(&params)?,
            };
            if let Some(name) = found {
                if !is_plain(&name) {
                    return Err(format!("Non-simple name {name} after auth_to_local rule, of {principal}"));
                }
                let case = if let Rule::Made(made) = rule { made.case } else { Case::Kept };
                return Ok(match case {
                    Case::Kept => name,
                    Case::Lower => name.to_lowercase(),
                    Case::Upper => name.to_uppercase(),
                });
            }
        }
        Err(format!("No rules apply to {principal}, rules {}", self.text))
    }
}

fn rule_of(shape: &Regex, rule: &str) -> Result<Rule, String> {
    let found = shape.captures(rule).ok_or_else(|| format!("Invalid rule: {rule}"))?;
    let rest = &rule[found[0].len()..];
    if !rest.is_empty() {
        return Err(format!("Invalid rule: `{rule}`, unmatched substring: `{rest}`"));
    }
    if found.get(1).is_some() {
        return Ok(Rule::Default);
    }
    let components =
        found[2].parse().map_err(|_| format!("Invalid rule: {rule}: '{}' is no number", &found[2]))?;
    let pattern = |group: usize| {
        let pattern = found.get(group).map(|text| JavaRegex::new(text.as_str()));
        pattern.transpose().map_err(|why| format!("Invalid rule: {rule}: {why}"))
    };
    let repeat = if found.get(7).is_some() { Repeat::All } else { Repeat::First };
    Ok(Rule::Made(Box::new(Made {
        components,
        format: found[3].to_owned(),
        matches: pattern(4)?,
        replaced: pattern(5)?.map(|pattern| (pattern, found[6].to_owned(), repeat)),
        case: match found.get(8).map(|case| case.as_str()) {
            Some("L") => Case::Lower,
            Some("U") => Case::Upper,
            _ => Case::Kept,
        },
    })))
}

impl Made {
    /// `Ok(None)`: the rule does not fit.
    fn apply(&self, params: &[&str]) -> Result<Option<String>, String> {
        if params.len() - 1 != self.components {
            return Ok(None);
        }
        let base = expand(&self.format, params)?;
        if self.matches.as_ref().is_some_and(|pattern| !pattern.matches(&base)) {
            return Ok(None);
        }
        let Some((pattern, replacement, repeat)) = &self.replaced else { return Ok(Some(base)) };
        let replaced = pattern.replace(&base, replacement, *repeat, UnknownGroup::Fails);
        replaced
            .map(Some)
            .ok_or_else(|| format!("the replacement '{replacement}' names a group that does not exist"))
    }
}

/// `$n` becomes a parameter. A `$` without a number is an error, as one that is too large.
fn expand(format: &str, params: &[&str]) -> Result<String, String> {
    let mut parts = format.split('$');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let number = &part[..digits];
        let index: usize =
            number.parse().map_err(|_| format!("bad format in username mapping in '{number}'"))?;
        let param = params.get(index).ok_or_else(|| {
            format!("index {index} from {format} is outside of the valid range 0 to {}", params.len() - 1)
        })?;
        expanded.push_str(param);
        expanded.push_str(&part[digits..]);
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &str, principal: &str) -> Result<String, String> {
        let rules = Rules::parse(rules, "REALM.COM").expect("rules");
        rules.user_of(&Principal::parse(principal).expect("a principal"))
    }

    /// The rules of Kafka's `KerberosNameTest.testParse`.
    #[test]
    fn rules_of_kafkas_own_test_give_its_names() {
        let rules = "RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g,RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g,DEFAULT";
        for (principal, name) in [
            ("App.service-name/example.com@REALM.COM", "service-name"),
            ("App.service-name@REALM.COM", "service-name"),
            ("user/host@REALM.COM", "user"),
        ] {
            assert_eq!(user(rules, principal).as_deref(), Ok(name), "{principal}");
        }
    }

    /// `testToLowerCase`, `testToUpperCase`.
    #[test]
    fn case_changes_with_the_letter_at_the_end() {
        let rules = |letter: &str| {
            format!(
                "RULE:[1:$1]/{letter},RULE:[2:$1](Test.*)s/ABC///{letter},RULE:[2:$1](ABC.*)s/ABC/XYZ/g/{letter},RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g/{letter},RULE:[2:$1]/{letter},DEFAULT"
            )
        };
        for (principal, lower) in [
            ("User@REALM.COM", "user"),
            ("TestABC/host@FOO.COM", "test"),
            ("ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
            ("App.SERVICE-name/example.com@REALM.COM", "service-name"),
            ("User/root@REALM.COM", "user"),
        ] {
            assert_eq!(user(&rules("L"), principal).as_deref(), Ok(lower), "{principal}");
            assert_eq!(user(&rules("U"), principal), Ok(lower.to_uppercase()), "{principal}");
        }
    }

    /// `testInvalidRules`.
    #[test]
    fn texts_that_are_no_rules_stop_the_start() {
        for rule in [
            "default",
            "DEFAUL",
            "DEFAULT/L",
            "DEFAULT/g",
            "rule:[1:$1]",
            "rule:[1:$1]/L/U",
            "RULE:[1:$1]/l",
            "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
            "nonsense",
            "RULE:[:$1]",
            "RULE:[1:$1](a(?=b)",
        ] {
            assert!(Rules::parse(rule, "R").is_err(), "{rule}");
        }
        let said = Rules::parse("RULE:[1:$1]/L/U", "R").expect_err("refused");
        assert_eq!(said, "Invalid rule: `RULE:[1:$1]/L/U`, unmatched substring: `/U`");
    }

    #[test]
    fn principal_of_another_realm_has_no_name_by_default() {
        assert_eq!(user("DEFAULT", "alice@REALM.COM").as_deref(), Ok("alice"));
        let said = user("DEFAULT", "alice@OTHER.COM").expect_err("refused");
        assert_eq!(said, "No rules apply to alice@OTHER.COM, rules DEFAULT");
        assert!(user("", "alice@REALM.COM").is_err());
        assert_eq!(user("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "alice@OTHER.COM").as_deref(), Ok("alice"));
    }

    #[test]
    fn names_that_are_not_simple_are_refused() {
        assert!(
            user("RULE:[1:$1@$0]", "alice@REALM.COM").expect_err("refused").starts_with("Non-simple name")
        );
        assert!(user("RULE:[2:$1/$2]", "a/b@REALM.COM").expect_err("refused").starts_with("Non-simple name"));
        let rules = Rules::parse("RULE:[1:$1],RULE:[2:$1]", "R").expect("rules");
        for components in [&["a", "b", "c"][..], &["a@b"], &["a/b"]] {
            let components = components.iter().map(|&part| part.to_owned()).collect();
            let said = rules.user_of(&Principal { components, realm: "R".to_owned() }).expect_err("refused");
            assert!(said.starts_with("Malformed Kerberos name"), "{said}");
        }
    }

    #[test]
    fn formats_that_name_no_part_are_refused() {
        assert!(
            user("RULE:[1:$2]", "a@R").expect_err("refused").contains("outside of the valid range 0 to 1")
        );
        assert!(user("RULE:[1:$]", "a@R").expect_err("refused").contains("bad format"));
        assert!(user("RULE:[1:$1]s/a/$3/", "a@R").expect_err("refused").contains("group"));
    }
}
