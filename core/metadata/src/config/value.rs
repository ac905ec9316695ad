//! Whether a text is a value that a key takes.
//!
//! Numbers, booleans and lists are read as Kafka's `ConfigDef.parseType` reads them: blanks around the value do not
//! count, booleans in any case, lists split at commas.

use super::key::{ConfigKey, DefaultValue, Kind, Valid};

/// Why a text is not a value of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid value {shown} for configuration {key}: expected {expected}{example}")]
pub struct ValueError {
    pub key: String,
    shown: String,
    pub expected: String,
    example: String,
}

impl ValueError {
    pub(super) fn new(key: &ConfigKey, value: &str, expected: String) -> Self {
        let shown = if key.is_sensitive() { "(hidden)".to_owned() } else { value.to_owned() };
        let example = match key.default {
            DefaultValue::Value(default) if !default.is_empty() => format!(", such as {default}"),
            _ => String::new(),
        };
        Self { key: key.name.to_owned(), shown, expected, example }
    }
}

/// Checks `value` against type and valid values of `key`.
pub fn check(key: &ConfigKey, value: &str) -> Result<(), ValueError> {
    let value = value.trim();
    let refuse = |expected: String| Err(ValueError::new(key, value, expected));
    match key.kind {
        Kind::Boolean if parse_bool(value).is_none() => refuse(key.kind.words().to_owned()),
        Kind::Int | Kind::Short | Kind::Long => match parse_whole(key.kind, value) {
            None => refuse(key.kind.words().to_owned()),
            Some(number) => check_whole(key, value, number),
        },
        Kind::Double => match value.parse::<f64>() {
            Err(_) => refuse(key.kind.words().to_owned()),
            Ok(number) => match key.valid {
                Valid::Fraction(least, most) if !(least..=most).contains(&number) => {
                    refuse(format!("a number from {least} to {most}"))
                }
                _ => Ok(()),
            },
        },
        Kind::Boolean => Ok(()),
        Kind::String | Kind::List | Kind::Class | Kind::Password => check_text(key, value),
    }
}

fn check_whole(key: &ConfigKey, value: &str, number: i64) -> Result<(), ValueError> {
    let fits = match key.valid {
        Valid::AtLeast(least) => number >= least,
        Valid::Between(least, most) => (least..=most).contains(&number),
        Valid::Or(special, least, most) => number == special || (least..=most).contains(&number),
        Valid::GzipLevel => number == -1 || (1..=9).contains(&number),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let of = if key.unit.is_empty() { String::new() } else { format!(" of {}", key.unit) };
    Err(ValueError::new(key, value, format!("a whole number{of}, {}", range(key).unwrap_or_default())))
}

/// Which values the key takes, beyond its type, in words; `None`: all of the type.
pub fn range(key: &ConfigKey) -> Option<String> {
    Some(match key.valid {
        Valid::Any => return None,
        Valid::AtLeast(least) => format!("at least {least}"),
        Valid::Between(least, most) => format!("{least} to {most}"),
        Valid::Or(special, least, most) => format!("{least} to {most}, or {special}"),
        Valid::Fraction(least, most) => format!("{least} to {most}"),
        Valid::GzipLevel => "1 to 9, or -1".to_owned(),
        Valid::OneOf(values) => format!("one of {}", values.join(", ")),
        Valid::OneOfIgnoringCase(values) => format!("one of {} in any case", values.join(", ")),
        Valid::ListOf(values) => format!("any of {}, separated by commas", values.join(", ")),
        Valid::SomeOf(values) => format!("one or more of {}, separated by commas", values.join(", ")),
        Valid::NonEmpty if matches!(key.kind, Kind::List) => "a list that is not empty".to_owned(),
        Valid::NonEmpty => "a text that is not empty".to_owned(),
        Valid::AddressCounts => "ADDRESS:NUMBER entries separated by commas, like 10.0.0.7:100".to_owned(),
        Valid::HostPort => "host:port".to_owned(),
        Valid::ThrottledReplicas => {
            "*, or partition:broker pairs separated by commas, like 0:101,1:102".to_owned()
        }
        Valid::OffsetReset => "latest, earliest, or by_duration: and a duration like P3DT12H".to_owned(),
    })
}

fn check_text(key: &ConfigKey, value: &str) -> Result<(), ValueError> {
    // Kafka `ConfigDef.ValidList`, which stands behind every list of a broker (KIP-1161).
    if matches!(key.kind, Kind::List) && parse_list(value).any(str::is_empty) {
        let expected = "entries that are not empty, separated by commas".to_owned();
        return Err(ValueError::new(key, value, range(key).unwrap_or(expected)));
    }
    let fits = match key.valid {
        Valid::OneOf(values) => values.contains(&value),
        Valid::OneOfIgnoringCase(values) => values.iter().any(|known| known.eq_ignore_ascii_case(value)),
        Valid::ListOf(values) => parse_list(value).all(|entry| values.contains(&entry)),
        Valid::SomeOf(values) => !value.is_empty() && parse_list(value).all(|entry| values.contains(&entry)),
        Valid::NonEmpty => !value.is_empty(),
        Valid::AddressCounts => {
            parse_list(value).filter(|entry| !entry.is_empty()).all(is_address_and_number)
        }
        Valid::HostPort => {
            value.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        }
        Valid::ThrottledReplicas => is_throttled_replicas(value),
        Valid::OffsetReset => matches!(value, "latest" | "earliest") || is_by_duration(value),
        _ => true,
    };
    if fits { Ok(()) } else { Err(ValueError::new(key, value, range(key).unwrap_or_default())) }
}

/// `value` as Kafka's `ConfigDef.convertToString` prints it once it was read; as it stands where it cannot be read.
pub fn canonical(key: &ConfigKey, value: &str) -> String {
    let value = value.trim();
    let read = match key.kind {
        Kind::Boolean => parse_bool(value).map(|value| value.to_string()),
        Kind::Int | Kind::Short | Kind::Long => parse_whole(key.kind, value).map(|value| value.to_string()),
        Kind::Double => value.parse().ok().map(java_double),
        Kind::List => Some(parse_list(value).collect::<Vec<_>>().join(",")),
        Kind::String | Kind::Class | Kind::Password => None,
    };
    read.unwrap_or_else(|| value.to_owned())
}

/// Java's `Double.toString`: at least one digit after the point, and powers of ten outside 10^-3 to 10^7.
fn java_double(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) || !size.is_finite() {
        return format!("{value:?}");
    }
    let scientific = format!("{value:E}");
    match scientific.split_once('E') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0E{power}"),
        _ => scientific,
    }
}

/// `true` and `false` in any case.
pub(super) fn parse_bool(value: &str) -> Option<bool> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("true") {
        Some(true)
    } else if value.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

pub(super) fn parse_whole(kind: Kind, value: &str) -> Option<i64> {
    let value = value.trim();
    match kind {
        Kind::Short => value.parse::<i16>().ok().map(i64::from),
        Kind::Int => value.parse::<i32>().ok().map(i64::from),
        Kind::Long => value.parse().ok(),
        _ => None,
    }
}

/// The entries of a list; none in an empty text.
pub fn parse_list(value: &str) -> impl Iterator<Item = &str> {
    let value = value.trim();
    value.split(',').map(str::trim).filter(move |_| !value.is_empty())
}

/// Whether `cordoned.log.dirs` may have this value, given the entries of `log.dirs`: `*` alone, or some of them. A
/// relative entry of `log.dirs` may be named by its absolute path, which is what DescribeLogDirs shows (KAFKA-20901);
/// which one that is, the broker knows.
///
/// # Source
/// KIP-1066; Kafka `DynamicLogConfig.validateCordonedLogDirs`.
pub fn check_cordoned_log_dirs(value: &str, log_dirs: &[&str]) -> Result<(), String> {
    let is_one = |entry: &str| {
        log_dirs.iter().any(|dir| {
            let tail = dir.trim_start_matches("./");
            let relative = !dir.starts_with('/');
            *dir == entry
                || relative
                    && entry
                        .strip_suffix(tail)
                        .is_some_and(|root| root.starts_with('/') && root.ends_with('/'))
        })
    };
    let entries: Vec<&str> = parse_list(value).collect();
    if entries == ["*"] {
        return Ok(());
    }
    match entries.iter().find(|entry| !is_one(entry)) {
        None => Ok(()),
        Some(entry) => {
            let expected = format!("* alone, or entries of log.dirs ({})", log_dirs.join(","));
            Err(format!("Invalid value {entry} for configuration cordoned.log.dirs: expected {expected}"))
        }
    }
}

/// An IPv6 address holds colons itself: the number stands after the last one (Kafka `ConfigUtils.parseMap`).
fn is_address_and_number(entry: &str) -> bool {
    entry
        .rsplit_once(':')
        .is_some_and(|(address, number)| !address.is_empty() && number.trim().parse::<i32>().is_ok())
}

/// Kafka `ThrottledReplicaListValidator`.
fn is_throttled_replicas(value: &str) -> bool {
    let is_pair = |entry: &str| {
        let Some((partition, broker)) = entry.split_once(':') else { return false };
        !partition.is_empty()
            && !broker.is_empty()
            && partition.bytes().chain(broker.bytes()).all(|byte| byte.is_ascii_digit())
    };
    value == "*" || parse_list(value).all(is_pair)
}

/// `by_duration:PnDTnHnMn.nS`, never negative (Kafka `ShareGroupAutoOffsetResetStrategy`, Java `Duration.parse`).
fn is_by_duration(value: &str) -> bool {
    let Some(duration) = value.strip_prefix("by_duration:") else { return false };
    let Some(rest) = duration.strip_prefix(['P', 'p']) else { return false };
    let (days, time) = match rest.split_once(['T', 't']) {
        Some((days, time)) => (days, Some(time)),
        None => (rest, None),
    };
    let days_fit = days.is_empty() || is_amount(days, 'D').is_some_and(str::is_empty);
    let time_fits = time.is_none_or(|time| {
        let hours = is_amount(time, 'H').unwrap_or(time);
        let minutes = is_amount(hours, 'M').unwrap_or(hours);
        let seconds = is_amount(minutes, 'S').unwrap_or(minutes);
        !time.is_empty() && seconds.is_empty()
    });
    days_fit && time_fits && !(days.is_empty() && time.is_none())
}

/// What follows `<digits><unit>` at the beginning of `text`; a fraction is taken for seconds only.
fn is_amount(text: &str, unit: char) -> Option<&str> {
    let end = text.find(|letter: char| letter.eq_ignore_ascii_case(&unit))?;
    let (amount, rest) = (&text[..end], &text[end + 1..]);
    let digit = |letter: char| letter.is_ascii_digit() || (unit == 'S' && letter == '.');
    (!amount.is_empty() && amount.chars().all(digit)).then_some(rest)
}
