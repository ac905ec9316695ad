//! Texts of clients, as long as a record can hold them.

use bytes::Bytes;

/// The longest string that a message can carry.
pub(crate) const ID_BYTES_MAX: usize = i16::MAX as usize;

/// `text`, or as much of it as goes into `bytes_max` bytes.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The bytes of a record's key or value.
pub(crate) fn encoded(result: Result<Bytes, barnabas_wire::EncodeError>) -> Bytes {
    result
        .expect("invariant: every string in a record came in as a string of a request, so it is short enough")
}
