//! The error messages of answers: the reasons for refusals.
//!
//! A sentence may name what a client sent, which is up to 32,767 bytes long, and a field carries no more than that. So
//! a sentence is cut: an answer can always be written, and a long name that many entries are refused for is not in
//! memory once for each of them.
//!
//! The fields are those whose names end in `ErrorMessage`, and `StatusDetail`: the generator writes them through
//! [`crate::Writer::sentence`].

use std::borrow::Cow;

/// The longest sentence, in bytes of UTF-8: room for a topic's name of 249 and a paragraph around it.
pub const SENTENCE_BYTES_MAX: usize = 1024;

const CUT: char = '…';

/// `text`, or as much of its beginning as fits, with `…` after it.
pub fn sentence<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    if text.len() <= SENTENCE_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(SENTENCE_BYTES_MAX - CUT.len_utf8());
    // A copy, so that the long text's memory goes.
    let mut cut = String::with_capacity(SENTENCE_BYTES_MAX);
    cut.push_str(&text[..end]);
    cut.push(CUT);
    Cow::Owned(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sentence_stays_as_it_is() {
        let text = "é".repeat(SENTENCE_BYTES_MAX / 2);
        assert!(matches!(sentence(&*text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn long_sentence_ends_between_two_characters() {
        for width in ["n", "é", "€", "😀"] {
            for shift in 0..4 {
                let text = format!("{}{}", "n".repeat(shift), width.repeat(32_767 / width.len()));
                let cut = sentence(&*text);
                assert!(
                    cut.len() <= SENTENCE_BYTES_MAX && cut.len() > SENTENCE_BYTES_MAX - 4,
                    "{}",
                    cut.len()
                );
                let (begin, end) = cut.split_at(cut.len() - CUT.len_utf8());
                assert!(text.starts_with(begin) && end == "…", "{width} {shift}");
                assert_eq!(sentence(&*cut), cut, "cut once");
            }
        }
    }
}
