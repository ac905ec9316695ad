//! Variable-length integers as records v2 hold them: zig-zag, seven bits a byte, least significant first.
//!
//! Reading is bounded: at most five bytes for 32 bits and ten for 64, and never past the end. So no shift goes beyond
//! 63 and no negation overflows. Checks of what cannot overflow took a quarter of a record's reading: hence the
//! wrapping operations, and no counted iterator (`enumerate` inherits the check). Source: Kafka `ByteUtils`, Protocol
//! Buffers encoding guide.

/// Takes an unsigned 64-bit number off the front of `bytes`; `None` where it does not end in time.
fn read_unsigned(bytes: &mut &[u8], bytes_max: usize) -> Option<u64> {
    let mut rest = *bytes;
    let mut value = 0u64;
    let mut shift = 0u32;
    for _ in 0..bytes_max {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            *bytes = rest;
            return Some(value);
        }
        shift = shift.wrapping_add(7);
    }
    None
}

/// Takes a zig-zag 32-bit number off the front of `bytes`.
pub(super) fn read_i32(bytes: &mut &[u8]) -> Option<i32> {
    let raw = read_unsigned(bytes, 5)? as u32;
    Some(((raw >> 1) as i32) ^ ((raw & 1) as i32).wrapping_neg())
}

/// Takes a zig-zag 64-bit number off the front of `bytes`.
pub(super) fn read_i64(bytes: &mut &[u8]) -> Option<i64> {
    let raw = read_unsigned(bytes, 10)?;
    Some(((raw >> 1) as i64) ^ ((raw & 1) as i64).wrapping_neg())
}

pub(super) fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_unsigned(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

pub(super) fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that `value` takes.
pub(super) fn size_i32(value: i32) -> usize {
    size_unsigned(u64::from(((value << 1) ^ (value >> 31)) as u32))
}

/// Bytes that `value` takes.
pub(super) fn size_i64(value: i64) -> usize {
    size_unsigned(((value << 1) ^ (value >> 63)) as u64)
}

fn size_unsigned(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_take_the_bytes_foretold() {
        let edges = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MAX), i64::from(i32::MIN)];
        for value in edges.into_iter().chain([i64::MAX, i64::MIN, 1 << 34, -(1 << 48)]) {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            assert_eq!(out.len(), size_i64(value), "{value}");
            assert_eq!(read_i64(&mut out.as_slice()), Some(value));
            if let Ok(value) = i32::try_from(value) {
                out.clear();
                write_i32(&mut out, value);
                assert_eq!(out.len(), size_i32(value), "{value}");
                assert_eq!(read_i32(&mut out.as_slice()), Some(value));
            }
        }
    }

    #[test]
    fn what_does_not_end_is_refused() {
        assert_eq!(read_i32(&mut [0xff_u8; 5].as_slice()), None);
        assert_eq!(read_i64(&mut [0xff_u8; 10].as_slice()), None);
        assert_eq!(read_i32(&mut [0x80_u8].as_slice()), None);
        assert_eq!(read_i32(&mut [].as_slice()), None);
    }
}
