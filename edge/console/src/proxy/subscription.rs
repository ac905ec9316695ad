//! A consumer's topics: named, or all whose names match a pattern; or partitions that its client has chosen.
//!
//! A pattern is RE2's (the crate `regex`), matched against the whole name in time linear in it.

use crate::http::call::Fields;
use crate::http::problem::Problem;
use hyper::StatusCode;
use regex::Regex;
use std::collections::BTreeSet;

const ILLEGAL_STATE: u32 = 40_903;
const PATTERN_BYTES_MAX: usize = 1024;
const TOPICS_MAX: usize = 1000;
/// Of a compiled pattern.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, Default)]
pub enum Subscription {
    #[default]
    Nothing,
    Topics(BTreeSet<String>),
    Pattern(Regex),
    /// Its client has chosen partitions, without the group.
    Partitions,
}

impl Subscription {
    /// The body of `POST …/subscription`.
    ///
    /// # Errors
    /// 40903: both ways; 422: neither, or a value of another type.
    pub fn read(fields: &Fields) -> Result<Self, Problem> {
        let unprocessable = |detail: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        match (fields.raw("topics"), fields.raw("topic_pattern")) {
            (Some(_), Some(_)) => Err(one_way()),
            (None, None) => {
                Err(unprocessable("a list of topics or a topic_pattern must be given".to_owned()))
            }
            (Some(text), None) => {
                let topics: Option<BTreeSet<String>> = serde_json::from_str(text).ok();
                let topics = topics.filter(|topics| (1..=TOPICS_MAX).contains(&topics.len()));
                let wrong = || unprocessable(format!("topics takes a list of 1 to {TOPICS_MAX} names"));
                topics.map(Self::Topics).ok_or_else(wrong)
            }
            (None, Some(text)) => {
                let pattern: Option<String> = serde_json::from_str(text).ok();
                let pattern = pattern.filter(|pattern| pattern.len() <= PATTERN_BYTES_MAX);
                let wrong = || {
                    unprocessable(format!("topic_pattern takes a text of up to {PATTERN_BYTES_MAX} bytes"))
                };
                compile(&pattern.ok_or_else(wrong)?).map(Self::Pattern)
            }
        }
    }

    /// Whether a consumer that has this one may take `next`.
    ///
    /// # Errors
    /// 40903: it reads in another way.
    pub fn check_next(&self, next: &Self) -> Result<(), Problem> {
        match (self, next) {
            (Self::Nothing, _)
            | (Self::Topics(_), Self::Topics(_))
            | (Self::Pattern(_), Self::Pattern(_))
            | (Self::Partitions, Self::Partitions) => Ok(()),
            _ => Err(one_way()),
        }
    }
}

/// Of all topics those that it means.
pub fn matching<'a>(pattern: &Regex, topics: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    topics.filter(|topic| pattern.is_match(topic)).take(TOPICS_MAX).map(str::to_owned).collect()
}

fn compile(pattern: &str) -> Result<Regex, Problem> {
    let whole = format!("^(?:{pattern})$");
    let built = regex::RegexBuilder::new(&whole).size_limit(PROGRAM_BYTES_MAX).build();
    built.map_err(|why| {
        let detail = format!("topic_pattern is no regular expression: {why}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    })
}

fn one_way() -> Problem {
    let detail = "a consumer reads in one way: topics by name, topics by a pattern, or partitions that are assigned. \
                  Delete the subscription first";
    illegal_state(detail)
}

/// 40903.
pub fn illegal_state(detail: impl Into<String>) -> Problem {
    Problem::coded(ILLEGAL_STATE, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Subscription, u32> {
        let fields = Fields::read(text.as_bytes()).expect("an object");
        Subscription::read(&fields).map_err(|problem| problem.confluent_code())
    }

    #[test]
    fn one_way_is_taken_at_a_time() {
        let (topics, pattern) =
            (read(r#"{"topics":["a"]}"#).expect("sound"), read(r#"{"topic_pattern":"a.*"}"#).expect("sound"));
        let code = |one: &Subscription, next: &Subscription| {
            one.check_next(next).map_err(|problem| problem.confluent_code())
        };
        assert_eq!(code(&Subscription::Nothing, &topics), Ok(()));
        assert_eq!(code(&topics, &topics), Ok(()));
        assert_eq!(code(&topics, &pattern), Err(40_903));
        assert_eq!(code(&pattern, &Subscription::Partitions), Err(40_903));
        assert_eq!(code(&Subscription::Partitions, &topics), Err(40_903));
        for (text, code) in [
            (r#"{"topics":["a"],"topic_pattern":"b"}"#, 40_903),
            (r#"{"topics":"a"}"#, 422),
            (r#"{"topics":[]}"#, 422),
            (r#"{"topic_pattern":["a"]}"#, 422),
            (r#"{"topic_pattern":"("}"#, 422),
            (r#"{"topic_pattern":"(a{1000}){1000}"}"#, 422),
            ("{}", 422),
        ] {
            assert_eq!(read(text).err(), Some(code), "{text}");
        }
    }

    #[test]
    fn pattern_means_whole_names() {
        let Ok(Subscription::Pattern(pattern)) = read(r#"{"topic_pattern":"or.*|x"}"#) else {
            panic!("a pattern")
        };
        let topics = matching(&pattern, ["orders", "x", "xx", "for"].into_iter());
        assert!(topics.iter().eq(["orders", "x"]));
    }
}
