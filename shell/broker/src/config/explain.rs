//! `barnabas config explain`: what becomes of each key here, and why; `… KEY`: all that is known of one. A table from
//! core/metadata's definitions.

use barnabas_config::Settings;
use barnabas_metadata::config::{
    ConfigKey, DefaultValue, Resource, Scope, Status, check, nearest, of_plug_in, range, status,
};
use clap::ArgMatches;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// # Errors
/// The file cannot be read, or standard output is gone.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let Some(matches) = matches.subcommand_matches("explain") else { return Ok(ExitCode::FAILURE) };
    let whats = matches.get_many::<String>("what").into_iter().flatten();
    let (files, keys): (Vec<&String>, Vec<&String>) = whats.partition(|what| is_file(what));
    if files.len() > 1 {
        return Err(format!("one file at a time: {} and {}", files[0], files[1]).into());
    }
    let file = files.first().map(Path::new);
    let overrides = matches.get_many::<String>("override").into_iter().flatten().map(String::as_str);
    let settings = Settings::load(file, overrides, |path| std::fs::read(path))?;
    if !keys.is_empty() {
        return explain_keys(&keys, &settings);
    }
    let every_key = matches.get_flag("all") || settings.iter().next().is_none();
    let rows = if every_key { all_rows(&settings) } else { given_rows(&settings) };
    match write_rows(&rows) {
        // `config explain | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => done.map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}

/// Keys have no slash and are no files; what is neither a key nor a file is taken for a file that cannot be read.
fn is_file(what: &str) -> bool {
    let is_key = Resource::ALL.iter().any(|resource| resource.key(what).is_some());
    !is_key && (what.contains('/') || what.ends_with(".properties") || Path::new(what).is_file())
}

/// All that is known of each key, for each kind of resource that has it.
fn explain_keys(keys: &[&String], settings: &Settings) -> Result<ExitCode, Box<dyn Error>> {
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
            return Err(format!("unknown configuration key {name}{hint}").into());
        }
    }
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
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

fn write_rows(rows: &[Row]) -> std::io::Result<()> {
    let width = |column: usize, max: usize| {
        let longest = rows.iter().map(|row| row[column].len().min(max)).max().unwrap_or(0);
        longest.max(5)
    };
    let (keys, values) = (width(0, 60), width(1, 28));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:keys$}  {:values$}  {:13}  REASON", "KEY", "VALUE", "HERE")?;
    for [key, value, word, reason] in rows {
        writeln!(out, "{}", format!("{key:keys$}  {value:values$}  {word:13}  {reason}").trim_end())?;
    }
    Ok(())
}
