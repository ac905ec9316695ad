//! MQMD's dates: `YYYYMMDD` and `HHMMSSTH`, in UTC.

use barnabas_base::Date;
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
    let Date { year, month, day } = Date::of_days_since_1970(days);
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
