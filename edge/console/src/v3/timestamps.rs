//! Times as RFC 3339 writes them, from and to Kafka's milliseconds since 1970.

use barnabas_base::Date;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: i64 = 86_400_000;

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// `2026-11-28T08:00:00.123Z`.
pub fn write(timestamp_ms: i64) -> String {
    let (days, in_day) = (timestamp_ms.div_euclid(DAY_MS), timestamp_ms.rem_euclid(DAY_MS));
    let Date { year, month, day } = Date::of_days_since_1970(days);
    let (seconds, ms) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// `None`: it is no time of RFC 3339.
pub fn read(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let numbers = |text: &str, mark: char| -> Option<Vec<i64>> {
        let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|digit| digit.is_ascii_digit());
        text.split(mark).map(|word| Some(word).filter(is_number).and_then(|word| word.parse().ok())).collect()
    };
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let (clock, offset_minutes) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let at = time.rfind(['+', '-'])?;
            let [hours, minutes] = numbers(&time[at + 1..], ':')?.try_into().ok()?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let sign = if time.as_bytes()[at] == b'-' { -1 } else { 1 };
            (&time[..at], sign * (hours * 60 + minutes))
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':')?.try_into().ok()?;
    if fraction.is_empty() || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let date = Date { year, month, day };
    let days = date.days_since_1970();
    // A day that its month does not have is another one.
    let is_sound = Date::of_days_since_1970(days) == date && hour < 24 && minute < 60 && second < 61;
    is_sound.then(|| {
        let seconds = hour * 3600 + minute * 60 + second - offset_minutes * 60;
        days * DAY_MS + seconds * 1000 + ms
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_612_552_482_123, "2021-02-05T19:14:42.123Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(write(ms), text);
            assert_eq!(read(text), Some(ms));
        }
        assert_eq!(read("2021-02-05T20:14:42+01:00"), Some(1_612_552_482_000));
        assert_eq!(read("2021-02-05T19:14:42.1Z"), Some(1_612_552_482_100));
        assert_eq!(read("2021-02-05T19:14:42.123456789Z"), Some(1_612_552_482_123));
        for bad in [
            "",
            "2021-02-05",
            "2021-13-05T19:14:42Z",
            "2021-02-31T19:14:42Z",
            "9223372036854775807-01-01T00:00:00Z",
            "2021-02-05T00:00:00+99999999999999999:00",
            "2021-02-05T19:14:42",
            "2021-02-05T19:14Z",
            "x",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
