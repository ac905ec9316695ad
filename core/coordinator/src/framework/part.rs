//! Long answers in parts: what an answer may take is known before it is built.
//!
//! A request comes with the bytes that its answer may take ([`crate::Caller::room`]). A shard whose answer would take
//! more builds nothing and names the parts instead: smaller requests, each with what its answer takes. The caller
//! claims that much memory first and asks for one part after the other. Other requests have their turn between two
//! parts.
//!
//! Bytes are an upper bound: the answer's length on the wire, [`BYTES_PER_WIRE_BYTE`] times. core/api counts answers in
//! the same way.

/// The bytes that an answer may take without being claimed first.
pub const PART_BYTES: usize = 32 * 1024;

/// An answer takes so many times its length on the wire: its values, and the encoded answer beside them.
const BYTES_PER_WIRE_BYTE: usize = 5;

/// A request in place of a longer one.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<R> {
    pub request: R,
    /// What its answer takes, at most.
    pub bytes: usize,
}

/// What so many bytes on the wire take.
pub(crate) const fn taken(wire_bytes: usize) -> usize {
    wire_bytes.saturating_mul(BYTES_PER_WIRE_BYTE)
}

/// A text's bytes on the wire, its length included.
pub(crate) fn text(text: &str) -> usize {
    text.len() + 4
}

/// As [`text`], where there may be none.
pub(crate) fn text_if(text: Option<&barnabas_base::Text>) -> usize {
    4 + text.map_or(0, |text| text.len())
}

/// As [`text`], of an array of them.
pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    4 + texts.into_iter().map(text).sum::<usize>()
}

/// The sum; or, once it is more than `room`, what it is by then.
pub(crate) fn sum_beyond(room: usize, bytes: impl IntoIterator<Item = usize>) -> usize {
    let mut sum = 0;
    for bytes in bytes {
        sum += bytes;
        if sum > room {
            break;
        }
    }
    sum
}

/// Cuts entries into parts of about [`PART_BYTES`], each of at least one entry.
pub(crate) fn cut<T, R>(
    entries: impl IntoIterator<Item = (T, usize)>,
    request: impl Fn(Vec<T>) -> R,
) -> Vec<Part<R>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for (entry, more) in entries {
        if bytes + more > PART_BYTES && !part.is_empty() {
            parts.push(Part { request: request(std::mem::take(&mut part)), bytes });
            bytes = 0;
        }
        part.push(entry);
        bytes += more;
    }
    if !part.is_empty() {
        parts.push(Part { request: request(part), bytes });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_cut_where_a_part_is_full() {
        let sizes = [10_000, 20_000, 3_000, 90_000, 1, 2];
        let parts = cut(sizes.iter().map(|bytes| (*bytes, *bytes)), |part| part);
        let of = |request: &[usize], bytes| Part { request: request.to_vec(), bytes };
        assert_eq!(
            parts,
            [of(&[10_000, 20_000], 30_000), of(&[3_000], 3_000), of(&[90_000], 90_000), of(&[1, 2], 3)]
        );
        assert_eq!(cut(Vec::<(usize, usize)>::new(), |part| part), []);
    }

    #[test]
    fn sum_ends_once_it_is_too_large() {
        assert_eq!(sum_beyond(10, [4, 4]), 8);
        assert_eq!(sum_beyond(10, std::iter::repeat(4)), 12);
    }
}
