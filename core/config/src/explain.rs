//! What becomes of each key here, and why: the table and the texts of `barnabas config explain`, from core/metadata's
//! definitions.

use crate::Settings;
use barnabas_metadata::config::{
    ConfigKey, DefaultValue, Resource, Scope, Status, authorizer_key, check, check_effect, listener_setting,
    nearest, of_plug_in, range, status,
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
        if let Some(explained) = beside_the_keys(name, settings) {
            text.push_str(&explained);
        } else if found.is_empty() {
            let near = Resource::ALL.iter().find_map(|&resource| nearest(resource, name));
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(format!("unknown configuration key {name}{hint}"));
        }
    }
    Ok(text)
}

/// Of a setting that has no row in a table: a listener's own, or the authorizer's.
fn beside_the_keys(name: &str, settings: &Settings) -> Option<String> {
    let value = settings.get(name);
    if let Some(key) = authorizer_key(name) {
        let of = "Kafka's authorizer (authorizer.class.name)".to_owned();
        let changed = "in the file of every broker and controller, before the start".to_owned();
        return Some(shown((name, key), of, changed, status_beside(name, settings)?, value));
    }
    let key = listener_setting(name)?;
    let of = format!("one listener of the broker; those without their own take {}", key.name);
    let changed = match check_effect(name, None, false) {
        Ok(()) => "while the node runs, for one broker at a time; a limit of connections for all as well",
        Err(_) => "in the file, before the start",
    };
    Some(shown((name, key), of, changed.to_owned(), status(Resource::Broker, key), value))
}

/// What the node does with a setting that is no key of a broker; `None` where it is unknown.
fn status_beside(name: &str, settings: &Settings) -> Option<Status> {
    let has_authorizer = settings.get("authorizer.class.name").is_some_and(|class| !class.is_empty());
    match authorizer_key(name) {
        Some(_) if has_authorizer => Some(Status::Applied),
        _ => of_plug_in(name).or_else(|| Some(status(Resource::Broker, listener_setting(name)?))),
    }
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
    let of = if is_own { "the broker; Kafka does not know it" } else { kind };
    shown((key.name, key), of.to_owned(), changed.to_owned(), status, value)
}

/// `name`: the key's, or that of a listener's own setting.
fn shown(
    (name, key): (&str, &ConfigKey),
    of: String,
    changed: String,
    status: Status,
    value: Option<&str>,
) -> String {
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
        ("of", of),
        ("type", format!("{}{unit}", key.kind.words())),
        ("default", default.to_owned()),
        ("values", range(key).unwrap_or_else(|| "all of the type".to_owned())),
        ("changed", changed),
        ("here", here),
    ];
    if let Some(value) = value {
        let value = if key.is_sensitive() { "(hidden)" } else { value };
        let judged = check(key, value).err().map(|error| format!(" ({error})")).unwrap_or_default();
        rows.insert(0, ("set to", format!("{value}{judged}")));
    }
    let mut text = format!("{name}\n");
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
            if let Some(status) = status_beside(name, settings) {
                let (word, reason) = (status.word().to_owned(), status.reason().to_owned());
                let known = authorizer_key(name).or_else(|| listener_setting(name));
                // A plug-in's may be a secret.
                let is_shown = known.is_some_and(|key| !key.is_sensitive());
                let value = if is_shown { value } else { "(hidden)" };
                return [name.to_owned(), value.to_owned(), word, reason];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(name: &str, file: &[(&str, &str)]) -> Result<String, String> {
        keys_text(&[&name.to_owned()], &Settings::of(file, &[]))
    }

    #[test]
    fn settings_of_the_authorizer_are_explained() {
        let class = ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        let alone = explained("super.users", &[]).expect("known");
        assert!(alone.contains("not available") && alone.contains("separated by semicolons"), "{alone}");
        let with = explained("super.users", &[class, ("super.users", "User:a")]).expect("known");
        assert!(with.contains("set to   User:a\n") && with.contains("here     applied\n"), "{with}");
        let everyone = explained("allow.everyone.if.no.acl.found", &[class]).expect("known");
        assert!(everyone.contains("default  false\n"), "{everyone}");
        let table = table_text(&Settings::of(&[class, ("super.users", "User:a")], &[]), false);
        let row = table.lines().find(|line| line.starts_with("super.users")).expect("a row");
        assert!(row.contains("User:a") && row.ends_with("applied"), "{row}");
    }

    #[test]
    fn settings_of_a_listener_are_explained() {
        let store = "listener.name.external.ssl.keystore.location";
        let shown = explained(store, &[(store, "/k.p12")]).expect("known");
        assert!(shown.starts_with(&format!("{store}\n")) && shown.contains("set to   /k.p12\n"), "{shown}");
        assert!(
            shown.contains("while the node runs, for one broker")
                && shown.contains("take ssl.keystore.location")
        );
        let receive = explained("listener.name.a.sasl.server.max.receive.size", &[]).expect("known");
        assert!(receive.contains("in the file, before the start"), "{receive}");
        let jaas = "listener.name.a.plain.sasl.jaas.config";
        let text = explained(jaas, &[(jaas, "hunter2")]).expect("known");
        let table = table_text(&Settings::of(&[(jaas, "hunter2"), (store, "/k.p12")], &[]), false);
        assert!(
            !text.contains("hunter2") && !table.contains("hunter2") && !table.contains("unknown"),
            "{table}"
        );
        for wrong in ["listener.name.a.log.retention.ms", "listener.name.a.no.such.key"] {
            assert!(explained(wrong, &[]).is_err(), "{wrong}");
        }
    }
}
