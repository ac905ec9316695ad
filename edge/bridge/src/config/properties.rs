//! A connector's file: Java properties, or the JSON that Connect's REST interface takes.

use crate::error::BridgeError;
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
    let mut properties = Properties::new();
    let mut whole = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        if whole.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        // An odd number of backslashes at the end joins the next line.
        let slashes = line.len() - line.trim_end_matches('\\').len();
        if slashes % 2 == 1 {
            whole.push_str(&line[..line.len() - 1]);
            continue;
        }
        whole.push_str(line);
        insert(&mut properties, &whole)?;
        whole.clear();
    }
    if !whole.is_empty() {
        insert(&mut properties, &whole)?;
    }
    Ok(properties)
}

fn insert(properties: &mut Properties, line: &str) -> Result<(), BridgeError> {
    let at = line.find(['=', ':']).unwrap_or(line.len());
    let (key, value) = line.split_at(at);
    let value = value.get(1..).unwrap_or_default();
    if key.trim().is_empty() {
        return Err(BridgeError::Config(format!("a line has no key: {line}")));
    }
    properties.insert(key.trim().to_owned(), value.trim().replace("\\\\", "\\"));
    Ok(())
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
    fn what_is_no_connector_is_refused() {
        for wrong in ["{", "{\"config\":3}", "{\"topic\":[]}", "=v"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
