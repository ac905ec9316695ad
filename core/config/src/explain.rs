//! What becomes of each key here, and why: the table and the texts of `barnabas config explain`, from core/metadata's
//! definitions.

use crate::Settings;
use barnabas_metadata::config::{
    ConfigKey, DefaultValue, Resource, Scope, Status, check, nearest, of_plug_in, range, status,
};

/// All that is known of each key, for each kind of resource that has it.
///
/// # Errors
/// A key that there is not, with the nearest that there is.
pub fn keys_text(keys: &[&String], settings: &Settings) -> Result<String, String> {
    let mut text = String::new();
    for name in keys {
        let found = Resource::ALL.iter().filter_map(|&resource| Some((resource, resource.key(name)?)));
        let found: Vec<_> = found.collect();
        for (resource, key) in &found {
            let value = settings.get(name).filter(|_| *resource == Resource::Broker);
            text.push_str(&explained(*resource, key, value));
        }
        if found.is_empty() {
            let near = Resource::ALL.iter().find_map(|&resource| nearest(resource, name));
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(format!("unknown configuration key {name}{hint}"));
        }
    }
    Ok(text)
}

fn explained(resource: Resource, key: &ConfigKey, value: Option<&str>) -> String {
    let status = status(resource, key);
    let is_own = resource == Resource::Broker && Resource::own_keys().iter().any(|own| own.name == key.name);
    let kind = match resource {
        Resource::Broker => "broker",
        Resource::Topic => "topic",
        Resource::Group => "group",
        Resource::ClientMetrics => "client-metrics",
    };
    let changed = match (resource, key.scope) {
        (Resource::Broker, Scope::ReadOnly) => "in the file, before the start",
        (Resource::Broker, Scope::PerBroker) => "while the node runs, for one broker at a time",
        _ => "while the node runs",
    };
    let default = match key.default {
        DefaultValue::Required => "none: it must be set",
        DefaultValue::Null => "unset",
        DefaultValue::Value("") => "empty",
        DefaultValue::Value(value) => value,
    };
    let here = match status.reason() {
        "" => status.word().to_owned(),
        reason => format!("{}: {reason}", status.word()),
    };
    let unit = if key.unit.is_empty() { String::new() } else { format!(", in {}", key.unit) };
    let mut rows = vec![
        ("of", if is_own { "the broker; Kafka does not know it".to_owned() } else { kind.to_owned() }),
        ("type", format!("{}{unit}", key.kind.words())),
        ("default", default.to_owned()),
        ("values", range(key).unwrap_or_else(|| "all of the type".to_owned())),
        ("changed", changed.to_owned()),
        ("here", here),
    ];
    if let Some(value) = value {
        let value = if key.is_sensitive() { "(hidden)" } else { value };
        let judged = check(key, value).err().map(|error| format!(" ({error})")).unwrap_or_default();
        rows.insert(0, ("set to", format!("{value}{judged}")));
    }
    let mut text = format!("{}\n", key.name);
    rows.iter().for_each(|(name, value)| text.push_str(&format!("  {name:8} {value}\n")));
    text.push_str(&format!("  {}\n\n", key.doc));
    text
}

/// Key, value, word, reason.
type Row = [String; 4];

fn row(resource: Resource, key: &ConfigKey, value: Option<&str>) -> Row {
    let status: Status = status(resource, key);
    let default = key.default_value().unwrap_or("-").to_owned();
    let value = match value {
        Some(_) if key.is_sensitive() => "(hidden)".to_owned(),
        Some(value) => value.to_owned(),
        None => default,
    };
    [key.name.to_owned(), value, status.word().to_owned(), status.reason().to_owned()]
}

fn all_rows(settings: &Settings) -> Vec<Row> {
    let mut keys: Vec<_> = Resource::Broker.keys().collect();
    keys.sort_by_key(|key| key.name);
    let mut rows: Vec<Row> =
        keys.into_iter().map(|key| row(Resource::Broker, key, settings.get(key.name))).collect();
    for (resource, kind) in
        [(Resource::Topic, "topic"), (Resource::Group, "group"), (Resource::ClientMetrics, "client-metrics")]
    {
        let mut keys: Vec<_> = resource.keys().collect();
        keys.sort_by_key(|key| key.name);
        for key in keys {
            let [name, value, word, reason] = row(resource, key, None);
            rows.push([format!("{kind}: {name}"), value, word, reason]);
        }
    }
    rows.extend(unknown_rows(settings));
    rows
}

fn given_rows(settings: &Settings) -> Vec<Row> {
    let known = settings.iter().filter_map(|(name, value)| {
        let key = Resource::Broker.key(name)?;
        Some(row(Resource::Broker, key, Some(value)))
    });
    known.chain(unknown_rows(settings)).collect()
}

fn unknown_rows(settings: &Settings) -> Vec<Row> {
    let unknown = settings.iter().filter(|(name, _)| Resource::Broker.key(name).is_none());
    unknown
        .map(|(name, value)| {
            if let Some(status) = of_plug_in(name) {
                let (word, reason) = (status.word().to_owned(), status.reason().to_owned());
                return [name.to_owned(), "(hidden)".to_owned(), word, reason];
            }
            let near = nearest(Resource::Broker, name);
            let reason = near.map_or_else(
                || "Kafka does not know this key".to_owned(),
                |near| format!("Kafka does not know this key; did you mean {near}?"),
            );
            [name.to_owned(), value.to_owned(), "unknown".to_owned(), reason]
        })
        .collect()
}

/// The rows of all keys, or of those that are set and unknown ones, as a table.
pub fn table_text(settings: &Settings, every_key: bool) -> String {
    let rows = if every_key { all_rows(settings) } else { given_rows(settings) };
    let width = |column: usize, max: usize| {
        let longest = rows.iter().map(|row| row[column].len().min(max)).max().unwrap_or(0);
        longest.max(5)
    };
    let (keys, values) = (width(0, 60), width(1, 28));
    let mut text = format!("{:keys$}  {:values$}  {:13}  REASON\n", "KEY", "VALUE", "HERE");
    for [key, value, word, reason] in rows {
        text.push_str(format!("{key:keys$}  {value:values$}  {word:13}  {reason}").trim_end());
        text.push('\n');
    }
    text
}
