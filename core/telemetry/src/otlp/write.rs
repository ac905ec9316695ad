//! Fields of a protobuf message, written; and the parts that requests of metrics and of spans have in common.

/// `KeyValue 1 key  2 value { 1 string_value }`.
pub fn attribute(name: &str, value: &str) -> Vec<u8> {
    let (mut any, mut pair) = (Vec::new(), Vec::new());
    message(&mut any, 1, value.as_bytes());
    message(&mut pair, 1, name.as_bytes());
    message(&mut pair, 2, &any);
    pair
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

pub fn varint_field(bytes: &mut Vec<u8>, number: u64, value: u64) {
    varint(bytes, number << 3);
    varint(bytes, value);
}

pub fn fixed(bytes: &mut Vec<u8>, number: u64, value: u64) {
    varint(bytes, number << 3 | 1);
    bytes.extend_from_slice(&value.to_le_bytes());
}

pub fn double(bytes: &mut Vec<u8>, number: u64, value: f64) {
    fixed(bytes, number, value.to_bits());
}

/// A field of bytes, text or a message.
pub fn message(bytes: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint(bytes, number << 3 | 2);
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// `KeyValue 1 key  2 value { 3 int_value }`.
pub fn whole_attribute(name: &str, value: i64) -> Vec<u8> {
    let (mut any, mut pair) = (Vec::new(), Vec::new());
    varint_field(&mut any, 3, value as u64);
    message(&mut pair, 1, name.as_bytes());
    message(&mut pair, 2, &any);
    pair
}

/// The resource, `1 attributes*`, and the scope, `1 name  2 version`.
pub fn origin(attributes: &[(&str, &str)], version: &str) -> (Vec<u8>, Vec<u8>) {
    let (mut resource, mut scope) = (Vec::new(), Vec::new());
    for (name, value) in attributes {
        message(&mut resource, 1, &attribute(name, value));
    }
    message(&mut scope, 1, b"barnabas");
    message(&mut scope, 2, version.as_bytes());
    (resource, scope)
}
