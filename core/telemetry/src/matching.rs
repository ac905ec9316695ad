//! The `match` of a client-metrics subscription: `client_id=app-.*,client_software_name=librdkafka`.
//!
//! Each entry names an attribute of a client and a regular expression for its whole value. All entries must match; of
//! two entries for one attribute the later counts. No entry matches every client.
//!
//! Expressions are those of RE2: no backreference and no lookaround, so that matching takes time linear in the value. A
//! client would otherwise decide how long a worker is busy. Kafka takes Java's.
//!
//! Source: Kafka 4.4 `ClientMetricsConfigs.parseMatchingPatterns`, `ClientMetricsInstanceMetadata.isMatch`.

use barnabas_metadata::config::parse_list;
use regex::{Regex, RegexBuilder};

use crate::Client;

/// What a compiled expression may take; one resource has six at most.
const COMPILED_BYTES_MAX: usize = 128 << 10;

/// An attribute of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    InstanceId,
    ClientId,
    SoftwareName,
    SoftwareVersion,
    SourceAddress,
    SourcePort,
}

impl Attribute {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "client_instance_id" => Self::InstanceId,
            "client_id" => Self::ClientId,
            "client_software_name" => Self::SoftwareName,
            "client_software_version" => Self::SoftwareVersion,
            "client_source_address" => Self::SourceAddress,
            "client_source_port" => Self::SourcePort,
            _ => return None,
        })
    }

    fn matches(self, client: &Client, pattern: &Regex) -> bool {
        match self {
            Self::InstanceId => pattern.is_match(&client.instance_id.to_string()),
            Self::ClientId => client.client_id.as_ref().is_some_and(|id| pattern.is_match(id)),
            Self::SoftwareName => pattern.is_match(&client.software.name),
            Self::SoftwareVersion => pattern.is_match(&client.software.version),
            Self::SourceAddress => pattern.is_match(&client.address),
            Self::SourcePort => pattern.is_match(&client.port.to_string()),
        }
    }
}

/// Why a `match` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Illegal client matching pattern: {entry}{why}")]
pub struct BadPattern {
    entry: String,
    why: String,
}

/// Whether `match` may have this value.
///
/// # Errors
/// An entry is not `name=expression`, names no attribute, or its expression is none.
pub fn check_match(value: &str) -> Result<(), BadPattern> {
    Match::parse(value).map(|_| ())
}

/// A `match` that is ready to be asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Match {
    patterns: Vec<(Attribute, Regex)>,
}

impl Match {
    pub(crate) fn parse(value: &str) -> Result<Self, BadPattern> {
        let mut patterns: Vec<(Attribute, Regex)> = Vec::new();
        for entry in parse_list(value) {
            let (attribute, pattern) = parse_entry(entry)?;
            patterns.retain(|(known, _)| *known != attribute);
            patterns.push((attribute, pattern));
        }
        Ok(Self { patterns })
    }

    pub(crate) fn is_of(&self, client: &Client) -> bool {
        self.patterns.iter().all(|(attribute, pattern)| attribute.matches(client, pattern))
    }
}

fn parse_entry(entry: &str) -> Result<(Attribute, Regex), BadPattern> {
    let refuse = |why: String| BadPattern { entry: entry.to_owned(), why };
    // As Java splits: what is empty at the end does not count.
    let mut parts = entry.trim_end_matches('=').split('=');
    let (Some(name), Some(pattern), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(refuse(String::new()));
    };
    let attribute = Attribute::named(name.trim()).ok_or_else(|| refuse(String::new()))?;
    let compiled = compile(pattern.trim()).map_err(|error| refuse(format!(" ({})", in_one_line(&error))))?;
    Ok((attribute, compiled))
}

/// The expression, to be held against whole values.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    // By itself first: `a)(b` must not become sound by what is put around it.
    build(pattern)?;
    build(&format!(r"\A(?:{pattern})\z"))
}

fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(100)
        .build()
}

/// What is wrong, without the picture of where.
fn in_one_line(error: &regex::Error) -> String {
    let whole = error.to_string();
    whole.lines().last().map_or_else(String::new, |line| line.trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests;
