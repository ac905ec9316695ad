//! An error as AMQP's peers tell each other.
//!
//! # Source
//! AMQP 1.0 part 2, section 2.8.14.

/// Why a peer ended something: a symbol of the standard or of the peer, and its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    pub condition: String,
    pub description: String,
}

impl Condition {
    pub fn new(condition: &str, description: impl Into<String>) -> Self {
        Self { condition: condition.to_owned(), description: description.into() }
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.condition.is_empty(), self.description.is_empty()) {
            (true, _) => f.write_str("no reason given"),
            (_, true) => f.write_str(&self.condition),
            _ => write!(f, "{}: {}", self.condition, self.description),
        }
    }
}
