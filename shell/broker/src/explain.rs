//! `barnabas config explain`: what becomes of each key here, and why. A table from core/metadata's definitions.

use crate::settings::Settings;
use barnabas_metadata::config::{Resource, Status, nearest, status};
use clap::ArgMatches;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// # Errors
/// The file cannot be read, or standard output is gone.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let Some(matches) = matches.subcommand_matches("explain") else { return Ok(ExitCode::FAILURE) };
    let file = matches.get_one::<String>("file").map(Path::new);
    let overrides = matches.get_many::<String>("override").into_iter().flatten().map(String::as_str);
    let settings = Settings::load(file, overrides)?;
    let every_key = matches.get_flag("all") || settings.iter().next().is_none();
    let rows = if every_key { all_rows(&settings) } else { given_rows(&settings) };
    match write_rows(&rows) {
        // `config explain | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => done.map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}

/// Key, value, word, reason.
type Row = [String; 4];

fn row(resource: Resource, key: &barnabas_metadata::config::ConfigKey, value: Option<&str>) -> Row {
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
