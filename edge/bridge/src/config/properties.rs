//! A connector's file: Java properties (core/base's `properties`), or the JSON that Connect's REST interface takes.

use crate::error::BridgeError;
use barnabas_base::properties;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys and values, by key. Of a key that stands twice the last value holds, as in Java.
pub type Properties = BTreeMap<String, String>;

/// Reads either form.
///
/// # Errors
/// JSON that is neither an object of texts nor `{"name": …, "config": {…}}`; a line without a key.
pub fn parse(text: &str) -> Result<Properties, BridgeError> {
    if text.trim_start().starts_with('{') { parse_json(text) } else { parse_lines(text) }
}

fn parse_json(text: &str) -> Result<Properties, BridgeError> {
    let wrong = |why: String| BridgeError::Config(format!("the file is no connector's JSON: {why}"));
    let json: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let name = json.get("name").and_then(Value::as_str).map(str::to_owned);
    let config = json.get("config").unwrap_or(&json);
    let pairs = config.as_object().ok_or_else(|| wrong("\"config\" is no object".to_owned()))?;
    let mut properties = Properties::new();
    if let Some(name) = name {
        properties.insert("name".to_owned(), name);
    }
    for (key, value) in pairs {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(wrong(format!("{key} is no text, number or boolean"))),
        };
        properties.insert(key.clone(), value);
    }
    Ok(properties)
}

fn parse_lines(text: &str) -> Result<Properties, BridgeError> {
    let pairs = properties::pairs(text).map_err(|error| BridgeError::Config(error.to_string()))?;
    if let Some((_, value)) = pairs.iter().find(|(key, _)| key.is_empty()) {
        return Err(BridgeError::Config(format!("a line has no key: ={value}")));
    }
    Ok(pairs.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn properties_and_both_forms_of_json_say_the_same() {
        let wanted = of(&[("name", "n"), ("tasks.max", "1"), ("topic", "a b")]);
        let lines = "# c\n! c\n\nname = n\ntasks.max:1\ntopic=a \\\n  b\n";
        assert_eq!(parse(lines).expect("read"), wanted);
        let rest = r#"{"name":"n","config":{"tasks.max":1,"topic":"a b"}}"#;
        assert_eq!(parse(rest).expect("read"), wanted);
        assert_eq!(parse(r#"{"name":"n","tasks.max":"1","topic":"a b"}"#).expect("read"), wanted);
    }

    #[test]
    fn escapes_are_those_of_java() {
        let lines = "mq.password=a\\=b\\u00e9\nmq\\:queue = x\n";
        assert_eq!(parse(lines).expect("read"), of(&[("mq.password", "a=b\u{e9}"), ("mq:queue", "x")]));
    }

    #[test]
    fn what_is_no_connector_is_refused() {
        for wrong in ["{", "{\"config\":3}", "{\"topic\":[]}", "=v", "a=\\u00g0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
