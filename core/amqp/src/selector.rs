//! Selectors in the language of JMS: which messages of a source are wanted. Pure.
//!
//! | module | answers |
//! |---|---|
//! | `words` | which words are in this text |
//! | `parse` | which expression do they make |
//! | `evaluate` | what does it come to for this message |
//! | `like` | does this text fit a pattern of LIKE |
//!
//! A message is selected where the expression is true: not where it is false or unknown.
//!
//! | comes to | where |
//! |---|---|
//! | unknown | an identifier has no value, or none that is a text, number or boolean; a division by 0 |
//! | unknown | arithmetic or a comparison with what is unknown; arithmetic with a text |
//! | false | values of two kinds are compared (a text and a number), `<>` too |
//!
//! | identifier | value |
//! |---|---|
//! | `JMSMessageID`, `JMSCorrelationID` | as Qpid JMS shows them: no texts with their kind (`ID:AMQP_ULONG:7`) |
//! | `JMSType`, `JMSReplyTo`, `JMSDestination` | subject, reply-to, to |
//! | `JMSDeliveryMode` | `'PERSISTENT'` or `'NON_PERSISTENT'` |
//! | `JMSPriority`, `JMSRedelivered`, `JMSTimestamp`, `JMSExpiration` | times in ms |
//! | `JMSXGroupID`, `JMSXGroupSeq`, `JMSXUserID`, `JMSXDeliveryCount` | the last from 1 |
//! | `amqp.message_id`, `amqp.to`, and so on | the field of that name of header or properties, as it is |
//! | any other | the application property of that name |
//!
//! Bounded: [`SELECTOR_BYTES_MAX`] of text, [`DEPTH_MAX`] of nesting, and what LIKE compares (`like`).
//!
//! # Source
//! JMS 3.1, section 3.8; Apache's registry of AMQP filters (`apache.org:selector-filter:string`); Qpid JMS
//! `AmqpMessageIdHelper`.

mod evaluate;
mod like;
mod parse;
#[cfg(test)]
mod tests;
mod words;

use crate::{Message, Value};
use like::Pattern;

pub const SELECTOR_BYTES_MAX: usize = 4096;
/// Of parentheses, NOT and signs.
const DEPTH_MAX: usize = 64;
/// Descriptors of the filter.
const CODE: u64 = 0x0000_468C_0000_0004;
const NAME: &str = "apache.org:selector-filter:string";

/// A selector that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Expression);

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the selector is not understood at character {at}: {why}")]
pub struct SelectorError {
    /// From 1.
    pub at: usize,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    Text(String),
    Exact(i64),
    /// A double's bits.
    Approximate(u64),
    Bool(bool),
    Identifier(String),
    Negative(Box<Expression>),
    /// The first operand, then the others with their operators, from left to right.
    Arithmetic(Box<Expression>, Vec<(Operator, Expression)>),
    Compare(Box<Expression>, Comparison, Box<Expression>),
    /// With the word whether NOT stands before it.
    Between(Box<[Expression; 3]>, bool),
    In(String, Vec<String>, bool),
    Like(String, Pattern, bool),
    IsNull(String, bool),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Selector {
    /// # Errors
    /// [`SelectorError`].
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > SELECTOR_BYTES_MAX {
            let why = format!("it has {} bytes; {SELECTOR_BYTES_MAX} are the most", text.len());
            return Err(SelectorError { at: 1, why });
        }
        parse::expression(&words::words(text)?).map(Self)
    }

    /// Of a filter's value. `None`: it is another filter.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of_filter(value: &Value) -> Option<Result<Self, SelectorError>> {
        let Value::Described(pair) = value else { return None };
        let is_selector = pair.0 == Value::Ulong(CODE) || pair.0.text() == Some(NAME);
        Some(Self::parse(pair.1.text().filter(|_| is_selector)?))
    }

    /// Whether the message is selected.
    pub fn matches(&self, message: &Message) -> bool {
        evaluate::truth(&self.0, message) == Some(true)
    }
}
