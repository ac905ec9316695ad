//! The points in an OTLP `MetricsData` message (opentelemetry.proto.metrics.v1), as a client pushes it.
//!
//! ```text
//! MetricsData      1 resource_metrics*
//! ResourceMetrics  1 resource { 1 attributes* }   2 scope_metrics*
//! ScopeMetrics     2 metrics*
//! Metric           1 name   5 gauge | 7 sum | 9 histogram | 10 exponential histogram | 11 summary
//! Gauge            1 data_points*
//! Sum              1 data_points*   2 aggregation_temporality   3 is_monotonic
//! NumberDataPoint  4 as_double (fixed64)   6 as_int (fixed64)   7 attributes*
//! KeyValue         1 key   2 value { 1 string | 2 bool | 3 int | 4 double | others, which are skipped }
//! ```
//!
//! Nothing is allocated but the attributes of one point, at most [`ATTRIBUTES_MAX`]: bytes that decode to a large tree
//! cost no more than their reading. The depth is fixed by the format: what nests without end, arrays and maps as
//! attributes, is skipped unread.

mod export;
mod protobuf;
mod spans;
mod write;

use smallvec::SmallVec;

pub use export::{Export, export, rejected};
pub use protobuf::Malformed;
use protobuf::{Field, fields, text};
pub use spans::{Id, ReadSpan, Span, SpanKind, export_spans, read_spans};

/// Further attributes of a point or a resource are skipped.
const ATTRIBUTES_MAX: usize = 16;

/// An attribute's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Attribute<'a> {
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
}

pub type Attributes<'a> = SmallVec<[(&'a str, Attribute<'a>); 8]>;

/// What a sum's points are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporality {
    #[default]
    Unspecified,
    /// Since the last push.
    Delta,
    /// Since the client's start.
    Cumulative,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    Missing,
    Double(f64),
    Int(i64),
}

/// One point of a gauge or a sum. A gauge is not monotonic.
#[derive(Debug, Clone, PartialEq)]
pub struct Number<'a> {
    pub name: &'a str,
    pub is_monotonic: bool,
    pub temporality: Temporality,
    pub attributes: Attributes<'a>,
    pub value: Value,
}

/// What is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    Resource(Attributes<'a>),
    Number(Number<'a>),
    /// A histogram, an exponential histogram or a summary.
    OtherKind,
}

/// Shows `each` what is in the message, a resource before its points.
///
/// # Errors
/// The bytes are no such message; some of it may have been shown by then.
pub fn read<'a>(message: &'a [u8], each: &mut dyn FnMut(Item<'a>)) -> Result<(), Malformed> {
    for field in fields(message) {
        if let (1, Field::Bytes(resource_metrics)) = field? {
            read_resource_metrics(resource_metrics, each)?;
        }
    }
    Ok(())
}

fn read_resource_metrics<'a>(message: &'a [u8], each: &mut dyn FnMut(Item<'a>)) -> Result<(), Malformed> {
    for field in fields(message) {
        if let (1, Field::Bytes(resource)) = field? {
            each(Item::Resource(attributes(resource, 1)?));
        }
    }
    for field in fields(message) {
        if let (2, Field::Bytes(scope_metrics)) = field? {
            read_scope_metrics(scope_metrics, each)?;
        }
    }
    Ok(())
}

fn read_scope_metrics<'a>(message: &'a [u8], each: &mut dyn FnMut(Item<'a>)) -> Result<(), Malformed> {
    for field in fields(message) {
        if let (2, Field::Bytes(metric)) = field? {
            read_metric(metric, each)?;
        }
    }
    Ok(())
}

fn read_metric<'a>(message: &'a [u8], each: &mut dyn FnMut(Item<'a>)) -> Result<(), Malformed> {
    let mut name = "";
    for field in fields(message) {
        if let (1, Field::Bytes(bytes)) = field? {
            name = text(bytes)?;
        }
    }
    for field in fields(message) {
        match field? {
            (number @ (5 | 7), Field::Bytes(data)) => read_data(name, number == 7, data, each)?,
            (9..=11, Field::Bytes(_)) => each(Item::OtherKind),
            _ => {}
        }
    }
    Ok(())
}

/// A gauge or a sum.
fn read_data<'a>(
    name: &'a str,
    is_sum: bool,
    message: &'a [u8],
    each: &mut dyn FnMut(Item<'a>),
) -> Result<(), Malformed> {
    let (mut is_monotonic, mut temporality) = (false, Temporality::default());
    for field in fields(message) {
        match field? {
            (2, Field::Varint(value)) if is_sum => {
                temporality = match value {
                    1 => Temporality::Delta,
                    2 => Temporality::Cumulative,
                    _ => Temporality::Unspecified,
                };
            }
            (3, Field::Varint(value)) if is_sum => is_monotonic = value != 0,
            _ => {}
        }
    }
    for field in fields(message) {
        if let (1, Field::Bytes(point)) = field? {
            let value = value(point)?;
            let attributes = attributes(point, 7)?;
            each(Item::Number(Number { name, is_monotonic, temporality, attributes, value }));
        }
    }
    Ok(())
}

fn value(point: &[u8]) -> Result<Value, Malformed> {
    let mut value = Value::Missing;
    for field in fields(point) {
        match field? {
            (4, Field::Fixed64(bits)) => value = Value::Double(f64::from_bits(bits)),
            (6, Field::Fixed64(bits)) => value = Value::Int(bits.cast_signed()),
            _ => {}
        }
    }
    Ok(value)
}

/// The attributes that stand in field `number` of a message.
fn attributes(message: &[u8], number: u32) -> Result<Attributes<'_>, Malformed> {
    let mut attributes = Attributes::new();
    for field in fields(message) {
        match field? {
            (found, Field::Bytes(pair)) if found == number => {
                let known = attribute(pair)?.filter(|_| attributes.len() < ATTRIBUTES_MAX);
                attributes.extend(known);
            }
            _ => {}
        }
    }
    Ok(attributes)
}

/// `None`: its value is none that a label can have.
fn attribute(pair: &[u8]) -> Result<Option<(&str, Attribute<'_>)>, Malformed> {
    let (mut key, mut value) = ("", None);
    for field in fields(pair) {
        match field? {
            (1, Field::Bytes(bytes)) => key = text(bytes)?,
            (2, Field::Bytes(bytes)) => value = any_value(bytes)?,
            _ => {}
        }
    }
    Ok(value.map(|value| (key, value)))
}

fn any_value(message: &[u8]) -> Result<Option<Attribute<'_>>, Malformed> {
    let mut value = None;
    for field in fields(message) {
        value = match field? {
            (1, Field::Bytes(bytes)) => Some(Attribute::Text(text(bytes)?)),
            (2, Field::Varint(bits)) => Some(Attribute::Bool(bits != 0)),
            (3, Field::Varint(bits)) => Some(Attribute::Int(bits.cast_signed())),
            (4, Field::Fixed64(bits)) => Some(Attribute::Double(f64::from_bits(bits))),
            _ => value,
        };
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
