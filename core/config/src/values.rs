//! Every value that is set, against its key and against the others: at a start, and before a directory is formatted.

use crate::settings::{ConfigError, Settings};

use barnabas_base::Text;
use barnabas_metadata::config::{BrokerConfig, Contradiction, Properties, StaticConfig, contradictions};

/// With the values, a warning for each key that is unknown or has no effect, and for values that fit together badly.
///
/// # Errors
/// All values that cannot be, one a line.
pub fn check(settings: &Settings) -> Result<(BrokerConfig, Vec<String>), String> {
    let given: Properties =
        settings.iter().map(|(key, value)| (Text::from(key), Text::from(value))).collect();
    let (given, warnings) = StaticConfig::check(given).map_err(|refusals| {
        let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        lines.join("\nbarnabas: ")
    })?;
    let config = BrokerConfig::new(given);
    let (bearable, refused): (Vec<_>, Vec<_>) =
        contradictions(&config).into_iter().partition(|contradiction| contradiction.is_bearable);
    let line = |one: Contradiction| ConfigError::value(one.key, one.problem, one.example).to_string();
    if !refused.is_empty() {
        return Err(refused.into_iter().map(line).collect::<Vec<_>>().join("\nbarnabas: "));
    }
    let warnings = warnings.iter().map(ToString::to_string);
    Ok((config, warnings.chain(bearable.into_iter().map(line)).chain(repeated(settings)).collect()))
}

/// Of directories that stand twice in their key.
fn repeated(settings: &Settings) -> Option<String> {
    let key = if settings.get("log.dirs").is_some() { "log.dirs" } else { "log.dir" };
    let entries: Vec<&str> = settings.get(key)?.split(',').map(str::trim).collect();
    let is_repeated = |(at, entry): &(usize, &&str)| entries[..*at].contains(*entry);
    let (_, first) = entries.iter().enumerate().find(is_repeated)?;
    Some(format!("{key}: {first} stands there twice and counts once"))
}
