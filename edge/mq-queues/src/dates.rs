//! MQMD's dates: `YYYYMMDD` and `HHMMSSTH`, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Date and time of `ms` since 1970.
pub fn of(ms: i64) -> ([u8; 8], [u8; 8]) {
    const DAY: i64 = 86_400_000;
    // The year 9999 is the last one that the fields hold.
    let ms = ms.clamp(0, 253_402_300_799_999);
    let (days, of_day) = (ms / DAY, ms % DAY);
    let (year, month, day) = civil(days);
    let (seconds, hundredths) = (of_day / 1000, of_day % 1000 / 10);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let digits = |text: String| {
        let mut field = [b' '; 8];
        field.copy_from_slice(&text.as_bytes()[..8]);
        field
    };
    let date = digits(format!("{year:04}{month:02}{day:02}"));
    (date, digits(format!("{hour:02}{minute:02}{second:02}{hundredths:02}")))
}

/// Year, month and day of a number of days since 1970: years are counted from March, so that a leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(of(0), (*b"19700101", *b"00000000"));
        assert_eq!(of(951_827_696_789), (*b"20000229", *b"12345678"));
        assert_eq!(of(i64::MAX), (*b"99991231", *b"23595999"));
    }
}
