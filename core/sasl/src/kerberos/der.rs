//! DER as far as Kerberos needs it: definite lengths, single-byte tags, and the five types of RFC 4120.
//!
//! A [`Reader`] is total: a length that exceeds the bytes is [`Malformed`], and nothing is allocated by a length.
//!
//! # Source
//! X.690; RFC 4120, 5.2.

use barnabas_base::TimestampMs;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
pub(super) const SEQUENCE: u8 = 0x30;
const GENERALIZED_TIME: u8 = 0x18;
const GENERAL_STRING: u8 = 0x1b;

/// The bytes are not the message that was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message is malformed")]
pub struct Malformed;

/// Elements, read one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The content of the next element, which must have this tag.
    pub fn take(&mut self, tag: u8) -> Result<Reader<'a>, Malformed> {
        self.optional(tag)?.ok_or(Malformed)
    }

    /// The same where the element may be missing.
    pub fn optional(&mut self, tag: u8) -> Result<Option<Reader<'a>>, Malformed> {
        if self.0.first() != Some(&tag) {
            return Ok(None);
        }
        let after = &self.0[1..];
        let (&first, after) = after.split_first().ok_or(Malformed)?;
        let (length, after) = match first {
            0..=0x7f => (usize::from(first), after),
            0x81..=0x83 => {
                let (length, after) = after.split_at_checked(usize::from(first & 0x7f)).ok_or(Malformed)?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), after)
            }
            _ => return Err(Malformed),
        };
        let (content, rest) = after.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(Some(Self(content)))
    }

    /// The field with this number of a SEQUENCE: `[number]`, explicit.
    pub fn field(&mut self, number: u8) -> Result<Reader<'a>, Malformed> {
        self.take(context(number))
    }

    pub fn optional_field(&mut self, number: u8) -> Result<Option<Reader<'a>>, Malformed> {
        self.optional(context(number))
    }

    pub fn integer(&mut self) -> Result<i64, Malformed> {
        let Reader(bytes) = self.take(INTEGER)?;
        if bytes.is_empty() || bytes.len() > 8 {
            return Err(Malformed);
        }
        let start = if bytes[0] & 0x80 == 0 { 0 } else { -1 };
        Ok(bytes.iter().fold(start, |value: i64, &byte| value << 8 | i64::from(byte)))
    }

    pub fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        Ok(self.take(OCTET_STRING)?.0)
    }

    /// The first 32 bits, the first one in the highest place.
    pub fn flags(&mut self) -> Result<u32, Malformed> {
        let Reader(bytes) = self.take(BIT_STRING)?;
        let (_, bits) = bytes.split_first().ok_or(Malformed)?;
        let mut word = [0; 4];
        word.iter_mut().zip(bits).for_each(|(into, bit)| *into = *bit);
        Ok(u32::from_be_bytes(word))
    }

    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.take(GENERAL_STRING)?.0).map_err(|_| Malformed)
    }

    /// `YYYYMMDDHHMMSSZ`, the one form that RFC 4120 allows.
    pub fn time(&mut self) -> Result<TimestampMs, Malformed> {
        let Reader(bytes) = self.take(GENERALIZED_TIME)?;
        let (digits, zone) = bytes.split_at_checked(14).ok_or(Malformed)?;
        if zone != b"Z" || !digits.iter().all(u8::is_ascii_digit) {
            return Err(Malformed);
        }
        let number = |from: usize, to: usize| {
            digits[from..to].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
        };
        let (year, month, day) = (number(0, 4), number(4, 6), number(6, 8));
        let (hour, minute, second) = (number(8, 10), number(10, 12), number(12, 14));
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return Err(Malformed);
        }
        let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Ok(TimestampMs(seconds * 1000))
    }
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `YYYYMMDDHHMMSSZ`.
fn date(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let place = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * place + 2) / 5 + 1, if place < 10 { place + 3 } else { place - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}Z")
}

/// `[number]` of a SEQUENCE.
const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// `[APPLICATION number]`.
pub(super) const fn application(number: u8) -> u8 {
    0x60 | number
}

/// An element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        0..=0x7f => bytes.push(length as u8),
        0x80..=0xff => bytes.extend([0x81, length as u8]),
        0x100..=0xffff => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
        _ => bytes.extend([0x83, (length >> 16) as u8, (length >> 8) as u8, length as u8]),
    }
    bytes.extend_from_slice(content);
    bytes
}

/// `[number]` around an element.
pub(super) fn field(number: u8, inner: &[u8]) -> Vec<u8> {
    element(context(number), inner)
}

pub(super) fn integer(value: i64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let spare = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0).count();
    element(INTEGER, &bytes[spare..])
}

pub(super) fn octets(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, bytes)
}

pub(super) fn sequence(fields: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &fields.concat())
}

pub(super) fn time(at: TimestampMs) -> Vec<u8> {
    element(GENERALIZED_TIME, date(at.0.div_euclid(1000)).as_bytes())
}

pub(super) fn string(text: &str) -> Vec<u8> {
    element(GENERAL_STRING, text.as_bytes())
}

pub(super) fn flags(word: u32) -> Vec<u8> {
    element(BIT_STRING, &[&[0][..], &word.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_exceed_the_bytes_are_malformed() {
        for bytes in
            [&[4, 2, 1][..], &[4], &[4, 0x80, 1], &[4, 0x84, 0, 0, 0, 1, 1], &[4, 0x83, 255, 255, 255]]
        {
            assert_eq!(Reader::new(bytes).octets(), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(Reader::new(&[4, 0x81, 1, 9]).octets(), Ok(&[9][..]));
    }

    #[test]
    fn integers_come_back_as_they_were() {
        for value in [0, 1, -1, 127, 128, -128, -129, 255, 256, i64::from(u32::MAX), i64::MIN, i64::MAX] {
            assert_eq!(Reader::new(&integer(value)).integer(), Ok(value));
        }
        assert_eq!(integer(128), [2, 2, 0, 128]);
    }

    #[test]
    fn times_come_back_as_they_were() {
        for (seconds, text) in [
            (0, "19700101000000Z"),
            (951_782_400, "20000229000000Z"),
            (1_795_942_999, "20261129090319Z"),
            (253_402_300_799, "99991231235959Z"),
        ] {
            assert_eq!(date(seconds), text);
            assert_eq!(
                Reader::new(&time(TimestampMs(seconds * 1000))).time(),
                Ok(TimestampMs(seconds * 1000))
            );
        }
        for text in ["20261329090319Z", "2026112909031Z", "20261129090319+0100", "2026112909031aZ"] {
            assert_eq!(
                Reader::new(&element(GENERALIZED_TIME, text.as_bytes())).time(),
                Err(Malformed),
                "{text}"
            );
        }
    }
}
