//! DER as far as names and wrappers need it: tag, length, content.
//!
//! Certificates as a whole are read by x509-parser and verified by webpki; this serves what neither shows: the raw
//! bytes of a name's values, and Sun's key protection.

/// One element. Definite lengths and single-byte tags alone, as in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// Tag and length included.
    pub whole: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// The first element, and what follows it.
    pub fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&tag, after) = bytes.split_first()?;
        let (&first, after) = after.split_first()?;
        let (length, after) = match first {
            0..=0x7f => (usize::from(first), after),
            0x81..=0x84 => {
                let (length, after) = after.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), after)
            }
            _ => return None,
        };
        let (content, rest) = after.split_at_checked(length)?;
        Some((Self { tag, content, whole: &bytes[..bytes.len() - rest.len()] }, rest))
    }

    /// The elements within, as far as they can be read.
    pub fn children(&self) -> impl Iterator<Item = Tlv<'a>> + use<'a> {
        let mut rest = self.content;
        std::iter::from_fn(move || {
            let (next, after) = Tlv::read(rest)?;
            rest = after;
            Some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_exceed_the_bytes_are_refused() {
        assert_eq!(Tlv::read(&[4, 2, 1]), None);
        assert_eq!(Tlv::read(&[4, 0x84, 0xff, 0xff, 0xff, 0xff, 1]), None);
        assert_eq!(Tlv::read(&[4, 0x80, 1]), None);
        let (one, rest) = Tlv::read(&[4, 0x81, 1, 9, 7]).expect("sound");
        assert_eq!((one.content, one.whole, rest), (&[9][..], &[4, 0x81, 1, 9][..], &[7][..]));
    }
}
