//! One field as Rust: its type, its default, and in which versions it is there, tagged or null.

use super::names;
use super::schema::{Field, Range, Type};

pub enum Condition {
    Always,
    Never,
    When(String),
}

/// When `range` holds, given that the version lies `within`.
pub fn condition(range: Range, within: Range) -> Condition {
    let Some(both) = range.and(within) else { return Condition::Never };
    if both == within {
        return Condition::Always;
    }
    Condition::When(if both.min == both.max {
        format!("v == {}", both.min)
    } else if both.max == within.max {
        format!("v >= {}", both.min)
    } else if both.min == within.min {
        format!("v <= {}", both.max)
    } else {
        format!("({}..={}).contains(&v)", both.min, both.max)
    })
}

/// The opposite of what [`condition`] wrote.
pub fn negated(when: &str) -> String {
    for (sign, opposite) in [(">=", "<"), ("<=", ">"), ("==", "!=")] {
        if let Some(rest) = when.strip_prefix("v ").and_then(|rest| rest.strip_prefix(sign)) {
            return format!("v {opposite}{rest}");
        }
    }
    format!("!{when}")
}

pub fn tagged_versions(field: &Field) -> Range {
    field.tagged.and_then(|tagged| tagged.and(field.versions)).unwrap_or(field.versions)
}

/// When the field stands in line, not among the tagged ones.
pub fn in_line_condition(field: &Field, within: Range) -> Condition {
    match field.tagged {
        None => condition(field.versions, within),
        Some(tagged) if tagged.covers(field.versions) => Condition::Never,
        Some(tagged) => condition(Range { min: field.versions.min, max: tagged.min - 1 }, within),
    }
}

pub fn null_condition(field: &Field, within: Range) -> String {
    let present = field.versions.and(within).unwrap_or(within);
    match field.nullable.map_or(Condition::Never, |nullable| condition(nullable, present)) {
        Condition::Always => "true".to_owned(),
        Condition::Never => "false".to_owned(),
        Condition::When(when) => when,
    }
}

pub fn rust_type(field: &Field) -> String {
    let plain = plain_type(&field.ty);
    if field.nullable.is_some() || field.ty == Type::Records { format!("Option<{plain}>") } else { plain }
}

fn plain_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Int8 => "i8".to_owned(),
        Type::Int16 => "i16".to_owned(),
        Type::Uint16 => "u16".to_owned(),
        Type::Int32 => "i32".to_owned(),
        Type::Uint32 => "u32".to_owned(),
        Type::Int64 => "i64".to_owned(),
        Type::Float64 => "f64".to_owned(),
        Type::Uuid => "Uuid".to_owned(),
        Type::String => "Str".to_owned(),
        Type::Bytes | Type::Records => "Bytes".to_owned(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", plain_type(element)),
    }
}

pub fn primitive_fn(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int8 => "int8",
        Type::Int16 => "int16",
        Type::Uint16 => "uint16",
        Type::Int32 => "int32",
        Type::Uint32 => "uint32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        Type::Uuid => "uuid",
        Type::String | Type::Bytes | Type::Records | Type::Struct(_) | Type::Array(_) => {
            unreachable!("has a function of its own")
        }
    }
}

fn is_null_default(field: &Field) -> bool {
    field.default.as_deref() == Some("null")
}

/// Whether Rust's `Default` is Kafka's default.
pub fn has_plain_default(field: &Field) -> bool {
    let nullable = field.nullable.is_some();
    match (&field.default, &field.ty) {
        (_, Type::Records) => true,
        (Some(default), _) if default == "null" => nullable,
        (None, _) => !nullable,
        (Some(default), Type::Bool) => default == "false",
        (Some(default), Type::Float64) => default.parse() == Ok(0.0),
        (Some(default), Type::String) => default.is_empty(),
        (Some(default), _) => default == "0",
    }
}

pub fn default_value(field: &Field) -> String {
    if is_null_default(field) || field.ty == Type::Records {
        return "None".to_owned();
    }
    let plain = match (&field.ty, field.default.as_deref()) {
        (Type::Bool, default) => default.unwrap_or("false").to_owned(),
        (Type::Float64, default) => {
            format!("{:?}", default.and_then(|text| text.parse().ok()).unwrap_or(0.0))
        }
        (Type::String, Some(default)) => format!("Str::from_static({default})"),
        (Type::String, None) => "Str::default()".to_owned(),
        (Type::Uuid, _) => "Uuid::ZERO".to_owned(),
        (Type::Bytes, _) => "Bytes::new()".to_owned(),
        (Type::Struct(name), _) => format!("{name}::default()"),
        (Type::Array(_), _) => "Vec::new()".to_owned(),
        (_, default) => default.unwrap_or("0").to_owned(),
    };
    if field.nullable.is_some() { format!("Some({plain})") } else { plain }
}

/// An expression that is true where the field is not at its default.
pub fn differs_from_default(field: &Field) -> String {
    let value = format!("self.{}", names::field(&field.name));
    if is_null_default(field) || field.ty == Type::Records {
        return format!("{value}.is_some()");
    }
    let default = field.default.as_deref();
    match (&field.ty, field.nullable.is_some()) {
        (Type::Bool, _) if default == Some("true") => format!("!{value}"),
        (Type::Bool, _) => value,
        (Type::String, false) => match default {
            Some(text) => format!("{value}.as_str() != {text}"),
            None => format!("!{value}.is_empty()"),
        },
        (Type::String, true) => format!("{value}.as_deref() != Some({})", default.unwrap_or("\"\"")),
        (Type::Bytes | Type::Array(_), false) => format!("!{value}.is_empty()"),
        (Type::Bytes | Type::Array(_), true) => format!("{value}.as_ref().is_none_or(|x| !x.is_empty())"),
        (Type::Uuid, _) => format!("!{value}.is_zero()"),
        (Type::Struct(name), false) => format!("{value} != {name}::default()"),
        (Type::Struct(name), true) => format!("{value}.as_ref() != Some(&{name}::default())"),
        _ => format!("{value} != {}", default_value(field)),
    }
}

pub fn element_bytes_min(ty: &Type) -> usize {
    match ty {
        Type::Int16 | Type::Uint16 => 2,
        Type::Int32 | Type::Uint32 => 4,
        Type::Int64 | Type::Float64 => 8,
        Type::Uuid => 16,
        _ => 1,
    }
}
