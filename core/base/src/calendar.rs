//! Days since 1 January 1970 as dates of the Gregorian calendar, UTC, and back.
//!
//! Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`, `days_from_civil`.

/// From 1 March of year 0, where the computation begins, to 1970.
const BEFORE_1970: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// A day of the calendar: the month is 1 to 12, the day 1 to 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

impl Date {
    pub const fn of_days_since_1970(days: i64) -> Self {
        let days = days + BEFORE_1970;
        let (era, day_of_era) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
        Self { year, month, day }
    }

    /// A day that its month does not have is one of the next month.
    pub const fn days_since_1970(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * DAYS_OF_400_YEARS + day_of_era - BEFORE_1970
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_of_nine_centuries_follows_the_one_before() {
        let mut before = Date::of_days_since_1970(-150_001);
        for days in -150_000..180_000 {
            let date = Date::of_days_since_1970(days);
            assert_eq!(date.days_since_1970(), days, "{date:?}");
            let is_next_day =
                (date.year, date.month, date.day) == (before.year, before.month, before.day + 1);
            let is_leap = before.year % 4 == 0 && (before.year % 100 != 0 || before.year % 400 == 0);
            let length = match before.month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let (year, month) =
                if before.month == 12 { (before.year + 1, 1) } else { (before.year, before.month + 1) };
            let begins_month = before.day == length && date == Date { year, month, day: 1 };
            assert!(if before.day < length { is_next_day } else { begins_month }, "{before:?}, {date:?}");
            before = date;
        }
        assert_eq!(Date::of_days_since_1970(0), Date { year: 1970, month: 1, day: 1 });
    }
}
