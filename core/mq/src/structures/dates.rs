//! MQMD's dates: `YYYYMMDD` and `HHMMSSTH`, in UTC.

use barnabas_base::Date;

const DAY_MS: i64 = 86_400_000;

/// Date and time of `ms` since 1970.
pub fn of(ms: i64) -> ([u8; 8], [u8; 8]) {
    // The year 9999 is the last one that the fields hold.
    let ms = ms.clamp(0, 253_402_300_799_999);
    let (days, of_day) = (ms / DAY_MS, ms % DAY_MS);
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

/// Milliseconds since 1970 of a date and a time. `None`: they are none, as where a message was put without them.
pub fn ms_of(date: &[u8; 8], time: &[u8; 8]) -> Option<i64> {
    let number = |digits: &[u8]| -> Option<i64> {
        let text =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        text.parse().ok()
    };
    let (year, month, day) = (number(&date[..4])?, number(&date[4..6])?, number(&date[6..])?);
    let (hour, minute, second, hundredths) =
        (number(&time[..2])?, number(&time[2..4])?, number(&time[4..6])?, number(&time[6..])?);
    let is_there = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_there || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970 of a date of the Gregorian calendar: years that begin in March have their leap day last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + hundredths * 10)
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

    #[test]
    fn moment_is_read_as_it_was_written() {
        for ms in
            [0, 951_827_696_780, 951_782_400_000, 1_795_526_400_120, 4_107_542_399_990, 253_402_300_799_990]
        {
            let (date, time) = of(ms);
            assert_eq!(ms_of(&date, &time), Some(ms));
        }
        assert_eq!(ms_of(b"        ", b"00000000"), None);
        assert_eq!(ms_of(b"20001301", b"00000000"), None);
        assert_eq!(ms_of(b"2000+101", b"00000000"), None);
    }
}
