//! Percent-encoding of path segments and query values (RFC 3986, 2.1).

/// The text that `escaped` stands for; `None`: it is no UTF-8, or a `%` without two digits.
pub fn decode(escaped: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        match first {
            b'%' => {
                let digits = std::str::from_utf8(more.get(..2)?).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &more[2..];
            }
            b'+' if is_query => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// `text` as a segment of a path or a value of a query.
pub fn encode(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive() {
        for name in ["a", "a b", "a/b?c=d&e#f", "é%", "..", "+", "\u{1F600}"] {
            assert_eq!(decode(&encode(name), false).as_deref(), Some(name));
            assert_eq!(decode(&encode(name), true).as_deref(), Some(name));
        }
        assert_eq!(encode("a/../b"), "a%2F..%2Fb");
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bad in ["%", "%2", "%zz", "%ff", "%+1", "a%"] {
            assert_eq!(decode(bad, false), None, "{bad}");
        }
    }
}
