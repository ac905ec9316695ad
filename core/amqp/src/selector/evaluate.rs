//! What an expression comes to for a message. `None` is unknown.

use super::{Comparison, Expression, Operator};
use crate::{Message, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value that is known.
#[derive(Debug, Clone)]
enum Known<'a> {
    Text(Cow<'a, str>),
    Exact(i64),
    Approximate(f64),
    Bool(bool),
}

/// Of a condition.
pub fn truth(of: &Expression, message: &Message) -> Option<bool> {
    match of {
        Expression::Not(inner) => truth(inner, message).map(|is| !is),
        Expression::All(parts) => chain(parts, message, false),
        Expression::Any(parts) => chain(parts, message, true),
        Expression::Compare(left, comparison, right) => {
            compare(value(left, message)?, *comparison, value(right, message)?)
        }
        Expression::Between(of, is_not) => between(of, *is_not, message),
        Expression::In(name, texts, is_not) => {
            let found = match identified(name, message)? {
                Known::Text(text) => texts.iter().any(|one| *one == text),
                _ => false,
            };
            Some(found != *is_not)
        }
        Expression::Like(name, pattern, is_not) => {
            let fits = match identified(name, message)? {
                Known::Text(text) => pattern.fits(&text)?,
                _ => false,
            };
            Some(fits != *is_not)
        }
        Expression::IsNull(name, is_not) => Some(identified(name, message).is_none() != *is_not),
        other => match value(other, message)? {
            Known::Bool(is) => Some(is),
            _ => None,
        },
    }
}

/// AND, which `ends_at` false, or OR, which ends at true.
fn chain(parts: &[Expression], message: &Message, ends_at: bool) -> Option<bool> {
    let mut found = Some(!ends_at);
    for part in parts {
        match truth(part, message) {
            Some(is) if is == ends_at => return Some(ends_at),
            Some(_) => {}
            None => found = None,
        }
    }
    found
}

/// Two comparisons, as JMS explains it.
fn between(of: &[Expression; 3], is_not: bool, message: &Message) -> Option<bool> {
    let [found, low, high] = of;
    let (outside_low, outside_high) = if is_not {
        (Comparison::Less, Comparison::Greater)
    } else {
        (Comparison::GreaterOrEqual, Comparison::LessOrEqual)
    };
    let side = |comparison, bound| compare(value(found, message)?, comparison, value(bound, message)?);
    match (side(outside_low, low), side(outside_high, high)) {
        (Some(low), Some(high)) if is_not => Some(low || high),
        (Some(low), Some(high)) => Some(low && high),
        (Some(is), None) | (None, Some(is)) if is == is_not => Some(is),
        _ => None,
    }
}

fn compare(left: Known<'_>, comparison: Comparison, right: Known<'_>) -> Option<bool> {
    let order = match (&left, &right) {
        (Known::Exact(left), Known::Exact(right)) => Some(left.cmp(right)),
        (Known::Text(left), Known::Text(right)) => return Some(equality(left == right, comparison)),
        (Known::Bool(left), Known::Bool(right)) => return Some(equality(left == right, comparison)),
        _ => match (double(&left), double(&right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => return Some(false),
        },
    };
    // Without an order one of them is not a number: it equals nothing.
    let Some(order) = order else { return Some(comparison == Comparison::Unequal) };
    Some(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::Unequal => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

/// Texts and booleans are only compared by = and <>.
fn equality(is_equal: bool, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Equal => is_equal,
        Comparison::Unequal => !is_equal,
        _ => false,
    }
}

fn double(of: &Known<'_>) -> Option<f64> {
    match of {
        Known::Exact(number) => Some(*number as f64),
        Known::Approximate(number) => Some(*number),
        Known::Text(_) | Known::Bool(_) => None,
    }
}

fn value<'a>(of: &'a Expression, message: &'a Message) -> Option<Known<'a>> {
    Some(match of {
        Expression::Text(text) => Known::Text(Cow::Borrowed(text)),
        Expression::Exact(number) => Known::Exact(*number),
        Expression::Approximate(bits) => Known::Approximate(f64::from_bits(*bits)),
        Expression::Bool(is) => Known::Bool(*is),
        Expression::Identifier(name) => identified(name, message)?,
        Expression::Negative(inner) => match value(inner, message)? {
            Known::Exact(number) => Known::Exact(number.wrapping_neg()),
            Known::Approximate(number) => Known::Approximate(-number),
            Known::Text(_) | Known::Bool(_) => return None,
        },
        Expression::Arithmetic(first, others) => {
            let mut found = value(first, message)?;
            for (operator, other) in others {
                found = calculated(&found, *operator, &value(other, message)?)?;
            }
            found
        }
        condition => Known::Bool(truth(condition, message)?),
    })
}

/// As Java calculates with long and double.
fn calculated(left: &Known<'_>, operator: Operator, right: &Known<'_>) -> Option<Known<'static>> {
    if let (Known::Exact(left), Known::Exact(right)) = (left, right) {
        return Some(Known::Exact(match operator {
            Operator::Plus => left.wrapping_add(*right),
            Operator::Minus => left.wrapping_sub(*right),
            Operator::Times => left.wrapping_mul(*right),
            Operator::Over if *right == 0 => return None,
            Operator::Over => left.wrapping_div(*right),
        }));
    }
    let (left, right) = (double(left)?, double(right)?);
    Some(Known::Approximate(match operator {
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Times => left * right,
        Operator::Over => left / right,
    }))
}

fn identified<'a>(name: &str, message: &'a Message) -> Option<Known<'a>> {
    if let Some(field) = name.strip_prefix("amqp.") {
        return amqp_field(field, message);
    }
    match jms_header(name, message) {
        Some(found) => found,
        None => message.application.iter().find(|pair| pair.0 == name).and_then(|pair| known(&pair.1)),
    }
}

fn known(of: &Value) -> Option<Known<'_>> {
    Some(match of {
        Value::Bool(is) => Known::Bool(*is),
        Value::String(text) | Value::Symbol(text) => Known::Text(Cow::Borrowed(text)),
        Value::Float(bits) => Known::Approximate(f32::from_bits(*bits).into()),
        Value::Double(bits) => Known::Approximate(f64::from_bits(*bits)),
        Value::Ulong(number) if i64::try_from(*number).is_err() => Known::Approximate(*number as f64),
        other => Known::Exact(other.integer()?),
    })
}

fn text(of: &Option<String>) -> Option<Known<'_>> {
    of.as_deref().map(|text| Known::Text(Cow::Borrowed(text)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn uuid(of: &[u8; 16]) -> String {
    let digits = hex(of).to_lowercase();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// An id as it is.
fn plain_id(of: &Option<Value>) -> Option<Known<'_>> {
    Some(Known::Text(match of.as_ref()? {
        Value::String(text) => Cow::Borrowed(text),
        Value::Ulong(number) => return Some(Known::Exact(i64::try_from(*number).ok()?)),
        Value::Uuid(bytes) => Cow::Owned(uuid(bytes)),
        Value::Binary(bytes) => Cow::Owned(hex(bytes)),
        _ => return None,
    }))
}

/// An id as Qpid JMS shows it. A correlation id that is a text has no prefix.
fn jms_id(of: &Option<Value>, is_correlation: bool) -> Option<Known<'_>> {
    Some(Known::Text(match of.as_ref()? {
        Value::String(text) if is_correlation || text.starts_with("ID:") => Cow::Borrowed(text),
        Value::String(text) => Cow::Owned(format!("ID:AMQP_NO_PREFIX:{text}")),
        Value::Ulong(number) => Cow::Owned(format!("ID:AMQP_ULONG:{number}")),
        Value::Uuid(bytes) => Cow::Owned(format!("ID:AMQP_UUID:{}", uuid(bytes))),
        Value::Binary(bytes) => Cow::Owned(format!("ID:AMQP_BINARY:{}", hex(bytes))),
        _ => return None,
    }))
}

/// `None`: it is no header of JMS. An inner `None`: the message does not have it.
fn jms_header<'a>(name: &str, message: &'a Message) -> Option<Option<Known<'a>>> {
    let (header, properties) = (&message.header, &message.properties);
    let exact = |number: i64| Some(Known::Exact(number));
    Some(match name {
        "JMSMessageID" => jms_id(&properties.message_id, false),
        "JMSCorrelationID" => jms_id(&properties.correlation_id, true),
        "JMSType" => text(&properties.subject),
        "JMSReplyTo" => text(&properties.reply_to),
        "JMSDestination" => text(&properties.to),
        "JMSDeliveryMode" => {
            Some(Known::Text(Cow::Borrowed(if header.durable { "PERSISTENT" } else { "NON_PERSISTENT" })))
        }
        "JMSPriority" => exact(header.priority.into()),
        "JMSRedelivered" => Some(Known::Bool(header.delivery_count > 0)),
        "JMSTimestamp" => exact(properties.creation_time_ms.unwrap_or(0)),
        "JMSExpiration" => exact(properties.absolute_expiry_time_ms.unwrap_or(0)),
        "JMSXGroupID" => text(&properties.group_id),
        "JMSXGroupSeq" => properties.group_sequence.map(|number| Known::Exact(number.into())),
        "JMSXUserID" => amqp_field("user_id", message),
        "JMSXDeliveryCount" => exact(i64::from(header.delivery_count) + 1),
        _ => return None,
    })
}

fn amqp_field<'a>(name: &str, message: &'a Message) -> Option<Known<'a>> {
    let (header, properties) = (&message.header, &message.properties);
    let exact = |number: i64| Some(Known::Exact(number));
    match name {
        "durable" => Some(Known::Bool(header.durable)),
        "priority" => exact(header.priority.into()),
        "ttl" => header.ttl_ms.map(|ms| Known::Exact(ms.into())),
        "first_acquirer" => Some(Known::Bool(header.first_acquirer)),
        "delivery_count" => exact(header.delivery_count.into()),
        "message_id" => plain_id(&properties.message_id),
        "user_id" => properties.user_id.as_deref().map(|user| Known::Text(String::from_utf8_lossy(user))),
        "to" => text(&properties.to),
        "subject" => text(&properties.subject),
        "reply_to" => text(&properties.reply_to),
        "correlation_id" => plain_id(&properties.correlation_id),
        "content_type" => text(&properties.content_type),
        "content_encoding" => text(&properties.content_encoding),
        "absolute_expiry_time" => properties.absolute_expiry_time_ms.map(Known::Exact),
        "creation_time" => properties.creation_time_ms.map(Known::Exact),
        "group_id" => text(&properties.group_id),
        "group_sequence" => properties.group_sequence.map(|number| Known::Exact(number.into())),
        "reply_to_group_id" => text(&properties.reply_to_group_id),
        _ => None,
    }
}
