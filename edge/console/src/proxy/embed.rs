//! Keys and values in a JSON document, and back to the bytes that are stored.
//!
//! JSON is stored as it was written and given as it is stored, so that no number changes.

use super::media::Format;
use crate::http::call::Fields;
use crate::http::problem::Problem;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::value::RawValue;

/// The bytes of `name` in a record; `None`: it is absent or null.
///
/// # Errors
/// It does not have this format.
pub fn read(format: Format, record: &Fields, name: &str) -> Result<Option<Bytes>, Problem> {
    let Some(text) = record.raw(name) else { return Ok(None) };
    match format {
        Format::Binary => {
            let text: String = serde_json::from_str(text)
                .map_err(|_| Problem::bad(format!("{name} takes a text in base64, not {text}")))?;
            let bytes = STANDARD.decode(&text);
            bytes
                .map(|bytes| Some(bytes.into()))
                .map_err(|why| Problem::bad(format!("{name} is not base64: {why}")))
        }
        Format::Text => {
            let text: Result<String, _> = serde_json::from_str(text);
            let wrong = |_| {
                let detail = format!("Because the embedded format is 'text', the {name} must be a string");
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
            };
            text.map(|text| Some(text.into())).map_err(wrong)
        }
        Format::Json => Ok(Some(Bytes::from(text.to_owned()))),
        Format::Avro | Format::JsonSchema | Format::Protobuf => Err(no_registry(format)),
    }
}

/// Appends what is stored. Nothing is appended where that fails.
///
/// # Errors
/// Why it cannot be written in this format.
pub fn write(format: Format, stored: Option<&[u8]>, out: &mut String) -> Result<(), String> {
    let Some(bytes) = stored else {
        out.push_str("null");
        return Ok(());
    };
    match format {
        Format::Binary => {
            out.push('"');
            STANDARD.encode_string(bytes, out);
            out.push('"');
        }
        Format::Text => {
            let text = std::str::from_utf8(bytes).map_err(|why| why.to_string())?;
            out.push_str(&quoted(text));
        }
        Format::Json => {
            let text = std::str::from_utf8(bytes).map_err(|why| why.to_string())?;
            let json: &RawValue = serde_json::from_str(text).map_err(|why| why.to_string())?;
            out.push_str(json.get());
        }
        Format::Avro | Format::JsonSchema | Format::Protobuf => return Err(no_registry(format).detail),
    }
    Ok(())
}

/// A text as JSON writes it.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a REST Proxy answers that has no schema registry.
pub fn no_registry(format: Format) -> Problem {
    let detail = format!(
        "Schema Registry must be configured when using schemas: this listener has none, and {} needs one",
        format.name()
    );
    Problem::coded(42_206, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(format: Format, record: &str) -> Result<Option<Bytes>, u32> {
        let record = Fields::read(record.as_bytes()).expect("an object");
        read(format, &record, "value").map_err(|problem| problem.confluent_code())
    }

    fn given(format: Format, bytes: &[u8]) -> Result<String, String> {
        let mut out = String::from("x");
        write(format, Some(bytes), &mut out).map(|()| out[1..].to_owned())
    }

    #[test]
    fn what_goes_in_comes_out() {
        for (format, value) in [
            (Format::Binary, r#""AAEC""#),
            (Format::Binary, r#""""#),
            (Format::Json, r#"{"n": 1e400, "m":[18446744073709551616,-0]}"#),
            (Format::Json, r#""t""#),
            (Format::Text, r#""é\n\"""#),
        ] {
            let bytes = stored(format, &format!("{{\"value\":{value}}}")).expect("sound").expect("a value");
            assert_eq!(given(format, &bytes).as_deref(), Ok(value));
        }
        assert_eq!(stored(Format::Json, r#"{"value":null}"#), Ok(None));
        assert_eq!(stored(Format::Binary, "{}"), Ok(None));
        let mut out = String::new();
        write(Format::Json, None, &mut out).expect("null");
        assert_eq!(out, "null");
    }

    #[test]
    fn what_has_another_format_is_refused() {
        for (format, value, code) in [
            (Format::Binary, r#""!""#, 400),
            (Format::Binary, r#"{"a":1}"#, 400),
            (Format::Text, "1", 422),
            (Format::Avro, "1", 42_206),
        ] {
            assert_eq!(stored(format, &format!("{{\"value\":{value}}}")), Err(code), "{value}");
        }
        for (format, bytes) in [
            (Format::Json, &b"not json"[..]),
            (Format::Json, b"{} {}"),
            (Format::Json, b""),
            (Format::Json, b"\xff"),
            (Format::Text, b"\xff"),
            (Format::Protobuf, b"x"),
        ] {
            assert!(given(format, bytes).is_err(), "{bytes:?}");
        }
    }
}
