//! Values of AMQP as JSON: maps and lists of JMS become objects and arrays.

use super::text_of;
use barnabas_amqp::Value;
use serde_json::{Map, Value as Json};

/// What JSON has no type for becomes a text: binary as base64, uuids in hexadecimal, floats that are not finite.
pub(super) fn of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(is) => Json::Bool(*is),
        Value::Ulong(n) => Json::from(*n),
        Value::Float(bits) => float(f64::from(f32::from_bits(*bits))),
        Value::Double(bits) => float(f64::from_bits(*bits)),
        Value::Char(code) => Json::String(char::from_u32(*code).map_or_else(String::new, String::from)),
        Value::Uuid(bytes) => Json::String(uuid(bytes)),
        Value::Decimal32(bytes) => Json::String(hex(bytes)),
        Value::Decimal64(bytes) => Json::String(hex(bytes)),
        Value::Decimal128(bytes) => Json::String(hex(bytes)),
        Value::String(_) | Value::Symbol(_) | Value::Binary(_) => Json::String(text_of(value)),
        Value::List(list) | Value::Array(list) => list.iter().map(of).collect(),
        Value::Map(map) => {
            let pairs = map.iter().map(|(key, value)| (text_of(key), of(value)));
            Json::Object(pairs.collect::<Map<String, Json>>())
        }
        Value::Described(pair) => of(&pair.1),
        other => other.integer().map_or(Json::Null, Json::from),
    }
}

fn float(number: f64) -> Json {
    serde_json::Number::from_f64(number).map_or_else(|| Json::String(number.to_string()), Json::Number)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn uuid(bytes: &[u8; 16]) -> String {
    let all = hex(bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| all.get(range).unwrap_or_default());
    parts.join("-")
}
