//! How Java writes numbers and dates, where a line has to look as Kafka's tools write it.

/// `%.<places>f`: the shortest digits that mean this number, rounded half up.
///
/// # Source
/// `java.util.Formatter`: HALF_UP over the decimal digits, where Rust rounds the binary value half to even.
pub fn decimal(value: f64, places: usize) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let shortest = format!("{}", value.abs());
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    let mut digits: Vec<u8> =
        whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(places)).collect();
    if fraction.as_bytes().get(places).is_some_and(|digit| *digit >= b'5') {
        let mut place = digits.len();
        loop {
            if place == 0 {
                digits.insert(0, b'1');
                break;
            }
            place -= 1;
            if digits[place] != b'9' {
                digits[place] += 1;
                break;
            }
            digits[place] = b'0';
        }
    }
    let point = digits.len() - places;
    let (whole, fraction) = digits.split_at(point);
    let sign = if value.is_sign_negative() && value != 0.0 { "-" } else { "" };
    let (whole, fraction) = (String::from_utf8_lossy(whole), String::from_utf8_lossy(fraction));
    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A time as `java.text.SimpleDateFormat` writes it, in UTC.
#[derive(Debug, Clone)]
pub struct DateFormat {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const FIELDS: &str = "yMdHhkKmsSEazZX";

impl DateFormat {
    /// # Errors
    /// A letter that is not known, or a quote that does not end.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut letters = pattern.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' if letters.next_if_eq(&'\'').is_some() => parts.push(Part::Text("'".to_owned())),
                '\'' => parts.push(Part::Text(quoted(&mut letters)?)),
                letter if letter.is_ascii_alphabetic() && !FIELDS.contains(letter) => {
                    return Err(format!("the date format's letter '{letter}' is not known here"));
                }
                letter if letter.is_ascii_alphabetic() => match parts.last_mut() {
                    Some(Part::Field(last, count)) if *last == letter => *count += 1,
                    _ => parts.push(Part::Field(letter, 1)),
                },
                letter => parts.push(Part::Text(letter.to_string())),
            }
        }
        Ok(Self { parts })
    }

    pub fn format(&self, unix_ms: i64) -> String {
        let date = Date::new(unix_ms);
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Field(letter, width) => date.field(*letter, *width),
        };
        self.parts.iter().map(part).collect()
    }
}

fn quoted(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match letters.next() {
            Some('\'') if letters.next_if_eq(&'\'').is_some() => text.push('\''),
            Some('\'') => return Ok(text),
            Some(letter) => text.push(letter),
            None => return Err("the date format has a quote that does not end".to_owned()),
        }
    }
}

struct Date {
    day: i64,
    ms_of_day: i64,
    civil: barnabas_base::Date,
}

impl Date {
    fn new(unix_ms: i64) -> Self {
        let (day, ms_of_day) = (unix_ms.div_euclid(86_400_000), unix_ms.rem_euclid(86_400_000));
        Self { day, ms_of_day, civil: barnabas_base::Date::of_days_since_1970(day) }
    }

    fn field(&self, letter: char, width: usize) -> String {
        let barnabas_base::Date { year, month, day } = self.civil;
        let hour = self.ms_of_day / 3_600_000;
        let short = |name: &str| if width >= 4 { name.to_owned() } else { name[..3].to_owned() };
        let number = match letter {
            'y' if width == 2 => year.rem_euclid(100),
            'y' => year,
            'M' if width >= 3 => return short(MONTHS[(month - 1) as usize]),
            'M' => month,
            'd' => day,
            'H' => hour,
            'k' => {
                if hour == 0 {
                    24
                } else {
                    hour
                }
            }
            'K' => hour % 12,
            'h' => {
                if hour % 12 == 0 {
                    12
                } else {
                    hour % 12
                }
            }
            'm' => self.ms_of_day / 60_000 % 60,
            's' => self.ms_of_day / 1_000 % 60,
            'S' => self.ms_of_day % 1_000,
            'E' => return short(DAYS[self.day.rem_euclid(7) as usize]),
            'a' => return if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'z' => return "UTC".to_owned(),
            'Z' => return "+0000".to_owned(),
            _ => return "Z".to_owned(),
        };
        format!("{number:0width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_java_rounds() {
        let cases = [
            (0.25, 1, "0.3"),
            (0.35, 1, "0.4"),
            (2.5, 0, "3"),
            (99.995, 2, "100.00"),
            (0.0, 2, "0.00"),
            (1.0, 4, "1.0000"),
            (123_456.789, 1, "123456.8"),
            (-0.05, 1, "-0.1"),
            (f64::NAN, 2, "NaN"),
            (f64::INFINITY, 4, "Infinity"),
            (1e9, 6, "1000000000.000000"),
            (1.005, 2, "1.01"),
        ];
        for (value, places, told) in cases {
            assert_eq!(decimal(value, places), told, "{value} to {places}");
        }
    }

    #[test]
    fn dates_are_written_as_the_pattern_says() {
        let format = |pattern: &str, ms| DateFormat::new(pattern).unwrap().format(ms);
        assert_eq!(format("yyyy-MM-dd HH:mm:ss:SSS", 0), "1970-01-01 00:00:00:000");
        assert_eq!(format("yyyy-MM-dd HH:mm:ss:SSS", 1_709_210_096_789), "2024-02-29 12:34:56:789");
        assert_eq!(
            format("EEE, d MMM yy h:mm a 'o''clock' Z", 1_709_210_096_789),
            "Thu, 29 Feb 24 12:34 PM o'clock +0000"
        );
        assert!(DateFormat::new("YYYY").is_err());
        assert!(DateFormat::new("'x").is_err());
    }
}
