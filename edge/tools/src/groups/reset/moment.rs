//! Times and durations as Kafka's tools take them.
//!
//! Source: Kafka `Utils.getDateTime`; Java's `Duration.parse`.

use barnabas_base::Date;

use crate::ToolError;

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Milliseconds since 1970 of `YYYY-MM-DDTHH:mm:SS.sss`, UTC where no zone (`Z`, `+01`, `+0100`, `+01:00`) follows.
///
/// # Errors
/// Anything else.
pub fn datetime(word: &str) -> Result<i64, ToolError> {
    parsed_datetime(word).ok_or_else(|| {
        ToolError::Usage(format!(
            "--to-datetime takes YYYY-MM-DDTHH:mm:SS.sss, not '{word}'. Example: 2026-11-24T13:00:00.000"
        ))
    })
}

fn parsed_datetime(word: &str) -> Option<i64> {
    let (date, rest) = word.split_once('T')?;
    let (time, zone_ms) = match rest.find(['Z', '+', '-']) {
        Some(at) => (&rest[..at], zone(&rest[at..])?),
        None => (rest, 0),
    };
    let date: Vec<&str> = date.split('-').collect();
    let [year, month, day] = date[..] else { return None };
    let (clock, millis) = time.split_once('.')?;
    let clock: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = clock[..] else { return None };
    if year.len() != 4 {
        return None;
    }
    let within = |digits: &str, max: i64| digits_of(digits).filter(|number| *number <= max);
    let (year, month, day) = (digits_of(year)?, within(month, 12)?, within(day, 31)?);
    if month == 0 || day == 0 {
        return None;
    }
    let clock_ms = within(hour, 23)? * HOUR_MS + within(minute, 59)? * MINUTE_MS + within(second, 59)? * 1000;
    let millis = within(millis, 999)?;
    Some(Date { year, month, day }.days_since_1970() * DAY_MS + clock_ms + millis - zone_ms)
}

/// Milliseconds that a zone is ahead of UTC.
fn zone(word: &str) -> Option<i64> {
    if word == "Z" {
        return Some(0);
    }
    let sign = if word.starts_with('-') { -1 } else { 1 };
    let digits = word[1..].replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (digits_of(&digits)?, 0),
        4 => (digits_of(&digits[..2])?, digits_of(&digits[2..])?),
        _ => return None,
    };
    Some(sign * (hours * HOUR_MS + minutes * MINUTE_MS))
}

fn digits_of(word: &str) -> Option<i64> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten()
}

/// Milliseconds of `PnDTnHnMnS`; seconds may have a fraction, and each number a sign.
///
/// # Errors
/// Anything else.
pub fn duration(word: &str) -> Result<i64, ToolError> {
    parsed_duration(word).ok_or_else(|| {
        ToolError::Usage(format!("--by-duration takes PnDTnHnMnS, not '{word}'. Example: PT30M, or P1DT12H"))
    })
}

fn parsed_duration(word: &str) -> Option<i64> {
    let upper = word.to_ascii_uppercase();
    let (sign, rest) = match upper.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, upper.strip_prefix('+').unwrap_or(&upper)),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let of_days = if days.is_empty() { 0 } else { amount(days.strip_suffix('D')?, DAY_MS)? };
    let mut of_time = 0_i64;
    let mut left = time;
    for (unit, ms) in [('H', HOUR_MS), ('M', MINUTE_MS), ('S', 1000)] {
        if let Some((number, rest)) = left.split_once(unit) {
            of_time = of_time.checked_add(amount(number, ms)?)?;
            left = rest;
        }
    }
    left.is_empty().then(|| of_days.checked_add(of_time).map(|ms| ms * sign)).flatten()
}

fn amount(number: &str, unit_ms: i64) -> Option<i64> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut ms = digits_of(whole)?.checked_mul(unit_ms)?;
    if !fraction.is_empty() {
        if unit_ms != 1000 || fraction.len() > 9 {
            return None;
        }
        ms += digits_of(&format!("{fraction:0<3}")[..3])?;
    }
    Some(sign * ms)
}
