//! The fields of a protobuf message, in the order in which they stand: number and value, nothing copied.
//!
//! Strict where it is about bounds: a length beyond the message, a varint beyond ten bytes, a group (wire types 3 and
//! 4, which proto3 does not have) and field number 0 are refused. Fields that a reader does not know are its own to
//! skip.
//!
//! Source: protobuf.dev, Encoding.

/// Why bytes are no protobuf message, or not OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the message ends within a field")]
    Short,
    #[error("a varint of more than ten bytes")]
    Varint,
    #[error("field number {0}")]
    Number(u64),
    #[error("wire type {0}")]
    WireType(u8),
    #[error("a string that is not UTF-8")]
    Text,
}

/// A field's value, by its wire type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Ends after the first error.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { left: message }
}

pub(super) struct Fields<'a> {
    left: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.left = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Field<'a>), Malformed> {
        let tag = self.varint()?;
        let number = tag >> 3;
        let number =
            u32::try_from(number).ok().filter(|number| *number > 0).ok_or(Malformed::Number(number))?;
        let value = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed::Short)?;
                Field::Bytes(self.take(length)?)
            }
            5 => {
                self.array::<4>()?;
                Field::Fixed32
            }
            other => return Err(Malformed::WireType(other as u8)),
        };
        Ok((number, value))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (place, byte) in self.left.iter().take(10).enumerate() {
            // Of the tenth byte one bit has room; protobuf drops the others.
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.left = &self.left[place + 1..];
                return Ok(value);
            }
        }
        Err(if self.left.len() < 10 { Malformed::Short } else { Malformed::Varint })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.left.split_at_checked(length).ok_or(Malformed::Short)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.left = left;
        Ok(*taken)
    }
}

/// A string field.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Vec<Result<(u32, Field<'_>), Malformed>> {
        fields(message).collect()
    }

    #[test]
    fn fields_come_in_their_order() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x21, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            all(&message),
            [
                Ok((1, Field::Varint(150))),
                Ok((2, Field::Bytes(b"hi"))),
                Ok((3, Field::Fixed32)),
                Ok((4, Field::Fixed64(1)))
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_once() {
        assert_eq!(all(&[0x0a, 0x05, 1, 2]), [Err(Malformed::Short)]);
        assert_eq!(
            all(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            [Err(Malformed::Short)]
        );
        assert_eq!(all(&[0x80]), [Err(Malformed::Short)]);
        assert_eq!(
            all(&[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
            [Err(Malformed::Varint)]
        );
        assert_eq!(all(&[0x0b]), [Err(Malformed::WireType(3))]);
        assert_eq!(all(&[0x02, 0]), [Err(Malformed::Number(0))]);
        assert_eq!(all(&[0x09, 1, 2]), [Err(Malformed::Short)]);
    }
}
