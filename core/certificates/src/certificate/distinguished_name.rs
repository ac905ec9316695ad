//! A certificate's distinguished name as Java prints it: `CN=a,OU=b,O=c`, the last part of the name first.
//!
//! It is what `super.users`, ACLs and mapping rules compare with, so every byte counts. The test vectors were made by
//! the JVM (lab/compat/golden/tls).
//!
//! Source: RFC 2253; the behaviour of Java's `X500Principal.getName`.

use super::tlv::Tlv;
use std::fmt::Write;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The types of RFC 2253's table, 2.3, by the bytes of their object identifiers. All others are shown as numbers.
const KEYWORDS: [(&[u8], &str); 9] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
];
/// UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java shows all others as bytes.
const STRINGS: [u8; 6] = [0x0c, 0x13, 0x14, 0x16, 0x1b, 0x1e];

/// `name`: the DER of a Name. `None`: it is none.
pub fn rfc2253(name: &[u8]) -> Option<String> {
    let (name, rest) = Tlv::read(name)?;
    if name.tag != SEQUENCE || !rest.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for part in name.children() {
        if part.tag != SET {
            return None;
        }
        let pairs: Option<Vec<String>> = part.children().map(pair).collect();
        parts.push(pairs?.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

fn pair(pair: Tlv<'_>) -> Option<String> {
    let mut both = pair.children();
    let (kind, value) = (both.next()?, both.next()?);
    if pair.tag != SEQUENCE || kind.tag != OBJECT_IDENTIFIER {
        return None;
    }
    let keyword = KEYWORDS.iter().find(|(oid, _)| *oid == kind.content).map(|(_, word)| *word);
    let mut shown = keyword.map_or_else(|| numbers(kind.content), str::to_owned);
    shown.push('=');
    if keyword.is_some() && STRINGS.contains(&value.tag) {
        escape(&String::from_utf8_lossy(value.content), &mut shown);
    } else {
        shown.push('#');
        value.whole.iter().for_each(|byte| write!(shown, "{byte:02x}").expect("a String takes all"));
    }
    Some(shown)
}

/// `2.5.4.5`
fn numbers(oid: &[u8]) -> String {
    let mut shown = String::new();
    let mut number = 0u128;
    for byte in oid {
        number = number.wrapping_shl(7) | u128::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if shown.is_empty() {
            let first = (number / 40).min(2);
            write!(shown, "{first}.{}", number - first * 40).expect("a String takes all");
        } else {
            write!(shown, ".{number}").expect("a String takes all");
        }
        number = 0;
    }
    shown
}

fn escape(value: &str, shown: &mut String) {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\0' => escaped.push_str("\\00"),
            _ => escaped.push(character),
        }
    }
    // Java escapes leading and trailing blanks, and a carriage return counts as one.
    let is_blank = |character: char| matches!(character, ' ' | '\r');
    let inner = escaped.trim_matches(is_blank);
    let lead = escaped.len() - escaped.trim_start_matches(is_blank).len();
    for (at, character) in escaped.char_indices() {
        if at < lead || at >= lead + inner.len() {
            shown.push('\\');
        }
        shown.push(character);
    }
}
