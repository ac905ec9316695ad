//! Fixed text fields, and the few character sets that messages are converted between.

/// A field of `N` bytes: the text, cut at a character, and blanks.
pub fn fixed<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    let mut end = text.len().min(N);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field
}

/// A field's text: without what follows a NUL, and without blanks at its end.
pub fn trimmed(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim_end_matches(' ').to_owned()
}

const UTF_8: i32 = 1208;
const LATIN_1: i32 = 819;

/// Text in another character set. `None`: one of the sets is not known here, or has no such character. Known are
/// 1208 (UTF-8) and 819 (ISO 8859-1).
pub fn convert(bytes: &[u8], from: i32, to: i32) -> Option<Vec<u8>> {
    if from == to
        || (bytes.is_ascii() && [from, to].iter().all(|set| [UTF_8, LATIN_1, 850, 437, 1252].contains(set)))
    {
        return Some(bytes.to_vec());
    }
    match (from, to) {
        (LATIN_1, UTF_8) => Some(bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes()),
        (UTF_8, LATIN_1) => std::str::from_utf8(bytes)
            .ok()?
            .chars()
            .map(|letter| u8::try_from(u32::from(letter)).ok())
            .collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_blank_padded_and_cut_at_a_character() {
        assert_eq!(&fixed::<4>("ab"), b"ab  ");
        assert_eq!(&fixed::<4>("abcé"), b"abc ");
        assert_eq!([trimmed(b"ab  "), trimmed(b"a b\0\0"), trimmed(b"")], ["ab", "a b", ""]);
    }

    #[test]
    fn text_is_converted_where_both_sets_have_it() {
        assert_eq!(convert("é".as_bytes(), UTF_8, LATIN_1), Some(vec![0xe9]));
        assert_eq!(convert(&[0xe9], LATIN_1, UTF_8), Some("é".as_bytes().to_vec()));
        assert_eq!(convert(b"a", UTF_8, 437), Some(b"a".to_vec()));
        assert_eq!(convert("€".as_bytes(), UTF_8, LATIN_1), None);
        assert_eq!(convert(b"a", UTF_8, 37), None);
    }
}
